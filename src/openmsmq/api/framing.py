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

LARGE_FRAME_BYTES: Final = 1 << 18
"""From this length on a frame gets a place of its own, if its reader asks for one."""

PLACE_KEPT_MAX_BYTES: Final = 16 << 20
"""A place up to this length is kept for the next large frame."""

_LENGTH: Final = struct.Struct("<I")
_ENCODER: Final = msgspec.msgpack.Encoder()

Item = TypeVar("Item", Call, Answer)


class ApiError(ValueError):
    """Bytes that are no call or answer: the other side's fault, and the end of its connection."""


def encode_frame(item: Call | Answer) -> bytes:
    """Return the bytes of one call or answer."""
    body = _ENCODER.encode(item)
    if len(body) > FRAME_MAX_BYTES:
        raise _too_long(len(body))
    return _LENGTH.pack(len(body)) + body


def encode_large_frame(item: Answer) -> bytearray:
    """Return what `encode_frame` gives, copied once less: that pays for an answer that is long."""
    frame = bytearray(_LENGTH.size)
    _ENCODER.encode_into(item, frame, _LENGTH.size)
    length = len(frame) - _LENGTH.size
    if length > FRAME_MAX_BYTES:
        raise _too_long(length)
    _LENGTH.pack_into(frame, 0, length)
    return frame


def _too_long(length: int) -> ApiError:
    return ApiError(f"a frame of {length} bytes; at most {FRAME_MAX_BYTES}: send fewer at once")


def encode_frames(items: Iterable[Call | Answer]) -> bytes:
    """Return the bytes of several calls or answers."""
    return b"".join(map(encode_frame, items))


class FrameReader(Generic[Item]):
    """Collects bytes as they come and gives whole calls, or whole answers."""

    def __init__(self, kind: type[Item]) -> None:
        self._decoder: msgspec.msgpack.Decoder[Item] = msgspec.msgpack.Decoder(kind)
        self._data = bytearray()
        self._start = 0
        self._place = bytearray()
        self._length = 0
        self._missing = 0

    def room(self) -> memoryview | None:
        """Return the place for the rest of a large frame that has begun; None if none has.

        Whoever reads the connection into it says so with `filled`, and spares a copy.
        """
        if not self._length and not self._begin_large():
            return None
        return memoryview(self._place)[self._length - self._missing : self._length]

    def filled(self, count: int) -> None:
        """Take the next bytes of the connection, which are in their place already."""
        self._missing -= count

    def _begin_large(self) -> bool:
        """Take what is there of a large frame to a place of its own."""
        begin = self._start + _LENGTH.size
        if len(self._data) < begin:
            return False
        (length,) = _LENGTH.unpack_from(self._data, self._start)
        if not LARGE_FRAME_BYTES <= length <= FRAME_MAX_BYTES:
            return False
        there = len(self._data) - begin
        if there >= length:
            return False
        if len(self._place) < length:
            self._place = bytearray(length)
        self._place[:there] = self._data[begin:]
        self._data.clear()
        self._start = 0
        self._length, self._missing = length, length - there
        return True

    def _take_large(self) -> Item:
        with memoryview(self._place) as view, view[: self._length] as body:
            item = self._decoded(body)
        if len(self._place) > PLACE_KEPT_MAX_BYTES:
            self._place = bytearray()
        self._length = 0
        return item

    def _decoded(self, body: memoryview) -> Item:
        try:
            return self._decoder.decode(body)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise ApiError(f"a frame that says nothing we know: {error}") from None

    @property
    def held_bytes(self) -> int:
        """How many bytes wait for the rest of their frame, or to be taken."""
        return len(self._data) - self._start

    def feed(self, data: bytes | memoryview) -> None:
        """Take the next bytes of the connection."""
        if self._missing:
            taken = min(self._missing, len(data))
            begin = self._length - self._missing
            self._place[begin : begin + taken] = data[:taken]
            self._missing -= taken
            data = data[taken:]
        if self._start:
            del self._data[: self._start]
            self._start = 0
        self._data += data

    def items(self) -> Iterator[Item]:
        """Yield what is whole by now."""
        if self._length:
            if self._missing:
                return
            yield self._take_large()
        while len(self._data) - self._start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._data, self._start)
            if length > FRAME_MAX_BYTES:
                raise ApiError(f"a frame of {length} bytes; at most {FRAME_MAX_BYTES}")
            begin = self._start + _LENGTH.size
            if len(self._data) - begin < length:
                return
            with memoryview(self._data) as view, view[begin : begin + length] as body:
                item = self._decoded(body)
            self._start = begin + length
            yield item
