"""`openmsmq serve --trace-turns`, as a process."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from openmsmq.api import messages as api
from openmsmq.model.queue import AccessMode
from tests.runtime.raw_client import packet
from tests.runtime.test_server_process import refused, serving

BODY = b"a body that nobody else may read"


def test_each_turn_of_a_process_is_a_line_that_can_be_read_while_it_runs(tmp_path: Path) -> None:
    file = tmp_path / "turns.jsonl"
    with serving(tmp_path / "data", "--trace-turns", str(file)) as server:
        with server.connect() as client:
            client.call(api.CreateQueue(r"private$\orders"))
            name = r"DIRECT=OS:ALPHA\private$\orders"
            opened = client.call(api.OpenQueue(name, AccessMode.SEND))
            client.call(api.Send(opened.handle, [packet(r"OS:ALPHA\private$\orders", BODY)]))
            during = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        status, _ = server.end(signal.SIGTERM)
    assert status == 0
    turns = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert turns[: len(during)] == during
    assert turns[0]["ticket"] == 1, "the first turn makes the queue manager"
    created, sent = (
        next(turn for turn in turns if turn["inputs"] and turn["inputs"][-1].get("about") == about)
        for about in ("CreateQueue", "Send")
    )
    kinds = [effect["effect"] for effect in created["effects"]]
    assert kinds.count("QueueCreated") == 2, "a queue and its journal"
    assert kinds[-1] == "Replied"
    assert sent["ticket"] > created["ticket"]
    assert sent["stored_bytes"] > len(BODY)
    assert {turn["outcome"] for turn in turns} == {"settled"}
    assert BODY.decode() not in file.read_text(encoding="utf-8")
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_file_that_cannot_be_written_keeps_the_server_from_starting(tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "turns"
    line = refused("--data", str(tmp_path / "data"), "--trace-turns", str(missing))
    assert str(missing) in line
    assert "give another file" in line
