"""Calls and answers as bytes: a 32-bit little-endian length, then MessagePack.

Decoding raises `ApiError` or nothing; a frame longer than `FRAME_MAX_BYTES` is refused before any
of it is held.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final, Generic, TypeVar

import msgspec

from openmsmq.api.messages import Answer, Call, Packets

FRAME_MAX_BYTES: Final = 64 * 1024 * 1024
"""The longest call or answer: sixteen of the largest messages. [ours]"""

LARGE_FRAME_BYTES: Final = 1 << 18
"""From this length on a frame gets a place of its own, if its reader asks for one."""

PLACE_KEPT_MAX_BYTES: Final = 16 << 20
"""A place up to this length is kept for the next large frame."""

PLACES_KEPT_MAX_COUNT: Final = 3
"""So many are kept: for the frame that comes, and for two whose bytes are still looked at."""

_PLACE_STEP_BYTES: Final = 1 << 20
"""Places have multiples of this, so that a frame finds one although it is a little longer."""

_LENGTH: Final = struct.Struct("<I")
_ENCODER: Final = msgspec.msgpack.Encoder()
_NO_BYTES: Final = _ENCODER.encode(b"")
_LONG_BYTES: Final = struct.Struct(">BI")
_LONG_BYTES_CODE: Final = 0xC6
"""How MessagePack begins bytes that are so many or more: this code, and how many they are."""
_LONG_MIN_BYTES: Final = 1 << 16

Item = TypeVar("Item", Call, Answer)


class ApiError(ValueError):
    """Bytes that are no call or answer: the other side's fault, and the end of its connection."""


def encode_frame(item: Call | Answer) -> bytes:
    """Return the bytes of one call or answer."""
    body = _ENCODER.encode(item)
    if len(body) > FRAME_MAX_BYTES:
        raise _too_long(len(body))
    return _LENGTH.pack(len(body)) + body


def encode_in_parts(items: Iterable[Answer]) -> list[bytes]:
    """Return what `encode_frames` gives, but in parts: the entries of long ones are not copied."""
    parts: list[bytes] = []
    frames: list[bytes] = []
    for item in items:
        reply = item.reply
        entries = reply.entries if isinstance(reply, Packets) else b""
        # A queue manager makes them as bytes; who receives them has a view.
        if isinstance(entries, bytes) and len(entries) >= _LONG_MIN_BYTES:
            assert isinstance(reply, Packets)
            head, tail = _around_entries(item, reply)
            frames.append(head)
            parts += (b"".join(frames), entries)
            frames = [tail]
        else:
            frames.append(encode_frame(item))
    parts.append(b"".join(frames))
    return parts


def _around_entries(item: Answer, packets: Packets) -> tuple[bytes, bytes]:
    """Return what stands before the entries in the frame of an answer, and what behind them."""
    without = msgspec.structs.replace(packets, entries=b"")
    body = _ENCODER.encode(Answer(item.id, without))
    tail = b"".join(map(_ENCODER.encode, (packets.next_start, packets.slate, packets.slate_bytes)))
    before = body[: -len(tail) - len(_NO_BYTES)]
    length = len(before) + _LONG_BYTES.size + len(packets.entries) + len(tail)
    if length > FRAME_MAX_BYTES:
        raise _too_long(length)
    mark = _LONG_BYTES.pack(_LONG_BYTES_CODE, len(packets.entries))
    return b"".join((_LENGTH.pack(length), before, mark)), tail


def _too_long(length: int) -> ApiError:
    return ApiError(f"a frame of {length} bytes; at most {FRAME_MAX_BYTES}: send fewer at once")


def encode_frames(items: Iterable[Call | Answer]) -> bytes:
    """Return the bytes of several calls or answers."""
    return b"".join(map(encode_frame, items))


class FrameReader(Generic[Item]):
    """Collects bytes as they come and gives whole calls, or whole answers.

    An answer may show bytes of its frame without a copy of them: nothing else is written there
    while somebody has it.
    """

    def __init__(self, kind: type[Item]) -> None:
        self._decoder: msgspec.msgpack.Decoder[Item] = msgspec.msgpack.Decoder(kind)
        self._shows_frames = kind is Answer
        self._places: list[bytearray] = []
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
        self._place = self._free_place(length)
        self._place[:there] = self._data[begin:]
        self._data.clear()
        self._start = 0
        self._length, self._missing = length, length - there
        return True

    def _free_place(self, length: int) -> bytearray:
        """Take a place that nobody looks at, or make one."""
        for place in self._places:
            if len(place) >= length and _is_free(place):
                self._places.remove(place)
                return place
        return bytearray(length + -length % _PLACE_STEP_BYTES)

    def _take_large(self) -> Item:
        place, length = self._place, self._length
        self._place, self._length = bytearray(), 0
        item = self._decoded(memoryview(place)[:length])
        if len(place) <= PLACE_KEPT_MAX_BYTES:
            # Those that were made last are the longest.
            self._places = [place, *self._places][:PLACES_KEPT_MAX_COUNT]
        return item

    def _decoded(self, body: bytes | memoryview) -> Item:
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
                item = self._decoded(bytes(body) if self._shows_frames else body)
            self._start = begin + length
            yield item


def _is_free(place: bytearray) -> bool:
    """Whether nothing shows the bytes of a place: its length is fixed while something does."""
    try:
        place.pop()
    except BufferError:
        return False
    place.append(0)
    return True
