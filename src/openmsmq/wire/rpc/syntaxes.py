"""Syntaxes: how RPC names interfaces, and the ways in which their parameters are written."""

from __future__ import annotations

import struct
from typing import Final, Self

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.wire.fields.cursor import need

_LAYOUT: Final = struct.Struct("<16sHH")
_WHERE: Final = "a syntax"


class Syntax(msgspec.Struct, frozen=True, gc=False):
    """An interface, or a way to write parameters, with its version. [C706 12.6.3.1]"""

    uuid: Guid
    major: int
    minor: int = 0

    SIZE = _LAYOUT.size

    @classmethod
    def of(cls, text: str, major: int, minor: int = 0) -> Self:
        """Make one from its usual text."""
        return cls(Guid.parse(text), major, minor)

    @classmethod
    def read(cls, data: bytes, offset: int) -> Self:
        """Read the one at an offset."""
        need(data, offset, _LAYOUT.size, _WHERE)
        uuid, major, minor = _LAYOUT.unpack_from(data, offset)
        return cls(Guid(uuid), major, minor)

    def encode(self) -> bytes:
        """Return its 20 bytes."""
        return _LAYOUT.pack(self.uuid, self.major, self.minor)

    def __str__(self) -> str:
        return f"{self.uuid} {self.major}.{self.minor}"


NO_SYNTAX: Final = Syntax(Guid(16), 0)
"""What stands in an answer where nothing was agreed upon."""

NDR: Final = Syntax.of("8a885d04-1ceb-11c9-9fe8-08002b104860", 2)
"""Parameters as NDR writes them; the only way that we speak. [C706 14]"""

NDR64: Final = Syntax.of("71710533-beba-4937-8319-b5dbef9ccc36", 1)
"""The same for computers of 64 bits. We know its name, and refuse it. [MS-RPCE 2.2.5]"""

ENDPOINT_MAPPER: Final = Syntax.of("e1af8308-5d1f-11c9-91a4-08002b14a0fa", 3)
"""Where interfaces are found. [C706 O]"""

MANAGEMENT: Final = Syntax.of("afa8bd80-7d8a-11c9-bef4-08002b102989", 1)
"""What every server of RPC tells of itself. [C706 Q]"""

_FEATURES_PREFIX: Final = Guid.parse("6cb71c2c-9812-4540-0000-000000000000")[:8]


def offered_features(syntax: Syntax) -> int | None:
    """Return the bits that a client offers by a syntax that is none. [MS-RPCE 3.3.1.5.3]"""
    if syntax.uuid[:8] != _FEATURES_PREFIX or (syntax.major, syntax.minor) != (1, 0):
        return None
    return int.from_bytes(syntax.uuid[8:], "little")
