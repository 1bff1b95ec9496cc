"""Queues as streams of ranges: a row names messages of a task, and does not hold them.

For jobs whose tasks read the messages themselves, so that none passes through Java. Batches are
planned, reserved, checked and completed as those of `msmq` are; only what a task yields differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from openmsmq.spark.source.data_source import MsmqDataSource
from openmsmq.spark.source.options import read_source_options
from openmsmq.spark.source.queue_range import QueueRange, Task
from openmsmq.spark.source.stream_reader import StreamReader

_SCHEMA: Final = pa.schema(
    [
        ("address", pa.string()),
        ("queue", pa.string()),
        ("start", pa.int64()),
        ("stop", pa.int64()),
        ("manager", pa.string()),
        ("reader", pa.string()),
        ("checkpoint", pa.string()),
    ]
)


class RangeSource(MsmqDataSource):
    """The data source `msmq_ranges`, inside of pipelines: who uses it registers it."""

    @classmethod
    def name(cls) -> str:
        """Return the name by which `format` finds it."""
        return "msmq_ranges"

    def schema(self) -> StructType:
        """Return the columns of a range."""
        return from_arrow_schema(_SCHEMA)

    def streamReader(self, schema: StructType) -> RangeReader:  # noqa: ARG002
        """Make a reader for a stream."""
        return RangeReader(read_source_options(self.options))


class RangeReader(StreamReader):
    """Plans as a stream of messages does; a task yields its own ranges."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield each range as a row."""
        assert isinstance(partition, Task)
        rows = [msgspec.structs.asdict(part) for part in partition.ranges]
        yield pa.RecordBatch.from_pylist(rows, schema=_SCHEMA)


def ranges_in(rows: pa.RecordBatch) -> list[QueueRange]:
    """Read ranges from rows."""
    return [QueueRange(**row) for row in rows.to_pylist()]
