"""The work of tasks: ranges of arrival numbers, shared by the messages and bytes in them.

A task has ranges of one queue or of several: very many small queues make few tasks, and a queue
with large messages makes several.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from pyspark.sql.datasource import InputPartition

from openmsmq.api.messages import Part
from openmsmq.client.blocking import Queue
from openmsmq.model.limits import SURVEY_PARTS_MAX_COUNT

TASK_MIN_COUNT: Final = 5000
"""Messages that are worth a task of their own."""
TASK_MIN_BYTES: Final = 16 << 20
"""Bytes of messages that are."""

_PARTS_OF_TASK: Final = 4
"""Parts in which a queue manager counts the messages of a task: by so much tasks differ."""


class QueueRange(msgspec.Struct, frozen=True):
    """Messages of one queue with `start` <= arrival number < `stop`."""

    address: str
    queue: str
    start: int
    stop: int
    manager: str = ""
    """The identity of the queue manager, however it is addressed."""
    reader: str = ""
    checkpoint: str = ""
    """The query for which the messages are reserved; empty if they are only looked at."""

    def part(self, start: int, stop: int) -> QueueRange:
        """Return a part of it."""
        return msgspec.structs.replace(self, start=start, stop=stop)


class Task(InputPartition):
    """Ranges that one task reads, one after the other."""

    def __init__(self, ranges: Sequence[QueueRange]) -> None:
        super().__init__(ranges)
        self.ranges = tuple(ranges)


class Piece(msgspec.Struct, frozen=True):
    """A range that stays together, and what is in it."""

    range: QueueRange
    count: int
    size: int

    @property
    def weight(self) -> float:
        """What share of a task it is worth."""
        return max(self.count / TASK_MIN_COUNT, self.size / TASK_MIN_BYTES)


def pieces_of(queue: Queue, whole: QueueRange, tasks: int) -> list[Piece]:
    """Ask a queue manager what is in a range; parts without messages are left out."""
    parts: list[Part] = queue.survey(
        whole.start, whole.stop, min(SURVEY_PARTS_MAX_COUNT, _PARTS_OF_TASK * tasks)
    )
    return [
        Piece(whole.part(part.start, part.stop), part.count, part.size)
        for part in parts
        if part.count
    ]


def tasks_of(pieces: Sequence[Piece], most: int) -> list[Task]:
    """Share pieces among up to `most` tasks, in their order; each is worth the while."""
    total = sum(piece.weight for piece in pieces)
    # What is worth two tasks is so also after rounding.
    count = min(most, max(1, int(total + 1e-6)))
    tasks: list[list[QueueRange]] = [[] for _ in range(count)]
    done = 0.0
    for piece in pieces:
        place = int((done + piece.weight / 2) * count / total)
        done += piece.weight
        _add(tasks[min(place, count - 1)], piece.range)
    return [Task(ranges) for ranges in tasks if ranges]


def _add(ranges: list[QueueRange], found: QueueRange) -> None:
    """Add a range to those of a task; one that goes on with the last is joined to it."""
    if ranges and ranges[-1].part(0, 0) == found.part(0, 0):
        ranges[-1] = found.part(ranges[-1].start, found.stop)
    else:
        ranges.append(found)
