"""A queue manager that a test plays, and that keeps the rules of sessions by itself."""

from __future__ import annotations

from typing import Any

import msgspec

from openmsmq.model.identity import NIL_GUID, Guid, SequenceId
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import MessageClass
from openmsmq.wire.bodies.acknowledgments import FinalAck, OrderAck
from openmsmq.wire.bodies.order_packets import order_packet
from openmsmq.wire.framing import take_packets
from openmsmq.wire.headers import user
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.establish import EstablishHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.parameters import ParametersHeader
from openmsmq.wire.headers.queue_names import DirectName, QueueName
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.headers.transaction import TransactionHeader
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
from tests.transfer.network import START_S, Computer, Network, Peer, neighbour_identifier

ORDERS = r"private$\orders"
LEDGER = r"private$\ledger"


class Neighbour(Peer):
    """Opens sessions, takes them, acknowledges each message at once and counts its own.

    What it does not do by itself is up to the test: to be silent, to say how far a sequence came.
    """

    def __init__(self, network: Network, address: str, *, window: int = 64) -> None:
        super().__init__(network, address)
        self.identifier = neighbour_identifier(address)
        network.computers[address] = self
        self.window = window
        self.acknowledges = True
        self.opened_count = 0
        """Sessions so far."""
        self.requests: list[EstablishConnection] = []
        """How others asked for a session."""
        self.parameters: list[ConnectionParameters] = []
        self.headers: list[SessionHeader] = []
        """All session headers, alone or on messages."""
        self.arrived: list[tuple[int, UserMessage]] = []
        """All user messages and when they came."""
        self._is_initiator = False
        self._reset()

    def _reset(self) -> None:
        self.received_count = self.stored_count = 0
        self.sent_count = self.recoverable_sent_count = 0

    # Events of the network.

    def accepted(self, session: int, address: str) -> None:
        super().accepted(session, address)
        self._is_initiator = False
        self._reset()

    def connected(self, session: int) -> None:
        super().connected(session)
        self._is_initiator = True
        self._reset()

    def data(self, session: int, data: bytes) -> None:
        super().data(session, data)
        for packet in self.take():
            self._answer(packet)

    def _answer(self, packet: Packet) -> None:
        match packet:
            case EstablishConnection():
                self.requests.append(packet)
                if not self._is_initiator:
                    answer = msgspec.structs.replace(packet.establish, server=self.identifier)
                    self._put(msgspec.structs.replace(packet, establish=answer))
            case ConnectionParameters():
                self.parameters.append(packet)
                self.opened_count += 1
                if not self._is_initiator:
                    settled = msgspec.structs.replace(packet.parameters, window=self.window)
                    self._put(msgspec.structs.replace(packet, parameters=settled))
            case SessionAck():
                self.headers.append(packet.session)
            case UserMessage():
                if packet.session is not None:
                    self.headers.append(packet.session)
                self._heed(packet)

    def _heed(self, message: UserMessage) -> None:
        self.arrived.append((self.network.now.ticks_ms, message))
        self.received_count += 1
        stored = message.user.flags & user.DELIVERY == user.RECOVERABLE
        self.stored_count += stored
        if self.acknowledges:
            self._put(
                self.ack(received=self.received_count, base=self.stored_count, bits=int(stored))
            )

    def _put(self, packet: Packet | bytes) -> None:
        data = packet if isinstance(packet, bytes) else encode(packet)
        self.network.send(self.address, self.session, data)

    # What a test does.

    @property
    def messages(self) -> list[UserMessage]:
        """All user messages so far."""
        return [message for _, message in self.arrived]

    @property
    def bodies(self) -> list[bytes]:
        """The bodies of all user messages so far."""
        return [message.properties.body for message in self.messages]

    @property
    def moments(self) -> list[int]:
        """When each of them came."""
        return [moment for moment, _ in self.arrived]

    def ack(self, *, received: int, base: int = 0, bits: int = 0, window: int = 0) -> SessionAck:
        """Make a session acknowledgment with the right counts of what was sent."""
        return SessionAck(
            SessionHeader(
                received,
                base if bits else 0,
                bits,
                self.sent_count & 0xFFFF,
                self.recoverable_sent_count & 0xFFFF,
                window or self.window,
            )
        )

    def open(self, address: str, *, ack_ms: int = 20_000, recoverable_ms: int = 500) -> None:
        """Open a session as the initiator."""
        self.connect(address)
        self.write(EstablishConnection(EstablishHeader(self.identifier, NIL_GUID)))
        self.write(ConnectionParameters(ParametersHeader(recoverable_ms, ack_ms, self.window)))

    def say(self, *messages: UserMessage, at_a_time: int = 0) -> None:
        """Send user messages and count them."""
        for message in messages:
            self.sent_count += 1
            flags = message.user.flags
            self.recoverable_sent_count += flags & user.DELIVERY == user.RECOVERABLE
        self.write(*messages, at_a_time=at_a_time)

    def message(
        self,
        to: QueueName | str,
        body: bytes = b"body",
        *,
        manager: Guid = NIL_GUID,
        recoverable: bool = True,
        place: tuple[SequenceId, int, int] | None = None,
        time_to_reach_queue_s: int = INFINITE_S,
        flags: int = 0,
        admin: QueueName = None,
        **properties: Any,
    ) -> UserMessage:
        """Make a message to a queue, given by the text of a direct name or as the wire has it."""
        self.number += 1
        transaction = None if place is None else TransactionHeader(*place)
        return UserMessage(
            UserHeader(
                self.identifier,
                manager,
                sent_time_s=START_S,
                message_number=self.number,
                flags=flags | (user.RECOVERABLE if recoverable or place else 0),
                destination=DirectName(to) if isinstance(to, str) else to,
                admin_queue=admin,
            ),
            MessageProperties.of(body, **properties),
            BaseHeader(3, time_to_reach_queue_s),
            transaction,
        )

    def order_ack(self, message: UserMessage) -> UserMessage:
        """Make the order acknowledgment of all messages up to one."""
        assert message.transaction is not None
        return order_packet(
            OrderAck.up_to(message.transaction.sequence, message.transaction.number),
            source=self.identifier,
            to=message.user.source,
            message_number=0x1000 + message.transaction.number,
            sent_time_s=START_S,
            time_to_reach_queue_s=INFINITE_S,
        )

    def carrying(self, ack: FinalAck, reason: MessageClass, to: Guid) -> UserMessage:
        """Make the message that brings a final acknowledgment."""
        return order_packet(
            ack,
            reason,
            source=self.identifier,
            to=to,
            message_number=0x2000,
            sent_time_s=START_S,
            time_to_reach_queue_s=INFINITE_S,
        )


def packets_in(sent: list[bytes]) -> list[Packet]:
    """Cut what a queue manager wrote to its sessions, one after the other, into packets."""
    return [decode(packet) for packet in take_packets(bytearray().join(sent))]


def asked_count(computer: Computer) -> int:
    """How often a queue manager has asked for a session."""
    return sum(
        isinstance(packet, EstablishConnection) and packet.establish.client == computer.identifier
        for packet in packets_in(computer.sent)
    )


def to_orders(address: str) -> str:
    """The wire text of the direct name of a plain queue."""
    return rf"TCP:{address}\{ORDERS}"


def to_ledger(address: str) -> str:
    """The wire text of the direct name of a transactional queue."""
    return rf"TCP:{address}\{LEDGER}"


def numbered(count: int, first: int = 0) -> list[bytes]:
    """Bodies that tell their order."""
    return [b"%d" % number for number in range(first, first + count)]


class Gateway:
    """Several queue managers behind one address: what NAT makes of a network."""

    def __init__(self, network: Network, address: str) -> None:
        self.network = network
        self.address = address
        self.listener: Neighbour | None = None
        """Who gets the connections of others; None refuses them."""
        self._inside: list[Neighbour] = []

    def add(self, identifier: bytes, **options: int) -> Neighbour:
        """Put one more queue manager behind the address."""
        neighbour = Neighbour(self.network, self.address, **options)
        neighbour.identifier = Guid(identifier)
        neighbour.first_session(1_000 * len(self._inside))
        self._inside.append(neighbour)
        self.network.computers[self.address] = self  # type: ignore[assignment]
        return neighbour

    def accepted(self, session: int, address: str) -> None:
        """Somebody has connected."""
        if self.listener is None:
            self.network.disconnect(self.address, session)
        else:
            self.listener.accepted(session, address)

    def connected(self, session: int) -> None:
        """A connection of one of them is there."""
        self._inside[session // 1_000].connected(session)

    def data(self, session: int, data: bytes) -> None:
        """Bytes came; everybody knows his own session."""
        for each in self._inside:
            if each.session == session:
                each.data(session, data)

    def lost(self, session: int) -> None:
        """A connection is gone."""
        for each in self._inside:
            each.lost(session)
