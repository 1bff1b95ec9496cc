"""The same two queue managers, with SRMP over HTTP between them: durable messages to a URL.

A sender's connection is of the configuration: `[http] send_pipelined_max` says how many posts are
under way at a time. So there are two senders, one with the default and one with a single post.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import openmsmq
from bench.peers import openmsmq as single
from bench.peers import openmsmq_pair
from bench.peers.openmsmq_pair import SOURCE, TARGET, serve_one
from bench.peers.pair import BODY, Gate, Job
from bench.peers.process import free_port


class HttpPair:
    """A sender with so many posts under way, and a receiver: a peer of `bench.queues`."""

    def __init__(self, name: str, pipelined_max: int) -> None:
        self.NAME: Final = name
        self._pipelined_max = pipelined_max

    def missing(self) -> str | None:
        """It is always there."""
        return None

    @contextlib.contextmanager
    def start(self, directory: Path) -> Iterator[str]:
        """Run both; gives their addresses and the port for posts, separated by commas."""
        home = directory / f"http-{self._pipelined_max}"
        home.mkdir()
        sessions, posts = free_port(), free_port()
        sends = f"[http]\nsends = true\nsend_pipelined_max = {self._pipelined_max}\n"
        takes = (
            f'[http]\nenabled = true\naddress = "{TARGET}"\nport = {posts}\nprograms = false\n'
            "queues = ['private$\\*']\n"
        )
        with contextlib.ExitStack() as running:
            source, target = (
                running.enter_context(serve_one(home, name, address, sessions, tables=tables))[0]
                for name, address, tables in (
                    ("SOURCE", SOURCE, sends),
                    ("TARGET", TARGET, takes),
                )
            )
            yield f"{source},{target},{posts}"

    def prepare(self, address: str, job: Job) -> None:
        """Make the queue of a job where it is received."""
        openmsmq_pair.prepare(address, job)

    def produce(self, address: str, job: Job, gate: Gate) -> list[float]:
        """Send the messages of a job to the URL of the queue."""
        source, _, port = address.split(",")
        with openmsmq.connect(source) as manager:
            url = f"HTTP://{TARGET}:{port}/msmq/private$/{job.queue}"
            queue = manager.queue(f"DIRECT={url}")
            queue.send_many((BODY for _ in range(job.warm_up)), recoverable=job.durable)
            gate.wait()
            queue.send_many((BODY for _ in range(job.count)), recoverable=job.durable)
        return []

    def consume(self, address: str, job: Job, gate: Gate) -> list[float]:
        """Receive the messages of a job."""
        return single.consume(address.split(",")[1], job, gate)


PIPELINED: Final = HttpPair("OpenMSMQ, SRMP, pipelined", 48)
ONE_BY_ONE: Final = HttpPair("OpenMSMQ, SRMP, one by one", 1)
