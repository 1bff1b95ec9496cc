"""What a queue manager needs is in its back-up; logs, sockets and what is large are not."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from openmsmq.runtime.backups import contents
from openmsmq.runtime.backups.contents import own_parts, store_parts
from openmsmq.storage.backups.manifest import BackupError
from openmsmq.storage.backups.snapshot import Part


def test_what_it_needs_is_named_and_nothing_else(tmp_path: Path) -> None:
    wanted = {
        "identity.json",
        "tokens.json",
        "session.pem",
        "session.key",
        "openmsmq.toml",
        "keys/encryption-base-1.pem",
        "peers/other.pem",
    }
    others = {
        "audit.log",
        "audit.log.1",
        "crash.log.old",
        "tokens.json.new",
        ".restoring/identity.json",
        ".hidden",
        "before-restore-20260101T000000Z/identity.json",
        "store/format.json",
        "manifest.json",
    }
    for name in wanted | others:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "traffic.pcapng").write_bytes(bytes(contents.FILE_MAX_BYTES + 1))
    (tmp_path / "link.pem").symlink_to("/etc/passwd")
    (tmp_path / "folder").symlink_to("/etc")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "api.sock"))
    parts = own_parts(tmp_path)
    assert {part.name for part in parts} == wanted
    assert all(part.source == tmp_path / part.name for part in parts)


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "FILES_MAX_COUNT", 3)
    for number in range(4):
        (tmp_path / f"{number}.pem").write_text("")
    with pytest.raises(BackupError, match="more than 3 files"):
        own_parts(tmp_path)


def test_a_store_stands_where_it_does_in_a_data_directory() -> None:
    part = Part("records.mdb", Path("/x/records.mdb"), 1)
    assert [each.name for each in store_parts([part])] == ["store/records.mdb"]
