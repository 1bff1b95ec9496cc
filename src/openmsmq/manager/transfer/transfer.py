"""Transfer: which message goes through which session. [MQQB 3.1]

Several outgoing queues share the session of their neighbour, whoever opened it (C-17). Messages
leave in the order of their queue, as far as the window of the session lets them, and only such as
are durable.
"""

from __future__ import annotations

from typing import Protocol, assert_never

from openmsmq.manager.messages.housekeeping import RETRY_MS
from openmsmq.manager.messages.placing import Placing
from openmsmq.manager.peers.outgoing import OutgoingQueue, OutgoingQueues
from openmsmq.manager.peers.peering import Neighbour, Peer
from openmsmq.manager.transactions.requests import TransactionRequests
from openmsmq.manager.transfer.neighbours import Neighbours
from openmsmq.manager.transfer.outgoing_sweep import OutgoingSweep
from openmsmq.manager.transfer.sessions import Sessions
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.manager.turn.timers import earliest
from openmsmq.model.clock import Instant
from openmsmq.protocol.session import SessionState


class Posts(Protocol):
    """Sends what goes over HTTP."""

    def dispatch(self, outgoing: OutgoingQueue, now: Instant) -> None:
        """Post what a queue has, as far as there is room."""
        ...

    def forget(self, outgoing: OutgoingQueue) -> None:
        """An outgoing queue is gone."""
        ...


class Transfer:
    """Sends what is in outgoing queues, as far as sessions have room."""

    def __init__(
        self,
        base: Foundation,
        placing: Placing,
        sessions: Sessions,
        neighbours: Neighbours,
        outgoing: OutgoingQueues,
        transactions: TransactionRequests,
        posts: Posts,
    ) -> None:
        self._posts = posts
        self._config = base.config.transfer
        self._ready = placing.news.ready
        self._sessions = sessions
        self._neighbours = neighbours
        self._outgoing = outgoing
        self._departures = sessions.departures
        self._refused_until_ms = base.started.ticks_ms
        self._sweep = OutgoingSweep(
            outgoing, placing, transactions.sends_to, self._forget, base.started
        )

    @property
    def link_count(self) -> int:
        """How many other computers messages go to."""
        return len(self._neighbours)

    def disk_refused(self, now: Instant) -> None:
        """Send nothing for a while: what could not be taken out would go again and again."""
        self._refused_until_ms = now.ticks_ms + RETRY_MS

    def dispatch(self, now: Instant) -> None:
        """Send what became ready, as far as sessions have room."""
        if now.ticks_ms < self._refused_until_ms:
            return
        ready = self._ready
        while ready:
            queue = next(iter(ready))
            del ready[queue]
            outgoing = self._outgoing.present(queue)
            if outgoing is not None:
                self._dispatch(outgoing, now)

    def _dispatch(self, outgoing: OutgoingQueue, now: Instant) -> None:
        if not self._sessions.online or outgoing.paused:
            return
        if outgoing.is_http:
            self._posts.dispatch(outgoing, now)
            self._sessions.timers.set(outgoing, outgoing.sequence.next_wake_ms)
            return
        if self._config.hardened:
            return
        if outgoing.session is None and not outgoing.has_work:
            return
        peer = self._peer_for(outgoing, now)
        if peer is None:
            return
        while peer.engine.room > 0:
            more = self._departures.send_some(outgoing, peer.engine, now)
            self._sessions.timers.set(outgoing, outgoing.sequence.next_wake_ms)
            self._sessions.drain(peer, now)
            if not more:
                return
            peer.has_served(outgoing)
        peer.waiting[outgoing] = None

    # Sessions for queues.

    def _peer_for(self, outgoing: OutgoingQueue, now: Instant) -> Peer | None:
        """Find the open session for a queue, or see to it that one is opened."""
        peer = self._neighbours.kept(outgoing, self._sessions.peers)
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
            self._sessions.links.drain(neighbour, now)
            return None
        peer.serves(outgoing)
        self._note_reached(outgoing, peer, now)
        return peer

    def _note_reached(self, outgoing: OutgoingQueue, peer: Peer, now: Instant) -> None:
        """Note who has the messages of applications: his acknowledgments will count."""
        if outgoing.has_own_words:
            place = self._neighbours.claimed_place(peer, now)
            self._outgoing.note_reached(outgoing, peer.remote, place, now)
            outgoing.note_session(peer.number)

    # Time.

    def wake(self, now: Instant) -> None:
        """Time has passed."""
        for owner in self._sessions.timers.take_due(now.ticks_ms):
            match owner:
                case Peer():
                    owner.engine.wake(now)
                    self._sessions.drain(owner, now)
                case Neighbour():
                    if not self._sessions.has_work(owner):
                        owner.engine.unwanted(now)
                    owner.engine.wake(now)
                    self._sessions.links.drain(owner, now)
                case OutgoingQueue():
                    self._resend_if_due(owner, now)
                case _:
                    assert_never(owner)
        self._sessions.links.wake(now)
        self._sweep.run(now)

    def next_wake_ms(self, now: Instant) -> int | None:
        """When `wake` has something to do."""
        return earliest(
            self._sessions.timers.next_ms,
            self._sessions.links.next_wake_ms,
            self._sweep.next_run_ms(now),
            self._refused_until_ms if self._ready else None,
        )

    def _resend_if_due(self, outgoing: OutgoingQueue, now: Instant) -> None:
        if outgoing.sequence.resend_due(now):
            self._departures.send_again(outgoing, now)
        self._sessions.timers.set(outgoing, outgoing.sequence.next_wake_ms)

    def _forget(self, outgoing: OutgoingQueue) -> None:
        self._neighbours.forget(outgoing)
        self._posts.forget(outgoing)
        self._sessions.timers.set(outgoing, None)
        self._outgoing.drop(outgoing)
