"""How far standbys are behind, in seconds: by when the log had which record."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from typing import Final

LOOKS_MAX_COUNT: Final = 720
"""Looks that are remembered: an hour, with one in five seconds."""


class Lags:
    """Remembers when the log ended with which record."""

    def __init__(self) -> None:
        self._looks: deque[tuple[int, int]] = deque(maxlen=LOOKS_MAX_COUNT)

    def note(self, record: int, now_s: int) -> None:
        """Hear with which record the log ends now."""
        self._looks.append((record, now_s))

    def lag_s(self, record: int, now_s: int) -> int:
        """Return for how long something is there that who has records up to one lacks.

        What is longer ago than all that is remembered counts from there.
        """
        behind = bisect_left(self._looks, record + 1, key=lambda look: look[0])
        return now_s - self._looks[behind][1] if behind < len(self._looks) else 0
