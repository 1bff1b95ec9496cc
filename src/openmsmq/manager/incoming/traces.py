"""Trace reports: where a traced message has come by, hop by hop. [MQQB 3.1.5.8.9, 3.1.7.1.7]

Each queue manager that takes or passes on a traced message writes to the queue which the message
names for that. People read these reports, programs do not, so they are kept short (C-89).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, TypeAlias

from openmsmq.manager.messages.reporting import Reporter
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.limits import REACH_QUEUE_DEFAULT_S
from openmsmq.model.message import MessageClass
from openmsmq.model.names import FormatName, PrivateFormatName, PublicFormatName
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.queue_names import DirectName, PrivateOnDestination, PublicName
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.message_bytes import is_traced
from openmsmq.wire.packets import UserMessage, decode, encode

OwnerOf: TypeAlias = Callable[[PublicFormatName], Guid]
"""Gives the queue manager of a public queue; nil if it is not known."""

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)


class Traces:
    """Reports where traced messages are; whoever has one asks before whether that is wanted."""

    def __init__(self, base: Foundation, table: QueueTable, reporter: Reporter) -> None:
        self.is_wanted = base.config.transfer.trace_reports
        """Whether anybody is to be told where messages are."""
        self._counters = base.counters
        self._table = table
        self._reporter = reporter

    def arrived(self, packet: bytes, now: Instant) -> None:
        """Report that a traced message was taken."""
        if is_traced(packet):
            owner_of = self._table.published.owner_of
            report = arrival_report(packet, self._counters.identifier, now, owner_of)
            if report is not None:
                self._reporter.post(*report, now)

    def left(self, packets: list[bytes], address: str, now: Instant) -> None:
        """Report traced messages that have left for an address."""
        own, owner_of = self._counters.identifier, self._table.published.owner_of
        for packet in packets:
            report = departure_report(packet, address, own, now, owner_of)
            if report is not None:
                self._reporter.post(*report, now)


def arrival_report(
    packet: bytes, own: Guid, now: Instant, owner_of: OwnerOf
) -> tuple[FormatName, bytes] | None:
    """Report that a traced message has come to `own`; None if it is not traced.

    `owner_of` gives the queue manager of the queue for reports. [MQQB 3.1.5.8.9]
    """
    message = _traced(packet)
    return None if message is None else _report(message, "received by", (), own, now, owner_of)


def departure_report(
    packet: bytes, next_hop: str, own: Guid, now: Instant, owner_of: OwnerOf
) -> tuple[FormatName, bytes] | None:
    """Report that a traced message has left `own` for an address; None if it is not traced.

    [MQQB 3.1.7.1.7]
    """
    message = _traced(packet)
    if message is None:
        return None
    # The space before the last tag is part of the format.
    lines = (
        f"<NEXT HOP>{next_hop}</NEXT HOP>",
        f"<HOP COUNT>{message.user.hop_count:02X} </HOP COUNT>",
    )
    return _report(message, "sent by", lines, own, now, owner_of)


def _traced(packet: bytes) -> UserMessage | None:
    """Read a message of which somebody wants reports; a report itself is never reported."""
    if not is_traced(packet):
        return None
    try:
        message = decode(packet)
    except DecodeError:
        return None
    if (
        not isinstance(message, UserMessage)
        or message.debug is None
        or message.debug.queue is None
        or message.properties.message_class == MessageClass.REPORT
    ):
        return None
    return message


def _report(
    message: UserMessage,
    did: str,
    more: tuple[str, ...],
    own: Guid,
    now: Instant,
    owner_of: OwnerOf,
) -> tuple[FormatName, bytes]:
    assert message.debug is not None
    assert message.debug.queue is not None
    queue = message.debug.queue
    header = message.user
    label = (
        f"{str(header.source)[:4].upper()}:{header.message_number:08X}:{header.hop_count:02X} "
        f"{did} {str(own).upper()} at {_time_text(now.unix_s)}"
    )
    lines = (
        f"<MESSAGE ID>{header.message_number:08X}</MESSAGE ID>",
        f"<TARGET QUEUE>{_target(header, own)}</TARGET QUEUE>",
        *more,
    )
    body = "".join(f"{line}\r\n" for line in lines).encode("utf-16-le", "replace")
    report = UserMessage(
        UserHeader(own, owner_of(PublicFormatName(queue)), destination=PublicName(queue)),
        MessageProperties.of(body, label, message_class=MessageClass.REPORT),
        BaseHeader(time_to_reach_queue_s=REACH_QUEUE_DEFAULT_S),
    )
    return PublicFormatName(queue), encode(report)


def _target(header: UserHeader, own: Guid) -> str:
    match header.destination:
        case DirectName(text):
            return f"DIRECT={text}"
        case PublicName(queue):
            return str(PublicFormatName(queue))
        case PrivateOnDestination(number):
            manager = own if header.destination_manager == NIL_GUID else header.destination_manager
            return str(PrivateFormatName(manager, number))
        case _:
            return ""


def _time_text(unix_s: int) -> str:
    """Say a time as `02:05:09 PM Tue,Nov 14 23`, in words that depend on no locale."""
    moment = datetime.fromtimestamp(unix_s, UTC)
    half = "AM" if moment.hour < 12 else "PM"
    return (
        f"{moment.hour % 12 or 12:02}:{moment.minute:02}:{moment.second:02} {half} "
        f"{_DAYS[moment.weekday()]},{_MONTHS[moment.month - 1]} {moment.day:02} "
        f"{moment.year % 100:02}"
    )
