"""Small tools of the header codecs: alignment, padding, and the fields a header shows.

Every header is a frozen structure that carries all its bytes, so that encoding what was decoded
gives back the same bytes. Fields with no meaning (reserved bits, padding) are kept beside the
others; padding that is all zeros, which is what we send, is kept as `b""`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

import msgspec

from openmsmq.wire.errors import DecodeError, EncodeError

ZEROS: Final = (b"", b"\0", b"\0\0", b"\0\0\0")


def padding_size(size: int) -> int:
    """How many bytes follow `size` bytes so that the next field stands on a multiple of 4."""
    return -size & 3


def need(data: bytes, offset: int, size: int, where: str) -> None:
    """Refuse to read `size` bytes at `offset` when the data ends before."""
    if offset + size > len(data):
        raise DecodeError(where, offset, f"{offset + size - len(data)} bytes are missing")


def pack(layout: struct.Struct, where: str, *values: int | bytes) -> bytes:
    """Return the bytes of fixed fields; refuse a value that does not fit its field."""
    try:
        return layout.pack(*values)
    except struct.error as error:
        raise EncodeError(where, f"a value does not fit its field: {error}") from None


def keep_padding(padding: bytes) -> bytes:
    """Keep padding only when it says anything else than zeros."""
    return padding if padding.strip(b"\0") else b""


class Pads:
    """Hands out a header's padding in order: what was received, or zeros."""

    __slots__ = ("_padding", "_used", "_where")

    def __init__(self, padding: bytes, where: str) -> None:
        self._padding = padding
        self._used = 0
        self._where = where

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes of padding."""
        if not self._padding:
            return ZEROS[size]
        start = self._used
        self._used += size
        if self._used > len(self._padding):
            raise EncodeError(self._where, "the padding kept is shorter than the header needs")
        return self._padding[start : self._used]

    def finish(self) -> None:
        """Make sure that all padding kept has found its place."""
        if self._padding and self._used != len(self._padding):
            raise EncodeError(self._where, "the padding kept is longer than the header needs")


class Field(msgspec.Struct, frozen=True):
    """One line of the text view: a named run of bytes and what it says.

    A field of size 0 is part of the field shown before it (the bits of a flags word).
    """

    name: str
    size: int
    value: str | int | list[Field]
    meaning: str = ""


def group(name: str, parts: Iterable[Field]) -> Field:
    """Show fields as one field that holds them all."""
    shown = list(parts)
    return Field(name, sum(field.size for field in shown), shown)


def hex_field(name: str, data: bytes) -> Iterator[Field]:
    """Show bytes as they are, if there are any."""
    if data:
        yield Field(name, len(data), data.hex())


def bits(flags: int, *named: tuple[str, int]) -> Iterator[Field]:
    """Show the named bit ranges of a flags word, and the rest when any of it is set."""
    known = 0
    for name, mask in named:
        known |= mask
        yield Field(name, 0, (flags & mask) // (mask & -mask))
    if flags & ~known:
        yield Field("reserved bits", 0, flags & ~known)


def lifetime_meaning(seconds: int) -> str:
    """Say a lifetime in words."""
    return "infinite" if seconds == 0xFFFF_FFFF else f"{seconds} s"


def time_meaning(unix_s: int) -> str:
    """Say a wire time (seconds since 1970, UTC) as date and time."""
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def utf16_text(raw: bytes) -> str:
    """Read UTF-16 code units up to the first NUL, with what is not UTF-16 replaced."""
    return raw.decode("utf-16-le", "replace").partition("\0")[0]
