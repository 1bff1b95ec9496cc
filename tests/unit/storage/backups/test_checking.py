"""A copy that is not sound is noticed by another process, which leaves no trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from openmsmq.storage.backups.checking import check_copy
from openmsmq.storage.backups.manifest import BackupError
from openmsmq.storage.layout import JOURNAL_NAMES
from openmsmq.storage.port import Batch
from tests.unit.storage.backups.histories import opened


def make(folder: Path) -> None:
    store = opened(folder)
    store.commit(Batch([(b"a", b"1"), (b"b", b"2")]))
    store.abandon()
    (folder / "lock").unlink()


def test_a_sound_copy_is_sound_and_stays_as_it_is(tmp_path: Path) -> None:
    make(tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert check_copy(tmp_path).journal_change_count == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_damage_is_said(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / JOURNAL_NAMES[0]).unlink()
    with pytest.raises(BackupError, match=r"not sound.*journal-00000001\.log is missing"):
        check_copy(tmp_path)


def test_a_check_that_nobody_wants_any_more_ends(tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(BackupError, match="ended with status -9"):
        check_copy(tmp_path, lambda: False)
