"""What a queue manager played by a test writes and reads: messages and their acknowledgments."""

from __future__ import annotations

from typing import Any

from openmsmq.api import messages as api
from openmsmq.model.identity import NIL_GUID, Guid, MessageId, SequenceId
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import MessageClass
from openmsmq.model.names import PrivateFormatName, parse_format_name
from openmsmq.wire.bodies.acknowledgments import FinalAck, OrderAck
from openmsmq.wire.bodies.order_packets import acknowledgment_in, order_packet
from openmsmq.wire.headers import user
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.queue_names import DirectName, PrivateOnDestination, QueueName
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import Packet, SessionAck, UserMessage
from tests.transfer.network import PEER_IDENTIFIER, Computer, Peer

SEQUENCE = SequenceId(7, 1_600_000_000)

ARRIVAL_ACK, RECEIVE_ACK, ARRIVAL_NACK, RECEIVE_NACK = 0x01, 0x02, 0x04, 0x08


def letter(
    source: Guid,
    number: int,
    destination: QueueName,
    body: bytes = b"body",
    *,
    manager: Guid = NIL_GUID,
    recoverable: bool = True,
    place: tuple[SequenceId, int, int] | None = None,
    final_ack: bool = False,
    journal_on_failure: bool = False,
    journal_on_success: bool = False,
    acknowledge: int = 0,
    admin_queue: QueueName = None,
    hops: int = 0,
    sent_time_s: int = 1_700_000_000,
    time_to_reach_queue_s: int = INFINITE_S,
    time_to_be_received_s: int = INFINITE_S,
    session: SessionHeader | None = None,
    **properties: Any,
) -> UserMessage:
    """Write a message as another queue manager sends it; `place` makes it transactional."""
    flags = (
        hops
        | (user.RECOVERABLE if recoverable else 0)
        | (user.JOURNAL_ON_FAILURE if journal_on_failure else 0)
        | (user.JOURNAL_ON_SUCCESS if journal_on_success else 0)
    )
    transaction = None
    if place is not None:
        transaction = TransactionHeader(*place, flags=0x02 if final_ack else 0)
    return UserMessage(
        UserHeader(
            source,
            manager,
            time_to_be_received_s,
            sent_time_s,
            number,
            flags,
            destination,
            admin_queue,
        ),
        MessageProperties.of(body, acknowledge=acknowledge, **properties),
        BaseHeader(0 if place else 3, time_to_reach_queue_s),
        transaction,
        session=session,
    )


def by_number(computer: Computer, queue: str) -> tuple[PrivateOnDestination, Guid]:
    """Return a queue of a computer as a message names it by number: the number, and whose it is."""
    name = parse_format_name(computer.ok(api.GetNames(queue)).private_name)
    assert isinstance(name, PrivateFormatName)
    return PrivateOnDestination(name.number), name.queue_manager


def direct(address: str, queue: str) -> DirectName:
    """Return a queue as a message names it by address."""
    return DirectName(rf"TCP:{address}\{queue}")


def order_ack(
    message: UserMessage,
    to: Guid,
    *,
    number: int | None = None,
    source: Guid = PEER_IDENTIFIER,
) -> UserMessage:
    """Tell the sender of a message that its sequence has come so far, or up to a number."""
    assert message.transaction is not None
    return order_packet(
        OrderAck.up_to(
            message.transaction.sequence,
            message.transaction.number if number is None else number,
        ),
        source=source,
        to=to,
        message_number=9_000,
        sent_time_s=message.user.sent_time_s,
        time_to_reach_queue_s=INFINITE_S,
    )


def final_ack(
    message: UserMessage, to: Guid, reason: MessageClass, *, source: Guid = PEER_IDENTIFIER
) -> UserMessage:
    """Tell the sender of a message what became of it."""
    assert message.transaction is not None
    place = message.transaction
    return order_packet(
        FinalAck(
            place.sequence,
            place.number,
            place.previous_number,
            MessageId(message.user.source, message.user.message_number),
        ),
        reason,
        source=source,
        to=to,
        message_number=9_001,
        sent_time_s=message.user.sent_time_s,
        time_to_reach_queue_s=INFINITE_S,
    )


def acknowledgments(
    packets: list[Packet], local: Guid
) -> list[tuple[int, OrderAck | FinalAck, UserMessage]]:
    """Find order and final acknowledgments: their class, what they say, and what carries them."""
    return [
        (packet.properties.message_class, ack, packet)
        for packet in packets
        if isinstance(packet, UserMessage) and (ack := acknowledgment_in(packet, local)) is not None
    ]


def order_acks(packets: list[Packet], local: Guid) -> list[OrderAck]:
    """Find what order acknowledgments say."""
    return [ack for _, ack, _ in acknowledgments(packets, local) if isinstance(ack, OrderAck)]


def final_acks(packets: list[Packet], local: Guid) -> list[tuple[int, int]]:
    """Find which messages ended, and how: class and message number."""
    return [
        (message_class, ack.message.number)
        for message_class, ack, _ in acknowledgments(packets, local)
        if isinstance(ack, FinalAck)
    ]


def letters_in(packets: list[Packet], local: Guid) -> list[UserMessage]:
    """Find messages that are no order or final acknowledgments."""
    return [
        packet
        for packet in packets
        if isinstance(packet, UserMessage) and acknowledgment_in(packet, local) is None
    ]


def session_ack(
    received_count: int, stored_base: int = 0, stored_bits: int = 0, **sent: int
) -> SessionAck:
    """Acknowledge on a session; `sent` is what the peer has sent itself."""
    return SessionAck(SessionHeader(received_count, stored_base, stored_bits, **sent))


def headers_in(packets: list[Packet]) -> list[SessionHeader]:
    """Find session headers, alone or on a message."""
    return [
        packet.session
        for packet in packets
        if isinstance(packet, (SessionAck, UserMessage)) and packet.session is not None
    ]


def let_pass(peer: Peer, ms: int) -> list[Packet]:
    """Let time pass, and give what came then or before."""
    peer.network.run(ms)
    return peer.take()
