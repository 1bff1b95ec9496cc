"""A source gives whole pieces even when its file gives them in bits."""

from __future__ import annotations

import io

import pytest

from openmsmq.capture.frames import is_capture, read_frames
from openmsmq.capture.pcapng import file_start, frame_block
from openmsmq.capture.source import CaptureError, Source


def test_a_pipe_that_gives_one_byte_at_a_time_is_read_like_a_file():
    file = io.BytesIO(file_start(101) + frame_block(b"abc", 7))
    (frame,) = read_frames(lambda _: file.read(1))
    assert (frame.data, frame.time_ns) == (b"abc", 7)


def test_looking_ahead_takes_nothing():
    source = Source(io.BytesIO(b"abcdef").read)
    assert source.peek(2) == b"ab"
    assert source.peek(99) == b"abcdef"
    assert source.offset == 0
    assert source.take(3, "it") == b"abc"
    source.skip(2, "it")
    assert (source.offset, source.take(1, "it")) == (5, b"f")
    with pytest.raises(CaptureError, match="at byte 6: it ends 1 bytes early"):
        source.take(1, "it")


@pytest.mark.parametrize(
    ("start", "expected"),
    [(b"\n\r\r\n", True), (b"\xa1\xb2\xc3\xd4", True), (b"\x10\0\x0b\0", False), (b"", False)],
)
def test_a_capture_is_known_by_its_first_bytes(start, expected):
    assert is_capture(start) is expected
