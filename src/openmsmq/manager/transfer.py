"""Transfer: sessions and links, and which message goes through which of them. [MQQB 3.1]

Several outgoing queues share the session of their neighbour, whoever opened it (C-17). Messages
leave in the order of their queue, as far as the window of the session lets them, and only such as
are durable. Nothing here waits: what the disk has to settle first comes back through the ledger.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Final, TypeAlias, TypeVar, assert_never, cast

from openmsmq.manager.arrivals import Arrivals, NoRoom
from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.counters import Counters
from openmsmq.manager.delivery import Delivery
from openmsmq.manager.history import History
from openmsmq.manager.housekeeping import Housekeeping
from openmsmq.manager.incoming import IncomingStreams
from openmsmq.manager.ledger import Ledger
from openmsmq.manager.outgoing import (
    IN_TRANSIT,
    OutgoingQueue,
    OutgoingQueues,
    is_transactional,
)
from openmsmq.manager.outputs import (
    Connect,
    Disconnect,
    Output,
    Resolve,
    SendBytes,
    SendDatagram,
)
from openmsmq.manager.queues import BEING_REMOVED, LocalQueue, Row
from openmsmq.manager.timers import Timers
from openmsmq.model.clock import Instant
from openmsmq.model.errors import MsmqError
from openmsmq.model.identity import NIL_GUID, Guid, SequenceId, SequencePoint
from openmsmq.model.limits import LINKS_MAX_COUNT
from openmsmq.model.message import MessageClass
from openmsmq.model.names import DirectFormatName, FormatName, PrivateFormatName
from openmsmq.model.names.parts import canonical_ip_address, fold
from openmsmq.model.queue import ConnectionStatus
from openmsmq.protocol import ping
from openmsmq.protocol.link import (
    AskPing,
    Hop,
    Link,
    LinkChanged,
    LinkState,
    OpenSession,
    ResolveHost,
)
from openmsmq.protocol.session import (
    Acknowledged,
    Arrived,
    Closed,
    CloseReason,
    Opened,
    Role,
    Session,
    SessionState,
    Token,
    Written,
)
from openmsmq.storage import records
from openmsmq.storage.records import FACTS_BYTES
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.extensions import without_extensions
from openmsmq.wire.headers import transaction, user
from openmsmq.wire.outline import transaction_offset

SWEEP_MS: Final = 1_800_000
"""How often outgoing queues are searched for messages whose deadline comes near, and dropped when
nobody needs them."""

DISPATCH_BYTES: Final = 4 * 1024 * 1024
"""How many bytes of one queue are read from the store at a time."""


Transit: TypeAlias = tuple[OutgoingQueue, int, bytes]
"""A message on its way, as a session knows it: its queue, lookup id and entry."""


class _Peer:
    """A session and the outgoing queues that use it."""

    __slots__ = ("engine", "is_counted", "link", "number", "queues", "waiting")

    def __init__(self, number: int, engine: Session, link: _Neighbour | None) -> None:
        self.is_counted = False
        """Whether it is one of the sessions that others opened and that were let in."""
        self.number = number
        self.engine = engine
        self.link = link
        self.queues: dict[OutgoingQueue, None] = {}
        self.waiting: dict[OutgoingQueue, None] = {}
        """Queues that had more to send than there was room, the longest waiting first."""


class _Neighbour:
    """A link and the outgoing queues behind it."""

    __slots__ = ("engine", "key", "peer", "queues")

    def __init__(self, key: str, engine: Link) -> None:
        self.key = key
        self.engine = engine
        self.peer: _Peer | None = None
        self.queues: dict[OutgoingQueue, None] = {}


_Owner: TypeAlias = _Peer | _Neighbour | OutgoingQueue


class Transfer:
    """Moves messages between this queue manager and others."""

    def __init__(
        self,
        config: ManagerConfig,
        delivery: Delivery,
        counters: Counters,
        ledger: Ledger,
        outgoing: OutgoingQueues,
        streams: IncomingStreams,
        history: History,
        arrivals: Arrivals,
        housekeeping: Housekeeping,
        now: Instant,
    ) -> None:
        self._config = config.transfer
        self._delivery = delivery
        self._counters = counters
        self._ledger = ledger
        self._outgoing = outgoing
        self._streams = streams
        self._history = history
        self._arrivals = arrivals
        self._housekeeping = housekeeping
        housekeeping.ended = self._ended
        self.online = True
        self.outputs: list[Output] = []
        self._peers: dict[int, _Peer] = {}
        self._open_by_address: dict[str, dict[int, _Peer]] = {}
        self._open_by_manager: dict[Guid, dict[int, _Peer]] = {}
        self._neighbours: dict[str, _Neighbour] = {}
        self._resolving: dict[str, dict[_Neighbour, None]] = {}
        self._pings = ping.PingTable(counters.identifier)
        self._last_session = -1
        self._accepted_count = 0
        self._timers: Timers[_Owner] = Timers()
        self._throttled_until_ms = now.ticks_ms
        """Until when no session is accepted, because there is no room for what it would bring."""
        self._sweep_at_ms = now.ticks_ms
        self._sweeping: list[tuple[OutgoingQueue, int]] = []

    # Inputs from the network.

    def accepted(self, session: int, address: str, now: Instant) -> None:
        """Another queue manager has connected. [MQQB 3.1.5.10]"""
        address = canonical_ip_address(address) or address
        engine = Session(self._counters.identifier, Role.ACCEPTOR, self._config, address=address)
        peer = self._peers[session] = _Peer(session, engine, None)
        if self._refuses_sessions(now):
            self._close(peer, CloseReason.STOPPING, now)
            return
        self._accepted_count += 1
        peer.is_counted = True
        engine.connected(now)
        self._drain(peer, now)

    def _refuses_sessions(self, now: Instant) -> bool:
        return (
            not self.online
            or self._config.hardened
            or now.ticks_ms < self._throttled_until_ms
            or self._accepted_count >= self._config.incoming_sessions_max
        )

    def connected(self, session: int, now: Instant) -> None:
        """A connection that was asked for is there."""
        peer = self._peers.get(session)
        if peer is None:
            return
        if peer.link is not None:
            peer.link.engine.connected(now)
        peer.engine.connected(now)
        self._drain(peer, now)
        self._drain_link(peer.link, now)

    def failed(self, session: int, status: ConnectionStatus, now: Instant) -> None:
        """A connection that was asked for could not be made."""
        peer = self._peers.pop(session, None)
        if peer is None:
            return
        self._timers.set(peer, None)
        if peer.link is not None:
            peer.link.peer = None
            peer.link.engine.connect_failed(status, now)
            self._drain_link(peer.link, now)

    def data(self, session: int, data: bytes, now: Instant) -> None:
        """Bytes came."""
        peer = self._peers.get(session)
        if peer is not None:
            state = peer.engine.state
            peer.engine.receive_data(data, now)
            if (
                peer.link is not None
                and state is SessionState.AWAITING_ESTABLISH_REPLY
                and peer.engine.state is not state
                and peer.engine.state is not SessionState.CLOSED
            ):
                peer.link.engine.establish_seen(now)
            self._drain(peer, now)

    def lost(self, session: int, now: Instant) -> None:
        """A connection is gone."""
        peer = self._peers.get(session)
        if peer is not None:
            peer.engine.connection_lost(now)
            self._drain(peer, now)

    def resolved(self, host: str, addresses: tuple[str, ...], now: Instant) -> None:
        """The addresses of a host are known, or it has none."""
        for neighbour in self._resolving.pop(host, {}):
            neighbour.engine.host_resolved(host, addresses, now)
            self._drain_link(neighbour, now)

    def datagram(
        self, address: str, port: int, data: bytes, now: Instant, *, is_answer: bool
    ) -> None:
        """A ping, or the answer to ours, came."""
        if is_answer:
            self._pings.received(data, now)
            self._drain_pings(now)
            return
        if not self._config.answer_ping or not self.online or self._config.hardened:
            return
        answer = ping.answer(data, self._counters.identifier, self._refuses_sessions(now))
        if answer is not None:
            self.outputs.append(SendDatagram(address, answer, port))

    def wake(self, now: Instant) -> None:
        """Time has passed."""
        for owner in self._timers.take_due(now.ticks_ms):
            match owner:
                case _Peer():
                    owner.engine.wake(now)
                    self._drain(owner, now)
                case _Neighbour():
                    owner.engine.wake(now)
                    self._drain_link(owner, now)
                case OutgoingQueue():
                    self._resend_if_due(owner, now)
                case _:
                    assert_never(owner)
        self._arrivals.send_order_acks(self._streams.timers.take_due(now.ticks_ms), now)
        self._pings.wake(now)
        self._drain_pings(now)
        due_ms = self._history.filter.next_wake_ms
        if due_ms is not None and due_ms <= now.ticks_ms:
            self._history.clean_up(now)
        self._sweep(now)

    def next_wake_ms(self, now: Instant) -> int | None:
        """When `wake` has something to do."""
        due = [
            self._timers.next_ms,
            self._streams.timers.next_ms,
            self._pings.next_wake_ms,
            self._history.filter.next_wake_ms,
            self._next_sweep_ms(now),
        ]
        return min((moment for moment in due if moment is not None), default=None)

    def _next_sweep_ms(self, now: Instant) -> int | None:
        if self._sweeping:
            return now.ticks_ms
        return self._sweep_at_ms if len(self._outgoing) else None

    # Inputs from operators.

    def set_online(self, *, online: bool, now: Instant) -> None:
        """Take part in the transfer, or not. [MQDMPR 3.1.4.12, 3.1.4.13]"""
        self.online = online
        if not online:
            for peer in list(self._peers.values()):
                self._close(peer, CloseReason.STOPPING, now)
        for outgoing in self._outgoing.all():
            self._delivery.ready[outgoing.queue] = None

    def pause(self, outgoing: OutgoingQueue) -> None:
        """Let the messages of a queue wait. [MQDMPR 3.1.7.2.3]"""
        self._outgoing.pause(outgoing, paused=True)

    def resume(self, outgoing: OutgoingQueue, now: Instant) -> None:
        """Send the messages of a queue again, and try to connect at once. [MQDMPR 3.1.7.2.4]"""
        self._outgoing.pause(outgoing, paused=False)
        self._delivery.ready[outgoing.queue] = None
        neighbour = self._neighbour_of(outgoing, create=False)
        if neighbour is not None:
            neighbour.engine.retry_now(now)
            self._drain_link(neighbour, now)

    def resend(self, outgoing: OutgoingQueue, now: Instant) -> None:
        """Send again what the destination has not acknowledged. [MQDMPR 3.1.4.14]"""
        self._send_again(outgoing, now)

    # What operators may see.

    @property
    def is_hardened(self) -> bool:
        """Whether nothing leaves or enters by the binary protocol."""
        return self._config.hardened

    def link_of(self, outgoing: OutgoingQueue) -> Link | None:
        """Give the link that a queue uses, if it was ever needed."""
        neighbour = self._neighbour_of(outgoing, create=False)
        return None if neighbour is None else neighbour.engine

    def session_of(self, outgoing: OutgoingQueue) -> Session | None:
        """Give the open session that a queue uses."""
        return None if outgoing.session is None else self._peers[outgoing.session].engine

    # Dispatch.

    def dispatch(self, now: Instant) -> None:
        """Send what became ready, as far as sessions have room."""
        ready = self._delivery.ready
        while ready:
            queue = next(iter(ready))
            del ready[queue]
            if self._outgoing.exists(queue):
                self._dispatch(self._outgoing.of(queue), now)

    def _dispatch(self, outgoing: OutgoingQueue, now: Instant) -> None:
        if not self.online or outgoing.paused or self._config.hardened or not outgoing.queue.count:
            return
        peer = self._peer_for(outgoing, now)
        if peer is None:
            return
        while peer.engine.room > 0:
            sent = self._send_some(outgoing, peer, now)
            if not sent:
                return
        peer.waiting[outgoing] = None

    def _send_some(self, outgoing: OutgoingQueue, peer: _Peer, now: Instant) -> bool:
        """Send what the window takes; says whether more may be there to send."""
        queue = outgoing.queue
        room = peer.engine.room
        rows = queue.front(room, min(peer.engine.room_bytes, DISPATCH_BYTES))
        if not rows:
            return False
        rows = self._without_expired(outgoing, rows, now)
        tokens: list[Token] = []
        packets: list[bytes] = []
        taken: list[Row] = []
        blocked = False
        for row in rows:
            packet = row[1][FACTS_BYTES:]
            transactional = is_transactional(packet)
            own = packet[16:32] == self._counters.identifier
            if own and packet[_JOURNAL_BYTE] & _JOURNAL_ON_FAILURE:
                packet = without_extensions(packet)
            if own and transactional:
                placed = self._in_sequence(outgoing, row, packet, now)
                if placed is None:
                    blocked = True
                    break
                packet = placed
                outgoing.in_flight.add(row[0])
            taken.append(row)
            tokens.append((outgoing, row[0], row[1]))
            packets.append(packet)
        if taken:
            queue.hold(taken, IN_TRANSIT)
            peer.engine.send(tokens, packets, now)
            self._timers.set(outgoing, outgoing.sequence.next_wake_ms)
            self._drain(peer, now)
        return not blocked and peer.engine.state is SessionState.OPEN

    def _without_expired(self, outgoing: OutgoingQueue, rows: list[Row], now: Instant) -> list[Row]:
        """Take out messages that are too late; not every deadline is noted for the clock."""
        expired = [row for row in rows if records.deadline_of(row[1]) <= now.unix_s]
        if not expired:
            return rows
        queue = outgoing.queue
        queue.hold_all(expired, BEING_REMOVED)
        self._delivery.end(queue, expired, MessageClass.NACK_REACH_QUEUE_TIMEOUT, now)
        self._ended(queue, [lookup_id for lookup_id, _ in expired])
        gone = set(map(itemgetter(0), expired))
        return [row for row in rows if row[0] not in gone]

    def _in_sequence(
        self, outgoing: OutgoingQueue, row: Row, packet: bytes, now: Instant
    ) -> bytes | None:
        """Give one of our transactional messages ready to leave (C-69); None if it has to wait."""
        sequence = outgoing.sequence
        offset = transaction_offset(packet)
        flags, ordinal, timestamp, number, _ = transaction.LAYOUT.unpack_from(packet, offset)
        point = SequencePoint(SequenceId(ordinal, timestamp), number, 0)
        if not sequence.can_send and not sequence.is_outstanding(row[0]):
            return None
        previous = sequence.previous_of(number)
        sequence.sent(point, row[0], now)
        header = transaction.LAYOUT.pack(flags, ordinal, timestamp, number, previous)
        return b"".join((packet[:offset], header, packet[offset + transaction.FIXED_SIZE :]))

    # Sessions for queues.

    def _peer_for(self, outgoing: OutgoingQueue, now: Instant) -> _Peer | None:
        """Find the open session for a queue, or see to it that one is opened."""
        if outgoing.session is not None:
            return self._peers[outgoing.session]
        neighbour = self._neighbour_of(outgoing, create=True)
        if neighbour is None:
            return None
        neighbour.queues[outgoing] = None
        peer = neighbour.peer
        if peer is None or peer.engine.state is not SessionState.OPEN:
            peer = self._open_to(outgoing.name)
        if peer is None:
            if neighbour.peer is None:
                neighbour.engine.wanted(now)
                self._drain_link(neighbour, now)
            return None
        outgoing.session = peer.number
        peer.queues[outgoing] = None
        return peer

    def _open_to(self, name: FormatName) -> _Peer | None:
        """Find any open session to the computer of a name: it may be one that it opened."""
        found: dict[int, _Peer] = {}
        if isinstance(name, PrivateFormatName):
            found = self._open_by_manager.get(name.queue_manager, {})
        elif isinstance(name, DirectFormatName):
            address = canonical_ip_address(name.host)
            if address is not None:
                found = self._open_by_address.get(address, {})
        return next(iter(found.values()), None)

    def _neighbour_of(self, outgoing: OutgoingQueue, *, create: bool) -> _Neighbour | None:
        name = outgoing.name
        direct = isinstance(name, DirectFormatName)
        hops: tuple[Hop, ...] = ()
        if isinstance(name, DirectFormatName):
            key = fold(name.host)
            hops = (Hop(name.host),)
        elif isinstance(name, PrivateFormatName):
            key = str(name.queue_manager)
            hops = tuple(Hop(host) for host in self._hosts_towards(name.queue_manager))
        else:
            key = fold(str(name))
        neighbour = self._neighbours.get(key)
        if neighbour is None and create and len(self._neighbours) < LINKS_MAX_COUNT:
            shown = name.host if isinstance(name, DirectFormatName) else f"queue manager {key}"
            neighbour = _Neighbour(key, Link(shown, hops, self._config, direct=direct))
            self._neighbours[key] = neighbour
        return neighbour

    def _hosts_towards(self, manager: Guid) -> tuple[str, ...]:
        return next(
            (
                hosts
                for name, hosts in self._config.next_hops.items()
                if fold(name.strip("{}")) == fold(str(manager).strip("{}"))
            ),
            (),
        )

    # Outputs of the engines.

    def _drain(self, peer: _Peer, now: Instant) -> None:
        for output in peer.engine.take_outputs():
            match output:
                case Written(data):
                    self.outputs.append(SendBytes(peer.number, data))
                case Arrived(packets):
                    self._take(peer, packets, now)
                case Acknowledged(tokens):
                    self._acknowledged(cast("list[Transit]", tokens), now)
                case Opened():
                    self._opened(peer, now)
                case Closed(reason):
                    self._closed(peer, reason, now)
                case _:
                    assert_never(output)
        if peer.engine.state is SessionState.CLOSED:
            self._timers.set(peer, None)
            return
        self._timers.set(peer, peer.engine.next_wake_ms)
        if peer.waiting and peer.engine.room > 0:
            for outgoing in peer.waiting:
                self._delivery.ready[outgoing.queue] = None
            peer.waiting.clear()

    def _drain_link(self, neighbour: _Neighbour | None, now: Instant) -> None:
        if neighbour is None:
            return
        for output in neighbour.engine.take_outputs():
            match output:
                case ResolveHost(host):
                    waiting = self._resolving.setdefault(host, {})
                    if not waiting:
                        self.outputs.append(Resolve(host))
                    waiting[neighbour] = None
                case AskPing(address):
                    data = self._pings.ask(address, neighbour, now)
                    self.outputs.append(SendDatagram(address, data))
                case OpenSession(address, manager, pinged):
                    self._open(neighbour, address, manager, pinged=pinged)
                case LinkChanged():
                    pass
                case _:
                    assert_never(output)
        self._timers.set(neighbour, neighbour.engine.next_wake_ms)

    def _drain_pings(self, now: Instant) -> None:
        for answered in self._pings.take_outputs():
            neighbour = answered.waiter
            assert isinstance(neighbour, _Neighbour)
            neighbour.engine.ping_answered(answered.accepted, now)
            self._drain_link(neighbour, now)

    def _open(self, neighbour: _Neighbour, address: str, manager: Guid, *, pinged: bool) -> None:
        self._last_session += 2
        engine = Session(
            self._counters.identifier,
            Role.INITIATOR,
            self._config,
            address=address,
            remote=manager,
            direct=neighbour.engine.direct,
            pinged=pinged,
        )
        peer = _Peer(self._last_session, engine, neighbour)
        self._peers[peer.number] = neighbour.peer = peer
        self.outputs.append(Connect(peer.number, address))

    def _opened(self, peer: _Peer, now: Instant) -> None:
        self._open_by_address.setdefault(peer.engine.address, {})[peer.number] = peer
        if peer.engine.remote != NIL_GUID:
            self._open_by_manager.setdefault(peer.engine.remote, {})[peer.number] = peer
        if peer.link is not None:
            peer.link.engine.opened(now)
            self._drain_link(peer.link, now)
            neighbours: list[_Neighbour | None] = [peer.link]
        else:
            # Whoever opened a session to us can be reached through it, too.
            neighbours = [
                self._neighbours.get(fold(peer.engine.address)),
                self._neighbours.get(str(peer.engine.remote)),
            ]
        for neighbour in neighbours:
            if neighbour is None:
                continue
            if neighbour is not peer.link:
                neighbour.engine.unwanted(now)
                self._drain_link(neighbour, now)
            for outgoing in neighbour.queues:
                if outgoing.session is None:
                    self._delivery.ready[outgoing.queue] = None
                    outgoing.sequence.reconnected(now)
                    self._timers.set(outgoing, outgoing.sequence.next_wake_ms)

    def _close(self, peer: _Peer, reason: CloseReason, now: Instant) -> None:
        peer.engine.close(reason, now)
        self._drain(peer, now)

    def _closed(self, peer: _Peer, reason: CloseReason, now: Instant) -> None:
        """Take back what the session has not delivered. [MQQB 3.1.5.9]"""
        if self._peers.pop(peer.number, None) is None:
            return
        if peer.is_counted:
            self._accepted_count -= 1
        self.outputs.append(Disconnect(peer.number))
        _drop(self._open_by_address, peer.engine.address, peer.number)
        _drop(self._open_by_manager, peer.engine.remote, peer.number)
        for outgoing in peer.queues:
            outgoing.session = None
            self._delivery.ready[outgoing.queue] = None
        for outgoing, lookup_id, value in cast("list[Transit]", peer.engine.unacknowledged()):
            outgoing.in_flight.discard(lookup_id)
            self._give_back(outgoing.queue, lookup_id, value, now)
        neighbour = peer.link
        if neighbour is not None:
            neighbour.peer = None
            wanted = any(outgoing.queue.count for outgoing in neighbour.queues)
            neighbour.engine.closed(reason.status, reason.sentence, now, wanted=wanted)
            self._drain_link(neighbour, now)

    def _give_back(self, queue: LocalQueue, lookup_id: int, value: bytes, now: Instant) -> None:
        """Let an entry be sent again, unless it was purged meanwhile."""
        if queue.held.get(lookup_id) != IN_TRANSIT:
            return
        reason = queue.doomed.pop(lookup_id, None)
        if reason is None:
            self._delivery.give_back(queue, lookup_id, value)
            return
        self._outgoing.of(queue).sequence.gone(lookup_id)
        queue.hold_all([(lookup_id, value)], BEING_REMOVED)
        self._delivery.end(queue, [(lookup_id, value)], reason, now)

    # Messages.

    def _take(self, peer: _Peer, packets: list[bytes], now: Instant) -> None:
        """Decide about packets; the session acknowledges them when that is durable."""
        problem: CloseReason | None = None
        try:
            self._arrivals.take(packets, peer.engine.address, now)
        except DecodeError:
            problem = CloseReason.MALFORMED
        except NoRoom:
            problem = CloseReason.STORE_FULL
            self._throttle(now)
        if problem is not None:
            self._close(peer, problem, now)
            return

        def settled() -> None:
            # The clock of the input that follows is a moment later; no timer depends on that.
            peer.engine.settled(len(packets), now)
            self._drain(peer, now)

        def refused(_: MsmqError) -> None:
            self._throttle(now)
            self._close(peer, CloseReason.STORE_FULL, now)

        self._ledger.when_done(settled, refused)

    def _throttle(self, now: Instant) -> None:
        """Let nobody in for as long as senders wait between two attempts (C-58, C-84)."""
        self._throttled_until_ms = now.ticks_ms + self._config.retry_ms

    def _acknowledged(self, tokens: list[Transit], now: Instant) -> None:
        """The neighbour has these; a transactional one waits on for its destination."""
        delivered: dict[OutgoingQueue, list[Row]] = {}
        own = self._counters.identifier
        for outgoing, lookup_id, value in tokens:
            if outgoing.queue.held.get(lookup_id) != IN_TRANSIT:
                continue
            if value[_KIND] & _TRANSACTIONAL and value[_SOURCE] == own:
                outgoing.in_flight.discard(lookup_id)
            else:
                delivered.setdefault(outgoing, []).append((lookup_id, value))
        for outgoing, rows in delivered.items():
            outgoing.queue.hold_all(rows, BEING_REMOVED)
            self._delivery.delivered(outgoing.queue, rows, now)

    def _ended(self, queue: LocalQueue, lookup_ids: list[int]) -> None:
        if queue.role == "outgoing":
            sequence = self._outgoing.of(queue).sequence
            for lookup_id in lookup_ids:
                sequence.gone(lookup_id)

    def _resend_if_due(self, outgoing: OutgoingQueue, now: Instant) -> None:
        if outgoing.sequence.resend_due(now):
            self._send_again(outgoing, now)
        self._timers.set(outgoing, outgoing.sequence.next_wake_ms)

    def _send_again(self, outgoing: OutgoingQueue, now: Instant) -> None:
        queue = outgoing.queue
        for lookup_id in outgoing.sequence.outstanding():
            if lookup_id in outgoing.in_flight:
                continue
            value = queue.entry(lookup_id)
            if value is not None:
                self._give_back(queue, lookup_id, value, now)

    # Housekeeping.

    def _sweep(self, now: Instant) -> None:
        """Note deadlines that came near, and forget queues that nobody needs."""
        if not self._sweeping and now.ticks_ms >= self._sweep_at_ms:
            self._sweep_at_ms = now.ticks_ms + SWEEP_MS
            self._sweeping = [(outgoing, -1) for outgoing in self._outgoing.all()]
        if not self._sweeping:
            return
        outgoing, position = self._sweeping.pop()
        queue = outgoing.queue
        rows: list[Row] = []
        for row in queue.rows(position):
            rows.append(row)
            if len(rows) >= _SWEEP_ROWS:
                self._sweeping.append((outgoing, row[0]))
                break
        self._delivery.note_deadlines(queue, rows, now)
        awaiting = outgoing.awaiting
        if (
            not queue.count
            and not queue.open_count
            and not outgoing.paused
            and outgoing.session is None
            and (awaiting is None or not awaiting.count)
            and position == -1
        ):
            self._forget(outgoing)

    def _forget(self, outgoing: OutgoingQueue) -> None:
        neighbour = self._neighbour_of(outgoing, create=False)
        if neighbour is not None:
            neighbour.queues.pop(outgoing, None)
            if not neighbour.queues and neighbour.engine.state is LinkState.IDLE:
                del self._neighbours[neighbour.key]
        self._timers.set(outgoing, None)
        self._outgoing.drop(outgoing)


_SWEEP_ROWS: Final = 2000
_KIND: Final = FACTS_BYTES + 62
_TRANSACTIONAL: Final = user.TRANSACTION >> 16
_SOURCE: Final = slice(FACTS_BYTES + 16, FACTS_BYTES + 32)
_JOURNAL_BYTE: Final = 61
_JOURNAL_ON_FAILURE: Final = user.JOURNAL_ON_FAILURE >> 8


_Key = TypeVar("_Key")


def _drop(table: dict[_Key, dict[int, _Peer]], key: _Key, number: int) -> None:
    found = table.get(key)
    if found is not None:
        found.pop(number, None)
        if not found:
            del table[key]
