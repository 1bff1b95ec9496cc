"""Hostile callers of RPC: what is left for honest queue managers while others do their worst."""

from __future__ import annotations

import contextlib
import statistics
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


def run(effort: Effort) -> Iterator[Figure]:
    """Messages between two queue managers alone, and beside each kind of hostile callers of RPC."""
    count = max(2_000, round(COUNT * effort.rounds / Effort().rounds))
    rates: dict[str, list[float]] = {}
    told: dict[str, dict[str, Any]] = {}
    with disk_directory() as directory, _serve(directory) as (pair, pid, port):
        for number in range(ROUNDS):
            rates.setdefault("alone", []).append(rate_of(pair, f"{number}-alone", count))
            for kind in KINDS:
                options = ["--addresses", str(FLOOD), "--per-s", str(FLOOD_PER_S)]
                with strangers_of("rpc_strangers", kind, TARGET, str(port), *options) as did:
                    rates.setdefault(kind, []).append(rate_of(pair, f"{number}-{kind}", count))
                told[kind] = did
        memory_mb = peak_mb(pid)
    alone = statistics.median(rates["alone"])
    yield Figure("  alone", alone, "messages/s")
    for kind in KINDS:
        measured = statistics.median(rates[kind])
        yield Figure(f"{kind}, by alone", measured / alone, "times", bar=BAR, at_least=True)
        yield Figure(f"  {kind}", measured, "messages/s", note=told_of(told[kind]))
        yield Figure(f"  {kind}, their own processor", 100 * told[kind]["processor"], "%")
    yield Figure("memory at its peak", memory_mb, "MB", bar=MEMORY_BAR_MB)


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
