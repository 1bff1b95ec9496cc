"""A process that writes the store is killed, loses power, or runs out of disk, in earnest."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from openmsmq.storage.maintenance import check_store
from openmsmq.storage.opening import open_store
from openmsmq.storage.port import Batch, StoreFailed, StoreFull
from tests.runtime import store_writer
from tests.runtime.disks import mounted_disk

KILLS = int(os.environ.get("OPENMSMQ_KILLS", "15"))
POWER_CUTS = int(os.environ.get("OPENMSMQ_POWER_CUTS", "5"))
SOURCE = Path(__file__).parents[2] / "src"


class Writer:
    """The writing process, seen from the process that ends it."""

    def __init__(self, directory: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, store_writer.__file__, str(directory)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )
        assert self.process.stdout is not None
        self.output = self.process.stdout

    def wait_for(self, count: int) -> int:
        """Let so many batches be committed; give the number of the last."""
        line = b""
        for _ in range(count):
            line = self.output.readline()
            assert line, "the writer has ended by itself"
        return int(line)

    def kill(self, last: int) -> int:
        """End the process at once; give the number of the last batch that it reported."""
        self.process.send_signal(signal.SIGKILL)
        with self.process:
            output = self.output.read()
        whole = output[: output.rfind(b"\n") + 1].split()
        return int(whole[-1]) if whole else last


def verify(directory: Path, reported: int) -> int:
    """Look whether exactly the committed batches are there; give their number."""
    store = open_store(directory, create=False, checkpoint_bytes=store_writer.CHECKPOINT_BYTES)
    try:
        number = store_writer.committed(store)
        # The batch after the last reported one may have been committed, its report was lost.
        assert reported <= number <= reported + 1
        assert store.scan(b"", b"\xff", 100_000) == store_writer.state_after(number)
    finally:
        store.abandon()
    assert check_store(directory).sound
    return number


@pytest.mark.timeout(600 + 10 * KILLS)
def test_a_killed_process_loses_no_batch_and_leaves_no_half_one(tmp_path: Path) -> None:
    draw = random.Random()
    directory = tmp_path / "store"
    number = 0
    for _ in range(KILLS):
        writer = Writer(directory)
        number = verify(directory, writer.kill(writer.wait_for(draw.randrange(1, 250))))
    assert number >= KILLS


def test_a_process_killed_while_it_creates_the_store_leaves_nothing_in_the_way(
    tmp_path: Path,
) -> None:
    for place in range(5):
        directory = tmp_path / str(place)
        writer = Writer(directory)
        while not (directory / "format.json.new").exists() and writer.process.poll() is None:
            if (directory / "journal-00000001.log").exists():
                break
        reported = writer.kill(0)
        store = open_store(directory, checkpoint_bytes=store_writer.CHECKPOINT_BYTES)
        assert store_writer.committed(store) >= reported
        store.close()
        assert check_store(directory).sound


@pytest.mark.timeout(600 + 10 * POWER_CUTS)
def test_a_power_cut_loses_no_batch_and_leaves_no_half_one(tmp_path: Path) -> None:
    draw = random.Random()
    with mounted_disk(tmp_path, 64) as disk:
        directory = disk.path / "store"
        number = 0
        for _ in range(POWER_CUTS):
            writer = Writer(directory)
            last = writer.wait_for(draw.randrange(1, 250))
            disk.cut_power()
            last = writer.kill(last)
            disk.unmount()
            disk.mount()
            number = verify(directory, last)
    assert number >= POWER_CUTS


def test_a_full_disk_refuses_messages_loses_none_and_can_be_emptied(tmp_path: Path) -> None:
    with mounted_disk(tmp_path, 32) as disk:
        ballast = disk.path / "ballast"
        ballast.write_bytes(bytes(8 << 20))
        store = open_store(disk.path / "store", checkpoint_bytes=64 << 10)
        accepted = 0

        def send_until_full() -> None:
            nonlocal accepted
            while True:
                numbers = range(accepted, accepted + 20)
                store.commit(Batch([(b"%08d" % number, bytes(2_000)) for number in numbers]))
                accepted += 20

        with pytest.raises(StoreFull, match="free some space"):
            send_until_full()
        assert accepted > 3_000
        # Emptying works without any space, and makes room for about as much again.
        received = 0
        while received < accepted:
            found = store.scan(b"", b"\xff", 100)
            assert [key for key, _ in found] == [
                b"%08d" % number for number in range(received, received + len(found))
            ]
            store.commit(Batch([(key, None) for key, _ in found]))
            received += len(found)
        assert store.scan(b"", b"\xff", 10) == []
        with pytest.raises(StoreFull):
            send_until_full()
        assert accepted - received > received / 2
        # Space that somebody else gives back is used.
        ballast.unlink()
        before = accepted
        with pytest.raises(StoreFull):
            send_until_full()
        assert accepted - before > 1_000
        store.abandon()
        store = open_store(disk.path / "store", checkpoint_bytes=64 << 10)
        assert [key for key, _ in store.scan(b"", b"\xff", 100_000)] == [
            b"%08d" % number for number in range(received, accepted)
        ]
        store.close()
        assert check_store(disk.path / "store").sound


def test_a_disk_that_fails_ends_commits_with_a_clear_error(tmp_path: Path) -> None:
    with mounted_disk(tmp_path, 32) as disk:
        store = open_store(disk.path / "store", checkpoint_bytes=256 << 10)
        store.commit(Batch([(b"a", b"1")]))
        disk.cut_power()
        with pytest.raises(StoreFailed, match="check the disk"):
            store.commit(Batch([(b"b", b"2")]))
        with pytest.raises(StoreFailed, match="earlier failure"):
            store.commit(Batch([(b"c", b"3")]))
        assert store.get(b"a") == b"1"
        store.close()
        disk.unmount()
        disk.mount()
        store = open_store(disk.path / "store", create=False)
        assert store.get(b"a") == b"1"
        store.close()


def test_a_checkpoint_on_a_failing_disk_is_a_clear_error(tmp_path: Path) -> None:
    with mounted_disk(tmp_path, 32) as disk:
        store = open_store(disk.path / "store", checkpoint_bytes=256 << 10)
        store.commit(Batch([(b"a", b"1")]))
        disk.cut_power()
        with pytest.raises(StoreFailed, match=r"records\.mdb"):
            store.checkpoint()
        with pytest.raises(StoreFailed, match="earlier failure"):
            store.commit(Batch([(b"b", b"2")]))
        assert store.get(b"a") == b"1"
        store.close()
        disk.unmount()
        disk.mount()
        store = open_store(disk.path / "store", create=False)
        assert store.get(b"a") == b"1"
        store.close()


def test_a_read_only_file_system_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with mounted_disk(tmp_path, 32) as disk:
        open_store(disk.path / "store", checkpoint_bytes=256 << 10).close()
        disk.unmount()
        disk.mount("ro")
        for directory in (disk.path / "store", disk.path / "other"):
            with pytest.raises(StoreFailed, match="the file system is read-only"):
                open_store(directory)
