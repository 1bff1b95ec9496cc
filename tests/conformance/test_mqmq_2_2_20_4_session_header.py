"""SessionHeader. [MQMQ 2.2.20.4]"""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.packets import SessionAck, decode, encode
from tests.conformance import ours, peer

FLAGS = 3 | peer.IN | peer.SH


def test_each_count_stands_in_its_place() -> None:
    assert encode(ours.SESSION_ACK)[20:] == peer.session_header()
    assert decode(peer.internal_packet(1, peer.session_header(), base_flags=FLAGS)) == SessionAck(
        SessionHeader(
            received_count=7,
            stored_base=5,
            stored_bits=0b1011,
            sent_count=9,
            recoverable_sent_count=6,
            window=64,
        )
    )


@pytest.mark.spec("MQMQ-2.2.20.4-12")
def test_the_window_is_64_unless_said_otherwise() -> None:
    assert struct.unpack_from("<H", encode(SessionAck(SessionHeader())), 32) == (0x0040,)
    for window in (1, 0xFFFF):
        data = peer.internal_packet(1, peer.session_header(window=window), base_flags=FLAGS)
        packet = replace(ours.SESSION_ACK, session=replace(ours.SESSION, window=window))
        assert encode(packet) == data
        assert decode(data) == packet


@pytest.mark.spec("MQMQ-2.2.20.4-13")
@given(st.integers(0, 0xFFFF))
def test_the_reserved_field_says_nothing_and_is_passed_on(reserved: int) -> None:
    header = peer.session_header(reserved=reserved)
    data = peer.internal_packet(1, header, base_flags=FLAGS)
    packet = decode(data)
    assert isinstance(packet, SessionAck)
    assert replace(packet, session=replace(packet.session, reserved=0)) == ours.SESSION_ACK
    assert encode(packet) == data
    carried = peer.user_message(
        peer.user_header(), peer.properties_header(), base_flags=3 | peer.SH, session=header
    )
    message = ours.decode_user_message(carried)
    assert message.session == packet.session
    assert replace(message, session=None) == ours.PLAIN
    assert encode(message) == carried
