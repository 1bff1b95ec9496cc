"""FrameBuffer: a byte stream becomes whole packets. [MQMQ 2.2.19.1]

A packet ends where its BaseHeader says, except that the SessionHeader of a user message usually
lies behind that end and some peers count it inside (C-1). Getting this wrong would lose the place
in the stream for good, so the headers are measured before the end is decided.
"""

from __future__ import annotations

from typing import Final

from openmsmq.wire.headers import base, internal, session, user
from openmsmq.wire.packets import headers_end

START_BYTES: Final = base.SIZE + user.FIXED_SIZE
"""How much of a packet `check_start` looks at."""

_SIGNATURE: Final = base.SIGNATURE.to_bytes(4, "little")
_SIGNATURE_OFFSET: Final = 4


def find_header(data: bytearray) -> int:
    """Return where the next BaseHeader may be; -1 if there is none."""
    at = data.find(_SIGNATURE, _SIGNATURE_OFFSET)
    while at >= 0 and data[at - _SIGNATURE_OFFSET] != base.VERSION:
        at = data.find(_SIGNATURE, at + 1)
    return max(at - _SIGNATURE_OFFSET, -1)


def check_start(start: bytes) -> None:
    """Raise `DecodeError` if the first `START_BYTES`, or fewer, cannot be those of a packet."""
    if start[2] & base.INTERNAL:
        if len(start) >= base.SIZE + internal.SIZE:
            internal.read(start, base.SIZE)
    elif len(start) == START_BYTES:
        user.check_flags(start, base.SIZE)


def packet_end(data: bytearray, start: int = 0) -> int | None:
    """Return where the packet ends that starts there, or None when more must come first."""
    available = len(data) - start
    if available < base.SIZE:
        return None
    _, flags, size = base.read(bytes(data[start : start + base.SIZE]))
    if available < size:
        return None
    if flags & base.SESSION and not flags & base.INTERNAL:
        with memoryview(data) as view:
            inside = bytes(view[start : start + size])
        if size - headers_end(inside) < session.SIZE:
            size += session.SIZE
    return start + size if available >= size else None


class FrameBuffer:
    """Collects bytes as they come and gives whole packets.

    After `next_packet` raised `DecodeError` the stream has lost its place: close it.
    """

    def __init__(self) -> None:
        self._data = bytearray()
        self._start = 0

    def __len__(self) -> int:
        """How many bytes wait for the rest of their packet."""
        return len(self._data) - self._start

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        if self._start:
            del self._data[: self._start]
            self._start = 0
        self._data += data

    def next_packet(self) -> bytes | None:
        """Return the bytes of the next whole packet, or None when more must come first."""
        end = packet_end(self._data, self._start)
        if end is None:
            return None
        with memoryview(self._data) as view:
            packet = bytes(view[self._start : end])
        self._start = end
        return packet
