"""Records among other bytes: found where they are, at a cost that no content can raise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zlib_ng.zlib_ng import crc32

from openmsmq.storage import frames
from openmsmq.storage.frames import FIRST_MARK, Framing

SECRET = Framing(b"\x01secret\xff", salt=77)
OLD = Framing(FIRST_MARK, salt=77)
SIZE = 1 << 16

EFFORT_MAX = 16
"""How often the bytes of a file may be gone over."""


@contextmanager
def counted() -> Iterator[list[int]]:
    """Count the bytes whose checksum is made."""
    sizes: list[int] = []

    def count(data: bytes | memoryview, value: int = 0) -> int:
        sizes.append(len(data))
        return crc32(data, value)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames, "crc32", count)
        yield sizes


def fake(framing: Framing, length: int, sequence: int) -> bytes:
    """A header that looks right up to its checksum."""
    header = bytearray(framing.header(sequence, b""))
    mark_bytes = len(header) - 16
    header[mark_bytes : mark_bytes + 4] = length.to_bytes(4, "little")
    header[-1] ^= 1
    return bytes(header)


@settings(max_examples=30)
@given(
    framing=st.sampled_from([SECRET, OLD]),
    claimed=st.lists(st.integers(0, SIZE) | st.just(0xFFFFFFFF), min_size=1, max_size=4),
    sequences=st.lists(st.integers(1, 200) | st.just(2**64 - 1), min_size=1, max_size=4),
    filling=st.binary(max_size=40),
    run=st.integers(0, 3),
    to_the_end=st.booleans(),
)
def test_no_content_makes_looking_for_records_long(
    framing: Framing,
    claimed: list[int],
    sequences: list[int],
    filling: bytes,
    run: int,
    to_the_end: bool,
) -> None:
    data = bytearray()
    for sequence in range(1, run + 1):
        data += framing.header(sequence, b"payload") + b"payload"
    end = len(data)
    for place in range(SIZE):
        if len(data) >= SIZE:
            break
        length = claimed[place % len(claimed)]
        if to_the_end:
            length = max(SIZE - len(data) - framing.header_bytes, 0)
        data += fake(framing, length, sequences[place % len(sequences)]) + filling
    with counted() as sizes:
        found = framing.read_run(bytes(data))
        assert framing.find_later(bytes(data), end, run) is None
    assert [record.sequence for record in found] == list(range(1, run + 1))
    assert sum(sizes) <= EFFORT_MAX * len(data)


@given(
    before=st.binary(max_size=700),
    payload=st.binary(max_size=2000),
    behind=st.binary(max_size=300),
    sequence=st.integers(6, 2**64 - 1),
)
def test_a_whole_record_is_found_wherever_it_stands(
    before: bytes, payload: bytes, behind: bytes, sequence: int
) -> None:
    record = SECRET.header(sequence, payload) + payload
    data = before + record + behind
    assert SECRET.find_later(data, 0, 5) == (len(before), sequence)
    assert SECRET.find_later(data, 0, sequence) is None
    assert SECRET.find_later(data[: len(before) + len(record)], 0, 5) == (len(before), sequence)
    assert SECRET.find_later(data[: len(before) + len(record) - 1], 0, 5) is None


@given(payload=st.binary(min_size=1, max_size=600), data=st.data())
def test_a_record_with_a_flipped_bit_is_none(payload: bytes, data: st.DataObject) -> None:
    record = bytearray(SECRET.header(9, payload) + payload)
    place = data.draw(st.integers(0, len(record) * 8 - 1))
    record[place // 8] ^= 1 << place % 8
    assert SECRET.read_record(bytes(record), 0) is None
    assert SECRET.find_later(bytes(record), 0, 5) is None


def test_reading_stops_where_the_numbers_stop() -> None:
    data = b"".join(SECRET.header(number, b"x") + b"x" for number in (3, 4, 9, 10))
    assert [record.sequence for record in SECRET.read_run(data)] == [3, 4]
    assert Framing(b"\x01secret\xff", salt=78).read_run(data) == []
    assert Framing(b"\x01secret\xfe", salt=77).read_run(data) == []
