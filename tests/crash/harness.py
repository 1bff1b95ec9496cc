"""Starts a queue manager and workers, ends them in unfriendly ways, and checks what is left."""

from __future__ import annotations

import contextlib
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import openmsmq as mq
from openmsmq.model.errors import QueueExists, ReceiveTimeout
from tests.crash import worker
from tests.crash.checker import Checker
from tests.crash.worker import KEPT, PULLED, TRANSACTED, number_of

READY_WITHIN_S = 120.0
"""Nobody waits so long unless something is wrong: a busy computer is not."""
TRIES_MAX_COUNT = 10
"""How many times as often as asked for crashes come, on a computer too busy to do work between."""
ROOT = Path(__file__).parents[2]


class Server:
    """A queue manager in a process of its own."""

    def __init__(self, data: Path, address: str) -> None:
        self.data = data
        self.address = address
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "openmsmq.cli.app", "serve", "--name", "CRASH"),
                *("--data", str(data), "--address", address),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=environment(),
        )
        assert self.process.stdout is not None
        self.ready = _line_within(self.process.stdout, READY_WITHIN_S)
        if not self.ready.startswith(b"ready"):
            self.process.kill()
            _, errors = self.process.communicate()
            raise AssertionError(f"the queue manager did not start: {errors.decode()}")

    def kill(self) -> None:
        """End it at once."""
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def stop(self) -> int:
        """End it as an operator would; give its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Wait for it to end by itself."""
        try:
            self.process.communicate(timeout=READY_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        return self.process.returncode


@contextlib.contextmanager
def serving(data: Path, address: str) -> Iterator[Server]:
    """Run a queue manager for the time of a block."""
    server = Server(data, address)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.kill()


def create_queues(address: str) -> None:
    """Make the queues the workers use."""
    with mq.connect(address) as manager:
        for path, transactional in ((KEPT, False), (PULLED, False), (TRANSACTED, True)):
            with contextlib.suppress(QueueExists):
                manager.create_queue(path, transactional=transactional)


class Work:
    """A worker process, and what is heard of it."""

    def __init__(self, address: str, seed: int, checker: Checker) -> None:
        self.checker = checker
        self.process = subprocess.Popen(
            [
                *(sys.executable, worker.__file__, address),
                *(str(seed), str(checker.highest + 1)),
            ],
            stdout=subprocess.PIPE,
            # A buffer would keep lines from `communicate`, and what they tell with them.
            bufsize=0,
            env=environment(),
        )
        assert self.process.stdout is not None
        self.output: IO[bytes] = self.process.stdout
        started = _line_within(self.output, READY_WITHIN_S)
        assert started == b'["started"]\n', started

    def finish(self) -> None:
        """Hear the rest: its queue manager is gone."""
        try:
            rest, _ = self.process.communicate(timeout=READY_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        for line in rest[: rest.rfind(b"\n") + 1].splitlines():
            self.checker.line(line)
        self.checker.worker_gone()


def contents(address: str, path: str) -> list[int]:
    """Take everything out of a queue; give the numbers in their order."""
    found: list[int] = []
    with mq.connect(address) as manager:
        queue = manager.queue(path)
        with contextlib.suppress(ReceiveTimeout):
            while True:
                found += [number_of(m.body_bytes) for m in queue.receive_many(500, 0)]
    return found


def check_contents(data: Path, address: str, checker: Checker) -> None:
    """Start the queue manager once more and compare everything."""
    with serving(data, address):
        checker.check(
            contents(address, KEPT), contents(address, PULLED), contents(address, TRANSACTED)
        )


def work_until(seconds: float) -> None:
    """Let the workers work: the moment of the crash is what the test is about."""
    time.sleep(seconds)


def kill_often(data: Path, address: str, kills: int, seed: int) -> Checker:
    """Kill a queue manager under load, again and again, until much was acknowledged between."""
    rng = random.Random(seed)
    checker = Checker()
    with serving(data, address):
        create_queues(address)
    for number in range(TRIES_MAX_COUNT * kills):
        if number >= kills < min(len(checker.sent["kept"]), len(checker.committed)):
            break
        server = Server(data, address)
        work = Work(address, rng.getrandbits(32), checker)
        work_until(rng.uniform(0.02, 0.4))
        server.kill()
        work.finish()
    check_contents(data, address, checker)
    return checker


def environment() -> dict[str, str]:
    """Return where processes find this tree."""
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}


def _line_within(output: IO[bytes], seconds: float) -> bytes:
    """Read one line, or nothing if none came in time."""
    readable, _, _ = select.select([output], [], [], seconds)
    return output.readline() if readable else b""
