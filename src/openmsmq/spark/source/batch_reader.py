"""Queues as tables: a snapshot of what is in them when the query begins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from openmsmq.api.messages import QueueStatus
from openmsmq.client.blocking import QueueManager
from openmsmq.spark.connecting import connected, explained
from openmsmq.spark.schema import arrow_schema
from openmsmq.spark.source.filters import arrival_bounds, is_taken, keep_matching, may_match
from openmsmq.spark.source.options import SourceOptions
from openmsmq.spark.source.queue_range import QueueRange
from openmsmq.spark.source.queues import find_queues
from openmsmq.spark.source.reading import first_arrival, read_range, split


class BatchReader(DataSourceReader):
    """Reads what is in queues and leaves it there.

    The snapshot is by arrival number: nothing that comes later is read. A message that somebody
    else receives before its task comes to it is not in the result.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._conditions: list[Filter] = []

    def partitions(self) -> Sequence[InputPartition]:
        """Split the arrival numbers of each queue among tasks."""
        found: list[QueueRange] = []
        low, high = arrival_bounds(self._conditions)
        for address in self._options.place.addresses:
            with connected(self._options.place, address, first=True) as manager:
                for status in self._queues(manager, address):
                    name = status.path_name
                    stop = min(high, status.last_arrival_number + 1)
                    if not status.message_count or not may_match(self._conditions, "queue", name):
                        continue
                    start = first_arrival(manager, name, low, stop)
                    found += split(address, name, start, stop, self._options.partitions)
        return found

    def _queues(self, manager: QueueManager, address: str) -> list[QueueStatus]:
        """Give the queues that the options name, each of them once."""
        found: dict[str, QueueStatus] = {}
        for name in self._options.queues:
            with explained(address, name):
                found |= {status.path_name: status for status in find_queues(manager, name)}
        return list(found.values())

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Give the messages of one range."""
        if not isinstance(partition, QueueRange):
            # Spark makes one of its own when there are none: the queues are empty.
            return
        for batch in read_range(self._options, partition):
            yield keep_matching(batch, self._conditions)


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
