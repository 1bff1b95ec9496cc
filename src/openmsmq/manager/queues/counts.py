"""What is counted of a queue: what came and went, who reads it, and what a reader has fetched.

Whoever completes a million messages has fetched them before, so the queue manager has looked at
each of them. If it remembers what it saw, it need not look again to take them out.
"""

from __future__ import annotations

from typing import Final

from openmsmq.model.errors import SharingViolation
from openmsmq.model.message import MessageClass

ANSWERS_MAX_COUNT: Final = 16_384
"""Answers that are remembered; beyond it all are forgotten, and messages looked at again."""

_GONE_ON: Final = frozenset({MessageClass.ACK_RECEIVE, MessageClass.ACK_REACH_QUEUE})
_EXPIRED: Final = frozenset(
    {
        MessageClass.NACK_REACH_QUEUE_TIMEOUT,
        MessageClass.NACK_RECEIVE_TIMEOUT,
        MessageClass.NACK_RECEIVE_TIMEOUT_AT_SENDER,
    }
)
_PURGED: Final = frozenset(
    {
        MessageClass.NACK_PURGED,
        MessageClass.NACK_QUEUE_PURGED,
        MessageClass.NACK_QUEUE_DELETED,
    }
)


class Flow:
    """What came into a queue and left it, durably, since the start of the queue manager."""

    __slots__ = (
        "expired_count",
        "in_bytes",
        "in_count",
        "moved_count",
        "oldest_s",
        "out_bytes",
        "out_count",
        "purged_count",
        "refused_count",
    )

    def __init__(self) -> None:
        self.in_count = 0
        self.in_bytes = 0
        self.out_count = 0
        self.out_bytes = 0
        self.expired_count = 0
        self.purged_count = 0
        self.moved_count = 0
        self.refused_count = 0
        self.oldest_s = -1
        """When the oldest message came, 0 if none is there; -1 if that is to be looked up."""

    def came(self, count: int, size: int) -> None:
        """Count messages that are there now."""
        self.in_count += count
        self.in_bytes += size
        self.oldest_s = -1

    def left(self, count: int, size: int, reason: MessageClass | None) -> None:
        """Count messages that are gone, and why; without a reason they are in another queue."""
        self.oldest_s = -1
        if reason in _GONE_ON:
            self.out_count += count
            self.out_bytes += size
        elif reason is None:
            self.moved_count += count
        elif reason in _EXPIRED:
            self.expired_count += count
        elif reason in _PURGED:
            self.purged_count += count
        else:
            self.refused_count += count

    def passed(self, count: int, size: int) -> None:
        """Count messages that went to a reader without ever having been there."""
        self.in_count += count
        self.in_bytes += size
        self.out_count += count
        self.out_bytes += size

    def found_oldest(self, time_s: int) -> int:
        """Remember when the oldest message came, until one comes or goes; give it back."""
        self.oldest_s = time_s
        return time_s


class Readership:
    """Who reads a queue that he has open: many, or one who shares it with nobody (C-132)."""

    __slots__ = ("_count", "_is_closed")

    def __init__(self) -> None:
        self._count = 0
        self._is_closed = False

    def begin(self, name: str, *, alone: bool) -> None:
        """Count one more, unless he or another one wants to be alone."""
        if self._is_closed:
            raise SharingViolation(f"{name} is open for one reader only")
        if alone and self._count:
            raise SharingViolation(f"{name} has other readers")
        self._count += 1
        self._is_closed = alone

    def end(self) -> None:
        """Count one less; who was alone was the last."""
        self._count -= 1
        self._is_closed = False


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
