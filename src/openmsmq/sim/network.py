"""The network between nodes: ordered byte streams that stall, break and lie about it.

What TCP promises is kept: the bytes of one connection arrive in order or not at all. What it does
not promise is used: any cutting into pieces, one side that believes in a connection long after the
other gave it up, and bytes of an old connection that arrive when the next one is already open.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, cast

import msgspec

from openmsmq.model.limits import PING_PORT
from openmsmq.model.queue import ConnectionStatus
from openmsmq.sim.checks.wire_watch import Flow, join

if TYPE_CHECKING:
    import random
    from typing import TypeAlias

    from openmsmq.sim.hostile.hideout import Hideout
    from openmsmq.sim.node import Node
    from openmsmq.sim.remote.door import RemoteDoor
    from openmsmq.sim.remote.host import ReaderHost
    from openmsmq.sim.scenarios.scenario import NetworkHabits
    from openmsmq.sim.world import World

    Host: TypeAlias = Node | Hideout | RemoteDoor | ReaderHost
    """Whoever has an address: a node, its door for remote readers, one of those, the adversary."""

_ASKING_PORT: Final = 50_000
_CONNECT_TIMEOUT_MS: Final = 21_000
_RESET_MAX_MS: Final = 200
_DEAF_MIN_MS: Final = 1_000
_DEAF_MAX_MS: Final = 90_000


class End:
    """One side of a connection, as its node has it."""

    __slots__ = ("arrival_ms", "boot", "flow", "node", "open", "session", "under_way")

    def __init__(self, node: Host, session: int) -> None:
        self.node = node
        self.boot = node.boot
        self.session = session
        self.open = True
        """Whether the node still believes in it."""
        self.arrival_ms = 0
        """When the last byte that it sent arrives at the other side."""
        self.under_way: deque[bytes] = deque()
        """What it has sent and what has not arrived, in order."""
        # What the adversary sends is looked at by nobody.
        self.flow = Flow(cast("Node", node))

    @property
    def listens(self) -> bool:
        """Whether anything that arrives here is still heard."""
        return self.open and self.node.up and self.node.boot == self.boot


class Connection(msgspec.Struct, eq=False):
    """A TCP connection; side 0 opened it, side 1 accepted it."""

    number: int
    ends: list[End]
    broken: bool = False
    """Whether bytes that are sent from now on are lost."""
    swallows: bool = False
    """Whether bytes on their way are lost too."""
    late_until_ms: int = 0
    """Bytes on their way arrive no earlier than this."""


class Network:
    """All connections, names and datagrams, and what is wrong with them just now."""

    def __init__(self, world: World, rng: random.Random, habits: NetworkHabits) -> None:
        self._world = world
        self._rng = rng
        self._habits = habits
        self._nodes: dict[str, Host] = {}
        self._names: dict[str, str] = {}
        self._by_session: dict[tuple[int, int, int], tuple[Connection, int]] = {}
        self._last_connection = 0
        self._parted: dict[frozenset[int], int] = {}
        self._refusing: dict[int, int] = {}
        self.names_fail_until_ms = 0
        self.connection_count = 0

    def join(self, node: Host) -> None:
        """Give a node its address and its name."""
        self._nodes[node.address] = node
        self._names[node.name.casefold()] = node.address

    @property
    def open_connections(self) -> list[Connection]:
        """Connections that both sides believe in, oldest first."""
        found = {
            connection.number: connection
            for connection, _ in self._by_session.values()
            if len(connection.ends) == 2 and all(end.listens for end in connection.ends)
        }
        return [found[number] for number in sorted(found)]

    # What nodes ask for.

    def resolve(self, node: Node, host: str) -> None:
        """Look a name up, and say what was found."""
        fails = self.names_fail_until_ms > self._world.timeline.now_ms
        address = self._names.get(host.casefold(), host if host in self._nodes else "")
        found = () if fails or not address else (address,)
        self._world.trace.note(node.index, "name", f"{host}: {', '.join(found) or 'not found'}")
        node.later(self.delay_ms(), self._resolved, node, host, found)

    def _resolved(self, node: Node, host: str, found: tuple[str, ...]) -> None:
        node.input("host_resolved", host, found, node.clock.now())

    def connect(self, node: Host, session: int, address: str) -> None:
        """Open a connection, or fail to, after a while."""
        self._last_connection += 1
        connection = Connection(self._last_connection, [End(node, session)])
        self._by_session[node.index, node.boot, session] = connection, 0
        target = self._nodes.get(address)
        now_ms = self._world.timeline.now_ms
        if target is None or not target.up or self._refusing.get(target.index, 0) > now_ms:
            node.later(self.delay_ms() * 2, self._fails_to_connect, connection, "refused")
        elif not self._joined(node, target):
            quick = self._rng.random() < 0.5
            delay_ms = self.delay_ms() * 2 if quick else _CONNECT_TIMEOUT_MS
            node.later(delay_ms, self._fails_to_connect, connection, "no way")
        elif self._parted_until(node, target) > now_ms:
            node.later(_CONNECT_TIMEOUT_MS, self._fails_to_connect, connection, "no answer")
        else:
            node.later(self.delay_ms() * 2, self._connects, connection, target)

    def _fails_to_connect(self, connection: Connection, why: str) -> None:
        end = connection.ends[0]
        if end.listens:
            self._forget(end)
            self._world.trace.note(end.node.index, "cut", f"session {end.session}: {why}")
            status = ConnectionStatus.SOCKET_CONNECT_FAILURE
            end.node.input("session_failed", end.session, status, end.node.clock.now())

    def _connects(self, connection: Connection, target: Host) -> None:
        first = connection.ends[0]
        if not first.listens:
            return
        if not target.up or not self._joined(first.node, target):
            self._fails_to_connect(connection, "refused")
            return
        self.connection_count += 1
        second = End(target, 0)
        connection.ends.append(second)
        if first.node.is_watched and target.is_watched:
            join(first.flow, second.flow)
        now_ms = self._world.timeline.now_ms
        first.arrival_ms = second.arrival_ms = now_ms
        second.session = target.accept(first.node.address, self._proof(first.node, target))
        self._by_session[target.index, target.boot, second.session] = connection, 1
        self._world.trace.opened(first.node.index, target.index, connection.number)
        proven = self._proof(target, first.node)
        first.node.input("session_connected", first.session, first.node.clock.now(), peer=proven)

    def send(self, node: Host, session: int, data: bytes) -> None:
        """Carry bytes to the other side, in pieces."""
        found = self._by_session.get((node.index, node.boot, session))
        if found is None:
            return
        connection, side = found
        end = connection.ends[side]
        packets = self._world.books.wire.leaves(end.flow, data) if node.is_watched else []
        now_ms = self._world.timeline.now_ms
        other = connection.ends[1 - side]
        if connection.broken:
            self._world.trace.packets(node.index, other.node.index, connection.number, packets, -1)
            self._maybe_reset(connection, side)
            return
        at_ms = max(now_ms + self.delay_ms(), end.arrival_ms)
        at_ms = max(at_ms, self._parted_until(node, other.node))
        for piece in self._pieces(data):
            end.under_way.append(piece)
            self._world.timeline.after(at_ms - now_ms, self._arrives, connection, side)
            end.arrival_ms = at_ms
            at_ms += self._rng.choice((0, 0, 1, 3))
        self._world.trace.packets(
            node.index, other.node.index, connection.number, packets, end.arrival_ms
        )

    def _pieces(self, data: bytes) -> list[bytes]:
        chance = self._rng.random()
        if chance >= self._habits.pieces_chance or len(data) < 2:
            return [data]
        if chance < self._habits.pieces_chance / 10:
            head = data[:64]
            return [head[i : i + 1] for i in range(len(head))] + ([data[64:]] if data[64:] else [])
        cut = self._rng.randrange(1, len(data))
        return [data[:cut], data[cut:]]

    def _arrives(self, connection: Connection, side: int) -> None:
        now_ms = self._world.timeline.now_ms
        if connection.late_until_ms > now_ms and not connection.swallows:
            delay_ms = connection.late_until_ms - now_ms
            self._world.timeline.after(delay_ms, self._arrives, connection, side)
            return
        data = connection.ends[side].under_way.popleft()
        end = connection.ends[1 - side]
        if end.listens and not connection.swallows:
            end.node.input("session_data", end.session, data, end.node.clock.now())

    def disconnect(self, node: Host, session: int) -> None:
        """Close a connection; the other side hears it after the last byte."""
        found = self._by_session.get((node.index, node.boot, session))
        if found is None:
            return
        connection, side = found
        self._forget(connection.ends[side])
        self._world.trace.note(node.index, "close", f"closes session {session}")
        if len(connection.ends) == 2 and not connection.broken:
            connection.broken = True
            end = connection.ends[side]
            delay_ms = max(self.delay_ms(), end.arrival_ms - self._world.timeline.now_ms)
            self._world.timeline.after(delay_ms, self._hears_loss, connection, 1 - side)

    def send_datagram(self, node: Node, address: str, data: bytes, port: int | None) -> None:
        """Carry a datagram, perhaps twice, perhaps not."""
        target = self._nodes.get(address)
        chance = self._rng.random()
        self._world.trace.note(node.index, "datagram", f"datagram to {address}")
        if target is None or chance < self._habits.datagram_loss:
            return
        if self._parted_until(node, target) > self._world.timeline.now_ms:
            return
        if not self._joined(node, target):
            return
        for _ in range(2 if chance > 1 - self._habits.datagram_loss else 1):
            self._world.timeline.after(
                self.delay_ms(), self._datagram_arrives, target, node.address, port, data
            )

    def _datagram_arrives(self, target: Host, address: str, port: int | None, data: bytes) -> None:
        """Questions come to the ping port, answers to the port from which the question went."""
        if target.up:
            source_port = _ASKING_PORT if port is None else PING_PORT
            target.datagram(address, source_port, data, is_answer=port is not None)

    # What goes wrong.

    def part(self, one: Node, other: Node, until_ms: int) -> None:
        """Let nothing pass between two nodes for a while; what is sent comes afterwards."""
        pair = frozenset((one.index, other.index))
        self._parted[pair] = max(self._parted.get(pair, 0), until_ms)
        for connection in self.open_connections:
            if {end.node.index for end in connection.ends} == pair:
                connection.late_until_ms = until_ms

    def links_died(self) -> None:
        """Break the connections between nodes that can talk no more."""
        for connection in self.open_connections:
            if not self._joined(connection.ends[0].node, connection.ends[1].node):
                if self._rng.random() < 0.5:
                    self.cut(connection)
                else:
                    self.half_open(connection)

    def refuse(self, node: Node, until_ms: int) -> None:
        """Let a node refuse connections for a while."""
        self._refusing[node.index] = until_ms

    def cut(self, connection: Connection) -> None:
        """Break a connection; both sides hear of it."""
        connection.broken = True
        connection.swallows = self._rng.random() < 0.5
        self._world.trace.cut(connection.number, "cut")
        for side in (0, 1):
            delay_ms = self._rng.randrange(_RESET_MAX_MS)
            self._world.timeline.after(delay_ms, self._hears_loss, connection, side)

    def half_open(self, connection: Connection) -> None:
        """Break a connection so that only one side hears it; bytes on their way may come late."""
        connection.broken = True
        now_ms = self._world.timeline.now_ms
        if self._rng.random() < 0.3:
            connection.swallows = True
        elif self._rng.random() < 0.7:
            connection.late_until_ms = now_ms + self._rng.randrange(1, 20_000)
        side = self._rng.randrange(2)
        self._world.trace.cut(connection.number, "half open")
        self._world.timeline.after(0, self._hears_loss, connection, side)
        deaf_ms = self._rng.randrange(_DEAF_MIN_MS, _DEAF_MAX_MS)
        deaf_ms += max(0, connection.late_until_ms - now_ms)
        self._world.timeline.after(deaf_ms, self._hears_loss, connection, 1 - side)

    def node_gone(self, node: Host) -> None:
        """Break all connections of a computer that lost power."""
        for connection, side in list(self._by_session.values()):
            end = connection.ends[side]
            if end.node.index != node.index:
                continue
            self._forget(end)
            if len(connection.ends) < 2 or connection.broken:
                continue
            connection.broken = True
            connection.swallows = self._rng.random() < 0.5
            quick = self._rng.random() < 0.5
            delay_ms = self._rng.randrange(_RESET_MAX_MS if quick else _DEAF_MAX_MS)
            self._world.timeline.after(delay_ms, self._hears_loss, connection, 1 - side)

    def _maybe_reset(self, connection: Connection, side: int) -> None:
        """Answer bytes that nobody expects, as the other computer's TCP does if it can."""
        other = connection.ends[1 - side]
        if other.node.up and self._rng.random() < 0.5:
            delay_ms = self._rng.randrange(_RESET_MAX_MS)
            self._world.timeline.after(delay_ms, self._hears_loss, connection, side)

    def _hears_loss(self, connection: Connection, side: int) -> None:
        end = connection.ends[side]
        if end.listens:
            self._forget(end)
            self._world.trace.note(end.node.index, "cut", f"session {end.session} lost")
            end.node.input("session_lost", end.session, end.node.clock.now())

    def _forget(self, end: End) -> None:
        end.open = False
        self._by_session.pop((end.node.index, end.boot, end.session), None)

    def blocked_ms(self, one: Node, other: Node) -> int:
        """Return until when nothing passes between two nodes; 0 if everything does."""
        now_ms = self._world.timeline.now_ms
        until_ms = max(self._parted_until(one, other), self._refusing.get(other.index, 0))
        return until_ms if until_ms > now_ms else 0

    # Internals.

    def delay_ms(self) -> int:
        """Draw how long something is on its way."""
        return self._rng.randrange(self._habits.delay_min_ms, self._habits.delay_max_ms + 1)

    def _joined(self, one: Host, other: Host) -> bool:
        """Return whether there is a way between two nodes, if there are sites at all."""
        enterprise = self._world.enterprise
        if enterprise is None or not (one.is_watched and other.is_watched):
            return True
        return enterprise.joined(one.index, other.index)

    def _proof(self, one: Host, other: Host) -> str:
        """Return the rule of which a node shows the certificate to another; the adversary has none.

        Nor does anybody show one to the adversary, who listens without TLS.
        """
        if not (self._world.shows_certificates and one.is_watched and other.is_watched):
            return ""
        return one.name

    def _parted_until(self, one: Host, other: Host) -> int:
        return self._parted.get(frozenset((one.index, other.index)), 0) if self._parted else 0
