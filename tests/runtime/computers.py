"""Computers with a queue manager each, as processes that talk to each other over loopback."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

import openmsmq
from openmsmq.cli.app import main
from openmsmq.client.blocking import QueueManager
from openmsmq.model.errors import QueueNotActive
from tests.runtime.scripted_engine import free_port

WITHIN_S = 90.0
SOURCE = Path(__file__).parents[2] / "src"
PROGRAM = [sys.executable, "-m", "openmsmq.cli.app"]
HASTY = "TryConnectInterval = 100\nSeqResend13Time = 1\nSeqResend46Time = 1\nSeqMaxAckDelay = 1\n"
"""Waits so short that a test need not wait."""


class Computer:
    """A queue manager in a process that can be killed and started again, as the same one."""

    def __init__(
        self,
        folder: Path,
        name: str,
        address: str,
        session_port: int,
        *,
        ping_port: int | None = None,
        parameters: str = HASTY,
        tables: str = "",
        options: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.address = address
        self.session_port = session_port
        self.ping_port = ping_port or session_port
        self.api_port = free_port(address)
        self.data = folder / name
        self.options = options
        self.prefix: tuple[str, ...] = ()
        """What to put before the command, such as a place to run it in."""
        self._parameters = parameters
        self._file = folder / f"{name}.toml"
        self._log = folder / f"{name}.log"
        self.process: subprocess.Popen[str] | None = None
        self.facts: dict[str, str] = {}
        self.configure(tables)

    def configure(self, tables: str) -> None:
        """Write its configuration; it holds from the next start on."""
        self._file.write_text(
            f"[parameters]\nMsmqIpPort = {self.session_port}\n"
            f"MsmqIpPingPort = {self.ping_port}\n{self._parameters}\n{tables}",
            encoding="utf-8",
        )

    def launch(self) -> None:
        """Start the process; `ready` waits for it."""
        command = [*self.prefix, *PROGRAM, "serve", "--name", self.name, "--data", str(self.data)]
        command += ["--address", self.address, "--api-port", str(self.api_port)]
        command += ["--config", str(self._file), "--api-socket", "none", *self.options]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment()
            )

    def ready(self) -> None:
        """Wait until it takes calls."""
        assert self.process is not None
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("ready "), self._log.read_text(encoding="utf-8")
        self.facts = dict(fact.split("=", 1) for fact in line.split()[1:])

    def start(self) -> None:
        """Start it and wait until it takes calls."""
        self.launch()
        self.ready()

    def end(self, number: int = signal.SIGTERM) -> int:
        """End the process by a signal; give its exit status."""
        assert self.process is not None
        self.process.send_signal(number)
        try:
            self.process.communicate(timeout=WITHIN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        return self.process.returncode

    def kill(self) -> None:
        """End it at once, as a crash does; it must not have ended by itself."""
        assert self.is_running, self.problems()
        self.end(signal.SIGKILL)

    def log_lines(self) -> list[str]:
        """What it has logged, in all its lives."""
        return self._log.read_text(encoding="utf-8").splitlines()

    def problems(self) -> list[str]:
        """What it has logged as errors, in all its lives."""
        return [line for line in self.log_lines() if " error " in line]

    @property
    def log(self) -> str:
        """All that it has logged, in all its lives."""
        return self._log.read_text(encoding="utf-8")

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def qm(self) -> str:
        """Where applications find it."""
        return f"{self.address}:{self.api_port}"

    @property
    def identifier(self) -> str:
        """The identifier of its queue manager."""
        return self.facts["id"].strip("{}")

    def connect(self) -> QueueManager:
        return openmsmq.connect(self.qm, reconnect_within_s=WITHIN_S)

    def queue(self, path: str) -> str:
        """How other computers name one of its queues."""
        return rf"DIRECT=TCP:{self.address}\{path}"

    def command(self, *arguments: str, code: int = 0) -> str:
        """Run a command by the entry point of the program; give what it printed."""
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
        line = ["openmsmq", "--qm", self.qm, *arguments]
        with pytest.MonkeyPatch.context() as changed, redirect_stdout(out), redirect_stderr(err):
            changed.setattr(sys, "argv", line)
            with pytest.raises(SystemExit) as stopped:
                main()
        assert stopped.value.code == code, f"{line}: {stopped.value.code}: {_text(err)}"
        return _text(out)

    def objects(self, *arguments: str) -> list[dict[str, Any]]:
        """Run a command with --json; give what it printed."""
        return [json.loads(line) for line in self.command(*arguments, "--json").splitlines()]


def _text(output: io.TextIOWrapper) -> str:
    output.seek(0)
    return output.read()


def environment() -> dict[str, str]:
    """What a process gets of ours: nothing that would configure a server."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("OPENMSMQ_")}
    return clean | {"PYTHONPATH": str(SOURCE)}


def neighbours(folder: Path, *names: str, **settings: Any) -> list[Computer]:
    """Make computers on 127.0.0.2 and following; their port is free on other addresses, too."""
    addresses = [f"127.0.0.{number}" for number in range(2, 2 + len(names))]
    port = free_port(*addresses, "127.0.0.8", "127.0.0.9")
    return [
        Computer(folder, name, address, port, **settings)
        for name, address in zip(names, addresses, strict=True)
    ]


@contextmanager
def running(*computers: Computer) -> Iterator[None]:
    """Run computers for the time of a block; those that are still there then are ended."""
    try:
        for computer in computers:
            computer.launch()
        for computer in computers:
            computer.ready()
        yield
        for computer in computers:
            assert not computer.problems()
    finally:
        for computer in computers:
            if computer.is_running:
                computer.end(signal.SIGKILL)
            elif computer.process is not None and computer.process.stdout is not None:
                computer.process.stdout.close()


def wait_for(
    condition: Callable[[], object],
    within_s: float = WITHIN_S,
    otherwise: Callable[[], object] = lambda: "the condition never held",
) -> None:
    """Look again and again whether a condition holds; fail with an explanation if it never does."""
    deadline_s = time.perf_counter() + within_s
    while not condition():
        assert time.perf_counter() < deadline_s, otherwise()
        time.sleep(0.02)


def waiting_count(manager: QueueManager, name: str) -> int:
    """How many messages wait to go to a queue, or for its acknowledgment."""
    try:
        return manager.outgoing_queue(name).message_count
    except QueueNotActive:
        return 0


def explanations(*managers: QueueManager) -> list[str]:
    """What the outgoing queues say they wait for, for the message of a test that failed."""
    return [
        f"{manager.name}: {found.format_name}: {found.message_count} messages, {found.state}: "
        f"{found.explanation}"
        for manager in managers
        for found in manager.outgoing()
    ]
