"""The calls of the endpoint mapper and their results, as they stand in stubs. [C706 O]"""

from __future__ import annotations

import enum
from typing import Any, Final

import msgspec

from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.wire.rpc.ndr import Call
from openmsmq.wire.rpc.ndr_types import U32, Octets, Pointer, Reader, Type, Writer
from openmsmq.wire.rpc.syntaxes import Syntax
from openmsmq.wire.rpc.towers import TOWER_MAX_BYTES

OPERATIONS_COUNT: Final = 8
HANDLE_BYTES: Final = 20
NO_HANDLE: Final = bytes(HANDLE_BYTES)
ENTRIES_MAX_COUNT: Final = 500
"""So many are asked for at once; who wants more comes again."""
ANNOTATION_MAX_BYTES: Final = 63

OK: Final = 0
NOT_REGISTERED: Final = 0x16C9A0D6
"""Nothing of the kind is here, or there is no more of it."""


class Operation(enum.IntEnum):
    """The numbers of the methods that are answered."""

    LOOKUP = 2
    MAP = 3
    FREE_HANDLE = 4


class Inquiry(enum.IntEnum):
    """Which entries somebody looks for."""

    ALL = 0
    BY_INTERFACE = 1
    BY_OBJECT = 2
    BY_BOTH = 3


class VersionOption(enum.IntEnum):
    """Which versions of an interface do."""

    ALL = 1
    COMPATIBLE = 2
    EXACT = 3
    MAJOR_ONLY = 4
    UP_TO = 5


class Map(msgspec.Struct, frozen=True):
    """Where is what this tower names?"""

    object: Guid | None
    tower: bytes | None
    handle: bytes
    towers_max: int


class Mapped(msgspec.Struct, frozen=True):
    """There."""

    handle: bytes
    count: int
    towers: Varying
    status: int


class Lookup(msgspec.Struct, frozen=True):
    """What is there?"""

    inquiry: int
    object: Guid | None
    interface: Syntax | None
    versions: int
    handle: bytes
    entries_max: int


class Entry(msgspec.Struct, frozen=True):
    """One interface that can be called."""

    tower: bytes
    annotation: bytes
    object: Guid = NIL_GUID


class Found(msgspec.Struct, frozen=True):
    """That."""

    handle: bytes
    count: int
    entries: Varying
    status: int


class FreeHandle(msgspec.Struct, frozen=True):
    """That is enough."""

    handle: bytes


class Freed(msgspec.Struct, frozen=True):
    """All right."""

    handle: bytes
    status: int


class Varying(msgspec.Struct, frozen=True):
    """The elements of an array, and how many would have been welcome."""

    room: int
    items: tuple[Any, ...]


class _SyntaxType(Type):
    """An interface with its version, as a structure."""

    align = 4
    size = Syntax.SIZE

    def read(self, reader: Reader) -> Any:
        """Read it."""
        reader.align(4)
        reader.need(self.size)
        reader.at += self.size
        return Syntax.read(reader.data, reader.at - self.size)

    def write(self, writer: Writer, value: Any) -> None:
        """Write it."""
        writer.align(4)
        writer.out += value.encode()


class _TowerType(Type):
    """A structure that ends with as many bytes as it says."""

    align = 4
    size = 8

    def read(self, reader: Reader) -> Any:
        """Read the bytes."""
        room, count = reader.u32(), reader.u32()
        if room != count or count > TOWER_MAX_BYTES:
            raise reader.wrong(f"a tower of {count} of {room} bytes; at most {TOWER_MAX_BYTES}")
        reader.need(count)
        reader.at += count
        return reader.data[reader.at - count : reader.at]

    def write(self, writer: Writer, value: Any) -> None:
        """Write the bytes."""
        U32.write(writer, len(value))
        U32.write(writer, len(value))
        writer.out += value


class _EntryType(Type):
    """An entry: object, tower, and a short text within its own structure."""

    align = 4
    size = 28

    def read(self, reader: Reader) -> Any:
        """Read what stands in place."""
        about, tower = GUID.read(reader), _TOWER.read(reader)
        offset, count = reader.u32(), reader.u32()
        if offset or not 0 < count <= ANNOTATION_MAX_BYTES + 1:
            raise reader.wrong(f"a text of {count} characters, from {offset}")
        reader.need(count)
        reader.at += count
        return about, tower, reader.data[reader.at - count : reader.at - 1]

    def resolve(self, reader: Reader, raw: Any) -> Any:
        """Read the tower."""
        about, tower, annotation = raw
        return Entry(_TOWER.resolve(reader, tower), annotation, Guid(about))

    def write(self, writer: Writer, value: Any) -> None:
        """Write what stands in place."""
        GUID.write(writer, value.object)
        _TOWER.write(writer, value.tower)
        U32.write(writer, 0)
        U32.write(writer, len(value.annotation) + 1)
        writer.out += value.annotation + b"\0"

    def follow(self, writer: Writer, value: Any) -> None:
        """Write the tower."""
        _TOWER.follow(writer, value.tower)


class _VaryingArray(Type):
    """An array that is conformant and varying."""

    align = 4
    size = 12

    def __init__(self, element: Type) -> None:
        self._element = element

    def read(self, reader: Reader) -> Any:
        """Read what the elements have in place."""
        room, offset, count = reader.u32(), reader.u32(), reader.u32()
        if offset or count > room or count > ENTRIES_MAX_COUNT:
            raise reader.wrong(f"{count} elements of {room}, from {offset}")
        return room, [self._element.read(reader) for _ in range(count)]

    def resolve(self, reader: Reader, raw: Any) -> Any:
        """Make the elements."""
        room, items = raw
        return Varying(room, tuple(self._element.resolve(reader, one) for one in items))

    def write(self, writer: Writer, value: Any) -> None:
        """Write what the elements have in place."""
        for number in (value.room, 0, len(value.items)):
            U32.write(writer, number)
        for one in value.items:
            self._element.write(writer, one)

    def follow(self, writer: Writer, value: Any) -> None:
        """Write what pointers in the elements lead to."""
        for one in value.items:
            self._element.follow(writer, one)


GUID: Final = Octets(16, 4, Guid)
HANDLE: Final = Octets(HANDLE_BYTES, 4)
SYNTAX: Final = _SyntaxType()
_TOWER: Final = Pointer(_TowerType())

MAP: Final = Call(
    Map,
    ("object", Pointer(GUID)),
    ("tower", _TOWER),
    ("handle", HANDLE),
    ("towers_max", U32),
)
MAPPED: Final = Call(
    Mapped,
    ("handle", HANDLE),
    ("count", U32),
    ("towers", _VaryingArray(_TOWER)),
    ("status", U32),
)
LOOKUP: Final = Call(
    Lookup,
    ("inquiry", U32),
    ("object", Pointer(GUID)),
    ("interface", Pointer(SYNTAX)),
    ("versions", U32),
    ("handle", HANDLE),
    ("entries_max", U32),
)
FOUND: Final = Call(
    Found,
    ("handle", HANDLE),
    ("count", U32),
    ("entries", _VaryingArray(_EntryType())),
    ("status", U32),
)
FREE_HANDLE: Final = Call(FreeHandle, ("handle", HANDLE))
FREED: Final = Call(Freed, ("handle", HANDLE), ("status", U32))
