"""Files of messages and turns: for their owner alone, and where they were meant to be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from openmsmq.runtime.logs import Event, EventLog
from openmsmq.runtime.owner_file import OwnerFile
from openmsmq.runtime.start_errors import StartError


def begin(path: Path) -> OwnerFile:
    return OwnerFile(str(path), "the capture", 100, "full", EventLog(), Event.CAPTURE_ENDED)


def test_a_link_that_somebody_put_there_is_not_followed(tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.write_text("precious", encoding="utf-8")
    link.symlink_to(victim)
    with pytest.raises(StartError, match=f"the capture {link} .it is a symbolic link.: give ano"):
        begin(link)
    assert victim.read_text(encoding="utf-8") == "precious"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file of somebody else")
def test_a_file_of_somebody_else_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("theirs", encoding="utf-8")
    os.chown(path, 65_534, 65_534)
    with pytest.raises(StartError, match="it belongs to somebody else"):
        begin(path)
    assert path.read_text(encoding="utf-8") == "theirs"


@pytest.mark.timeout(20)
@pytest.mark.parametrize("is_read", [True, False])
def test_a_pipe_that_somebody_put_there_is_not_waited_for(tmp_path: Path, is_read: bool) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK) if is_read else None
    with pytest.raises(StartError, match="it is no regular file"):
        begin(path)
    if reader is not None:
        os.close(reader)


def test_what_was_in_it_is_gone_and_nobody_else_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("from another day", encoding="utf-8")
    path.chmod(0o644)
    file = begin(path)
    file.write(b"new")
    file.close()
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
