"""The Spark session that `openmsmq pipeline` works in."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import pyspark
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

_LOGGING: Final = Path(__file__).with_name("log4j2.properties")

_LAUNCHER: Final = Path(__file__).with_name("worker_python.sh")
_ARCHIVE: Final = Path("python", "lib", "pyspark.zip")

LOCAL: Final = "local[*]"
"""Spark on the cores of this computer."""

SPARK_ERRORS: Final = (PySparkException, Py4JJavaError)
"""What Spark raises, whichever part of it failed."""


def make_session(
    name: str, master: str = LOCAL, settings: dict[str, str] | None = None
) -> SparkSession:
    """Start a session, or take the one that is there; times are those of UTC."""
    builder = SparkSession.builder.appName(name).master(master)
    defaults = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.python.filterPushdown.enabled": "true",
        # A task that writes into few directories keeps a file open in each. Without this it would
        # collect and sort all its rows before it writes the first.
        "spark.sql.maxConcurrentOutputFileWriters": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Also for what Spark says before it has read its own settings.
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
    }
    if master.startswith("local"):
        if "PYSPARK_PYTHON" not in os.environ:
            os.environ.update(worker_python(Path(pyspark.__file__).parent))
        # Nobody else has to reach it.
        defaults |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        defaults["spark.sql.shuffle.partitions"] = "8"
    for key, value in (defaults | (settings or {})).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def worker_python(package: Path) -> dict[str, str]:
    """Give the settings by which Spark's processes run this Python, which has the packages.

    Spark puts an archive of its sources before everything else on their path, and each process
    compiles them anew, for more than half a second. The installed package is compiled already.
    """
    archive = package.resolve() / _ARCHIVE
    if not archive.is_file() or not os.access(_LAUNCHER, os.X_OK):
        return {"PYSPARK_PYTHON": sys.executable}
    return {
        "PYSPARK_PYTHON": str(_LAUNCHER),
        "PYSPARK_MSMQ_PYTHON": sys.executable,
        "PYSPARK_MSMQ_ARCHIVE": str(archive),
    }
