"""As much of ASN.1's distinguished encoding as SPNEGO needs. [X.690]"""

from __future__ import annotations

from typing import Final

from openmsmq.wire.errors import DecodeError

OBJECT: Final = 0x06
OCTETS: Final = 0x04
ENUMERATED: Final = 0x0A
SEQUENCE: Final = 0x30
APPLICATION: Final = 0x60
TAGGED: Final = 0xA0
"""The first of the tags that number the members of a sequence."""

_LENGTH_MAX_BYTES: Final = 4


def encode(tag: int, *parts: bytes) -> bytes:
    """Return an element with its parts inside."""
    content = b"".join(parts)
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content


class Reader:
    """Reads one element after the other; each has to fill its place exactly."""

    __slots__ = ("_data", "_end", "_offset", "_where")

    def __init__(self, data: bytes, where: str) -> None:
        self._data = data
        self._offset = 0
        self._end = len(data)
        self._where = where

    @property
    def is_at_end(self) -> bool:
        """Whether nothing is left."""
        return self._offset == self._end

    def tag(self) -> int:
        """Return the tag of the next element; 0 at the end."""
        return 0 if self.is_at_end else self._data[self._offset]

    def take(self, tag: int) -> bytes:
        """Return the content of the next element, which must have this tag."""
        start = self._offset
        if self.tag() != tag:
            raise self._error(f"element {tag:#04x} is missing")
        if start + 2 > self._end:
            raise self._error("an element without a length")
        size = self._data[start + 1]
        begin = start + 2
        if size & 0x80:
            count = size & 0x7F
            if not 0 < count <= _LENGTH_MAX_BYTES or begin + count > self._end:
                raise self._error("a length that cannot be one")
            size = int.from_bytes(self._data[begin : begin + count], "big")
            begin += count
        if begin + size > self._end:
            raise self._error("an element is cut short")
        self._offset = begin + size
        return self._data[begin : self._offset]

    def take_optional(self, tag: int) -> bytes | None:
        """Return the content of the next element if it has this tag."""
        return self.take(tag) if self.tag() == tag else None

    def inside(self, tag: int) -> Reader:
        """Return a reader of what the next element contains."""
        return Reader(self.take(tag), self._where)

    def finish(self) -> None:
        """Raise unless nothing is left."""
        if not self.is_at_end:
            raise self._error("something stands behind the end")

    def _error(self, problem: str) -> DecodeError:
        return DecodeError(self._where, self._offset, problem)
