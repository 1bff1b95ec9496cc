"""The same job on a real cluster: a master, two workers on two addresses, speculation."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyspark
import pytest

from tests.java import quick_java
from tests.spark.exactly_once.driver import PLAIN, SLEPT, STUMBLES
from tests.spark.exactly_once.harness import SINK_COMMITS, Scene, environment, members

MASTER, WORKERS = "127.0.90.10", ("127.0.90.11", "127.0.90.12")

BATCHES_MAX_COUNT = 40
"""How many batches may pass until tasks of the sink and of the table were overtaken."""

# The same for its processes as for the driver: each of them is a Java of its own.
SPARK_JAVA = quick_java()["SPARK_SUBMIT_OPTS"]


class Daemon:
    """A part of the cluster in a session of its own, so that its children are found."""

    def __init__(self, folder: Path, name: str, *arguments: str) -> None:
        with open(folder / f"{name}.log", "wb") as log:
            self.process = subprocess.Popen(
                [str(Path(pyspark.__path__[0]) / "bin" / "spark-class"), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env=environment()
                | {
                    "SPARK_LOCAL_DIRS": str(folder),
                    "SPARK_DAEMON_MEMORY": "256m",
                    "SPARK_DAEMON_JAVA_OPTS": SPARK_JAVA,
                },
                start_new_session=True,
            )

    def kill(self) -> None:
        for pid in members(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((MASTER, 0))
        return int(probe.getsockname()[1])


class Cluster:
    """A master and its workers; each worker is another host to Spark."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.address = f"spark://{MASTER}:{port}"
        self.daemons: list[Daemon] = []
        self._start(folder, "master.Master", MASTER, "--port", str(port))
        for host in WORKERS:
            size = ("--cores", "2", "--memory", "1g", "--work-dir", str(folder))
            self._start(folder, "worker.Worker", host, *size, self.address)

    def _start(self, folder: Path, role: str, host: str, *arguments: str) -> None:
        place = (f"org.apache.spark.deploy.{role}", "--host", host, "--webui-port", "0")
        self.daemons.append(Daemon(folder, host, *place, *arguments))

    def kill(self) -> None:
        for daemon in self.daemons:
            daemon.kill()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    found = Cluster(tmp_path)
    yield found
    found.kill()


def settings() -> dict[str, str]:
    speculation = {
        "interval": "100ms",
        "multiplier": "1.1",
        "quantile": "0.3",
        "minTaskRuntime": "200ms",
        "task.duration.threshold": "500ms",
    }
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": SPARK_JAVA,
        "spark.task.maxFailures": "4",
        "spark.speculation": "true",
        **{f"spark.speculation.{name}": value for name, value in speculation.items()},
    }


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java 17")
@pytest.mark.xdist_group("spark")
def test_the_job_is_exactly_once_on_a_cluster_that_loses_a_worker(
    cluster: Cluster, tmp_path: Path
) -> None:
    scene = Scene(tmp_path, 1, "parquet")
    scene.job = msgspec.structs.replace(
        scene.job,
        master=cluster.address,
        slow_s=8.0,
        settings=settings(),
        # Often enough that some are slow while both workers live.
        fail_one_in=2,
    )
    try:
        scene.senders.start(PLAIN, scene.job.sources)
        with scene.start_driver() as job:
            # Only with both workers there is a place for second attempts.
            for _ in range(BATCHES_MAX_COUNT):
                scene.wait_for(SINK_COMMITS)
                if all(overtaken(scene).values()) and len(executors(scene)) == len(WORKERS):
                    break
            cluster.daemons[-1].kill()
            scene.wait_for(SINK_COMMITS)
            scene.senders.stop()
            job.drain()
            figures = scene.check()
    finally:
        with contextlib.suppress(BaseException):
            scene.senders.stop()
        scene.manager.kill()
    figures["overtaken by a second attempt"] = overtaken(scene)
    figures["executors"] = len(executors(scene))
    print(json.dumps(figures, indent=2))
    assert figures["executors"] == len(WORKERS), "one worker had nothing to do"
    assert all(overtaken(scene).values()), "there was no speculation"


def executors(scene: Scene) -> set[str]:
    """Return the folders of executors whose first attempts have failed on purpose."""
    return {line.partition("\t")[2] for line in scene.notes(STUMBLES)}


def overtaken(scene: Scene) -> dict[str, int]:
    """Return how many slow attempts were killed because a second one was faster.

    Of batches that are done only: in others, attempts may still be asleep.
    """
    slow, slept = (
        Counter(line.partition("\t")[0] for line in scene.notes(file)) for file in (STUMBLES, SLEPT)
    )
    done = {"sink": scene.to_queue.last("commits"), "table": scene.to_table.last("commits")}
    found = dict.fromkeys(done, 0)
    for attempt in (slow - slept).elements():
        where, batch, _ = attempt.split()
        # Tasks that fail in the middle of reading are not slow.
        if where in done and int(batch) <= done[where]:
            found[where] += 1
    return found
