"""A stream of packets, cut anywhere, gives the packets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.limits import PACKET_MAX_BYTES
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.framing import take_packets
from openmsmq.wire.headers import base
from openmsmq.wire.packets import Packet, encode
from tests.strategies.packets import packets


@given(st.lists(packets, max_size=4), st.data())
def test_packets_come_out_as_they_went_in_however_the_stream_is_cut(
    sent: list[Packet], data: st.DataObject
) -> None:
    raw = [encode(packet) for packet in sent]
    stream = b"".join(raw)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    buffer = bytearray()
    received = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        buffer += stream[start:end]
        received += take_packets(buffer)
    assert received == raw
    assert len(buffer) == 0


@given(packets, packets)
def test_a_stream_that_comes_byte_by_byte_gives_each_packet_at_its_last_byte(
    first: Packet, second: Packet
) -> None:
    buffer = bytearray()
    expected = {}
    end = 0
    for packet in (first, second):
        end += len(encode(packet))
        expected[end] = encode(packet)
    for place, byte in enumerate(encode(first) + encode(second), start=1):
        buffer.append(byte)
        assert next(take_packets(buffer), None) == expected.get(place)


@pytest.mark.parametrize(
    ("offset", "value", "problem"),
    [
        (0, b"\x11", "version"),
        (4, b"liar", "signature"),
        (8, (19).to_bytes(4, "little"), "packet size 19"),
        (8, (PACKET_MAX_BYTES + 1).to_bytes(4, "little"), "packet size 4194305"),
        (8, b"\xff\xff\xff\xff", "packet size 4294967295"),
    ],
    ids=["version", "signature", "too small", "too large", "huge"],
)
def test_a_bad_base_header_is_refused_as_soon_as_it_is_there(
    offset: int, value: bytes, problem: str
) -> None:
    head = bytearray(base.LAYOUT.pack(base.VERSION, 0, 3, base.SIGNATURE, 100, 0))
    head[offset : offset + len(value)] = value
    buffer = bytearray()
    buffer += head[:15]
    assert list(take_packets(buffer)) == []
    buffer += head[15:]
    with pytest.raises(DecodeError, match=problem):
        next(take_packets(buffer))


def test_no_more_than_one_packet_waits_for_its_end() -> None:
    """A peer that never finishes its packet is held to the largest packet there is."""
    head = base.LAYOUT.pack(base.VERSION, 0, 3, base.SIGNATURE, PACKET_MAX_BYTES, 0)
    buffer = bytearray()
    buffer += head + bytes(PACKET_MAX_BYTES - base.SIZE - 1)
    assert list(take_packets(buffer)) == []
    assert len(buffer) < PACKET_MAX_BYTES
    buffer.append(0)
    assert len(list(take_packets(buffer))) == 1
    assert len(buffer) == 0


@given(st.binary(max_size=400))
def test_any_stream_gives_packets_or_is_refused(stream: bytes) -> None:
    head = base.LAYOUT.pack(base.VERSION, 0, 0x13, base.SIGNATURE, 20 + len(stream) // 2, 0)
    buffer = bytearray()
    buffer += head + stream
    try:
        found = list(take_packets(buffer))
    except DecodeError:
        return
    assert sum(map(len, found)) + len(buffer) == len(head) + len(stream)
