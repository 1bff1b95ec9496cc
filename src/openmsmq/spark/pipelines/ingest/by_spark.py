"""Tables that Spark's own file sink writes: Parquet at URLs, and tables that it has begun.

Its log is in `_spark_metadata`, and only Spark knows it. It leaves out batches whose numbers the
log has, whoever they come from.
"""

from __future__ import annotations

from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from openmsmq.spark.errors import BadOption

LOG: Final = "_spark_metadata"


def has_log(spark: SparkSession, output: str) -> bool:
    """Whether a table has the log, as those of earlier versions have."""
    return _files(spark, f"{output}/{LOG}/[0-9]*") is not None


def require_own_table(spark: SparkSession, output: str, checkpoint: str) -> None:
    """Refuse a table that was written with another checkpoint.

    Spark leaves out batches whose numbers the table has already. Those of a new checkpoint begin
    at 0: their messages would be taken out of their queues and be nowhere.
    """
    noted = _files(spark, f"{checkpoint}/offsets/[0-9]*")
    last = max((int(path.rpartition("/")[2]) for path in noted or ()), default=-1)
    later = ",".join(numbers_above(last))
    if _files(spark, f"{output}/{LOG}/{{{later}}}") is not None:
        raise BadOption(
            "checkpoint",
            f"{output} has batches that {checkpoint} does not know, so new ones would be taken for "
            "them and be lost: give the checkpoint with which the table was written, or another "
            "output",
        )


def numbers_above(number: int) -> list[str]:
    """Return patterns of file names that begin with a higher number."""
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
    """Return the files that a pattern names, where Spark tells them; None if there are none."""
    try:
        return spark.read.format("binaryFile").load(pattern).inputFiles()
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return None
        raise
