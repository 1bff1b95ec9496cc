"""A manifest is read as it was written, or not at all."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.storage.backups.manifest import (
    BACKUP_VERSION,
    MANIFEST_NAME,
    BackupError,
    BackupFile,
    BackupOwner,
    Manifest,
    is_good_path,
    read_manifest,
    write_manifest,
)
from openmsmq.storage.files import FileOps

MANIFEST = Manifest(
    BACKUP_VERSION,
    BackupOwner("ALPHA", "id", "OpenMSMQ"),
    1_700_000_000,
    17,
    [BackupFile("store/records.mdb", 4096, "00" * 32, 0o600), BackupFile("a", 1, "", 0o644)],
)


def test_a_manifest_survives_writing_and_reading(tmp_path: Path) -> None:
    write_manifest(FileOps(), tmp_path, MANIFEST)
    assert read_manifest(FileOps(), tmp_path) == MANIFEST
    assert MANIFEST.size_bytes == 4097


def test_every_changed_byte_is_noticed(tmp_path: Path) -> None:
    write_manifest(FileOps(), tmp_path, MANIFEST)
    data = (tmp_path / MANIFEST_NAME).read_bytes()
    for place in range(0, len(data) - 1, 7):
        changed = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        (tmp_path / MANIFEST_NAME).write_bytes(changed)
        with pytest.raises(BackupError):
            read_manifest(FileOps(), tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": BACKUP_VERSION + 1}, "or a later one"),
        ({"files": [BackupFile("../x", 1, "", 0)]}, "no back-up has"),
        ({"files": [BackupFile("x", 1, "", 0)] * 2}, "no back-up has"),
        ({"taken_time_s": 10**18}, "is damaged"),
        ({"taken_time_s": -1}, "is damaged"),
        ({"owner": BackupOwner("\x1b[31mALPHA", "id")}, "names no queue manager"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, change: dict[str, object], said: str) -> None:
    write_manifest(FileOps(), tmp_path, msgspec.structs.replace(MANIFEST, **change))
    with pytest.raises(BackupError, match=said):
        read_manifest(FileOps(), tmp_path)


def test_a_directory_without_one_is_no_back_up(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(BackupError, match="is no back-up"):
            read_manifest(FileOps(), place)


@given(st.text(max_size=40))
def test_a_good_path_stays_below_its_directory(path: str) -> None:
    if is_good_path(path):
        assert (Path("/a/b") / path).is_relative_to("/a/b")
        assert ".." not in Path(path).parts
        assert not Path(path).name.startswith(".")
