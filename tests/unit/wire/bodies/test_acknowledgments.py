"""The bodies of OrderAck and FinalAck."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import Guid, MessageId, SequenceId
from openmsmq.wire.bodies import acknowledgments
from openmsmq.wire.bodies.acknowledgments import FinalAck, OrderAck
from openmsmq.wire.errors import DecodeError, EncodeError
from tests.strategies.wire_parts import final_acks, order_acks, sequences
from tests.unit.wire.codec_checks import (
    assert_decodes_to_same_or_refused,
    assert_fields_cover,
    assert_no_prefix_decodes,
)

SEQUENCE = SequenceId(1, 0x5F00_0000)


@given(order_acks())
def test_an_order_ack_survives_the_wire(ack: OrderAck) -> None:
    assert OrderAck.decode(ack.encode()) == ack
    assert_fields_cover(ack.fields(), 36)


@given(final_acks())
def test_a_final_ack_survives_the_wire(ack: FinalAck) -> None:
    assert FinalAck.decode(ack.encode()) == ack
    assert_fields_cover(ack.fields(), 36)


@given(st.binary(min_size=36, max_size=36) | st.binary(max_size=40))
def test_any_bytes_are_an_acknowledgment_or_refused(body: bytes) -> None:
    assert_decodes_to_same_or_refused(OrderAck.decode, body)
    assert_decodes_to_same_or_refused(FinalAck.decode, body)


@pytest.mark.parametrize("kind", [OrderAck, FinalAck])
def test_only_36_bytes_are_an_acknowledgment(kind: type[OrderAck | FinalAck]) -> None:
    assert_no_prefix_decodes(kind.decode, bytes(36))
    with pytest.raises(DecodeError, match="37 bytes"):
        kind.decode(bytes(37))


@pytest.mark.spec("MQQB-2.2.4.1-03", "MQQB-2.2.4.1-04")
@given(sequences, st.integers(1, 0xFFFF_FFFF), st.binary(min_size=20, max_size=20))
def test_an_order_ack_names_a_sequence_a_number_and_the_one_before(
    sequence: SequenceId, number: int, reserved: bytes
) -> None:
    raw = OrderAck.up_to(sequence, number).encode()
    assert struct.unpack("<QII20s", raw) == (int(sequence), number, number - 1, bytes(20))
    found = OrderAck.decode(raw[:16] + reserved)
    assert (found.sequence, found.number) == (sequence, number)


def test_nothing_cannot_be_acknowledged() -> None:
    with pytest.raises(EncodeError, match="nothing"):
        OrderAck.up_to(SEQUENCE, 0)


def test_reserved_bytes_are_20_or_none() -> None:
    with pytest.raises(EncodeError, match="reserved"):
        OrderAck(SEQUENCE, 2, 1, b"short").encode()


def test_a_final_ack_names_the_message() -> None:
    source = Guid(range(16))
    ack = FinalAck(SEQUENCE, 8, 6, MessageId(source, 7))
    assert ack.encode().hex() == "010000000000005f0800000006000000" + source.hex() + "07000000"


def test_what_carries_acknowledgments_is_known() -> None:
    assert acknowledgments.ORDER_LABEL == "QM Ordering Ack"
    assert acknowledgments.ORDER_QUEUE_NUMBER == 4
    assert acknowledgments.ORDER_ACK_CLASS == 0x00FF
    assert acknowledgments.BODY_BYTES == 36
