"""Entries by their arrival numbers, whatever their priority: what readers of very many ask for."""

from __future__ import annotations

from typing import Final

from openmsmq.manager.queues.queue import LocalQueue, Row
from openmsmq.storage import records
from openmsmq.storage.port import Stretch

ARRIVALS_MAX_BYTES: Final = 16 << 20
"""Bytes after which a look by arrival numbers brings no more entries."""
ARRIVALS_FIRST_ROWS: Final = 32
"""Entries that its first step brings; how large these are tells how many the next one may."""
ARRIVALS_GROWTH: Final = 4
ARRIVALS_STEP_BYTES: Final = 1 << 17
"""Bytes that a later step brings, or little more. Whoever takes them step by step finds them in the
processor's cache: to copy what is not there any more costs several times as much."""

Stored = tuple[bytes, bytes]
"""An entry as the store has it: the key ends with the lookup identifier."""
LOOKUP_START: Final = 5
"""Where the lookup identifier begins in a key; the arrival number begins a byte later."""
ARRIVAL_BYTES: Final = 7
"""How long the arrival number is there, at the end of the key."""


def by_arrival(
    queue: LocalQueue, start: int, stop: int, count: int, bytes_max: int = ARRIVALS_MAX_BYTES
) -> list[Row]:
    """Return entries with `start` <= arrival number < `stop`, lowest first, held or not.

    There are fewer than `count` and more beyond them when these have `bytes_max` bytes.
    """
    found = stored_by_arrival(queue, start, stop, count, bytes_max)
    return [(int.from_bytes(key[LOOKUP_START:], "big"), value) for key, value in found]


def stored_by_arrival(
    queue: LocalQueue, start: int, stop: int, count: int, bytes_max: int
) -> list[Stored]:
    """Return what `by_arrival` gives, as the store has it: very many of these cost less."""
    arrivals = Arrivals(queue, start, stop)
    found: list[Stored] = []
    while len(found) < count and bytes_max > 0:
        rows, size = arrivals.take(count - len(found), bytes_max)
        if not rows:
            break
        found += rows
        bytes_max -= size
    return found


class Arrivals:
    """The entries of a range of arrival numbers, held or not, one step after the other."""

    def __init__(self, queue: LocalQueue, start: int, stop: int) -> None:
        self._queue = queue
        self.start = max(start, 0)
        """Where the next step begins: behind the last entry that was taken."""
        self._stop = min(stop, records.ARRIVAL_MASK + 1)
        self._levels = list(range(8))
        self._step = ARRIVALS_FIRST_ROWS
        self._usual_bytes = 0
        self._is_over = False

    def take(self, count: int, bytes_max: int) -> tuple[list[Stored], int]:
        """Return the next entries and how many bytes they have; none if there are no more.

        They are up to `count`, and end at the latest with the one that reaches `bytes_max`.
        """
        if self._is_over or self.start >= self._stop:
            return [], 0
        wanted = min(count, self._step)
        if self._usual_bytes:
            wanted = min(wanted, bytes_max // self._usual_bytes + 1)
        rows, self._levels = _next_arrivals(
            self._queue, self._levels, self.start, self._stop, wanted
        )
        self._is_over = len(rows) < wanted
        if not rows:
            return rows, 0
        size = sum([len(value) for _, value in rows])
        if size > bytes_max:
            rows, size = _within_bytes(rows, bytes_max)
            self._is_over = False
        self.start = arrival_in(rows[-1][0]) + 1
        self._usual_bytes = max(1, size // len(rows))
        self._step = min(self._step * ARRIVALS_GROWTH, ARRIVALS_STEP_BYTES // self._usual_bytes + 1)
        return rows, size

    def take_stretch(self, count: int, bytes_max: int) -> Stretch | None:
        """Return the next entries if the store has them side by side; None if `take` is to look.

        They are up to `count`, and end at the latest with the one that reaches `bytes_max`.
        """
        if self._is_over or self.start >= self._stop or len(self._levels) != 1:
            return None
        queue, base = self._queue, self._levels[0] << 56
        start, stop = base + self.start, base + self._stop
        found = queue.reader.stretch(
            records.entry_key(queue.id, start),
            records.entries_end(queue.id)
            if stop > records.LOOKUP_MAX
            else records.entry_key(queue.id, stop),
            count,
            bytes_max,
        )
        if found is not None:
            self.start = int.from_bytes(found.keys[-ARRIVAL_BYTES:], "big") + 1
        return found


def last_arrival(queue: LocalQueue, start: int, stop: int) -> int | None:
    """Return the highest arrival number of an entry with `start` <= number < `stop`."""
    found: int | None = None
    for level in range(8):
        base = level << 56
        for key, _ in queue.scan(base + start, base + stop - 1, 1, reverse=True):
            arrival = int.from_bytes(key[LOOKUP_START:], "big") & records.ARRIVAL_MASK
            found = arrival if found is None else max(found, arrival)
    return found


def _next_arrivals(
    queue: LocalQueue, levels: list[int], start: int, stop: int, count: int
) -> tuple[list[Stored], list[int]]:
    """Return the next entries of some levels of priority, and the levels that have any.

    The others have none up to `stop`, so nobody needs to look there again.
    """
    found: list[Stored] = []
    there: list[int] = []
    for level in levels:
        base = level << 56
        rows = queue.scan(base + start, base + stop - 1, count)
        if rows:
            there.append(level)
            found = found + rows if found else rows
    if len(there) > 1:
        found.sort(key=_arrival_bytes)
    return found[:count], there


def arrival_in(key: bytes) -> int:
    """Return the arrival number in the key of an entry."""
    return int.from_bytes(key[LOOKUP_START + 1 :], "big")


def _arrival_bytes(row: Stored) -> bytes:
    return row[0][LOOKUP_START + 1 :]


def _within_bytes(rows: list[Stored], bytes_max: int) -> tuple[list[Stored], int]:
    """Return the rows up to the one that reaches the limit, and how many bytes they have."""
    size = 0
    for place, (_, value) in enumerate(rows, 1):
        size += len(value)
        if size >= bytes_max:
            return rows[:place], size
    return rows, size
