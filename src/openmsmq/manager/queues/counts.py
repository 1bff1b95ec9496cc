"""What a reader has fetched of its reserved messages, by count and bytes, for when it is done.

Whoever completes a million messages has fetched them before, so the queue manager has looked at
each of them. If it remembers what it saw, it need not look again to take them out.
"""

from __future__ import annotations

from typing import Final

ANSWERS_MAX_COUNT: Final = 16_384
"""Answers that are remembered; beyond it all are forgotten, and messages looked at again."""


class FetchedCounts:
    """The plain messages of durably reserved arrival numbers, answer by answer.

    Nothing can come in between such messages any more, nor can anybody but their reader take one
    out: what was counted once stays true as long as they are reserved.
    """

    __slots__ = ("_answers", "_stop")

    def __init__(self) -> None:
        self._answers: dict[int, tuple[int, int, int]] = {}
        self._stop = 0

    def reach(self, stop: int) -> None:
        """Note that all up to an arrival number is reserved, and that this is durable."""
        self._stop = max(self._stop, stop)

    def note(self, start: int, stop: int, count: int, size: int) -> None:
        """Note that `start` <= arrival number < `stop` is so many messages, and their bytes."""
        if stop > self._stop:
            return
        if len(self._answers) >= ANSWERS_MAX_COUNT:
            self._answers.clear()
        self._answers[start] = stop, count, size

    def total(self, start: int, stop: int) -> tuple[int, int, int]:
        """Add up from `start` on; gives how far that goes, at most to `stop`, count and bytes."""
        count = size = 0
        while start < stop and (found := self._answers.get(start)) is not None and found[0] <= stop:
            start = found[0]
            count += found[1]
            size += found[2]
        return start, count, size

    def forget(self) -> None:
        """Believe nothing any more."""
        self._answers.clear()
        self._stop = 0
