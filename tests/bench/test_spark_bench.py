"""What the bench of Spark compares with: rows that are ready, and the work of other programs."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.cores import used_by_s, worked_s
from bench.spark_sources import ReadyReader


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "ready.arrow"
    batches = [pa.record_batch({"number": list(numbers)}) for numbers in (range(5), range(5, 8))]
    with pa.ipc.new_file(path, batches[0].schema) as file:
        for batch in batches:
            file.write_batch(batch)
    return path


@given(count=st.integers(0, 50), tasks=st.integers(1, 4))
def test_ready_rows_come_again_until_there_are_as_many_as_asked_for(
    ready: Path, count: int, tasks: int
) -> None:
    reader = ReadyReader(str(ready), count, tasks)
    shares = [
        [number for batch in reader.read(part) for number in batch["number"].to_pylist()]
        for part in reader.partitions()
    ]
    assert len(shares) == tasks
    assert sum(map(len, shares)) == count
    assert all(share == [number % 8 for number in range(len(share))] for share in shares)


def test_the_work_of_this_process_is_known_and_part_of_all_work() -> None:
    used_s, busy_s = used_by_s([os.getpid()]), worked_s()
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
    mine, all_of_it = used_by_s([os.getpid()]) - used_s, worked_s() - busy_s
    assert mine >= 0.25
    assert all_of_it >= 0.2
