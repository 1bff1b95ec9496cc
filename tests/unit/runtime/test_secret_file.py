from __future__ import annotations

import stat
from pathlib import Path

import msgspec
import pytest

from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.secret_file import changing_alone, read_secret_file, write_secret_file


class Content(msgspec.Struct):
    secret: str


def test_what_is_written_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    write_secret_file(path, Content("x"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert msgspec.json.decode(read_secret_file(path, "secrets", 100) or b"") == {"secret": "x"}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o601])
def test_what_others_may_use_is_not_believed(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "secrets.json"
    write_secret_file(path, Content("x"))
    path.chmod(mode)
    with pytest.raises(ConfigError, match="its secrets are not believed: chmod 600"):
        read_secret_file(path, "secrets", 100)


def test_a_file_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    write_secret_file(path, Content("x" * 100))
    with pytest.raises(ConfigError, match="longer than 100 bytes"):
        read_secret_file(path, "secrets", 100)


def test_one_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert read_secret_file(tmp_path / "none", "secrets", 100) is None


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "nowhere/secrets.json"
    with pytest.raises(ConfigError, match="nowhere"), changing_alone(path):
        pass
    with pytest.raises(ConfigError, match="cannot write"):
        write_secret_file(path, Content("x"))
