"""What `delivery` looks at, and what it leaves: tables of messages, queues, tables of results."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from openmsmq.model.identity import Guid
from openmsmq.spark.connecting import connected
from openmsmq.spark.errors import QueueProblem
from openmsmq.spark.pipelines.delivery import delivery
from openmsmq.spark.pipelines.delivery.evidence import NEEDED, TAKEN, require_columns
from openmsmq.spark.pipelines.delivery.rollups import by_hour, by_link, by_queue, summary
from openmsmq.spark.schema import spark_schema
from openmsmq.spark.source.options import read_source_options

_INFERENCE: Final = "spark.sql.sources.partitionColumnTypeInference.enabled"
_NO_TABLE: Final = ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")

DELIVERY: Final = "delivery"
SUMS: Final[dict[str, Callable[[DataFrame], DataFrame]]] = {
    "by_queue": by_queue,
    "by_hour": by_hour,
    "by_link": by_link,
}
"""The tables beside `delivery`, and how each is made from it."""

Row: TypeAlias = dict[str, Any]


def read_tables(spark: SparkSession, paths: Iterable[str], *, taken: bool) -> DataFrame:
    """Read tables of messages; `taken` says whether they were taken out of their queues."""
    return _together(_read_table(spark, path, taken) for path in paths)


def _read_table(spark: SparkSession, path: str, taken: bool) -> DataFrame:
    found = _parquet(spark, path, "as openmsmq pipeline ingest writes one")
    require_columns(found.columns)
    return found.select(*NEEDED, F.lit(taken).alias(TAKEN))


def browse(spark: SparkSession, options: Mapping[str, str], queues: Sequence[str]) -> DataFrame:
    """Browse queues of the queue managers that the options name; without names, all that have any.

    Options are those of the data source `msmq`.
    """
    frames = []
    for address, names in _queues_by_address(options, queues).items():
        if names:
            own = {**options, "qm": address, "queue": ",".join(names), "columns": ",".join(NEEDED)}
            frames.append(spark.read.format("msmq").options(**own).load())
    if not frames:
        frames.append(spark.createDataFrame([], spark_schema(NEEDED)))
    return _together(frame.withColumn(TAKEN, F.lit(False)) for frame in frames)


def names_at(options: Mapping[str, str]) -> dict[str, str]:
    """Ask the queue managers for their identities and names."""
    place = read_source_options({"queue": "*", **options}).place
    names: dict[str, str] = {}
    for address in place.addresses:
        with connected(place, address, first=True) as manager:
            found = manager.status()
            names[str(Guid(found.manager))] = found.manager_name
    return names


def write_deliveries(
    messages: DataFrame, output: str, *, lost_after_s: int | None, names: Mapping[str, str]
) -> None:
    """Write the table `delivery` into a directory."""
    found = delivery(messages, lost_after_s=lost_after_s, names=names)
    found.write.parquet(f"{output}/{DELIVERY}")


def write_sum(spark: SparkSession, output: str, name: str) -> None:
    """Write one of the tables `SUMS` about the deliveries in a directory."""
    deliveries = spark.read.parquet(f"{output}/{DELIVERY}")
    SUMS[name](deliveries).coalesce(1).write.parquet(f"{output}/{name}")


def summarise(spark: SparkSession, output: str, top: int) -> tuple[Row, list[Row]]:
    """Give the sums of all deliveries in a directory, and of its busiest queues."""
    (total,) = summary(spark.read.parquet(f"{output}/{DELIVERY}")).collect()
    queues = spark.read.parquet(f"{output}/by_queue").orderBy(
        F.desc("message_count"), "destination_queue_manager", "destination_queue"
    )
    return total.asDict(), [row.asDict() for row in queues.limit(top).collect()]


def read_results(spark: SparkSession, directory: str) -> dict[str, DataFrame]:
    """Read the tables that `delivery` left in a directory, by their names."""
    what = "which openmsmq pipeline delivery writes"
    return {
        name: _parquet(spark, f"{directory.rstrip('/')}/{name}", what) for name in (DELIVERY, *SUMS)
    }


def _queues_by_address(options: Mapping[str, str], queues: Sequence[str]) -> dict[str, list[str]]:
    place = read_source_options({"queue": "*", **options}).place
    if queues:
        return {address: list(queues) for address in place.addresses}
    found: dict[str, list[str]] = {}
    for address in place.addresses:
        with connected(place, address, first=True) as manager:
            found[address] = [
                queue.path_name
                for queue in manager.queues(everything=True)
                # A comma would be taken for the end of the name.
                if queue.message_count and "," not in queue.path_name
            ]
    return found


def _parquet(spark: SparkSession, path: str, what: str) -> DataFrame:
    """Read a table; directories named after a queue must not turn its name into a number."""
    before = spark.conf.get(_INFERENCE)
    spark.conf.set(_INFERENCE, "false")
    try:
        return spark.read.parquet(path)
    except AnalysisException as error:
        if error.getCondition() not in _NO_TABLE:
            raise
        raise QueueProblem(f"{path} is no table of Parquet files, {what}") from None
    finally:
        spark.conf.set(_INFERENCE, before or "true")


def _together(frames: Iterable[DataFrame]) -> DataFrame:
    return functools.reduce(DataFrame.unionByName, frames)
