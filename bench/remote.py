"""Remote reading: messages received one by one over RPC, sealed, beside RabbitMQ's `basic_get`."""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Protocol

import msgspec

from bench.measure import Effort, Figure
from bench.peers import openmsmq_remote, rabbitmq_get
from bench.peers.pair import Gate, Job, run_together
from bench.peers.process import disk_directory
from bench.queues import INSTALL_HINT

SHARE_BAR: Final = 0.5
READERS: Final = 8
READERS_BAR: Final = 2.0
TURNS: Final = 5
SYNCS: Final = 50
"""Synced writes that are timed after each turn: each receive of ours waits for one."""
COUNT: Final = 3_000
WARM_UP: Final = 100
_REMOVAL_BYTES: Final = 68


class Peer(Protocol):
    """A server whose messages are fetched: a module of `bench.peers`."""

    NAME: Final[str]

    def missing(self) -> str | None: ...
    def start(self, directory: Path) -> contextlib.AbstractContextManager[str]: ...
    def prepare(self, address: str, job: Job) -> None: ...
    def consume(self, address: str, job: Job, gate: Gate) -> list[float]: ...


OURS: Final[Peer] = openmsmq_remote
RABBITMQ: Final[Peer] = rabbitmq_get


def run(effort: Effort) -> Iterator[Figure]:
    """Durable 1 KiB messages, received one by one over sealed RPC, by one reader and by eight."""
    count = max(80, round(COUNT * effort.rounds / Effort().rounds))
    rates: dict[tuple[str, int], list[float]] = {}
    syncs_s: list[float] = []
    reason = RABBITMQ.missing()
    with contextlib.ExitStack() as running:
        directory = running.enter_context(disk_directory())
        peers = [OURS] if reason else [OURS, RABBITMQ]
        addresses = {each.NAME: running.enter_context(each.start(directory)) for each in peers}
        for turn in range(TURNS):
            for readers in (1, READERS):
                for peer in peers:
                    job = Job(f"remote-{readers}-{turn}", count, warm_up=WARM_UP)
                    rate = _rate(peer, addresses[peer.NAME], job, readers)
                    rates.setdefault((peer.NAME, readers), []).append(rate)
            syncs_s += [_sync_s(directory) for _ in range(SYNCS)]
    yield from figures({who: max(found) for who, found in rates.items()}, reason)
    median_s = statistics.median(syncs_s)
    yield Figure("  a synced write, median", median_s * 1000, "ms")
    if reason is None:
        most = 1 / median_s / max(rates[RABBITMQ.NAME, 1])
        note = "what the disk allows one who syncs each, by RabbitMQ, which syncs none"
        yield Figure("  bound of the disk for one reader", most, "times", note=note)


def figures(rates: Mapping[tuple[str, int], float], reason: str | None) -> Iterator[Figure]:
    """Judge rates, by who was read and by how many; `reason` says why RabbitMQ was not."""
    one, eight = rates[OURS.NAME, 1], rates[OURS.NAME, READERS]
    name = "one reader, by RabbitMQ's basic_get"
    if reason:
        note = f"{reason}; {INSTALL_HINT}"
        yield Figure(name, None, "times", bar=SHARE_BAR, at_least=True, note=note)
    else:
        share = one / rates[RABBITMQ.NAME, 1]
        yield Figure(name, share, "times", bar=SHARE_BAR, at_least=True)
    yield Figure("eight readers, by one", eight / one, "times", bar=READERS_BAR, at_least=True)
    for (peer, readers), rate in rates.items():
        yield Figure(f"  {peer}, {readers} reading", rate, "messages/s")


def _sync_s(directory: Path) -> float:
    """Write as little as a removal does, and return how long that takes to be on the disk."""
    file = os.open(directory / "sync", os.O_RDWR | os.O_CREAT)
    try:
        began_s = time.perf_counter()
        os.pwritev(file, [bytes(_REMOVAL_BYTES)], 0, os.RWF_DSYNC)
        return time.perf_counter() - began_s
    finally:
        os.close(file)


def _rate(peer: Peer, address: str, job: Job, readers: int) -> float:
    """Let so many processes empty a queue, each its share; gives messages in a second."""
    peer.prepare(address, job)
    share = msgspec.structs.replace(job, count=job.count // readers, warm_up=job.warm_up // readers)
    told = run_together(address, share, [peer.consume] * readers)
    elapsed_s = max(each.end_s for each in told) - min(each.start_s for each in told)
    return share.count * readers / elapsed_s
