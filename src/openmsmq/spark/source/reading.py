"""What a task does: fetch the packets of a range of a queue, and make record batches of them.

Nothing here outlives a call: the ranges are values, and sockets are opened inside `read_range`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import pairwise
from typing import Final, TypeVar

import pyarrow as pa

from openmsmq.api.messages import Packets
from openmsmq.client.blocking import QueueManager
from openmsmq.spark.connecting import connected
from openmsmq.spark.source.options import OnError, SourceOptions
from openmsmq.spark.source.poison import dispose
from openmsmq.spark.source.queue_range import QueueRange

FETCH_MAX_COUNT: Final = 8192
"""Messages in one answer of a queue manager, and so in one record batch."""

FETCH_MAX_BYTES: Final = 4 << 20
"""Bytes after which an answer has no more messages.

To decode an answer costs about a millisecond however short it is, so a short one is dear for each
message. A long one lies in memory that is new to the queue manager, and not in its caches.
"""

Value = TypeVar("Value")

RANGE_MIN_SPAN: Final = 5000
"""Arrival numbers in a range below which it is not split for another task."""


def split(whole: QueueRange, count: int) -> list[QueueRange]:
    """Share a range of arrival numbers among up to `count` tasks; short ones are not split."""
    start, span = whole.start, whole.stop - whole.start
    if span <= 0:
        return []
    count = min(count, -(-span // RANGE_MIN_SPAN))
    bounds = [start + span * place // count for place in range(count + 1)]
    return [whole.part(low, high) for low, high in pairwise(bounds)]


def first_arrival(manager: QueueManager, queue: str, start: int, stop: int) -> int:
    """Give the lowest arrival number in a range; `stop` if there is no message in it."""
    with manager.queue(queue) as handle:
        found = handle.fetch_range(start, stop, 1, 1)
    return found[0].arrival_number if found else stop


def read_range(options: SourceOptions, part: QueueRange) -> Iterator[pa.RecordBatch]:
    """Give the messages of a range, as they are in the queue now.

    While Spark takes one record batch, the next one is decoded, and the one after it is fetched.
    """
    with (
        connected(options.place, part.address, part.queue) as manager,
        # Closed before the connection is, so that no thread is left that uses it.
        closing(ahead(_fetched(manager, part))) as fetched,
    ):
        yield from ahead(_decoded(options, manager, part, fetched))


def ahead(values: Iterator[Value]) -> Generator[Value, None, None]:
    """Give values, while a thread already makes the next one."""
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, values, None)
        while (value := coming.result()) is not None:
            coming = thread.submit(next, values, None)
            yield value


def _fetched(manager: QueueManager, part: QueueRange) -> Iterator[Packets]:
    queue = manager.queue(part.queue)
    start = part.start
    while start < part.stop:
        raw = queue.fetch_packets(
            start,
            part.stop,
            FETCH_MAX_COUNT,
            FETCH_MAX_BYTES,
            reader=part.reader,
            checkpoint=part.checkpoint,
        )
        start = raw.next_start
        if raw.sizes:
            yield raw


def _decoded(
    options: SourceOptions, manager: QueueManager, part: QueueRange, fetched: Iterator[Packets]
) -> Iterator[pa.RecordBatch]:
    # Whoever only plans a query does without what this imports.
    from openmsmq.spark.decode.record_batches import decode

    for raw in fetched:
        decoded = decode(raw, queue_manager=manager.name, queue=part.queue, columns=options.columns)
        if not decoded.failures or options.on_error is OnError.ROW:
            yield decoded.batch
        else:
            dispose(options, manager, part, decoded.failures)
            yield decoded.readable
