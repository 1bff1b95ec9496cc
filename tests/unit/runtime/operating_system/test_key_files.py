"""Key files: made, read, replaced, and for their owner alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openmsmq.runtime.operating_system.key_files import KEY_FILES_MAX_COUNT, KEY_FOLDER, KeyFiles
from openmsmq.runtime.start_errors import StartError
from openmsmq.security.providers import ADVANCED, BASE, ENHANCED

BITS = 1024


@pytest.fixture
def files(tmp_path: Path) -> KeyFiles:
    return KeyFiles(tmp_path, (ADVANCED, ENHANCED), BITS)


def test_what_is_missing_is_made_once(files: KeyFiles, tmp_path: Path) -> None:
    assert files.load() == []
    made = files.load_or_make(1000)
    assert [(key.provider, key.created_time_s) for key in made] == [
        (ADVANCED, 1000),
        (ENHANCED, 1000),
    ]
    again = KeyFiles(tmp_path, (ADVANCED, ENHANCED, BASE), BITS).load_or_make(2000)
    assert {(key.provider, key.created_time_s, key.key.public) for key in again[:2]} == {
        (key.provider, key.created_time_s, key.key.public) for key in made
    }
    assert again[2].provider is BASE
    assert again[2].key.public.bit_length == BASE.key_bits


def test_only_their_owner_can_read_them(files: KeyFiles, tmp_path: Path) -> None:
    files.make(1000)
    folder = tmp_path / KEY_FOLDER
    assert folder.stat().st_mode & 0o777 == 0o700
    [first, second] = sorted(folder.iterdir())
    assert {path.stat().st_mode & 0o777 for path in (first, second)} == {0o600}
    first.chmod(0o640)
    with pytest.raises(StartError, match="can be read by others: allow it to its owner alone"):
        files.load()


def test_a_new_key_never_takes_the_place_of_another(files: KeyFiles) -> None:
    keys = [files.make(1000)[0], files.make(1000)[0], files.make(500)[0]]
    assert [key.created_time_s for key in keys] == [1000, 1001, 1002]
    assert len(files.load()) == 6


def test_what_is_of_no_use_is_removed(files: KeyFiles, tmp_path: Path) -> None:
    files.make(1000)
    kept = files.make(2000)
    (tmp_path / KEY_FOLDER / "mine.pem").write_text("not ours")
    files.remove_all_but(kept)
    assert {key.created_time_s for key in files.load()} == {2000}
    assert (tmp_path / KEY_FOLDER / "mine.pem").exists()


def test_a_file_that_is_no_key_says_so(files: KeyFiles, tmp_path: Path) -> None:
    files.make(1000)
    path = min((tmp_path / KEY_FOLDER).iterdir())
    path.write_text("-----BEGIN PRIVATE KEY-----\nabcd\n-----END PRIVATE KEY-----\n")
    with pytest.raises(StartError, match=rf"{path.name} is no key"):
        files.load()


def test_a_folder_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / KEY_FOLDER).write_text("in the way")
    with pytest.raises(StartError, match="cannot write the key"):
        KeyFiles(tmp_path, (ADVANCED,), BITS).make(1000)


def test_a_write_that_was_cut_off_is_made_anew(files: KeyFiles, tmp_path: Path) -> None:
    folder = tmp_path / KEY_FOLDER
    folder.mkdir()
    (folder / "encryption-advanced-1000.pem.new").write_bytes(b"half a k")
    assert files.load() == []
    assert len(files.make(1000)) == 2
    assert {path.suffix for path in folder.iterdir()} == {".pem"}


def test_so_many_files_are_read_and_no_more(tmp_path: Path) -> None:
    files = KeyFiles(tmp_path, (ADVANCED,), BITS)
    [key] = files.make(1)
    folder = tmp_path / KEY_FOLDER
    for number in range(2, KEY_FILES_MAX_COUNT + 11):
        path = folder / f"encryption-advanced-{number}.pem"
        path.write_bytes(key.key.to_pem())
        os.chmod(path, 0o600)
    assert len(files.load()) == KEY_FILES_MAX_COUNT


def test_files_of_others_take_no_place_of_a_key(tmp_path: Path) -> None:
    files = KeyFiles(tmp_path, (ADVANCED,), BITS)
    [key] = files.make(1)
    for number in range(KEY_FILES_MAX_COUNT + 1):
        (tmp_path / KEY_FOLDER / f"zzz-{number}.pem").write_text("not ours")
    assert [found.key.public for found in files.load()] == [key.key.public]


def test_a_key_that_is_too_short_by_now_is_followed_by_a_longer_one(tmp_path: Path) -> None:
    [short] = KeyFiles(tmp_path, (ADVANCED,), BITS).load_or_make(1000)
    longer = KeyFiles(tmp_path, (ADVANCED,), 2 * BITS)
    found = longer.load_or_make(500)
    assert [key.key.public.bit_length for key in found] == [BITS, 2 * BITS]
    assert found[1].created_time_s > short.created_time_s
    assert len(longer.load_or_make(2000)) == 2


def test_what_a_write_left_that_was_cut_off_is_removed(files: KeyFiles, tmp_path: Path) -> None:
    kept = files.make(1000)
    (tmp_path / KEY_FOLDER / "encryption-advanced-900.pem.new").write_bytes(b"half a k")
    files.remove_all_but(kept)
    assert {path.suffix for path in (tmp_path / KEY_FOLDER).iterdir()} == {".pem"}
