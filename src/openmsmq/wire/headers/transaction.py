"""TransactionHeader: a message's place in its transactional sequence. [MQMQ 2.2.20.5]"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import msgspec

from openmsmq.model.identity import Guid, SequenceId, SequencePoint
from openmsmq.wire.errors import EncodeError
from openmsmq.wire.fields.cursor import Field, bits, need

LAYOUT: Final = struct.Struct("<IIIII")
FIXED_SIZE: Final = LAYOUT.size

CONNECTOR: Final = 0x0000_0001
FINAL_ACK: Final = 0x0000_0002
FIRST: Final = 0x0000_0004
LAST: Final = 0x0000_0008
TRANSACTION_NUMBER: Final = 0x00FF_FFF0
TRANSACTION_NUMBER_SHIFT: Final = 4
MARKS: Final = FIRST | LAST | TRANSACTION_NUMBER
"""The bits that say to which transaction a message belongs, and whether it opens or closes it."""


class TransactionHeader(msgspec.Struct, frozen=True, gc=False):
    """Which sequence, which place in it, and what is wanted at its end."""

    sequence: SequenceId
    number: int
    previous_number: int = 0
    flags: int = 0
    """All bits but the one that announces `connector_manager`."""
    connector_manager: Guid | None = None

    @property
    def final_ack_wanted(self) -> bool:
        """Whether the source wants to know that the message was consumed or refused."""
        return self.flags & FINAL_ACK != 0

    @property
    def first_in_transaction(self) -> bool:
        """Whether it opens its transaction."""
        return self.flags & FIRST != 0

    @property
    def last_in_transaction(self) -> bool:
        """Whether it closes its transaction."""
        return self.flags & LAST != 0

    @property
    def transaction_number(self) -> int:
        """The 20-bit number of the transaction, unique at the source."""
        return (self.flags & TRANSACTION_NUMBER) >> TRANSACTION_NUMBER_SHIFT

    @property
    def point(self) -> SequencePoint:
        """The place in the sequence, as one value."""
        return SequencePoint(self.sequence, self.number, self.previous_number)

    def write(self) -> bytes:
        """Return the bytes of the header."""
        if self.flags & CONNECTOR:
            raise EncodeError("TransactionHeader", "only a connector manager sets the bit for it")
        flags = self.flags | (self.connector_manager is not None)
        fixed = LAYOUT.pack(
            flags,
            self.sequence.ordinal,
            self.sequence.timestamp,
            self.number,
            self.previous_number,
        )
        return fixed if self.connector_manager is None else fixed + self.connector_manager

    def fields(self) -> Iterator[Field]:
        """Show the header, field by field."""
        flags = self.flags | (self.connector_manager is not None)
        yield Field("Flags", 4, flags)
        yield from bits(
            flags,
            ("CG connector queue manager", CONNECTOR),
            ("FA final acknowledgment wanted", FINAL_ACK),
            ("FM first in transaction", FIRST),
            ("LM last in transaction", LAST),
            ("ID transaction", TRANSACTION_NUMBER),
        )
        yield Field("TxSequenceID.Ordinal", 4, self.sequence.ordinal)
        yield Field("TxSequenceID.TimeStamp", 4, self.sequence.timestamp)
        yield Field("TxSequenceNumber", 4, self.number)
        yield Field("PreviousTxSequenceNumber", 4, self.previous_number)
        if self.connector_manager is not None:
            yield Field("ConnectorQMGuid", 16, str(self.connector_manager))


def transaction_mark(wire_number: int) -> int:
    """Return the mark of a message that is neither the first nor the last of its transaction."""
    return wire_number << TRANSACTION_NUMBER_SHIFT


def transaction_marks(count: int, wire_number: int) -> list[int]:
    """Return the marks of all messages that a transaction sends, in their order (C-127)."""
    marks = [transaction_mark(wire_number)] * count
    if marks:
        marks[0] |= FIRST
        marks[-1] |= LAST
    return marks


def skip(data: bytes, offset: int) -> int:
    """Pass over the header at `offset`; give the offset behind it."""
    need(data, offset, FIXED_SIZE, "TransactionHeader")
    end = offset + FIXED_SIZE + (16 if data[offset] & CONNECTOR else 0)
    need(data, end, 0, "TransactionHeader")
    return end


def read(data: bytes, offset: int) -> tuple[TransactionHeader, int]:
    """Read the header at `offset`; give it and the offset behind it."""
    end = skip(data, offset)
    flags, ordinal, timestamp, number, previous = LAYOUT.unpack_from(data, offset)
    connector = Guid(data[end - 16 : end]) if flags & CONNECTOR else None
    header = TransactionHeader(
        SequenceId(ordinal, timestamp), number, previous, flags & ~CONNECTOR, connector
    )
    return header, end
