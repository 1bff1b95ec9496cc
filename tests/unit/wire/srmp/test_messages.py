"""Messages become envelopes and packets again, and say the same."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import NIL_GUID, Guid, MessageId, SequenceId
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import MessageClass
from openmsmq.wire.bodies.acknowledgments import ORDER_LABEL, FinalAck, OrderAck
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.headers import transaction, user
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.message_properties import (
    NEGATIVE_ARRIVAL,
    NEGATIVE_RECEIVE,
    POSITIVE_ARRIVAL,
    POSITIVE_RECEIVE,
    MessageProperties,
    label_bytes,
)
from openmsmq.wire.headers.queue_names import DirectName, PrivateName, PrivateOnSource, PublicName
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage, decode
from openmsmq.wire.srmp.arriving import (
    arrived_message,
    arrived_packet,
    final_class_in,
    order_ack_in,
)
from openmsmq.wire.srmp.compound import Compound, read_compound
from openmsmq.wire.srmp.departing import departing
from openmsmq.wire.srmp.envelope import Envelope, Services
from openmsmq.wire.srmp.reading import read_envelope
from tests.golden import golden_post
from tests.strategies.envelopes import envelopes
from tests.strategies.packets import guids, u32

SOURCE = Guid(bytes(range(16)))
NOW_S = 1_700_000_000
QUEUE = DirectName("HTTP://beta:8080/msmq/private$/orders")
ADMIN = DirectName("HTTPS://alpha/msmq/private$/told")


def carried(message: UserMessage, receipts_to: str = "") -> UserMessage:
    """Send a message and read what comes."""
    request = departing(message, receipts_to)
    parts = read_compound(dict(request.headers)["Content-Type"], request.content)
    return arrived_message(read_envelope(parts.envelope), parts, NOW_S)


_texts = st.text(st.characters(min_codepoint=32, max_codepoint=0xD7FF), max_size=60)
_bodies = st.binary(max_size=200)


@st.composite
def _messages(draw: st.DrawFn) -> UserMessage:
    body = draw(_bodies)
    flags = draw(st.sampled_from([0, user.RECOVERABLE]))
    flags |= draw(st.sampled_from([0, user.JOURNAL_ON_FAILURE, user.JOURNAL_ON_SUCCESS]))
    wanted = draw(
        st.sampled_from(
            [
                0,
                POSITIVE_ARRIVAL,
                POSITIVE_RECEIVE,
                NEGATIVE_RECEIVE | NEGATIVE_ARRIVAL,
                POSITIVE_ARRIVAL | POSITIVE_RECEIVE | NEGATIVE_RECEIVE | NEGATIVE_ARRIVAL,
            ]
        )
    )
    place = draw(
        st.none()
        | st.builds(
            TransactionHeader,
            st.builds(SequenceId, u32, u32),
            st.integers(1, 0xFFFFFFFF),
            u32,
            st.sampled_from([0, transaction.FIRST, transaction.LAST]),
        )
    )
    if place is not None:
        flags |= user.RECOVERABLE
        if flags & user.JOURNAL_ON_FAILURE:
            place = msgspec.structs.replace(place, flags=place.flags | transaction.FINAL_ACK)
    lifetimes = st.integers(0, 1_000_000) | st.just(INFINITE_S)
    return UserMessage(
        UserHeader(
            draw(guids),
            time_to_be_received_s=draw(lifetimes),
            sent_time_s=NOW_S,
            message_number=draw(st.integers(2, 0xFFFFFFFF)),
            flags=flags,
            destination=QUEUE,
            admin_queue=ADMIN if wanted else None,
            response_queue=draw(
                st.none()
                | st.just(ADMIN)
                | st.just(DirectName("OS:alpha\\private$\\q"))
                | st.builds(PublicName, guids)
                | st.builds(PrivateName, guids, st.integers(1, 0xFFFF))
            ),
            connector_type=draw(st.none() | guids),
        ),
        MessageProperties(
            body=body,
            label=label_bytes(draw(_texts)),
            correlation_id=draw(st.binary(min_size=20, max_size=20)),
            body_type=draw(u32),
            application_tag=draw(u32),
            body_size=len(body),
            allocated_size=len(body),
            hash_algorithm=draw(u32),
            extension=draw(_bodies),
            acknowledge=wanted,
        ),
        BaseHeader(draw(st.integers(0, 7)), time_to_reach_queue_s=draw(lifetimes)),
        place,
    )


@given(_messages())
def test_a_message_says_the_same_after_its_way(message: UserMessage) -> None:
    arrived = carried(message)
    header = arrived.user
    assert header.flags & user.OVER_HTTP
    destination = header.destination
    assert isinstance(destination, DirectName)
    assert destination.text == "http" + QUEUE.text[4:]
    same = msgspec.structs.replace(
        header,
        flags=header.flags & ~user.OVER_HTTP,
        destination=QUEUE,
        admin_queue=None if header.admin_queue is None else ADMIN,
        response_queue=ADMIN if message.user.response_queue == ADMIN else header.response_queue,
    )
    assert msgspec.structs.replace(arrived, user=same) == message


@given(envelopes, st.binary(max_size=50))
def test_every_envelope_is_a_packet_or_refused(envelope: Envelope, body: bytes) -> None:
    try:
        packet = arrived_packet(envelope, Compound(b"", body), NOW_S)
    except DecodeError:
        return
    found = decode(packet)
    assert isinstance(found, UserMessage)
    assert found.properties.body == body


def test_receipts_for_a_message_are_read_as_acknowledgments() -> None:
    for name, expected in (
        ("mqsrm-4.3-delivery-receipt", MessageClass.ACK_REACH_QUEUE),
        ("mqsrm-4.3-commitment-receipt", MessageClass.ACK_RECEIVE),
    ):
        headers, content = golden_post(name)
        parts = read_compound(headers["content-type"], content)
        message = arrived_message(read_envelope(parts.envelope), parts, NOW_S)
        assert message.properties.message_class == expected
        told_of = MessageId.from_bytes(message.properties.correlation_id)
        assert told_of == MessageId(NIL_GUID, 1)
        again = departing(message, "")
        assert dict(again.headers)["Content-Type"] == "text/xml"
        # A report is made in the moment of which it tells; in the example it is 3 s apart.
        assert again.content == content.replace(
            b"receivedAt>20070719T032454", b"receivedAt>20070719T032451"
        )


@pytest.mark.spec("MQSRM-2.2.4.1-04")
def test_a_receipt_of_a_stream_is_what_the_example_says() -> None:
    headers, content = golden_post("mqsrm-4.4-stream-receipt-1")
    envelope = read_envelope(read_compound(headers["content-type"], content).envelope)
    ack = order_ack_in(envelope)
    sequence = SequenceId.from_int(4839986701558349830)
    assert ack == OrderAck.up_to(sequence, 1)
    assert envelope.stream_receipt is not None
    assert envelope.msmq is not None
    body = ack.encode()
    url = "HTTP://machine1/MSMQ/private$/order_queue$?SenderStream=XRntV"
    request = departing(
        UserMessage(
            UserHeader(
                envelope.msmq.source,
                envelope.stream_receipt.source,
                sent_time_s=1182272398,
                message_number=26641,
                destination=DirectName(url),
                response_queue=DirectName("http://machine2/msmq/private$/tsimpleq"),
            ),
            MessageProperties(
                body=body,
                label=label_bytes(ORDER_LABEL),
                message_class=MessageClass.ORDER_ACK,
                body_size=len(body),
                allocated_size=len(body),
            ),
            BaseHeader(0, time_to_reach_queue_s=345_600),
        ),
        "",
    )
    assert request.url == "http://machine1/MSMQ/private$/order_queue$?SenderStream=XRntV"
    assert request.content == content.replace(b"/receipts?", b"/order_queue$?")


def test_the_end_of_a_message_of_a_stream_comes_back_as_it_was_told() -> None:
    ack = FinalAck(SequenceId(6, 7), 3, 2, MessageId(SOURCE, 99))
    body = ack.encode()
    for kind in (MessageClass.ACK_RECEIVE, MessageClass.NACK_QUEUE_PURGED):
        request = departing(
            UserMessage(
                UserHeader(
                    NIL_GUID,
                    SOURCE,
                    flags=user.RECOVERABLE,
                    destination=DirectName("http://a/msmq/private$/order_queue$"),
                ),
                MessageProperties(
                    body=body,
                    label=label_bytes(ORDER_LABEL),
                    message_class=kind,
                    body_size=len(body),
                    allocated_size=len(body),
                ),
            ),
            "",
        )
        envelope = read_envelope(request.content)
        assert envelope.services == Services(durable=True)
        assert (order_ack_in(envelope), final_class_in(envelope)) == (ack, kind)


def test_without_a_part_of_message_queuing_the_expiry_is_that_of_the_way() -> None:
    headers, content = golden_post("mqsrm-4.1-simple")
    parts = read_compound(headers["content-type"], content)
    message = arrived_message(read_envelope(parts.envelope), parts, NOW_S)
    assert message.base.time_to_reach_queue_s == 86_400
    assert message.user.time_to_be_received_s == INFINITE_S
    assert (message.user.source, message.user.message_number) == (NIL_GUID, 1)
    assert message.properties.label_text == "mqsender label"
    assert message.base.priority == 3


def test_with_it_there_are_two_lifetimes() -> None:
    headers, content = golden_post("mqsrm-4.2-msmq-element")
    parts = read_compound(headers["content-type"], content)
    message = arrived_message(read_envelope(parts.envelope), parts, NOW_S)
    assert message.base.time_to_reach_queue_s == 345_600
    assert message.user.time_to_be_received_s == INFINITE_S


def test_a_message_of_a_stream_is_recoverable_whatever_it_says() -> None:
    headers, content = golden_post("mqsrm-4.4-stream-2")
    parts = read_compound(headers["content-type"], content)
    message = arrived_message(read_envelope(parts.envelope), parts, NOW_S)
    assert message.user.recoverable
    assert message.transaction is not None
    assert (message.transaction.number, message.transaction.previous_number) == (2, 1)


def test_a_private_queue_of_the_sender_is_named_with_its_sender() -> None:
    message = UserMessage(
        UserHeader(SOURCE, destination=QUEUE, response_queue=PrivateOnSource(7)),
        MessageProperties.of(b""),
    )
    assert carried(message).user.response_queue == PrivateName(SOURCE, 7)
