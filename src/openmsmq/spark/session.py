"""The Spark session of `openmsmq pipeline`, and the Python that Spark's processes run."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import pyspark
from py4j.protocol import Py4JJavaError
from pyspark.core.context import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from openmsmq.spark.errors import SparkSideError

_LOGGING: Final = Path(__file__).with_name("log4j2.properties")

_LAUNCHER: Final = Path(__file__).with_name("worker_python.sh")
_ARCHIVE: Final = Path("python", "lib", "pyspark.zip")

LOCAL: Final = "local[*]"
"""Spark on the cores of this computer."""

SPARK_ERRORS: Final = (PySparkException, Py4JJavaError)
"""What Spark raises, whichever part of it failed."""


_FEW_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Compile once and simply, and collect garbage in one thread.

Few rows end before better code would pay: a small pipeline spent half of its time in the compiler.
"""
_FEW_SETTINGS: Final = {
    # Otherwise each expression asks Java twice more, so that an error can name its line.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}


def make_session(
    name: str, master: str = LOCAL, settings: dict[str, str] | None = None, *, few: bool = False
) -> SparkSession:
    """Start a session, or take the one that is there; times are those of UTC.

    `few` says that it is only for few rows, as `openmsmq.spark.pipelines.few` has it.
    """
    running = SparkContext._active_spark_context  # noqa: SLF001 -- Spark has no other word
    if master.startswith("local") and running is None:
        use_this_python()
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in (default_settings(master, few=few) | (settings or {})).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def default_settings(master: str, *, few: bool) -> dict[str, str]:
    """Return the settings with which a session is started, unless others are asked for."""
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
    if few:
        defaults |= _FEW_SETTINGS
    if master.startswith("local"):
        # Nobody else has to reach it.
        defaults |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        defaults["spark.sql.shuffle.partitions"] = "8"
        if few:
            # Here the driver is all there is.
            defaults["spark.driver.extraJavaOptions"] += f" {_FEW_JAVA}"
    return defaults


def use_this_python() -> None:
    """Let the Spark that is started next run its processes with this Python, and start them fast.

    Otherwise they run the `python3` of the `PATH`, which may have neither OpenMSMQ nor Spark; then
    Spark does not find the format `msmq`. Whoever has set `PYSPARK_PYTHON` has chosen already.
    """
    if "PYSPARK_PYTHON" in os.environ:
        return
    if SparkContext._active_spark_context is not None:  # noqa: SLF001 -- as above
        raise SparkSideError(
            "Spark runs already, with the Python that it has: call use_this_python before the "
            "session is made"
        )
    os.environ.update(worker_python(Path(pyspark.__file__).parent))


def worker_python(package: Path) -> dict[str, str]:
    """Return the settings by which Spark's processes run this Python, which has the packages.

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
