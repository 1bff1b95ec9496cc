"""Sessions with other queue managers: what comes through them, and what ends with them. [MQQB 3.1]

Nothing here waits: what the disk has to settle first comes back through the ledger.
"""

from __future__ import annotations

from typing import TypeAlias, assert_never, cast

from openmsmq.manager.incoming.arrivals import Arrivals
from openmsmq.manager.incoming.destinations import NotBelieved
from openmsmq.manager.incoming.runs import NoRoom
from openmsmq.manager.messages.news import News
from openmsmq.manager.outputs import Connect, Disconnect, SendBytes
from openmsmq.manager.peers.acquaintances import Acquaintances
from openmsmq.manager.peers.identities import Identities
from openmsmq.manager.peers.outgoing import OutgoingQueue
from openmsmq.manager.peers.peering import Neighbour, Peer
from openmsmq.manager.transfer.admission import Admission
from openmsmq.manager.transfer.departures import Departures, Transit
from openmsmq.manager.transfer.effects import PacketsTaken
from openmsmq.manager.transfer.links import Links
from openmsmq.manager.transfer.neighbours import Neighbours
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.manager.turn.timers import Timers
from openmsmq.model.clock import Instant
from openmsmq.model.queue import ConnectionStatus
from openmsmq.protocol.link import OpenSession
from openmsmq.protocol.session import (
    Acknowledged,
    Arrived,
    Closed,
    CloseReason,
    Opened,
    SessionState,
    Written,
)
from openmsmq.wire.errors import DecodeError

Owner: TypeAlias = Peer | Neighbour | OutgoingQueue
"""Who may want to be woken."""


class Sessions:
    """All sessions, and what their machines and those of links ask for."""

    def __init__(
        self,
        base: Foundation,
        news: News,
        neighbours: Neighbours,
        identities: Identities,
        departures: Departures,
        arrivals: Arrivals,
        acquaintances: Acquaintances,
    ) -> None:
        self._base = base
        self._ledger = base.ledger
        self._news = news
        self._neighbours = neighbours
        self._identities = identities
        self.departures = departures
        self._admission = Admission(base.config.transfer)
        self._arrivals = arrivals
        self._acquaintances = acquaintances
        self._outputs = base.outputs
        self.links = Links(base, self._admission, identities, self)
        self.timers: Timers[Owner] = Timers()
        self.peers: dict[int, Peer] = {}
        self._last_session = -1
        self.failed_count = 0
        """Connections that were asked for and could not be made."""
        self.online = True
        """Whether this queue manager takes part in the transfer."""

    @property
    def resend_count(self) -> int:
        """How often a message was sent again because no acknowledgment came."""
        return self.departures.resend_count

    # Inputs from the network.

    def accepted(self, session: int, address: str, now: Instant, proven: str) -> None:
        """Another queue manager has connected. [MQQB 3.1.5.10]"""
        peer = self.peers[session] = Peer(session, self._base, self._identities, address)
        peer.begins(now)
        peer.shows(proven)
        is_refused = self._admission.refuses(now)
        if not self.online or (is_refused and not self._admission.may_say_so):
            self.close(peer, CloseReason.STOPPING, now)
            return
        if not self._identities.lets_connect(peer.engine.address, proven):
            self.close(peer, CloseReason.IDENTITY_REFUSED, now)
            return
        if is_refused:
            self._admission.turn_away(peer)
        else:
            self._admission.let_in(peer)
        peer.engine.connected(now, is_turned_away=is_refused)
        self.drain(peer, now)

    def connected(self, session: int, now: Instant, proven: str) -> None:
        """A connection that was asked for is there."""
        peer = self.peers.get(session)
        if peer is None:
            return
        peer.shows(proven)
        if peer.link is not None:
            peer.link.engine.connected(now)
        peer.engine.connected(now)
        self.drain(peer, now)
        self.links.drain(peer.link, now)

    def failed(self, session: int, status: ConnectionStatus, now: Instant, reason: str) -> None:
        """A connection that was asked for could not be made."""
        peer = self.peers.pop(session, None)
        if peer is None:
            return
        self.failed_count += 1
        self.timers.set(peer, None)
        if peer.link is not None:
            peer.link.lost()
            peer.link.engine.connect_failed(status, now, reason)
            self.links.drain(peer.link, now)

    def data(self, session: int, data: bytes, now: Instant) -> None:
        """Bytes came."""
        peer = self.peers.get(session)
        if peer is not None:
            state = peer.engine.state
            peer.heard(len(data))
            peer.engine.receive_data(data, now)
            if (
                peer.link is not None
                and state is SessionState.AWAITING_ESTABLISH_REPLY
                and peer.engine.state is not state
                and peer.engine.state is not SessionState.CLOSED
            ):
                peer.link.engine.establish_seen(now)
            self.drain(peer, now)
            if self._identities.wanted:
                self.links.look_up_peers(now)

    def lost(self, session: int, now: Instant, reason: CloseReason) -> None:
        """A connection is gone."""
        peer = self.peers.get(session)
        if peer is not None:
            peer.engine.connection_lost(now, reason)
            self.drain(peer, now)

    def resolved(self, host: str, addresses: tuple[str, ...], now: Instant) -> None:
        """The addresses of a host are known, or it has none."""
        self.links.resolved(host, addresses, now)

    def datagram(
        self, address: str, port: int, data: bytes, now: Instant, *, is_answer: bool
    ) -> None:
        """A ping, or the answer to ours, came."""
        if is_answer:
            self.links.ping_answered(data, now)
        elif self.online:
            self.links.answer_ping(address, port, data, now)

    def go(self, *, online: bool, now: Instant) -> None:
        """Take part in the transfer, or end all sessions."""
        self.online = online
        if not online:
            for peer in list(self.peers.values()):
                self.close(peer, CloseReason.STOPPING, now)

    # Outputs of the machines.

    def drain(self, peer: Peer, now: Instant) -> None:
        """Do what a session asks for."""
        for output in peer.engine.take_outputs():
            match output:
                case Written(data):
                    peer.told(len(data))
                    self._outputs.append(SendBytes(peer.number, data))
                case Arrived(packets):
                    self._take(peer, packets, now)
                case Acknowledged(tokens):
                    self.departures.acknowledged(cast("list[Transit]", tokens), now)
                case Opened():
                    self._opened(peer, now)
                case Closed(reason):
                    self._closed(peer, reason, now)
                case _:
                    assert_never(output)
        if peer.engine.state is SessionState.CLOSED:
            self.timers.set(peer, None)
            return
        self.timers.set(peer, peer.engine.next_wake_ms)
        if peer.waiting and peer.engine.room > 0:
            for outgoing in sorted(peer.waiting, key=lambda waiting: waiting is peer.served):
                self._news.ready[outgoing.queue] = None
            peer.waiting.clear()

    def open_session(self, neighbour: Neighbour, asked: OpenSession, now: Instant) -> None:
        """Open a session for a link."""
        self._last_session += 2
        peer = Peer(
            self._last_session,
            self._base,
            self._identities,
            asked.address,
            link=neighbour,
            asked=asked,
        )
        peer.begins(now)
        self.peers[peer.number] = peer
        neighbour.opens(peer)
        self._outputs.append(Connect(peer.number, asked.address))

    def wake_link(self, neighbour: Neighbour, due_ms: int | None) -> None:
        """Wake a link then, and only then; None is never."""
        self.timers.set(neighbour, due_ms)

    def _opened(self, peer: Peer, now: Instant) -> None:
        self._neighbours.opened(peer)
        if peer.link is not None:
            peer.link.engine.opened(now)
            self.links.drain(peer.link, now)
        for neighbour in self._neighbours.behind(peer, now):
            if neighbour is not peer.link:
                neighbour.engine.unwanted(now)
                self.links.drain(neighbour, now)
            for outgoing in neighbour.queues:
                if outgoing.session is None:
                    self._news.ready[outgoing.queue] = None
                    self.departures.send_again(outgoing, now)
                    outgoing.sequence.reconnected(now)
                    self.timers.set(outgoing, outgoing.sequence.next_wake_ms)

    def close(self, peer: Peer, reason: CloseReason, now: Instant) -> None:
        """End a session."""
        peer.engine.close(reason, now)
        self.drain(peer, now)

    def _closed(self, peer: Peer, reason: CloseReason, now: Instant) -> None:
        """Take back what the session has not delivered. [MQQB 3.1.5.9]"""
        if self.peers.pop(peer.number, None) is None:
            return
        self._admission.left(peer)
        self._outputs.append(Disconnect(peer.number))
        self._neighbours.closed(peer)
        for outgoing in peer.queues:
            outgoing.leave()
            self._news.ready[outgoing.queue] = None
        for outgoing, lookup_id, value in cast("list[Transit]", peer.engine.unacknowledged()):
            outgoing.in_flight.discard(lookup_id)
            self.departures.give_back(outgoing.queue, lookup_id, value, now)
        neighbour = peer.link
        if neighbour is not None:
            neighbour.lost()
            wanted = self.has_work(neighbour)
            neighbour.engine.closed(reason.status, reason.sentence, now, wanted=wanted)
            self.links.drain(neighbour, now)

    # Messages.

    def _take(self, peer: Peer, packets: list[bytes], now: Instant) -> None:
        """Decide about packets; the session acknowledges them when that is durable."""
        try:
            self._arrivals.take(packets, peer, self._acquaintances.asker_of(peer), now)
        except DecodeError:
            self.close(peer, CloseReason.MALFORMED, now)
            return
        except NotBelieved:
            self.close(peer, CloseReason.IDENTITY_REFUSED, now)
            return
        except NoRoom as full:
            if full.is_general:
                self._admission.throttle(now)
            self.close(peer, CloseReason.STORE_FULL, now)
            return
        self._ledger.add_waiting(PacketsTaken(self, peer, len(packets), now))

    def acknowledge(self, peer: Peer, count: int, now: Instant) -> None:
        """Let a session acknowledge packets: what was decided about them is durable."""
        peer.engine.settled(count, now)
        self.drain(peer, now)

    def refuse(self, peer: Peer, now: Instant) -> None:
        """Close a session whose packets the disk did not take."""
        self._admission.throttle(now)
        self.close(peer, CloseReason.STORE_FULL, now)

    def has_work(self, neighbour: Neighbour) -> bool:
        """Whether something is to be sent to a neighbour now."""
        return self.online and any(outgoing.has_work for outgoing in neighbour.queues)
