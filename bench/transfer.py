"""Transfer: messages from one application to another through two queue managers."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator
from typing import Final

from bench.measure import Effort, Figure
from bench.peers import openmsmq_pair, rabbitmq
from bench.peers.pair import Job, run_pair
from bench.peers.process import disk_directory, private_mb, processor_s
from bench.queues import Bar, Peer, Scenario, fastest, in_turn, rate_figures

PAIR: Final[Peer] = openmsmq_pair
RABBITMQ: Final[Peer] = rabbitmq

SCENARIOS: Final = [
    Scenario(
        "recoverable",
        Job("recoverable", count=50_000, warm_up=5_000),
        [Bar(RABBITMQ, 2.0)],
        ours=PAIR,
    ),
    Scenario(
        "transactions of 100",
        Job("ledger", count=50_000, warm_up=5_000, per_transaction=100),
        [Bar(RABBITMQ, 1.5)],
        ours=PAIR,
    ),
    Scenario(
        "express",
        Job("express", count=50_000, warm_up=5_000, durable=False),
        [Bar(RABBITMQ, 3.0)],
        ours=PAIR,
    ),
]

FLAT_BAR: Final = 0.8
SHORT_COUNT: Final = 1_000
SHORT_RUNS: Final = 11
IDLE_S: Final = 5.0
IDLE_CPU_BAR: Final = 1.0
IDLE_MEMORY_BAR: Final = 80.0


def run(effort: Effort) -> Iterator[Figure]:
    """Application to application, 1 KiB, through two queue managers, against one broker."""
    share = effort.rounds / Effort().rounds
    with contextlib.ExitStack() as running:
        directory = running.enter_context(disk_directory())
        addresses: dict[str, str] = {}
        reasons: dict[str, str] = {}
        pair, pids = running.enter_context(openmsmq_pair.serve(directory))
        addresses[openmsmq_pair.NAME] = pair
        reason = rabbitmq.missing()
        if reason is None:
            addresses[rabbitmq.NAME] = running.enter_context(rabbitmq.start(directory))
        else:
            reasons[rabbitmq.NAME] = reason
        yield from _idle(pids)
        for scenario in SCENARIOS:
            best = fastest(in_turn(scenario, addresses, share))
            yield from rate_figures(scenario, best, reasons)


def run_long(effort: Effort) -> Iterator[Figure]:
    """Cost of a message when a thousand and when a million are sent to another computer."""
    long_count = max(10 * SHORT_COUNT, round(1_000_000 * effort.rounds / Effort().rounds))
    with disk_directory() as directory, openmsmq_pair.serve(directory) as (pair, _):
        short = [_rate(pair, f"short-{number}", SHORT_COUNT) for number in range(SHORT_RUNS)]
        long = _rate(pair, "long", long_count)
        name = f"recoverable, {long_count:,} by {SHORT_COUNT:,}"
        # A thousand messages take a blink: one run says little, and the best one too much.
        usual = statistics.median(short)
        yield Figure(name, long / usual, "times", bar=FLAT_BAR, at_least=True)
        yield Figure(f"  {SHORT_COUNT:,} messages, median of {len(short)}", usual, "messages/s")
        yield Figure(f"  {long_count:,} messages", long, "messages/s")


def _rate(pair: str, queue: str, count: int) -> float:
    job = Job(queue, count=count, warm_up=SHORT_COUNT)
    openmsmq_pair.prepare(pair, job)
    return run_pair(pair, job, openmsmq_pair.produce, openmsmq_pair.consume).rate


def _idle(pids: tuple[int, int]) -> Iterator[Figure]:
    """How much two queue managers use that have nothing to do."""
    time.sleep(1.0)
    before = [processor_s(pid) for pid in pids]
    time.sleep(IDLE_S)
    used = max(
        (processor_s(pid) - earlier) / IDLE_S for pid, earlier in zip(pids, before, strict=True)
    )
    yield Figure("idle, processor", 100 * used, "%", bar=IDLE_CPU_BAR)
    yield Figure("idle, private memory", max(map(private_mb, pids)), "MB", bar=IDLE_MEMORY_BAR)
