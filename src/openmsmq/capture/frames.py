"""Frames: what a capture file holds, whichever of the two formats it has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from openmsmq.capture import pcap, pcapng
from openmsmq.capture.source import CaptureError, Read, Source

MAGIC_BYTES: Final = 4


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One captured frame."""

    number: int
    """Its place in the file, from 1, as capture tools count."""
    time_ns: int
    """Since 1970, UTC; 0 when the file does not say."""
    link_type: int
    data: bytes
    original_size: int
    """How long the frame was before the capture cut it."""


def is_capture(start: bytes) -> bool:
    """Whether a file that starts with these bytes is a capture in a format we know."""
    return start[:MAGIC_BYTES] in pcap.MAGICS or start[:MAGIC_BYTES] == pcapng.MAGIC


def read_frames(read: Read) -> Iterator[Frame]:
    """Yield the frames of a capture; raises `CaptureError` behind the last one that is whole."""
    source = Source(read)
    start = source.peek(MAGIC_BYTES)
    if start == pcapng.MAGIC:
        records = pcapng.read(source)
    elif start in pcap.MAGICS:
        records = pcap.read(source)
    else:
        raise CaptureError(
            0, f"it starts with {start.hex(' ') or 'nothing'}, neither pcapng nor pcap"
        )
    for number, (link_type, time_ns, data, original_size) in enumerate(records, 1):
        yield Frame(number, time_ns, link_type, data, original_size)
