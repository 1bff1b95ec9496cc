"""Floods of messages: a small queue manager survives them, and serves honest peers meanwhile.

The queue manager has a quota of 64 MiB and may use 300 MiB of memory: the limit of the system for
data (RLIMIT_DATA) is set so for its process, and would end it. The map of its store is a file and
does not count. Each flood goes on until the quota has been passed several times.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import openmsmq
from bench.hostile import peak_mb
from bench.measure import Effort, Figure
from bench.peers import openmsmq as single
from bench.peers import openmsmq_pair
from bench.peers.flooders import KINDS, OPEN, OPEN_LEDGER
from bench.peers.openmsmq_pair import SOURCE, TARGET
from bench.peers.pair import Job, run_pair
from bench.peers.process import disk_directory, free_port

QUOTA_MB: Final = 64
MEMORY_MB: Final = 300.0
DISK_MB: Final = 1024.0
BAR: Final = 0.5
COUNT: Final = 8_000
TIMES: Final = 3
PER_TRANSACTION: Final = 100
ADDRESSES: Final = 20
HALVES_ADDRESSES: Final = 60
PACES: Final = {"big": 20.0, "halves": 20.0}
PACE: Final = 100.0
"""Messages in a second of each address; big ones come more slowly, and are still 80 MB a second."""
FLOOD_S: Final = 20.0
_STOP_S: Final = 20.0


def run(effort: Effort) -> Iterator[Figure]:
    """Transactional messages of a known peer alone, and during each kind of flood."""
    scale = effort.rounds / Effort().rounds
    count, flood_s = max(1_000, round(COUNT * scale)), max(3.0, FLOOD_S * scale)
    with disk_directory() as directory, serve(directory) as (pair, pid, port):
        for kind in KINDS:
            alone = [_rate(pair, f"{kind}-before", count)]
            with flooding(kind, port, flood_s) as did:
                during = _rate(pair, f"{kind}-during", count)
            alone.append(_rate(pair, f"{kind}-after", count))
            rate = sum(alone) / len(alone)
            yield Figure(f"{kind}, by alone", during / rate, "times", bar=BAR, at_least=True)
            yield Figure(f"  {kind}", during, "messages/s", note=_facts(did))
        yield Figure("memory at its peak", peak_mb(pid), "MB", bar=MEMORY_MB)
        yield Figure("disk at the end", disk_mb(directory / "target"), "MB", bar=DISK_MB)
        with openmsmq.connect(pair.split(",")[1]) as manager:
            held = manager.status()
        yield Figure("messages held", held.message_bytes / 2**20, "MB", bar=float(QUOTA_MB))
        told = ", ".join(f"{it.count:,} {it.event} ({it.reason})" for it in held.notices)
        yield Figure("  dropped", float(sum(it.count for it in held.notices)), "times", note=told)


@contextlib.contextmanager
def serve(directory: Path) -> Iterator[tuple[str, int, int]]:
    """Run a sender and a small receiver that knows it; gives addresses, process and port."""
    port = free_port()
    with openmsmq_pair.serve_one(directory, "SOURCE", SOURCE, port) as (source, _):
        home = directory / "target"
        home.mkdir()
        config = home / "openmsmq.toml"
        config.write_text(
            f"quota_kb = {QUOTA_MB * 1024}\n"
            f"[parameters]\nMsmqIpPort = {port}\nEnablePingService = false\n"
            "EnableReportMessages = true\n"
            f'[hosts]\nsource = "{SOURCE}"\n'
        )
        options = ["--address", TARGET, "--config", str(config)]
        with single.launch(home, "TARGET", options) as (target, pid):
            limit = int(MEMORY_MB) << 20
            resource.prlimit(pid, resource.RLIMIT_DATA, (limit, limit))
            with openmsmq.connect(target) as manager:
                manager.create_queue(OPEN)
                manager.create_queue(OPEN_LEDGER, transactional=True)
            yield f"{source},{target}", pid, port


@contextlib.contextmanager
def flooding(kind: str, port: int, least_s: float) -> Iterator[dict[str, Any]]:
    """Let strangers flood the target, for so long at least; what they did is known behind it."""
    did: dict[str, Any] = {}
    command = [sys.executable, "-m", "bench.peers.flooders", kind, TARGET, str(port)]
    addresses = HALVES_ADDRESSES if kind == "halves" else ADDRESSES
    command += ["--addresses", str(addresses), "--per-s", str(PACES.get(kind, PACE))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
    begin_s = time.perf_counter()
    try:
        time.sleep(least_s / 2)
        yield did
        time.sleep(max(0.0, begin_s + least_s - time.perf_counter()))
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            printed, _ = process.communicate(timeout=_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            printed, _ = process.communicate()
        did.update(json.loads(printed.rpartition("begun")[2] or "{}"))


def _rate(pair: str, queue: str, count: int) -> float:
    """Return the rate in the middle of some: others may want the processor too, now and then."""
    rates = []
    for number in range(TIMES):
        job = Job(f"{queue}{number}", count, warm_up=500, per_transaction=PER_TRANSACTION)
        openmsmq_pair.prepare(pair, job)
        rates.append(run_pair(pair, job, openmsmq_pair.produce, openmsmq_pair.consume).rate)
    return statistics.median(rates)


def _facts(did: dict[str, Any]) -> str:
    told = {**did, "MB": round(did.pop("bytes", 0) / 2**20)}
    told.pop("bytes", None)
    return ", ".join(f"{value:,} {key}" for key, value in told.items())


def disk_mb(directory: Path) -> float:
    """Return what the files below a directory take on the disk."""
    blocks = 0
    for path in directory.rglob("*"):
        with contextlib.suppress(OSError):
            blocks += path.lstat().st_blocks
    return blocks * 512 / 2**20
