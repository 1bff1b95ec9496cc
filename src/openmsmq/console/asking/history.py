"""How many messages queues had a short while ago, and came and went, in memory, for small charts.

It is fed by whoever looks at queues: a sampler with the identity of this process, if it has one,
and the pages. It is shown only for queues that the viewer's own answer has in it.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Final

import msgspec

from openmsmq.api.messages import QueueStatus
from openmsmq.console import limits

_UNKNOWN: Final = -1
_SIZE: Final = limits.HISTORY_POINTS_COUNT


class Rates(msgspec.Struct, frozen=True):
    """How many messages a second came into a queue, and left it, of late."""

    came: float
    went: float


class _Points:
    """The points of one queue, each at the place of its time."""

    def __init__(self) -> None:
        self.counts = array("q", [_UNKNOWN] * _SIZE)
        self.came = array("q", [_UNKNOWN] * _SIZE)
        self.went = array("q", [_UNKNOWN] * _SIZE)

    def forget(self, place: int) -> None:
        """Forget the point at a place, which is for another time now."""
        self.counts[place] = self.came[place] = self.went[place] = _UNKNOWN

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known of the queue any more."""
        return all(point == _UNKNOWN for point in self.counts)


class History:
    """The last points of many queues, at common times."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._times: deque[float] = deque(maxlen=_SIZE)
        self._points: dict[str, _Points] = {}
        self._next = 0

    def note(self, queues: Iterable[QueueStatus]) -> None:
        """Take in how queues are now."""
        now_s = self._clock()
        if not self._times or now_s - self._times[-1] >= limits.HISTORY_STEP_S:
            self._begin(now_s)
        place = (self._next - 1) % _SIZE
        for one in queues:
            points = self._points.get(one.path_name)
            if points is None:
                if len(self._points) >= limits.HISTORY_QUEUES_MAX_COUNT:
                    continue
                points = self._points[one.path_name] = _Points()
            points.counts[place] = one.message_count
            points.came[place] = one.in_count
            points.went[place] = (
                one.out_count
                + one.expired_count
                + one.purged_count
                + one.moved_count
                + one.refused_count
            )

    def _begin(self, now_s: float) -> None:
        """Begin a new point: what stood in its place is forgotten."""
        self._times.append(now_s)
        place = self._next % _SIZE
        self._next += 1
        for points in self._points.values():
            points.forget(place)
        if place == 0:
            gone = [name for name, points in self._points.items() if points.is_empty]
            for name in gone:
                del self._points[name]

    def _places(self) -> Iterable[int]:
        """Return the places of the points, the oldest first."""
        return (number % _SIZE for number in range(max(0, self._next - _SIZE), self._next))

    def points(self, name: str) -> list[int | None]:
        """Return how many messages a queue had, the oldest point first; None where unknown."""
        points = self._points.get(name)
        if points is None:
            return []
        found = (points.counts[place] for place in self._places())
        return [None if point == _UNKNOWN else point for point in found]

    def rate_points(self, name: str) -> tuple[list[float | None], list[float | None]]:
        """Return how many messages a second came and went between one point and the next.

        None stands where that is not known: a point is missing, or counting began anew.
        """
        points = self._points.get(name)
        if points is None:
            return [], []
        known = zip(self._times, self._places(), strict=True)
        both: tuple[list[float | None], list[float | None]] = ([], [])
        for (before_s, before), (now_s, now) in pairwise(known):
            for found, counts in zip(both, (points.came, points.went), strict=True):
                is_known = _UNKNOWN not in (counts[before], counts[now])
                grown = counts[now] - counts[before]
                found.append(grown / (now_s - before_s) if is_known and grown >= 0 else None)
        return both

    def rates(self, name: str) -> Rates | None:
        """Return how many messages a second came and went lately; None if that is not known."""
        points = self._points.get(name)
        if points is None:
            return None
        known = [
            (when_s, points.came[place], points.went[place])
            for when_s, place in zip(self._times, self._places(), strict=True)
            if points.came[place] != _UNKNOWN
        ][-limits.RATE_POINTS_COUNT :]
        if len(known) < 2:
            return None
        first, last = known[0], known[-1]
        span_s = last[0] - first[0]
        if last[1] < first[1] or last[2] < first[2]:
            # The queue manager has started anew, and counts from 0 again.
            return None
        return Rates((last[1] - first[1]) / span_s, (last[2] - first[2]) / span_s)
