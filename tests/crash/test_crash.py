"""No fault loses an acknowledged message, shows an aborted one, or changes the order."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import openmsmq as mq
from openmsmq.model.errors import InsufficientResources, MsmqError
from tests.crash.checker import Checker
from tests.crash.harness import (
    TRIES_MAX_COUNT,
    Server,
    Work,
    check_contents,
    contents,
    create_queues,
    kill_often,
    serving,
    work_until,
)
from tests.crash.worker import BODY_BYTES, KEPT, body, number_of
from tests.runtime.disks import Disk, mounted_disk

KILLS = int(os.environ.get("OPENMSMQ_KILLS", "6"))
POWER_CUTS = int(os.environ.get("OPENMSMQ_POWER_CUTS", "3"))
SEED = int(os.environ.get("OPENMSMQ_SEED", "1"))


@pytest.fixture
def address(worker_id: str) -> str:
    """A loopback address that no other test uses at the same time."""
    number = int(worker_id.removeprefix("gw")) if worker_id.startswith("gw") else 0
    return f"127.0.77.{number + 1}"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with mounted_disk(tmp_path, 64) as mounted:
        yield mounted


@pytest.mark.timeout(3600)
def test_killing_the_queue_manager_loses_nothing(tmp_path: Path, address: str) -> None:
    checker = kill_often(tmp_path / "data", address, KILLS, SEED)
    assert len(checker.sent["kept"]) > KILLS
    assert len(checker.committed) > KILLS


@pytest.mark.timeout(3600)
def test_cutting_the_power_loses_nothing(disk: Disk, address: str) -> None:
    rng = random.Random(SEED)
    checker = Checker()
    data = disk.path / "data"
    with serving(data, address) as server:
        create_queues(address)
        assert server.stop() == 0
    for number in range(TRIES_MAX_COUNT * POWER_CUTS):
        if number >= POWER_CUTS and checker.committed and checker.sent["kept"]:
            break
        server = Server(data, address)
        work = Work(address, rng.getrandbits(32), checker)
        work_until(rng.uniform(0.02, 0.4))
        disk.cut_power()
        server.kill()
        work.finish()
        disk.unmount()
        disk.mount()
    check_contents(data, address, checker)
    assert checker.committed
    assert checker.sent["kept"]


def test_a_disk_that_fails_is_reported_and_loses_nothing(disk: Disk, address: str) -> None:
    """After the power of the disk is cut, every flush fails, while the computer goes on."""
    data = disk.path / "data"
    with serving(data, address) as server:
        create_queues(address)
        with mq.connect(address) as manager:
            queue = manager.queue(KEPT)
            queue.send_many([body(number) for number in range(1, 11)], recoverable=True)
            disk.cut_power()
            with pytest.raises(MsmqError) as refused:
                queue.send(body(11), recoverable=True)
        assert refused.value.name == "MQ_ERROR_MESSAGE_STORAGE_FAILED"
        assert "disk" in str(refused.value).lower()
        assert server.wait() == 1
    disk.unmount()
    disk.mount()
    with serving(data, address):
        assert contents(address, KEPT) in ([*range(1, 11)], [*range(1, 12)])


def test_a_disk_that_becomes_read_only_is_reported_and_loses_nothing(
    disk: Disk, address: str
) -> None:
    data = disk.path / "data"
    with serving(data, address) as server:
        create_queues(address)
        with mq.connect(address) as manager:
            manager.queue(KEPT).send_many([body(n) for n in range(1, 11)], recoverable=True)
        assert server.stop() == 0
    disk.unmount()
    disk.mount("ro")
    with pytest.raises(AssertionError, match=r"(?i)read-only"):
        Server(data, address)
    disk.unmount()
    disk.mount()
    with serving(data, address):
        assert contents(address, KEPT) == [*range(1, 11)]


def send_until_refused(queue: mq.Queue, sent: list[int]) -> None:
    """Send messages one after the other, note each that was acknowledged, until one is not."""
    for number in range(1, 100_000):
        # Sixteen times as long as others: a disk fills up before many syncs are needed.
        queue.send(body(number) + b"x" * 15 * BODY_BYTES, recoverable=True)
        sent.append(number)


def test_a_full_disk_refuses_new_messages_and_goes_on_when_there_is_room(
    disk: Disk, address: str
) -> None:
    data = disk.path / "data"
    sent: list[int] = []
    with serving(data, address):
        create_queues(address)
        with mq.connect(address) as manager:
            queue = manager.queue(KEPT)
            with pytest.raises(InsufficientResources) as refused:
                send_until_refused(queue, sent)
            assert refused.value.name == "MQ_ERROR_INSUFFICIENT_RESOURCES"
            assert len(sent) > 100
            received: list[int] = []
            while len(received) < len(sent) // 2:
                received += [number_of(m.body_bytes) for m in queue.receive_many(100, 5)]
            queue.send(body(sent[-1] + 1), recoverable=True)
            sent.append(sent[-1] + 1)
    with serving(data, address):
        assert received + contents(address, KEPT) == sent
