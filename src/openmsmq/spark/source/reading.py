"""What a task does: fetch the packets of ranges of queues, and make record batches of them.

Nothing here outlives a call: the ranges are values, and sockets are opened inside `read_ranges`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import groupby
from typing import Final, TypeVar

import pyarrow as pa

from openmsmq.api.messages import Packets
from openmsmq.client.blocking import QueueManager
from openmsmq.spark.connecting import connected, explained
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

SLATES_COUNT: Final = 2
"""One answer is decoded while the next one is fetched; record batches have nothing of either."""

Value = TypeVar("Value")


def read_ranges(options: SourceOptions, parts: Iterable[QueueRange]) -> Iterator[pa.RecordBatch]:
    """Yield the messages of ranges, as they are in the queues now.

    While Spark takes one record batch, the next one is decoded, and the one after it is fetched.
    """
    for address, together in groupby(parts, lambda part: part.address):
        with (
            connected(options.place, address, slates=SLATES_COUNT) as manager,
            # Closed before the connection is, so that no thread is left that uses it.
            closing(ahead(_fetched(manager, together))) as fetched,
        ):
            yield from ahead(_decoded(options, manager, fetched))


def read_range(options: SourceOptions, part: QueueRange) -> Iterator[pa.RecordBatch]:
    """Return the messages of one range."""
    return read_ranges(options, (part,))


def ahead(values: Iterator[Value]) -> Generator[Value, None, None]:
    """Yield values, while a thread already makes the next one."""
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, values, None)
        while (value := coming.result()) is not None:
            coming = thread.submit(next, values, None)
            yield value


def _fetched(
    manager: QueueManager, parts: Iterable[QueueRange]
) -> Iterator[tuple[QueueRange, Packets]]:
    for part in parts:
        with explained(part.address, part.queue), manager.queue(part.queue) as queue:
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
                    yield part, raw


def _decoded(
    options: SourceOptions,
    manager: QueueManager,
    fetched: Iterator[tuple[QueueRange, Packets]],
) -> Iterator[pa.RecordBatch]:
    # Whoever only plans a query does without what this imports.
    from openmsmq.spark.decode.record_batches import decode

    for part, raw in fetched:
        decoded = decode(raw, queue_manager=manager.name, queue=part.queue, columns=options.columns)
        if not decoded.failures or options.on_error is OnError.ROW:
            yield decoded.batch
        else:
            dispose(options, manager, part, decoded.failures)
            yield decoded.readable
