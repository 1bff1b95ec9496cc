"""Data sources that the bench compares `msmq` with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle, pairwise
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from openmsmq.spark.connecting import connected
from openmsmq.spark.decode.rows import entries_in, row_of
from openmsmq.spark.schema import NAMES, arrow_schema, spark_schema
from openmsmq.spark.source.options import SourceOptions, read_source_options
from openmsmq.spark.source.queue_range import QueueRange, Task
from openmsmq.spark.source.reading import (
    FETCH_MAX_BYTES,
    FETCH_MAX_COUNT,
    read_range,
)

READY_COUNT: Final = 32_768
"""Different rows that the ceiling yields, again and again."""


def make_ready(path: Path, address: str, queue: str) -> None:
    """Write the first rows of a queue to a file, as the record batches that `msmq` yields."""
    options = read_source_options({"qm": address, "queue": queue})
    first = QueueRange(address, queue, 0, READY_COUNT)
    with pa.ipc.new_file(path, arrow_schema(NAMES)) as file:
        for batch in read_range(options, first):
            file.write_batch(batch)


class Share(InputPartition):
    """How many rows one task yields."""


class ReadyRows(DataSource):
    """The ceiling: tasks that yield record batches which are ready before they begin.

    They are rows of the queue itself, from a file that is only mapped into memory; so Spark has
    the same work with them, and nobody else has any.
    """

    @classmethod
    def name(cls) -> str:
        return "ready"

    def schema(self) -> StructType:
        return spark_schema(NAMES)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        return ReadyReader(
            self.options["path"], int(self.options["count"]), int(self.options["tasks"])
        )


class ReadyReader(DataSourceReader):
    """Yields the record batches of a file again and again."""

    def __init__(self, path: str, count: int, tasks: int) -> None:
        self._path = path
        self._count = count
        self._tasks = tasks

    def partitions(self) -> Sequence[InputPartition]:
        bounds = [self._count * place // self._tasks for place in range(self._tasks + 1)]
        return [Share(high - low) for low, high in pairwise(bounds)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(self._path) as content, pa.ipc.open_file(content) as file:
            batches = [file.get_batch(place) for place in range(file.num_record_batches)]
            left = partition.value
            for batch in cycle(batches):
                if left <= 0:
                    break
                yield batch.slice(0, left)
                left -= min(left, batch.num_rows)


class RowByRow(DataSource):
    """The same queue, decoded message by message with the scalar codec, as rows of Python."""

    @classmethod
    def name(cls) -> str:
        return "row-by-row"

    def schema(self) -> StructType:
        return spark_schema(NAMES)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        like = {name: self.options[name] for name in ("qm", "queue")}
        count, tasks = int(self.options["count"]), int(self.options["tasks"])
        return RowReader(read_source_options(like), count, tasks)


class RowReader(DataSourceReader):
    """Fetches as the real one does, and decodes one by one."""

    def __init__(self, options: SourceOptions, count: int, tasks: int) -> None:
        self._options = options
        self._count = count
        self._tasks = tasks

    def partitions(self) -> Sequence[InputPartition]:
        # Arrival numbers begin at 1 in a queue manager that has only this queue.
        address, queue = self._options.place.addresses[0], self._options.queues[0]
        bounds = [1 + self._count * place // self._tasks for place in range(self._tasks + 1)]
        return [Task([QueueRange(address, queue, low, high)]) for low, high in pairwise(bounds)]

    def read(self, partition: InputPartition) -> Iterator[tuple[object, ...]]:
        assert isinstance(partition, Task)
        (part,) = partition.ranges
        with connected(self._options.place, part.address, part.queue) as manager:
            queue, start = manager.queue(part.queue), part.start
            while start < part.stop:
                raw = queue.fetch_packets(start, part.stop, FETCH_MAX_COUNT, FETCH_MAX_BYTES)
                for entry in entries_in(raw):
                    row = row_of(entry, queue_manager=manager.name, queue=part.queue)
                    yield tuple(row[name] for name in NAMES)
                start = raw.next_start
