"""Key files: made, read, replaced, and for their owner alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openmsmq.runtime.operating_system.key_files import KEY_FILES_MAX_COUNT, KEY_FOLDER, KeyFiles
from openmsmq.runtime.start_errors import StartError
from openmsmq.security.own_key import KeptKey, OwnKey, OwnSigningKey
from openmsmq.security.providers import ADVANCED, BASE, ENHANCED
from openmsmq.security.signatures.certificates import public_key

BITS = 1024


@pytest.fixture
def files(tmp_path: Path) -> KeyFiles:
    return KeyFiles(tmp_path, (ADVANCED, ENHANCED), BITS, "ALPHA")


def encrypting(keys: list[KeptKey]) -> list[OwnKey]:
    return [key for key in keys if isinstance(key, OwnKey)]


def signing(keys: list[KeptKey]) -> list[OwnSigningKey]:
    return [key for key in keys if isinstance(key, OwnSigningKey)]


def test_what_is_missing_is_made_once(files: KeyFiles, tmp_path: Path) -> None:
    assert files.load() == []
    first = files.load_or_make(1000)
    made = encrypting(first)
    assert [(key.provider, key.created_time_s) for key in made] == [
        (ADVANCED, 1000),
        (ENHANCED, 1000),
    ]
    found = KeyFiles(tmp_path, (ADVANCED, ENHANCED, BASE), BITS, "ALPHA").load_or_make(2000)
    assert [key.certificate for key in signing(found)] == [signing(first)[0].certificate]
    again = encrypting(found)
    assert {(key.provider, key.created_time_s, key.key.public) for key in again[:2]} == {
        (key.provider, key.created_time_s, key.key.public) for key in made
    }
    assert again[2].provider is BASE
    assert again[2].key.public.bit_length == BASE.key_bits


def test_only_their_owner_can_read_them(files: KeyFiles, tmp_path: Path) -> None:
    files.make(1000)
    folder = tmp_path / KEY_FOLDER
    assert folder.stat().st_mode & 0o777 == 0o700
    first, *others = sorted(folder.iterdir())
    assert len(others) == 2
    assert {path.stat().st_mode & 0o777 for path in (first, *others)} == {0o600}
    first.chmod(0o640)
    with pytest.raises(StartError, match="can be read by others: allow it to its owner alone"):
        files.load()


def test_a_new_key_never_takes_the_place_of_another(files: KeyFiles) -> None:
    for now_s in (1000, 1000, 500):
        files.make(now_s)
    found = files.load()
    assert len(found) == 9
    for keys in (encrypting(found)[::2], signing(found)):
        assert [key.created_time_s for key in keys] == [1000, 1001, 1002]


def test_a_key_to_sign_with_has_a_certificate_in_its_file(files: KeyFiles, tmp_path: Path) -> None:
    [made] = signing(files.make(1000))
    assert public_key(made.certificate).public_numbers().n == made.key.public.modulus
    assert b"ALPHA" in made.certificate
    assert made.published().blob == made.certificate
    [found] = signing(files.load())
    assert (found.key.public, found.certificate, found.created_time_s) == (
        made.key.public,
        made.certificate,
        1000,
    )
    # It signs, and nothing is encrypted for it.
    assert made.key.public.modulus not in {
        key.key.public.modulus for key in encrypting(files.load())
    }
    (tmp_path / KEY_FOLDER / "signing-1000.pem").write_bytes(made.key.to_pem())
    with pytest.raises(StartError, match="has no certificate behind its key"):
        files.load()


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
        KeyFiles(tmp_path, (ADVANCED,), BITS, "ALPHA").make(1000)


def test_a_write_that_was_cut_off_is_made_anew(files: KeyFiles, tmp_path: Path) -> None:
    folder = tmp_path / KEY_FOLDER
    folder.mkdir()
    (folder / "encryption-advanced-1000.pem.new").write_bytes(b"half a k")
    assert files.load() == []
    assert len(files.make(1000)) == 3
    assert {path.suffix for path in folder.iterdir()} == {".pem"}


def test_so_many_files_are_read_and_no_more(tmp_path: Path) -> None:
    files = KeyFiles(tmp_path, (ADVANCED,), BITS, "ALPHA")
    [key] = encrypting(files.make(1))
    folder = tmp_path / KEY_FOLDER
    for number in range(2, KEY_FILES_MAX_COUNT + 11):
        path = folder / f"encryption-advanced-{number}.pem"
        path.write_bytes(key.key.to_pem())
        os.chmod(path, 0o600)
    assert len(files.load()) == KEY_FILES_MAX_COUNT


def test_files_of_others_take_no_place_of_a_key(tmp_path: Path) -> None:
    files = KeyFiles(tmp_path, (ADVANCED,), BITS, "ALPHA")
    [key] = encrypting(files.make(1))
    for number in range(KEY_FILES_MAX_COUNT + 1):
        (tmp_path / KEY_FOLDER / f"zzz-{number}.pem").write_text("not ours")
    assert [found.key.public for found in encrypting(files.load())] == [key.key.public]


def test_a_key_that_is_too_short_by_now_is_followed_by_a_longer_one(tmp_path: Path) -> None:
    short = KeyFiles(tmp_path, (ADVANCED,), BITS, "ALPHA").load_or_make(1000)
    longer = KeyFiles(tmp_path, (ADVANCED,), 2 * BITS, "ALPHA")
    found = longer.load_or_make(500)
    for old, keys in ((encrypting(short), encrypting(found)), (signing(short), signing(found))):
        assert [key.key.public.bit_length for key in keys] == [BITS, 2 * BITS]
        assert keys[1].created_time_s > old[0].created_time_s
    assert len(longer.load_or_make(2000)) == 4


def test_what_a_write_left_that_was_cut_off_is_removed(files: KeyFiles, tmp_path: Path) -> None:
    kept = files.make(1000)
    (tmp_path / KEY_FOLDER / "encryption-advanced-900.pem.new").write_bytes(b"half a k")
    files.remove_all_but(kept)
    assert {path.suffix for path in (tmp_path / KEY_FOLDER).iterdir()} == {".pem"}
