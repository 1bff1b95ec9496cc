"""What every server of RPC tells of itself, as it stands in stubs. [C706 Q]"""

from __future__ import annotations

import enum
from typing import Any, Final

import msgspec

from openmsmq.wire.rpc.endpoint_mapper import SYNTAX
from openmsmq.wire.rpc.ndr import Call
from openmsmq.wire.rpc.ndr_types import U32, Array, Number, Pointer, Reader, Type, Writer
from openmsmq.wire.rpc.syntaxes import Syntax

OPERATIONS_COUNT: Final = 5
INTERFACES_MAX_COUNT: Final = 64
STATISTICS_COUNT: Final = 4
PRINCIPAL_MAX_BYTES: Final = 1_024

OK: Final = 0
ACCESS_DENIED: Final = 5
UNKNOWN_AUTHENTICATION: Final = 1747
TOO_SHORT: Final = 0x16C9A0CD
"""The buffer that somebody offers is too small for the name."""


class Operation(enum.IntEnum):
    """The numbers of the methods."""

    INTERFACES = 0
    STATISTICS = 1
    IS_LISTENING = 2
    STOP = 3
    PRINCIPAL = 4


class Interfaces(msgspec.Struct, frozen=True):
    """What can be called here."""

    interfaces: tuple[Syntax, ...]
    status: int


class AskStatistics(msgspec.Struct, frozen=True):
    """How much was there to do?"""

    count: int


class Statistics(msgspec.Struct, frozen=True):
    """So much."""

    count: int
    numbers: tuple[int, ...]
    status: int


class Listening(msgspec.Struct, frozen=True):
    """Whether calls are taken."""

    status: int
    is_listening: int


class Stopped(msgspec.Struct, frozen=True):
    """Whether no more calls are taken."""

    status: int


class AskPrincipal(msgspec.Struct, frozen=True):
    """As whom does the server prove itself?"""

    kind: int
    room: int


class Principal(msgspec.Struct, frozen=True):
    """As this one."""

    name: bytes
    status: int


class _Vector(Type):
    """A structure that ends with as many pointers to interfaces as it says."""

    align = 4
    size = 8
    _element = Pointer(SYNTAX)

    def read(self, reader: Reader) -> Any:
        """Read the pointers."""
        room, count = reader.u32(), reader.u32()
        if room != count or count > INTERFACES_MAX_COUNT:
            raise reader.wrong(f"{count} interfaces of {room}; at most {INTERFACES_MAX_COUNT}")
        return [self._element.read(reader) for _ in range(count)]

    def resolve(self, reader: Reader, raw: Any) -> Any:
        """Read what they lead to."""
        return tuple(self._element.resolve(reader, one) for one in raw)

    def write(self, writer: Writer, value: Any) -> None:
        """Write the pointers."""
        U32.write(writer, len(value))
        U32.write(writer, len(value))
        for one in value:
            self._element.write(writer, one)

    def follow(self, writer: Writer, value: Any) -> None:
        """Write what they lead to."""
        for one in value:
            self._element.follow(writer, one)


class _Name(Type):
    """A text of bytes with its NUL, conformant and varying."""

    align = 4
    size = 13

    def read(self, reader: Reader) -> Any:
        """Read the text."""
        room, offset, count = reader.u32(), reader.u32(), reader.u32()
        if offset or not 0 < count <= min(room, PRINCIPAL_MAX_BYTES):
            raise reader.wrong(f"a text of {count} of {room} characters, from {offset}")
        reader.need(count)
        reader.at += count
        return reader.data[reader.at - count : reader.at - 1]

    def write(self, writer: Writer, value: Any) -> None:
        """Write the text."""
        for number in (len(value) + 1, 0, len(value) + 1):
            U32.write(writer, number)
        writer.out += value + b"\0"


INTERFACES: Final = Call(Interfaces, ("interfaces", Pointer(_Vector())), ("status", U32))
ASK_STATISTICS: Final = Call(AskStatistics, ("count", U32))
STATISTICS: Final = Call(
    Statistics, ("count", U32), ("numbers", Array(U32, STATISTICS_COUNT)), ("status", U32)
)
LISTENING: Final = Call(Listening, ("status", U32), ("is_listening", U32))
STOPPED: Final = Call(Stopped, ("status", U32))
ASK_PRINCIPAL: Final = Call(
    AskPrincipal, ("kind", U32), ("room", Number("I", 0, PRINCIPAL_MAX_BYTES))
)
PRINCIPAL: Final = Call(Principal, ("name", _Name()), ("status", U32))
