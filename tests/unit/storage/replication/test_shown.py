"""A batch that others have on their disks is seen at once, and comes to this disk after that."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from openmsmq.storage.backups.snapshot import Snapshot
from openmsmq.storage.engine import CHECKPOINT_MIN_BYTES, JournaledStore
from openmsmq.storage.opening import open_store
from openmsmq.storage.port import Batch, StoreFailed
from tests.unit.storage.test_engine import FailingFiles

A = Batch([(b"a", b"1")], volatile=[(b"v", b"2")])
B = Batch([(b"b", b"3"), (b"a", None)])
ASIDE = Batch([(b"n", b"1")], aside=[(b"part", [b"x", b"y"])])


@pytest.fixture
def store(tmp_path: Path) -> JournaledStore:
    return open_store(tmp_path / "store")


def show(store: JournaledStore, batch: Batch) -> None:
    store.show(store.prepare(batch))


def again(store: JournaledStore, tmp_path: Path) -> JournaledStore:
    """Open it as after a crash."""
    store.abandon()
    return open_store(tmp_path / "store")


def test_what_is_shown_is_seen_and_a_crash_forgets_it(
    store: JournaledStore, tmp_path: Path
) -> None:
    show(store, A)
    assert (store.get(b"a"), store.get(b"v"), store.sequence) == (b"1", b"2", 0)
    found = again(store, tmp_path)
    assert (found.get(b"a"), found.sequence) == (None, 0)
    found.close()


def test_what_has_caught_up_survives_a_crash(store: JournaledStore, tmp_path: Path) -> None:
    show(store, A)
    store.catch_up()
    store.catch_up()
    assert store.sequence == 1
    found = again(store, tmp_path)
    assert (found.get(b"a"), found.sequence) == (b"1", 1)
    found.close()


def test_the_next_batch_is_prepared_meanwhile_and_stands_behind(
    store: JournaledStore, tmp_path: Path
) -> None:
    show(store, A)
    prepared = store.prepare(B)
    assert store.sequence == 0
    store.show(prepared)
    assert (store.sequence, store.get(b"a"), store.get(b"b")) == (1, None, b"3")
    found = again(store, tmp_path)
    assert (found.sequence, found.get(b"a"), found.get(b"b")) == (1, b"1", None)
    found.close()


@pytest.mark.parametrize("then", ["commit", "set aside", "checkpoint", "snapshot", "close"])
def test_whatever_goes_to_the_disk_comes_behind_what_was_shown(
    store: JournaledStore, tmp_path: Path, then: str
) -> None:
    show(store, A)
    wanted = 1
    if then == "commit":
        store.commit(B)
        wanted = 2
    elif then == "set aside":
        store.prepare(ASIDE)
    elif then == "checkpoint":
        store.checkpoint()
    elif then == "snapshot":
        snapshot = Snapshot(store)
        assert snapshot.sequence == 1
        snapshot.release()
    else:
        store.close()
    found = again(store, tmp_path)
    assert found.sequence == wanted
    assert found.get(b"a") == (None if then == "commit" else b"1")
    found.close()


def test_files_of_the_journal_change_under_batches_that_are_shown(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", checkpoint_bytes=CHECKPOINT_MIN_BYTES)
    plain = open_store(tmp_path / "plain", checkpoint_bytes=CHECKPOINT_MIN_BYTES)
    value = bytes(700)
    for number in range(40):
        key, old = b"%02d" % number, b"%02d" % (number - 3)
        changes = [(key, value), (old, None)] if number > 3 else [(key, value)]
        show(store, Batch(list(changes)))
        plain.commit(Batch(list(changes)))
        assert store.sequence == number
    assert store.scan(b"\0", b"\xff", 100) == plain.scan(b"\0", b"\xff", 100)
    store.catch_up()
    found = again(store, tmp_path)
    assert found.sequence == plain.sequence == 40
    assert found.scan(b"\0", b"\xff", 100) == plain.scan(b"\0", b"\xff", 100)
    found.close()
    plain.close()


def test_a_disk_that_fails_then_is_told_and_nothing_is_taken_after_it(tmp_path: Path) -> None:
    files = FailingFiles(0, errno.EIO)
    store = open_store(tmp_path / "store", files=files)
    show(store, A)
    files.fails_at = files.count + 1
    with pytest.raises(StoreFailed, match="write the journal"):
        store.catch_up()
    assert store.get(b"a") == b"1"
    with pytest.raises(StoreFailed, match="earlier failure"):
        store.prepare(B)
    found = again(store, tmp_path)
    assert found.sequence == 0
    found.close()
