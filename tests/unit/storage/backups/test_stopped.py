"""A store that nobody has open is copied as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from openmsmq.storage.backups.stopped import stopped_parts
from openmsmq.storage.port import StoreDamaged, StoreInUse
from tests.unit.storage.backups.histories import History


def test_all_files_are_named_and_nobody_can_open_it_meanwhile(tmp_path: Path) -> None:
    history = History(tmp_path, 2)
    with pytest.raises(StoreInUse), stopped_parts(tmp_path):
        pass
    while not history.aside:
        history.turn()
    history.store.abandon()
    with stopped_parts(tmp_path) as parts:
        names = {part.name for part in parts}
        assert names == {path.name for path in tmp_path.iterdir()} - {"lock"}
        with pytest.raises(StoreInUse):
            History(tmp_path, 3)


def test_what_is_no_store_or_no_whole_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreDamaged, match="no store"), stopped_parts(tmp_path / "nowhere"):
        pass
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreDamaged, match="no store"), stopped_parts(tmp_path / "empty"):
        pass
    History(tmp_path / "store", 1).store.close()
    (tmp_path / "store" / "records.mdb").unlink()
    with (
        pytest.raises(StoreDamaged, match=r"records\.mdb is missing"),
        stopped_parts(tmp_path / "store"),
    ):
        pass
