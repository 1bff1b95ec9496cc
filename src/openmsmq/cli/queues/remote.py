"""What commands with --remote show and do: the queues of any computer with MSMQ. [MQMR]"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
import typer

from openmsmq.cli.options.reaching import reached
from openmsmq.cli.views.console import say_error
from openmsmq.cli.views.output import (
    Columns,
    JsonObject,
    print_facts,
    print_json,
    print_list,
    size_text,
)
from openmsmq.model.errors import MsmqError

if TYPE_CHECKING:
    from openmsmq.client.managing.host import RemoteHost
    from openmsmq.client.managing.properties import RemoteQueue

_UNKNOWN: Final = "not told"
_COLUMNS: Final[Columns] = {
    "Queue": lambda found: found["path_name"] or found["format_name"] or "",
    ">Messages": "message_count",
    ">Size": "message_bytes",
    ">Journal": "journal_message_count",
    "Kind": lambda found: "transactional" if found["transactional"] else "",
}
_OUTGOING_COLUMNS: Final[Columns] = {
    "Queue": "format_name",
    ">Messages": "message_count",
    ">Size": "message_bytes",
    "State": "state",
    "Next hops": "next_hops",
}


class Listed(msgspec.Struct, frozen=True):
    """Which queues are listed, and how."""

    filter_: str
    everything: bool
    sort: str
    reverse: bool
    limit: int | None


def list_queues(context: typer.Context, wanted: Listed, *, json: bool) -> None:
    """List the private queues; with `everything` also the others that are in use."""
    # Other commands do not pay for loading it.
    import fnmatch

    with reached(context) as host:
        names = host.private_queues()
        seen = {name.casefold() for name in names}
        found = [queue for name in names if (queue := _queue(host, name)) is not None]
        if wanted.everything:
            for queue in (_queue(host, name) for name in host.active_queues()):
                if queue is None or not queue.is_local:
                    continue
                if (queue.path_name or "").casefold() not in seen:
                    found.append(queue)
    pattern = wanted.filter_.casefold()
    if pattern and not any(letter in pattern for letter in "*?["):
        pattern = f"*{pattern}*"
    shown = [
        each
        for each in map(queue_object, found)
        if not pattern or fnmatch.fnmatchcase(_name(each).casefold(), pattern)
    ]
    shown.sort(key=lambda each: _name(each).casefold(), reverse=wanted.reverse)
    if wanted.sort != "name":
        key = f"message_{'count' if wanted.sort == 'messages' else 'bytes'}"
        shown.sort(key=lambda each: _number(each[key]), reverse=not wanted.reverse)
    nothing = "no queue fits" if pattern else "there are no private queues"
    print_list(shown[: wanted.limit], _COLUMNS, nothing, json=json)


def list_outgoing(context: typer.Context, *, json: bool) -> None:
    """List the queues that lead to other computers."""
    with reached(context) as host:
        found = [_queue(host, name) for name in host.active_queues()]
    outgoing = [queue_object(queue) for queue in found if queue is not None and not queue.is_local]
    outgoing.sort(key=lambda each: str(each["format_name"]))
    nothing = "there are no outgoing queues: nothing waits to leave for another computer"
    print_list(outgoing, _OUTGOING_COLUMNS, nothing, json=json)


def show_queue(context: typer.Context, name: str, *, json: bool) -> None:
    """Show one queue."""
    with reached(context) as host:
        told = host.queue(host.name_of(name))
    found = queue_object(told)
    if json:
        print_json(found)
        return
    facts = [
        ("format name", found["format_name"]),
        ("type", found["kind"]),
        ("transactional", found["transactional"]),
        ("state", found["state"]),
        ("messages", found["message_count"]),
        ("size", _size(found["message_bytes"])),
        ("in the journal", found["journal_message_count"]),
        ("size of the journal", _size(found["journal_message_bytes"])),
    ]
    if told.next_hops:
        facts.append(("next hops", ", ".join(told.next_hops)))
    print_facts(_name(found), [(word, _shown(value)) for word, value in facts])


def show_machine(context: typer.Context, *, json: bool) -> None:
    """Show how the queue manager is."""
    with reached(context) as host:
        machine = host.machine()
        private_count = len(host.private_queues())
        name = host.host
    if json:
        shown: JsonObject = {"host": name, "private_queue_count": private_count}
        print_json(shown | msgspec.structs.asdict(machine))
        return
    online = None if machine.online is None else "online" if machine.online else "offline"
    print_facts(
        name,
        [
            ("software", machine.software or _UNKNOWN),
            ("private queues", str(private_count)),
            ("messages", _shown(_size(machine.message_bytes))),
            ("transfer", _shown(online)),
            ("directory", machine.directory_server or "none, or not told"),
        ],
    )


def act(context: typer.Context, action: str, queue: str | None = None) -> None:
    """Do something to a queue, or to the queue manager."""
    with reached(context) as host:
        host.act(action, None if queue is None else host.name_of(queue))


def queue_object(found: RemoteQueue) -> JsonObject:
    """Return everything about a queue under the names that programs rely on."""
    return msgspec.structs.asdict(found) | {"next_hops": list(found.next_hops)}


def _queue(host: RemoteHost, name: str) -> RemoteQueue | None:
    """Ask for a queue of a list; one that is gone since then, or kept from us, is passed over."""
    try:
        return host.queue(host.name_of(name))
    except MsmqError as error:
        say_error(f"{name} is left out: {error}")
        return None


def _name(found: JsonObject) -> str:
    return str(found["path_name"] or found["format_name"] or "")


def _number(value: object) -> int:
    return value if isinstance(value, int) else -1


def _size(value: object) -> str | None:
    return size_text(value) if isinstance(value, int) else None


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _UNKNOWN if value is None else str(value)
