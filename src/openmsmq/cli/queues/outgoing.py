"""`openmsmq outgoing`: messages that wait to leave for other computers, and what they wait for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer

from openmsmq.cli.options.connecting import connected, target_of
from openmsmq.cli.options.reading import (
    AllOption,
    CountOption,
    IdOption,
    JsonOption,
    LookupOption,
    choose,
    look,
    wanted_count,
)
from openmsmq.cli.queues import remote
from openmsmq.cli.queues.queue import report_purge
from openmsmq.cli.views.console import safe
from openmsmq.cli.views.message import show_message
from openmsmq.cli.views.output import (
    JsonObject,
    count_text,
    print_facts,
    print_json,
    print_list,
    print_result,
    print_table,
    progress_by_asking,
    size_text,
    time_text,
)
from openmsmq.model.queue import CONNECTION_WORDS, AccessMode, ConnectionStatus

if TYPE_CHECKING:
    from openmsmq.api.messages import ConnectionAttempt, OutgoingStatus, SequencePlace

app: Final = typer.Typer(
    help="Messages for other computers: what waits to leave, why, and how to help it along.",
    no_args_is_help=True,
)

LeadsTo = Annotated[
    str,
    typer.Argument(
        metavar="QUEUE",
        help=r"The queue it leads to, as in `send`: 'DIRECT=OS:beta\private$\orders'.",
    ),
]

OUTGOING_KEYS: Final = {
    "format_name": "The queue it leads to.",
    "state": "How far it has come, in the words of MSMQ: `WAITING`, `CONNECTED`, `ONHOLD`, ...",
    "explanation": "What its first message waits for, in one sentence.",
    "paused": "Whether it was told to wait.",
    "message_count": "Messages in it, those on their way included.",
    "message_bytes": "Their size.",
    "unread_count": "Transactional messages that arrived and whose end is still to be heard.",
    "next_hops": "The addresses that are tried.",
    "address": "The address of the open session.",
    "in_flight_count": "Messages sent in the session and not acknowledged by the neighbour.",
    "sequence": "The sequence of transactional messages, as one number.",
    "next_number": "The number that the next one gets.",
    "unacknowledged_count": "Those that are sent and that the destination has not acknowledged.",
    "last_acknowledged_number": "The last one that it has acknowledged.",
    "last_ack_time": "When it did.",
    "resend_count": "How often they were sent again.",
    "resend_time": "When they are sent again.",
    "history": "The last attempts to connect: `time`, `status`, `addresses`.",
    "last_acknowledged": "The place of the last that was: `sequence`, `number`, `previous`.",
    "first_unacknowledged": "The place of the first one without an acknowledgment.",
    "last_unacknowledged": "The place of the last one without an acknowledgment.",
    "next_place": "The place that the next one gets.",
    "last_ack_count": "How often the last acknowledgment came.",
    "resend_interval_s": "How long it is between two attempts to send them again, in seconds.",
    "open_count": "How often applications have it open.",
    "failing": "Whether nothing leaves although it is INACTIVE: posts fail, or it is locked.",
}
"""The keys of `outgoing_object`, for `docs/reference/cli.md`."""
_PLACES: Final = ("last_acknowledged", "first_unacknowledged", "last_unacknowledged", "next_place")


@app.command("list")
def list_(context: typer.Context, json: JsonOption = False) -> None:
    """List the outgoing queues."""
    if target_of(context).remote:
        remote.list_outgoing(context, json=json)
        return
    with connected(context) as manager:
        queues = sorted(manager.outgoing(), key=lambda found: found.format_name)
    columns = {
        "Queue": "format_name",
        ">Messages": "message_count",
        ">Size": "message_bytes",
        "State": "state",
        "Next hops": "next_hops",
    }
    nothing = "there are no outgoing queues: nothing waits to leave for another computer"
    print_list(map(outgoing_object, queues), columns, nothing, json=json)


@app.command()
def show(context: typer.Context, queue: LeadsTo, json: JsonOption = False) -> None:
    """Show an outgoing queue: what its first message waits for, and how far the others are."""
    if target_of(context).remote:
        remote.show_queue(context, queue, json=json)
        return
    with connected(context) as manager:
        found = manager.outgoing_queue(queue)
    if json:
        print_json(outgoing_object(found))
    else:
        print_outgoing(found)


@app.command()
def pause(context: typer.Context, queue: LeadsTo, json: JsonOption = False) -> None:
    """Let the messages of an outgoing queue wait, also after a restart, until it is resumed."""
    if target_of(context).remote:
        remote.act(context, "PAUSE", queue)
    else:
        with connected(context) as manager:
            manager.pause_outgoing(queue)
    print_result({"queue": queue, "paused": True}, f"paused {queue}", json=json)


@app.command()
def resume(context: typer.Context, queue: LeadsTo, json: JsonOption = False) -> None:
    """Let an outgoing queue go on, and try at once to reach the other computer."""
    if target_of(context).remote:
        remote.act(context, "RESUME", queue)
    else:
        with connected(context) as manager:
            manager.resume_outgoing(queue)
    print_result({"queue": queue, "paused": False}, f"resumed {queue}", json=json)


@app.command()
def resend(context: typer.Context, queue: LeadsTo, json: JsonOption = False) -> None:
    """Send the transactional messages again now that the other side has not acknowledged."""
    if target_of(context).remote:
        remote.act(context, "EOD_RESEND", queue)
    else:
        with connected(context) as manager:
            manager.resend_outgoing(queue)
    sentence = f"sending again what is not acknowledged to {queue}"
    print_result({"queue": queue, "resent": True}, sentence, json=json)


@app.command()
def purge(context: typer.Context, queue: LeadsTo, json: JsonOption = False) -> None:
    """Delete the messages of an outgoing queue; the other computer keeps what has arrived."""
    with connected(context) as manager:
        total = manager.outgoing_queue(queue).message_count
        opened = manager.open(queue, AccessMode.RECEIVE_ADMIN)
        with progress_by_asking(
            f"Purging {queue}", total, lambda: manager.outgoing_queue(queue).message_count
        ):
            purged = opened.purge()
    report_purge(queue, purged, json=json)


@app.command()
def peek(
    context: typer.Context,
    queue: LeadsTo,
    count: CountOption = None,
    everything: AllOption = False,
    message_id: IdOption = None,
    lookup_id: LookupOption = None,
    json: JsonOption = False,
) -> None:
    """Show messages that wait in an outgoing queue: the first, or more with --count or --all.

    Those that are sent and not yet acknowledged are not shown. Exit code 3 says that there was
    none.
    """
    choice = choose(
        count=wanted_count(count, everything), message_id=message_id, lookup_id=lookup_id
    )
    with connected(context) as manager:
        for message in look(manager.open(queue, AccessMode.PEEK_ADMIN), choice):
            show_message(message, json=json)


def online(context: typer.Context, json: JsonOption = False) -> None:
    """Let the queue manager exchange messages with others again."""
    _set_online(context, online=True, json=json)


def offline(context: typer.Context, json: JsonOption = False) -> None:
    """Keep the queue manager from exchanging messages with others, until `online` or a restart.

    Applications go on as before; what they send to other computers waits in outgoing queues.
    """
    _set_online(context, online=False, json=json)


def _set_online(context: typer.Context, *, online: bool, json: bool) -> None:
    if name := target_of(context).remote:
        remote.act(context, "CONNECT" if online else "DISCONNECT")
    else:
        with connected(context) as manager:
            manager.set_online(online)
            name = manager.name
    sentence = f"{name} is {online_text(online)}"
    print_result({"manager_name": name, "online": online}, sentence, json=json)


def online_text(online: bool) -> str:
    """Return whether a queue manager exchanges messages with others."""
    return "online" if online else "offline"


def outgoing_object(found: OutgoingStatus) -> JsonObject:
    """Return everything about an outgoing queue under the names that programs rely on."""
    shown: JsonObject = {key: getattr(found, key, None) for key in OUTGOING_KEYS}
    history = [
        {
            "time": time_text(attempt.time_s),
            "status": _status_name(attempt.status),
            "addresses": attempt.addresses,
        }
        for attempt in found.history
    ]
    return shown | {
        "address": found.address or None,
        "sequence": found.sequence or None,
        "last_ack_time": _time(found.last_ack_time_s),
        "resend_time": _time(found.resend_time_s),
        "history": history,
        **{place: _place(getattr(found, place)) for place in _PLACES},
    }


def _place(place: SequencePlace) -> JsonObject | None:
    if not place.sequence:
        return None
    return {"sequence": place.sequence, "number": place.number, "previous": place.previous}


def print_outgoing(found: OutgoingStatus) -> None:
    """Print an outgoing queue for people: why it waits, what is in it, how connecting went."""
    typer.echo(safe(found.explanation))
    print_facts(found.format_name, _facts(found))
    if found.history:
        typer.echo()
        print_table(("Time", "Attempt", "Addresses"), map(_attempt_row, found.history))


def _facts(found: OutgoingStatus) -> Iterator[tuple[str, str]]:
    yield "state", found.state
    yield "next hops", ", ".join(found.next_hops) or "not known"
    if found.address:
        yield "session with", found.address
    yield "messages", f"{found.message_count} ({size_text(found.message_bytes)})"
    yield "in flight", str(found.in_flight_count)
    if not found.sequence:
        return
    yield "sequence", f"{found.sequence:#018x}, next number {found.next_number}"
    yield "not acknowledged", str(found.unacknowledged_count)
    if found.last_acknowledged_number:
        when = time_text(found.last_ack_time_s)
        yield "acknowledged", f"up to number {found.last_acknowledged_number}, at {when}"
    if found.resend_time_s:
        times = count_text(found.resend_count, "time")
        yield "sent again", f"{times}, next at {time_text(found.resend_time_s)}"
    yield "arrived, not received", str(found.unread_count)


def _attempt_row(attempt: ConnectionAttempt) -> list[str]:
    words = CONNECTION_WORDS.get(attempt.status) or _status_name(attempt.status)
    return [time_text(attempt.time_s), words, ", ".join(attempt.addresses)]


def _status_name(status: int) -> str:
    try:
        return ConnectionStatus(status).name.lower()
    except ValueError:
        return f"{status:#010x}"


def _time(time_s: int) -> str | None:
    return time_text(time_s) if time_s else None
