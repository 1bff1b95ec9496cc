"""The session of the commands: its processes run this Python, and start without compiling Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from openmsmq.spark.session import worker_python

PACKAGE = Path(pyspark.__file__).resolve().parent
ARCHIVE = str(PACKAGE / "python" / "lib" / "pyspark.zip")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", ""),
        (ARCHIVE, ""),
        (f"{ARCHIVE}:/a b:{ARCHIVE}:/c", "/a b:/c"),
        (f"/a:/other/pyspark.zip:{ARCHIVE}", "/a:/other/pyspark.zip"),
    ],
)
def test_the_archive_is_not_on_the_path_of_processes(path: str, expected: str) -> None:
    settings = worker_python(PACKAGE)
    script = "import os, sys; print(sys.executable, os.environ['PYTHONPATH'], *sys.argv, sep='|')"
    printed = subprocess.run(
        [settings["PYSPARK_PYTHON"], "-c", script, "an argument"],
        env={**os.environ, **settings, "PYTHONPATH": path},
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
    ).stdout
    assert printed.strip() == f"{sys.executable}|{expected}|-c|an argument"


def test_where_there_is_no_archive_python_runs_as_it_is(tmp_path: Path) -> None:
    assert worker_python(tmp_path) == {"PYSPARK_PYTHON": sys.executable}


def test_tasks_use_the_installed_package(spark: SparkSession) -> None:
    def where(_: object) -> str:
        import pyspark as found

        return str(found.__file__)

    [place] = spark.sparkContext.parallelize([0], 1).map(where).collect()
    assert Path(place).resolve().parent == PACKAGE
