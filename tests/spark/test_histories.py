"""Ordinary life against streams: nothing is lost or doubled in silence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.spark.exactly_once.playing import play

HISTORIES = int(os.environ.get("OPENMSMQ_HISTORIES", "8"))
FIRST_HISTORY = int(os.environ.get("OPENMSMQ_FIRST_HISTORY", "0"))


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_stream_loses_and_doubles_nothing_in_silence_whatever_its_operator_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small tasks, so that batches have several; and nobody waits for a driver that is not dead.
    monkeypatch.setattr("openmsmq.spark.source.queue_range.TASK_MIN_COUNT", 5)
    monkeypatch.setattr("openmsmq.spark.source.reservations.HOLDER_PATIENCE_S", 0.0)
    report = play(tmp_path, range(FIRST_HISTORY, FIRST_HISTORY + HISTORIES))
    print(report.figures())
    assert not report.violations, "\n".join(
        f"history {seed}: {told}" for seed, told in report.violations.items()
    )
    assert report.certain, "this run showed nothing: everything was excused"
