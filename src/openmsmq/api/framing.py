"""Calls and answers as bytes: a 32-bit little-endian length, then MessagePack.

Decoding raises `ApiError` or nothing; a frame longer than `FRAME_MAX_BYTES` is refused before any
of it is held.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final, Generic, TypeVar

import msgspec

from openmsmq.api.messages import Answer, Call

FRAME_MAX_BYTES: Final = 64 * 1024 * 1024
"""The longest call or answer: sixteen of the largest messages. [ours]"""

_LENGTH: Final = struct.Struct("<I")
_ENCODER: Final = msgspec.msgpack.Encoder()

Item = TypeVar("Item", Call, Answer)


class ApiError(ValueError):
    """Bytes that are no call or answer: the other side's fault, and the end of its connection."""


def encode_frame(item: Call | Answer) -> bytes:
    """Give the bytes of one call or answer."""
    body = _ENCODER.encode(item)
    if len(body) > FRAME_MAX_BYTES:
        raise ApiError(
            f"a frame of {len(body)} bytes; at most {FRAME_MAX_BYTES}: send fewer at once"
        )
    return _LENGTH.pack(len(body)) + body


def encode_frames(items: Iterable[Call | Answer]) -> bytes:
    """Give the bytes of several calls or answers."""
    return b"".join(map(encode_frame, items))


class FrameReader(Generic[Item]):
    """Collects bytes as they come and gives whole calls, or whole answers."""

    def __init__(self, kind: type[Item]) -> None:
        self._decoder: msgspec.msgpack.Decoder[Item] = msgspec.msgpack.Decoder(kind)
        self._data = bytearray()
        self._start = 0

    def feed(self, data: bytes | memoryview) -> None:
        """Take the next bytes of the connection."""
        if self._start:
            del self._data[: self._start]
            self._start = 0
        self._data += data

    def items(self) -> Iterator[Item]:
        """Give what is whole by now."""
        while len(self._data) - self._start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._data, self._start)
            if length > FRAME_MAX_BYTES:
                raise ApiError(f"a frame of {length} bytes; at most {FRAME_MAX_BYTES}")
            begin = self._start + _LENGTH.size
            if len(self._data) - begin < length:
                return
            with memoryview(self._data) as view, view[begin : begin + length] as body:
                try:
                    item = self._decoder.decode(body)
                except (msgspec.DecodeError, ValueError, RecursionError) as error:
                    raise ApiError(f"a frame that says nothing we know: {error}") from None
            self._start = begin + length
            yield item
