"""Types of NDR 2.0 that stand alone: numbers, bytes, texts, pointers and arrays. [C706 chapter 14]

Reading goes in two steps, as NDR itself does: `read` takes what stands in place, `resolve` what
pointers lead to, which follows behind the outermost structure or array. All counts have a bound by
type and must fit into the bytes that are left before anything is reserved for them; and as types
are finite tables, so is the depth.

Strict, as servers of target level 6.0 are: a NULL pointer has no elements behind it, and what
`size_is` names is exactly what came.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from openmsmq.wire.errors import DecodeError, EncodeError

REFERENT_FIRST: Final = 0x0002_0000
"""How referents are numbered does not matter to anybody; these are the usual numbers."""
REFERENT_STEP: Final = 4
WHERE: Final = "NDR"

_U32: Final = struct.Struct("<I")
_STRING: Final = struct.Struct("<III")
_ZEROS: Final = bytes(8)


class Reader:
    """Bytes of a stub, and how far they are read."""

    __slots__ = ("at", "data", "end")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.end = len(data)

    def align(self, alignment: int) -> None:
        """Pass over padding, whatever it contains."""
        self.at += -self.at & (alignment - 1)

    def need(self, size: int) -> None:
        """Refuse to go on when so many bytes are not there."""
        if self.at + size > self.end:
            raise self.wrong(f"{self.at + size - self.end} bytes are missing")

    def u32(self) -> int:
        """Read one number."""
        self.at += -self.at & 3
        self.need(4)
        value: int = _U32.unpack_from(self.data, self.at)[0]
        self.at += 4
        return value

    def wrong(self, problem: str) -> DecodeError:
        """Make the error that says what is wrong here."""
        return DecodeError(WHERE, self.at, problem)


class Writer:
    """Bytes of a stub as they come into being."""

    __slots__ = ("_referent", "out")

    def __init__(self) -> None:
        self.out = bytearray()
        self._referent = REFERENT_FIRST

    def align(self, alignment: int) -> None:
        """Write the padding before what is aligned so."""
        short = -len(self.out) & (alignment - 1)
        if short:
            self.out += _ZEROS[:short]

    def referent(self) -> int:
        """Return the number of the next pointer that is not NULL."""
        number = self._referent
        self._referent += REFERENT_STEP
        return number


class Type:
    """What stands somewhere in a stub.

    Types of fixed size have a `code` of the module `struct`, of as many items as `width` says, and
    `items` gives them; types of variable size have none, and write themselves.
    """

    align: int
    code: str | None = None
    size: int = 0
    """How many bytes it takes in place; at least so many without a code."""
    width: int = 1
    plain: bool = False
    """Whether what was read is the value already, and the value what is written."""
    leads: bool = False
    """Whether it is a pointer: something follows."""

    def read(self, reader: Reader) -> Any:
        """Read what stands in place."""
        raise NotImplementedError

    def resolve(self, reader: Reader, raw: Any) -> Any:
        """Make the value of what was read, with what its pointers lead to."""
        del reader
        return raw

    def items(self, writer: Writer, value: Any) -> tuple[Any, ...]:
        """Return what a value of fixed size has in place."""
        raise NotImplementedError

    def write(self, writer: Writer, value: Any) -> None:
        """Write what stands in place."""
        raise NotImplementedError

    def follow(self, writer: Writer, value: Any) -> None:
        """Write what the pointers lead to."""


class Fixed(Type):
    """Something of fixed size, alone."""

    def __init__(self, code: str, align: int) -> None:
        self.code = code
        self.align = align
        self._layout = struct.Struct("<" + code)
        self.size = self._layout.size
        self.width = len(self._layout.unpack(bytes(self.size)))

    def read(self, reader: Reader) -> Any:
        """Read its items; one item stands for itself."""
        reader.at += -reader.at & (self.align - 1)
        reader.need(self.size)
        found = self._layout.unpack_from(reader.data, reader.at)
        reader.at += self.size
        return found[0] if self.width == 1 else found

    def write(self, writer: Writer, value: Any) -> None:
        """Write its items."""
        writer.align(self.align)
        writer.out += packed(self._layout, self.items(writer, value))


class Number(Fixed):
    """A number, perhaps within bounds (`range` of the IDL)."""

    def __init__(self, code: str, low: int | None = None, high: int = 0) -> None:
        super().__init__(code, struct.calcsize("<" + code))
        self._bounds = None if low is None else (low, high)
        self.plain = low is None

    def resolve(self, reader: Reader, raw: Any) -> Any:
        """Refuse a number that is out of bounds."""
        if self._bounds is not None and not self._bounds[0] <= raw <= self._bounds[1]:
            raise reader.wrong(f"{raw} is not from {self._bounds[0]} to {self._bounds[1]}")
        return raw

    def items(self, writer: Writer, value: Any) -> tuple[Any, ...]:
        """Return the number."""
        del writer
        if self._bounds is not None and not self._bounds[0] <= value <= self._bounds[1]:
            raise EncodeError(WHERE, f"{value} is not from {self._bounds[0]} to {self._bounds[1]}")
        return (value,)


class Octets(Fixed):
    """Bytes of fixed length, such as a GUID, made into a kind of bytes."""

    def __init__(self, size: int, align: int, make: Callable[[bytes], bytes] = bytes) -> None:
        super().__init__(f"{size}s", align)
        self._make = make

    def resolve(self, reader: Reader, raw: Any) -> Any:
        """Make the kind of bytes."""
        del reader
        return self._make(raw)

    def items(self, writer: Writer, value: Any) -> tuple[Any, ...]:
        """Return the bytes; too few would be filled up silently."""
        del writer
        if len(value) != self.size:
            raise EncodeError(WHERE, f"{len(value)} bytes where there are {self.size}")
        return (value,)


U8: Final = Number("B")
I8: Final = Number("b")
U16: Final = Number("H")
I16: Final = Number("h")
U32: Final = Number("I")
I32: Final = Number("i")
U64: Final = Number("Q")
I64: Final = Number("q")


class Nothing(Type):
    """The arm of a union that has no value."""

    align = 1
    size = 0

    def read(self, reader: Reader) -> Any:
        """Read nothing."""
        del reader

    def write(self, writer: Writer, value: Any) -> None:
        """Write nothing, and refuse to lose a value."""
        del writer
        if value is not None:
            raise EncodeError(WHERE, f"{value!r} where nothing can be said")


class WideString(Type):
    """A text of UTF-16 with its NUL, conformant and varying (`[string] wchar_t`)."""

    align = 4
    size = 14

    def __init__(self, max_characters: int) -> None:
        self._max = max_characters

    def read(self, reader: Reader) -> Any:
        """Read the text."""
        reader.align(4)
        reader.need(12)
        room, offset, count = _STRING.unpack_from(reader.data, reader.at)
        if offset or not 0 < count <= room:
            raise reader.wrong(f"a text of {count} of {room} characters, from {offset}")
        if count > self._max + 1:
            raise reader.wrong(f"a text of {count - 1} characters; at most {self._max}")
        reader.at += 12
        reader.need(2 * count)
        end = reader.at + 2 * count
        try:
            text = reader.data[reader.at : end].decode("utf-16-le")
        except UnicodeDecodeError:
            raise reader.wrong("a text that is not UTF-16") from None
        if text.find("\0") != len(text) - 1:
            raise reader.wrong("a text whose only NUL is not its end")
        reader.at = end
        return text[:-1]

    def write(self, writer: Writer, value: Any) -> None:
        """Write the text."""
        if "\0" in value:
            raise EncodeError(WHERE, f"{value!r} has a NUL inside")
        try:
            units = value.encode("utf-16-le") + b"\0\0"
        except UnicodeEncodeError:
            raise EncodeError(WHERE, f"{value!r} cannot be written in UTF-16") from None
        count = len(units) // 2
        if count > self._max + 1:
            raise EncodeError(WHERE, f"a text of {count - 1} characters; at most {self._max}")
        writer.align(4)
        writer.out += _STRING.pack(count, 0, count)
        writer.out += units


class Pointer(Fixed):
    """A unique pointer: None is NULL."""

    def __init__(self, target: Type) -> None:
        super().__init__("I", 4)
        self.leads = True
        self._target = target

    def resolve(self, reader: Reader, raw: Any) -> Any:
        """Read what it leads to."""
        return self._target.resolve(reader, self._target.read(reader)) if raw else None

    def items(self, writer: Writer, value: Any) -> tuple[Any, ...]:
        """Return the referent."""
        return (0 if value is None else writer.referent(),)

    def follow(self, writer: Writer, value: Any) -> None:
        """Write what it leads to."""
        if value is not None:
            self._target.write(writer, value)
            self._target.follow(writer, value)


class Array(Type):
    """A conformant array, as a tuple."""

    align = 4
    size = 4

    def __init__(self, element: Type, max_count: int) -> None:
        self._element = element
        self._max = max_count

    def read(self, reader: Reader) -> Any:
        """Read what the elements have in place."""
        count = reader.u32()
        element = self._element
        if count > self._max:
            raise reader.wrong(f"{count} elements; at most {self._max}")
        reader.need(count * element.size)
        return [element.read(reader) for _ in range(count)]

    def resolve(self, reader: Reader, raw: Any) -> Any:
        """Make the elements."""
        if self._element.plain:
            return tuple(raw)
        resolve = self._element.resolve
        return tuple([resolve(reader, one) for one in raw])

    def write(self, writer: Writer, value: Any) -> None:
        """Write the elements."""
        if len(value) > self._max:
            raise EncodeError(WHERE, f"{len(value)} elements; at most {self._max}")
        writer.align(4)
        writer.out += _U32.pack(len(value))
        for one in value:
            self._element.write(writer, one)

    def follow(self, writer: Writer, value: Any) -> None:
        """Write what pointers in the elements lead to."""
        for one in value:
            self._element.follow(writer, one)


class ByteArray(Type):
    """A conformant array of bytes."""

    align = 4
    size = 4

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes

    def read(self, reader: Reader) -> Any:
        """Read the bytes."""
        count = reader.u32()
        if count > self._max:
            raise reader.wrong(f"{count} bytes; at most {self._max}")
        reader.need(count)
        reader.at += count
        return reader.data[reader.at - count : reader.at]

    def write(self, writer: Writer, value: Any) -> None:
        """Write the bytes."""
        if len(value) > self._max:
            raise EncodeError(WHERE, f"{len(value)} bytes; at most {self._max}")
        writer.align(4)
        writer.out += _U32.pack(len(value))
        writer.out += value


class Sized(Type):
    """Two parameters of a call: a count within bounds, and a conformant array of so many."""

    align = 4
    size = 8

    def __init__(self, count: Number, array: Array | ByteArray) -> None:
        self._count = count
        self._array = array

    def read(self, reader: Reader) -> Any:
        """Read both, and compare the counts."""
        count = self._count.resolve(reader, self._count.read(reader))
        found = self._array.read(reader)
        if len(found) != count:
            raise reader.wrong(f"an array of {len(found)} where {count} were said")
        return found

    def resolve(self, reader: Reader, raw: Any) -> Any:
        """Make the elements."""
        return self._array.resolve(reader, raw)

    def write(self, writer: Writer, value: Any) -> None:
        """Write both."""
        self._count.write(writer, len(value))
        self._array.write(writer, value)

    def follow(self, writer: Writer, value: Any) -> None:
        """Write what pointers in the elements lead to."""
        self._array.follow(writer, value)


class Counted(Fixed):
    """A count, and a unique pointer to a conformant array of exactly so many (`size_is`).

    Nothing is counted as often with NULL as with an array of nothing: both are the empty value.
    """

    def __init__(self, array: Array | ByteArray) -> None:
        super().__init__("II", 4)
        self.leads = True
        self._array = array
        self._empty: tuple[()] | bytes = () if isinstance(array, Array) else b""

    def resolve(self, reader: Reader, raw: Any) -> Any:
        """Read the elements, and compare the counts."""
        count, referent = raw
        if not referent:
            if count:
                raise reader.wrong(f"{count} elements behind a NULL pointer")
            return self._empty
        found = self._array.read(reader)
        if len(found) != count:
            raise reader.wrong(f"an array of {len(found)} where {count} were said")
        return self._array.resolve(reader, found)

    def items(self, writer: Writer, value: Any) -> tuple[Any, ...]:
        """Return the count and the referent."""
        return len(value), writer.referent() if value else 0

    def follow(self, writer: Writer, value: Any) -> None:
        """Write the elements."""
        if value:
            self._array.write(writer, value)
            self._array.follow(writer, value)


def packed(layout: struct.Struct, items: Sequence[Any]) -> bytes:
    """Return the bytes of items; refuse one that does not fit."""
    try:
        return layout.pack(*items)
    except struct.error as error:
        raise EncodeError(WHERE, f"a value does not fit its field: {error}") from None
