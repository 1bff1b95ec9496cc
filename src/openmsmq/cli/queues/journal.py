"""`openmsmq journal` and `openmsmq deadletter`: copies that were kept, and what did not arrive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from openmsmq.cli.messages.again import requeue_letters
from openmsmq.cli.options.connecting import connected
from openmsmq.cli.options.reading import (
    CountOption,
    IdOption,
    JsonOption,
    LookupOption,
    choose,
    look,
    take,
)
from openmsmq.cli.queues.queue import purge_queue, report_purge
from openmsmq.cli.views.console import YesOption, fail
from openmsmq.cli.views.message import (
    COLUMNS,
    message_object,
    message_row,
    preview,
    show_message,
)
from openmsmq.cli.views.output import count_text, print_json, print_table
from openmsmq.model.errors import MsmqError, ReceiveTimeout

if TYPE_CHECKING:
    from openmsmq.client.blocking import QueueManager
    from openmsmq.client.messages.received import ReceivedMessage

SYSTEM_JOURNAL: Final = "system$;journal"
DEAD_LETTERS: Final = "system$;deadletter"
TRANSACTIONAL_DEAD_LETTERS: Final = "system$;deadxact"
DEAD_LETTER_COLUMNS: Final = (*COLUMNS[:5], "Reason", "Destination", *COLUMNS[6:])

ReceiveOption = Annotated[
    bool, typer.Option("--receive", help="Take the messages out and show them.")
]
PurgeOption = Annotated[
    bool, typer.Option("--purge", help="Delete the messages; at a terminal, ask first.")
]


def journal(
    context: typer.Context,
    queue: Annotated[
        str | None,
        typer.Argument(
            metavar="[QUEUE]", help="The queue whose journal is meant; without it, the system's."
        ),
    ] = None,
    receive: ReceiveOption = False,
    purge: PurgeOption = False,
    yes: YesOption = False,
    count: CountOption = None,
    message_id: IdOption = None,
    lookup_id: LookupOption = None,
    json: JsonOption = False,
) -> None:
    """Show the journal of a queue (what was received) or of the queue manager (what was sent)."""
    _only_one({"--receive": receive, "--purge": purge})
    choice = choose(count=count, message_id=message_id, lookup_id=lookup_id)
    name = SYSTEM_JOURNAL if queue is None else _journal_of(queue)
    with connected(context) as manager:
        kept = manager.queue(name)
        if purge:
            report_purge(name, purge_queue(kept, yes=yes), json=json)
        elif receive:
            take(manager, kept, choice, lambda found: show_message(found, json=json))
        elif json:
            for message in _until_empty(look(kept, choice)):
                print_json(message_object(message))
        else:
            _print(name, COLUMNS, map(message_row, _until_empty(look(kept, choice))))


def deadletter(
    context: typer.Context,
    transactional: Annotated[
        bool, typer.Option("--transactional", help="The transactional dead-letter queue.")
    ] = False,
    receive: ReceiveOption = False,
    requeue: Annotated[
        bool,
        typer.Option("--requeue", help="Send the messages to their queues again."),
    ] = False,
    purge: PurgeOption = False,
    yes: YesOption = False,
    count: CountOption = None,
    message_id: IdOption = None,
    lookup_id: LookupOption = None,
    json: JsonOption = False,
) -> None:
    """Show messages that could not be delivered or were not received in time."""
    _only_one({"--receive": receive, "--requeue": requeue, "--purge": purge})
    choice = choose(count=count, message_id=message_id, lookup_id=lookup_id)
    name = TRANSACTIONAL_DEAD_LETTERS if transactional else DEAD_LETTERS
    if requeue:
        requeue_letters(context, name, choice, json=json)
        return
    with connected(context) as manager:
        letters = manager.queue(name)
        if purge:
            report_purge(name, purge_queue(letters, yes=yes), json=json)
        elif receive:
            take(manager, letters, choice, lambda found: _show_letter(found, json=json))
        elif json:
            for message in _until_empty(look(letters, choice)):
                _show_letter(message, json=True)
        else:
            rows = map(_letter_row, _until_empty(look(letters, choice)))
            _print(name, DEAD_LETTER_COLUMNS, rows)
            _mention_others(manager, transactional=transactional)


def _journal_of(queue: str) -> str:
    """Name the journal of a queue; who has named the journal itself means it."""
    is_journal = queue.lower().endswith((";journal", "\\journal$"))
    return queue if is_journal else f"{queue};journal"


def _only_one(actions: dict[str, bool]) -> None:
    given = [name for name, is_given in actions.items() if is_given]
    if len(given) > 1:
        fail(f"{' and '.join(given)} are different things to do: give one of them.")


def _print(name: str, columns: Sequence[str], rows: Iterator[list[str]]) -> None:
    if not print_table(columns, rows):
        typer.echo(f"no messages in {name}")


def _mention_others(manager: QueueManager, *, transactional: bool) -> None:
    """Say so if the other dead-letter queue has messages: who looks here may miss them."""
    name = DEAD_LETTERS if transactional else TRANSACTIONAL_DEAD_LETTERS
    try:
        count = manager.queue(name).count()
    except MsmqError:
        # Who may look into one need not be allowed to look into the other.
        return
    if count:
        how = "without" if transactional else "with"
        typer.echo(f"{count_text(count)} in {name}: `openmsmq deadletter` {how} --transactional")


def _until_empty(messages: Iterator[ReceivedMessage]) -> Iterator[ReceivedMessage]:
    """A list of nothing is a list; only what was asked for by name must be there."""
    try:
        yield from messages
    except ReceiveTimeout:
        return


def _letter_row(message: ReceivedMessage) -> list[str]:
    row = message_row(message)
    shown = _letter_object(message)
    return [
        *row[:5],
        str(shown["reason"] or "unknown"),
        preview(str(shown.get("destination") or "")),
        *row[6:],
    ]


def _letter_object(message: ReceivedMessage) -> dict[str, object]:
    shown = message_object(message)
    # Other commands do not pay for loading the client.
    from openmsmq.client.messages.again import dead_letter_reason

    readable = "problem" not in shown
    return {**shown, "reason": dead_letter_reason(message) if readable else None}


def _show_letter(message: ReceivedMessage, *, json: bool) -> None:
    if json:
        print_json(_letter_object(message))
    else:
        show_message(message, json=False)
