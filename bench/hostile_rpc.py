"""Hostile callers of RPC: what is left for honest queue managers while others do their worst."""

from __future__ import annotations

import contextlib
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import openmsmq
from bench.hostile import BAR, FLOOD, FLOOD_PER_S, MEMORY_BAR_MB, peak_mb, strangers_of, told_of
from bench.hostile import transfer_rate as rate_of
from bench.measure import Effort, Figure
from bench.peers import openmsmq_pair
from bench.peers.openmsmq_pair import SOURCE, TARGET
from bench.peers.openmsmq_remote import USER, add_accounts, rpc_tables
from bench.peers.process import disk_directory, free_port
from bench.peers.rpc_strangers import KINDS, QUEUE, VICTIM

ROUNDS: Final = 3
COUNT: Final = 40_000
TRANSFER_MAX_S: Final = 5.0
"""How long the messages may take each time; what takes longer counts as a rate of 0."""
TIME_MAX_S: Final = 170.0
"""No round is begun that would end later; the first one is."""


def run(effort: Effort) -> Iterator[Figure]:
    """Messages between two queue managers alone, and beside each kind of hostile callers of RPC."""
    count = max(2_000, round(COUNT * effort.rounds / Effort().rounds))
    rates: dict[str, list[float]] = {}
    told: dict[str, dict[str, Any]] = {}
    with disk_directory() as directory, _serve(directory) as (pair, pid, port):
        began_s = time.perf_counter()
        for number in range(ROUNDS):
            _note(number, "alone", rates, rate_of(pair, f"{number}-alone", count, TRANSFER_MAX_S))
            for kind in KINDS:
                options = ["--addresses", str(FLOOD), "--per-s", str(FLOOD_PER_S)]
                with strangers_of("rpc_strangers", kind, TARGET, str(port), *options) as did:
                    rate = rate_of(pair, f"{number}-{kind}", count, TRANSFER_MAX_S)
                _note(number, kind, rates, rate)
                told[kind] = did
            spent_s = time.perf_counter() - began_s
            if not has_time(number + 1, spent_s):
                break
        memory_mb = peak_mb(pid)
    alone = statistics.median(rates["alone"])
    yield Figure("  alone", alone, "messages/s")
    for kind in KINDS:
        measured = statistics.median(rates[kind])
        share = measured / alone if alone else None
        yield Figure(f"{kind}, by alone", share, "times", bar=BAR, at_least=True)
        yield Figure(f"  {kind}", measured, "messages/s", note=told_of(told[kind]))
        yield Figure(f"  {kind}, their own processor", 100 * told[kind]["processor"], "%")
    yield Figure("memory at its peak", memory_mb, "MB", bar=MEMORY_BAR_MB)


def has_time(rounds: int, spent_s: float) -> bool:
    """Whether another round is over in time, if it takes as long as those before it."""
    return spent_s + spent_s / rounds <= TIME_MAX_S


def _note(number: int, kind: str, rates: dict[str, list[float]], rate: float) -> None:
    """Keep a rate, and show that something goes on."""
    rates.setdefault(kind, []).append(rate)
    print(f"  round {number + 1}, {kind}: {rate:,.0f} messages/s", file=sys.stderr, flush=True)


@contextlib.contextmanager
def _serve(directory: Path) -> Iterator[tuple[str, int, int]]:
    """Run a sender, and a receiver with a door of RPC; gives addresses, process and port."""
    transfer_port, port = free_port(), free_port()
    add_accounts(directory / "target", USER, VICTIM)
    serve = openmsmq_pair.serve_one
    with (
        serve(directory, "SOURCE", SOURCE, transfer_port) as (source, _),
        serve(directory, "TARGET", TARGET, transfer_port, tables=rpc_tables(port, TARGET)) as (
            target,
            pid,
        ),
    ):
        with openmsmq.connect(target) as manager:
            manager.create_queue(QUEUE)
        yield f"{source},{target}", pid, port
