"""NUL-terminated UTF-16 text, read strictly: what is decoded can be encoded to the same bytes."""

from __future__ import annotations

from typing import Final

from openmsmq.wire.errors import DecodeError, EncodeError

_WINDOW_BYTES: Final = 256
"""So much of a text is looked at first, then twice as much: what is behind it may be long."""


def read(data: bytes, offset: int, end: int, where: str) -> tuple[str, int]:
    """Read the text at `offset`; give it and the offset behind its terminator, within `end`."""
    at = data.find(b"\0\0", offset, end)
    if at >= 0 and (at - offset) & 1:
        # Two zero bytes that are not one code unit belong to two neighbours. After a letter of
        # ASCII the second of them begins the terminator.
        at = at + 1 if data[at + 1 : min(at + 3, end)] == b"\0\0" else _zero(data, at + 1, end)
    if at < 0:
        raise DecodeError(where, offset, "a text without its terminating NUL")
    try:
        return data[offset:at].decode("utf-16-le"), at + 2
    except UnicodeDecodeError as error:
        raise DecodeError(where, offset + error.start, "a text that is not UTF-16") from None


def _zero(data: bytes, offset: int, end: int) -> int:
    """Where the first code unit is that is 0, or -1.

    A text may have two zero bytes in any number of other places: no step is taken for each.
    """
    size = _WINDOW_BYTES
    while offset + 2 <= end:
        stop = min(offset + size, end)
        stop -= (stop - offset) & 1
        units = data[offset:stop]
        # All lower halves and all upper halves at once: 0 is left where both are 0.
        either = int.from_bytes(units[::2], "big") | int.from_bytes(units[1::2], "big")
        at = either.to_bytes(len(units) // 2, "big").find(0)
        if at >= 0:
            return offset + 2 * at
        offset, size = stop, 2 * size
    return -1


def read_all(data: bytes, offset: int, end: int, where: str) -> str:
    """Read the text that fills the bytes from `offset` to `end`, terminator included."""
    text, behind = read(data, offset, end, where)
    if behind != end:
        raise DecodeError(where, behind, f"{end - behind} bytes behind the end of a text")
    return text


def write(text: str, where: str) -> bytes:
    """Return the bytes of a text and its terminator."""
    if "\0" in text:
        raise EncodeError(where, f"{text!r} has a NUL inside")
    try:
        return text.encode("utf-16-le") + b"\0\0"
    except UnicodeEncodeError:
        raise EncodeError(where, f"{text!r} cannot be written in UTF-16") from None
