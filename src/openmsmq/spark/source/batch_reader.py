"""Queues as tables: a snapshot of what is in them when the query begins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from openmsmq.api.messages import QueueStatus
from openmsmq.spark.connecting import explained
from openmsmq.spark.errors import QueueGone
from openmsmq.spark.schema import arrow_schema
from openmsmq.spark.source.filters import arrival_bounds, is_taken, keep_matching, may_match
from openmsmq.spark.source.options import SourceOptions
from openmsmq.spark.source.queue_range import Piece, QueueRange, Task, pieces_of, tasks_of
from openmsmq.spark.source.queues import Managers, Source, place_in, queues_at, starting_number
from openmsmq.spark.source.reading import read_ranges


class BatchReader(DataSourceReader):
    """Reads what is in queues and leaves it there.

    The snapshot is by arrival number: nothing that comes later is read. A message that somebody
    else receives before its task comes to it is not in the result.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._conditions: list[Filter] = []

    def partitions(self) -> Sequence[InputPartition]:
        """Share what is in the queues among tasks."""
        managers = Managers(self._options.place)
        with closing(managers):
            pieces = [
                piece
                for source in managers.now(first=True)
                for status in queues_at(source, self._options.queues, _missing)
                for piece in self._pieces(source, status)
            ]
        return tasks_of(pieces, self._options.partitions)

    def _pieces(self, source: Source, status: QueueStatus) -> list[Piece]:
        low, high = arrival_bounds(self._conditions)
        name, end = status.path_name, status.last_arrival_number + 1
        stop = min(high, end, place_in(self._options.ending_offsets, name, "latest", end))
        if not isinstance(self._options.starting_offsets, str):
            low = max(low, starting_number(self._options.starting_offsets, status, source))
        if not status.message_count or not may_match(self._conditions, "queue", name):
            return []
        whole = QueueRange(source.address, name, low, stop, source.identity)
        with explained(source.address, name), source.manager.queue(name) as queue:
            return pieces_of(queue, whole, self._options.partitions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the messages of one task."""
        if not isinstance(partition, Task):
            # Spark makes one of its own when there are none: the queues are empty.
            return
        for batch in read_ranges(self._options, partition.ranges):
            yield keep_matching(batch, self._conditions)


def _missing(_: str, error: QueueGone) -> None:
    raise error


class FilteringBatchReader(BatchReader):
    """A batch reader whose tasks filter; Spark takes one only if its own setting allows it."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take the filters that the tasks can apply; give the others back."""
        schema = arrow_schema(self._options.columns)
        for condition in filters:
            if is_taken(condition, schema):
                self._conditions.append(condition)
            else:
                yield condition
