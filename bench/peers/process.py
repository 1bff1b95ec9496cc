"""Servers as child processes: free ports, start, wait until they answer, stop by their own id."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

HOST: Final = "127.0.0.1"
DIRECTORY_VARIABLE: Final = "OPENMSMQ_BENCH_DIRECTORY"
_STOP_S: Final = 20.0
_TICKS_PER_S: Final = 100


class ServerFailed(Exception):
    """A server did not start."""


def free_port() -> int:
    """Return a port that nobody has now.

    It is not one of those that the system gives away, so it stays free until it is used.
    """
    draw = random.Random()
    while True:
        port = draw.randrange(10_000, 30_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((HOST, port))
            return port


@contextlib.contextmanager
def child(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command while the `with` block lasts."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until(
    ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path, patience_s: float
) -> None:
    """Wait until a server is ready; if it ends or takes too long, say what it printed last."""
    deadline = time.perf_counter() + patience_s
    while not ready():
        if process.poll() is not None or time.perf_counter() > deadline:
            last = log.read_text(errors="replace")[-2000:]
            raise ServerFailed(f"{process.args!r} did not start:\n{last}")
        time.sleep(0.02)


def answers(port: int) -> bool:
    """Whether something listens on a port of this computer."""
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), 1.0):
        return True
    return False


@contextlib.contextmanager
def disk_directory() -> Iterator[Path]:
    """Yield a directory on a disk for a while; in memory, a sync would cost nothing."""
    parent = Path(os.environ.get(DIRECTORY_VARIABLE, "/var/tmp"))
    kind = _file_system(parent)
    if kind in ("tmpfs", "ramfs"):
        raise ServerFailed(
            f"{parent} is in memory ({kind}): set {DIRECTORY_VARIABLE} to one on a disk"
        )
    with tempfile.TemporaryDirectory(prefix="openmsmq-bench-", dir=parent) as name:
        yield Path(name)


def _file_system(path: Path) -> str:
    found, kind = "", "unknown"
    for line in Path("/proc/mounts").read_text().splitlines():
        _, place, kind_there, *_ = line.split()
        if path.resolve().is_relative_to(place) and len(place) >= len(found):
            found, kind = place, kind_there
    return kind


def processor_s(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def private_mb(pid: int) -> float:
    """Return the memory that a process shares with nobody."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024
