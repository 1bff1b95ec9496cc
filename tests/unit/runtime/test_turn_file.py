"""The file of turns: one line each, for its owner alone, and no longer than it may be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from openmsmq.manager.turn.effects import Effect
from openmsmq.manager.turn.trace import TurnTrace
from openmsmq.model.clock import Instant
from openmsmq.runtime.limits import TURN_FILE_MAX_BYTES
from openmsmq.runtime.logs import EventLog
from openmsmq.runtime.start_errors import StartError
from openmsmq.runtime.turn_file import TurnFile
from openmsmq.storage.port import Batch


def turn(trace: TurnTrace) -> None:
    """Let a turn end."""
    trace.came("wake", Instant(1, 2))
    trace.settled(None, [Effect()], Batch([(b"key", b"value")]))


def test_each_turn_is_a_line_when_it_has_ended(tmp_path: Path) -> None:
    path, trace = tmp_path / "turns", TurnTrace()
    file = TurnFile(str(path), trace, EventLog())
    file.write()
    assert trace.is_on
    turn(trace)
    turn(trace)
    file.write()
    first, second = path.read_text(encoding="utf-8").splitlines()
    assert first == second
    assert json.loads(first) == {
        "ticket": None,
        "outcome": "settled",
        "inputs": [{"input": "wake", "unix_s": 2, "ticks_ms": 1}],
        "effects": [{"effect": "Effect"}],
        "records": 1,
        "stored_bytes": 8,
    }
    assert path.stat().st_mode & 0o777 == 0o600
    turn(trace)
    file.close()
    assert len(path.read_text(encoding="utf-8").splitlines()) == 3


def test_a_file_that_others_could_read_is_its_owners_alone_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "turns"
    path.write_text("from another day", encoding="utf-8")
    path.chmod(0o644)
    TurnFile(str(path), TurnTrace(), EventLog()).close()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_bytes() == b""


def test_a_full_disk_ends_it_and_nothing_else() -> None:
    trace, log = TurnTrace(), list[str]()
    file = TurnFile("/dev/full", trace, EventLog("json", write=log.append))
    turn(trace)
    file.write()
    (line,) = log
    assert json.loads(line)["event"] == "turn-file-ended"
    assert not trace.is_on
    turn(trace)
    file.write()
    file.close()


def test_it_ends_before_it_is_longer_than_it_may_be(tmp_path: Path) -> None:
    path, trace, log = tmp_path / "turns", TurnTrace(), list[str]()
    file = TurnFile(str(path), trace, EventLog("json", write=log.append), max_bytes=400)
    for _ in range(10):
        turn(trace)
        file.write()
    assert 0 < path.stat().st_size <= 400
    assert path.read_bytes().endswith(b"}\n")
    assert not trace.is_on, "nothing is described that nobody writes"
    (line,) = log
    assert json.loads(line)["event"] == "turn-file-ended"
    assert "400 bytes" in json.loads(line)["reason"]
    file.close()


def test_the_bound_is_named_and_leaves_room_for_a_day_of_work() -> None:
    assert TURN_FILE_MAX_BYTES == 256 * 1024 * 1024


def test_a_file_that_cannot_be_written_is_said_before_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="give another file"):
        TurnFile(str(tmp_path / "missing" / "turns"), TurnTrace(), EventLog())
