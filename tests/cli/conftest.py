"""A real queue manager for the commands, and the commands as a person runs them."""

from __future__ import annotations

import io
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from openmsmq.cli.app import main

SOURCE = Path(__file__).parents[2] / "src"
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
ADDRESSES = (f"127.0.{64 + WORKER}.{number}" for number in itertools.count(1))
NUMBERS = itertools.count(1)


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        """What a command with --json printed."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def object(self) -> dict[str, Any]:
        (found,) = self.objects
        return found


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SOURCE)}


def command_line(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "openmsmq.cli.app", *arguments]


class ServerProcess:
    """`openmsmq serve` on an address of its own, on the port that clients expect."""

    def __init__(self, data: Path, *options: str) -> None:
        self.data = data
        self.address = next(ADDRESSES)
        self.options = options
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            command_line(
                "serve",
                "--name=ALPHA",
                f"--data={self.data}",
                f"--address={self.address}",
                "--log-level=error",
                *self.options,
            ),
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        ready = self.process.stdout.readline()
        assert ready.startswith("ready"), ready

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(timeout=30) == 0
        assert self.process.stdout is not None
        self.process.stdout.close()


# One for each file: what the tests of another file leave in the queues of the system is not met.
@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path_factory.mktemp("alpha"))
    yield process
    process.stop()


class CommandLine:
    """Runs commands in this process, by the entry point of the program."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], qm: str
    ) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        monkeypatch.setenv("OPENMSMQ_QM", qm)

    def __call__(self, *arguments: str, code: int = 0, stdin: bytes = b"") -> Result:
        self._monkeypatch.setattr(sys, "argv", ["openmsmq", *arguments])
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main()
        out, err = self._capsys.readouterr()
        assert stopped.value.code == code, err
        assert "Traceback" not in err
        return Result(code, out, err)

    def refused(self, *arguments: str, code: int = 1) -> str:
        """Run a command that fails; give the one sentence that it says."""
        result = self(*arguments, code=code)
        assert result.out == ""
        assert result.err.startswith("openmsmq: ")
        assert result.err.count("\n") == 1
        return result.err.removeprefix("openmsmq: ").rstrip("\n")


@pytest.fixture
def openmsmq(
    server: ServerProcess, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CommandLine:
    return CommandLine(monkeypatch, capsys, server.address)


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """Commands that need no queue manager."""
    return CommandLine(monkeypatch, capsys, "127.0.0.1")


@pytest.fixture
def queue(openmsmq: CommandLine) -> str:
    name = f"private$\\q{next(NUMBERS)}"
    openmsmq("queue", "create", name)
    return name


@pytest.fixture
def ledger(openmsmq: CommandLine) -> str:
    """A transactional queue."""
    name = f"private$\\t{next(NUMBERS)}"
    openmsmq("queue", "create", name, "--transactional")
    return name
