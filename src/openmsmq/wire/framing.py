"""Where packets begin and end in a stream of bytes that somebody reads along. [MQMQ 2.2.19.1]

A packet ends where its BaseHeader says, except that the SessionHeader of a user message usually
lies behind that end and some peers count it inside (C-1). Getting this wrong would lose the place
in the stream for good, so the headers are measured before the end is decided. Sessions themselves
cut with `openmsmq.wire.packet_buffer`, which is faster; that the two agree is a test.
"""

from __future__ import annotations

from collections.abc import Iterator
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


def packet_end(data: bytearray) -> int | None:
    """Return where the packet ends that the bytes begin with, or None when more must come first."""
    if len(data) < base.SIZE:
        return None
    _, flags, size = base.read(bytes(data[: base.SIZE]))
    if len(data) < size:
        return None
    if flags & base.SESSION and not flags & base.INTERNAL:
        with memoryview(data) as view:
            inside = bytes(view[:size])
        if size - headers_end(inside) < session.SIZE:
            size += session.SIZE
    return size if len(data) >= size else None


def take_packets(data: bytearray) -> Iterator[bytes]:
    """Cut off the whole packets that the bytes begin with; what is left waits for more.

    After a `DecodeError` the place in the stream is lost.
    """
    while (end := packet_end(data)) is not None:
        packet = bytes(data[:end])
        del data[:end]
        yield packet
