"""A back-up beside its manifest: what lies, what is missing, and what nobody wrote."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from openmsmq.storage.backups.comparing import compare, is_backup
from openmsmq.storage.backups.manifest import (
    BACKUP_VERSION,
    MANIFEST_NAME,
    BackupError,
    BackupFile,
    BackupOwner,
    Manifest,
    write_manifest,
)
from openmsmq.storage.files import FileOps

CONTENT = {"identity.json": b"who", "store/records.mdb": b"r" * 5000, "store/format.json": b""}


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    listed = []
    for path, data in CONTENT.items():
        place = tmp_path / path
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(data)
        listed.append(BackupFile(path, len(data), hashlib.sha256(data).hexdigest(), 0o600))
    manifest = Manifest(BACKUP_VERSION, BackupOwner("ALPHA", "id"), 1_700_000_000, 0, listed)
    write_manifest(FileOps(), tmp_path, manifest)
    return tmp_path


def test_what_is_as_it_was_written_has_no_problem(backup: Path) -> None:
    (backup / "store/lock").touch()
    (backup / "note.txt").write_text("of the operator")
    steps: list[tuple[int, int]] = []
    found = compare(backup, progress=lambda *step: steps.append(step))
    assert found.problems == ()
    assert found.manifest.owner.name == "ALPHA"
    assert steps[-1] == (5003, 5003)


@pytest.mark.parametrize("path", ["identity.json", "store/records.mdb"])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda place: place.unlink(), "is missing"),
        (lambda place: place.write_bytes(place.read_bytes()[:-1]), "bytes, and the manifest says"),
        (lambda place: place.write_bytes(place.read_bytes() + b"x"), "has more than"),
        (lambda place: place.write_bytes(bytes(len(place.read_bytes()))), "its checksum"),
        (lambda place: (place.unlink(), place.symlink_to("/etc/hostname")), "is a link"),
        (lambda place: (place.unlink(), place.mkdir()), "is no file"),
    ],
    ids=["missing", "short", "long", "other", "link", "folder"],
)
def test_each_difference_is_named_with_its_file(
    backup: Path, path: str, change: Callable[[Path], object], said: str
) -> None:
    change(backup / path)
    (problem,) = compare(backup).problems
    assert str(backup / path) in problem
    assert said in problem


def test_a_file_or_a_link_that_the_manifest_does_not_have_is_named(backup: Path) -> None:
    (backup / "store/deep").mkdir()
    (backup / "store/deep/journal.log").touch()
    (backup / "store/elsewhere").symlink_to("/etc")
    problems = compare(backup).problems
    assert [problem.partition(" ")[0] for problem in problems] == [
        str(backup / "store/deep/journal.log"),
        str(backup / "store/elsewhere"),
    ]


def test_a_directory_without_a_manifest_is_no_back_up(backup: Path) -> None:
    assert is_backup(backup)
    (backup / MANIFEST_NAME).unlink()
    assert not is_backup(backup)
    with pytest.raises(BackupError, match="is no back-up"):
        compare(backup)
    # A link that leads nowhere was put there by somebody: it is told, and not passed over.
    (backup / MANIFEST_NAME).symlink_to("nowhere")
    assert is_backup(backup)
    with pytest.raises(BackupError, match="is a link"):
        compare(backup)
