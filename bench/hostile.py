"""Hostile peers: what is left for honest ones while others do their worst."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from bench.measure import Effort, Figure
from bench.peers import openmsmq_pair
from bench.peers.pair import FINISH_S, Job, WorkerLate, run_pair
from bench.peers.process import disk_directory

SLOW: Final = 500
FLOOD: Final = 50
FLOOD_PER_S: Final = 20
"""Connections that each address of the flood makes in a second, if it is let: it bounds how much of
the computer the strangers take for themselves."""

BAR: Final = 0.5
ROUNDS: Final = 3
COUNT: Final = 40_000
MEMORY_BAR_MB: Final = 500.0
_GATHER_S: Final = 4.0
_STOP_S: Final = 20.0


def run(effort: Effort) -> Iterator[Figure]:
    """Messages between two queue managers alone, beside 500 slow peers, and in a flood from 50."""
    count = max(2_000, round(COUNT * effort.rounds / Effort().rounds))
    attacks = {"alone": (0, 0), "slow peers": (SLOW, 0), "flood": (0, FLOOD)}
    rates: dict[str, list[float]] = {name: [] for name in attacks}
    told: dict[str, dict[str, Any]] = {}
    with disk_directory() as directory, openmsmq_pair.serve(directory) as (pair, pids):
        port = _session_port(directory)
        for number in range(ROUNDS):
            for name, (slow, flood) in attacks.items():
                with _strangers(port, slow, flood) as did:
                    rates[name].append(
                        transfer_rate(pair, f"{number}-{name.replace(' ', '-')}", count)
                    )
                told[name] = did
        memory_mb = max(map(peak_mb, pids))
    alone = statistics.median(rates["alone"])
    yield Figure("  alone", alone, "messages/s")
    for name in ("slow peers", "flood"):
        measured = statistics.median(rates[name])
        yield Figure(f"{name}, by alone", measured / alone, "times", bar=BAR, at_least=True)
        yield Figure(f"  {name}", measured, "messages/s", note=told_of(told[name]))
        yield Figure(f"  {name}, their own processor", 100 * told[name]["processor"], "%")
    yield Figure("memory at its peak", memory_mb, "MB", bar=MEMORY_BAR_MB)


def _session_port(directory: Path) -> int:
    config = tomllib.loads((directory / "target" / "openmsmq.toml").read_text())
    return int(config["parameters"]["MsmqIpPort"])


def transfer_rate(pair: str, queue: str, count: int, most_s: float = FINISH_S) -> float:
    """Return how many messages a second go from one queue manager to the other.

    It is 0 if all of them take longer than `most_s`.
    """
    job = Job(queue, count=count, warm_up=1_000)
    openmsmq_pair.prepare(pair, job)
    try:
        return run_pair(pair, job, openmsmq_pair.produce, openmsmq_pair.consume, most_s).rate
    except WorkerLate:
        return 0.0


@contextlib.contextmanager
def _strangers(port: int, slow: int, flood: int) -> Iterator[dict[str, Any]]:
    """Let strangers do their worst; what they did is known behind the block."""
    did: dict[str, Any] = {"processor": 0.0}
    if not slow + flood:
        yield did
        return
    options = ["--slow", str(slow), "--flood", str(flood), "--per-s", str(FLOOD_PER_S)]
    with strangers_of("strangers", openmsmq_pair.TARGET, str(port), *options) as did:
        yield did


@contextlib.contextmanager
def strangers_of(module: str, *arguments: str) -> Iterator[dict[str, Any]]:
    """Run a module of `bench.peers` that does its worst; what it did is known behind the block."""
    did: dict[str, Any] = {"processor": 0.0}
    command = [sys.executable, "-m", f"bench.peers.{module}", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(_GATHER_S)
        yield did
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            printed, _ = process.communicate(timeout=_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            printed, _ = process.communicate()
        did.update(json.loads(printed or "{}"))


def told_of(did: dict[str, Any]) -> str:
    """Return what strangers did, in a line."""
    counts = {key: value for key, value in did.items() if key not in ("processor", "seconds")}
    told = ", ".join(f"{value:,} {key}" for key, value in counts.items())
    return f"in {did.get('seconds', 0):g} s: {told}"


def peak_mb(pid: int) -> float:
    """Return the most memory that a process has had."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0
