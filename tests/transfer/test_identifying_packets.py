"""What a packet is taken for: each kind has its marks, and none of them is missing unnoticed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from openmsmq.model.identity import NIL_GUID, MessageId, SequenceId
from openmsmq.model.limits import INFINITE_S, RETRY_CONNECT_MS
from openmsmq.model.message import MessageClass
from openmsmq.wire.bodies.acknowledgments import FinalAck
from openmsmq.wire.bodies.order_packets import order_packet
from openmsmq.wire.headers import base, user
from openmsmq.wire.headers.establish import EstablishHeader
from openmsmq.wire.headers.message_properties import label_bytes
from openmsmq.wire.headers.parameters import ParametersHeader
from openmsmq.wire.headers.queue_names import DirectName, PrivateOnDestination, QueueName
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.packets import (
    ConnectionParameters,
    EstablishConnection,
    SessionAck,
    UserMessage,
    encode,
)
from tests.transfer.neighbour import LEDGER, ORDERS, Neighbour, to_ledger, to_orders
from tests.transfer.network import BETA, PEER, Computer, Network

TO_PEER_LEDGER = rf"DIRECT=TCP:{PEER}\{LEDGER}"
BY_ADDRESS = DirectName(rf"TCP:{BETA}\PRIVATE$\order_queue$")
KEPT = {"journal_on_success": True, "journal_on_failure": True}


@pytest.fixture
def peer(network: Network) -> Neighbour:
    return Neighbour(network, PEER)


# The session's own packets.


def flags_of(packet: bytes) -> tuple[int, int]:
    """Return the flags of the base header, and the type in the internal header."""
    return int.from_bytes(packet[2:4], "little"), packet[18] & 0x0F


@pytest.mark.spec("MQQB-3.1.5.1.1-01", "MQQB-3.1.5.1.1-02", "MQQB-3.1.5.1.1-03")
def test_the_packets_of_a_session_are_known_by_their_flags_and_type(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    establish = encode(EstablishConnection(EstablishHeader(peer.identifier)))
    parameters = encode(ConnectionParameters(ParametersHeader(500, 20_000, 64)))
    ack = encode(SessionAck(SessionHeader()))
    assert [flags_of(packet)[1] for packet in (establish, parameters, ack)] == [2, 3, 1]
    assert all(flags_of(packet)[0] & base.INTERNAL for packet in (establish, parameters, ack))
    assert flags_of(ack)[0] & base.SESSION
    peer.connect(BETA)
    peer.write(establish)
    assert len(peer.requests) == 1
    peer.write(parameters)
    assert len(peer.parameters) == 1
    peer.write(ack)
    assert peer.is_open
    peer.say(peer.message(to_orders(BETA)))
    network.run(1_000)
    answers = [flags_of(data) for data in beta.sent]
    assert [kind for _, kind in answers] == [2, 3, 1]
    assert all(flags & base.INTERNAL for flags, _ in answers)
    assert answers[2][0] & base.SESSION


def retyped(
    packet: bytes, *, internal: bool = True, session: bool | None = None, kind: int
) -> bytes:
    changed = bytearray(packet)
    if not internal:
        changed[2] &= ~base.INTERNAL
    if session is not None:
        changed[2] = changed[2] & ~base.SESSION | (base.SESSION if session else 0)
    changed[18] = changed[18] & 0xF0 | kind
    return bytes(changed)


@pytest.mark.spec("MQQB-3.1.5.1.1-01", "MQQB-3.1.5.1.1-02", "MQQB-3.1.5.1.1-03")
@pytest.mark.parametrize(
    "first",
    [
        retyped(encode(EstablishConnection(EstablishHeader(NIL_GUID))), kind=3),
        retyped(encode(EstablishConnection(EstablishHeader(NIL_GUID))), kind=1),
        retyped(encode(EstablishConnection(EstablishHeader(NIL_GUID))), kind=0),
        retyped(encode(EstablishConnection(EstablishHeader(NIL_GUID))), internal=False, kind=2),
        retyped(encode(ConnectionParameters(ParametersHeader(500, 20_000, 64))), kind=2),
    ],
    ids=[
        "greeting typed parameters",
        "greeting typed acknowledgment",
        "greeting without type",
        "greeting not internal",
        "parameters typed greeting",
    ],
)
def test_a_packet_with_the_marks_of_another_kind_is_not_taken_for_its_own(
    beta: Computer, peer: Neighbour, first: bytes
) -> None:
    peer.connect(BETA)
    peer.write(first)
    assert not peer.is_open
    assert beta.sent == []


@pytest.mark.spec("MQQB-3.1.5.1.1-03")
def test_an_acknowledgment_without_session_header_acknowledges_nothing(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    peer.acknowledges = False
    for header in (False, True):
        beta.send(rf"DIRECT=TCP:{PEER}\{ORDERS}", b"kept", recoverable=True)
        network.run(RETRY_CONNECT_MS)
        count = peer.received_count
        ack = encode(peer.ack(received=count, base=1, bits=(1 << count) - 1))
        peer.write(retyped(ack, session=header, kind=1))
        network.run(100)
        assert peer.is_open is header
        assert beta.outgoing()[0].message_count == (0 if header else 1)


# Order acknowledgments.


def sent_entry(network: Network, beta: Computer, peer: Neighbour, **wishes: Any) -> UserMessage:
    beta.send(TO_PEER_LEDGER, b"entry", transactional=True, **wishes)
    network.run(100)
    return peer.messages[0]


def with_properties(message: UserMessage, **changes: Any) -> UserMessage:
    properties = msgspec.structs.replace(message.properties, **changes)
    return msgspec.structs.replace(message, properties=properties)


def to_queue(message: UserMessage, name: QueueName) -> UserMessage:
    manager = NIL_GUID if isinstance(name, DirectName) else message.user.destination_manager
    header = msgspec.structs.replace(message.user, destination=name, destination_manager=manager)
    return msgspec.structs.replace(message, user=header)


ACK_SPECS = ("MQQB-3.1.5.1.1-04", "MQQB-3.1.5.1.1-05", "MQQB-3.1.5.1.1-06", "MQQB-3.1.5.1.1-07")


@pytest.mark.spec(*ACK_SPECS, "MQQB-3.1.5.1.1-08")
@pytest.mark.parametrize("name", [PrivateOnDestination(4), BY_ADDRESS], ids=["number", "address"])
def test_an_order_acknowledgment_is_known_by_its_queue_label_size_and_class(
    network: Network, beta: Computer, peer: Neighbour, name: QueueName
) -> None:
    entry = sent_entry(network, beta, peer)
    ack = to_queue(peer.order_ack(entry), name)
    packet = encode(ack)
    assert flags_of(packet)[0] == 0
    assert ack.properties.label_text == "QM Ordering Ack"
    assert ack.properties.body_size == 0x24
    assert ack.properties.message_class == 0xFF
    peer.say(ack)
    assert beta.outgoing()[0].message_count == 0


@pytest.mark.spec(*ACK_SPECS[1:], "MQQB-3.1.5.1.1-08")
@pytest.mark.parametrize(
    "damage",
    [
        lambda ack: to_queue(ack, PrivateOnDestination(5)),
        lambda ack: to_queue(ack, DirectName(rf"TCP:{BETA}\PRIVATE$\orders")),
        lambda ack: with_properties(ack, label=label_bytes("QM ordering ack")),
        lambda ack: with_properties(ack, label=b""),
        lambda ack: with_properties(
            ack, body=ack.properties.body + b"\0", body_size=37, allocated_size=37
        ),
        lambda ack: with_properties(
            ack, body=ack.properties.body[:35], body_size=35, allocated_size=35
        ),
        lambda ack: with_properties(ack, message_class=MessageClass.NORMAL),
        lambda ack: with_properties(ack, message_class=MessageClass.ACK_REACH_QUEUE),
    ],
    ids=[
        "other number",
        "other name",
        "other label",
        "no label",
        "longer",
        "shorter",
        "normal class",
        "class of an arrival",
    ],
)
def test_what_lacks_a_mark_of_an_order_acknowledgment_is_none(
    network: Network, beta: Computer, peer: Neighbour, damage: Any
) -> None:
    entry = sent_entry(network, beta, peer)
    peer.say(damage(peer.order_ack(entry)))
    assert beta.outgoing()[0].message_count == 1
    assert peer.is_open
    peer.say(peer.order_ack(entry))
    assert beta.outgoing()[0].message_count == 0


@pytest.mark.spec("MQQB-3.1.5.1.1-04", *ACK_SPECS[1:], "MQQB-3.1.5.1.1-08")
@pytest.mark.usefixtures("beta")
def test_our_own_order_acknowledgments_have_all_their_marks(
    network: Network, peer: Neighbour
) -> None:
    peer.open(BETA)
    peer.say(peer.message(to_ledger(BETA), place=(SequenceId(1, 1), 1, 0)))
    network.run(500)
    (ack,) = peer.messages
    assert ack.base.flags == 0
    assert ack.session is None
    assert ack.user.destination == DirectName(rf"TCP:{PEER}\PRIVATE$\order_queue$")
    assert ack.properties.label_text == "QM Ordering Ack"
    assert ack.properties.body_size == len(ack.properties.body) == 0x24
    assert ack.properties.message_class == MessageClass.ORDER_ACK
    assert ack.user.flags & user.DELIVERY != user.RECOVERABLE


# Final acknowledgments.


def final_ack(peer: Neighbour, beta: Computer, entry: UserMessage, reason: int) -> UserMessage:
    assert entry.transaction is not None
    message = MessageId(beta.identifier, entry.user.message_number)
    ack = FinalAck(entry.transaction.sequence, entry.transaction.number, 0, message)
    peer.number += 1
    return order_packet(
        ack,
        reason,
        source=peer.identifier,
        to=beta.identifier,
        message_number=0x2000 + peer.number,
        sent_time_s=entry.user.sent_time_s,
        time_to_reach_queue_s=INFINITE_S,
    )


FINAL_SPECS = (
    "MQQB-3.1.5.1.1-09",
    "MQQB-3.1.5.1.1-10",
    "MQQB-3.1.5.1.1-11",
    "MQQB-3.1.5.1.1-12",
)


@pytest.mark.spec(*FINAL_SPECS)
@pytest.mark.parametrize("name", [PrivateOnDestination(4), BY_ADDRESS], ids=["number", "address"])
@pytest.mark.parametrize("reason", [0x4000, 0x8000, 0x8009, 0xC001, 0xFFFF])
def test_a_final_acknowledgment_is_known_by_its_queue_label_and_class(
    network: Network, beta: Computer, peer: Neighbour, name: QueueName, reason: int
) -> None:
    entry = sent_entry(network, beta, peer, **KEPT)
    peer.say(peer.order_ack(entry))
    ack = to_queue(final_ack(peer, beta, entry, reason), name)
    assert flags_of(encode(ack))[0] == 0
    assert ack.properties.label_text == "QM Ordering Ack"
    assert beta.outgoing()[0].unread_count == 1
    peer.say(ack)
    assert beta.outgoing()[0].unread_count == 0
    assert len(beta.messages("system$;journal")) == (reason == 0x4000)
    assert len(beta.messages("system$;deadxact")) == (reason != 0x4000)


@pytest.mark.spec(*FINAL_SPECS[1:])
@pytest.mark.parametrize(
    "damage",
    [
        lambda ack: to_queue(ack, PrivateOnDestination(5)),
        lambda ack: with_properties(ack, label=label_bytes("Something else")),
        lambda ack: with_properties(ack, message_class=0x3FFF),
        lambda ack: with_properties(ack, message_class=MessageClass.NORMAL),
    ],
    ids=["other queue", "other label", "class too low", "normal class"],
)
def test_what_lacks_a_mark_of_a_final_acknowledgment_is_none(
    network: Network, beta: Computer, peer: Neighbour, damage: Any
) -> None:
    entry = sent_entry(network, beta, peer, **KEPT)
    peer.say(peer.order_ack(entry))
    peer.say(damage(final_ack(peer, beta, entry, 0x4000)))
    assert beta.outgoing()[0].unread_count == 1
    assert peer.is_open
    peer.say(final_ack(peer, beta, entry, 0x4000))
    assert beta.outgoing()[0].unread_count == 0


@pytest.mark.spec(*FINAL_SPECS)
def test_our_own_final_acknowledgments_have_all_their_marks(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    peer.open(BETA)
    place = SequenceId(1, 1), 1, 0
    peer.say(peer.message(to_ledger(BETA), place=place, flags=user.JOURNAL_ON_SUCCESS))
    beta.bodies(LEDGER, take=True)
    network.run()
    (ack,) = peer.messages
    assert ack.base.flags == 0
    assert ack.session is None
    assert ack.user.destination == DirectName(rf"TCP:{PEER}\PRIVATE$\order_queue$")
    assert ack.properties.label_text == "QM Ordering Ack"
    assert ack.properties.message_class == MessageClass.ACK_RECEIVE


# Everything else.


@pytest.mark.spec("MQQB-3.1.5.1.1-13")
def test_a_normal_message_is_one_without_the_internal_flag(beta: Computer, peer: Neighbour) -> None:
    peer.open(BETA)
    message = peer.message(to_orders(BETA), b"normal")
    assert not flags_of(encode(message))[0] & base.INTERNAL
    assert message.properties.message_class == MessageClass.NORMAL
    peer.say(message)
    assert beta.bodies(ORDERS) == [b"normal"]
    marked = bytearray(encode(message))
    marked[2] |= base.INTERNAL
    peer.write(bytes(marked))
    assert not peer.is_open
    assert beta.bodies(ORDERS) == [b"normal"]
