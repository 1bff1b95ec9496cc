"""What a task of `ingest` does: write the messages of ranges, or rows, into files, with Arrow.

Messages are copied from their queues without passing through Java. Only where Spark has to parse
bodies, rows come from it. The driver hears of the files of attempts that Spark accepts, and no
others; `table` makes them part of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from openmsmq.spark.pipelines.ingest.files import Staged, StagedFiles, writing
from openmsmq.spark.source.options import SourceOptions
from openmsmq.spark.source.queue_range import QueueRange
from openmsmq.spark.source.ranges import ranges_in
from openmsmq.spark.source.reading import read_range

DATE: Final = "date"
"""The column that is added to partition by: the day on which a message arrived, in UTC."""

_STAGED: Final = pa.schema(
    [
        ("name", pa.string()),
        ("partition", pa.string()),
        ("rows", pa.int64()),
        ("size", pa.int64()),
        ("modified_ms", pa.int64()),
    ]
)


class Copying(msgspec.Struct, frozen=True):
    """What tasks are told."""

    options: SourceOptions
    staging: str
    partition_by: tuple[str, ...]
    schema: Any
    """The columns of the files, as Arrow calls them."""


def staged_schema() -> StructType:
    """Return the columns in which tasks tell about their files."""
    return from_arrow_schema(_STAGED)


def copy_ranges(job: Copying, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Copy the messages of ranges; gives rows about the files."""
    yield _told(copy(job, (part for each in rows for part in ranges_in(each))))


def copy(job: Copying, parts: Iterable[QueueRange]) -> list[Staged]:
    """Copy the messages of ranges into files, which small ranges share."""

    def messages() -> Iterator[pa.RecordBatch]:
        for part in parts:
            yield from read_range(job.options, part)

    return _write(job, messages())


def write_rows(job: Copying, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write rows that Spark has made; gives rows about the files."""
    yield _told(_write(job, rows))


def _write(job: Copying, rows: Iterator[pa.RecordBatch]) -> list[Staged]:
    files = StagedFiles(Path(job.staging), job.partition_by, job.schema)
    try:
        with writing(files.staging):
            for batch in rows:
                if batch.num_rows:
                    files.add(with_date(batch) if DATE in job.partition_by else batch)
            return files.close()
    except BaseException:
        files.discard()
        raise


def with_date(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Add the column `date`."""
    # Spark gives times in the zone of its session.
    times = batch.column("arrived_time").cast(pa.timestamp("us", "UTC"))
    # Most batches are of one day, and two times are read sooner than thousands.
    extremes = pc.min_max(times)
    first, last = (extremes[name].cast(pa.date32()) for name in ("min", "max"))
    one_day = first == last and first.is_valid and not times.null_count
    dates = pa.repeat(first, len(times)) if one_day else times.cast(pa.date32())
    return batch.append_column(DATE, dates)


def _told(files: list[Staged]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(map(msgspec.structs.asdict, files)), schema=_STAGED)
