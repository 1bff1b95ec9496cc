"""`openmsmq receive` and `openmsmq peek`: messages out of a queue, and messages looked at."""

from __future__ import annotations

from typing import Annotated

import typer

from openmsmq.cli.options.connecting import connected
from openmsmq.cli.options.reading import (
    AllOption,
    CorrelationOption,
    CountOption,
    IdOption,
    JsonOption,
    LookupOption,
    QueueArgument,
    SeekOption,
    TimeoutOption,
    choose,
    look,
    search,
    take,
    wanted_count,
)
from openmsmq.cli.views.console import fail
from openmsmq.cli.views.message import show_message


def receive(
    context: typer.Context,
    queue: QueueArgument,
    timeout: TimeoutOption = 0,
    count: CountOption = None,
    everything: AllOption = False,
    message_id: IdOption = None,
    correlation_id: CorrelationOption = None,
    lookup_id: LookupOption = None,
    seek: SeekOption = None,
    json: JsonOption = False,
) -> None:
    """Take messages out of a queue and show them: one, or more with --count or --all.

    Exit code 3 says that there was none, or that none came in time. From a transactional queue
    messages are received in a transaction, which is committed when they have been shown.
    """
    choice = choose(
        count=wanted_count(count, everything),
        timeout=timeout,
        message_id=message_id,
        correlation_id=correlation_id,
        lookup_id=lookup_id,
        seek=seek,
    )
    with connected(context) as manager:
        take(manager, manager.queue(queue), choice, lambda found: show_message(found, json=json))


def peek(
    context: typer.Context,
    queue: QueueArgument,
    timeout: TimeoutOption = 0,
    count: CountOption = None,
    everything: AllOption = False,
    message_id: IdOption = None,
    correlation_id: CorrelationOption = None,
    lookup_id: LookupOption = None,
    seek: SeekOption = None,
    grep: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Only messages with this text in body or label."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="All of every body; without, long ones are cut.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show messages and leave them in the queue: the first, or more with --count or --all.

    Of a long body only the beginning is shown, unless --full or --json asks for all of it.
    --grep looks at many messages to find the first with a text, or more with --count or --all.
    Exit code 3 says that there was none, or that none came in time.
    """
    if grep is not None and (message_id or correlation_id or lookup_id is not None or seek):
        fail("--grep looks at all messages: give it without an option that points at one.")
    choice = choose(
        count=wanted_count(count, everything),
        timeout=timeout,
        message_id=message_id,
        correlation_id=correlation_id,
        lookup_id=lookup_id,
        seek=seek,
    )
    with connected(context) as manager:
        found = manager.queue(queue)
        messages = look(found, choice) if grep is None else search(found, choice, grep)
        for message in messages:
            show_message(message, json=json, full=full)
