"""Batches that others have on their disks are seen at once, and come to this disk together."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from openmsmq.storage import journal
from openmsmq.storage.backups.snapshot import Snapshot
from openmsmq.storage.engine import CHECKPOINT_MIN_BYTES, JournaledStore
from openmsmq.storage.maintenance import check_store
from openmsmq.storage.opening import open_store
from openmsmq.storage.port import Batch, StoreDamaged, StoreFailed
from tests.unit.storage.test_engine import FailingFiles

A = Batch([(b"a", b"1")], volatile=[(b"v", b"2")])
B = Batch([(b"b", b"3"), (b"a", None)])
C = Batch([(b"c", b"4")])
D = Batch([(b"d", b"5")])
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


def test_several_come_to_the_disk_with_one_write_and_in_their_order(tmp_path: Path) -> None:
    files = FailingFiles(0, 0)
    store = open_store(tmp_path / "store", files=files)
    store.commit(C)
    before, alone = files.count, store.parts[1].record_bytes(store.prepare(A).payload)
    show(store, A)
    assert store.shown_bytes == alone
    show(store, B)
    assert (store.sequence, store.get(b"a"), store.get(b"b")) == (1, None, b"3")
    assert (files.count, store.shown_bytes > alone) == (before, True)
    store.catch_up()
    # The write and its sync.
    assert (files.count, store.shown_bytes, store.sequence) == (before + 2, 0, 3)
    store.commit(D)
    found = again(store, tmp_path)
    assert (found.sequence, found.get(b"a"), found.get(b"b")) == (4, None, b"3")
    assert (found.get(b"c"), found.get(b"d")) == (b"4", b"5")
    found.close()


@pytest.mark.parametrize("kept", [0, 1, 30, 60])
def test_of_several_that_a_crash_cuts_none_is_there_and_that_is_no_damage(
    store: JournaledStore, tmp_path: Path, kept: int
) -> None:
    store.commit(C)
    [_, (path, end, _)] = store.parts[1].extents()
    for batch in (A, B, D):
        show(store, batch)
    store.catch_up()
    store.abandon()
    data = path.read_bytes()
    # The last bytes are there, and some before are not: a disk writes in any order.
    path.write_bytes(data[: end + kept] + bytes(8) + data[end + kept + 8 :])
    found = open_store(tmp_path / "store")
    assert (found.sequence, found.get(b"c"), found.get(b"a"), found.get(b"d")) == (
        *(1, b"4"),
        *(None, None),
    )
    # What the log has is stored anew behind it.
    for batch in (A, B, D):
        found.commit(batch)
    found = again(found, tmp_path)
    assert (found.sequence, found.get(b"b"), found.get(b"d")) == (4, b"3", b"5")
    found.close()


def test_several_in_front_of_a_batch_that_is_whole_are_missed(
    store: JournaledStore, tmp_path: Path
) -> None:
    [_, (path, _, _)] = store.parts[1].extents()
    show(store, A)
    show(store, B)
    store.catch_up()
    store.commit(C)
    store.abandon()
    data = path.read_bytes()
    path.write_bytes(bytes(40) + data[40:])
    with pytest.raises(StoreDamaged, match="but batch 3 at offset"):
        open_store(tmp_path / "store")
    path.write_bytes(data)
    report = check_store(tmp_path / "store")
    assert (report.sound, report.journal_batch_count, report.journal_change_count) == (True, 3, 4)


def test_several_that_are_not_readable_are_damage(store: JournaledStore, tmp_path: Path) -> None:
    journal = store.parts[1]
    journal.append([b"\xc2\x01"])
    store.abandon()
    with pytest.raises(StoreDamaged, match="batch 1 at offset 0 has a valid checksum but"):
        open_store(tmp_path / "store")


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
        assert store.sequence <= number
    # Files changed, and each time all that was shown had to be in the one before.
    assert 30 < store.sequence < 40
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


def test_what_could_not_be_brought_to_the_disk_is_missed_whoever_asks_again(
    tmp_path: Path,
) -> None:
    files = FailingFiles(0, errno.EIO)
    store = open_store(tmp_path / "store", files=files)
    show(store, A)
    files.fails_at = files.count + 1
    with pytest.raises(StoreFailed, match="write the journal"):
        Snapshot(store)
    with pytest.raises(StoreFailed, match="earlier failure"):
        store.catch_up()
    store.abandon()


def test_a_defect_on_the_way_to_the_disk_gives_no_later_batch_an_earlier_number(
    store: JournaledStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    show(store, A)
    show(store, C)
    with monkeypatch.context() as patched:
        patched.setattr(journal, "put_together", _no_memory)
        with pytest.raises(MemoryError):
            store.catch_up()
    with pytest.raises(StoreFailed, match="earlier failure"):
        store.prepare(D)
    store.close()
    found = open_store(tmp_path / "store")
    assert (found.sequence, found.get(b"d")) == (0, None)
    found.close()


def _no_memory(_: object) -> bytes:
    raise MemoryError
