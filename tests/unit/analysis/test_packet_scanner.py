"""A scanner finds the same packets however the stream is cut, and goes on after damage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.analysis.packet_scanner import (
    EXAMINED_RATIO_MAX,
    FoundPacket,
    FoundTrouble,
    PacketScanner,
)
from openmsmq.wire import packets
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.packets import SessionAck
from tests.strategies.packets import packets as any_packet

ACKS = [packets.encode(SessionAck(SessionHeader(number))) for number in range(4)]
BAIT = b"\x10\0\x08\0LIOR" + b"\x40\0\0\0"


def scan(*chunks: bytes, from_start: bool = True) -> list:
    scanner = PacketScanner(from_start=from_start)
    found = [one for chunk in chunks for one in scanner.feed(chunk)]
    found += scanner.finish("over")
    assert len(scanner) == 0
    return found


@given(st.lists(any_packet.map(packets.encode), max_size=4), st.data())
def test_packets_are_found_however_the_stream_is_cut(sent, data):
    stream = b"".join(sent)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=5)))
    chunks = [
        stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
    ]
    found = scan(*chunks)
    assert [one.data for one in found] == sent
    assert all(stream[one.offset :].startswith(one.data) for one in found)


@given(st.integers(0, 30), st.sets(st.integers(1, 100), max_size=6))
def test_packets_are_found_behind_other_bytes_however_the_stream_is_cut(before, cuts):
    stream = b"x" * before + ACKS[0] + ACKS[1]
    ends = [*sorted(cuts), len(stream)]
    chunks = [stream[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    found = [one for one in scan(*chunks, from_start=False) if isinstance(one, FoundPacket)]
    assert [(one.offset, one.data) for one in found] == [
        (before, ACKS[0]),
        (before + 36, ACKS[1]),
    ]


@given(st.lists(st.binary(max_size=80) | st.sampled_from([*ACKS, BAIT]), max_size=6), st.booleans())
def test_every_byte_of_any_stream_is_told_once(chunks, from_start):
    stream = b"".join(chunks)
    at = 0
    for one in scan(*chunks, from_start=from_start):
        assert one.offset == at
        assert stream[at:].startswith(one.data)
        at += len(one.data)
    assert at == len(stream)


@given(st.integers(0, 35), st.integers(1, 60))
def test_whole_packets_behind_a_gap_are_found(kept, lost):
    scanner = PacketScanner()
    stream = b"".join(ACKS)
    found = [*scanner.feed(stream[:kept]), *scanner.gap(lost)]
    found += [*scanner.feed(stream[kept + lost :]), *scanner.finish("over")]
    first_whole = -(-(kept + lost) // 36)
    assert [one.data for one in found if isinstance(one, FoundPacket)] == ACKS[first_whole:]


def test_a_candidate_that_announces_more_than_ever_comes_hides_nothing():
    found = scan(b"xx" + BAIT + ACKS[0] + ACKS[1], from_start=False)
    assert [one.data for one in found if isinstance(one, FoundPacket)] == ACKS[:2]
    assert found[0] == FoundTrouble(
        0,
        14,
        "14 bytes skipped: the capture starts in the middle of the stream",
        b"xx" + BAIT,
    )


def test_a_packet_that_ends_too_early_is_told_with_its_bytes():
    assert scan(ACKS[0] + ACKS[1][:20]) == [
        FoundPacket(0, ACKS[0]),
        FoundTrouble(
            36,
            20,
            "20 bytes of a packet, but the stream ends before the rest of it (over)",
            ACKS[1][:20],
        ),
    ]


def test_bytes_between_two_packets_are_skipped_and_told():
    found = scan(ACKS[0] + b"what is this, please?" + ACKS[1])
    assert [type(one) for one in found] == [FoundPacket, FoundTrouble, FoundPacket]
    assert found[1].data == b"what is this, please?"
    assert found[1].problem.startswith("21 bytes skipped: no packet starts here (BaseHeader at")


def test_what_cannot_be_a_message_is_refused_before_its_megabytes_come():
    bait = b"\x10\0\0\0LIOR" + (0x0040_0000).to_bytes(4, "little") + bytes(60)
    scanner = PacketScanner(from_start=False)
    found = [*scanner.feed(bait), *scanner.feed(ACKS[0])]
    assert [one.data for one in found] == [bait, ACKS[0]]


def test_a_signature_of_another_version_is_no_packet():
    other = b"\x20" + ACKS[0][1:]
    found = scan(other + ACKS[1], from_start=False)
    assert [one.data for one in found] == [other, ACKS[1]]


@pytest.mark.parametrize(
    "bait",
    [
        # An EstablishConnection with the bit of a debug header, and a message without its rest.
        b"\x10\0\x28\0LIOR\0\x10\0\0\0\0\0\0\0\0\x02\0",
        b"\x10\0\0\0LIOR\0\x10\0\0" + bytes(48) + b"\0\x1c\x20\0\x03\0ab",
    ],
)
def test_candidates_inside_each_other_are_not_examined_for_ever(bait):
    # Each announces 4096 bytes, and each time all of them are there.
    def packets_behind(count: int) -> list[bytes]:
        stream = (bait * count + ACKS[0]).ljust(5_000, b"x")
        found = scan(stream, from_start=False)
        return [one.data for one in found if isinstance(one, FoundPacket)]

    assert packets_behind(5) == [ACKS[0]]
    # The packet lies inside one more than is looked into, which is passed over as a whole.
    assert packets_behind(EXAMINED_RATIO_MAX + 4) == []


def test_a_packet_behind_too_many_candidates_is_found_again():
    bait = b"\x10\0\x28\0LIOR\0\x10\0\0\0\0\0\0\0\0\x02\0"
    found = scan((bait * 30).ljust(4_500, b"x") + ACKS[0], from_start=False)
    assert [one.data for one in found if isinstance(one, FoundPacket)] == [ACKS[0]]


def test_an_unknown_kind_of_internal_packet_is_refused_before_its_megabytes_come():
    bait = b"\x10\0\x08\0LIOR" + (0x0040_0000).to_bytes(4, "little") + bytes(4) + b"\0\0\x09\0"
    scanner = PacketScanner(from_start=False)
    found = [*scanner.feed(bait), *scanner.feed(ACKS[0])]
    assert [one.data for one in found] == [bait, ACKS[0]]
