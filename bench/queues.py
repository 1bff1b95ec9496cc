"""Queues: messages from one application to another through OpenMSMQ, and through its peers."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Protocol

import msgspec

from bench.measure import Effort, Figure
from bench.peers import bound, openmsmq, rabbitmq, redis_streams
from bench.peers.pair import Gate, Job, Outcome, run_pair
from bench.peers.process import disk_directory

RUNS: Final = 3
"""Turns that everybody has; the best one counts, because a busy machine only makes slower."""

SYNC_RUNS: Final = 7
"""The same where each message waits for a sync of its own: disks of virtual machines vary."""
INSTALL_HINT: Final = "make bench-peers installs the peers"


class Peer(Protocol):
    """A server and how applications use it: a module of `bench.peers`."""

    NAME: Final[str]

    def missing(self) -> str | None: ...
    def start(self, directory: Path) -> contextlib.AbstractContextManager[str]: ...
    def prepare(self, address: str, job: Job) -> None: ...
    def produce(self, address: str, job: Job, gate: Gate) -> list[float]: ...
    def consume(self, address: str, job: Job, gate: Gate) -> list[float]: ...


class Bar(msgspec.Struct, frozen=True):
    """How many times as fast as a peer OpenMSMQ has to be."""

    peer: Peer
    times: float


class Scenario(msgspec.Struct, frozen=True):
    """One way of using a queue, and the bars for it."""

    name: str
    job: Job
    bars: list[Bar]
    bounded: bool = False
    """Whether the loop without the product is run too."""
    ours: Peer = openmsmq

    @property
    def peers(self) -> list[Peer]:
        """Who takes part, in the order of turns."""
        return [self.ours, *(bar.peer for bar in self.bars), *([bound] if self.bounded else [])]


RABBITMQ: Final[Peer] = rabbitmq
REDIS: Final[Peer] = redis_streams

SCENARIOS: Final = [
    Scenario(
        "durable, batched",
        Job("batched", count=50_000, warm_up=5_000),
        [Bar(RABBITMQ, 4.0), Bar(REDIS, 1.5)],
        bounded=True,
    ),
    Scenario(
        "durable, one by one",
        Job("single", count=3_000, warm_up=300, one_by_one=True),
        [Bar(RABBITMQ, 2.0)],
    ),
    Scenario(
        "express, batched",
        Job("express", count=50_000, warm_up=5_000, durable=False),
        [Bar(RABBITMQ, 4.0)],
    ),
]
PACED: Final = Scenario(
    "durable send at 200/s",
    Job("paced", count=600, warm_up=50, per_second=200),
    [Bar(RABBITMQ, 1.0)],
)


def run(effort: Effort) -> Iterator[Figure]:
    """Application to application, 1 KiB, two processes, through one server, against its peers."""
    share = effort.rounds / Effort().rounds
    with contextlib.ExitStack() as running:
        directory = running.enter_context(disk_directory())
        reasons: dict[str, str] = {}
        addresses: dict[str, str] = {}
        for peer in (openmsmq, rabbitmq, redis_streams, bound):
            reason = peer.missing()
            if reason is None:
                addresses[peer.NAME] = running.enter_context(peer.start(directory))
            else:
                reasons[peer.NAME] = reason
        for scenario in SCENARIOS:
            best = fastest(in_turn(scenario, addresses, share))
            yield from rate_figures(scenario, best, reasons)
        waits = _shortest(in_turn(PACED, addresses, share))
        yield from wait_figures(PACED, waits, reasons)


def in_turn(
    scenario: Scenario, addresses: Mapping[str, str], share: float, runs: int = RUNS
) -> dict[str, list[Outcome]]:
    """Run a job with everybody, A B C A B C."""
    outcomes: dict[str, list[Outcome]] = {}
    for number in range(SYNC_RUNS if scenario.job.one_by_one else runs):
        for peer in scenario.peers:
            address = addresses.get(peer.NAME)
            if address is None:
                continue
            job = sized(scenario.job, number, share)
            peer.prepare(address, job)
            outcome = run_pair(address, job, peer.produce, peer.consume)
            outcomes.setdefault(peer.NAME, []).append(outcome)
    return outcomes


def sized(job: Job, number: int, share: float) -> Job:
    """Return a job with a queue of its own for a turn, and so much of its messages."""
    return msgspec.structs.replace(
        job,
        queue=f"{job.queue}-{number}",
        count=max(10, round(job.count * share)),
        warm_up=max(1, round(job.warm_up * share)),
    )


def fastest(outcomes: Mapping[str, list[Outcome]]) -> dict[str, float]:
    return {name: max(outcome.rate for outcome in runs) for name, runs in outcomes.items()}


def _shortest(outcomes: Mapping[str, list[Outcome]]) -> dict[str, float]:
    return {
        name: min(statistics.median(outcome.waits_s) for outcome in runs)
        for name, runs in outcomes.items()
    }


def rate_figures(
    scenario: Scenario, rates: Mapping[str, float], reasons: Mapping[str, str]
) -> Iterator[Figure]:
    """Judge rates by the bars of a scenario; `reasons` says why a peer was not measured."""
    ours = rates[scenario.ours.NAME]
    for bar in scenario.bars:
        name = f"{scenario.name}, by {bar.peer.NAME}"
        theirs = rates.get(bar.peer.NAME)
        if theirs is None:
            note = f"{reasons[bar.peer.NAME]}; {INSTALL_HINT}"
            yield Figure(name, None, "times", bar=bar.times, at_least=True, note=note)
        else:
            yield Figure(name, ours / theirs, "times", bar=bar.times, at_least=True)
    if scenario.bounded:
        share = ours / rates[bound.NAME]
        yield Figure(f"{scenario.name}, by the bound", share, "times", note=bound.NAME)
    for peer_name, rate in rates.items():
        yield Figure(f"  {peer_name}", rate, "messages/s")


def wait_figures(
    scenario: Scenario, medians: Mapping[str, float], reasons: Mapping[str, str]
) -> Iterator[Figure]:
    """Judge median waits in seconds; `reasons` says why a peer was not measured."""
    ours = medians[openmsmq.NAME]
    for bar in scenario.bars:
        name = f"{scenario.name}, by {bar.peer.NAME}"
        theirs = medians.get(bar.peer.NAME)
        if theirs is None:
            note = f"{reasons[bar.peer.NAME]}; {INSTALL_HINT}"
            yield Figure(name, None, "times", bar=bar.times, note=note)
        else:
            yield Figure(name, ours / theirs, "times", bar=bar.times)
    for peer_name, median_s in medians.items():
        yield Figure(f"  {peer_name}, median", median_s * 1000, "ms")
