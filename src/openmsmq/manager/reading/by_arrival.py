"""Entries by their arrival numbers, whatever their priority: what readers of very many ask for."""

from __future__ import annotations

from typing import Final

from openmsmq.manager.queues.queue import LocalQueue, Row
from openmsmq.storage import records

ARRIVALS_MAX_BYTES: Final = 16 << 20
"""Bytes after which a look by arrival numbers brings no more entries."""
ARRIVALS_FIRST_ROWS: Final = 32
"""Entries that its first step brings; how large these are tells how many the next one may."""
ARRIVALS_GROWTH: Final = 4

Stored = tuple[bytes, bytes]
"""An entry as the store has it: the key ends with the lookup identifier."""
LOOKUP_START: Final = 5
"""Where the lookup identifier begins in a key; the arrival number begins a byte later."""


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
    found: list[Stored] = []
    start, stop = max(start, 0), min(stop, records.ARRIVAL_MASK + 1)
    step = ARRIVALS_FIRST_ROWS
    levels = list(range(8))
    while start < stop and len(found) < count and bytes_max > 0:
        wanted = min(count - len(found), step)
        rows, levels = _next_arrivals(queue, levels, start, stop, wanted)
        if not rows:
            break
        start = arrival_in(rows[-1][0]) + 1
        taken, left = _within_bytes(rows, bytes_max)
        found += taken
        if len(rows) < wanted:
            break
        usual = max(1, (bytes_max - left) // len(taken))
        bytes_max = left
        step = max(1, min(step * ARRIVALS_GROWTH, bytes_max // usual + 1))
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
    """Return the rows up to the one that reaches the limit, and what is left of the limit."""
    for place, (_, value) in enumerate(rows, 1):
        bytes_max -= len(value)
        if bytes_max <= 0:
            return rows[:place], bytes_max
    return rows, bytes_max
