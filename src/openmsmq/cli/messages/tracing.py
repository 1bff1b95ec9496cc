"""`openmsmq message trace`: where one message is, was received, or died."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from openmsmq.cli.options.connecting import EXIT_NO_MESSAGE, run_connected, target_of
from openmsmq.cli.options.reading import JsonOption, read_identifier
from openmsmq.cli.views.console import safe
from openmsmq.cli.views.output import print_json, print_table, time_text
from openmsmq.model.identity import MessageId

if TYPE_CHECKING:
    from openmsmq.client.aio import QueueManager
    from openmsmq.client.operating.tracing import Asked, Trace


def trace(
    context: typer.Context,
    message_id: Annotated[
        str,
        typer.Argument(
            metavar="ID", help=r"Identifier of the message: {guid}\number, or 40 digits."
        ),
    ],
    others: Annotated[
        bool,
        typer.Option(
            "--others",
            help="Ask the other queue managers of the directory, too, as you. A token is shown to "
            "them only over TLS, or on this computer.",
        ),
    ] = False,
    look_at: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Messages to look at in each; 400,000 by default."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show where a message is, was received, or died: the places in the order of their times.

    It is looked for in queues, outgoing queues, journals and dead-letter queues, and with it what
    tells of it: acknowledgments, reports, answers. The exit code is 3 if nothing was found.
    """
    # Other commands do not pay for loading the client.
    from openmsmq.client.operating.tracing import LOOKED_MAX_COUNT
    from openmsmq.client.operating.tracing import trace as find_path

    settings = target_of(context).settings() if others else None

    async def work(manager: QueueManager) -> Trace:
        return await find_path(
            manager,
            MessageId.from_bytes(read_identifier(message_id)),
            others=settings,
            looked_max_count=look_at or LOOKED_MAX_COUNT,
        )

    found = run_connected(context, work)
    if json:
        _print_json(found)
    else:
        _print(found)
    if not found.places:
        raise typer.Exit(EXIT_NO_MESSAGE)


def _print_json(found: Trace) -> None:
    # Other commands do not pay for loading it.
    import msgspec

    print_json(msgspec.to_builtins(found))


def _print(found: Trace) -> None:
    print_table(
        ("When (UTC)", "Queue manager", "Queue", "What"),
        ([time_text(one.time_s), one.manager, one.queue, one.words] for one in found.places),
    )
    typer.echo(safe(found.conclusion))
    for one in found.asked:
        for sentence in _limits(one):
            typer.echo(safe(f"{one.manager}: {sentence}"), err=True)


def _limits(one: Asked) -> list[str]:
    """Say what is not known, so that nobody takes it for known."""
    found = []
    if one.problem:
        found.append(f"not asked: {one.problem}")
    if one.is_cut:
        found.append(f"looked at {one.looked_count} messages, and no further")
    if one.hidden_count:
        found.append(f"{one.hidden_count} queues with messages are not for you to look into")
    return found
