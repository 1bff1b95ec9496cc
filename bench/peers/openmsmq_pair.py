"""Two queue managers: applications send to one, and receive from the other."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final

import openmsmq
import openmsmq.aio
from bench.peers import openmsmq as single
from bench.peers.pair import BODY, Gate, Job
from bench.peers.process import free_port

NAME: Final = "OpenMSMQ, two queue managers"
SOURCE: Final = "127.0.0.2"
TARGET: Final = "127.0.0.3"

TRANSACTIONS_UNDER_WAY: Final = 4
"""How many transactions an application has open at a time; peers have as many sends under way."""


def missing() -> str | None:
    """It is always there."""
    return None


@contextlib.contextmanager
def start(directory: Path) -> Iterator[str]:
    """Run both; gives their addresses, separated by a comma."""
    with serve(directory) as (addresses, _):
        yield addresses


@contextlib.contextmanager
def serve(directory: Path) -> Iterator[tuple[str, tuple[int, int]]]:
    """Run both; gives their addresses and their process ids."""
    session_port = free_port()
    with contextlib.ExitStack() as running:
        started = [
            running.enter_context(serve_one(directory, name, address, session_port))
            for name, address in (("SOURCE", SOURCE), ("TARGET", TARGET))
        ]
        (source, source_pid), (target, target_pid) = started
        yield f"{source},{target}", (source_pid, target_pid)


@contextlib.contextmanager
def serve_one(
    directory: Path, name: str, address: str, session_port: int, *more: str, tables: str = ""
) -> Iterator[tuple[str, int]]:
    """Run one queue manager, with more options and tables; gives its address and process id."""
    home = directory / name.lower()
    home.mkdir(exist_ok=True)
    config = home / "openmsmq.toml"
    # Other ports than MSMQ's, so that a queue manager that runs already is left alone.
    config.write_text(
        f"[parameters]\nMsmqIpPort = {session_port}\nEnablePingService = false\n{tables}"
    )
    options = ["--address", address, "--config", str(config), *more]
    with single.launch(home, name, options) as started:
        yield started


def prepare(address: str, job: Job) -> None:
    """Make the queue of a job where it is received."""
    with openmsmq.connect(address.split(",")[1]) as manager:
        manager.create_queue(f"private$\\{job.queue}", transactional=bool(job.per_transaction))


def produce(address: str, job: Job, gate: Gate) -> list[float]:
    """Send the messages of a job to the other queue manager."""
    if job.per_transaction:
        single.run_loop(_produce_transactions(address.split(",")[0], job, gate))
        return []
    with openmsmq.connect(address.split(",")[0]) as manager:
        queue = manager.queue(f"DIRECT=TCP:{TARGET}\\private$\\{job.queue}")
        queue.send_many((BODY for _ in range(job.warm_up)), recoverable=job.durable)
        gate.wait()
        queue.send_many((BODY for _ in range(job.count)), recoverable=job.durable)
    return []


async def _produce_transactions(address: str, job: Job, gate: Gate) -> None:
    async with openmsmq.aio.connect(address) as manager:
        queue = manager.queue(f"DIRECT=TCP:{TARGET}\\private$\\{job.queue}")

        async def send(size: int) -> int:
            async with manager.transaction() as work:
                await queue.send_many([BODY] * size, transaction=work)
            return size

        await _some_at_a_time(send, job.warm_up, job.per_transaction)
        gate.wait()
        await _some_at_a_time(send, job.count, job.per_transaction)


def consume(address: str, job: Job, gate: Gate) -> list[float]:
    """Receive the messages of a job."""
    target = address.split(",")[1]
    if not job.per_transaction:
        return single.consume(target, job, gate)
    single.run_loop(_consume_transactions(target, job, gate))
    return []


async def _consume_transactions(address: str, job: Job, gate: Gate) -> None:
    async with openmsmq.aio.connect(address) as manager:
        queue = manager.queue(f"private$\\{job.queue}")

        async def take(size: int) -> int:
            async with manager.transaction() as work:
                return len(await queue.receive_many(size, transaction=work))

        await _some_at_a_time(take, job.warm_up, job.per_transaction)
        gate.wait()
        await _some_at_a_time(take, job.count, job.per_transaction)


async def _some_at_a_time(
    work: Callable[[int], Awaitable[int]], count: int, per_transaction: int
) -> None:
    """Have some transactions under way until so many messages are done."""
    left = count
    asked = 0

    async def go_on() -> None:
        nonlocal left, asked
        while left - asked > 0:
            size = min(per_transaction, left - asked)
            asked += size
            done = await work(size)
            asked -= size
            left -= done

    await asyncio.gather(*(go_on() for _ in range(TRANSACTIONS_UNDER_WAY)))
