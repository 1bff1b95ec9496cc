"""The queue for trace reports."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import Guid
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.headers import debug
from openmsmq.wire.headers.debug import DebugHeader
from tests.strategies.wire_parts import debug_headers
from tests.unit.wire.codec_checks import (
    assert_fields_cover,
    assert_no_prefix_decodes,
    assert_same_or_refused,
    assert_survives,
    damaged,
)

QUEUE = Guid(range(16))


def read(data: bytes) -> DebugHeader:
    return debug.read(data, 0)[0]


@given(debug_headers(), st.binary(max_size=9), st.binary(max_size=9))
def test_a_header_survives_the_wire(header: DebugHeader, before: bytes, after: bytes) -> None:
    assert_survives(debug, header, before, after)


@given(damaged(debug_headers().map(DebugHeader.write)))
def test_any_bytes_are_read_and_written_the_same_or_refused(data: bytes) -> None:
    assert_same_or_refused(debug, data)


@given(debug_headers())
def test_a_truncated_header_is_refused(header: DebugHeader) -> None:
    assert_no_prefix_decodes(read, header.write())


@given(debug_headers())
def test_the_fields_show_every_byte(header: DebugHeader) -> None:
    assert_fields_cover(header.fields(), len(header.write()))


@pytest.mark.spec("MQMQ-2.2.20.8-17")
def test_the_queue_is_there_exactly_when_its_type_is_1() -> None:
    assert DebugHeader(QUEUE).write() == b"\1\0\0\0" + QUEUE
    assert DebugHeader().write() == bytes(4)
    assert debug.read(b"\1\0\0\0" + QUEUE, 0) == (DebugHeader(QUEUE), 20)
    assert debug.read(bytes(4) + QUEUE, 0) == (DebugHeader(), 4)


@pytest.mark.spec("MQMQ-2.2.20.8-01")
@pytest.mark.parametrize("queue_type", [2, 3])
def test_an_unknown_queue_type_is_neither_read_nor_written(queue_type: int) -> None:
    with pytest.raises(DecodeError, match="queue type"):
        read(bytes([queue_type, 0, 0, 0]) + QUEUE)
    with pytest.raises(EncodeError, match="type"):
        DebugHeader(QUEUE, flags=queue_type).write()


@pytest.mark.parametrize(
    "bit",
    [
        pytest.param(bit, marks=pytest.mark.spec(f"MQMQ-2.2.20.8-{bit:02}"), id=f"bit {bit}")
        for bit in range(2, 16)
    ],
)
@given(queue=st.none() | st.just(QUEUE), others=st.integers(0, 0x3FFF))
def test_an_unused_bit_changes_nothing_and_is_not_sent(
    bit: int, queue: Guid | None, others: int
) -> None:
    sent = DebugHeader(queue).write()
    assert int.from_bytes(sent[:2], "little") >> bit & 1 == 0
    flags = (sent[0] | others << 2) | 1 << bit
    assert read(flags.to_bytes(2, "little") + sent[2:]).queue == queue


@pytest.mark.spec("MQMQ-2.2.20.8-16")
@given(st.integers(0, 0xFFFF), st.none() | st.just(QUEUE))
def test_reserved_bytes_change_nothing_and_are_not_sent(reserved: int, queue: Guid | None) -> None:
    sent = DebugHeader(queue).write()
    assert sent[2:4] == b"\0\0"
    assert read(sent[:2] + reserved.to_bytes(2, "little") + sent[4:]).queue == queue
