"""A back-up under load is of one moment: all that was acknowledged before, and nothing twice."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

import openmsmq as mq
from openmsmq.model.errors import SharingViolation
from openmsmq.storage.backups.manifest import MANIFEST_NAME
from openmsmq.storage.backups.restoring import Restoring
from tests.crash.backups import Load, back_up
from tests.crash.harness import serving, work_until

SECONDS = float(os.environ.get("OPENMSMQ_BACKUP_SECONDS", "1"))
REPETITIONS = int(os.environ.get("OPENMSMQ_BACKUP_REPETITIONS", "1"))
ON_ONE_STORE = 5
"""Back-ups of one queue manager, which keeps most of what it gets: then another one begins."""
WORKERS = int(os.environ.get("OPENMSMQ_BACKUP_WORKERS", "2"))


@pytest.fixture
def addresses(worker_id: str) -> tuple[str, str]:
    """Two loopback addresses that no other test uses at the same time."""
    number = int(worker_id.removeprefix("gw")) if worker_id.startswith("gw") else 0
    return f"127.0.78.{number + 1}", f"127.0.79.{number + 1}"


def rate(loads: list[Load], seconds: float) -> float:
    """Let the workers work; give how many steps they do in a second."""
    before, began = sum(load.count for load in loads), time.monotonic()  # noqa: TID251
    work_until(seconds)
    return (sum(load.count for load in loads) - before) / (time.monotonic() - began)  # noqa: TID251


def hear_of_one_more(loads: list[Load]) -> None:
    """Wait until what every worker was doing is known."""
    for load in loads:
        hear_of(load, load.count + 1)


def hear_of(load: Load, count: int) -> None:
    """Wait until a worker has done so many steps, however busy the computer is."""
    while load.count < count:
        time.sleep(0.01)


@pytest.mark.timeout(7200)
def test_a_back_up_under_load_has_all_that_was_acknowledged_and_nothing_twice(
    tmp_path: Path, addresses: tuple[str, str]
) -> None:
    for first in range(0, REPETITIONS, ON_ONE_STORE):
        shutil.rmtree(tmp_path / "data", ignore_errors=True)
        repeat(range(first, min(first + ON_ONE_STORE, REPETITIONS)), tmp_path, addresses)


def repeat(repetitions: range, place: Path, addresses: tuple[str, str]) -> None:
    """Back one queue manager up under load several times, restore each back-up and compare."""
    address, other = addresses
    with serving(place / "data", address) as server:
        loads = [Load(address, number) for number in range(WORKERS)]
        try:
            for repetition in repetitions:
                usual = rate(loads, SECONDS / REPETITIONS)
                before = [load.count for load in loads]
                began = time.monotonic()  # noqa: TID251
                state = back_up(address, place / "backup")
                took = time.monotonic() - began  # noqa: TID251
                during = (sum(load.count for load in loads) - sum(before)) / took
                hear_of_one_more(loads)
                after = [load.count for load in loads]
                print(
                    f"back-up {repetition + 1}: {state.total_bytes >> 20} MiB in {took:.1f} s; "
                    f"{usual:.0f} steps/s before, {during:.0f} meanwhile"
                )
                Restoring(place / "backup", place / "restored").run(now_s=1)
                with serving(place / "restored", other):
                    for load, first, last in zip(loads, before, after, strict=True):
                        load.check(other, first, last)
                shutil.rmtree(place / "backup")
                shutil.rmtree(place / "restored")
            for load in loads:
                hear_of(load, 4)
        finally:
            for load in loads:
                load.stop()
        assert server.stop() == 0


def test_a_queue_manager_that_ends_in_the_middle_leaves_nothing_that_looks_like_a_back_up(
    tmp_path: Path, addresses: tuple[str, str]
) -> None:
    address, _ = addresses
    target = tmp_path / "backups" / "one"
    target.parent.mkdir()
    with serving(tmp_path / "data", address) as server, mq.connect(address) as manager:
        manager.begin_backup(str(target))
        with pytest.raises(SharingViolation):
            manager.begin_backup(str(tmp_path / "backups" / "two"))
        server.kill()
    assert not target.exists()
    assert list(target.parent.rglob(MANIFEST_NAME)) == []
    # What is left does not stand in the way of the next one.
    with serving(tmp_path / "data", address) as server:
        with mq.connect(address) as manager:
            manager.begin_backup(str(target))
        # Its connection is gone, and it is stopped in order: it is done, or removed.
        assert server.stop() == 0
        # What the kill has left is gone with it.
        assert [path for path in target.parent.iterdir() if path != target] == []
        assert not target.exists() or (target / MANIFEST_NAME).exists()
