"""Reading along on the wire: no acknowledgment may leave before what it promises is durable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.sim.checks.facts import Kind, SimMessage, number_in
from openmsmq.sim.violation import Violation
from openmsmq.wire import message_bytes, packets
from openmsmq.wire.bodies.acknowledgments import OrderAck
from openmsmq.wire.bodies.order_packets import acknowledgment_in
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.framing import FrameBuffer
from openmsmq.wire.headers import base, user
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.outline import outline
from openmsmq.wire.packets import SessionAck, UserMessage
from openmsmq.wire.text.summaries import name, summary

if TYPE_CHECKING:
    from openmsmq.sim.checks.books import Books
    from openmsmq.sim.enterprise.enterprise import Enterprise, Era
    from openmsmq.sim.node import Node
    from openmsmq.sim.world import World

_ORDER_LABEL: Final = "QM Ordering Ack".encode("utf-16-le")
_BITS_COUNT: Final = 32


class WirePacket(msgspec.Struct, frozen=True):
    """A packet that left a node, for the trace."""

    name: str
    text: str
    message: int | None = None


class Flow:
    """What one side of a connection has sent on it."""

    __slots__ = ("buffer", "node", "other", "recoverables")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.other: Flow | None = None
        self.buffer = FrameBuffer()
        self.recoverables: list[SimMessage | None] = []
        """The recoverable packets in the order of sending; None for those of queue managers."""


class Hops(NamedTuple):
    """How far a packet has come."""

    era: Era
    """When it was seen last."""
    before: int
    """The hops it had made when that era began."""
    most: int
    """The hops it has made."""


class WireWatch:
    """Looks at every packet as it leaves its node."""

    def __init__(self, books: Books, world: World) -> None:
        self._books = books
        self._world = world
        self._numbered: dict[tuple[int, int], dict[int, SimMessage]] = {}
        """By source, sequence and destination: the message under each number."""
        self.packet_count = 0
        self.hop_count_max = 0
        """The largest hop count of a packet in an enterprise."""
        self._hops: dict[bytes, Hops] = {}
        """By packet, whoever sent it."""

    def leaves(self, flow: Flow, data: bytes) -> list[WirePacket]:
        """Look at bytes that a node writes; give the packets that are whole with them."""
        flow.buffer.feed(data)
        found: list[WirePacket] = []
        wanted = self._world.trace.wanted
        adversary = self._world.adversary if flow.other is not None else None
        try:
            while (packet := flow.buffer.next_packet()) is not None:
                self.packet_count += 1
                message = self._packet(flow, packet)
                if adversary is not None and flow.other is not None:
                    adversary.overhears(packet, flow.node, flow.other.node)
                if wanted:
                    decoded = packets.decode(packet)
                    number = None if message is None else message.number
                    found.append(WirePacket(name(decoded), summary(decoded), number))
        except DecodeError as error:
            raise Violation(f"{flow.node.name} sent bytes that nobody can read: {error}") from error
        return found

    def _packet(self, flow: Flow, packet: bytes) -> SimMessage | None:
        flags = message_bytes.base_flags(packet)
        if flags & base.INTERNAL:
            decoded = packets.decode(packet)
            if isinstance(decoded, SessionAck):
                self._check_stored(flow, decoded.session)
            return None
        message = self._user_message(flow, packet)
        if flags & base.SESSION:
            whole = packets.decode(packet)
            if isinstance(whole, UserMessage) and whole.session is not None:
                self._check_stored(flow, whole.session)
        return message

    def _user_message(self, flow: Flow, packet: bytes) -> SimMessage | None:
        found = outline(packet)
        if self._world.enterprise is not None:
            self.check_hop(flow, packet, found.flags, self._world.enterprise)
        message_class = message_bytes.message_class(packet, found)
        number = number_in(message_bytes.body(packet, found))
        message = None
        if number is not None and not message_class:
            message = self._books.messages.get(number)
            if message is None:
                raise Violation(f"{flow.node.name} sent message {number}, which nobody gave it")
            self._sent(flow, message, packet, found.flags)
        elif _ORDER_LABEL in packet:
            self._acknowledgment(flow, packet)
        if found.flags & user.RECOVERABLE:
            flow.recoverables.append(message)
        return message

    def check_hop(self, flow: Flow, packet: bytes, flags: int, enterprise: Enterprise) -> None:
        """A packet goes to whom the rules allow, and makes few hops."""
        spent = flags & user.HOP_COUNT
        self.hop_count_max = max(self.hop_count_max, spent)
        before = self._hops_before(message_bytes.message_id(packet), spent, enterprise.era)
        goal = enterprise.index_of.get(Guid(message_bytes.destination_manager(packet)))
        if flow.other is None or goal is None:
            return
        number = number_in(packet)
        here, there = flow.node, flow.other.node
        goal_name = self._world.nodes[goal].name
        if spent > enterprise.hop_count_max(before):
            raise Violation(
                f"a packet for {goal_name} goes from {here.name} to {there.name} with hop count "
                f"{spent}, in an enterprise of {enterprise.plan.site_count} sites",
                messages=() if number is None else (number,),
            )
        if not spent and message_bytes.source(packet) != here.identifier:
            raise Violation(
                f"{here.name} passed on a packet for {goal_name} and did not count the hop",
                messages=() if number is None else (number,),
            )
        if not self._is_next_hop(here, there.index, goal, enterprise):
            raise Violation(
                f"{here.name} passed a packet for {goal_name} to {there.name}, which is no next "
                "hop",
                messages=() if number is None else (number,),
            )

    def _hops_before(self, packet: bytes, spent: int, era: Era) -> int:
        """Note a hop of a packet; give how many it had made when this era began."""
        known = self._hops.get(packet, Hops(era, 0, 0))
        before = known.before if known.era == era else known.most
        self._hops[packet] = Hops(era, before, max(known.most, spent))
        return before

    def _is_next_hop(self, here: Node, there: int, goal: int, enterprise: Enterprise) -> bool:
        """Whether a node may pass a message to another, by what it may know of the directory.

        That is between what its disk has and what it was told last.
        """
        known = self._books.watches[here.index].directory_number
        for state in range(known, max(known, here.told_number) + 1):
            # Who knows no way uses the session that the destination has opened, if there is one.
            if there in (enterprise.rules_at(state).next_hops(here.index, goal) or {goal}):
                return True
        # A session with the destination itself is kept when the directory names a way around.
        return there == goal and any(
            goal in enterprise.rules_at(state).next_hops(here.index, goal)
            for state in range(1, known)
        )

    def _sent(self, flow: Flow, message: SimMessage, packet: bytes, flags: int) -> None:
        if message.certain and flow.node.index not in message.durable_at:
            raise Violation(
                f"{flow.node.name} sent {message} ({message.kind.value}) before it was on its disk",
                messages=(message.number,),
            )
        message.on_wire = True
        if not flags & user.TRANSACTION:
            return
        sequence, number, _ = message_bytes.sequence_place(packet)
        known = self._numbered.setdefault((message.source.index, int(sequence)), {})
        twin = known.setdefault(number, message)
        if twin is not message:
            raise Violation(
                f"{message} and {twin} were sent under the same number {number} of a sequence",
                messages=(message.number, twin.number),
            )

    # Acknowledgments.

    def _check_stored(self, flow: Flow, header: SessionHeader) -> None:
        other = flow.other
        bits = header.stored_bits
        if not bits or other is None:
            return
        for bit in range(_BITS_COUNT):
            if not bits >> bit & 1:
                continue
            number = (header.stored_base + bit) & 0xFFFF
            if not 0 < number <= len(other.recoverables):
                raise Violation(
                    f"{flow.node.name} says that it stored recoverable packet {number}, and "
                    f"{other.node.name} sent it {len(other.recoverables)}"
                )
            self._check_safe(flow.node, other.recoverables[number - 1])

    def _check_safe(self, node: Node, message: SimMessage | None) -> None:
        # A transactional message is safe when its order acknowledgment comes, not before.
        if message is None or message.kind is Kind.TRANSACTIONAL:
            return
        if node.index not in message.durable_at and not self._may_be_dropped(message):
            raise Violation(
                f"{node.name} acknowledged {message} (recoverable) before it was on its disk",
                messages=(message.number,),
            )

    def _acknowledgment(self, flow: Flow, packet: bytes) -> None:
        decoded = packets.decode(packet)
        assert isinstance(decoded, UserMessage), "an internal packet with a label"
        receiver = self._receiver(decoded)
        if receiver is None:
            return
        found = acknowledgment_in(decoded, Guid(receiver.identifier))
        if not isinstance(found, OrderAck) or decoded.user.source != flow.node.identifier:
            return
        key = receiver.index, int(found.sequence)
        for number, message in self._numbered.get(key, {}).items():
            if (
                number <= found.number
                and flow.node.index not in message.durable_at
                and not self._may_be_dropped(message)
            ):
                raise Violation(
                    f"{flow.node.name} acknowledged the order up to {found.number}, and {message} "
                    f"with number {number} is not on its disk",
                    messages=(message.number,),
                )

    def _receiver(self, packet: UserMessage) -> Node | None:
        header = packet.user
        for node in self._world.nodes:
            match header.destination:
                case DirectName(text):
                    if text.upper().startswith(f"TCP:{node.address}\\"):
                        return node
                case _:
                    if header.destination_manager == node.identifier:
                        return node
        return None

    def _may_be_dropped(self, message: SimMessage) -> bool:
        return message.may_have_expired() or self._world.plan.may_refuse(message.queue)
