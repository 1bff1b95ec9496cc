"""A back-up goes into a new directory on a way that nobody else can change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openmsmq.runtime.backups import place
from openmsmq.runtime.backups.place import NoRoom, PlaceRefused, check_place, require_room


@pytest.fixture
def data(tmp_path: Path) -> Path:
    made = tmp_path / "data"
    made.mkdir()
    return made


def test_a_new_or_empty_directory_is_taken(tmp_path: Path, data: Path) -> None:
    assert check_place(str(tmp_path / "one"), data) == tmp_path / "one"
    (tmp_path / "two").mkdir()
    assert check_place(str(tmp_path / "two") + "/", data) == tmp_path / "two"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "no absolute path"),
        ("relative", "no absolute path"),
        ("/", "is the root itself"),
        ("{0}/x/../y", "has .. in it"),
        ("{0}/missing/x", "make it first"),
        ("{0}/file", "no directory"),
        ("{0}/file/x", "no directory"),
        ("{0}/full", "not empty"),
        ("{0}/link", "is a link"),
        ("{0}/link/x", "is a link"),
        ("{0}/dangling", "is a link"),
        ("{0}/data", "not empty"),
        ("{0}/data/x", "in the data directory"),
        ("{0}/data/deep/x", "in the data directory"),
        ("{0}/open/x", "others may write"),
        ("{0}/group", "others may write"),
        ("/proc", "not empty"),
        ("{0}/" + "x" * 300, "too long"),
    ],
)
def test_what_is_refused_is_said(tmp_path: Path, data: Path, path: str, said: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (data / "deep").mkdir()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "group").mkdir()
    (tmp_path / "group").chmod(0o770)
    with pytest.raises(PlaceRefused, match=said):
        check_place(path.format(tmp_path), data)


def test_an_empty_data_directory_is_no_place(tmp_path: Path, data: Path) -> None:
    with pytest.raises(PlaceRefused, match="not empty"):
        check_place(str(data), data)
    # Nor by another name of it.
    (tmp_path / "link").symlink_to(data)
    with pytest.raises(PlaceRefused):
        check_place(str(tmp_path / "link" / "x"), data)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user's directory")
def test_a_directory_of_somebody_else_is_refused(tmp_path: Path, data: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 12345, 12345)
    with pytest.raises(PlaceRefused, match="belongs to somebody else"):
        check_place(str(tmp_path / "theirs" / "x"), data)


def test_a_back_up_leaves_room_on_its_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_room(tmp_path / "x", 1)
    with pytest.raises(NoRoom, match="free some space"):
        require_room(tmp_path / "x", 1 << 60)
    monkeypatch.setattr(place, "ROOM_LEFT_BYTES", 1 << 60)
    with pytest.raises(NoRoom, match="stay free"):
        require_room(tmp_path / "x", 1)
