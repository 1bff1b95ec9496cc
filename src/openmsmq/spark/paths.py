"""Where outputs are: on this computer or mounted, or somewhere that only Spark can write."""

from __future__ import annotations

import os

from pyspark.sql import SparkSession


def path_here(spark: SparkSession, output: str) -> str | None:
    """Return the path of something that tasks can write without Spark; None if they cannot."""
    if is_remote(spark):
        default = spark.conf.get("spark.hadoop.fs.defaultFS", None)
    else:
        hadoop = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 -- who else knows it
        default = hadoop.get("fs.defaultFS")
    return path_of(output, default or "file:///")


def path_of(output: str, default_file_system: str) -> str | None:
    """Return the path of what is on this computer or mounted; None for other URLs."""
    scheme, colon, rest = output.partition(":")
    if colon and "/" not in scheme:
        names_a_host = rest.startswith("//") and not rest.startswith("///")
        if scheme.lower() != "file" or names_a_host:
            return None
        return "/" + rest.lstrip("/")
    if not default_file_system.lower().startswith("file:"):
        return None
    return os.path.abspath(output)


def is_remote(spark: SparkSession) -> bool:
    """Whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")
