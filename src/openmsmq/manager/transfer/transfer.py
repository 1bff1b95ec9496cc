"""Transfer: sessions and links, and which message goes through which of them. [MQQB 3.1]

Several outgoing queues share the session of their neighbour, whoever opened it (C-17). Messages
leave in the order of their queue, as far as the window of the session lets them, and only such as
are durable. Nothing here waits: what the disk has to settle first comes back through the ledger.
"""

from __future__ import annotations

from typing import TypeAlias, assert_never, cast

from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.directory.ways import Ways
from openmsmq.manager.incoming.arrivals import Arrivals
from openmsmq.manager.incoming.history import History
from openmsmq.manager.incoming.order_acks import OrderAcks
from openmsmq.manager.incoming.streams import IncomingStreams
from openmsmq.manager.messages.delivery import Delivery
from openmsmq.manager.messages.housekeeping import RETRY_MS, Housekeeping
from openmsmq.manager.outputs import Connect, Disconnect, Output, SendBytes
from openmsmq.manager.peers.acquaintances import Acquaintances
from openmsmq.manager.peers.claims import Claims
from openmsmq.manager.peers.identities import Identities
from openmsmq.manager.peers.outgoing import OutgoingQueue, OutgoingQueues
from openmsmq.manager.peers.peering import Neighbour, Peer, Word
from openmsmq.manager.transactions.requests import TransactionRequests
from openmsmq.manager.transfer.admission import Admission
from openmsmq.manager.transfer.departures import Departures, Transit
from openmsmq.manager.transfer.effects import PacketsTaken, TransferPaused
from openmsmq.manager.transfer.links import Links
from openmsmq.manager.transfer.neighbours import Neighbours
from openmsmq.manager.transfer.outgoing_sweep import OutgoingSweep
from openmsmq.manager.transfer.reception import Reception
from openmsmq.manager.turn.counters import Counters
from openmsmq.manager.turn.ledger import Ledger
from openmsmq.manager.turn.timers import Timers, earliest
from openmsmq.model.clock import Instant
from openmsmq.model.identity import NIL_GUID
from openmsmq.model.peers import canonical_address
from openmsmq.model.queue import ConnectionStatus
from openmsmq.protocol.link import Link, OpenSession
from openmsmq.protocol.session import (
    Acknowledged,
    Arrived,
    Closed,
    CloseReason,
    Opened,
    Role,
    Session,
    SessionState,
    Written,
)

_Owner: TypeAlias = Peer | Neighbour | OutgoingQueue


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
        acks: OrderAcks,
        housekeeping: Housekeeping,
        transactions: TransactionRequests,
        ways: Ways,
        identities: Identities,
        claims: Claims,
        now: Instant,
    ) -> None:
        self._identities = identities
        self._config = config.transfer
        self._delivery = delivery
        self._counters = counters
        self._ledger = ledger
        self._outgoing = outgoing
        self._streams = streams
        self._history = history
        self._acks = acks
        self._housekeeping = housekeeping
        self._departures = Departures(
            self._config, delivery, counters, outgoing, housekeeping, ledger
        )
        delivery.given_up = self._departures.given_up
        self.online = True
        self.outputs: list[Output] = []
        self.peers: dict[int, Peer] = {}
        self._neighbours = Neighbours(self._config, ways, identities)
        claims.has_session = self._neighbours.has_session
        arrivals.has_way = delivery.reporter.has_way = self._neighbours.has_way
        self._last_session = -1
        self._admission = Admission(self._config)
        self._reception = Reception(
            arrivals, delivery.reporter, Acquaintances(self._config, ways), self._admission
        )
        self._links = Links(self._config, counters.identifier, self._admission, identities)
        self._links.outputs = self.outputs
        self._links.open_session = self._open
        self._timers: Timers[_Owner] = Timers()
        self._links.due = self._timers.set
        self._refused_until_ms = now.ticks_ms
        self._sweep = OutgoingSweep(outgoing, delivery, transactions.sends_to, self._forget, now)

    # Inputs from the network.

    def accepted(self, session: int, address: str, now: Instant, proven: str) -> None:
        """Another queue manager has connected. [MQQB 3.1.5.10]"""
        address = canonical_address(address)
        engine = Session(self._counters.identifier, Role.ACCEPTOR, self._config, address=address)
        peer = self._add(Peer(session, engine, None))
        peer.proven = proven
        if not self.online or self._admission.refuses(now):
            self._close(peer, CloseReason.STOPPING, now)
            return
        if not self._identities.lets_connect(address, proven):
            self._close(peer, CloseReason.IDENTITY_REFUSED, now)
            return
        self._admission.let_in(peer)
        engine.connected(now)
        self._drain(peer, now)

    def _add(self, peer: Peer) -> Peer:
        """Have a new session judged as soon as its other side says who it is."""
        self.peers[peer.number] = peer
        peer.engine.admits = lambda claimed, now: self._identities.admits(peer, claimed, now)
        return peer

    def connected(self, session: int, now: Instant, proven: str) -> None:
        """A connection that was asked for is there."""
        peer = self.peers.get(session)
        if peer is None:
            return
        peer.proven = proven
        if peer.link is not None:
            peer.link.engine.connected(now)
        peer.engine.connected(now)
        self._drain(peer, now)
        self._links.drain(peer.link, now)

    def failed(self, session: int, status: ConnectionStatus, now: Instant, reason: str) -> None:
        """A connection that was asked for could not be made."""
        peer = self.peers.pop(session, None)
        if peer is None:
            return
        self._timers.set(peer, None)
        if peer.link is not None:
            peer.link.peer = None
            peer.link.engine.connect_failed(status, now, reason)
            self._links.drain(peer.link, now)

    def data(self, session: int, data: bytes, now: Instant) -> None:
        """Bytes came."""
        peer = self.peers.get(session)
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
            if self._identities.wanted:
                self._links.look_up_peers(now)

    def lost(self, session: int, now: Instant, reason: CloseReason) -> None:
        """A connection is gone."""
        peer = self.peers.get(session)
        if peer is not None:
            peer.engine.connection_lost(now, reason)
            self._drain(peer, now)

    def resolved(self, host: str, addresses: tuple[str, ...], now: Instant) -> None:
        """The addresses of a host are known, or it has none."""
        self._links.resolved(host, addresses, now)

    def datagram(
        self, address: str, port: int, data: bytes, now: Instant, *, is_answer: bool
    ) -> None:
        """A ping, or the answer to ours, came."""
        if is_answer:
            self._links.ping_answered(data, now)
        elif self.online:
            self._links.answer_ping(address, port, data, now)

    def wake(self, now: Instant) -> None:
        """Time has passed."""
        for owner in self._timers.take_due(now.ticks_ms):
            match owner:
                case Peer():
                    owner.engine.wake(now)
                    self._drain(owner, now)
                case Neighbour():
                    if not self._has_work(owner):
                        owner.engine.unwanted(now)
                    owner.engine.wake(now)
                    self._links.drain(owner, now)
                case OutgoingQueue():
                    self._resend_if_due(owner, now)
                case _:
                    assert_never(owner)
        self._acks.send_due(self._streams.timers.take_due(now.ticks_ms), now)
        self._links.wake(now)
        due_ms = self._history.filter.next_wake_ms
        if due_ms is not None and due_ms <= now.ticks_ms:
            self._history.clean_up(now)
        if self._streams.look_through_ms <= now.ticks_ms:
            self._streams.look_through(now)
        self._sweep.run(now)

    def next_wake_ms(self, now: Instant) -> int | None:
        """When `wake` has something to do."""
        return earliest(
            self._timers.next_ms,
            self._streams.timers.next_ms,
            self._links.next_wake_ms,
            self._history.filter.next_wake_ms,
            self._streams.look_through_ms if len(self._streams.records) else None,
            self._sweep.next_run_ms(now),
            self._refused_until_ms if self._delivery.ready else None,
        )

    # Inputs from operators.

    def set_online(self, *, online: bool, now: Instant) -> None:
        """Take part in the transfer, or not. [MQDMPR 3.1.4.12, 3.1.4.13]"""
        self.online = online
        if not online:
            for peer in list(self.peers.values()):
                self._close(peer, CloseReason.STOPPING, now)
        for outgoing in self._outgoing.all():
            self._delivery.ready[outgoing.queue] = None
            self._rest_if_idle(outgoing, now)

    def ways_changed(self, now: Instant) -> None:
        """The directory has changed: what waits may have a better way, or one at all."""
        for outgoing in self._outgoing.all():
            # Who has a session looks at it again before it sends more.
            outgoing.is_rerouted = outgoing.session is not None
            if outgoing.session is None and self._neighbours.has_other_way(outgoing):
                self._retry(outgoing, now)

    def _retry(self, outgoing: OutgoingQueue, now: Instant) -> None:
        self._delivery.ready[outgoing.queue] = None
        neighbour = self._neighbours.of(outgoing, create=False)
        if neighbour is not None:
            neighbour.engine.retry_now(now)
            self._links.drain(neighbour, now)

    def pause(self, outgoing: OutgoingQueue, now: Instant) -> None:
        """Let the messages of a queue wait (C-39). [MQDMPR 3.1.7.2.3, MQQB 3.1.7.13]"""
        # Added first, so taken back last: by then the queue is not paused.
        self._ledger.add(TransferPaused(self, outgoing, now))
        self._outgoing.pause(outgoing, paused=True)
        if outgoing.session is not None:
            self._advertise(self.peers[outgoing.session], 1, now)
        self._rest_if_idle(outgoing, now)

    def go_on(self, outgoing: OutgoingQueue, now: Instant) -> None:
        """Send on from a queue that is not paused after all."""
        self._delivery.ready[outgoing.queue] = None
        self._widen(outgoing, now)

    def _widen(self, outgoing: OutgoingQueue, now: Instant) -> None:
        """Let the peer of a queue send as it likes again, unless another queue is on hold."""
        if outgoing.session is not None:
            peer = self.peers[outgoing.session]
            if not any(other.paused for other in peer.queues):
                self._advertise(peer, self._config.window, now)

    def _advertise(self, peer: Peer, window: int, now: Instant) -> None:
        peer.engine.advertise(window, now)
        self._drain(peer, now)

    def _rest_if_idle(self, outgoing: OutgoingQueue, now: Instant) -> None:
        """Try no longer to connect for queues that are on hold, or while we are offline."""
        neighbour = self._neighbours.of(outgoing, create=False)
        if neighbour is not None and not self._has_work(neighbour):
            neighbour.engine.unwanted(now)
            self._links.drain(neighbour, now)

    def _has_work(self, neighbour: Neighbour) -> bool:
        return self.online and any(outgoing.has_work for outgoing in neighbour.queues)

    def resume(self, outgoing: OutgoingQueue, now: Instant) -> None:
        """Send the messages of a queue again, and try to connect at once. [MQDMPR 3.1.7.2.4]"""
        self._outgoing.pause(outgoing, paused=False)
        self._widen(outgoing, now)
        self._retry(outgoing, now)

    def resend(self, outgoing: OutgoingQueue, now: Instant) -> None:
        """Send again what the destination has not acknowledged. [MQDMPR 3.1.4.14]"""
        self._departures.send_again(outgoing, now)

    # What operators may see.

    @property
    def link_count(self) -> int:
        """How many other computers messages go to."""
        return len(self._neighbours)

    def link_of(self, outgoing: OutgoingQueue) -> Link | None:
        """Return the link that a queue uses, if it was ever needed."""
        neighbour = self._neighbours.of(outgoing, create=False)
        return None if neighbour is None else neighbour.engine

    def session_of(self, outgoing: OutgoingQueue) -> Session | None:
        """Return the open session that a queue uses."""
        return None if outgoing.session is None else self.peers[outgoing.session].engine

    # Dispatch.

    def disk_refused(self, now: Instant) -> None:
        """Send nothing for a while: what could not be taken out would go again and again."""
        self._refused_until_ms = now.ticks_ms + RETRY_MS

    def dispatch(self, now: Instant) -> None:
        """Send what became ready, as far as sessions have room."""
        if now.ticks_ms < self._refused_until_ms:
            return
        ready = self._delivery.ready
        while ready:
            queue = next(iter(ready))
            del ready[queue]
            if self._outgoing.exists(queue):
                self._dispatch(self._outgoing.of(queue), now)

    def _dispatch(self, outgoing: OutgoingQueue, now: Instant) -> None:
        if not self.online or self._config.hardened or outgoing.paused:
            return
        if outgoing.session is None and not outgoing.has_work:
            return
        peer = self._peer_for(outgoing, now)
        if peer is None:
            return
        while peer.engine.room > 0:
            more = self._departures.send_some(outgoing, peer.engine, now)
            self._timers.set(outgoing, outgoing.sequence.next_wake_ms)
            self._drain(peer, now)
            if not more:
                return
            peer.served = outgoing
        peer.waiting[outgoing] = None

    # Sessions for queues.

    def _peer_for(self, outgoing: OutgoingQueue, now: Instant) -> Peer | None:
        """Find the open session for a queue, or see to it that one is opened."""
        peer = self._neighbours.kept(outgoing, self.peers)
        if peer is not None:
            if outgoing.noted_session != peer.number:
                # So far only reports went there.
                self._note_reached(outgoing, peer, now)
            return peer
        neighbour = self._neighbours.of(outgoing, create=True)
        if neighbour is None:
            return None
        neighbour.queues[outgoing] = None
        peer = neighbour.peer
        if peer is None or peer.engine.state is not SessionState.OPEN:
            peer = self._neighbours.open_to(outgoing, now)
        if peer is None:
            # Also while a session is being opened: the link must know if that comes to nothing.
            neighbour.engine.wanted(now)
            self._links.drain(neighbour, now)
            return None
        outgoing.session = peer.number
        peer.queues[outgoing] = None
        self._note_reached(outgoing, peer, now)
        return peer

    def _note_reached(self, outgoing: OutgoingQueue, peer: Peer, now: Instant) -> None:
        """Note who has the messages of applications: his acknowledgments will count."""
        if outgoing.has_own_words:
            # Who is known elsewhere is not known here: what he gets makes no claim.
            is_own = self._identities.word(peer, peer.remote, now) is Word.OWN
            place = peer.place if is_own else ""
            self._outgoing.note_reached(outgoing, peer.remote, place, now)
            outgoing.noted_session = peer.number

    # Outputs of the engines.

    def _drain(self, peer: Peer, now: Instant) -> None:
        for output in peer.engine.take_outputs():
            match output:
                case Written(data):
                    self.outputs.append(SendBytes(peer.number, data))
                case Arrived(packets):
                    self._take(peer, packets, now)
                case Acknowledged(tokens):
                    self._departures.acknowledged(cast("list[Transit]", tokens), now)
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
            for outgoing in sorted(peer.waiting, key=lambda waiting: waiting is peer.served):
                self._delivery.ready[outgoing.queue] = None
            peer.waiting.clear()

    def _open(self, neighbour: Neighbour, asked: OpenSession) -> None:
        self._last_session += 2
        engine = Session(
            self._counters.identifier,
            Role.INITIATOR,
            self._config,
            address=canonical_address(asked.address),
            remote=asked.manager,
            direct=neighbour.engine.direct,
            pinged=asked.pinged,
        )
        peer = neighbour.peer = self._add(Peer(self._last_session, engine, neighbour))
        if neighbour.is_return:
            peer.expected = NIL_GUID
        self.outputs.append(Connect(peer.number, asked.address))

    def _opened(self, peer: Peer, now: Instant) -> None:
        self._neighbours.opened(peer)
        if peer.link is not None:
            peer.link.engine.opened(now)
            self._links.drain(peer.link, now)
        for neighbour in self._neighbours.behind(peer, now):
            if neighbour is not peer.link:
                neighbour.engine.unwanted(now)
                self._links.drain(neighbour, now)
            for outgoing in neighbour.queues:
                if outgoing.session is None:
                    self._delivery.ready[outgoing.queue] = None
                    self._departures.send_again(outgoing, now)
                    outgoing.sequence.reconnected(now)
                    self._timers.set(outgoing, outgoing.sequence.next_wake_ms)

    def _close(self, peer: Peer, reason: CloseReason, now: Instant) -> None:
        peer.engine.close(reason, now)
        self._drain(peer, now)

    def _closed(self, peer: Peer, reason: CloseReason, now: Instant) -> None:
        """Take back what the session has not delivered. [MQQB 3.1.5.9]"""
        if self.peers.pop(peer.number, None) is None:
            return
        self._admission.left(peer)
        self.outputs.append(Disconnect(peer.number))
        self._neighbours.closed(peer)
        for outgoing in peer.queues:
            outgoing.session = None
            self._delivery.ready[outgoing.queue] = None
        for outgoing, lookup_id, value in cast("list[Transit]", peer.engine.unacknowledged()):
            outgoing.in_flight.discard(lookup_id)
            self._departures.give_back(outgoing.queue, lookup_id, value, now)
        neighbour = peer.link
        if neighbour is not None:
            neighbour.peer = None
            wanted = self._has_work(neighbour)
            neighbour.engine.closed(reason.status, reason.sentence, now, wanted=wanted)
            self._links.drain(neighbour, now)

    # Messages.

    def _take(self, peer: Peer, packets: list[bytes], now: Instant) -> None:
        """Decide about packets; the session acknowledges them when that is durable."""
        problem = self._reception.take(peer, packets, now)
        if problem is not None:
            self._close(peer, problem, now)
            return
        self._ledger.add(PacketsTaken(self, peer, len(packets), now))

    def acknowledge(self, peer: Peer, count: int, now: Instant) -> None:
        """Let a session acknowledge packets: what was decided about them is durable."""
        peer.engine.settled(count, now)
        self._drain(peer, now)

    def refuse(self, peer: Peer, now: Instant) -> None:
        """Close a session whose packets the disk did not take."""
        self._admission.throttle(now)
        self._close(peer, CloseReason.STORE_FULL, now)

    def _resend_if_due(self, outgoing: OutgoingQueue, now: Instant) -> None:
        if outgoing.sequence.resend_due(now):
            self._departures.send_again(outgoing, now)
        self._timers.set(outgoing, outgoing.sequence.next_wake_ms)

    def _forget(self, outgoing: OutgoingQueue) -> None:
        self._neighbours.forget(outgoing)
        self._timers.set(outgoing, None)
        self._outgoing.drop(outgoing)
