"""The bodies of OrderAck and FinalAck. [MQQB 2.2.4.1, 2.2.5.1]

Both travel as ordinary messages to the sender's order queue; their class tells them apart.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, Self

import msgspec

from openmsmq.model.identity import Guid, MessageId, SequenceId
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.fields.cursor import Field, keep_padding, pack

ORDER_LAYOUT: Final = struct.Struct("<IIII20s")
FINAL_LAYOUT: Final = struct.Struct("<IIII16sI")
BODY_BYTES: Final = 36
RESERVED_BYTES: Final = 20

ORDER_LABEL: Final = "QM Ordering Ack"
ORDER_QUEUE_NUMBER: Final = 4
ORDER_ACK_CLASS: Final = 0x00FF


class OrderAck(msgspec.Struct, frozen=True, gc=False):
    """All messages of a sequence up to `number` have been accepted."""

    sequence: SequenceId
    number: int
    previous_number: int
    """One less than `number`; senders that say otherwise are still understood."""
    reserved: bytes = b""
    """The 20 bytes at the end, unless they are zeros."""

    @classmethod
    def up_to(cls, sequence: SequenceId, number: int) -> Self:
        """Acknowledge all messages of `sequence` up to `number`, which is 1 or more."""
        if number < 1:
            raise EncodeError("OrderAck", f"nothing to acknowledge up to message {number}")
        return cls(sequence, number, number - 1)

    @classmethod
    def decode(cls, body: bytes) -> Self:
        """Read the body of a message."""
        _check_size(body, "OrderAck")
        ordinal, timestamp, number, previous, reserved = ORDER_LAYOUT.unpack(body)
        return cls(SequenceId(ordinal, timestamp), number, previous, keep_padding(reserved))

    def encode(self) -> bytes:
        """Return the 36 bytes."""
        if len(self.reserved) not in (0, RESERVED_BYTES):
            raise EncodeError("OrderAck", f"{len(self.reserved)} reserved bytes, not 20")
        return pack(
            ORDER_LAYOUT,
            "OrderAck",
            self.sequence.ordinal,
            self.sequence.timestamp,
            self.number,
            self.previous_number,
            self.reserved,
        )

    def fields(self) -> Iterator[Field]:
        """Show the body, field by field."""
        yield from _sequence_fields(self.sequence, self.number, self.previous_number)
        reserved = self.reserved or bytes(RESERVED_BYTES)
        yield Field("Reserved", RESERVED_BYTES, reserved.hex())


class FinalAck(msgspec.Struct, frozen=True, gc=False):
    """One message of a sequence was consumed or refused; the class of the carrier says which."""

    sequence: SequenceId
    number: int
    previous_number: int
    message: MessageId

    @classmethod
    def decode(cls, body: bytes) -> Self:
        """Read the body of a message."""
        _check_size(body, "FinalAck")
        ordinal, timestamp, number, previous, source, message = FINAL_LAYOUT.unpack(body)
        return cls(
            SequenceId(ordinal, timestamp), number, previous, MessageId(Guid(source), message)
        )

    def encode(self) -> bytes:
        """Return the 36 bytes."""
        return pack(
            FINAL_LAYOUT,
            "FinalAck",
            self.sequence.ordinal,
            self.sequence.timestamp,
            self.number,
            self.previous_number,
            self.message.source,
            self.message.number,
        )

    def fields(self) -> Iterator[Field]:
        """Show the body, field by field."""
        yield from _sequence_fields(self.sequence, self.number, self.previous_number)
        yield Field("SourceGUID", 16, str(self.message.source))
        yield Field("MessageID", 4, self.message.number)


def _sequence_fields(sequence: SequenceId, number: int, previous: int) -> Iterator[Field]:
    yield Field("TxSequenceID.Ordinal", 4, sequence.ordinal)
    yield Field("TxSequenceID.TimeStamp", 4, sequence.timestamp)
    yield Field("TxSequenceNumber", 4, number)
    yield Field("TxPreviousSequenceNumber", 4, previous)


def _check_size(body: bytes, where: str) -> None:
    if len(body) != BODY_BYTES:
        raise DecodeError(where, 0, f"a body of {len(body)} bytes, not {BODY_BYTES}")
