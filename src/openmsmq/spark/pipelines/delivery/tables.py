"""What `delivery` looks at, and what it leaves: tables of messages, queues, tables of results."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, TypeAlias

import msgspec
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from openmsmq.model.identity import Guid
from openmsmq.spark.connecting import connected
from openmsmq.spark.errors import QueueProblem
from openmsmq.spark.pipelines.delivery import COLUMNS, delivery
from openmsmq.spark.pipelines.delivery.evidence import NEEDED, TAKEN, require_columns
from openmsmq.spark.pipelines.delivery.rollups import MEASURES, Sum, Tally, part, sums
from openmsmq.spark.pipelines.few import first_rows, held, write_parquet
from openmsmq.spark.schema import spark_schema
from openmsmq.spark.source.options import read_source_options

_INFERENCE: Final = "spark.sql.sources.partitionColumnTypeInference.enabled"
_NO_TABLE: Final = ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")

DELIVERY: Final = "delivery"
EVENTS: Final = "events"
SUMS: Final = {"by_queue": Sum.QUEUE, "by_hour": Sum.HOUR, "by_link": Sum.LINK}
"""The tables beside `delivery`, and what each sums up by."""

_EVENTS: Final = "time timestamp, what string"

Row: TypeAlias = dict[str, Any]

_BUSIEST: Final = (
    ("message_count", True),
    ("destination_queue_manager", False),
    ("destination_queue", False),
)


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


class Manager(msgspec.Struct, frozen=True):
    """A queue manager, as it told of itself."""

    identity: str
    name: str
    started: datetime


def managers_at(options: Mapping[str, str]) -> list[Manager]:
    """Ask the queue managers for their identities and names, and since when they run."""
    place = read_source_options({"queue": "*", **options}).place
    managers = []
    for address in place.addresses:
        with connected(place, address, first=True) as manager:
            found = manager.status()
            started = datetime.fromtimestamp(found.started_time_s, UTC)
            managers.append(Manager(str(Guid(found.manager)), found.manager_name, started))
    return managers


def write_results(
    spark: SparkSession,
    messages: DataFrame,
    output: str,
    *,
    lost_after_s: int | None = None,
    managers: Sequence[Manager] = (),
    top: int = 0,
    few: bool = False,
) -> tuple[Row, list[Row]]:
    """Write all tables into a directory; give the sums of everything, and of the busiest queues.

    `managers` are those of whom the queues were read: they give names, and their starts are
    events of the report. `few` says that there are few messages.
    """
    names = {manager.identity: manager.name for manager in managers}
    found = delivery(messages, lost_after_s=lost_after_s, names=names, few=few)
    write_parquet(found, f"{output}/{DELIVERY}", few)
    if managers:
        starts = [(manager.started, f"{manager.name} started") for manager in managers]
        events = spark.createDataFrame(starts, _EVENTS)
        events.coalesce(1).write.parquet(f"{output}/{EVENTS}")
    deliveries = found
    if not few:
        # Read back, so that nothing is computed twice; the schema is known, so Spark need not look.
        deliveries = spark.read.schema(found.schema).parquet(f"{output}/{DELIVERY}")
    with held(sums(deliveries), few) as summed:
        for name, kind in SUMS.items():
            found = part(summed, kind)
            write_parquet(found if few else found.coalesce(1), f"{output}/{name}", few)
        total = first_rows(part(summed, Sum.ALL))
        queues = first_rows(part(summed, Sum.QUEUE), _BUSIEST, top)
        nothing = dict(zip(MEASURES, Tally().measures(), strict=True))
        return (total or [nothing])[0], queues


def read_deliveries(spark: SparkSession, directory: str) -> DataFrame:
    """Read the table `delivery` in a directory."""
    path = f"{directory.rstrip('/')}/{DELIVERY}"
    found = _parquet(spark, path, "which openmsmq pipeline delivery writes")
    missing = [name for name in COLUMNS if name not in found.columns]
    if missing:
        raise QueueProblem(
            f"{path} has no column {missing[0]}: an older version wrote it; run openmsmq pipeline "
            "delivery again"
        )
    return found.select(*COLUMNS)


def read_events(spark: SparkSession, directory: str) -> list[tuple[datetime, str]]:
    """Read what is known to have happened: the starts of queue managers; there may be none."""
    try:
        rows = spark.read.schema(_EVENTS).parquet(f"{directory.rstrip('/')}/{EVENTS}").collect()
    except AnalysisException as error:
        if error.getCondition() not in _NO_TABLE:
            raise
        return []
    # Spark gives times without a zone, in the time of this computer.
    return [(row["time"].astimezone(UTC), row["what"]) for row in rows]


def sent_on(deliveries: DataFrame, day: date) -> DataFrame:
    """Choose the messages that were sent on a day, in UTC."""
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    end = start + timedelta(days=1)
    return deliveries.where(
        (F.col("sent_time") >= F.lit(start)) & (F.col("sent_time") < F.lit(end))
    )


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
