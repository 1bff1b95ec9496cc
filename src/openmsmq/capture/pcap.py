"""The classic pcap format: one header, one link type, records back to back."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from openmsmq.capture.source import CaptureError, Source

MAGICS: Final = {
    b"\xd4\xc3\xb2\xa1": ("<", 1_000),
    b"\xa1\xb2\xc3\xd4": (">", 1_000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
"""The first four bytes, and the byte order and the nanoseconds per tick they stand for."""

RECORD_BYTES_MAX: Final = 16 * 1024 * 1024
_NS_PER_S: Final = 1_000_000_000
_FRAME_CHECK_BITS: Final = 0xF000_0000


def read(source: Source) -> Iterator[tuple[int, int, bytes, int]]:
    """Yield link type, time, bytes and original size of each record."""
    header = source.take(24, "the pcap header")
    order, tick_ns = MAGICS[header[:4]]
    major, minor = struct.unpack_from(order + "HH", header, 4)
    if major != 2:
        raise CaptureError(4, f"pcap version {major}.{minor}, not 2.4")
    link_type: int = struct.unpack_from(order + "I", header, 20)[0] & ~_FRAME_CHECK_BITS
    record = struct.Struct(order + "IIII")
    while source.peek(1):
        start = source.offset
        seconds, ticks, size, original = record.unpack(source.take(record.size, "a record"))
        if size > RECORD_BYTES_MAX:
            raise CaptureError(start + 8, f"a record of {size} bytes; {RECORD_BYTES_MAX} at most")
        data = source.take(size, f"a record of {size} bytes")
        yield link_type, seconds * _NS_PER_S + ticks * tick_ns, data, original
