"""BaseHeader. [MQMQ 2.2.19.1]"""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.framing import take_packets
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.debug import DebugHeader
from openmsmq.wire.packets import Packet, decode, encode
from tests.conformance import ours, peer
from tests.conformance.ours import decode_user_message

every_packet = pytest.mark.parametrize("packet", ours.ALL.values(), ids=ours.ALL.keys())
internal_packets = pytest.mark.parametrize(
    "packet", ours.INTERNAL.values(), ids=ours.INTERNAL.keys()
)
RESERVED_BITS = {6: 10, 7: 11} | {bit: bit + 5 for bit in range(9, 16)}
"""Each reserved bit, and the number of the statement about it."""


def flags_of(data: bytes) -> int:
    return int(struct.unpack_from("<H", data, 2)[0])


def with_flags(data: bytes, flags: int) -> bytes:
    return data[:2] + struct.pack("<H", flags) + data[4:]


def framed(data: bytes) -> bytes | None:
    return next(take_packets(bytearray(data)), None)


def without_base(packet: Packet) -> Packet:
    changed: Packet = replace(packet, base=BaseHeader())
    return changed


@pytest.mark.spec("MQMQ-2.2.19.1-01")
@every_packet
def test_the_version_is_sixteen_and_no_other_is_read(packet: Packet) -> None:
    data = encode(packet)
    assert data[0] == 0x10
    for version in set(range(256)) - {0x10}:
        changed = bytes((version,)) + data[1:]
        with pytest.raises(DecodeError, match="version"):
            decode(changed)
        with pytest.raises(DecodeError, match="version"):
            framed(changed)


@pytest.mark.spec("MQMQ-2.2.19.1-02")
@every_packet
def test_the_reserved_byte_says_nothing_and_is_passed_on(packet: Packet) -> None:
    data = encode(packet)
    assert data[1] == 0
    for reserved in range(256):
        changed = data[:1] + bytes((reserved,)) + data[2:]
        received = decode(changed)
        assert without_base(received) == without_base(packet)
        assert replace(received.base, reserved=0) == packet.base
        assert encode(received) == changed


@pytest.mark.spec("MQMQ-2.2.19.1-05")
@internal_packets
def test_the_packets_of_the_session_itself_are_internal(packet: Packet) -> None:
    data = encode(packet)
    assert flags_of(data) & peer.IN
    with pytest.raises(DecodeError):
        decode(with_flags(data, flags_of(data) & ~peer.IN))


@pytest.mark.spec("MQMQ-2.2.19.1-06")
@pytest.mark.parametrize("packet", [ours.ORDER_ACK, ours.FINAL_ACK], ids=["OrderAck", "FinalAck"])
def test_transactional_acknowledgments_are_not_internal(packet: Packet) -> None:
    assert flags_of(encode(packet)) & peer.IN == 0


@pytest.mark.spec("MQMQ-2.2.19.1-07")
def test_where_the_session_bit_is_set_a_session_header_follows() -> None:
    plain = peer.user_message(peer.user_header(), peer.properties_header())
    assert encode(ours.PLAIN) == plain
    carrying = with_flags(plain, 3 | peer.SH) + peer.session_header()
    assert encode(replace(ours.PLAIN, session=ours.SESSION)) == carrying
    assert decode_user_message(carrying).session == ours.SESSION
    for missing in range(1, 17):
        with pytest.raises(DecodeError):
            decode(carrying[:-missing])
        assert framed(carrying[:-missing]) is None


@pytest.mark.spec("MQMQ-2.2.19.1-07")
def test_a_session_acknowledgment_without_session_header_is_refused() -> None:
    data = peer.internal_packet(1, peer.session_header(), base_flags=3 | peer.IN | peer.SH)
    assert decode(data) == ours.SESSION_ACK
    with pytest.raises(DecodeError, match="SessionHeader"):
        decode(peer.internal_packet(1, b"", base_flags=3 | peer.IN | peer.SH))


@pytest.mark.spec("MQMQ-2.2.19.1-08")
@internal_packets
def test_no_packet_of_the_session_itself_announces_a_debug_header(packet: Packet) -> None:
    data = encode(packet)
    assert flags_of(data) & peer.DH == 0
    with pytest.raises(EncodeError):
        encode(replace(packet, base=BaseHeader(flags=peer.DH)))
    with pytest.raises(DecodeError):
        decode(with_flags(data, flags_of(data) | peer.DH))


@pytest.mark.spec("MQMQ-2.2.19.1-08")
@pytest.mark.parametrize("packet", [ours.ORDER_ACK, ours.FINAL_ACK], ids=["OrderAck", "FinalAck"])
def test_no_transactional_acknowledgment_announces_a_debug_header(packet: Packet) -> None:
    assert flags_of(encode(packet)) & peer.DH == 0


@pytest.mark.spec("MQMQ-2.2.19.1-09")
def test_a_debug_header_is_there_exactly_when_it_is_announced() -> None:
    plain = peer.user_message(peer.user_header(), peer.properties_header())
    announced = peer.user_message(
        peer.user_header(), peer.properties_header(), peer.debug_header(), base_flags=3 | peer.DH
    )
    assert encode(ours.PLAIN) == plain
    assert encode(replace(ours.PLAIN, debug=DebugHeader(ours.QUEUE))) == announced
    assert decode_user_message(plain).debug is None
    assert decode_user_message(announced).debug == DebugHeader(ours.QUEUE)
    assert decode_user_message(with_flags(announced, 3)).debug is None
    with pytest.raises(DecodeError, match="DebugHeader"):
        decode(with_flags(plain, 3 | peer.DH))


@pytest.mark.parametrize(
    "bit",
    [
        pytest.param(bit, marks=pytest.mark.spec(f"MQMQ-2.2.19.1-{number}"), id=f"bit {bit}")
        for bit, number in RESERVED_BITS.items()
    ],
)
def test_a_reserved_bit_is_clear_when_sent_and_ignored_when_set(bit: int) -> None:
    for packet in ours.ALL.values():
        data = encode(packet)
        assert flags_of(data) >> bit & 1 == 0
        changed = with_flags(data, flags_of(data) | 1 << bit)
        assert framed(changed) == changed
        received = decode(changed)
        assert without_base(received) == without_base(packet)
        assert received.base.priority == packet.base.priority
        assert received.base.traced == packet.base.traced
        assert received.base.time_to_reach_queue_s == packet.base.time_to_reach_queue_s
        assert encode(received) == changed


@pytest.mark.spec("MQMQ-2.2.19.1-13")
def test_a_traced_message_has_a_debug_header() -> None:
    traced = BaseHeader(flags=3 | peer.TR)
    data = encode(replace(ours.PLAIN, base=traced, debug=DebugHeader(ours.QUEUE)))
    assert flags_of(data) == 3 | peer.TR | peer.DH
    with pytest.raises(EncodeError):
        encode(replace(ours.PLAIN, base=traced))


@pytest.mark.spec("MQMQ-2.2.19.1-21")
@every_packet
def test_the_signature_is_lior_and_no_other_is_read(packet: Packet) -> None:
    data = encode(packet)
    assert data[4:8] == b"LIOR"
    assert struct.unpack_from("<I", data, 4) == (0x524F494C,)
    for place in range(4, 8):
        changed = data[:place] + bytes((data[place] ^ 0x20,)) + data[place + 1 :]
        with pytest.raises(DecodeError, match="signature"):
            decode(changed)
        with pytest.raises(DecodeError, match="signature"):
            framed(changed)


@given(st.binary(max_size=9), st.text("ab", max_size=9), st.binary(max_size=9))
def test_the_size_of_a_user_message_counts_padding_but_not_its_session_header(
    body: bytes, label: str, extension: bytes
) -> None:
    """The rule for user messages of C-1."""
    expected = peer.user_message(
        peer.user_header(),
        peer.properties_header(body, peer.text(label) if label else b"", extension),
        base_flags=3 | peer.SH,
        session=peer.session_header(),
    )
    properties = replace(
        ours.PLAIN.properties,
        body=body,
        label=peer.text(label) if label else b"",
        extension=extension,
        body_size=len(body),
        allocated_size=len(body),
    )
    assert encode(replace(ours.PLAIN, properties=properties, session=ours.SESSION)) == expected
    assert struct.unpack_from("<I", expected, 8) == (len(expected) - 16,)
    assert len(expected) % 4 == 0
    assert framed(expected + b"next") == expected


def test_the_size_of_a_session_acknowledgment_counts_its_session_header() -> None:
    """The rule for internal packets of C-1, as the printed frame 8 has it."""
    data = encode(ours.SESSION_ACK)
    assert data == peer.internal_packet(1, peer.session_header(), base_flags=3 | peer.IN | peer.SH)
    assert struct.unpack_from("<I", data, 8) == (36,)
    assert framed(data + b"next") == data


@pytest.mark.spec("MQMQ-2.2.19.1-25")
@internal_packets
def test_the_packets_of_the_session_itself_live_for_ever(packet: Any) -> None:
    assert encode(packet)[12:16] == b"\xff\xff\xff\xff"
