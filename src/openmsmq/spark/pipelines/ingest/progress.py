"""How far `ingest` has come, as Spark tells it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from openmsmq.spark.source.options import Mode, read_source_options

READER: Final = "ingest"
"""The reader for which messages are reserved, if nobody names another one."""

_COPIED: Final = "copied"


class BatchReport(msgspec.Struct, frozen=True):
    """What became of one batch."""

    batch: int
    message_count: int
    behind_count: int
    """So many messages at most were waiting when the batch was done."""
    duration_ms: int
    files: FilesAdded | None
    """What was written; None if Spark has written it, and does not tell."""


class FilesAdded(msgspec.Struct, frozen=True):
    """Files, and their bytes."""

    count: int
    bytes: int


def observed(files: DataFrame) -> DataFrame:
    """Let Spark count what tasks tell about their files."""
    return files.observe(
        _COPIED,
        F.coalesce(F.sum("rows"), F.lit(0)).alias("messages"),
        F.count("*").alias("files"),
        F.coalesce(F.sum("size"), F.lit(0)).alias("bytes"),
    )


def batch_reports(
    query: StreamingQuery, source_options: Mapping[str, str], after: int
) -> list[BatchReport]:
    """Tell of the batches with messages that were done since the batch with the number `after`."""
    mode = read_source_options({"reader": READER, **source_options}).mode
    found: list[BatchReport] = []
    for progress in query.recentProgress:
        copied = progress.observedMetrics.get(_COPIED)
        if copied is None:
            count, files = progress.numInputRows, None
        else:
            # What Spark counts as rows here are ranges. Spark Connect tells of a row in two parts.
            told = copied.asDict()
            count, *added = told.get("values") or told.values()
            files = FilesAdded(*added)
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
        found.append(BatchReport(progress.batchId, count, behind, duration_ms, files))
    return found


def _offset(text: str | None) -> dict[str, dict[str, int]]:
    # A query that goes on does not say for its first batch how far the queues have come.
    return (msgspec.json.decode(text) if text else None) or {}


def behind_count(
    end: Mapping[str, Mapping[str, int]], latest: Mapping[str, Mapping[str, int]], done_count: int
) -> int:
    """Return how many messages at most wait behind the end of a batch.

    Arrival numbers have gaps, and a queue also has messages that were read already: of both counts
    the lower one is nearer to the truth.
    """
    waiting = sum(spot.get("waiting", 0) for spot in latest.values()) - done_count
    numbers = sum(
        max(0, spot.get("next", 0) - end.get(name, {}).get("next", 0))
        for name, spot in latest.items()
    )
    return max(0, min(waiting, numbers))


def files_added(spark: SparkSession, output: str, since: datetime) -> FilesAdded:
    """Count the files of a table that Spark has written since a time, and their bytes."""
    file = F.col("_metadata")
    found = (
        spark.read.parquet(output)
        .where(file["file_modification_time"] >= F.lit(since))
        .select(file["file_path"].alias("path"), file["file_size"].alias("size"))
        .distinct()
        .agg(F.count("*"), F.coalesce(F.sum("size"), F.lit(0)))
        .first()
    )
    assert found is not None
    return FilesAdded(found[0], found[1])
