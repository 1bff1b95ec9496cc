"""DebugHeader: the queue that hears of each hop of a traced message. [MQMQ 2.2.20.8]"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.fields.cursor import Field, bits, need

LAYOUT: Final = struct.Struct("<HH")
FIXED_SIZE: Final = LAYOUT.size

QUEUE_TYPE: Final = 0x0003
PUBLIC_QUEUE: Final = 0x0001


class DebugHeader(msgspec.Struct, frozen=True, gc=False):
    """The report queue, always a public one, or none."""

    queue: Guid | None = None
    flags: int = 0
    """Reserved bits; never those of `QUEUE_TYPE`, which follow from `queue`."""
    reserved: int = 0

    def write(self) -> bytes:
        """Return the 4 or 20 bytes."""
        if self.flags & QUEUE_TYPE:
            raise EncodeError("DebugHeader", "only the queue sets the bits of its type")
        if self.queue is None:
            return LAYOUT.pack(self.flags, self.reserved)
        return LAYOUT.pack(self.flags | PUBLIC_QUEUE, self.reserved) + self.queue

    def fields(self) -> Iterator[Field]:
        """Show the header, field by field."""
        flags = self.flags if self.queue is None else self.flags | PUBLIC_QUEUE
        yield Field("Flags", 2, flags)
        yield from bits(flags, ("QT queue type", QUEUE_TYPE))
        yield Field("Reserved", 2, self.reserved)
        if self.queue is not None:
            yield Field("QueueIdentifier", 16, str(self.queue))


def skip(data: bytes, offset: int) -> int:
    """Check and pass over the header at `offset`; give the offset behind it."""
    need(data, offset, FIXED_SIZE, "DebugHeader")
    queue_type = data[offset] & QUEUE_TYPE
    if queue_type > PUBLIC_QUEUE:
        raise DecodeError("DebugHeader", offset, f"queue type {queue_type}, not 0 or 1")
    end = offset + FIXED_SIZE + 16 * queue_type
    need(data, end, 0, "DebugHeader")
    return end


def read(data: bytes, offset: int) -> tuple[DebugHeader, int]:
    """Read the header at `offset`; give it and the offset behind it."""
    end = skip(data, offset)
    flags, reserved = LAYOUT.unpack_from(data, offset)
    queue = Guid(data[offset + FIXED_SIZE : end]) if flags & PUBLIC_QUEUE else None
    return DebugHeader(queue, flags & ~QUEUE_TYPE, reserved), end
