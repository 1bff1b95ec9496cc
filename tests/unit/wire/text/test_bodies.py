"""Bodies that can be read are shown for what they say."""

from __future__ import annotations

import pytest

from openmsmq.model.identity import Guid, MessageId, SequenceId
from openmsmq.wire import packets
from openmsmq.wire.bodies.acknowledgments import FinalAck, OrderAck
from openmsmq.wire.bodies.notifications import Event, ManagerNotification
from openmsmq.wire.bodies.order_packets import order_packet
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.queue_names import DirectName, PrivateOnDestination
from openmsmq.wire.headers.security import BODY_ENCRYPTED, SecurityHeader
from openmsmq.wire.text.tree import Node, view
from tests.unit.wire.tree_checks import SOURCE, assert_tiled, body_of, find, message


@pytest.mark.parametrize("to", [Guid.parse("aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"), "10.0.0.1"])
def test_an_order_ack_is_shown_inside_its_message(to):
    ack = OrderAck.up_to(SequenceId(1, 0x5F00_0000), 8)
    packet = order_packet(
        ack, source=SOURCE, to=to, message_number=7, sent_time_s=0, time_to_reach_queue_s=9
    )
    shown = view(packets.encode(packet))
    assert shown.name == "OrderAck"
    assert shown.summary.endswith("express, #7, ORDER_ACK, sequence 0x5f00000000000001 up to 8")
    body = body_of(shown)
    assert body.meaning == "OrderAck"
    numbers = {node.name: node.value for node in body.children}
    assert numbers["TxSequenceNumber"] == 8
    assert_tiled(body.children, body.offset, body.offset + 36)


def test_a_final_ack_is_shown_inside_its_message():
    ack = FinalAck(SequenceId(1, 2), 3, 2, MessageId(SOURCE, 44))
    packet = order_packet(
        ack,
        0x4000,
        source=SOURCE,
        to=SOURCE,
        message_number=7,
        sent_time_s=0,
        time_to_reach_queue_s=9,
    )
    shown = view(packets.encode(packet))
    assert shown.name == "FinalAck"
    assert f"ACK_RECEIVE, sequence 0x200000001 number 3, message {{{SOURCE}}}\\44" in shown.summary
    assert body_of(shown).children[-1].value == 44


@pytest.mark.parametrize(
    "destination", [PrivateOnDestination(3), DirectName(r"OS:beta\PRIVATE$\notify_queue$")]
)
def test_a_notification_is_shown_inside_its_message(destination):
    notification = ManagerNotification(Event.QUEUE_CHANGED, SOURCE, "dc.example", b"")
    encoded = notification.encode()
    properties = MessageProperties(
        body=encoded + b"junk!", body_size=len(encoded), allocated_size=len(encoded) + 5
    )
    shown = view(message(properties, destination))
    assert shown.name == "ManagerNotification"
    assert f"QUEUE_CHANGED {SOURCE}" in shown.summary
    body = body_of(shown)
    assert body.children[-1] == Node("unused", body.offset + len(encoded), 5, b"junk!".hex())
    assert_tiled(body.children, body.offset, body.offset + body.size)


def test_what_is_no_notification_is_a_body_like_any_other():
    shown = view(message(MessageProperties.of(b"hello"), PrivateOnDestination(3)))
    assert shown.name == "UserMessage"
    assert body_of(shown).meaning == '"hello"'


@pytest.mark.parametrize(
    ("body", "body_type", "meaning"),
    [
        ("héllo\0rest".encode("utf-16-le"), 8, '"héllo"'),
        ("wide".encode("utf-16-le"), 31, '"wide"'),
        (b'<?xml version="1.0"?>\r\n', 0, r'"<?xml version=\"1.0\"?>\r\n"'),
        (b"bytes", 0x1011, '"bytes"'),
        (b"\x1b[2J", 0, ""),
        (b"\xff\xfe", 0, ""),
        (b"1234", 3, ""),
    ],
)
def test_a_body_that_is_text_is_shown_as_text(body, body_type, meaning):
    shown = view(message(MessageProperties.of(body, body_type=body_type)))
    assert body_of(shown).value == body.hex()
    assert body_of(shown).meaning == meaning


def test_only_the_body_itself_is_read_as_text_and_not_what_lies_behind_it():
    properties = MessageProperties(body=b"hello\xff\xff\xff", body_size=5, allocated_size=8)
    assert body_of(view(message(properties))).meaning == '"hello"'


def test_an_encrypted_body_is_not_read():
    security = SecurityHeader(encryption_key=b"key", flags=BODY_ENCRYPTED)
    shown = view(message(MessageProperties.of(b"hello"), security=security))
    assert body_of(shown).meaning == ""


def test_body_types_and_correlation_are_explained_when_known():
    properties = MessageProperties.of(body_type=8, correlation_id=MessageId(SOURCE, 5).to_bytes())
    shown = view(message(properties))
    assert find(shown, "MessagePropertiesHeader", "BodyType").meaning == "TEXT"
    correlation = find(shown, "MessagePropertiesHeader", "CorrelationID")
    assert correlation.meaning == f"{{{SOURCE}}}\\5"
    unknown = view(message(MessageProperties.of(body_type=999)))
    assert find(unknown, "MessagePropertiesHeader", "BodyType").meaning == ""
    assert find(unknown, "MessagePropertiesHeader", "CorrelationID").meaning == ""
