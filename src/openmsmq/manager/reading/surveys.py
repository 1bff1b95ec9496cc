"""How messages are spread over a range of arrival numbers, so that readers can share it fairly.

Arrival numbers are given for the whole queue manager, so a queue may have all of a range, or few
of it. A short range is counted. In a long one some messages of each part are looked at, and how
close they lie says how many there are: the work is bounded, however long the range is.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from openmsmq.api.bulk import Part
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.reading.by_arrival import by_arrival, last_arrival
from openmsmq.storage import records

COUNTED_ROWS: Final = 512
"""Messages of a range that is counted."""
COUNTED_BYTES: Final = 1 << 20
_SAMPLE_ROWS: Final = 16
_SAMPLE_BYTES: Final = 64 << 10


def surveyed(queue: LocalQueue, start: int, stop: int, count: int) -> list[Part]:
    """Return up to `count` parts of a range, from its first message to behind its last one."""
    rows = by_arrival(queue, start, stop, COUNTED_ROWS, COUNTED_BYTES)
    if not rows:
        return []
    first = rows[0][0] & records.ARRIVAL_MASK
    last = last_arrival(queue, start, stop)
    assert last is not None
    if rows[-1][0] & records.ARRIVAL_MASK == last:
        return [Part(first, last + 1, len(rows), sum(len(value) for _, value in rows))]
    span = last + 1 - first
    count = min(count, span)
    bounds = [first + span * place // count for place in range(count + 1)]
    return [_sampled(queue, low, high) for low, high in pairwise(bounds)]


def _sampled(queue: LocalQueue, start: int, stop: int) -> Part:
    """Conclude from the first messages of a part how many there are in it."""
    rows = by_arrival(queue, start, stop, _SAMPLE_ROWS, _SAMPLE_BYTES)
    size = sum(len(value) for _, value in rows)
    if not rows or (len(rows) < _SAMPLE_ROWS and size < _SAMPLE_BYTES):
        return Part(start, stop, len(rows), size)
    reached = (rows[-1][0] & records.ARRIVAL_MASK) + 1 - start
    count = len(rows) * (stop - start) // reached
    return Part(start, stop, count, size * count // len(rows))
