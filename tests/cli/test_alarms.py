"""Alarms as an operator meets them: in the status, metrics, a queue and a webhook."""

from __future__ import annotations

import json
import queue as python_queue
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import openmsmq as mq
from tests.cli.conftest import CommandLine, ServerProcess
from tests.runtime.computers import wait_for
from tests.unit.client.test_metrics import parsed

HEARD: python_queue.Queue[dict[str, Any]] = python_queue.Queue()
ORDERS, ALARMS = r"private$\orders", r"private$\alarms"
FILE = r"""
[alarms]
look_s = 1
queue = 'private$\alarms'

[alarms.backlog]
messages = 2
queues = "*orders*"
webhook = "http://127.0.0.1:{port}/SECRET"

[alarms.full]
quota_percent = 90
"""


class Hook(BaseHTTPRequestHandler):
    """Keeps what it is told."""

    def do_POST(self) -> None:
        HEARD.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def hook() -> Iterator[int]:
    server = HTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, hook: int) -> Path:
    found = tmp_path_factory.mktemp("configuration") / "openmsmq.toml"
    found.write_text(FILE.replace("{port}", str(hook)), encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory, file: Path) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path_factory.mktemp("watched"), f"--config={file}")
    yield process
    process.stop()


@pytest.fixture
def operator(
    watched: ServerProcess, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CommandLine:
    return CommandLine(monkeypatch, capsys, watched.address)


def test_an_alarm_is_shown_and_told_when_it_is_raised_and_when_it_is_cleared(
    operator: CommandLine, watched: ServerProcess
) -> None:
    assert "none of 2 is raised" in operator("status").out
    with mq.connect(watched.address) as manager:
        alarms = manager.create_queue(ALARMS, transactional=True)
        orders = manager.create_queue(ORDERS)
        orders.send("one")
        orders.send("two")
        raised = HEARD.get(timeout=30)
        assert (raised["alarm"], raised["state"], raised["queue"]) == ("backlog", "raised", ORDERS)
        assert (raised["value"], raised["threshold"], raised["manager"]) == (2, 2, "ALPHA")
        message = alarms.receive(timeout=30)
        assert message.label == "alarm backlog raised"
        assert json.loads(message.text) == raised
        lines = operator("status").out
        assert f"alarm backlog      there are 2 messages in {ORDERS}, since " in lines
        backlog, full = operator("status", "--json").object["alarms"]
        assert (backlog["name"], backlog["raised_count"]) == ("backlog", 1)
        assert backlog["raised"][0]["queue"] == ORDERS
        assert (full["raised_count"], full["raised"]) == (0, [])
        samples = parsed(operator("metrics").out)[1]
        found = {
            sample.labels[0][1]: sample.value
            for sample in samples
            if sample.name == "openmsmq_alarms_raised"
        }
        assert found == {"backlog": 1, "full": 0}
        orders.purge()
        cleared = HEARD.get(timeout=30)
        assert (cleared["state"], cleared["value"]) == ("cleared", 0)
        assert alarms.receive(timeout=30).label == "alarm backlog cleared"
        assert HEARD.empty()


def test_a_reload_changes_alarms_while_they_are_watched(operator: CommandLine, file: Path) -> None:
    file.write_text("[alarms]\nlook_s = 1\n[alarms.disk]\ndisk_percent = 1\n", encoding="utf-8")
    assert "alarms.disk.disk_percent" in operator("config", "reload").out

    def shown() -> dict[str, Any]:
        (found,) = operator("status", "--json").object["alarms"]
        return dict(found)

    wait_for(lambda: shown()["raised_count"])
    disk = shown()
    assert disk["raised"][0]["queue"] is None
    assert "of the disk of the store are used" in disk["raised"][0]["text"]
    file.write_text("", encoding="utf-8")
    operator("config", "reload")
    assert operator("status", "--json").object["alarms"] == []
