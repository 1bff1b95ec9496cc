"""Few rows: how Spark works when it need not prepare for many.

With some thousand rows Spark spends its time on plans, stages and compilers, not on rows. So for
small inputs there is one partition, which makes most stages unnecessary; plans are not made again
after each stage; expressions are interpreted, since few rows hardly use what would be compiled; and
what is used several times is computed once, so that nothing behind it is planned again.
The queries are the same, and so are their results.

A session that is started for few rows also has a Java that compiles less: see `make_session`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

FEW_MAX_BYTES: Final = 4 * 1024 * 1024
"""Up to which size, as Spark estimates it from files, an input has few rows: some ten thousand."""

SETTINGS: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Rows that are made here stay beside the plan: Spark goes through a plan again and again.
    "spark.sql.execution.arrow.localRelationThreshold": "0",
}


Choice: TypeAlias = Callable[[Callable[[str], Any]], Any]
"""Says which rows are chosen, in terms of columns, which Arrow and Spark make from names."""

_TABLES: Final[WeakKeyDictionary[DataFrame, pa.Table]] = WeakKeyDictionary()
"""The rows of data frames that were made here, so that nobody asks Spark for them again."""


def are_small(paths: Iterable[str | None]) -> bool:
    """Whether files and directories together have few rows; of names with a scheme nobody knows."""
    left = FEW_MAX_BYTES
    for path in paths:
        if path is None:
            continue
        if "://" in path or not os.path.exists(path):
            return False
        for file in _files(path):
            left -= os.path.getsize(file)
            if left < 0:
                return False
    return True


def _files(path: str) -> Iterator[str]:
    if os.path.isfile(path):
        yield path
    for directory, _, names in os.walk(path):
        yield from (os.path.join(directory, name) for name in names)


def are_few(rows: DataFrame) -> bool:
    """Whether Spark expects few rows of a query, without running it."""
    plan = rows._jdf.queryExecution().optimizedPlan()  # noqa: SLF001 -- nobody else knows it
    # A number of Scala, or already one of Python.
    return int(str(plan.stats().sizeInBytes())) <= FEW_MAX_BYTES


@contextlib.contextmanager
def for_few_rows(spark: SparkSession, few: bool = True) -> Iterator[None]:
    """Work under these settings if there are few rows; then they are as they were."""
    wanted = SETTINGS if few else {}
    before = {name: spark.conf.get(name, None) for name in wanted}
    try:
        for name, value in wanted.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def local(rows: DataFrame) -> DataFrame:
    """Compute few rows now; what is made of them has a plan without what made them."""
    if is_here(rows):
        return rows
    return of_table(rows.sparkSession, rows.toArrow(), rows.schema)


def of_table(spark: SparkSession, table: pa.Table, schema: StructType) -> DataFrame:
    """Make a data frame of few rows; times are in the zone of the session, as Spark gives them."""
    import pyarrow as pa

    zone = pa.timestamp("us", spark.conf.get("spark.sql.session.timeZone"))
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            table = table.set_column(index, field.name, table.column(index).cast(zone))
    # Spark believes only this that there is one partition, and then moves no rows.
    made = spark.createDataFrame(table, schema).coalesce(1)
    _TABLES[made] = table
    return made


def of_rows(spark: SparkSession, rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> DataFrame:
    """Make a data frame of few tuples; times are in microseconds."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema

    from openmsmq.spark.pipelines.plain_rows import batches_of

    table = pa.Table.from_batches(batches_of(rows, schema), schema)
    return of_table(spark, table, from_arrow_schema(schema))


def is_here(rows: DataFrame) -> bool:
    """Whether a data frame was made here of few rows."""
    return rows in _TABLES


def table_of(rows: DataFrame) -> pa.Table:
    """Return few rows: those from which a data frame was made, or what Spark computes."""
    known = _TABLES.get(rows)
    return rows.toArrow() if known is None else known


def first_rows(
    rows: DataFrame,
    order: Sequence[tuple[str, bool]] = (),
    limit: int | None = None,
    chosen: Choice | None = None,
) -> list[dict[str, Any]]:
    """Return the first rows in an order: columns, and whether the largest come first."""
    import pyarrow.compute as pc
    from pyspark.sql import functions as F

    if is_here(rows):
        table = table_of(rows)
        table = table if chosen is None else table.filter(chosen(pc.field))
        ways = [(name, "descending" if down else "ascending") for name, down in order]
        table = table.sort_by(ways) if ways else table
        found: list[dict[str, Any]] = table.slice(0, limit).to_pylist(maps_as_pydicts="strict")
        return found
    rows = rows if chosen is None else rows.where(chosen(F.col))
    if order:
        rows = rows.orderBy(
            *(F.desc_nulls_last(name) if down else F.asc_nulls_last(name) for name, down in order)
        )
    return [row.asDict() for row in (rows if limit is None else rows.limit(limit)).collect()]


def write_parquet(rows: DataFrame, output: str, few: bool) -> None:
    """Write a table into a new directory."""
    if not few or written_here(rows, output) is None:
        rows.write.parquet(output)


def written_here(rows: DataFrame, output: str) -> int | None:
    """Write few rows without Spark, if the output is on this computer; give how many there are.

    It takes a fraction of the time that Spark needs to plan it and to commit its files. The table
    has the same columns.
    """
    import pyarrow.parquet as pq

    from openmsmq.spark.paths import is_remote, path_here

    spark = rows.sparkSession
    place = None if is_remote(spark) else path_here(spark, output)
    if place is None:
        return None
    table, directory = table_of(rows), Path(place)
    directory.mkdir(parents=True)
    pq.write_table(table, directory / "part-00000.snappy.parquet", compression="snappy")
    # Whoever waits for Spark's tables waits for this.
    (directory / "_SUCCESS").touch()
    return int(table.num_rows)


@contextlib.contextmanager
def held(rows: DataFrame, few: bool) -> Iterator[DataFrame]:
    """Compute rows once for several uses: few of them here, many where Spark keeps them."""
    if few:
        yield local(rows)
        return
    kept = rows.persist()
    try:
        yield kept
    finally:
        kept.unpersist()


def mapped(
    rows: DataFrame,
    task: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
    few: bool,
) -> DataFrame:
    """Map record batches: in tasks, or here if they are few, which spares processes of Python."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_schema

    if not few:
        return rows.mapInArrow(task, from_arrow_schema(schema))
    made = pa.Table.from_batches(task(table_of(rows).to_batches()), schema)
    return of_table(rows.sparkSession, made, from_arrow_schema(schema))
