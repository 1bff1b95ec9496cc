"""Tasks of Spark without Spark: processor time of a task and of its queue manager for each message.

Wall clocks say little on a machine that does other work, and Java's compiler adds its own. So what
tasks do is done here in one process: read a backlog, copy it into files as `ingest` does, and write
rows to a queue. Counted is the time of cores that each of the two processes takes for a message.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import openmsmq
from bench.cores import used_by_s
from bench.measure import Effort, Figure
from bench.peers.openmsmq import fill, launch
from bench.peers.pair import BODY_BYTES
from bench.peers.process import disk_directory
from bench.trees import trees

if TYPE_CHECKING:
    import pyarrow as pa

COUNT: Final = 200_000
TRIALS: Final = 4
TASKS: Final = 4
ROWS: Final = 10_000
"""Rows of the record batches that Spark gives to a sink, if nobody sets it otherwise."""
JOBS: Final = ("read", "ingest", "write bodies", "write labels", "write to a growing queue")

_SEED: Final = 13
_READ: Final = r"private$\backlog"
_WRITTEN: Final = r"private$\written"
_GROWN: Final = r"private$\grown"
"""From which nothing is taken: the store has to move its messages to where it keeps them."""

Taken: TypeAlias = dict[str, float]
"""Microseconds of a core for each message, by who took them."""


def run(effort: Effort) -> Iterator[Figure]:
    """Let tasks read, copy and write messages of 1 KiB; with another tree in turn, if asked."""
    count = max(10_000, round(COUNT * effort.rounds / Effort().rounds))
    with (
        disk_directory() as directory,
        trees("bench.spark_tasks", directory, lambda own: [str(own), str(count)]) as made,
    ):
        for job in JOBS:
            turns: list[list[Taken]] = [[] for _ in made]
            for _ in range(TRIALS):
                for (ask, _process), taken in zip(made, turns, strict=True):
                    taken.append(json.loads(ask(job)))
            best = [{who: min(one[who] for one in taken) for who in taken[0]} for taken in turns]
            for who, now_us in best[0].items():
                yield Figure(f"{job}: {who}", now_us, "µs")
                if len(best) > 1:
                    yield Figure("  by before", now_us / best[1][who], "times")


# In the process of a tree.


def _serve(own: Path, count: int) -> None:
    """Run the jobs whose names come in, and say what each took."""
    with launch(own / "manager", "A", ["--no-transfer"]) as (address, manager):
        with openmsmq.connect(address) as connection:
            connection.create_queue(_READ)
            connection.create_queue(_WRITTEN, transactional=True)
            connection.create_queue(_GROWN, transactional=True)
        for _ in fill(address, "backlog", count):
            pass
        jobs = _jobs(address, own, count)
        for line in sys.stdin:
            used_s, task_s = used_by_s([manager]), time.process_time()
            jobs[line.strip()]()
            taken_s = {
                "task": time.process_time() - task_s,
                "queue manager": used_by_s([manager]) - used_s,
            }
            taken_us = {who: one_s / count * 1e6 for who, one_s in taken_s.items()}
            print(json.dumps(taken_us), flush=True)
            with openmsmq.connect(address) as connection:
                connection.queue(_WRITTEN).purge()


def _jobs(address: str, own: Path, count: int) -> dict[str, Callable[[], None]]:
    """Return what can be done, each with as many messages as there are."""
    import pyarrow as pa

    from openmsmq.spark.pipelines.ingest import PARTITION_BY
    from openmsmq.spark.pipelines.ingest.copying import DATE, Copying, copy
    from openmsmq.spark.schema import arrow_schema
    from openmsmq.spark.source.options import read_source_options
    from openmsmq.spark.source.queue_range import QueueRange
    from openmsmq.spark.source.reading import read_range

    options = read_source_options({"qm": address, "queue": _READ})
    # Arrival numbers begin at 1 in a new queue manager.
    bounds = [1 + count * place // TASKS for place in range(TASKS + 1)]
    ranges = [QueueRange(address, _READ, low, high) for low, high in pairwise(bounds)]

    def read() -> None:
        assert sum(batch.num_rows for each in ranges for batch in read_range(options, each)) == (
            count
        )

    def ingest() -> None:
        staging = own / "staging"
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir()
        schema = arrow_schema().append(pa.field(DATE, pa.date32()))
        for each in ranges:
            copy(Copying(options, str(staging), PARTITION_BY, schema), [each])

    rows = _rows(count // TASKS)
    bodies = [batch.select(["body"]) for batch in rows]
    return {
        "read": read,
        "ingest": ingest,
        "write bodies": lambda: _write(address, _WRITTEN, bodies),
        "write labels": lambda: _write(address, _WRITTEN, rows),
        "write to a growing queue": lambda: _write(address, _GROWN, bodies),
    }


def _rows(count: int) -> list[pa.RecordBatch]:
    """Make the rows that one task gets."""
    import pyarrow as pa

    chance = random.Random(_SEED)
    return [
        pa.record_batch(
            {
                "body": pa.array([chance.randbytes(BODY_BYTES) for _ in numbers], pa.binary()),
                "label": pa.array([f"message {number}" for number in numbers]),
            }
        )
        for numbers in (range(start, min(start + ROWS, count)) for start in range(0, count, ROWS))
    ]


def _write(address: str, queue: str, rows: list[pa.RecordBatch]) -> None:
    from openmsmq.spark.sink.options import read_sink_options
    from openmsmq.spark.sink.writers import BatchWriter

    writer = BatchWriter(
        read_sink_options({"qm": address, "queue": queue}),
        {name: name for name in rows[0].schema.names},
    )
    writer.commit([writer.write(iter(rows)) for _ in range(TASKS)])


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), int(sys.argv[2]))
