"""A back-up is there as a whole or not at all, whenever the power fails or the disk is full."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from openmsmq.runtime.backups.contents import store_parts
from openmsmq.storage.backups.manifest import MANIFEST_NAME, BackupError, read_manifest
from openmsmq.storage.backups.restoring import Restoring
from openmsmq.storage.backups.snapshot import Part, Snapshot
from openmsmq.storage.backups.writing import Draft
from openmsmq.storage.files import FileOps
from tests.unit.storage.backups.fading import FadingDisk, PowerCut
from tests.unit.storage.backups.histories import OWNER, History, Quick, State, content, opened


def history(folder: Path) -> History:
    made = History(folder, 3)
    turns = 0
    while turns < 30 or not made.aside:
        made.turn()
        turns += 1
    return made


def write(files: FileOps, target: Path, snapshot: Snapshot) -> None:
    """Make a back-up of a snapshot."""
    draft = Draft(files, target)
    try:
        draft.begin()
        for part in store_parts(snapshot.parts()):
            for _ in draft.copy(part):
                pass
        draft.finish(OWNER, 1, snapshot.sequence)
    except BackupError:
        draft.give_up()
        raise


def require_whole(backup: Path, scratch: Path, expected: State) -> None:
    """See whether a back-up has everything."""
    Restoring(backup, scratch, files=Quick()).run(now_s=1)
    store = opened(scratch / "store")
    assert content(store) == expected
    store.close()


@pytest.mark.parametrize("stride", [11, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("keeps_names", [False, True], ids=["names lost", "names kept"])
def test_a_loss_of_power_leaves_a_whole_back_up_or_none(
    tmp_path: Path, stride: int, keeps_names: bool
) -> None:
    made = history(tmp_path / "data")
    snapshot = Snapshot(made.store)
    fails_at, cut, whole = 0, True, 0
    while cut:
        fails_at += stride
        folder = tmp_path / str(fails_at)
        folder.mkdir()
        files = FadingDisk(folder, fails_at)
        cut = False
        try:
            write(files, folder / "backup", snapshot)
        except PowerCut:
            cut = True
        files.fail(keeps_names=keeps_names)
        found = [path.parent for path in folder.rglob(MANIFEST_NAME)]
        for number, backup in enumerate(found):
            # Whatever has a manifest is whole, whether it has its name yet or not.
            require_whole(backup, folder / f"scratch {number}", made.state)
        named = (folder / "backup").exists()
        assert not named or found == [folder / "backup"]
        whole += named
        assert named or cut
    assert fails_at > 30
    assert whole
    snapshot.release()
    made.store.close()


class Failing(FileOps):
    """A disk that refuses the n-th request that adds something."""

    def __init__(self, fails_at: int, reason: int) -> None:
        self.left = fails_at
        self.reason = reason

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise OSError(self.reason, os.strerror(self.reason))

    def write(self, file: int, parts: Sequence[bytes], offset: int) -> None:
        self._count()
        super().write(file, parts, offset)

    def allocate(self, file: int, size_bytes: int) -> None:
        self._count()
        super().allocate(file, size_bytes)

    def sync(self, file: int) -> None:
        self._count()
        super().sync(file)

    def make_directory(self, path: Path) -> None:
        self._count()
        super().make_directory(path)

    def replace(self, source: Path, target: Path) -> None:
        self._count()
        super().replace(source, target)


@pytest.mark.parametrize(
    ("reason", "said"), [(errno.ENOSPC, "free some space"), (errno.EIO, "cannot ")]
)
def test_a_disk_that_refuses_leaves_nothing_and_the_store_goes_on(
    tmp_path: Path, reason: int, said: str
) -> None:
    made = history(tmp_path / "data")
    snapshot = Snapshot(made.store)
    (tmp_path / "backups").mkdir()
    fails_at, failed = 0, True
    while failed:
        fails_at += 1
        files = Failing(fails_at, reason)
        problem = ""
        try:
            write(files, tmp_path / "backups" / "one", snapshot)
        except BackupError as error:
            problem = str(error)
        failed = bool(problem)
        if failed:
            assert said in problem
            assert list((tmp_path / "backups").iterdir()) == []
    assert fails_at > 15
    made.turn()
    snapshot.release()
    made.check()
    made.store.close()
    require = tmp_path / "backups" / "one"
    assert read_manifest(FileOps(), require).owner == OWNER


def test_a_directory_that_has_something_by_now_is_not_replaced(tmp_path: Path) -> None:
    made = history(tmp_path / "data")
    snapshot = Snapshot(made.store)
    (tmp_path / "backup").mkdir()
    write(Quick(), tmp_path / "backup", snapshot)
    with pytest.raises(BackupError, match="not empty any more"):
        write(Quick(), tmp_path / "backup", snapshot)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup", "data"]
    snapshot.release()
    made.store.close()


def test_modes_are_kept_and_what_is_gone_may_be_missing(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"secret")
    (tmp_path / "key").chmod(0o640)
    draft = Draft(FileOps(), tmp_path / "backup")
    draft.begin()
    for part in (
        Part("keys/key", tmp_path / "key", 6),
        Part("shorter", tmp_path / "key", 600, may_end=True),
        Part("gone", tmp_path / "gone", 600, may_end=True),
    ):
        assert sum(draft.copy(part)) in (0, 6)
    manifest = draft.finish(OWNER, 1, 2)
    assert [(file.path, file.size_bytes, file.mode) for file in manifest.files] == [
        ("keys/key", 6, 0o640),
        ("shorter", 6, 0o640),
    ]
    assert (tmp_path / "backup").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "backup" / "keys" / "key").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("name", ["../x", "/x", ".x", "a//b", "manifest.json", "a\nb"])
def test_no_file_is_written_outside_or_hidden(tmp_path: Path, name: str) -> None:
    (tmp_path / "key").write_bytes(b"secret")
    draft = Draft(FileOps(), tmp_path / "backup")
    draft.begin()
    with pytest.raises(BackupError, match="no back-up can have"):
        list(draft.copy(Part(name, tmp_path / "key", 6)))


def test_a_part_of_a_store_that_has_become_shorter_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "records.mdb").write_bytes(bytes(100))
    draft = Draft(FileOps(), tmp_path / "backup")
    draft.begin()
    with pytest.raises(BackupError, match="shorter"):
        list(draft.copy(Part("store/records.mdb", tmp_path / "records.mdb", 101)))


# What is left behind by back-ups that were killed.

BEGUN = """
import sys, time
from pathlib import Path
from openmsmq.storage.backups.writing import Draft
from openmsmq.storage.files import FileOps
draft = Draft(FileOps(), Path(sys.argv[1]))
draft.begin()
(draft.path / "store").mkdir()
(draft.path / "store" / "journal").write_bytes(b"half of it")
print(draft.path, flush=True)
time.sleep(600)
"""


@contextlib.contextmanager
def begun(target: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """Another process that writes a back-up; gives its directory."""
    command = [sys.executable, "-c", BEGUN, str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Path(process.stdout.readline().strip()), process
        finally:
            process.kill()


def test_what_a_killed_back_up_left_goes_with_the_next_one_of_its_name(tmp_path: Path) -> None:
    target = tmp_path / "monday"
    with begun(target) as (left, process), begun(target) as (alive, _):
        assert left.is_dir()
        process.kill()
        process.wait()
        draft = Draft(FileOps(), target)
        draft.begin()
        # Before anything is copied: it may be the room that is needed.
        assert not left.exists()
        assert alive.is_dir(), "somebody is still writing it"
        draft.give_up()
        assert list(tmp_path.iterdir()) == [alive]


def test_what_only_lacks_its_name_goes_when_there_is_something_better(tmp_path: Path) -> None:
    made = history(tmp_path / "data")
    snapshot = Snapshot(made.store)
    (tmp_path / "backups").mkdir()
    target = tmp_path / "backups" / "monday"
    left = target.with_name(".monday.part-0123abcd")
    write(FileOps(), left, snapshot)
    draft = Draft(FileOps(), target)
    draft.begin()
    draft.give_up()
    require_whole(left, tmp_path / "scratch", made.state)
    write(FileOps(), target, snapshot)
    assert list((tmp_path / "backups").iterdir()) == [target]
    snapshot.release()
    made.store.close()


def test_nothing_is_removed_that_no_back_up_of_this_name_has_left(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("x")
    place = tmp_path / "backups"
    place.mkdir()
    for name in (
        ".tuesday.part-0123abcd",
        ".monday.part-0123abc",
        ".monday.part-0123abcde",
        ".monday.part-0123abcd.old",
        ".monday.part-secret00",
        "monday.part-0123abcd",
        ".xmonday.part-0123abcd",
    ):
        (place / name).mkdir()
    (place / ".monday.part-00000000").write_text("a file")
    (place / ".monday.part-11111111").symlink_to(elsewhere)
    before = sorted(place.iterdir())
    write_nothing = Draft(FileOps(), place / "monday")
    write_nothing.begin()
    write_nothing.give_up()
    assert sorted(place.iterdir()) == before
    assert (elsewhere / "precious").read_text() == "x"


def test_where_directories_cannot_be_held_nothing_is_removed(tmp_path: Path) -> None:
    class Unholding(FileOps):
        def hold_directory(self, path: Path) -> int:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK), str(path))

    left = tmp_path / ".monday.part-0123abcd"
    left.mkdir()
    draft = Draft(Unholding(), tmp_path / "monday")
    draft.begin()
    draft.give_up()
    assert list(tmp_path.iterdir()) == [left]
