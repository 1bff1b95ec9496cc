"""An envelope is what it says and of which class it is, both; or it is nothing."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given

from openmsmq.model.identity import Guid, MessageId
from openmsmq.model.message import MessageClass
from openmsmq.wire.srmp.envelope import (
    CommitmentReceipt,
    DeliveryReceipt,
    Envelope,
    Msmq,
    StreamReceipt,
)
from openmsmq.wire.srmp.kinds import Kind, kind_of
from tests.conformance.marks import shows
from tests.strategies.envelopes import envelopes

KINDS = "MQSRM-3.1.5.1.5"
SOMEBODY = Guid(bytes(range(16)))
ORDERING = "MSMQ:QM Ordering Ack"
DELIVERY = DeliveryReceipt(0, MessageId(SOMEBODY, 1))
POSITIVE = CommitmentReceipt(0, True, MessageId(SOMEBODY, 1))
NEGATIVE = CommitmentReceipt(0, False, MessageId(SOMEBODY, 1))
STREAM = StreamReceipt(SOMEBODY, 5, 1)
ENDS = (
    (POSITIVE, MessageClass.ACK_RECEIVE),
    (NEGATIVE, MessageClass.NACK_PURGED),
    (NEGATIVE, MessageClass.NACK_QUEUE_DELETED),
    (NEGATIVE, MessageClass.NACK_QUEUE_PURGED),
    (NEGATIVE, MessageClass.NACK_RECEIVE_TIMEOUT),
)


def envelope(
    message_class: int | None,
    *,
    action: str = "MSMQ:a label",
    delivery: DeliveryReceipt | None = None,
    commitment: CommitmentReceipt | None = None,
    stream: StreamReceipt | None = None,
) -> Envelope:
    return Envelope(
        to="http://a/msmq/q",
        action=action,
        delivery_receipt=delivery,
        commitment_receipt=commitment,
        stream_receipt=stream,
        msmq=None if message_class is None else Msmq(message_class, 3, 0, SOMEBODY, 0),
    )


@shows(KINDS, 2)
def test_without_a_receipt_and_of_no_class_it_is_a_message() -> None:
    assert kind_of(envelope(MessageClass.NORMAL)) is Kind.MESSAGE
    assert kind_of(envelope(None)) is Kind.MESSAGE


@shows(KINDS, 3)
def test_a_delivery_receipt_has_its_class_and_nothing_else() -> None:
    right = MessageClass.ACK_REACH_QUEUE
    assert kind_of(envelope(right, delivery=DELIVERY)) is Kind.DELIVERY_RECEIPT
    assert kind_of(envelope(right, delivery=DELIVERY, commitment=POSITIVE)) is None
    assert kind_of(envelope(right, delivery=DELIVERY, stream=STREAM, action=ORDERING)) is None


@shows(KINDS, 4)
def test_a_stream_receipt_has_its_class_and_its_label() -> None:
    right = MessageClass.ORDER_ACK
    assert kind_of(envelope(right, stream=STREAM, action=ORDERING)) is Kind.STREAM_RECEIPT
    assert kind_of(envelope(right, stream=STREAM)) is None
    assert kind_of(envelope(right, stream=STREAM, action="MSMQ:")) is None


@pytest.mark.parametrize(("end", "message_class"), ENDS)
@shows(KINDS, 5, 6)
def test_the_end_of_a_message_is_told_by_decision_and_class(
    end: CommitmentReceipt, message_class: MessageClass
) -> None:
    assert kind_of(envelope(message_class, commitment=end)) is Kind.COMMITMENT_RECEIPT
    final = envelope(message_class, commitment=end, stream=STREAM, action=ORDERING)
    assert kind_of(final) is Kind.FINAL_STREAM_RECEIPT
    assert kind_of(envelope(message_class, commitment=end, stream=STREAM)) is None


@shows(KINDS, 1)
def test_what_says_one_thing_and_is_of_the_class_of_another_is_nothing() -> None:
    """Every class beside every receipt: only those above are something."""
    right = {
        (None, None, None): {MessageClass.NORMAL},
        (DELIVERY, None, None): {MessageClass.ACK_REACH_QUEUE},
        (None, POSITIVE, None): {MessageClass.ACK_RECEIVE},
        (None, None, STREAM): {MessageClass.ORDER_ACK},
        (None, POSITIVE, STREAM): {MessageClass.ACK_RECEIVE},
    }
    negative = {each for each in MessageClass if each >= 0x8000}
    right[None, NEGATIVE, None] = right[None, NEGATIVE, STREAM] = negative
    receipts = product((None, DELIVERY), (None, POSITIVE, NEGATIVE), (None, STREAM))
    for delivery, commitment, stream in receipts:
        for message_class in (*MessageClass, None, 0x0003, 0x3FFF):
            found = kind_of(
                envelope(
                    message_class,
                    delivery=delivery,
                    commitment=commitment,
                    stream=stream,
                    action=ORDERING,
                )
            )
            wanted = right.get((delivery, commitment, stream), set())
            named = MessageClass.NORMAL if message_class is None else message_class
            assert (found is not None) is (named in wanted), (delivery, commitment, stream, named)


@given(envelopes)
def test_every_envelope_is_something_or_nothing(found: Envelope) -> None:
    kind = kind_of(found)
    assert (kind is None) or (kind is Kind.MESSAGE) is not found.is_receipt
