"""Replication: a queue manager whose log PostgreSQL keeps, beside one that has its store alone."""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import psycopg

import openmsmq
from bench.measure import Effort, Figure
from bench.peers import openmsmq as single
from bench.peers.databases import Databases, program
from bench.peers.pair import BODY, Gate, Job, run_pair, run_together
from bench.peers.process import disk_directory
from bench.trees import BEFORE

RATE_BAR: Final = 0.2
LATENCY_BAR: Final = 3.0
BARE_BAR: Final = 0.7
BEFORE_BAR: Final = 0.95
TURNS: Final = 3
"""Turns that everybody has; the best one counts, because a busy machine only makes slower."""

BATCHED: Final = Job("batched", count=50_000, warm_up=5_000)
SINGLE: Final = Job("single", count=1_500, warm_up=150, one_by_one=True)
EMBEDDED: Final = "embedded"
REPLICATED: Final = "replicated"
_EARLIER: Final = "earlier"
_BARE: Final = """
DROP TABLE IF EXISTS bare;
CREATE TABLE bare (number bigint PRIMARY KEY, record bytea NOT NULL);
ALTER TABLE bare ALTER COLUMN record SET STORAGE EXTERNAL;
"""


class Measured(msgspec.Struct):
    """What came of all turns: the best of each."""

    rates: dict[str, float] = {}
    """Messages a second, from one application to another."""
    waits_s: dict[str, float] = {}
    """The median of what one send took that nothing else was beside."""
    bare_rate: float = 0.0
    """Messages a second, if only the records of the same messages were appended."""
    bare_wait_s: float = 0.0
    records_count: int = 0
    """Records that a batched turn had."""

    def rate(self, name: str, found: float) -> None:
        """Keep a rate, if it is the best."""
        self.rates[name] = max(found, self.rates.get(name, 0.0))

    def wait(self, name: str, found_s: float) -> None:
        """Keep a time, if it is the best."""
        self.waits_s[name] = min(found_s, self.waits_s.get(name, found_s))


def run(effort: Effort) -> Iterator[Figure]:
    """1 KiB, durable, with a log in PostgreSQL and its synchronous standby, and without."""
    if program("initdb") is None:
        yield from figures(Measured(), "PostgreSQL is missing: make postgres installs it")
        return
    share = effort.rounds / Effort().rounds
    found = Measured()
    with contextlib.ExitStack() as running:
        directory = running.enter_context(disk_directory())
        databases = Databases(parent=directory.parent)
        running.callback(databases.remove)
        addresses = _start(running, directory, databases)
        for turn in range(TURNS):
            batched, one_by_one = (_job(job, turn, share) for job in (BATCHED, SINGLE))
            for name, address in addresses.items():
                single.prepare(address, batched)
                before = _last(databases)
                rate = run_pair(address, batched, single.produce, single.consume).rate
                found.rate(name, rate)
                if name == REPLICATED:
                    waits_s = append_bare(databases, before)
                    found.records_count = len(waits_s)
                    bare_rate = (batched.count + batched.warm_up) / sum(waits_s)
                    found.bare_rate = max(found.bare_rate, bare_rate)
            for name, address in addresses.items():
                single.prepare(address, one_by_one)
                before = _last(databases)
                (told,) = run_together(address, one_by_one, [produce_alone])
                found.wait(name, statistics.median(told.waits_s))
                if name == REPLICATED:
                    wait_s = statistics.median(append_bare(databases, before))
                    found.bare_wait_s = min(wait_s, found.bare_wait_s or wait_s)
    yield from figures(found)


def _start(running: contextlib.ExitStack, directory: Path, databases: Databases) -> dict[str, str]:
    """Start everybody; gives their addresses."""
    config = directory / "replicated.toml"
    config.write_text(f'[replication]\ndatabase = "{databases.address}"\nmember = "bench"\n')
    alone = ["--no-transfer"]
    wanted = {EMBEDDED: (alone, ""), REPLICATED: ([*alone, "--config", str(config)], "")}
    if before := os.environ.get(BEFORE):
        wanted[_EARLIER] = (alone, before)
    started = {}
    for name, (options, sources) in wanted.items():
        home = directory / name
        serving = single.launch(home, name.upper(), options, sources)
        started[name], _ = running.enter_context(serving)
    return started


def _job(job: Job, turn: int, share: float) -> Job:
    return msgspec.structs.replace(
        job,
        queue=f"{job.queue}-{turn}",
        count=max(10, round(job.count * share)),
        warm_up=max(1, round(job.warm_up * share)),
    )


def produce_alone(address: str, job: Job, gate: Gate) -> list[float]:
    """Send one message after the other, and note how long each took."""
    waits_s = []
    with openmsmq.connect(address) as manager:
        queue = manager.queue(f"private$\\{job.queue}")
        for number in range(job.warm_up + job.count):
            if number == job.warm_up:
                gate.wait()
            start = time.perf_counter()
            queue.send(BODY, recoverable=True)
            waits_s.append(time.perf_counter() - start)
    return waits_s[job.warm_up :]


def _last(databases: Databases) -> int:
    """Return the number of the last record in the log."""
    with psycopg.connect(databases.address) as connection:
        row = connection.execute("SELECT last FROM openmsmq_log").fetchone()
    assert row is not None, "the log has no line"
    return int(row[0])


def append_bare(databases: Databases, after: int) -> list[float]:
    """Append the records of the log behind a number once more, with nothing else around it.

    Each is one transaction, as it was. Gives how long each took.
    """
    waits_s = []
    with psycopg.connect(databases.address, autocommit=True) as connection:
        connection.execute(_BARE)
        asked = "SELECT number, record FROM openmsmq_record WHERE number > %s ORDER BY number"
        records = connection.execute(asked, [after], binary=True).fetchall()
        for number, record in records:
            start = time.perf_counter()
            connection.execute("INSERT INTO bare VALUES (%b, %b)", [number, record], prepare=True)
            waits_s.append(time.perf_counter() - start)
        connection.execute("DROP TABLE bare")
    assert waits_s, "the log has no record of what was sent"
    return waits_s


def figures(found: Measured, missing: str = "") -> Iterator[Figure]:
    """Judge what was found by the bars; `missing` says why nothing was."""
    rates, waits_s = found.rates, found.waits_s

    def judged(name: str, value: tuple[float, float], bar: float, *, at_least: bool) -> Figure:
        ratio = None if missing else value[0] / value[1]
        return Figure(name, ratio, "x", bar=bar, at_least=at_least, note=missing)

    ours, alone = rates.get(REPLICATED, 0.0), rates.get(EMBEDDED, 0.0)
    ours_s, alone_s = waits_s.get(REPLICATED, 0.0), waits_s.get(EMBEDDED, 0.0)
    bare, bare_s = found.bare_rate, found.bare_wait_s
    yield judged("batched, by embedded", (ours, alone), RATE_BAR, at_least=True)
    yield judged("batched, by bare appends", (ours, bare), BARE_BAR, at_least=True)
    yield judged("one send, by embedded", (ours_s, alone_s), LATENCY_BAR, at_least=False)
    yield judged("one send a second, by bare appends", (bare_s, ours_s), BARE_BAR, at_least=True)
    if missing:
        return
    if _EARLIER in rates:
        before = (alone, rates[_EARLIER])
        yield judged("embedded, batched, by before", before, BEFORE_BAR, at_least=True)
        before = (waits_s[_EARLIER], alone_s)
        yield judged("embedded, sends a second, by before", before, BEFORE_BAR, at_least=True)
    note = f"{found.records_count:,} records in the last turn"
    yield Figure("batched, embedded", alone, "messages/s")
    yield Figure("batched, replicated", ours, "messages/s", note=note)
    yield Figure("batched, bare appends", bare, "messages/s")
    yield Figure("one send, embedded, median", alone_s * 1000, "ms")
    yield Figure("one send, replicated, median", ours_s * 1000, "ms")
    yield Figure("one bare append, median", bare_s * 1000, "ms")
