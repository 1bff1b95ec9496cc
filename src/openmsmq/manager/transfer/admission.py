"""Who is let in: how many sessions others may open, and when there is no room for more."""

from __future__ import annotations

from openmsmq.manager.peers.peering import Peer
from openmsmq.model.clock import Instant
from openmsmq.model.limits import TURNED_AWAY_MAX_COUNT
from openmsmq.protocol.config import TransferConfig


class Admission:
    """Counts the sessions that other queue managers have opened."""

    def __init__(self, config: TransferConfig) -> None:
        self._config = config
        self._count = 0
        self._turned_away: set[Peer] = set()
        self._throttled_until_ms = 0

    @property
    def may_say_so(self) -> bool:
        """Whether one more who is not let in may be told so: to wait for his words takes room."""
        return not self._config.hardened and len(self._turned_away) < TURNED_AWAY_MAX_COUNT

    def refuses(self, now: Instant) -> bool:
        """Whether nobody is let in now."""
        return (
            self._config.hardened
            or now.ticks_ms < self._throttled_until_ms
            or self._count >= self._config.incoming_sessions_max
        )

    def let_in(self, peer: Peer) -> None:
        """Somebody has opened a session."""
        self._count += 1
        peer.count(counted=True)

    def turn_away(self, peer: Peer) -> None:
        """Somebody will be told that he is not let in."""
        self._turned_away.add(peer)

    def left(self, peer: Peer) -> None:
        """A session has ended, whoever opened it."""
        self._turned_away.discard(peer)
        if peer.is_counted:
            self._count -= 1
            peer.count(counted=False)

    def throttle(self, now: Instant) -> None:
        """Let nobody in for as long as senders wait between two attempts (C-58, C-84)."""
        self._throttled_until_ms = now.ticks_ms + self._config.retry_ms
