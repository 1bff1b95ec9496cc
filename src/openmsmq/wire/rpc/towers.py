"""Towers: how the endpoint mapper says where an interface is and how one speaks to it. [C706 L]

A tower has floors, from the interface at the top down to the address of the host. Each has a left
side, which says what it is about, and a right side with its value.
"""

from __future__ import annotations

import ipaddress
import struct
from typing import Final, Self

import msgspec

from openmsmq.model.identity import GUID_BYTES, Guid
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.fields.cursor import need
from openmsmq.wire.rpc.syntaxes import NDR, Syntax

TOWER_MAX_BYTES: Final = 2_000
"""The longest tower that is read; those for TCP have 75 bytes."""
FLOORS_MAX_COUNT: Final = 16

_WHERE: Final = "a tower"
_U16: Final = struct.Struct("<H")
_UUID: Final = 0x0D
_CONNECTIONS: Final = b"\x0b"
_TCP: Final = b"\x07"
_IP: Final = b"\x09"
_SYNTAX_LEFT: Final = struct.Struct("<B16sH")


class Floor(msgspec.Struct, frozen=True, gc=False):
    """One floor of a tower."""

    left: bytes
    right: bytes

    @classmethod
    def of_syntax(cls, syntax: Syntax) -> Self:
        """Make the floor of an interface, or of a way to write parameters."""
        left = _SYNTAX_LEFT.pack(_UUID, syntax.uuid, syntax.major)
        return cls(left, _U16.pack(syntax.minor))

    @property
    def syntax(self) -> Syntax | None:
        """What it names; None if it is no name."""
        if len(self.left) != _SYNTAX_LEFT.size or self.left[0] != _UUID or len(self.right) != 2:
            return None
        major = _U16.unpack_from(self.left, 1 + GUID_BYTES)[0]
        uuid = Guid(self.left[1 : 1 + GUID_BYTES])
        return Syntax(uuid, major, _U16.unpack(self.right)[0])


class Tower(msgspec.Struct, frozen=True):
    """All floors."""

    floors: tuple[Floor, ...]

    @classmethod
    def over_tcp(cls, interface: Syntax, address: str, port: int) -> Self:
        """Make the tower of an interface that is reached over TCP."""
        found = ipaddress.ip_address(address)
        host = found.packed if found.version == 4 else bytes(4)
        return cls(
            (
                Floor.of_syntax(interface),
                Floor.of_syntax(NDR),
                Floor(_CONNECTIONS, bytes(2)),
                Floor(_TCP, port.to_bytes(2, "big")),
                Floor(_IP, host),
            )
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read a tower; what follows it does not matter."""
        need(data, 0, 2, _WHERE)
        count = _U16.unpack_from(data)[0]
        if count > FLOORS_MAX_COUNT:
            raise DecodeError(_WHERE, 0, f"{count} floors; at most {FLOORS_MAX_COUNT}")
        at = 2
        floors = []
        for _ in range(count):
            left, at = _side(data, at)
            right, at = _side(data, at)
            floors.append(Floor(left, right))
        return cls(tuple(floors))

    def encode(self) -> bytes:
        """Return its bytes."""
        parts = [_U16.pack(len(self.floors))]
        for floor in self.floors:
            for side in (floor.left, floor.right):
                parts += (_U16.pack(len(side)), side)
        return b"".join(parts)

    @property
    def interface(self) -> Syntax | None:
        """The interface that it is about."""
        return self.floors[0].syntax if self.floors else None

    @property
    def is_over_tcp(self) -> bool:
        """Whether it asks for, or says, a port of TCP."""
        lefts = [floor.left[:1] for floor in self.floors[2:4]]
        return lefts == [_CONNECTIONS, _TCP]

    @property
    def port(self) -> int | None:
        """The port of TCP."""
        if not self.is_over_tcp or len(self.floors[3].right) != 2:
            return None
        return int.from_bytes(self.floors[3].right, "big")


def _side(data: bytes, at: int) -> tuple[bytes, int]:
    need(data, at, 2, _WHERE)
    size = _U16.unpack_from(data, at)[0]
    at += 2
    need(data, at, size, _WHERE)
    return data[at : at + size], at + size
