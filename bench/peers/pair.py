"""Workers in processes of their own: they warm up, wait for each other, and are timed."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

BODY_BYTES: Final = 1024
BODY: Final = bytes(range(256)) * (BODY_BYTES // 256)

_START_S: Final = 60.0
FINISH_S: Final = 300.0


class Job(msgspec.Struct, frozen=True):
    """What a producer and a consumer are to do."""

    queue: str
    count: int
    durable: bool = True
    one_by_one: bool = False
    """One message per call, each waited for; otherwise as many at once as the client is good at."""
    per_second: int = 0
    """Send at this pace and note how long each send took; 0 is as fast as it goes."""
    warm_up: int = 0
    per_transaction: int = 0
    """Send in transactions of so many messages, and receive in such; 0 is without any."""


class Outcome(msgspec.Struct, frozen=True):
    """What came of it."""

    elapsed_s: float
    """From the first send to the last receive, or to the last confirmation if that is later."""
    count: int
    waits_s: list[float] = []
    """How long each send took, when the pace was given."""

    @property
    def rate(self) -> float:
        """Messages in a second."""
        return self.count / self.elapsed_s


class Gate:
    """Where a worker waits for the others, once it is warm."""

    def __init__(self, line: Connection) -> None:
        self._line = line

    def wait(self) -> None:
        """Say that this worker is ready, and wait until all are."""
        self._line.send("ready")
        self._line.recv()


Work: TypeAlias = Callable[[str, Job, Gate], list[float]]
"""What a worker does: with the address of a server, a job and the gate; gives the waits, if any."""


class WorkerFailed(Exception):
    """A worker ended with an error, or not in time."""


class WorkerLate(WorkerFailed):
    """A worker was not done in time."""


class Told(NamedTuple):
    """What a worker tells at its end."""

    start_s: float
    end_s: float
    waits_s: list[float]


def run_pair(
    address: str, job: Job, produce: Work, consume: Work, finish_s: float = FINISH_S
) -> Outcome:
    """Run a job with both workers; raise `WorkerLate` if it takes longer."""
    taken, sent = run_together(address, job, [consume, produce], finish_s)
    return Outcome(max(taken.end_s, sent.end_s) - sent.start_s, job.count, sent.waits_s)


def run_together(
    address: str, job: Job, works: Sequence[Work], finish_s: float = FINISH_S
) -> list[Told]:
    """Run a job with a process for each worker; they begin when all are warm."""
    context = multiprocessing.get_context("spawn")
    lines: list[Connection] = []
    workers = []
    for work in works:
        mine, theirs = context.Pipe()
        worker = context.Process(target=_work, args=(theirs, work, address, job))
        worker.start()
        theirs.close()
        lines.append(mine)
        workers.append(worker)
    try:
        for line in lines:
            _hear(line, _START_S)
        for line in lines:
            line.send("go")
        return [_hear(line, finish_s) for line in lines]
    finally:
        for worker in workers:
            worker.join(1.0)
            if worker.is_alive():
                worker.kill()
                worker.join()


def send_at_pace(per_second: int, count: int, send: Callable[[], Any]) -> list[float]:
    """Send at a pace, each waited for; give how long each took."""
    waits_s = []
    begin = time.perf_counter()
    for number in range(count):
        time.sleep(max(0.0, begin + number / per_second - time.perf_counter()))
        start = time.perf_counter()
        send()
        waits_s.append(time.perf_counter() - start)
    return waits_s


def _hear(line: Connection, patience_s: float) -> Any:
    if not line.poll(patience_s):
        raise WorkerLate(f"a worker said nothing for {patience_s:g} s")
    try:
        heard = line.recv()
    except EOFError:
        raise WorkerFailed("a worker ended without a word") from None
    if isinstance(heard, Exception):
        raise WorkerFailed(f"a worker failed: {heard!r}") from heard
    return heard


class _TimedGate(Gate):
    start_s = 0.0

    def wait(self) -> None:
        super().wait()
        # The clock of the system, which all processes share, and not one of each process.
        self.start_s = time.clock_gettime(time.CLOCK_MONOTONIC)


def _work(line: Connection, work: Work, address: str, job: Job) -> None:
    try:
        gate = _TimedGate(line)
        waits_s = work(address, job, gate)
        line.send(Told(gate.start_s, time.clock_gettime(time.CLOCK_MONOTONIC), waits_s))
    except BaseException as error:
        line.send(error if isinstance(error, Exception) else WorkerFailed(repr(error)))
