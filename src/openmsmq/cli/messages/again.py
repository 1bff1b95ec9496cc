"""`openmsmq message copy` and `resend`: what lies in a queue is sent to another, or once more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import msgspec
import typer

from openmsmq.cli.options.connecting import EXIT_FAILED, run_connected
from openmsmq.cli.options.reading import (
    AllOption,
    Choice,
    CountOption,
    IdOption,
    JsonOption,
    LookupOption,
    QueueArgument,
    choose,
    read_identifier,
)
from openmsmq.cli.views.console import YesOption, ask_before, fail, say_error
from openmsmq.cli.views.output import JsonObject, count_text, print_json, print_result
from openmsmq.model.errors import MessageNotFound, MsmqError
from openmsmq.model.queue import SeekAction
from openmsmq.wire.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from openmsmq.client.aio import Queue, QueueManager
    from openmsmq.client.messages.received import ReceivedMessage
    from openmsmq.client.operating.resending import Way

DryRunOption: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")
]
_DEAD_LETTERS: Final = ("system$;deadletter", "system$;deadxact")


def copy(
    context: typer.Context,
    queue: QueueArgument,
    to: Annotated[
        str,
        typer.Argument(metavar="TO", help="The queue that gets the copy: path or format name."),
    ],
    message_id: IdOption = None,
    lookup_id: LookupOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Send a copy of a message to another queue; at a terminal, ask first.

    Body and properties stay, the identifier and the time are new, a signature is left out. A
    transactional queue gets it in a transaction.
    """
    # Other commands do not pay for loading the client.
    from openmsmq.client.operating.resending import find_way, send_as_it_was, send_copy

    choice = chosen_one(message_id, lookup_id)

    async def work(manager: QueueManager) -> None:
        async with manager.queue(queue) as source:
            message = await look_at(source, choice)
        way = await find_way(manager, queue, to)
        told = _told(message, way)
        if dry_run:
            print_result(
                {**told, "dry_run": True},
                f"would send a copy of {message.id} from {queue} to {to}, "
                f"{_how(way, message, takes_out=False)}",
                json=json,
            )
            return
        ask_before(f"Send a copy of {message.id} to {to}?", yes=yes)
        sent = await send_copy(manager, way, message, send_as_it_was)
        sentence = f"sent a copy of {message.id} to {to}, as {sent}"
        print_result({**told, "sent_as": str(sent)}, sentence, json=json)

    run_connected(context, work)


def chosen_one(message_id: str | None, lookup_id: int | None) -> Choice:
    """Check that the options say which message is meant."""
    choice = choose(message_id=message_id, lookup_id=lookup_id)
    if not choice.is_one:
        fail("which message? Give --id ID or --lookup-id N; `openmsmq peek --all` shows both.")
    return choice


async def look_at(queue: Queue, choice: Choice) -> ReceivedMessage:
    """Look at the message that the options point at."""
    if choice.message_id is not None:
        return await queue.peek_by_id(read_identifier(choice.message_id), 0)
    return await queue.peek_by_lookup_id(choice.lookup_id or 0, SeekAction.CURRENT)


def _told(message: ReceivedMessage, way: Way) -> JsonObject:
    """Return what programs are told of a message that is sent again."""
    return {
        "message_id": str(message.id),
        "from": way.source_name,
        "to": way.target_name,
        "transactional": way.is_transactional(message),
    }


def _how(way: Way, message: ReceivedMessage, *, takes_out: bool) -> str:
    """Say how a message is sent, and what becomes of the one that is there."""
    if not takes_out:
        alone = "in a transaction" if way.is_transactional(message) else "without transaction"
        return f"{alone}; the message here stays"
    if way.is_together(message):
        return "in one transaction with taking it out here"
    return "and then take it out here: an interruption may leave it in both places"


# Sending again.


class _Resent(msgspec.Struct):
    """How far sending again has come."""

    sent_count: int = 0
    refused_count: int = 0


def resend(
    context: typer.Context,
    queue: Annotated[
        str,
        typer.Argument(
            metavar="QUEUE",
            help=r"Where the messages are: 'system$;deadletter', 'system$;deadxact', a journal "
            r"such as 'private$\orders;journal', or a dead-letter queue of an application.",
        ),
    ],
    to: Annotated[
        str | None,
        typer.Option(metavar="QUEUE", help="Send them there, not to where they were going."),
    ] = None,
    count: CountOption = None,
    everything: AllOption = False,
    message_id: IdOption = None,
    lookup_id: LookupOption = None,
    keep: Annotated[
        bool | None,
        typer.Option(
            "--keep/--take-out",
            help="Whether they stay where they are. Without: dead letters are taken out, what a "
            "journal has stays.",
        ),
    ] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    json: JsonOption = False,
) -> None:
    """Send dead letters, or messages of a journal, to where they were going; at a terminal, ask.

    Where both queues are transactional, each message is sent and taken out in one transaction.
    Otherwise it is sent first and then taken out. What cannot be sent stays, and the exit code is
    1. Messages that come meanwhile are left for the next time.
    """
    choice = _chosen_some(count, everything, message_id, lookup_id)
    stays = queue.lower().endswith((";journal", "\\journal$")) if keep is None else keep
    wish = _Wish(queue, to, choice, stays)

    async def work(manager: QueueManager) -> _Resent:
        if not dry_run:
            total = 1 if choice.is_one else await manager.queue(queue).count()
            wanted = total if choice.count is None else min(total, choice.count)
            where = f"to {to}" if to else "to where they were going"
            ask_before(f"Send {count_text(wanted)} of {queue} {where} again?", yes=yes)
        return await _resend(manager, wish, dry_run=dry_run, json=json)

    _finish(run_connected(context, work), "would send" if dry_run else "sent", json=json)


def requeue_letters(context: typer.Context, name: str, choice: Choice, *, json: bool) -> None:
    """Send dead letters to their queues again, as `deadletter --requeue` does."""
    wish = _Wish(name, None, choice, stays=False)

    async def work(manager: QueueManager) -> _Resent:
        return await _resend(manager, wish, dry_run=False, json=json)

    _finish(run_connected(context, work), "sent", json=json)


def _finish(done: _Resent, verb: str, *, json: bool) -> None:
    if not json:
        refused = f"; {done.refused_count} could not be" if done.refused_count else ""
        typer.echo(f"{verb} {count_text(done.sent_count)} again{refused}")
    if done.refused_count:
        raise typer.Exit(EXIT_FAILED)


class _Wish(msgspec.Struct, frozen=True):
    """What is to be sent again, where to, and whether it stays."""

    queue: str
    to: str | None
    choice: Choice
    stays: bool


def _chosen_some(
    count: int | None, everything: bool, message_id: str | None, lookup_id: int | None
) -> Choice:
    if everything and count is not None:
        fail("--count and --all say different things: give one of them.")
    choice = choose(count=count, message_id=message_id, lookup_id=lookup_id)
    if not (choice.is_one or everything or count):
        fail("which messages? Give --id ID, --lookup-id N, --count N or --all.")
    return choice


async def _resend(manager: QueueManager, wish: _Wish, *, dry_run: bool, json: bool) -> _Resent:
    done = _Resent()
    async for message in _messages(manager, wish):
        told: JsonObject = {"message_id": None, "from": wish.queue, "to": wish.to}
        problem: MsmqError | DecodeError | None = None
        try:
            told["message_id"] = str(message.id)
            way = await _way_of(manager, wish, message)
            told |= _told(message, way)
            if dry_run:
                how = _how(way, message, takes_out=not wish.stays)
                if not json:
                    typer.echo(f"{message.id}: send to {way.target_name}, {how}")
            else:
                told["sent_as"] = await _send(manager, wish, way, message)
            done.sent_count += 1
        except (MsmqError, DecodeError) as error:
            problem = error
            done.refused_count += 1
            say_error(f"{told['message_id'] or f'lookup id {message.lookup_id}'} stays: {error}")
        if json:
            name = getattr(problem, "name", "unreadable")
            # `deadletter --requeue` has always said these two.
            told |= {"destination": told["to"], "requeued": problem is None and not dry_run}
            print_json({**told, "dry_run": dry_run, "error": None if problem is None else name})
    return done


async def _messages(manager: QueueManager, wish: _Wish) -> AsyncIterator[ReceivedMessage]:
    # Other commands do not pay for loading the client.
    from openmsmq.client.operating.resending import walk

    seen_count = 0
    async with manager.queue(wish.queue) as queue:
        if wish.choice.is_one:
            yield await look_at(queue, wish.choice)
            return
        async for message in walk(queue):
            if seen_count == wish.choice.count:
                return
            seen_count += 1
            yield message


async def _way_of(manager: QueueManager, wish: _Wish, message: ReceivedMessage) -> Way:
    from openmsmq.client.operating.resending import find_way

    to = wish.to
    if to is None:
        if message.destination is None:
            raise MessageNotFound("it does not say to which queue it was sent: give --to QUEUE")
        to = str(message.destination)
        if wish.queue.lower() not in _DEAD_LETTERS and await _is_same(manager, wish.queue, to):
            raise MessageNotFound(
                f"it is where it was going, in {wish.queue}: give --to QUEUE for another one"
            )
    return await find_way(manager, wish.queue, to)


async def _is_same(manager: QueueManager, name: str, other: str) -> bool:
    """Whether two names are those of one queue here."""
    try:
        first = await manager.queue(name).properties()
        second = await manager.queue(other).properties()
    except MsmqError:
        return False
    return first.path_name == second.path_name


async def _send(manager: QueueManager, wish: _Wish, way: Way, message: ReceivedMessage) -> str:
    from openmsmq.client.operating.resending import send_again, send_as_it_was, send_copy

    if wish.stays:
        return str(await send_copy(manager, way, message, send_as_it_was))
    sent = await send_again(manager, way, message.lookup_id, str(message.id), send_as_it_was)
    if sent is None:
        raise MessageNotFound("somebody else has taken it meanwhile")
    return str(sent)
