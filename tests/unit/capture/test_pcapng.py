"""pcapng files are read whatever their byte order, and lies in them are named with their place."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.capture import pcapng
from openmsmq.capture.link_layers import LinkType
from openmsmq.capture.source import CaptureError
from tests.strategies.captures import TimedFrame, frames_of, pcapng_file

START = pcapng.file_start(LinkType.RAW)


def block(kind: int, body: bytes) -> bytes:
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size


SECTION = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))


def interface(options: bytes = b"", frame_bytes_max: int = 0) -> bytes:
    return block(1, struct.pack("<HHI", LinkType.RAW, 0, frame_bytes_max) + options)


def packet(ticks: int, data: bytes = b"", index: int = 0) -> bytes:
    body = struct.pack("<IIIII", index, ticks >> 32, ticks & 0xFFFF_FFFF, len(data), len(data))
    return block(6, body + data + bytes(-len(data) & 3))


def error_of(file: bytes) -> CaptureError:
    with pytest.raises(CaptureError) as caught:
        list(frames_of(file))
    return caught.value


@given(st.lists(st.tuples(st.binary(max_size=50), st.integers(0, 2**63))))
def test_what_is_written_is_read_again(frames):
    file = START + b"".join(pcapng.frame_block(data, time_ns) for data, time_ns in frames)
    found = list(frames_of(file))
    assert [(frame.data, frame.time_ns) for frame in found] == frames
    assert [frame.number for frame in found] == list(range(1, len(frames) + 1))
    assert {frame.link_type for frame in found} <= {LinkType.RAW}


@given(st.sampled_from("<>"), st.lists(st.binary(max_size=30), max_size=5))
def test_both_byte_orders_and_old_blocks_are_read(order, data):
    frames = [TimedFrame(LinkType.ETHERNET, 1_000 * n, one) for n, one in enumerate(data)]
    found = list(frames_of(pcapng_file(order, frames)))
    assert [TimedFrame(one.link_type, one.time_ns, one.data) for one in found] == frames


@pytest.mark.parametrize(
    ("options", "ticks", "time_ns"),
    [
        (b"", 5, 5_000),
        (struct.pack("<HHBxxx", 9, 1, 3), 5, 5_000_000),
        (struct.pack("<HHBxxx", 9, 1, 0x80 | 10), 512, 500_000_000),
        (struct.pack("<HHq", 14, 8, 100), 5, 100_000_005_000),
        (struct.pack("<HHBxxx", 0, 0, 0) + struct.pack("<HHBxxx", 9, 1, 3), 5, 5_000),
        (struct.pack("<HH", 9, 200), 5, 5_000),
    ],
    ids=["default", "milliseconds", "powers of two", "offset", "behind the end", "cut short"],
)
def test_times_are_in_the_resolution_of_their_interface(options, ticks, time_ns):
    (frame,) = frames_of(SECTION + interface(options) + packet(ticks))
    assert frame.time_ns == time_ns


def test_a_simple_packet_is_as_long_as_its_interface_allows():
    simple = block(3, struct.pack("<I", 100) + b"abcd")
    (frame,) = frames_of(SECTION + interface(frame_bytes_max=3) + simple)
    assert (frame.data, frame.original_size, frame.time_ns) == (b"abc", 100, 0)


def test_a_new_section_forgets_the_interfaces_of_the_one_before():
    file = SECTION + interface() + packet(0) + SECTION + packet(0)
    error = error_of(file)
    assert error.offset == len(file) - len(packet(0))
    assert error.problem == "a packet of interface 0, which is not described"


def test_a_block_without_use_may_be_larger_than_memory_should_hold():
    large = block(0xBAD, bytes(200_000))
    assert len(list(frames_of(START + large + pcapng.frame_block(b"x", 0)))) == 1


@pytest.mark.parametrize(
    ("file", "offset", "problem"),
    [
        (SECTION[:20], 12, "a section header ends 8 bytes early; the file may be cut short"),
        (SECTION[:8] + b"abcd" + SECTION[12:], 8, "byte-order mark 61 62 63 64"),
        (SECTION[:12] + b"\2" + SECTION[13:], 12, "pcapng version 2.0, not 1"),
        (
            SECTION[:4] + b"\x10" + SECTION[5:],
            4,
            "a block of 16 bytes; a multiple of 4 from 28 to 16777216 expected",
        ),
        (START + packet(0)[:-5], len(START) + 8, "ends 1 bytes early"),
        (START + packet(0)[:-2], len(START) + 28, "a block trailer ends 2 bytes early"),
        (
            START + packet(0)[:-4] + b"\x24\0\0\0",
            len(START) + 28,
            "a block starts with size 32 and ends with 36",
        ),
        (START + block(6, b"abcd"), len(START), "a packet of 4 bytes is too short"),
        (START + block(1, b"abcd"), len(START), "an interface description of 4 bytes"),
        (
            START + block(6, struct.pack("<IIIII", 0, 0, 0, 9, 9)),
            len(START),
            "a frame of 9 bytes in a block with 0",
        ),
        (START + b"\6\0\0\0\0\0\0\x10", len(START) + 4, "a block of 268435456 bytes"),
        (b"GIF8", 0, "it starts with 47 49 46 38, neither pcapng nor pcap"),
        (b"", 0, "it starts with nothing, neither pcapng nor pcap"),
    ],
)
def test_a_damaged_file_says_where_and_what(file, offset, problem):
    error = error_of(file)
    assert error.offset == offset
    assert problem in error.problem


def test_a_file_cannot_describe_interfaces_without_end():
    error = error_of(SECTION + interface() * (pcapng.INTERFACES_MAX + 1))
    assert error.problem == "more than 65536 interfaces"
