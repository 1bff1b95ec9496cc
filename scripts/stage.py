"""What the shows share: queue managers as processes, and commands run as a person would."""

from __future__ import annotations

import contextlib
import io
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from openmsmq.cli.app import main as command_line

API_PORT, SESSION_PORT = 1802, 1801
PATIENCE_S = 20.0


def heading(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m\n" if sys.stdout.isatty() else f"\n== {text}\n", flush=True)


def run(*arguments: str, lines: int | None = None, expected: int = 0) -> str:
    """Run a command as a person would, and show what it was and what it printed."""
    shown = " ".join(_quoted(part) for part in arguments)
    print(f"$ openmsmq {shown}", flush=True)
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    sys.argv = ["openmsmq", *arguments]
    code: object = 0
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            command_line()
        except SystemExit as stopped:
            code = stopped.code
    output.flush()
    text = output.buffer.getvalue().decode().rstrip()
    parts = text.splitlines()
    print("\n".join(parts[:lines]), flush=True)
    if lines is not None and len(parts) > lines:
        print(f"  ... and {len(parts) - lines} lines more", flush=True)
    if code != expected:
        sys.exit(f"stopped: the command ended with exit code {code}, not {expected}")
    return text


def _quoted(part: str) -> str:
    part = part if len(part) < 60 else f"{part[:56]}..."
    return f"'{part}'" if set(part) & set(" $;\\") else part


def note(text: str) -> None:
    print(f"# {text}", flush=True)


# Queue managers.


def port_on_all(addresses: Sequence[str], wanted: int) -> int:
    """Return a TCP port that nobody uses on some addresses: the usual one, if that is so."""
    while True:
        with contextlib.ExitStack() as held:
            try:
                for address in addresses:
                    probe = held.enter_context(socket.socket())
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind((address, wanted))
                    wanted = probe.getsockname()[1]
            except OSError:
                wanted = 0
            else:
                return wanted


class Ports:
    """Where the queue managers of a show listen; others may use the usual ports already."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self.api = port_on_all(addresses, API_PORT)
        self.sessions = port_on_all(addresses, SESSION_PORT)

    def qm(self, address: str) -> str:
        """How applications name a queue manager."""
        return address if self.api == API_PORT else f"{address}:{self.api}"


class Server:
    """`openmsmq serve`, which a show may kill."""

    def __init__(self, name: str, address: str, folder: Path, *options: str) -> None:
        self._name = name
        self._arguments = ("--name", name, "--data", name.lower(), "--address", address, *options)
        self._folder = folder
        self.process: subprocess.Popen[str] | None = None

    def start(self, *, quietly: bool = False) -> None:
        if not quietly:
            print(f"$ openmsmq serve {' '.join(self._arguments)} &", flush=True)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "openmsmq.cli.app", "serve", *self._arguments],
            stdout=subprocess.PIPE,
            text=True,
            cwd=self._folder,
            env=os.environ | {"OPENMSMQ_LOG_LEVEL": "error"},
        )
        assert self.process.stdout is not None
        ready = self.process.stdout.readline()
        if not ready:
            sys.exit(f"stopped: the queue manager {self._name} could not be started")
        if not quietly:
            print(" ".join(ready.split()[:2]), flush=True)

    def kill(self) -> None:
        assert self.process is not None
        print(f"$ kill -9 {self.process.pid}", flush=True)
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait()


@contextlib.contextmanager
def serving(name: str, address: str, folder: Path, *options: str) -> Iterator[Server]:
    server = Server(name, address, folder, *options)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def wait_until(holds: Callable[[], object], what: str, patience_s: float = PATIENCE_S) -> None:
    """Look again and again; the show ends if it never comes true."""
    deadline_s = time.perf_counter() + patience_s
    while not holds():
        if time.perf_counter() > deadline_s:
            sys.exit(f"stopped: waited {patience_s:.0f} seconds in vain until {what}")
        time.sleep(0.05)
