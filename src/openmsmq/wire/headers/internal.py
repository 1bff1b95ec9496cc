"""InternalHeader: which of the session's own packets this is. [MQQB 2.2.1]"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator
from typing import Final

import msgspec

from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.fields.cursor import Field, bits, need

LAYOUT: Final = struct.Struct("<HH")
SIZE: Final = LAYOUT.size

PACKET_TYPE: Final = 0x000F
REFUSED: Final = 0x0010


class InternalType(enum.IntEnum):
    """The packets a session sends for itself."""

    SESSION_ACK = 1
    ESTABLISH_CONNECTION = 2
    CONNECTION_PARAMETERS = 3


class InternalHeader(msgspec.Struct, frozen=True, gc=False):
    """Refusal and reserved bits; the packet's type says itself."""

    flags: int = 0
    reserved: int = 0

    @property
    def refused(self) -> bool:
        """Whether the peer refuses the connection."""
        return self.flags & REFUSED != 0

    def write(self, packet_type: InternalType) -> bytes:
        """Return the 4 bytes of a packet of that type."""
        if self.flags & PACKET_TYPE:
            raise EncodeError("InternalHeader", "only the packet sets the bits of its type")
        return LAYOUT.pack(self.reserved, self.flags | packet_type)

    def fields(self, packet_type: InternalType) -> Iterator[Field]:
        """Show the header, field by field."""
        yield Field("Reserved", 2, self.reserved)
        flags = self.flags | packet_type
        yield Field("Flags", 2, flags, packet_type.name)
        yield from bits(flags, ("PT packet type", PACKET_TYPE), ("CS refused", REFUSED))


def read(data: bytes, offset: int) -> tuple[InternalHeader, InternalType, int]:
    """Read the header at `offset`; give it, the packet's type and the offset behind it."""
    need(data, offset, SIZE, "InternalHeader")
    reserved, flags = LAYOUT.unpack_from(data, offset)
    try:
        packet_type = InternalType(flags & PACKET_TYPE)
    except ValueError:
        raise DecodeError(
            "InternalHeader", offset + 2, f"packet type {flags & PACKET_TYPE}, not 1, 2 or 3"
        ) from None
    return InternalHeader(flags & ~PACKET_TYPE, reserved), packet_type, offset + SIZE
