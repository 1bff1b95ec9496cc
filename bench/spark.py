"""Spark: how fast a backlog comes out of a queue, measured against the engine's own ceiling."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import openmsmq
from bench.cores import on_cores, used_by_s, worked_s
from bench.measure import Effort, Figure
from bench.peers.openmsmq import fill, launch
from bench.peers.process import disk_directory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COUNT: Final = 1_000_000
ROWS_SHARE: Final = 20
"""Row by row, one part in so many is read: it is that slow."""
TRIALS: Final = 3
TASKS: Final = 4

CEILING_BAR: Final = 0.6
ROWS_BAR: Final = 3.0
TWO_QUEUES_BAR: Final = 1.5
INGEST_BAR: Final = 0.5
WRITING_BAR: Final = 0.35
WRITTEN_SHARE: Final = 0.4
"""How many of the rows are written. That lasts about as long as to read all of them, so what a job
of Spark takes however many rows it has weighs the same in both."""
FEW_SHARE: Final = 0.2
"""How many were written in earlier versions of this bench."""

_QUEUE: Final = r"private$\backlog"
_WRITTEN: Final = r"private$\written"


def run(effort: Effort) -> Iterator[Figure]:
    """Reading a backlog of 1 KiB messages into Spark, and into Parquet."""
    count = max(20_000, round(COUNT * effort.rounds / Effort().rounds))
    with disk_directory() as directory, contextlib.ExitStack() as parts:
        first, second = (parts.enter_context(_filled(directory / name, count)) for name in "ab")
        spark = parts.enter_context(_session())
        ready = directory / "ready.arrow"
        _make_ready(ready, first[0])
        figures = list(_reading(spark, first[0], ready, count))
        yield from figures
        yield from _two_queues(spark, (first, second), count)
        ceiling = figures[0].value
        assert ceiling is not None
        read = figures[1].value
        assert read is not None
        yield from _writing(spark, second[0], ready, round(FEW_SHARE * count), read)
        many = round(WRITTEN_SHARE * count)
        yield from _writing(spark, second[0], ready, many, read, bar=WRITING_BAR)
        yield from _writing(spark, second[0], ready, many, read, is_emptied=True)
        yield from _sink(spark, ready, count, ceiling, directory / "table")
        yield from _ingest(spark, first[0], count, ceiling, directory)


def _make_ready(path: Path, address: str) -> None:
    from bench.spark_sources import make_ready

    make_ready(path, address, _QUEUE)


def _reading(spark: SparkSession, address: str, ready: Path, count: int) -> Iterator[Figure]:
    rates: dict[str, list[float]] = {"ready": [], "msmq": [], "row-by-row": []}
    for trial in range(TRIALS + 1):
        for name, measured in rates.items():
            part = count // ROWS_SHARE if name == "row-by-row" else count
            place = {"path": str(ready)} if name == "ready" else {"qm": address, "queue": _QUEUE}
            rate = _rate(_load(spark, name, place, count=part), part)
            if trial:
                # The first turn warms up the compiler of Java.
                measured.append(rate)
    ceiling, ours, rows = (max(rates[name]) for name in ("ready", "msmq", "row-by-row"))
    yield Figure("ready record batches, the ceiling", ceiling, "rows/s")
    yield Figure("read by msmq", ours, "rows/s")
    yield Figure("  of the ceiling", ours / ceiling, "times", bar=CEILING_BAR, at_least=True)
    yield Figure("decoded row by row", rows, "rows/s")
    yield Figure("  msmq by that", ours / rows, "times", bar=ROWS_BAR, at_least=True)


def _load(spark: SparkSession, name: str, place: dict[str, str], *, count: int) -> DataFrame:
    reader = spark.read.format(name).options(**place)
    if name == "msmq":
        return reader.option("numPartitions", str(TASKS)).load()
    return reader.option("count", str(count)).option("tasks", str(TASKS)).load()


def _rate(rows: DataFrame, count: int) -> float:
    begin = time.perf_counter()
    rows.write.format("noop").mode("overwrite").save()
    return count / (time.perf_counter() - begin)


def _two_queues(
    spark: SparkSession, managers: tuple[tuple[str, int], ...], count: int
) -> Iterator[Figure]:
    """One queue on one core, then two queues on two: each with its queue manager and one task."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        name, note = "two queues by one", "two cores are needed"
        yield Figure(name, None, "times", bar=TWO_QUEUES_BAR, at_least=True, note=note)
        return
    jvm = spark.sparkContext._gateway.proc.pid  # noqa: SLF001 -- nobody else knows it
    ours = [jvm, os.getpid(), *(pid for _, pid in managers)]
    used_s, busy_s, begin = used_by_s(ours), worked_s(), time.perf_counter()
    rates: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(TRIALS):
        for used in rates:
            addresses = ",".join(address for address, _ in managers[:used])
            with on_cores([jvm, *(pid for _, pid in managers)], cores[:used]):
                reader = spark.read.format("msmq").option("qm", addresses)
                rows = reader.option("queue", _QUEUE).option("numPartitions", "1").load()
                rates[used].append(_rate(rows, used * count))
    others_s = worked_s() - busy_s - (used_by_s(ours) - used_s)
    others = max(0.0, others_s / (time.perf_counter() - begin))
    one, two = max(rates[1]), max(rates[2])
    yield Figure("one queue on one core", one, "rows/s")
    yield Figure(
        "two queues on two cores, by that",
        two / one,
        "times",
        bar=TWO_QUEUES_BAR,
        at_least=True,
        note=f"other programs kept {others:.1f} of {len(cores)} cores busy meanwhile",
    )


def _writing(
    spark: SparkSession,
    address: str,
    ready: Path,
    count: int,
    read: float,
    *,
    bar: float | None = None,
    is_emptied: bool = False,
) -> Iterator[Figure]:
    """Write ready rows to a transactional queue: bodies alone, and with a label of their own.

    If nothing is taken out of the queue, the store moves the rows of one turn to where it keeps
    them during the next. If it is emptied between turns, they never come there.
    """
    from pyspark.sql import functions as F

    queue = f"{_WRITTEN}{count}{'emptied' if is_emptied else ''}"
    with openmsmq.connect(address) as manager:
        manager.create_queue(queue, transactional=True)
    rows = _load(spark, "ready", {"path": str(ready)}, count=count)
    label = F.concat(F.lit("message "), F.col("arrival_number"))
    kinds = {"bodies": rows.select("body"), "labels": rows.select("body", label.alias("label"))}
    rates: dict[str, list[float]] = {name: [] for name in kinds}
    for trial in range(TRIALS + 1):
        for name, frame in kinds.items():
            begin = time.perf_counter()
            writer = frame.write.format("msmq").options(qm=address, queue=queue)
            writer.mode("append").save()
            if trial:
                rates[name].append(count / (time.perf_counter() - begin))
            if is_emptied:
                with openmsmq.connect(address) as manager:
                    manager.queue(queue).purge()
    where = "an emptied queue" if is_emptied else "a growing queue"
    for name, each in rates.items():
        yield Figure(f"{count:,} rows to {where}, {name}", max(each), "rows/s")
        yield Figure("  of reading", max(each) / read, "times", bar=bar, at_least=True)


def _sink(
    spark: SparkSession, ready: Path, count: int, ceiling: float, table: Path
) -> Iterator[Figure]:
    """Write ready record batches as `ingest` does: no reader, however fast, can pass this."""
    from openmsmq.spark.pipelines.ingest import PARTITION_BY, with_partitions

    rates: list[float] = []
    for _ in range(TRIALS):
        shutil.rmtree(table, ignore_errors=True)
        rows = with_partitions(
            _load(spark, "ready", {"path": str(ready)}, count=count), PARTITION_BY
        )
        begin = time.perf_counter()
        rows.write.partitionBy(*PARTITION_BY).parquet(str(table))
        rates.append(count / (time.perf_counter() - begin))
    yield Figure("ready record batches to Parquet", max(rates), "rows/s")
    yield Figure("  of the ceiling", max(rates) / ceiling, "times")


def _ingest(
    spark: SparkSession, address: str, count: int, ceiling: float, directory: Path
) -> Iterator[Figure]:
    """Run the pipeline `ingest`: by browsing, which can be repeated, and once by consuming."""
    from openmsmq.spark.pipelines.ingest import ingest

    rates: dict[str, list[float]] = {"browse": [], "consume": []}
    for mode in ("browse",) * TRIALS + ("consume",):
        table = directory / "table"
        for old in (table, directory / "table.checkpoint"):
            shutil.rmtree(old, ignore_errors=True)
        options = {"qm": address, "queue": _QUEUE, "mode": mode, "numPartitions": str(TASKS)}
        begin = time.perf_counter()
        ingest(spark, options, str(table)).awaitTermination()
        rates[mode].append(count / (time.perf_counter() - begin))
        assert spark.read.parquet(str(table)).count() == count
    browsed, consumed = max(rates["browse"]), max(rates["consume"])
    yield Figure("ingest to Parquet, browsing", browsed, "rows/s")
    yield Figure("  of the ceiling", browsed / ceiling, "times", bar=INGEST_BAR, at_least=True)
    yield Figure("ingest to Parquet, consuming", consumed, "rows/s")
    yield Figure("  of the ceiling", consumed / ceiling, "times", bar=INGEST_BAR, at_least=True)


@contextlib.contextmanager
def _filled(home: Path, count: int) -> Iterator[tuple[str, int]]:
    """Run a queue manager with a backlog; gives its address and process id."""
    with launch(home, home.name.upper(), ["--no-transfer"]) as (address, pid):
        with openmsmq.connect(address) as manager:
            manager.create_queue(_QUEUE)
        for _ in fill(address, "backlog", count):
            pass
        yield address, pid


@contextlib.contextmanager
def _session() -> Iterator[SparkSession]:
    from bench.spark_sources import ReadyRows, RowByRow
    from openmsmq.spark.session import make_session

    spark = make_session("bench", settings={"spark.driver.memory": "4g"})
    try:
        for source in (ReadyRows, RowByRow):
            spark.dataSource.register(source)
        yield spark
    finally:
        spark.stop()
