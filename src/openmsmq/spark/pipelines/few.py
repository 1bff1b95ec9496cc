"""Few rows: settings under which Spark does not prepare for many.

With some thousand rows Spark spends its time on plans, stages and compilers, not on rows. So for
small inputs there is one partition, which makes most stages unnecessary; plans are not made again
after each stage; and expressions are interpreted, since few rows hardly use what would be compiled.
The queries are the same, and so are their results.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from pyspark.sql import DataFrame, SparkSession

FEW_MAX_BYTES: Final = 4 * 1024 * 1024
"""Up to which size, as Spark estimates it from files, an input has few rows: some ten thousand."""

SETTINGS: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


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
