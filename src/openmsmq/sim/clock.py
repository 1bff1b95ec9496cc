"""Virtual time: a heap of what happens next, and the clocks that the nodes read."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, Final

from openmsmq.model.clock import Instant

EPOCH_S: Final = 1_750_000_000
"""What a wall clock without an error shows when a run begins."""

Action = Callable[..., None]


class Timeline:
    """What is still to happen, in order; at the same moment, in the order it was asked for."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.step_count = 0
        self._order = 0
        self._heap: list[tuple[int, int, Action, tuple[Any, ...]]] = []

    def __len__(self) -> int:
        """How much is still to happen."""
        return len(self._heap)

    @property
    def next_ms(self) -> int | None:
        """When the next thing happens."""
        return self._heap[0][0] if self._heap else None

    def after(self, delay_ms: int, action: Action, *arguments: Any) -> None:
        """Let something happen later; a delay of 0 is after everything that is due now."""
        self._order += 1
        heapq.heappush(self._heap, (self.now_ms + delay_ms, self._order, action, arguments))

    def step(self) -> None:
        """Let the next thing happen."""
        self.now_ms, _, action, arguments = heapq.heappop(self._heap)
        self.step_count += 1
        action(*arguments)


class Clock:
    """The two clocks of one computer: one that counts since it was started, one on the wall."""

    def __init__(self, timeline: Timeline, wall_error_s: int = 0) -> None:
        self._timeline = timeline
        self._started_ms = 0
        self.wall_error_s = wall_error_s
        self.latest_s = 0
        """The latest wall time that this computer ever acted on."""

    def restart(self, uptime_ms: int) -> None:
        """The computer has started again, and its ticks with it."""
        self._started_ms = self._timeline.now_ms - uptime_ms

    def now(self) -> Instant:
        """Read both clocks."""
        now_ms = self._timeline.now_ms
        unix_s = EPOCH_S + now_ms // 1000 + self.wall_error_s
        self.latest_s = max(self.latest_s, unix_s)
        return Instant(now_ms - self._started_ms, unix_s)

    @property
    def behind_s(self) -> int:
        """How long it takes until the wall clock shows the latest time that was acted on."""
        return max(0, self.latest_s - self.now().unix_s)

    def step_wall(self, seconds: int) -> None:
        """Set the wall clock forward or back."""
        self.wall_error_s += seconds

    def delay_ms(self, ticks_ms: int) -> int:
        """How long it takes until the ticks show a moment; at least a millisecond."""
        return max(1, ticks_ms - (self._timeline.now_ms - self._started_ms))
