"""A backlog: what a million messages in one queue cost a queue manager."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import openmsmq
from bench.measure import Effort, Figure
from bench.peers.openmsmq import fill, serve
from bench.peers.pair import BODY
from bench.peers.process import disk_directory
from openmsmq.client.blocking import Queue

COUNT: Final = 1_000_000
OPEN_BAR_S: Final = 2.0
MEMORY_BAR_MB: Final = 300.0
RATE_BAR: Final = 0.7

SMALL_COUNT: Final = 1_000
BATCH_COUNT: Final = 100
TRIALS: Final = 12

_MEGABYTE: Final = 1e6
_LARGE: Final = "backlog"
_SMALL: Final = "small"
_MAPPING: Final = re.compile(r"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \d+\s*(.*)$")
_PRIVATE: Final = re.compile(r"^Private_(?:Clean|Dirty):\s+(\d+) kB$")


def run(effort: Effort) -> Iterator[Figure]:
    """One million 1 KiB messages in one queue: time to open, memory, and speed of receiving."""
    count = max(2 * SMALL_COUNT * TRIALS, round(COUNT * effort.rounds / Effort().rounds))
    with disk_directory() as directory:
        memory_mb: list[float] = []
        with serve(directory) as (address, pid):
            with openmsmq.connect(address) as manager:
                manager.create_queue(f"private$\\{_LARGE}")
                manager.create_queue(f"private$\\{_SMALL}")
            start = time.perf_counter()
            memory_mb += (private_mb(pid, directory) for _ in fill(address, _LARGE, count))
            yield Figure(
                f"filled with {count:,}", count / (time.perf_counter() - start), "messages/s"
            )
            os.kill(pid, signal.SIGKILL)
        begin = time.perf_counter()
        with serve(directory):
            killed_s = time.perf_counter() - begin
        yield Figure("open, after a kill", killed_s, "s", bar=OPEN_BAR_S)
        begin = time.perf_counter()
        with serve(directory) as (address, pid):
            stopped_s = time.perf_counter() - begin
            yield Figure("open, after a stop", stopped_s, "s", bar=OPEN_BAR_S)
            yield Figure("  of the store", _size_mb(directory), "MB")
            memory_mb.append(private_mb(pid, directory))
            with openmsmq.connect(address) as manager:
                large = manager.queue(f"private$\\{_LARGE}")
                small = manager.queue(f"private$\\{_SMALL}")
                yield from _rates(large, small, count)
            memory_mb.append(private_mb(pid, directory))
        yield Figure("private memory, the most of all", max(memory_mb), "MB", bar=MEMORY_BAR_MB)


def _rates(large: Queue, small: Queue, count: int) -> Iterator[Figure]:
    """Receive from a long and a short queue in turn, by the batch and one by one."""
    for name, batch, taken in (
        (f"by {BATCH_COUNT}", BATCH_COUNT, SMALL_COUNT),
        ("one by one", 1, SMALL_COUNT // 5),
    ):
        rates: dict[str, list[float]] = {_LARGE: [], _SMALL: []}
        for _ in range(TRIALS):
            missing = SMALL_COUNT - small.count()
            small.send_many([BODY] * missing, recoverable=True)
            rates[_SMALL].append(_receive_rate(small, taken, batch))
            rates[_LARGE].append(_receive_rate(large, taken, batch))
        best = {queue: max(each) for queue, each in rates.items()}
        yield Figure(
            f"receive {name}, {count:,} by {SMALL_COUNT:,}",
            best[_LARGE] / best[_SMALL],
            "times",
            bar=RATE_BAR,
            at_least=True,
        )
        yield Figure("  from the backlog", best[_LARGE], "messages/s")


def _receive_rate(queue: Queue, count: int, batch: int) -> float:
    start = time.perf_counter()
    left = count
    while left:
        left -= len(queue.receive_many(min(batch, left), timeout=10))
    return count / (time.perf_counter() - start)


def private_mb(pid: int, data: Path) -> float:
    """The memory that only this process has, without the pages of its store's mapped files.

    The kernel counts a page of a mapped file as private as long as nobody else maps the file, but
    it is page cache: it is given up when somebody needs memory, and comes back from the disk.
    """
    total_kb = 0
    counted = True
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        mapping = _MAPPING.match(line)
        if mapping is not None:
            counted = not mapping[1].startswith(f"{data}/")
        elif counted and (private := _PRIVATE.match(line)) is not None:
            total_kb += int(private[1])
    return total_kb * 1024 / _MEGABYTE


def _size_mb(directory: Path) -> float:
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file()) / _MEGABYTE
