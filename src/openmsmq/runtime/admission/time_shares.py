"""How much of the queue manager's time strangers get while known peers want it too.

Sessions are read in turn, so whoever has most of them has most of the time. The more of it known
peers use, the less is left to strangers, down to a part that they always have: four times what
known peers use is not theirs. Who brings more than that has to wait for a moment, and TCP makes
him. While nobody known sends, strangers have all of it.

What known peers use is not only the time in which their bytes are looked at: most of it goes by
while a turn makes them durable, and while applications take the messages. So all turns count that
anybody but a stranger has asked for, in times in which known peers send.
"""

from __future__ import annotations

from typing import Final

from openmsmq.runtime.limits import (
    STRANGERS_PAUSE_MAX_MS,
    STRANGERS_TIME_AT_ONCE_MS,
    STRANGERS_TIME_MIN_PERCENT,
    STRANGERS_WINDOW_MS,
)

_NS_PER_MS: Final = 1_000_000
_ALL_PERCENT: Final = 100
_KEPT_FACTOR: Final = 4


class TimeShares:
    """Counts the time of known peers and strangers, and says when those have to wait."""

    def __init__(self, now_ns: int) -> None:
        self._percent = _ALL_PERCENT
        """What strangers have of the time in this window."""
        self._used_percent = 0
        """What known peers have had of the time, lately."""
        self._window_ns = now_ns
        self._known_ns = 0
        self._others_ns = 0
        self._left_ns = STRANGERS_TIME_AT_ONCE_MS * _NS_PER_MS
        self._counted_ns = now_ns

    def known_took(self, began_ns: int, now_ns: int) -> None:
        """A known peer has had this time."""
        self._known_ns += now_ns - began_ns
        self._roll(now_ns)

    def others_took(self, began_ns: int, now_ns: int) -> None:
        """A turn for known peers or applications has had this time."""
        self._others_ns += now_ns - began_ns

    def stranger_took(self, began_ns: int, now_ns: int) -> None:
        """A stranger has had this time."""
        self._grow(now_ns)
        self._left_ns -= now_ns - began_ns

    def pause_ms(self, now_ns: int) -> int:
        """Say for how many milliseconds strangers have to wait; 0 if they need not."""
        self._roll(now_ns)
        if self._percent == _ALL_PERCENT:
            # Nobody is in their way, and what they took meanwhile is not held against them.
            self._left_ns = STRANGERS_TIME_AT_ONCE_MS * _NS_PER_MS
            self._counted_ns = now_ns
            return 0
        self._grow(now_ns)
        if self._left_ns > 0:
            return 0
        wait_ms = -self._left_ns * _ALL_PERCENT // self._percent // _NS_PER_MS + 1
        return min(wait_ms, STRANGERS_PAUSE_MAX_MS)

    def _grow(self, now_ns: int) -> None:
        grown_ns = (now_ns - self._counted_ns) * self._percent // _ALL_PERCENT
        self._counted_ns = now_ns
        self._left_ns = min(self._left_ns + grown_ns, STRANGERS_TIME_AT_ONCE_MS * _NS_PER_MS)

    def _roll(self, now_ns: int) -> None:
        """At the end of a window, see how much of it known peers have used."""
        passed_ns = now_ns - self._window_ns
        if passed_ns < STRANGERS_WINDOW_MS * _NS_PER_MS:
            return
        used_ns = self._known_ns + self._others_ns if self._known_ns else 0
        # A known peer that stops for a moment is not gone: what it used fades, by half each window.
        faded_percent = self._used_percent >> (passed_ns // (STRANGERS_WINDOW_MS * _NS_PER_MS))
        self._used_percent = max(used_ns * _ALL_PERCENT // passed_ns, faded_percent)
        left_percent = _ALL_PERCENT - _KEPT_FACTOR * self._used_percent
        self._percent = max(STRANGERS_TIME_MIN_PERCENT, left_percent)
        self._window_ns = now_ns
        self._known_ns = self._others_ns = 0
