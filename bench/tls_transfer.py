"""What TLS costs a message between two queue managers, from application to application."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from bench.measure import Effort, Figure
from bench.peers import openmsmq_pair, openmsmq_tls_pair
from bench.peers.pair import Job
from bench.peers.process import disk_directory
from bench.queues import Bar, Peer, Scenario, fastest, in_turn, rate_figures

PLAIN: Final[Peer] = openmsmq_pair
TLS: Final[Peer] = openmsmq_tls_pair
SHARE_BAR: Final = 0.7
RUNS: Final = 7
"""Turns that both have: what is compared is so alike that three would say too little."""

SCENARIOS: Final = [
    Scenario(
        "recoverable",
        Job("recoverable", count=20_000, warm_up=2_000),
        [Bar(PLAIN, SHARE_BAR)],
        ours=TLS,
    ),
    Scenario(
        "transactions of 100",
        Job("ledger", count=20_000, warm_up=2_000, per_transaction=100),
        [Bar(PLAIN, SHARE_BAR)],
        ours=TLS,
    ),
    Scenario(
        "express",
        Job("express", count=20_000, warm_up=2_000, durable=False),
        [Bar(PLAIN, SHARE_BAR)],
        ours=TLS,
    ),
]


def run(effort: Effort) -> Iterator[Figure]:
    """Application to application, 1 KiB, through two queue managers, over mutual TLS and plain."""
    share = effort.rounds / Effort().rounds
    with contextlib.ExitStack() as running:
        directory = running.enter_context(disk_directory())
        addresses = {
            pair.NAME: running.enter_context(pair.start(directory)) for pair in (PLAIN, TLS)
        }
        for scenario in SCENARIOS:
            best = fastest(in_turn(scenario, addresses, share, RUNS))
            yield from rate_figures(scenario, best, {})
