"""Options of PGM packets: which of them we heed, and how they are written. [RFC 3208 9]"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

import msgspec

from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.fields.cursor import need, pack

NAK_LIST_MAX_COUNT: Final = 62
"""Numbers that the list has beside the one in the packet itself. [RFC 3208 9.3]"""

_LENGTH: Final = struct.Struct(">BBH")
_OPTION: Final = struct.Struct(">BBBB")
_FRAGMENT: Final = struct.Struct(">BBBBIII")
_JOIN: Final = struct.Struct(">BBBBI")
_LAST: Final = 0x80
_UNKNOWN_MASK: Final = 0x03
_DISCARD: Final = 0x02
_WHERE: Final = "options of a PGM packet"


class OptionType(IntEnum):
    """Options that endpoints without repairers and parity meet. [RFC 3208 9]"""

    LENGTH = 0x00
    FRAGMENT = 0x01
    NAK_LIST = 0x02
    JOIN = 0x03
    SYN = 0x0D
    FIN = 0x0E
    RST = 0x0F


class Fragment(msgspec.Struct, frozen=True, gc=False):
    """Which part of what the application sent a data packet has. [RFC 3208 9.2]"""

    first: int
    """The number of the packet with the first part."""
    offset: int
    """Where the part begins."""
    length: int
    """How long all parts together are."""


class Options(msgspec.Struct, frozen=True, gc=False):
    """What the options of one packet say; those of others are passed over."""

    fragment: Fragment | None = None
    further: tuple[int, ...] = ()
    """Numbers that are asked for or confirmed beside that of the packet."""
    joinable: int | None = None
    """The first number that whoever joins late may ask for."""
    syn: bool = False
    fin: bool = False
    """The source ends after this."""
    reset: bool = False
    """The source has broken off, and repairs nothing any more."""

    def encode(self) -> bytes:
        """Return the bytes, with the length of all in front; nothing if there is none."""
        parts: list[bytes] = []
        if self.fragment is not None:
            each = self.fragment
            parts.append(
                pack(
                    _FRAGMENT,
                    _WHERE,
                    OptionType.FRAGMENT,
                    _FRAGMENT.size,
                    0,
                    0,
                    each.first,
                    each.offset,
                    each.length,
                )
            )
        if self.further:
            parts.append(_nak_list(self.further))
        if self.joinable is not None:
            parts.append(pack(_JOIN, _WHERE, OptionType.JOIN, _JOIN.size, 0, 0, self.joinable))
        for kind, is_set in (
            (OptionType.SYN, self.syn),
            (OptionType.FIN, self.fin),
            (OptionType.RST, self.reset),
        ):
            if is_set:
                parts.append(pack(_OPTION, _WHERE, kind, _OPTION.size, 0, 0))
        if not parts:
            return b""
        last = parts[-1]
        parts[-1] = bytes((last[0] | _LAST,)) + last[1:]
        total = _LENGTH.size + sum(len(part) for part in parts)
        return pack(_LENGTH, _WHERE, OptionType.LENGTH, _LENGTH.size, total) + b"".join(parts)


NO_OPTIONS: Final = Options()


class _Found:
    """What was read so far."""

    def __init__(self) -> None:
        self.fragment: Fragment | None = None
        self.further: tuple[int, ...] = ()
        self.joinable: int | None = None
        self.syn = False
        self.fin = False
        self.reset = False

    def options(self) -> Options:
        """Return all of it."""
        return Options(self.fragment, self.further, self.joinable, self.syn, self.fin, self.reset)


def _nak_list(numbers: tuple[int, ...]) -> bytes:
    if len(numbers) > NAK_LIST_MAX_COUNT:
        raise EncodeError(_WHERE, f"{len(numbers)} numbers, and {NAK_LIST_MAX_COUNT} fit")
    size = _OPTION.size + 4 * len(numbers)
    head = pack(_OPTION, _WHERE, OptionType.NAK_LIST, size, 0, 0)
    return head + pack(struct.Struct(f">{len(numbers)}I"), _WHERE, *numbers)


def read_options(data: bytes, offset: int) -> tuple[Options, int]:
    """Read all options; return them, and where the data behind them begin."""
    need(data, offset, _LENGTH.size, _WHERE)
    kind, size, total = _LENGTH.unpack_from(data, offset)
    if kind & ~_LAST != OptionType.LENGTH or size != _LENGTH.size:
        raise DecodeError(_WHERE, offset, "the length of all options does not come first")
    need(data, offset, total, _WHERE)
    end = offset + total
    at = offset + _LENGTH.size
    is_last = bool(kind & _LAST)
    found = _Found()
    while not is_last:
        if at + _OPTION.size > end:
            raise DecodeError(_WHERE, at, "no option says that it is the last")
        kind, size, unknown, _ = _OPTION.unpack_from(data, at)
        if size < _OPTION.size or at + size > end:
            raise DecodeError(_WHERE, at + 1, f"an option of {size} bytes")
        is_last = bool(kind & _LAST)
        _read_one(data, at, (kind & ~_LAST, size, unknown), found)
        at += size
    if at != end:
        raise DecodeError(_WHERE, at, f"{end - at} bytes behind the last option")
    return found.options(), end


def _read_one(
    data: bytes,
    at: int,
    head: tuple[int, int, int],
    found: _Found,
) -> None:
    kind, size, unknown = head
    if kind == OptionType.FRAGMENT:
        _expect(at, size, _FRAGMENT.size)
        first, offset, length = struct.unpack_from(">III", data, at + _OPTION.size)
        found.fragment = Fragment(first, offset, length)
    elif kind == OptionType.NAK_LIST:
        count, rest = divmod(size - _OPTION.size, 4)
        if rest or not 1 <= count <= NAK_LIST_MAX_COUNT:
            raise DecodeError(_WHERE, at + 1, f"a list of {size} bytes")
        found.further = struct.unpack_from(f">{count}I", data, at + _OPTION.size)
    elif kind == OptionType.JOIN:
        _expect(at, size, _JOIN.size)
        found.joinable = int.from_bytes(data[at + 4 : at + 8], "big")
    elif kind == OptionType.SYN:
        found.syn = True
    elif kind == OptionType.FIN:
        found.fin = True
    elif kind == OptionType.RST:
        found.reset = True
    elif unknown & _UNKNOWN_MASK == _DISCARD:
        raise DecodeError(_WHERE, at, f"option {kind:#04x}, without which nothing is to be read")


def _expect(at: int, size: int, expected: int) -> None:
    if size != expected:
        raise DecodeError(_WHERE, at + 1, f"an option of {size} bytes, not {expected}")
