"""What a start makes of what it finds: caches that were not written, old stores, hostile bodies."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from openmsmq.storage.base import Base
from openmsmq.storage.engine import CHECKPOINT_MIN_BYTES, JournaledStore
from openmsmq.storage.files import FileOps
from openmsmq.storage.layout import BASE_NAME, JOURNAL_NAMES, SCHEMA_VERSION, read_format
from openmsmq.storage.maintenance import check_store
from openmsmq.storage.opening import open_store
from openmsmq.storage.port import Batch, StoreDamaged, StoreError, Taken
from tests.unit.storage.test_engine import FailingFiles
from tests.unit.storage.test_frames import EFFORT_MAX, counted

State = list[tuple[bytes, bytes]]


def opened(directory: Path, files: FileOps | None = None) -> JournaledStore:
    return open_store(directory, checkpoint_bytes=CHECKPOINT_MIN_BYTES, files=files)


def content(store: JournaledStore) -> State:
    return store.scan(b"", b"\xff", 1000)


class PageCache(FileOps):
    """A file system that can forget what was written and not synced."""

    def __init__(self) -> None:
        self.unsynced: dict[int, list[tuple[int, bytes]]] = {}
        self.killed = False

    def _inode(self, file: int) -> int:
        return os.fstat(file).st_ino

    def write(self, file: int, parts: Sequence[bytes], offset: int) -> None:
        length = sum(map(len, parts))
        before = self.read(file, length, offset)
        self.unsynced.setdefault(self._inode(file), []).append((offset, before))
        super().write(file, parts, offset)

    def write_through(self, file: int, parts: Sequence[bytes], offset: int) -> None:
        self.write(file, parts, offset)
        if not self.killed:
            self.sync(file)

    def sync(self, file: int) -> None:
        super().sync(file)
        self.unsynced.pop(self._inode(file), None)

    def lose_power(self, paths: Sequence[Path]) -> None:
        for path in paths:
            file = os.open(path, os.O_RDWR)
            for offset, before in reversed(self.unsynced.pop(self._inode(file), [])):
                os.pwrite(file, before, offset)
            os.close(file)


def test_what_a_start_has_seen_survives_a_loss_of_power(tmp_path: Path) -> None:
    files = PageCache()
    store = opened(tmp_path, files)
    store.commit(Batch([(b"a", b"1")]))
    # The process is killed when its last record has been written and not synced.
    files.killed = True
    store.commit(Batch([(b"b", b"2")]))
    store.abandon()
    files.killed = False
    store = opened(tmp_path, files)
    # Others may have been told of this by now.
    seen = content(store)
    assert seen == [(b"a", b"1"), (b"b", b"2")]
    store.abandon()
    files.lose_power([tmp_path / name for name in JOURNAL_NAMES])
    store = opened(tmp_path, files)
    assert content(store) == seen
    store.close()


def test_a_commit_that_has_returned_survives_a_loss_of_power(tmp_path: Path) -> None:
    files = PageCache()
    store = opened(tmp_path, files)
    for number in range(80):
        store.commit(Batch([(b"%03d" % number, bytes(150))]))
    expected = content(store)
    store.abandon()
    files.lose_power([tmp_path / name for name in JOURNAL_NAMES])
    store = opened(tmp_path, files)
    assert content(store) == expected
    store.close()


@pytest.mark.parametrize("is_clean", [False, True], ids=["crash", "clean stop"])
@pytest.mark.parametrize("is_old", [False, True], ids=["marked", "unmarked"])
def test_a_start_reads_no_more_for_bodies_full_of_records(
    tmp_path: Path, is_clean: bool, is_old: bool
) -> None:
    """Somebody sends messages that look like records of the journal all over."""
    size = 1 << 20
    open_store(tmp_path, checkpoint_bytes=size).close()
    description = read_format(FileOps(), tmp_path)
    assert description is not None
    mark = FIRST_VERSION_MARK if is_old else description.mark
    unit = mark + struct.pack("<IQI", size // 16, 2**40, 12345)
    store = open_store(tmp_path, checkpoint_bytes=size)
    # So many that the last one begins a file anew: what was there before stands behind it.
    for number in range(7):
        body = unit * (size // 4 // len(unit))
        store.commit(Batch([(b"E%d" % number, body)]))
        store.commit(Batch([(b"E%d" % number, None)]))
    expected = content(store)
    if is_clean:
        store.close()
    else:
        store.abandon()
    written = [(tmp_path / name).read_bytes() for name in JOURNAL_NAMES]
    assert all(unit * 1000 in data[size // 2 :] for data in written)
    with counted() as sizes:
        store = open_store(tmp_path, checkpoint_bytes=size)
    assert content(store) == expected
    assert sum(sizes) <= EFFORT_MAX * 2 * size
    store.close()


# Stores of schema version 1, written byte by byte.

FIRST_VERSION_MARK = b"\xf5MQj"
SALT = 0x12345678


def old_record(sequence: int, changes: list[tuple[bytes, bytes | None]]) -> bytes:
    payload = msgspec.msgpack.encode(changes)
    unsealed = FIRST_VERSION_MARK + struct.pack("<IQ", len(payload), sequence)
    return unsealed + struct.pack("<I", zlib.crc32(payload, zlib.crc32(unsealed, SALT))) + payload


def write_old_store(directory: Path) -> State:
    """Three batches are in the base, two in the full journal file, one in the active one."""
    directory.mkdir()
    text = json.dumps({"version": 1, "state": "ready", "salt": SALT, "format": "openmsmq-store"})
    sealed = f'{{"store":{text},"crc32":{zlib.crc32(text.encode())}}}'
    (directory / "format.json").write_text(sealed)
    base = Base(FileOps(), directory / BASE_NAME, create=True)
    base.write([(b"a", b"1"), (b"b", b"2")], applied=3)
    base.close()
    first = old_record(3, [(b"b", b"2")]) + old_record(4, [(b"a", None)])
    first += old_record(5, [(b"c", b"3")])
    second = old_record(6, [(b"d", b"4")])
    for name, data in zip(JOURNAL_NAMES, (first, second), strict=True):
        (directory / name).write_bytes(data.ljust(CHECKPOINT_MIN_BYTES, b"\0"))
    return [(b"b", b"2"), (b"c", b"3"), (b"d", b"4")]


def version_of(directory: Path) -> int:
    description = read_format(FileOps(), directory)
    assert description is not None
    return description.version


def test_an_old_store_is_read_and_becomes_a_new_one(tmp_path: Path) -> None:
    directory = tmp_path / "store"
    expected = write_old_store(directory)
    report = check_store(directory)
    assert (report.sound, report.schema_version, report.journal_batch_count) == (True, 1, 3)
    store = opened(directory)
    assert content(store) == expected
    assert version_of(directory) == SCHEMA_VERSION
    store.commit(Batch([(b"e", b"5")], aside=[(b"name", [b"6"])]))
    store.abandon()
    assert check_store(directory).sound
    store = opened(directory)
    assert content(store) == [*expected, (b"e", b"5")]
    store.commit(Batch(taken=[Taken(b"name", 0, 1, bytes(9))], dropped=[b"name"]))
    assert store.get(bytes(9)) == b"6"
    store.close()
    journal = directory / JOURNAL_NAMES[0]
    journal.write_bytes(journal.read_bytes()[:-1])
    with pytest.raises(StoreDamaged, match="is cut"):
        opened(directory)


def test_an_old_store_loses_nothing_when_becoming_new_fails_anywhere(tmp_path: Path) -> None:
    fails_at, failed = 0, True
    requests = set()
    while failed:
        fails_at += 1
        directory = tmp_path / str(fails_at)
        expected = write_old_store(directory)
        files = FailingFiles(fails_at, errno.EIO)
        with contextlib.suppress(StoreError):
            opened(directory, files).abandon()
        failed = bool(files.failed_request)
        requests.add(files.failed_request)
        store = opened(directory)
        assert content(store) == expected, (fails_at, files.failed_request)
        store.close()
        assert check_store(directory).sound
    assert {"replace", "sync_directory", "sync", "write"} <= requests


def test_damage_in_an_old_store_is_noticed_before_it_becomes_new(tmp_path: Path) -> None:
    directory = tmp_path / "store"
    write_old_store(directory)
    journal = directory / JOURNAL_NAMES[0]
    data = bytearray(journal.read_bytes())
    data[len(old_record(3, [(b"b", b"2")])) + 25] ^= 1
    journal.write_bytes(data)
    with pytest.raises(StoreDamaged, match=r"offset .* is broken, but batch 5"):
        opened(directory)
    assert version_of(directory) == 1
