"""Reading along on the wire: no acknowledgment may leave before what it promises is durable.

What sessions and sequences say is for `openmsmq.analysis`, as it is for captures; here it is held
against the disks, and what honest peers never do is a violation.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from openmsmq.analysis.events import Anomaly, Moment, SessionSummary, Settled
from openmsmq.analysis.kinds import AnomalyKind, Fate
from openmsmq.analysis.sequences import Sequence, acknowledgment
from openmsmq.analysis.session import SessionReader
from openmsmq.capture.link_layers import Endpoint
from openmsmq.capture.tcp_streams import Connection
from openmsmq.model.identity import Guid
from openmsmq.sim.checks.facts import Kind, SimMessage, number_in
from openmsmq.sim.violation import Violation
from openmsmq.wire import message_bytes, packets
from openmsmq.wire.bodies.acknowledgments import OrderAck
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.framing import take_packets
from openmsmq.wire.headers import user
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.packets import Packet, UserMessage
from openmsmq.wire.text.summaries import name, summary

if TYPE_CHECKING:
    from openmsmq.sim.checks.books import Books
    from openmsmq.sim.enterprise.enterprise import Enterprise, Era
    from openmsmq.sim.node import Node
    from openmsmq.sim.world import World

_NEVER: Final = frozenset({AnomalyKind.BAD_ACKNOWLEDGMENT, AnomalyKind.COUNT_MISMATCH})
"""What no honest peer does in a session, whatever befalls it."""
_PORTS: Final = (50_000, 1801)
"""Those of who opens a connection and of who accepts it."""


class WirePacket(msgspec.Struct, frozen=True):
    """A packet that left a node, for the trace."""

    name: str
    text: str
    message: int | None = None


class Flow(msgspec.Struct, eq=False):
    """What one side of a connection has sent on it."""

    node: Node
    unread: bytearray = bytearray()
    """The beginning of a packet, whose rest has not left yet."""
    other: Flow | None = None
    session: SessionReader[SimMessage | None] | None = None
    """Theirs, if both sides are honest."""
    endpoint: Endpoint | None = None


def join(first: Flow, second: Flow) -> None:
    """Two honest nodes are connected; the first has opened the connection."""
    first.other, second.other = second, first
    first.endpoint, second.endpoint = (
        Endpoint(ipaddress.ip_address(flow.node.address).packed, port)
        for flow, port in zip((first, second), _PORTS, strict=True)
    )
    connection = Connection(1, first.endpoint, second.endpoint, from_start=True)
    first.session = second.session = SessionReader(connection, Moment(0, 0), in_order=True)


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
        self._sequences: dict[tuple[int, int], Sequence[SimMessage]] = {}
        """By source and identifier."""
        self.packet_count = 0
        self.hop_count_max = 0
        """The largest hop count of a packet in an enterprise."""
        self._hops: dict[bytes, Hops] = {}
        """By packet, whoever sent it."""

    def leaves(self, flow: Flow, data: bytes) -> list[WirePacket]:
        """Look at bytes that a node writes; give the packets that are whole with them."""
        flow.unread += data
        found: list[WirePacket] = []
        wanted = self._world.trace.wanted
        adversary = self._world.adversary if flow.other is not None else None
        try:
            for packet in take_packets(flow.unread):
                self.packet_count += 1
                decoded = packets.decode(packet)
                message = None
                if isinstance(decoded, UserMessage):
                    message = self._user_message(flow, packet, decoded)
                self._heed_session(flow, decoded, message)
                if adversary is not None and flow.other is not None:
                    adversary.overhears(packet, flow.node, flow.other.node)
                if wanted:
                    number = None if message is None else message.number
                    found.append(WirePacket(name(decoded), summary(decoded), number))
        except DecodeError as error:
            raise Violation(f"{flow.node.name} sent bytes that nobody can read: {error}") from error
        return found

    def _user_message(self, flow: Flow, packet: bytes, decoded: UserMessage) -> SimMessage | None:
        if self._world.enterprise is not None:
            self.check_hop(flow, packet, decoded.user.flags, self._world.enterprise)
        properties = decoded.properties
        number = number_in(properties.body[: properties.body_size])
        if properties.message_class or number is None:
            self._heed_order(flow, decoded)
            return None
        message = self._books.messages.get(number)
        if message is None:
            raise Violation(f"{flow.node.name} sent message {number}, which nobody gave it")
        self._sent(flow, message, decoded)
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
                f"{spent}, in an enterprise of {enterprise.scenario.site_count} sites",
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
        known = self._books.disks.watches[here.index].directory_number
        for state in range(known, max(known, here.told_number) + 1):
            # Who knows no way uses the session that the destination has opened, if there is one.
            if there in (enterprise.rules_at(state).next_hops(here.index, goal) or {goal}):
                return True
        # A session with the destination itself is kept when the directory names a way around.
        return there == goal and any(
            goal in enterprise.rules_at(state).next_hops(here.index, goal)
            for state in range(1, known)
        )

    def _sent(self, flow: Flow, message: SimMessage, packet: UserMessage) -> None:
        if message.certain and flow.node.index not in message.durable_at:
            raise Violation(
                f"{flow.node.name} sent {message} ({message.kind.value}) before it was on its disk"
            )
        message.on_wire = True
        place = packet.transaction
        if place is None:
            return
        key = message.source.index, int(place.sequence)
        twin = self._sequences.setdefault(key, Sequence()).place(place.number, message)
        if twin is not message:
            raise Violation(
                f"{message} and {twin} were sent under the same number {place.number} of a sequence"
            )

    # Acknowledgments.

    def _heed_session(self, flow: Flow, packet: Packet, message: SimMessage | None) -> None:
        session = flow.session
        if session is None or flow.endpoint is None:
            return
        now = Moment(0, self._world.timeline.now_ms * 1_000_000)
        session.packet(flow.endpoint, packet, 0, now, message)
        for event in session.take():
            match event:
                case Settled(settled, Fate.ACKNOWLEDGED):
                    self._check_safe(flow.node, settled)
                case Anomaly(kind, description) if kind in _NEVER:
                    raise Violation(f"{flow.node.name} is no honest peer: {description}")
                case Settled() | Anomaly() | SessionSummary():
                    pass

    def _check_safe(self, node: Node, message: SimMessage | None) -> None:
        # A transactional message is safe when its order acknowledgment comes, not before.
        if message is None or message.kind is not Kind.RECOVERABLE:
            return
        if node.index not in message.durable_at and not self._may_be_dropped(message):
            raise Violation(
                f"{node.name} acknowledged {message} (recoverable) before it was on its disk"
            )

    def _heed_order(self, flow: Flow, packet: UserMessage) -> None:
        found = acknowledgment(packet)
        if not isinstance(found, OrderAck) or packet.user.source != flow.node.identifier:
            return
        receiver = self._receiver(packet)
        if receiver is None:
            return
        sequence = self._sequences.get((receiver.index, int(found.sequence)), Sequence())
        for number, message in sequence.take_up_to(found.number):
            if flow.node.index not in message.durable_at and not self._may_be_dropped(message):
                raise Violation(
                    f"{flow.node.name} acknowledged the order up to {found.number}, and {message} "
                    f"with number {number} is not on its disk"
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
        return message.may_have_expired() or self._books.may_be_refused(message)
