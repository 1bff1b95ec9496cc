"""UserHeader: where a message comes from, where it goes, and how. [MQMQ 2.2.19.2]

The flag bits that say how names are encoded (DQ, AQ, RQ, CQ) follow from the names, those that
announce other headers (SH, TH, MP, MQ, HH) from the packet; neither is kept in `flags`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import msgspec

from openmsmq.model.identity import GUID_BYTES, NIL_GUID, Guid
from openmsmq.model.limits import INFINITE_S
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.fields.cursor import (
    Field,
    Pads,
    bits,
    hex_field,
    keep_padding,
    lifetime_meaning,
    need,
    padding_size,
    time_meaning,
)
from openmsmq.wire.headers import queue_names
from openmsmq.wire.headers.queue_names import QueueName

LAYOUT: Final = struct.Struct("<16s16sIIII")
FIXED_SIZE: Final = LAYOUT.size

HOP_COUNT: Final = 0x0000_001F
DELIVERY: Final = 0x0000_0060
RECOVERABLE: Final = 0x0000_0020
JOURNAL_ON_FAILURE: Final = 0x0000_0100
JOURNAL_ON_SUCCESS: Final = 0x0000_0200
DESTINATION_SHIFT: Final = 10
ADMIN_SHIFT: Final = 13
ADMIN_QUEUE: Final = 7 << ADMIN_SHIFT
RESPONSE_SHIFT: Final = 16
SECURITY: Final = 0x0008_0000
TRANSACTION: Final = 0x0010_0000
PROPERTIES: Final = 0x0020_0000
CONNECTOR: Final = 0x0040_0000
MULTI_QUEUE: Final = 0x0080_0000
OVER_HTTP: Final = 0x0200_0000
SOAP: Final = 0x1000_0000

NAMES: Final = 0x0007_FC00 | CONNECTOR
HEADERS: Final = SECURITY | TRANSACTION | PROPERTIES | MULTI_QUEUE | SOAP
STRUCTURAL: Final = NAMES | HEADERS
OTHER_NAMES: Final = 7 << ADMIN_SHIFT | 7 << RESPONSE_SHIFT | CONNECTOR

DESTINATION_CODES: Final = frozenset({0, 3, 5, 7})
ADMIN_CODES: Final = frozenset({0, 2, 3, 5, 6, 7})


class UserHeader(msgspec.Struct, frozen=True, gc=False):
    """Source, destination, lifetimes and delivery of a message."""

    source: Guid
    destination_manager: Guid = NIL_GUID
    """The queue manager of the destination; nil when the destination is a direct name."""
    time_to_be_received_s: int = INFINITE_S
    sent_time_s: int = 0
    message_number: int = 0
    flags: int = 0
    """Hop count, delivery, journaling and reserved bits; never those of `STRUCTURAL`."""
    destination: QueueName = None
    admin_queue: QueueName = None
    response_queue: QueueName = None
    connector_type: Guid | None = None
    padding: bytes = b""

    @property
    def hop_count(self) -> int:
        """How many queue managers have passed it on."""
        return self.flags & HOP_COUNT

    @property
    def recoverable(self) -> bool:
        """Whether it must survive a restart."""
        return self.flags & DELIVERY == RECOVERABLE

    @property
    def journal_on_failure(self) -> bool:
        """Whether the source keeps it in a dead-letter queue when it cannot be delivered."""
        return self.flags & JOURNAL_ON_FAILURE != 0

    @property
    def journal_on_success(self) -> bool:
        """Whether the source keeps a copy in its journal once it was delivered."""
        return self.flags & JOURNAL_ON_SUCCESS != 0

    def wire_flags(self, headers: int) -> int:
        """Return the whole flags word of a packet that has these other headers."""
        codes = queue_names.CODES
        return (
            self.flags
            | headers
            | codes[type(self.destination)] << DESTINATION_SHIFT
            | codes[type(self.admin_queue)] << ADMIN_SHIFT
            | codes[type(self.response_queue)] << RESPONSE_SHIFT
            | (0 if self.connector_type is None else CONNECTOR)
        )

    def write(self, headers: int) -> bytes:
        """Return the header of a packet that has the other headers announced by `headers`."""
        if self.flags & STRUCTURAL:
            raise EncodeError("UserHeader", "flags hold bits that only names and headers may set")
        flags = self.wire_flags(headers)
        problem = flags_problem(flags)
        if problem:
            raise EncodeError("UserHeader", problem)
        if len(self.source) != GUID_BYTES or len(self.destination_manager) != GUID_BYTES:
            raise EncodeError("UserHeader", "a queue manager's GUID has 16 bytes")
        pads = Pads(self.padding, "UserHeader")
        parts = [
            LAYOUT.pack(
                self.source,
                self.destination_manager,
                self.time_to_be_received_s,
                self.sent_time_s,
                self.message_number,
                flags,
            )
        ]
        for name in (self.destination, self.admin_queue, self.response_queue):
            if name is not None:
                data = queue_names.write(name, "UserHeader")
                parts += (data, pads.take(-len(data) & 3))
        if self.connector_type is not None:
            parts.append(self.connector_type)
        pads.finish()
        return b"".join(parts)

    def fields(self, headers: int) -> Iterator[Field]:
        """Show the header, field by field."""
        flags = self.wire_flags(headers)
        yield Field("SourceQueueManager", 16, str(self.source))
        yield Field("QueueManagerAddress", 16, str(self.destination_manager))
        within = self.time_to_be_received_s
        yield Field("TimeToBeReceived", 4, within, lifetime_meaning(within))
        yield Field("SentTime", 4, self.sent_time_s, time_meaning(self.sent_time_s))
        yield Field("MessageID", 4, self.message_number)
        yield Field("Flags", 4, flags)
        yield from bits(flags, *_SHOWN_BITS)
        pads = Pads(self.padding, "UserHeader")
        for label, name in (
            ("DestinationQueue", self.destination),
            ("AdminQueue", self.admin_queue),
            ("ResponseQueue", self.response_queue),
        ):
            data = queue_names.write(name, "UserHeader")
            if data:
                yield Field(label, len(data), queue_names.describe(name))
                yield from hex_field("padding", pads.take(padding_size(len(data))))
        if self.connector_type is not None:
            yield Field("ConnectorType", 16, str(self.connector_type))


_SHOWN_BITS: Final = (
    ("RC hop count", HOP_COUNT),
    ("DM recoverable", DELIVERY),
    ("JN journal on failure", JOURNAL_ON_FAILURE),
    ("JP journal on success", JOURNAL_ON_SUCCESS),
    ("DQ destination queue form", 7 << DESTINATION_SHIFT),
    ("AQ administration queue form", 7 << ADMIN_SHIFT),
    ("RQ response queue form", 7 << RESPONSE_SHIFT),
    ("SH security header", SECURITY),
    ("TH transaction header", TRANSACTION),
    ("MP message properties header", PROPERTIES),
    ("CQ connector type", CONNECTOR),
    ("MQ multi-queue format header", MULTI_QUEUE),
    ("AH arrived over HTTP", OVER_HTTP),
    ("HH SOAP header", SOAP),
)


def _names_and_delivery_problem(flags: int) -> str:
    if flags & DELIVERY > RECOVERABLE:
        return f"delivery mode {(flags & DELIVERY) >> 5}, neither express (0) nor recoverable (1)"
    if flags >> DESTINATION_SHIFT & 7 not in DESTINATION_CODES:
        return f"destination queue form {flags >> DESTINATION_SHIFT & 7}, not 0, 3, 5 or 7"
    if flags >> ADMIN_SHIFT & 7 not in ADMIN_CODES:
        return f"administration queue form {flags >> ADMIN_SHIFT & 7}, not 0, 2, 3, 5, 6 or 7"
    return ""


_LEGAL: Final = bytes(not _names_and_delivery_problem(part << 5) for part in range(1 << 11))
"""For bits 5 to 15 of a flags word: whether they are legal. Looked up once for each message."""


def flags_problem(flags: int) -> str:
    """Return what is wrong with a flags word, or nothing."""
    if _LEGAL[flags >> 5 & 0x7FF] and flags & (PROPERTIES | TRANSACTION) == PROPERTIES:
        return ""
    if not flags & PROPERTIES:
        return "no message properties header announced (MP)"
    if flags & TRANSACTION and not flags & RECOVERABLE:
        return "a transactional message that is not recoverable"
    return _names_and_delivery_problem(flags)


def check_flags(data: bytes, offset: int) -> int:
    """Return the flags word of the header at `offset`; raise `DecodeError` if it is not legal."""
    flags = int.from_bytes(data[offset + 44 : offset + 48], "little")
    if flags_problem(flags):
        raise DecodeError("UserHeader", offset + 44, flags_problem(flags))
    return flags


def skip(data: bytes, offset: int) -> tuple[int, int]:
    """Check and pass over the header at `offset`; give its flags and the offset behind it."""
    need(data, offset, FIXED_SIZE, "UserHeader")
    flags = check_flags(data, offset)
    start = offset + FIXED_SIZE
    for shift in (DESTINATION_SHIFT, ADMIN_SHIFT, RESPONSE_SHIFT):
        size = queue_names.size_of(flags >> shift & 7, data, start, "UserHeader")
        start += size + (-size & 3)
    if flags & CONNECTOR:
        start += 16
    need(data, start, 0, "UserHeader")
    return flags, start


def read(data: bytes, offset: int) -> tuple[UserHeader, int, int]:
    """Read the header at `offset`; give it, its raw flags and the offset behind it."""
    if offset + FIXED_SIZE > len(data):
        need(data, offset, FIXED_SIZE, "UserHeader")
    source, manager, within, sent, number, flags = LAYOUT.unpack_from(data, offset)
    if flags_problem(flags):
        raise DecodeError("UserHeader", offset + 44, flags_problem(flags))
    start = offset + FIXED_SIZE
    names: list[QueueName] = []
    padding = b""
    for shift in (DESTINATION_SHIFT, ADMIN_SHIFT, RESPONSE_SHIFT):
        code = flags >> shift & 7
        if code == 0:
            names.append(None)
            continue
        name, end = queue_names.read(code, data, start, "UserHeader")
        names.append(name)
        start = end + (start - end & 3)
        if start != end:
            need(data, end, start - end, "UserHeader")
            padding += data[end:start]
    connector = None
    if flags & CONNECTOR:
        need(data, start, 16, "UserHeader")
        connector = Guid(data[start : start + 16])
        start += 16
    header = UserHeader(
        Guid(source),
        Guid(manager),
        within,
        sent,
        number,
        flags & ~STRUCTURAL,
        names[0],
        names[1],
        names[2],
        connector,
        keep_padding(padding) if padding else b"",
    )
    return header, flags, start
