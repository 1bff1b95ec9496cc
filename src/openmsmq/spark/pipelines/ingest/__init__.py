r"""Pipeline: queues to a table of Parquet, Delta or Iceberg, each message in exactly one row.

    query = ingest(spark, {"qm": "127.0.0.2", "queue": r"private$\orders"}, "/data/orders")
    query.awaitTermination()

Tasks write the messages into Parquet files with Arrow (`copying`), and the driver lets those of a
batch count together (`table`). Only Parquet at URLs is written by Spark (`by_spark`).

A batch is read again if it fails, and finds the same messages: the source has reserved them. It is
written again, and counts once: the table knows which batches it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

from openmsmq.spark.errors import BadOption
from openmsmq.spark.paths import is_remote, path_here
from openmsmq.spark.pipelines.bodies import with_body_columns
from openmsmq.spark.pipelines.ingest import by_spark
from openmsmq.spark.pipelines.ingest.beginning import Beginning, begin
from openmsmq.spark.pipelines.ingest.checkpoint import Checkpoint
from openmsmq.spark.pipelines.ingest.copying import (
    DATE,
    Copying,
    copy_ranges,
    staged_schema,
    write_rows,
)
from openmsmq.spark.pipelines.ingest.files import Staged
from openmsmq.spark.pipelines.ingest.formats import PARQUET, Output, require_format
from openmsmq.spark.pipelines.ingest.progress import (
    READER,
    BatchReport,
    FilesAdded,
    batch_reports,
    files_added,
    observed,
)
from openmsmq.spark.pipelines.ingest.table import Table
from openmsmq.spark.schema import arrow_schema, arrow_type
from openmsmq.spark.source.options import Mode, read_source_options
from openmsmq.spark.source.ranges import RangeSource

__all__ = [
    "PARTITION_BY",
    "READER",
    "BatchReport",
    "FilesAdded",
    "batch_reports",
    "files_added",
    "ingest",
    "require_format",
    "with_partitions",
]

PARTITION_BY: Final = ("queue", DATE)

Bodies: TypeAlias = tuple[StructType | None, StructType | None]
"""The schemas of JSON and of XML bodies."""


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
    catalog: str = "",
    table: str = "",
) -> StreamingQuery:
    """Start to write the messages of queues into a table.

    Without `every_s` the query ends with what is there now; with it, it goes on and looks for more
    so often. `checkpoint` is beside the output unless it says another place. An Iceberg table has
    a catalog of its own, unless `catalog` names one of PyIceberg's settings, and `table` its name
    there.
    """
    require_format(format, catalog, table)
    options = {"reader": READER, **source_options}
    read = read_source_options(options)
    require_partitions(read.columns, partition_by)
    checkpoint = checkpoint or default_checkpoint(output)
    bodies = (json_schema, xml_schema)
    path, noted = (path_here(spark, each) for each in (output, checkpoint))
    if format == PARQUET and (path is None or _was_begun_by_spark(spark, path)):
        by_spark.require_own_table(spark, output, checkpoint)
        rows = with_partitions(_messages(spark, options, bodies), partition_by).writeStream
        writer = rows.format(PARQUET).outputMode("append").partitionBy(*partition_by)
        writer = writer.option("path", output)
    elif path is None or noted is None:
        raise BadOption("output", f"a table of {format} and its checkpoint are written on paths")
    else:
        place = Output(format, path, tuple(partition_by), catalog, table)
        writer = _by_tasks(spark, options, place, noted, bodies)
    writer = writer.option("checkpointLocation", checkpoint)
    if every_s is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{round(every_s * 1000)} milliseconds")
    return writer.start()


def _was_begun_by_spark(spark: SparkSession, path: str) -> bool:
    if is_remote(spark):
        return by_spark.has_log(spark, path)
    return Path(path, by_spark.LOG).is_dir()


def _messages(spark: SparkSession, options: Mapping[str, str], bodies: Bodies) -> DataFrame:
    messages = spark.readStream.format("msmq").options(**options).load()
    if bodies == (None, None):
        return messages
    return with_body_columns(messages, json_schema=bodies[0], xml_schema=bodies[1])


def _by_tasks(
    spark: SparkSession, options: Mapping[str, str], place: Output, noted: str, bodies: Bodies
) -> DataStreamWriter:
    """Let tasks write files, and the driver let them count."""
    read = read_source_options(options)
    copies = bodies == (None, None)
    if copies:
        schema = arrow_schema(read.columns)
    else:
        schema = to_arrow_schema(_messages(spark, options, bodies).schema, timezone="UTC")
    if DATE in place.partition_by:
        schema = schema.append(pa.field(DATE, pa.date32()))
    ready = begin(spark, Beginning(read, place, noted, schema))
    if ready.starting_offsets:
        options = {**options, "startingOffsets": ready.starting_offsets}
    if copies:
        # Ranges of messages are the stream: Java does not see the messages.
        spark.dataSource.register(RangeSource)
        rows = spark.readStream.format(RangeSource.name()).options(**options).load()
    else:
        rows = _messages(spark, options, bodies)
    table = place.open()
    job = Copying(read, str(table.staging), place.partition_by, ready.columns)
    files = rows.mapInArrow(partial(copy_ranges if copies else write_rows, job), staged_schema())
    reader = read.reader if read.mode is Mode.CONSUME else ""
    publisher = _Publisher(table, Checkpoint(noted), reader)
    return observed(files).writeStream.foreachBatch(publisher)


class _Publisher:
    """Lets the files of each batch count; with Spark Connect, in a process of the server."""

    def __init__(self, table: Table, checkpoint: Checkpoint, reader: str) -> None:
        self._table = table
        self._checkpoint = checkpoint
        self._reader = reader

    def __call__(self, found: DataFrame, batch: int) -> None:
        mark = self._checkpoint.mark(batch, self._reader)
        # One that was published, and not noted by Spark, is not even read again.
        if not self._table.has(mark):
            self._table.publish(mark, [Staged(*row) for row in found.collect()])


def default_checkpoint(output: str) -> str:
    """Return the place of the checkpoint: beside the table, because inside it would be read too."""
    return f"{output.rstrip('/')}.checkpoint"


def with_partitions(messages: DataFrame, partition_by: Sequence[str]) -> DataFrame:
    """Add the column `date` if the table is to be partitioned by it."""
    if DATE not in partition_by:
        return messages
    return messages.withColumn(DATE, F.to_date("arrived_time"))


def require_partitions(columns: Sequence[str], partition_by: Sequence[str]) -> None:
    """Refuse columns by which a table cannot be partitioned."""
    option = "partition by"
    for name in partition_by:
        if name == DATE:
            if "arrived_time" not in columns:
                raise BadOption("columns", f"leaves out arrived_time, which {DATE} is made of")
        elif name not in columns:
            raise BadOption(option, f"{name} is no column of messages, and not {DATE}")
        elif pa.types.is_binary(arrow_type(name)) or pa.types.is_timestamp(arrow_type(name)):
            raise BadOption(option, f"{name} has bytes or times: take a text, a number or {DATE}")
    if len(set(partition_by)) != len(partition_by):
        raise BadOption(option, "names a column twice")
    if not set(columns) - set(partition_by):
        raise BadOption(option, "leaves no column for the rows")
