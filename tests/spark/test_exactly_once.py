"""Each message exactly once, whatever is killed: the claim of the source and the sink."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.spark.exactly_once.harness import kill_often
from tests.spark.exactly_once.rehearsal import Rehearsal

DRIVER_KILLS = int(os.environ.get("OPENMSMQ_DRIVER_KILLS", "2"))
MANAGER_KILLS = int(os.environ.get("OPENMSMQ_MANAGER_KILLS", "1"))
LIVES = int(os.environ.get("OPENMSMQ_LIVES", "60"))
FORMATS = os.environ.get("OPENMSMQ_FORMATS", "parquet").split(",")
"""Of the table of the job that is killed."""
SEED = int(os.environ.get("OPENMSMQ_SEED", "1"))


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("format", ["parquet", "delta", "iceberg"])
def test_streams_are_exactly_once_wherever_a_driver_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    # Few messages for a task, so that batches have several partitions.
    monkeypatch.setattr("openmsmq.spark.source.queue_range.TASK_MIN_COUNT", 40)
    figures = Rehearsal(tmp_path, SEED, format).run(LIVES // 3, MANAGER_KILLS)
    print(json.dumps(figures, indent=2))
    assert figures["drivers killed"]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java 17")
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("format", FORMATS)
def test_streams_are_exactly_once_while_the_driver_and_the_queue_manager_are_killed(
    tmp_path: Path, format: str
) -> None:
    figures = kill_often(
        tmp_path,
        driver_kills=DRIVER_KILLS,
        manager_kills=MANAGER_KILLS,
        seed=SEED,
        format=format,
    )
    print(json.dumps(figures, indent=2))
    print(
        f"{figures['queues with messages']} queues, {figures['messages in queues']} messages in "
        f"them, {figures['rows in the table']} rows in a {format} table, {DRIVER_KILLS} driver "
        f"kills, {MANAGER_KILLS} queue manager kills: each once and in order"
    )
    assert figures["priorities"] == list(range(8))
    for name in ("in transactions that committed late", "tasks failed on purpose"):
        assert figures[name], f"this run showed nothing about {name}"
