"""Properties of the computer and of its queues, as managing programs ask for them.

[MQMR 2.2.3, 3.1.4.1; MQMQ 2.3.11, 2.3.12]

A property has a number, and a function from what the queue manager has told to its value. What does
not apply to a queue is NULL (M-3), as is what nobody here knows.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from openmsmq.api import messages as api
from openmsmq.model.directory import DirectoryRole
from openmsmq.model.names import (
    DirectFormatName,
    DirectProtocol,
    IllegalName,
    PublicFormatName,
    parse_format_name,
)
from openmsmq.model.queue import ConnectionStatus, QueueRole
from openmsmq.wire.rpc.variants import NULL, Value, Variant, VariantTag

_U32_MAX: Final = 0xFFFF_FFFF
_I32_MAX: Final = 0x7FFF_FFFF
_SEQUENCE_INFO: Final = struct.Struct("<qII")
_LOCAL_STATE: Final = "LOCAL CONNECTION"
_CONNECTED: Final = "CONNECTED"
_WAITING: Final = "WAITING"


class Machine(msgspec.Struct, frozen=True):
    """What the queue manager tells of itself; None is what was not asked for."""

    computer: str
    status: api.Status | None
    queues: Sequence[api.QueueStatus]
    outgoing: Sequence[api.OutgoingStatus]


class Local(msgspec.Struct, frozen=True):
    """What the queue manager tells of a queue that is here."""

    computer: str
    queue: api.QueueStatus
    subqueues: Sequence[str]


def text(value: str) -> Variant:
    """Return a text."""
    return Variant(VariantTag.LPWSTR, value)


def texts(values: Sequence[str]) -> Variant:
    """Return a vector of texts."""
    return Variant(VariantTag.LPWSTR_VECTOR, tuple(values))


def count(value: int) -> Variant:
    """Return a number of 32 bits; what is larger is the largest."""
    return Variant(VariantTag.UI4, min(max(value, 0), _U32_MAX))


def moment(unix_s: int) -> Variant:
    """Return a time."""
    return Variant(VariantTag.I4, _seconds(unix_s))


def place(found: api.SequencePlace) -> Variant:
    """Return a place in a sequence, or NULL if there is none."""
    if not found.sequence:
        return NULL
    return Variant(
        VariantTag.BLOB, _SEQUENCE_INFO.pack(found.sequence, found.number, found.previous)
    )


# The computer.


def _active(machine: Machine) -> Variant:
    local = [queue.format_name for queue in machine.queues if _is_active(queue)]
    away = [each for each in machine.outgoing if each.message_count or each.open_count]
    return texts(local + [queue.format_name for queue in away])


def _is_active(queue: api.QueueStatus) -> bool:
    if queue.kind not in (QueueRole.APPLICATION.value, QueueRole.SYSTEM.value):
        return False
    return queue.message_count > 0 or queue.journal_message_count > 0 or queue.open_count > 0


def _private(machine: Machine) -> Variant:
    application = QueueRole.APPLICATION.value
    return texts(
        [
            f"{machine.computer}\\{queue.path_name}"
            for queue in machine.queues
            if queue.kind == application and not queue.is_public
        ]
    )


def _directory_server(machine: Machine) -> Variant:
    status = machine.status
    # A copy does not tell from where it is.
    if status is None or status.directory != DirectoryRole.ORIGINAL.value:
        return NULL
    return text(rf"\\{status.manager_name}")


def _connected(machine: Machine) -> Variant:
    is_online = machine.status is not None and machine.status.online
    return text(_CONNECTED if is_online else "DISCONNECTED")


def _software(machine: Machine) -> Variant:
    return text("" if machine.status is None else machine.status.software)


def _bytes(machine: Machine) -> Variant:
    return Variant(VariantTag.I8, 0 if machine.status is None else machine.status.message_bytes)


MACHINE_PROPERTIES: Final[dict[int, Callable[[Machine], Variant]]] = {
    1: _active,
    2: _private,
    3: _directory_server,
    4: _connected,
    5: _software,
    6: _bytes,
}
"""Properties of the computer. [MQMQ 2.3.11]"""
NEEDS_QUEUES: Final = frozenset({1, 2})
NEEDS_OUTGOING: Final = frozenset({1})
NEEDS_STATUS: Final = frozenset({3, 4, 5, 6})


# Queues that are here.


def _kind(local: Local) -> Variant:
    if local.queue.kind == QueueRole.SYSTEM.value:
        return text("MACHINE")
    return text("PUBLIC" if local.queue.is_public else "PRIVATE")


def _null(_: object) -> Variant:
    return NULL


_LOCAL: Final[dict[int, Callable[[Local], Variant]]] = {
    1: lambda local: text(f"{local.computer}\\{local.queue.path_name}"),
    2: lambda local: text(local.queue.format_name),
    3: _kind,
    4: lambda _: text("LOCAL"),
    5: lambda local: text("YES" if local.queue.transactional else "NO"),
    6: lambda _: text("NO"),
    7: lambda local: count(local.queue.message_count),
    8: lambda local: count(local.queue.message_bytes),
    9: lambda local: count(local.queue.journal_message_count),
    10: lambda local: count(local.queue.journal_message_bytes),
    11: lambda _: text(_LOCAL_STATE),
    26: lambda local: count(len(local.subqueues)),
    27: lambda local: texts(local.subqueues),
}

# Queues that lead elsewhere.


def _remote_path(outgoing: api.OutgoingStatus) -> Variant:
    try:
        name = parse_format_name(outgoing.format_name)
    except IllegalName:
        return NULL
    if not isinstance(name, DirectFormatName) or name.protocol is not DirectProtocol.OS:
        return NULL
    return text(f"{name.host}\\{name.queue.path_text}")


def _remote_kind(outgoing: api.OutgoingStatus) -> Variant:
    try:
        name = parse_format_name(outgoing.format_name)
    except IllegalName:
        return NULL
    is_public = isinstance(name, PublicFormatName)
    if isinstance(name, DirectFormatName):
        is_public = not name.queue.path_text.startswith("private$")
    return text("PUBLIC" if is_public else "PRIVATE")


def _next_hops(outgoing: api.OutgoingStatus) -> Variant:
    if outgoing.state == _CONNECTED:
        return texts([_address(outgoing.address)])
    if outgoing.state == _WAITING:
        return texts([_address(hop) for hop in outgoing.next_hops])
    return NULL


def _address(shown: str) -> str:
    """Return an address as this property has it. [MQMQ 2.3.12.12]"""
    host = shown
    if shown.count(":") == 1 or shown.startswith("["):
        host = shown.rpartition(":")[0].strip("[]")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return shown
    return f"IP={address}" if address.version == 4 else f"IPv6={address}"


def _history(outgoing: api.OutgoingStatus) -> Variant:
    attempts = outgoing.history
    failed = [int(attempt.status >= ConnectionStatus.UNKNOWN_FAILURE) for attempt in attempts]
    columns: list[tuple[VariantTag, Value]] = [
        (VariantTag.UI4_VECTOR, tuple(attempt.status for attempt in attempts)),
        (VariantTag.I4_VECTOR, tuple(_seconds(attempt.time_s) for attempt in attempts)),
        (VariantTag.I4_VECTOR, tuple(failed)),
        (
            VariantTag.VARIANT_VECTOR,
            tuple(texts(attempt.addresses) for attempt in attempts),
        ),
    ]
    return Variant(VariantTag.VARIANT_VECTOR, tuple(Variant(tag, value) for tag, value in columns))


def _seconds(unix_s: int) -> int:
    return min(max(unix_s, 0), _I32_MAX)


_OUTGOING: Final[dict[int, Callable[[api.OutgoingStatus], Variant]]] = {
    1: _remote_path,
    2: lambda outgoing: text(outgoing.format_name),
    3: _remote_kind,
    4: lambda _: text("REMOTE"),
    5: lambda outgoing: text("YES" if outgoing.sequence else "UNKNOWN"),
    6: lambda _: text("UNKNOWN"),
    7: lambda outgoing: count(outgoing.message_count),
    8: lambda outgoing: count(outgoing.message_bytes),
    11: lambda outgoing: text(outgoing.state),
    12: _next_hops,
    13: lambda outgoing: place(outgoing.last_acknowledged),
    14: lambda outgoing: moment(outgoing.last_ack_time_s),
    15: lambda outgoing: count(outgoing.last_ack_count),
    16: lambda outgoing: place(outgoing.first_unacknowledged),
    17: lambda outgoing: place(outgoing.last_unacknowledged),
    18: lambda outgoing: place(outgoing.next_place),
    19: lambda outgoing: count(outgoing.unread_count),
    20: lambda outgoing: count(outgoing.unacknowledged_count),
    21: lambda outgoing: moment(outgoing.resend_time_s),
    22: lambda outgoing: count(outgoing.resend_interval_s),
    23: lambda outgoing: count(outgoing.resend_count),
    25: _history,
}

QUEUE_PROPERTIES: Final = range(1, 28)
"""Properties of queues. [MQMQ 2.3.12]"""
NEEDS_SUBQUEUES: Final = frozenset({26, 27})


def of_local(number: int, local: Local) -> Variant:
    """Return a property of a queue that is here."""
    return _LOCAL.get(number, _null)(local)


def of_outgoing(number: int, outgoing: api.OutgoingStatus) -> Variant:
    """Return a property of a queue that leads elsewhere."""
    return _OUTGOING.get(number, _null)(outgoing)
