"""A copy of a store in use shows the moment at which it was begun, however long it takes."""

from __future__ import annotations

import random
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openmsmq.storage.backups import writing
from openmsmq.storage.backups.restoring import Restoring
from openmsmq.storage.backups.snapshot import Snapshot
from openmsmq.storage.backups.writing import Draft
from openmsmq.storage.base import Base
from openmsmq.storage.files import FileOps
from openmsmq.storage.maintenance import check_store
from openmsmq.storage.opening import open_store
from openmsmq.storage.port import Batch, StoreFull
from tests.contracts.test_store import CrampedFiles
from tests.unit.storage.backups.histories import (
    OWNER,
    History,
    Quick,
    content,
    copying,
    opened,
    take_all,
)

STEP_BYTES = 4096


def back_up_in_steps(folder: Path, seed: int, *, before: int, between: int) -> None:
    """Begin a back-up after some turns, have others between its steps, and compare."""
    rng = random.Random(seed)
    history = History(folder / "data", seed)
    for _ in range(before):
        history.turn()
    if rng.random() < 0.2:
        history.store.checkpoint()
    expected, aside = dict(history.state), dict(history.aside)
    snapshot = Snapshot(history.store)
    draft = Draft(Quick(), folder / "backup")
    for _ in copying(snapshot, draft):
        for _ in range(rng.randint(0, between)):
            history.turn()
        if rng.random() < 0.05:
            history.store.checkpoint()
    snapshot.release()
    draft.finish(OWNER, 1, snapshot.sequence)
    # What the copier needed is used again.
    for _ in range(20):
        history.turn()
    history.check()
    history.store.close()
    Restoring(folder / "backup", folder / "restored", files=Quick()).run(now_s=1)
    copy = folder / "restored" / "store"
    assert check_store(copy).sound
    store = opened(copy)
    assert content(store) == expected
    take_all(store, aside)
    store.close()
    assert check_store(copy).sound


@settings(deadline=None, max_examples=6)
@given(st.integers(0, 2**32), st.integers(0, 80), st.integers(0, 12))
def test_a_back_up_shows_the_moment_of_its_beginning(seed: int, before: int, between: int) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(writing, "CHUNK_BYTES", STEP_BYTES)
        back_up_in_steps(Path(folder), seed, before=before, between=between)


def test_what_is_copied_stays_while_everything_is_written_over(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "CHUNK_BYTES", STEP_BYTES)
        for seed in range(2):
            back_up_in_steps(tmp_path / str(seed), seed, before=60, between=10)


def test_one_back_up_follows_the_other(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data", files=Quick())
    for number in range(3):
        store.commit(Batch([(b"a", b"%d" % number)]))
        snapshot = Snapshot(store)
        with pytest.raises(AssertionError, match="two snapshots"):
            Snapshot(store)
        snapshot.release()
        snapshot.release()
    store.close()
    assert not (tmp_path / "data" / "records.mdb-lock").exists()


def test_a_full_disk_refuses_a_snapshot_and_the_store_goes_on(tmp_path: Path) -> None:
    files = CrampedFiles()
    store = opened(tmp_path, files)
    store.commit(Batch([(b"a", b"1")]))
    files.full = True
    with pytest.raises(StoreFull, match="note who reads"):
        Snapshot(store)
    assert store.get(b"a") == b"1"
    files.full = False
    Snapshot(store).release()
    store.commit(Batch([(b"b", b"2")]))
    store.close()


def test_a_journal_that_cannot_be_read_fails_the_back_up_and_not_the_store(tmp_path: Path) -> None:
    history = History(tmp_path, 1)
    history.turn()
    snapshot = Snapshot(history.store)
    for path in tmp_path.glob("journal-*"):
        path.rename(path.with_suffix(".away"))
    for _ in range(40):
        history.turn()
    with pytest.raises(Exception, match="read the journal"):
        snapshot.parts()
    snapshot.release()
    assert content(history.store) == history.state
    history.store.abandon()


def test_a_thread_that_copies_and_a_store_that_goes_on_do_not_meet(tmp_path: Path) -> None:
    history = History(tmp_path / "data", 7)
    for _ in range(50):
        history.turn()
    expected = dict(history.state)
    snapshot = Snapshot(history.store)
    draft = Draft(FileOps(), tmp_path / "backup")
    thread = threading.Thread(target=lambda: list(copying(snapshot, draft)))
    thread.start()
    while thread.is_alive():
        history.turn()
    thread.join()
    snapshot.release()
    draft.finish(OWNER, 1, snapshot.sequence)
    history.check()
    history.store.close()
    store = opened(tmp_path / "backup" / "store")
    assert content(store) == expected
    store.close()


def test_pages_are_used_again_when_nobody_copies_any_more(tmp_path: Path) -> None:
    base = Base(FileOps(), tmp_path / "records.mdb", create=True)

    def used_after(times: int) -> int:
        for number in range(times):
            base.write([(b"%03d" % key, bytes([number]) * 1000) for key in range(50)])
        used_bytes = base.hold()[1]
        base.let_go()
        return used_bytes

    small = used_after(5)
    assert used_after(20) == small
    base.hold()
    for number in range(20):
        base.write([(b"%03d" % key, bytes([number]) * 1000) for key in range(50)])
    base.let_go()
    large = used_after(1)
    assert large > 5 * small
    assert used_after(20) == large
    base.close()
