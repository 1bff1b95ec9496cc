"""The conversation printed in MQQB 4.1 and our own vectors, byte for byte."""

from __future__ import annotations

import struct

import pytest

from openmsmq.model.identity import NIL_GUID, Guid, MessageId, SequenceId
from openmsmq.wire.bodies.acknowledgments import FinalAck, OrderAck
from openmsmq.wire.bodies.order_packets import acknowledgment_in, order_packet
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.establish import PADDING, EstablishHeader
from openmsmq.wire.headers.internal import InternalHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.parameters import ParametersHeader
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.security import SecurityHeader
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.headers.transaction import FINAL_ACK, FIRST, LAST, TransactionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import (
    ConnectionParameters,
    EstablishConnection,
    Packet,
    SessionAck,
    UserMessage,
    decode,
    encode,
)
from tests.golden import golden

CLIENT = Guid.parse("557358d1-9150-9595-4997-b6e611ea26c6")
SERVER = Guid.parse("43cd8907-394c-8f11-4445-9078909ea0fc")


def sid(*authorities: int) -> bytes:
    """The bytes of a security identifier under authority 5."""
    return struct.pack(
        f"<BB6s{len(authorities)}I", 1, len(authorities), b"\0\0\0\0\0\x05", *authorities
    )


def completed_frame_7() -> bytes:
    """The specification cuts its body short: 286 more characters and two bytes of padding."""
    return golden("mqqb-4.1-frame-7-user-message") + b"a\0" * 286 + b"\0\0"


FRAMES: list[tuple[str, Packet]] = [
    (
        "mqqb-4.1-frame-3-establish-request",
        EstablishConnection(
            EstablishHeader(CLIENT, SERVER, 501140046, 0x0310, 0, PADDING),
            base=BaseHeader(reserved=0xC0),
        ),
    ),
    (
        "mqqb-4.1-frame-4-establish-response",
        EstablishConnection(
            EstablishHeader(
                Guid.parse("1f742305-be5e-4177-bc77-c4dd7719e474"),
                Guid.parse("3c3a6aeb-f567-4143-87d3-85cf4d68ceb4"),
                501140046,
                0x0310,
            ),
            base=BaseHeader(reserved=0x5A),
        ),
    ),
    (
        "mqqb-4.1-frame-5-parameters-request",
        ConnectionParameters(ParametersHeader(1496, 120000, 64), base=BaseHeader(reserved=0xC0)),
    ),
    (
        "mqqb-4.1-frame-6-parameters-response",
        ConnectionParameters(ParametersHeader(1496, 120000, 64), base=BaseHeader(reserved=0xC0)),
    ),
    (
        "mqqb-4.1-frame-8-session-ack",
        SessionAck(
            SessionHeader(received_count=1, window=64),
            InternalHeader(),
            BaseHeader(reserved=0xCD),
        ),
    ),
]


@pytest.mark.parametrize(("name", "packet"), FRAMES, ids=[name for name, _ in FRAMES])
def test_a_printed_frame_is_exactly_this_packet(name: str, packet: Packet) -> None:
    assert decode(golden(name)) == packet
    assert encode(packet) == golden(name)


def test_frame_7_is_the_message_the_capture_shows() -> None:
    packet = UserMessage(
        UserHeader(
            CLIENT,
            NIL_GUID,
            sent_time_s=0x524F494C,
            message_number=2286,
            destination=DirectName(r"OS:a04bm02\q"),
        ),
        MessageProperties(
            body="a".encode("utf-16-le") * 1000,
            label="mqsender label\0".encode("utf-16-le"),
            body_type=8,
            body_size=2000,
            allocated_size=2000,
            hash_algorithm=0x8004,
            encryption_algorithm=0x6801,
            acknowledge=0x0F,
        ),
        BaseHeader(flags=3, time_to_reach_queue_s=345600),
        security=SecurityHeader(
            flags=1, sender_id=sid(21, 3181267629, 1039849782, 3663111779, 1000)
        ),
    )
    assert len(completed_frame_7()) == 2224
    assert decode(completed_frame_7()) == packet
    assert encode(packet) == completed_frame_7()
    assert encode(packet)[:1650] == golden("mqqb-4.1-frame-7-user-message")


def test_the_order_ack_vector_in_its_private_form() -> None:
    ack = OrderAck.up_to(SequenceId(1, 0x5F000000), 8)
    target = Guid.parse("aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee")
    packet = order_packet(
        ack,
        source=Guid.parse("11111111-2222-3333-4444-555555555555"),
        to=target,
        message_number=7,
        sent_time_s=0x60000000,
        time_to_reach_queue_s=0x54600,
    )
    assert encode(packet) == golden("order-ack-private")
    assert acknowledgment_in(decode(golden("order-ack-private")), target) == ack


def test_the_final_ack_vector_in_its_direct_form() -> None:
    ack = FinalAck(SequenceId(1, 0x5F000000), 1, 0, MessageId(CLIENT, 7))
    packet = order_packet(
        ack,
        0x4000,
        source=SERVER,
        to="10.0.0.1",
        message_number=9,
        sent_time_s=0x60000000,
        time_to_reach_queue_s=0x54600,
    )
    data = encode(packet)
    assert len(data) == 260
    assert int.from_bytes(data[60:64], "little") == 0x00201C20
    assert acknowledgment_in(decode(data), CLIENT) == ack


def test_the_transaction_header_vector() -> None:
    header = TransactionHeader(
        SequenceId(1, 0x5F000000), 1, 0, FINAL_ACK | FIRST | LAST | 0x12345 << 4
    )
    assert header.write().hex() == "5e341200010000000000005f0100000000000000"
