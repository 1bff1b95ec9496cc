"""The session of the commands: its processes run this Python, and start without compiling Spark."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pyspark
import pytest
from pyspark.core.context import SparkContext
from pyspark.sql import SparkSession

from openmsmq.spark.errors import SparkSideError
from openmsmq.spark.session import default_settings, use_this_python, worker_python

PACKAGE = Path(pyspark.__file__).resolve().parent
ARCHIVE = str(PACKAGE / "python" / "lib" / "pyspark.zip")


paths = pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", ""),
        (ARCHIVE, ""),
        (f"{ARCHIVE}:/a b:{ARCHIVE}:/c", "/a b:/c"),
        (f"/a:/other/pyspark.zip:{ARCHIVE}", "/a:/other/pyspark.zip"),
    ],
)


@paths
def test_the_archive_is_not_on_the_path_of_processes(path: str, expected: str) -> None:
    settings = worker_python(PACKAGE)
    assert started(settings["PYSPARK_PYTHON"], settings | {"PYTHONPATH": path}) == expected


@paths
def test_the_installed_command_does_the_same_without_being_told_anything(
    path: str, expected: str
) -> None:
    command = Path(sysconfig.get_path("scripts"), "openmsmq-python")
    assert started(str(command), {"PYTHONPATH": path}) == expected


def started(command: str, settings: dict[str, str]) -> str:
    """Return the path that Python has when a command starts it; it has to be this Python."""
    script = "import os, sys; print(sys.executable, os.environ['PYTHONPATH'], *sys.argv, sep='|')"
    printed = subprocess.run(
        [command, "-c", script, "an argument"],
        env={**os.environ, **settings},
        capture_output=True,
        check=True,
        text=True,
        timeout=60,
    ).stdout
    interpreter, path, *rest = printed.strip().split("|")
    assert interpreter == sys.executable
    assert rest == ["-c", "an argument"]
    return path


def test_where_there_is_no_archive_python_runs_as_it_is(tmp_path: Path) -> None:
    assert worker_python(tmp_path) == {"PYSPARK_PYTHON": sys.executable}


def test_a_session_of_ones_own_gets_the_same_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    monkeypatch.setattr(os, "environ", {})
    use_this_python()
    assert os.environ == worker_python(PACKAGE)


def test_whoever_has_chosen_a_python_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {"PYSPARK_PYTHON": "/their/python"})
    use_this_python()
    assert os.environ == {"PYSPARK_PYTHON": "/their/python"}


@pytest.mark.usefixtures("spark")
def test_a_spark_that_runs_already_is_not_said_to_have_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "environ", {})
    with pytest.raises(SparkSideError, match="before the session is made"):
        use_this_python()


def test_tasks_use_the_installed_package(spark: SparkSession) -> None:
    def where(_: object) -> str:
        import pyspark as found

        return str(found.__file__)

    [place] = spark.sparkContext.parallelize([0], 1).map(where).collect()
    assert Path(place).resolve().parent == PACKAGE


def test_a_java_for_few_rows_is_only_started_where_it_is_all_of_spark() -> None:
    option, compiler = "spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1"
    here, cluster = "local[2]", "spark://host:7077"
    assert compiler in default_settings(here, few=True)[option].split()
    for master, few in ((here, False), (cluster, True), (cluster, False)):
        assert compiler not in default_settings(master, few=few)[option], (master, few)
    # What is said about logging stays.
    assert default_settings(here, few=True)[option].startswith("-Dlog4j2.configurationFile=")
