"""Runs of keys of which every record in the base is hidden, so that each is stepped over once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import Final

HIDDEN_RUNS_MAX_COUNT: Final = 1024
"""Hidden runs that are remembered; beyond it all are forgotten and found again."""

Run = tuple[bytes, bytes]

_KEY: Final = itemgetter(0)


class HiddenRuns:
    """Runs by their first and last keys, in order; none touches another."""

    def __init__(self) -> None:
        self._runs: list[Run] = []

    def __bool__(self) -> bool:
        return bool(self._runs)

    def at(self, key: bytes) -> Run | None:
        """Return the run that a key is in."""
        place = bisect_right(self._runs, key, key=_KEY) - 1
        if place < 0 or key > self._runs[place][1]:
            return None
        return self._runs[place]

    def before(self, key: bytes) -> Run | None:
        """Return the last run that begins before a key, if it reaches that or goes beyond."""
        place = bisect_left(self._runs, key, key=_KEY) - 1
        if place < 0 or key > self._runs[place][1]:
            return None
        return self._runs[place]

    def remember(self, one: bytes, other: bytes, before: Run | None) -> Run:
        """Note that every record between two keys, and in the run before them, is hidden."""
        low, high = min(one, other), max(one, other)
        if before is not None:
            low, high = min(low, before[0]), max(high, before[1])
        first = bisect_left(self._runs, low, key=_KEY)
        last = bisect_right(self._runs, high, key=_KEY)
        if last > first:
            high = max(high, self._runs[last - 1][1])
        self._runs[first:last] = [(low, high)]
        if len(self._runs) > HIDDEN_RUNS_MAX_COUNT:
            self._runs = []
        return low, high

    def forget_between(self, first: bytes, last: bytes) -> None:
        """Drop the runs that reach into a range in which records have become visible."""
        self._runs = [run for run in self._runs if run[1] < first or last < run[0]]

    def forget(self, keys: Sequence[bytes]) -> None:
        """Drop the runs in which a record has become visible; `keys` are in order."""

        def visible(run: Run) -> bool:
            place = bisect_left(keys, run[0])
            return place < len(keys) and keys[place] <= run[1]

        self._runs = [run for run in self._runs if not visible(run)]
