"""How much of the queue manager's time strangers get while known peers want it too.

Sessions are read in turn, so whoever has most of them has most of the time. As long as a known peer
sends, strangers together have a part of the time: who brings more than that is not read for a
moment, and TCP makes him wait. While nobody known sends, strangers have all of it.
"""

from __future__ import annotations

from openmsmq.runtime.limits import (
    STRANGERS_PAUSE_MAX_MS,
    STRANGERS_TIME_AT_ONCE_MS,
    STRANGERS_TIME_PERCENT,
    STRANGERS_WATCHED_MS,
)

_NS_PER_MS = 1_000_000


class TimeShares:
    """Counts the time that strangers take, and says when they have to wait."""

    def __init__(self, now_ns: int) -> None:
        self._left_ns = STRANGERS_TIME_AT_ONCE_MS * _NS_PER_MS
        self._counted_ns = now_ns
        self._known_until_ns = now_ns

    def known_peer_came(self, now_ns: int) -> None:
        """Somebody known has sent something: for a while strangers are kept to their part."""
        self._known_until_ns = now_ns + STRANGERS_WATCHED_MS * _NS_PER_MS

    def stranger_took(self, began_ns: int, now_ns: int) -> int:
        """A stranger has had this time; says for how many milliseconds he is not read now."""
        most_ns = STRANGERS_TIME_AT_ONCE_MS * _NS_PER_MS
        grown_ns = (now_ns - self._counted_ns) * STRANGERS_TIME_PERCENT // 100
        self._counted_ns = now_ns
        self._left_ns = min(self._left_ns + grown_ns, most_ns) - (now_ns - began_ns)
        if now_ns >= self._known_until_ns:
            self._left_ns = max(self._left_ns, 0)
        if self._left_ns >= 0:
            return 0
        pause_ms = -self._left_ns * 100 // STRANGERS_TIME_PERCENT // _NS_PER_MS + 1
        return min(pause_ms, STRANGERS_PAUSE_MAX_MS)
