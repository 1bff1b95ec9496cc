"""What is put back is what was backed up, verified, and nothing that was there is lost."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest

from openmsmq.runtime.backups.contents import own_parts, store_parts
from openmsmq.storage.backups.manifest import MANIFEST_NAME, BackupError
from openmsmq.storage.backups.restoring import DRAFT_NAME, Restoring
from openmsmq.storage.backups.snapshot import Snapshot
from openmsmq.storage.backups.stopped import stopped_parts
from openmsmq.storage.backups.writing import Draft
from openmsmq.storage.files import DirectoryLock, FileOps
from openmsmq.storage.port import StoreError, StoreInUse
from tests.unit.storage.backups.fading import FadingDisk, PowerCut
from tests.unit.storage.backups.histories import OWNER, History, Quick, State, content, opened

PLACING_COUNT = 26
"""The last requests of a restore, which give everything its place."""


def make_data(folder: Path, seed: int) -> History:
    """Make a data directory with a store and what stands beside it."""
    folder.mkdir()
    made = History(folder / "store", seed)
    for _ in range(25):
        made.turn()
    (folder / "identity.json").write_text(f'{{"name": "ALPHA", "id": "{seed}"}}')
    (folder / "keys").mkdir()
    (folder / "keys" / "one.pem").write_text(f"key {seed}")
    (folder / "keys" / "one.pem").chmod(0o600)
    (folder / "tokens.json").write_text("[]")
    return made


def make_backup(folder: Path) -> State:
    """Make a back-up in `backup`; give what its store has."""
    made = make_data(folder / "data", 1)
    snapshot = Snapshot(made.store)
    draft = Draft(Quick(), folder / "backup")
    draft.begin()
    for part in [*own_parts(folder / "data"), *store_parts(snapshot.parts())]:
        list(draft.copy(part))
    draft.finish(OWNER, 1_700_000_000, snapshot.sequence)
    snapshot.release()
    made.store.close()
    return made.state


def read(data: Path) -> State:
    store = opened(data / "store")
    found = content(store)
    store.abandon()
    return found


def test_everything_is_put_back_with_its_mode(tmp_path: Path) -> None:
    expected = make_backup(tmp_path)
    shown: list[tuple[int, int]] = []
    restoring = Restoring(tmp_path / "backup", tmp_path / "new" / "data")
    report = restoring.run(progress=lambda done, total: shown.append((done, total)), now_s=1)
    data = tmp_path / "new" / "data"
    assert read(data) == expected
    assert (data / "keys" / "one.pem").stat().st_mode & 0o777 == 0o600
    assert data.stat().st_mode & 0o777 == 0o700
    assert {path.name for path in data.iterdir()} == {
        "identity.json",
        "keys",
        "tokens.json",
        "store",
    }
    assert (report.name, report.taken_time_s, report.before) == ("ALPHA", 1_700_000_000, "")
    assert shown[-1] == (report.size_bytes, report.size_bytes)


def test_tokens_can_be_left_out(tmp_path: Path) -> None:
    make_backup(tmp_path)
    Restoring(tmp_path / "backup", tmp_path / "new").run(leave_out=["tokens.json"], now_s=1)
    assert not (tmp_path / "new" / "tokens.json").exists()
    assert (tmp_path / "new" / "keys" / "one.pem").exists()


def test_what_is_there_is_refused_and_moved_aside_only_if_told(tmp_path: Path) -> None:
    expected = make_backup(tmp_path)
    older = make_data(tmp_path / "other", 2)
    (tmp_path / "other" / "audit.log").write_text("who did what")
    data = tmp_path / "other"
    with pytest.raises(BackupError, match="not empty"):
        Restoring(tmp_path / "backup", data).run(now_s=1)
    with pytest.raises(StoreInUse):
        Restoring(tmp_path / "backup", data, replace=True).run(now_s=1)
    older.store.close()
    report = Restoring(tmp_path / "backup", data, replace=True).run(now_s=1)
    assert read(data) == expected
    before = Path(report.before)
    assert before.parent == data
    assert read(before) == older.state
    assert (before / "keys" / "one.pem").read_text() == "key 2"
    # What was done is not undone by going back.
    assert (data / "audit.log").read_text() == "who did what"
    assert not (data / DRAFT_NAME).exists()


@pytest.mark.parametrize(
    "harm", ["changed", "key", "cut", "missing", "link", "manifest", "no manifest", "names"]
)
def test_a_damaged_back_up_is_refused_and_nothing_is_changed(tmp_path: Path, harm: str) -> None:
    make_backup(tmp_path)
    backup = tmp_path / "backup"
    base = backup / "store" / "records.mdb"
    manifest = backup / MANIFEST_NAME
    if harm == "changed":
        data = bytearray(base.read_bytes())
        data[len(data) // 2] ^= 1
        base.write_bytes(data)
    elif harm == "key":
        (backup / "keys" / "one.pem").write_text("key 9")
    elif harm == "cut":
        base.write_bytes(base.read_bytes()[:-1])
    elif harm == "missing":
        next(backup.glob("store/aside-*")).unlink()
    elif harm == "link":
        key = backup / "keys" / "one.pem"
        key.rename(tmp_path / "elsewhere")
        key.symlink_to(tmp_path / "elsewhere")
    elif harm == "manifest":
        manifest.write_bytes(manifest.read_bytes().replace(b"keys/one.pem", b"keys/two.pem"))
    elif harm == "names":
        text = json.loads(manifest.read_bytes())
        text["backup"]["files"][0]["path"] = "../../evil"
        manifest.write_text(sealed(text["backup"]))
    else:
        manifest.unlink()
    with pytest.raises(StoreError):
        Restoring(backup, tmp_path / "new").run(now_s=1)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (MANIFEST_NAME, "is no file"),
        ("keys/one.pem", "is no file"),
        ("keys", "is a link"),
        ("store", "is a link"),
    ],
)
def test_pipes_and_links_in_a_back_up_are_refused_and_nobody_waits(
    tmp_path: Path, name: str, said: str
) -> None:
    make_backup(tmp_path)
    place = tmp_path / "backup" / name
    elsewhere = place.rename(tmp_path / "elsewhere")
    held = -1
    if elsewhere.is_dir():
        place.symlink_to(elsewhere)
    else:
        os.mkfifo(place)
        # Open on both ends: who opens it all the same is noticed, and the test does not hang.
        held = os.open(place, os.O_RDWR)
    try:
        with pytest.raises(BackupError, match=said):
            Restoring(tmp_path / "backup", tmp_path / "new").run(now_s=1)
    finally:
        if held >= 0:
            os.close(held)
    assert not (tmp_path / "new").exists()


def sealed(backup: object) -> str:
    text = json.dumps(backup)
    return f'{{"backup":{text},"sha256":"{hashlib.sha256(text.encode()).hexdigest()}"}}'


def test_a_store_that_is_damaged_though_its_checksums_are_right_is_refused(tmp_path: Path) -> None:
    """As one would be that was damaged before it was backed up."""
    make_backup(tmp_path)
    damaged = tmp_path / "damaged"
    draft = Draft(Quick(), damaged)
    draft.begin()
    base = tmp_path / "data" / "store" / "records.mdb"
    data = bytearray(base.read_bytes())
    for place in range(100, len(data), 4096):
        data[place] ^= 0xFF
    base.write_bytes(data)
    with stopped_parts(tmp_path / "data" / "store") as parts:
        for part in store_parts(parts):
            list(draft.copy(part))
    draft.finish(OWNER, 1, 0)
    with pytest.raises(BackupError, match="is damaged"):
        Restoring(damaged, tmp_path / "new").run(now_s=1)
    assert not (tmp_path / "new").exists()


def test_two_at_a_time_are_refused(tmp_path: Path) -> None:
    make_backup(tmp_path)
    (tmp_path / "new" / DRAFT_NAME).mkdir(parents=True)
    with pytest.raises(BackupError, match="under way, or was cut off"):
        Restoring(tmp_path / "backup", tmp_path / "new").run(now_s=1)


@pytest.mark.parametrize("keeps_names", [False, True], ids=["names lost", "names kept"])
def test_a_loss_of_power_never_leaves_a_store_that_is_not_whole(
    tmp_path: Path, keeps_names: bool
) -> None:
    expected = make_backup(tmp_path)
    older = make_data(tmp_path / "older", 2)
    older.store.close()
    shutil.copytree(tmp_path / "older", tmp_path / "whole" / "data")
    count = FadingDisk(tmp_path / "whole")
    Restoring(tmp_path / "backup", tmp_path / "whole" / "data", replace=True, files=count).run(
        now_s=1
    )
    # Until everything is verified, nothing of what is there is touched.
    placing = count.count - PLACING_COUNT
    for fails_at in [*range(1, placing, 17), *range(placing, count.count + 1)]:
        folder = tmp_path / str(fails_at)
        folder.mkdir()
        shutil.copytree(tmp_path / "older", folder / "data")
        data = folder / "data"
        files = FadingDisk(folder, fails_at)
        with pytest.raises(PowerCut):
            Restoring(tmp_path / "backup", data, replace=True, files=files).run(now_s=1)
        files.fail(keeps_names=keeps_names)
        if (data / "store").exists():
            # Whose it is tells which store it must be.
            found = read(data)
            assert found in (expected, older.state)
            if found == expected:
                assert '"1"' in (data / "identity.json").read_text()
        else:
            # Nobody begins anew where a queue manager was.
            assert (data / "identity.json").exists()
        kept = [data, *data.glob("before-restore-*")]
        assert any((place / "store").exists() and read(place) == older.state for place in kept)


def test_nobody_opens_the_store_meanwhile(tmp_path: Path) -> None:
    make_backup(tmp_path)
    older = make_data(tmp_path / "other", 2)
    older.store.close()

    class Looking(FileOps):
        def replace(self, source: Path, target: Path) -> None:
            if source == tmp_path / "other" / "store":
                with pytest.raises(StoreInUse):
                    DirectoryLock(source / "lock")
            super().replace(source, target)

    Restoring(tmp_path / "backup", tmp_path / "other", replace=True, files=Looking()).run(now_s=1)
