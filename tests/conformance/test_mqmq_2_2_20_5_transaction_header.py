"""TransactionHeader. [MQMQ 2.2.20.5]"""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.headers import transaction
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import RECOVERABLE
from openmsmq.wire.packets import UserMessage, encode
from tests.conformance import ours, peer
from tests.conformance.ours import decode_user_message

PLAIN = TransactionHeader(ours.SEQUENCE, 3, 2)
USER_FLAGS = peer.PLAIN_USER_FLAGS | peer.RECOVERABLE | peer.TRANSACTION
START = 16 + len(peer.user_header(USER_FLAGS))


def received(header: bytes) -> bytes:
    return peer.user_message(peer.user_header(USER_FLAGS), header, peer.properties_header())


def packet_with(header: TransactionHeader) -> UserMessage:
    packet: UserMessage = replace(
        ours.PLAIN, user=replace(ours.PLAIN.user, flags=RECOVERABLE), transaction=header
    )
    return packet


def read(data: bytes) -> TransactionHeader:
    header = decode_user_message(data).transaction
    assert header is not None
    return header


def test_each_field_stands_in_its_place() -> None:
    assert encode(packet_with(PLAIN)) == received(peer.transaction_header())
    assert read(received(peer.transaction_header())) == PLAIN


@pytest.mark.spec("MQMQ-2.2.20.5-02")
@given(st.booleans(), st.booleans(), st.booleans(), st.booleans(), st.integers(0, 0xFFFFF))
def test_the_flags_are_a_combination_of_those_that_mean_something(
    connector: bool, final_ack: bool, first: bool, last: bool, number: int
) -> None:
    expected = connector | final_ack << 1 | first << 2 | last << 3 | number << 4
    header = replace(
        PLAIN,
        flags=(
            (transaction.FINAL_ACK if final_ack else 0)
            | (transaction.FIRST if first else 0)
            | (transaction.LAST if last else 0)
            | number << transaction.TRANSACTION_NUMBER_SHIFT
        ),
        connector_manager=ours.QUEUE if connector else None,
    )
    data = encode(packet_with(header))
    assert struct.unpack_from("<I", data, START) == (expected,)
    found = read(data)
    assert (found.connector_manager is not None) == connector
    assert found.final_ack_wanted == final_ack
    assert found.first_in_transaction == first
    assert found.last_in_transaction == last
    assert found.transaction_number == number


@pytest.mark.spec("MQMQ-2.2.20.5-03", "MQMQ-2.2.20.5-20")
def test_a_connector_manager_is_there_exactly_when_it_is_announced() -> None:
    without = received(peer.transaction_header(0))
    announced = received(peer.transaction_header(1, peer.QUEUE))
    assert encode(packet_with(PLAIN)) == without
    assert encode(packet_with(replace(PLAIN, connector_manager=ours.QUEUE))) == announced
    assert len(announced) == len(without) + 16
    assert read(without).connector_manager is None
    assert read(announced).connector_manager == ours.QUEUE
    with pytest.raises(EncodeError):
        encode(packet_with(replace(PLAIN, flags=1)))
    cut = peer.user_message(peer.user_header(USER_FLAGS), peer.transaction_header(1, b"12345678"))
    with pytest.raises(DecodeError, match="TransactionHeader"):
        decode_user_message(cut)


@pytest.mark.parametrize(
    "bit",
    [
        pytest.param(bit, marks=pytest.mark.spec(f"MQMQ-2.2.20.5-{bit - 16:02}"), id=f"bit {bit}")
        for bit in range(24, 32)
    ],
)
def test_an_unused_bit_is_clear_when_sent_and_ignored_when_set(bit: int) -> None:
    for packet in (packet_with(PLAIN), ours.FULL):
        header = packet.transaction
        assert header is not None
        assert struct.unpack_from("<I", encode(packet), START)[0] >> bit & 1 == 0
    meant = 0xABCDE << 4 | 0b1110
    plain = decode_user_message(received(peer.transaction_header(meant)))
    data = received(peer.transaction_header(meant | 1 << bit))
    packet = decode_user_message(data)
    assert packet.transaction is not None
    assert packet.transaction.transaction_number == 0xABCDE
    assert packet.transaction.first_in_transaction
    assert packet.transaction.last_in_transaction
    assert packet.transaction.final_ack_wanted
    assert replace(packet.transaction, flags=meant) == plain.transaction
    assert replace(packet, transaction=plain.transaction) == plain
    assert encode(packet) == data


@pytest.mark.spec("MQMQ-2.2.20.5-21")
@given(st.binary(min_size=16, max_size=16))
def test_a_connector_manager_is_passed_on_as_it_is(connector: bytes) -> None:
    data = received(peer.transaction_header(1, connector))
    packet = decode_user_message(data)
    assert packet.transaction is not None
    assert packet.transaction.connector_manager == connector
    assert replace(packet.transaction, connector_manager=None) == PLAIN
    assert replace(packet, transaction=PLAIN) == packet_with(PLAIN)
    assert encode(packet) == data
