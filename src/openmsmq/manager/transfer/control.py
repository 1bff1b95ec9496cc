"""What changes which messages may go, and where: operators, and the directory."""

from __future__ import annotations

from typing import Protocol

from openmsmq.manager.messages.news import News
from openmsmq.manager.peers.outgoing import OutgoingQueue, OutgoingQueues
from openmsmq.manager.peers.peering import Peer
from openmsmq.manager.transfer.departures import Departures
from openmsmq.manager.transfer.effects import TransferPaused
from openmsmq.manager.transfer.neighbours import Neighbours
from openmsmq.manager.transfer.sessions import Sessions
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.protocol.link import Link
from openmsmq.protocol.session import Session


class Retrying(Protocol):
    """Knows what goes over HTTP."""

    def retry_now(self, outgoing: OutgoingQueue, now: Instant) -> None:
        """Go on at once after a failure."""
        ...


class TransferControl:
    """Holds queues, lets them go on, and shows what stands in their way."""

    def __init__(
        self,
        base: Foundation,
        news: News,
        sessions: Sessions,
        neighbours: Neighbours,
        outgoing: OutgoingQueues,
        departures: Departures,
        posts: Retrying,
    ) -> None:
        self._posts = posts
        self._config = base.config.transfer
        self._ledger = base.ledger
        self._news = news
        self._sessions = sessions
        self._neighbours = neighbours
        self._outgoing = outgoing
        self._departures = departures

    def set_online(self, *, online: bool, now: Instant) -> None:
        """Take part in the transfer, or not. [MQDMPR 3.1.4.12, 3.1.4.13]"""
        self._sessions.go(online=online, now=now)
        for outgoing in self._outgoing.all():
            self._news.ready[outgoing.queue] = None
            self._rest_if_idle(outgoing, now)

    def ways_changed(self, now: Instant) -> None:
        """The directory has changed: what waits may have a better way, or one at all."""
        for outgoing in self._outgoing.all():
            # Who has a session looks at it again before it sends more.
            outgoing.doubt_way()
            if outgoing.session is None and self._neighbours.has_other_way(outgoing):
                self._retry(outgoing, now)

    def _retry(self, outgoing: OutgoingQueue, now: Instant) -> None:
        self._news.ready[outgoing.queue] = None
        self._posts.retry_now(outgoing, now)
        neighbour = self._neighbours.of(outgoing, create=False)
        if neighbour is not None:
            neighbour.engine.retry_now(now)
            self._sessions.links.drain(neighbour, now)

    def pause(self, outgoing: OutgoingQueue, now: Instant) -> None:
        """Let the messages of a queue wait (C-39). [MQDMPR 3.1.7.2.3, MQQB 3.1.7.13]"""

        # Added first, so taken back last: by then the queue is not paused.
        self._ledger.add_waiting(TransferPaused(self, outgoing, now))
        self._outgoing.pause(outgoing, paused=True)
        if outgoing.session is not None:
            self._advertise(self._sessions.peers[outgoing.session], 1, now)
        self._rest_if_idle(outgoing, now)

    def go_on(self, outgoing: OutgoingQueue, now: Instant) -> None:
        """Send on from a queue that is not paused after all."""
        self._news.ready[outgoing.queue] = None
        self._widen(outgoing, now)

    def _widen(self, outgoing: OutgoingQueue, now: Instant) -> None:
        """Let the peer of a queue send as it likes again, unless another queue is on hold."""
        if outgoing.session is not None:
            peer = self._sessions.peers[outgoing.session]
            if not any(other.paused for other in peer.queues):
                self._advertise(peer, self._config.window, now)

    def _advertise(self, peer: Peer, window: int, now: Instant) -> None:
        peer.engine.advertise(window, now)
        self._sessions.drain(peer, now)

    def _rest_if_idle(self, outgoing: OutgoingQueue, now: Instant) -> None:
        """Try no longer to connect for queues that are on hold, or while we are offline."""
        neighbour = self._neighbours.of(outgoing, create=False)
        if neighbour is not None and not self._sessions.has_work(neighbour):
            neighbour.engine.unwanted(now)
            self._sessions.links.drain(neighbour, now)

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
    def online(self) -> bool:
        """Whether this queue manager takes part in the transfer."""
        return self._sessions.online

    def link_of(self, outgoing: OutgoingQueue) -> Link | None:
        """Return the link that a queue uses, if it was ever needed."""
        neighbour = self._neighbours.of(outgoing, create=False)
        return None if neighbour is None else neighbour.engine

    def session_of(self, outgoing: OutgoingQueue) -> Session | None:
        """Return the open session that a queue uses."""
        return None if outgoing.session is None else self._sessions.peers[outgoing.session].engine
