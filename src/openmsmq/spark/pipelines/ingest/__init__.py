r"""Pipeline: queues to a table of Parquet or Delta files, each message in exactly one row.

    query = ingest(spark, {"qm": "127.0.0.2", "queue": r"private$\orders"}, "/data/orders")
    query.awaitTermination()

Where the table is Parquet on a path, tasks copy the messages with Arrow: `copying` writes
files, `table` lets them count. Spark writes everything else.

A batch is read again if it fails, and finds the same messages: the source has reserved them. It is
written again, and counts once: the table notes with its files which batch they are of, Parquet in
`_spark_metadata` and Delta in its log. So the table is what these notes say, not what lies in its
directory: read it with Spark, which knows them.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

import msgspec
import pyspark
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

from openmsmq.spark.errors import BadOption
from openmsmq.spark.pipelines.bodies import with_body_columns
from openmsmq.spark.pipelines.ingest.copying import (
    DATE,
    Copying,
    Staged,
    can_copy,
    copied_here,
    copy_ranges,
    staged_schema,
)
from openmsmq.spark.pipelines.ingest.table import COMPACT_INTERVAL, Table
from openmsmq.spark.source.options import Mode, read_source_options
from openmsmq.spark.source.ranges import RangeSource

PARQUET: Final = "parquet"
DELTA: Final = "delta"
FORMATS: Final = (PARQUET, DELTA)
PARTITION_BY: Final = ("queue", DATE)
READER: Final = "ingest"
"""The reader for which messages are reserved, if nobody names another one."""

_SCALA: Final = "2.13"
_COPIED: Final = "copied"
_COMPACT_INTERVAL: Final = "spark.sql.streaming.fileSink.log.compactInterval"


class BatchReport(msgspec.Struct, frozen=True):
    """What became of one batch."""

    batch: int
    message_count: int
    behind_count: int
    """So many messages at most were waiting when the batch was done."""
    duration_ms: int


class FilesAdded(msgspec.Struct, frozen=True):
    """What was written."""

    count: int
    bytes: int


def ingest(
    spark: SparkSession,
    source_options: Mapping[str, str],
    output: str,
    *,
    checkpoint: str = "",
    format: str = PARQUET,
    every_s: float | None = None,
    partition_by: Sequence[str] = PARTITION_BY,
    json_schema: StructType | None = None,
    xml_schema: StructType | None = None,
) -> StreamingQuery:
    """Start to write the messages of queues into a table.

    Without `every_s` the query ends with what is there now; with it, it goes on and looks for more
    so often. `checkpoint` is beside the output unless it says another place.
    """
    require_format(format)
    options = {"reader": READER, **source_options}
    read = read_source_options(options)
    checkpoint = checkpoint or default_checkpoint(output)
    if format == PARQUET:
        _require_own_table(spark, output, checkpoint)
    schemas = (json_schema, xml_schema)
    path = None
    # Bodies are parsed by Spark, and Delta keeps its own log.
    if format == PARQUET and schemas == (None, None) and can_copy(read.columns, partition_by):
        path = _path_to_copy_to(spark, output)
    if path is not None:
        _require_partitions(read.columns, partition_by)
        writer = _copied(spark, options, Copying(read, path, tuple(partition_by)))
    else:
        messages = spark.readStream.format("msmq").options(**options).load()
        rows = with_partitions(messages, partition_by)
        if schemas != (None, None):
            rows = with_body_columns(rows, json_schema=json_schema, xml_schema=xml_schema)
        writer = rows.writeStream.format(format).outputMode("append").partitionBy(*partition_by)
    writer = writer.option("checkpointLocation", checkpoint)
    if every_s is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{round(every_s * 1000)} milliseconds")
    return writer.start(output if path is None else None)


def _path_to_copy_to(spark: SparkSession, output: str) -> str | None:
    """Give the path of a table that tasks can write without Spark; None if they cannot."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 -- nobody else knows it
    return copied_here(output, hadoop.get("fs.defaultFS", "file:///"))


def _copied(spark: SparkSession, options: Mapping[str, str], copying: Copying) -> DataStreamWriter:
    """Let ranges of messages be the stream; tasks copy them, and the driver lets them count."""
    interval = spark.conf.get(_COMPACT_INTERVAL, None)
    table = Table(copying.table, int(interval or COMPACT_INTERVAL))
    table.prepare()
    spark.dataSource.register(RangeSource)
    ranges = spark.readStream.format(RangeSource.name()).options(**options).load()
    files = ranges.mapInArrow(partial(copy_ranges, copying), staged_schema()).observe(
        _COPIED, F.coalesce(F.sum("rows"), F.lit(0)).alias("messages")
    )

    def publish(found: DataFrame, batch: int) -> None:
        # One that was published, and not noted by Spark, is not even read again.
        if not table.has(batch):
            table.publish(batch, [Staged(*row) for row in found.collect()])

    return files.writeStream.foreachBatch(publish)


def default_checkpoint(output: str) -> str:
    """Give the place of the checkpoint: beside the table, because inside it would be read too."""
    return f"{output.rstrip('/')}.checkpoint"


def with_partitions(messages: DataFrame, partition_by: Sequence[str]) -> DataFrame:
    """Add the column `date` if the table is to be partitioned by it; check the others."""
    _require_partitions(messages.columns, partition_by)
    if DATE not in partition_by:
        return messages
    return messages.withColumn(DATE, F.to_date("arrived_time"))


def _require_partitions(columns: Sequence[str], partition_by: Sequence[str]) -> None:
    for name in partition_by:
        if name != DATE and name not in columns:
            raise BadOption("partition by", f"{name} is no column of messages, and not {DATE}")
    if DATE in partition_by and "arrived_time" not in columns:
        raise BadOption("columns", f"leaves out arrived_time, which {DATE} is made of")


# The table and its checkpoint.


def _require_own_table(spark: SparkSession, output: str, checkpoint: str) -> None:
    """Refuse a table that was written with another checkpoint.

    Spark leaves out batches whose numbers the table has already. Those of a new checkpoint begin
    at 0: their messages would be taken out of their queues and be nowhere.
    """
    noted = _files(spark, f"{checkpoint}/offsets/[0-9]*")
    last = max((int(path.rpartition("/")[2]) for path in noted or ()), default=-1)
    later = ",".join(numbers_above(last))
    if _files(spark, f"{output}/_spark_metadata/{{{later}}}") is not None:
        raise BadOption(
            "checkpoint",
            f"{output} has batches that {checkpoint} does not know, so new ones would be taken for "
            "them and be lost: give the checkpoint with which the table was written, or another "
            "output",
        )


def numbers_above(number: int) -> list[str]:
    """Give patterns of file names that begin with a higher number."""
    if number < 0:
        return ["[0-9]*"]
    digits = str(number)
    rest = len(digits)
    patterns = ["[1-9]" + "[0-9]" * rest + "*"]
    for place, digit in enumerate(digits):
        rest -= 1
        if digit < "9":
            patterns.append(f"{digits[:place]}[{int(digit) + 1}-9]" + "[0-9]" * rest + "*")
    return patterns


def _files(spark: SparkSession, pattern: str) -> list[str] | None:
    """Give the files that a pattern names, where Spark tells them; None if there are none."""
    try:
        return spark.read.format("binaryFile").load(pattern).inputFiles()
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return None
        raise


# Formats.


def require_format(format: str) -> None:
    """Refuse a format that is not known, or that something is missing for."""
    if format not in FORMATS:
        raise BadOption("format", f"{format!r} is not one of {', '.join(FORMATS)}")
    if format == DELTA and importlib.util.find_spec("delta") is None:
        raise BadOption("format", "delta needs Delta Lake: pip install delta-spark")


def format_settings(format: str) -> dict[str, str]:
    """Give the settings with which a session must be started to write a format."""
    require_format(format)
    if format != DELTA:
        return {}
    return delta_settings(importlib.metadata.version("delta-spark"), pyspark.__version__)


def delta_settings(delta_version: str, spark_version: str) -> dict[str, str]:
    """Give the settings of a session that has Delta Lake; Spark fetches its classes itself."""
    spark_line = ".".join(spark_version.split(".")[:2])
    return {
        "spark.jars.packages": f"io.delta:delta-spark_{spark_line}_{_SCALA}:{delta_version}",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }


# How far it has come.


def batch_reports(
    query: StreamingQuery, source_options: Mapping[str, str], after: int
) -> list[BatchReport]:
    """Tell of the batches with messages that were done since the batch with the number `after`."""
    mode = read_source_options({"reader": READER, **source_options}).mode
    found: list[BatchReport] = []
    for progress in query.recentProgress:
        copied = progress.observedMetrics.get(_COPIED)
        # Where tasks copy, the rows of Spark are ranges.
        count = progress.numInputRows if copied is None else copied["messages"]
        if progress.batchId <= after or not count:
            continue
        source = progress.sources[0]
        behind = behind_count(
            _offset(source.endOffset),
            _offset(source.latestOffset),
            # What a batch consumes is in the queue until the next one begins.
            count if mode is Mode.CONSUME else 0,
        )
        duration_ms = progress.durationMs.get("triggerExecution", 0)
        found.append(BatchReport(progress.batchId, count, behind, duration_ms))
    return found


def _offset(text: str | None) -> dict[str, dict[str, int]]:
    # A query that goes on does not say for its first batch how far the queues have come.
    return (msgspec.json.decode(text) if text else None) or {}


def behind_count(
    end: Mapping[str, Mapping[str, int]], latest: Mapping[str, Mapping[str, int]], done_count: int
) -> int:
    """Give how many messages at most wait behind the end of a batch.

    Arrival numbers have gaps, and a queue also has messages that were read already: of both counts
    the lower one is nearer to the truth.
    """
    waiting = sum(spot.get("waiting", 0) for spot in latest.values()) - done_count
    numbers = sum(
        max(0, spot.get("next", 0) - end.get(name, {}).get("next", 0))
        for name, spot in latest.items()
    )
    return max(0, min(waiting, numbers))


def files_added(spark: SparkSession, output: str, format: str, since: datetime) -> FilesAdded:
    """Count the files of a table that were written since a time, and their bytes."""
    file = F.col("_metadata")
    found = (
        spark.read.format(format)
        .load(output)
        .where(file["file_modification_time"] >= F.lit(since))
        .select(file["file_path"].alias("path"), file["file_size"].alias("size"))
        .distinct()
        .agg(F.count("*"), F.coalesce(F.sum("size"), F.lit(0)))
        .first()
    )
    assert found is not None
    return FilesAdded(found[0], found[1])
