"""BaseHeader: the first 16 bytes of every packet on a session. [MQMQ 2.2.19.1]

Which headers follow is said by bits of `Flags`; those bits are made from the headers a packet
really has, so they are not kept here. What is kept is the rest: priority, tracing, and the
reserved bits and byte, which a forwarder must leave as they came.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import msgspec

from openmsmq.model.limits import INFINITE_S, PACKET_MAX_BYTES
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.fields.cursor import Field, bits, lifetime_meaning, need

LAYOUT: Final = struct.Struct("<BBHIII")
SIZE: Final = LAYOUT.size

VERSION: Final = 0x10
SIGNATURE: Final = 0x524F494C
PACKET_MIN_BYTES: Final = 20

PRIORITY: Final = 0x0007
INTERNAL: Final = 0x0008
SESSION: Final = 0x0010
DEBUG: Final = 0x0020
TRACE: Final = 0x0100
STRUCTURAL: Final = INTERNAL | SESSION | DEBUG
"""The bits that announce headers; a packet sets them from what it holds."""


class BaseHeader(msgspec.Struct, frozen=True, gc=False):
    """What every packet says first, apart from its size and which headers follow."""

    flags: int = 3
    """Priority, tracing and reserved bits; never those of `STRUCTURAL`."""
    time_to_reach_queue_s: int = INFINITE_S
    reserved: int = 0

    @property
    def priority(self) -> int:
        """0 (least urgent) to 7."""
        return self.flags & PRIORITY

    @property
    def traced(self) -> bool:
        """Whether each hop reports this message."""
        return self.flags & TRACE != 0

    def write(self, structural: int, packet_size: int) -> bytes:
        """Return the 16 bytes, with the header bits and size of the packet it leads."""
        if self.flags & STRUCTURAL:
            raise EncodeError("BaseHeader", "flags hold bits that only the packet may set")
        if packet_size > PACKET_MAX_BYTES:
            raise EncodeError(
                "BaseHeader",
                f"the packet has {packet_size} bytes; at most {PACKET_MAX_BYTES} are allowed, "
                "so shorten the body, extension or label",
            )
        return LAYOUT.pack(
            VERSION,
            self.reserved,
            self.flags | structural,
            SIGNATURE,
            packet_size,
            self.time_to_reach_queue_s,
        )

    def fields(self, structural: int, packet_size: int) -> Iterator[Field]:
        """Show the header, field by field."""
        flags = self.flags | structural
        yield Field("VersionNumber", 1, VERSION)
        yield Field("Reserved", 1, self.reserved)
        yield Field("Flags", 2, flags)
        yield from bits(
            flags,
            ("PR priority", PRIORITY),
            ("IN internal packet", INTERNAL),
            ("SH session header", SESSION),
            ("DH debug header", DEBUG),
            ("TR traced", TRACE),
        )
        yield Field("Signature", 4, SIGNATURE, '"LIOR"')
        yield Field("PacketSize", 4, packet_size)
        yield Field(
            "TimeToReachQueue",
            4,
            self.time_to_reach_queue_s,
            lifetime_meaning(self.time_to_reach_queue_s),
        )


def read(data: bytes) -> tuple[BaseHeader, int, int]:
    """Read the header at the start of `data`; give it, its raw flags and the packet size."""
    need(data, 0, SIZE, "BaseHeader")
    version, reserved, flags, signature, size, lifetime = LAYOUT.unpack_from(data)
    if version != VERSION:
        raise DecodeError("BaseHeader", 0, f"version {version:#04x}, not {VERSION:#04x}")
    if signature != SIGNATURE:
        raise DecodeError("BaseHeader", 4, f"signature {signature:#010x}, not {SIGNATURE:#010x}")
    if not PACKET_MIN_BYTES <= size <= PACKET_MAX_BYTES:
        raise DecodeError(
            "BaseHeader",
            8,
            f"packet size {size}, not {PACKET_MIN_BYTES} to {PACKET_MAX_BYTES}",
        )
    return BaseHeader(flags & ~STRUCTURAL, lifetime, reserved), flags, size
