"""NUL-terminated UTF-16 text, read strictly: what is decoded can be encoded to the same bytes."""

from __future__ import annotations

from openmsmq.wire.errors import DecodeError, EncodeError


def read(data: bytes, offset: int, end: int, where: str) -> tuple[str, int]:
    """Read the text at `offset`; give it and the offset behind its terminator, within `end`."""
    at = data.find(b"\0\0", offset, end)
    # Two zero bytes that are not one code unit belong to two neighbours.
    while at >= 0 and (at - offset) & 1:
        at = data.find(b"\0\0", at + 1, end)
    if at < 0:
        raise DecodeError(where, offset, "a text without its terminating NUL")
    try:
        return data[offset:at].decode("utf-16-le"), at + 2
    except UnicodeDecodeError as error:
        raise DecodeError(where, offset + error.start, "a text that is not UTF-16") from None


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
