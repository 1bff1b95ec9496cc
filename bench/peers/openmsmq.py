"""OpenMSMQ: `openmsmq serve` in a process of its own, driven by its own client.

They meet at its Unix socket, where applications of the same computer come in; so does Redis, which
has one too. RabbitMQ has none.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import Coroutine, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import openmsmq
import openmsmq.aio
from bench.peers.pair import BODY, BODY_BYTES, Gate, Job, send_at_pace
from bench.peers.process import DIRECTORY_VARIABLE, child, wait_until
from openmsmq.client.aio import Queue as AsyncQueue
from openmsmq.runtime.operating.event_loop import loop_factory

NAME: Final = "OpenMSMQ"
BATCH_COUNT: Final = 256
READS_UNDER_WAY: Final = 3
SINGLE_READS_COUNT: Final = 32
"""Reads of one message each that are asked for together, as a peer's prefetch does."""

_START_S: Final = 30.0
_READY: Final = re.compile(rb"^ready ", re.MULTILINE)


def missing() -> str | None:
    """It is always there."""
    return None


@contextlib.contextmanager
def start(directory: Path) -> Iterator[str]:
    """Run a queue manager; gives its address."""
    with serve(directory) as (address, _):
        yield address


@contextlib.contextmanager
def serve(directory: Path) -> Iterator[tuple[str, int]]:
    """Run a queue manager with its data below a directory; gives its address and process id."""
    with launch(directory / "openmsmq", "BENCH", ["--no-transfer"]) as started:
        yield started


@contextlib.contextmanager
def launch(
    home: Path, name: str, options: list[str], sources: str = ""
) -> Iterator[tuple[str, int]]:
    """Run `openmsmq serve`; gives its address and process id once it is ready.

    `sources` is the directory of those of another tree.
    """
    home.mkdir(exist_ok=True)
    log = home / "serve.log"
    log.unlink(missing_ok=True)
    command = [sys.executable, "-m", "openmsmq.cli.app", "serve", f"--name={name}", *options]
    door = home / "api.sock"
    command += ["--data", str(home / "data"), "--api-port", "0", "--api-socket", str(door)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [sources, *sys.path]))}
    # It is for the bench; a server refuses variables that it does not know.
    environment.pop(DIRECTORY_VARIABLE, None)
    with child(command, log, environment) as process:
        wait_until(lambda: _READY.search(log.read_bytes()) is not None, process, log, _START_S)
        yield f"unix:{door}", process.pid


def prepare(address: str, job: Job) -> None:
    """Make the queue of a job."""
    with openmsmq.connect(address) as manager:
        manager.create_queue(f"private$\\{job.queue}")


def produce(address: str, job: Job, gate: Gate) -> list[float]:
    """Send the messages of a job."""
    with openmsmq.connect(address) as manager:
        queue = manager.queue(f"private$\\{job.queue}")

        def send() -> None:
            queue.send(BODY, recoverable=job.durable)

        def send_all(count: int) -> None:
            if job.one_by_one:
                for _ in range(count):
                    send()
            else:
                queue.send_many((BODY for _ in range(count)), recoverable=job.durable)

        send_all(job.warm_up)
        gate.wait()
        if job.per_second:
            return send_at_pace(job.per_second, job.count, send)
        send_all(job.count)
    return []


def consume(address: str, job: Job, gate: Gate) -> list[float]:
    """Receive the messages of a job; some reads always wait, as peers push without being asked."""
    run_loop(_consume(address, job, gate))
    return []


def run_loop(work: Coroutine[Any, Any, None]) -> None:
    """Run an application in the fastest event loop there is, as `openmsmq serve` does."""
    with asyncio.Runner(loop_factory=loop_factory("auto")) as runner:
        runner.run(work)


async def _consume(address: str, job: Job, gate: Gate) -> None:
    take = _take_singly if job.one_by_one or job.per_second else _take_batches
    async with openmsmq.aio.connect(address) as manager:
        queue = manager.queue(f"private$\\{job.queue}")
        await take(queue, job.warm_up)
        gate.wait()
        await take(queue, job.count)


async def _take_singly(queue: AsyncQueue, count: int) -> None:
    """Receive one message per call; one half of the calls waits while the other is answered."""

    async def read(numbers: Iterator[range]) -> None:
        for group in numbers:
            for message in await asyncio.gather(*(queue.receive() for _ in group)):
                _look(message.body_bytes)

    steps = range(0, count, SINGLE_READS_COUNT)
    groups = iter([range(first, min(first + SINGLE_READS_COUNT, count)) for first in steps])
    await asyncio.gather(read(groups), read(groups))


async def _take_batches(queue: AsyncQueue, count: int) -> None:
    """Receive with several calls under way; the last ones ask for what is left."""
    left = count
    asked = 0

    async def read() -> None:
        nonlocal left, asked
        while left - asked > 0:
            wanted = min(BATCH_COUNT, left - asked)
            asked += wanted
            messages = await queue.receive_many(wanted)
            asked -= wanted
            left -= len(messages)
            for message in messages:
                _look(message.body_bytes)

    await asyncio.gather(*(read() for _ in range(READS_UNDER_WAY)))


def _look(body: bytes) -> None:
    if len(body) != BODY_BYTES:
        raise ValueError(f"a body of {len(body)} bytes came, not of {BODY_BYTES}")


def fill(address: str, queue: str, count: int) -> Iterable[int]:
    """Put durable messages into a queue; gives how many there are, from time to time."""
    with openmsmq.connect(address) as manager:
        target = manager.queue(f"private$\\{queue}")
        done = 0
        while done < count:
            step = min(50_000, count - done)
            target.send_many((BODY for _ in range(step)), recoverable=True)
            done += step
            yield done
