"""Spark's protocol without Spark: hundreds of crashes in the time that Spark needs to start.

It plays what Spark's micro-batches do, step by step, with the real readers and writers and a real
queue manager: write down where a batch ends, let tasks read and write, commit, write that down,
tell the source. Between any two steps the driver may die; tasks fail, run twice, or go on when
their driver is dead.
"""

from __future__ import annotations

import abc
import contextlib
import functools
import json
import random
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

import openmsmq as mq
from openmsmq.spark.errors import DataLost, QueueProblem, TableProblem
from openmsmq.spark.pipelines.ingest.beginning import Beginning, make_ready
from openmsmq.spark.pipelines.ingest.checkpoint import Checkpoint
from openmsmq.spark.pipelines.ingest.copying import Copying, copy_ranges
from openmsmq.spark.pipelines.ingest.files import Staged
from openmsmq.spark.pipelines.ingest.formats import Output
from openmsmq.spark.schema import arrow_schema
from openmsmq.spark.sink.options import read_sink_options
from openmsmq.spark.sink.writers import Parts, StreamWriter
from openmsmq.spark.source.options import read_source_options
from openmsmq.spark.source.ranges import RangeReader
from openmsmq.spark.source.stream_reader import StreamReader
from tests.spark.exactly_once.driver import OUT, PLAIN, TRANSACTED
from tests.spark.exactly_once.harness import (
    Manager,
    queue_rows,
    require_empty,
    require_no_strays,
    table_rows,
)
from tests.spark.exactly_once.senders import Senders

CRASH_SHARE = 0.05
"""How often a driver dies at each step."""
DANGEROUS = {"written": 0.15, "noted": 0.1} | {
    f"table {step}": 0.15 for step in ("noted", "published")
}
"""Steps between two notes that must agree: there it dies more often."""
FAILURE_SHARE = 0.15
BATCH_MESSAGES = 120
HAUNT_SHARE = 0.1
MEDDLE_SHARE = 0.1
"""How often somebody meddles with the checkpoint of a table between two drivers."""
BATCHES_MAX_COUNT = 8
"""In one life of a driver."""


class Crashed(Exception):
    """The driver is dead."""


class Query(abc.ABC):
    """A stream, and what its checkpoint has kept of it; each `live` is one life of its driver."""

    reader_type = StreamReader

    def __init__(self, name: str, rng: random.Random, options: dict[str, str]) -> None:
        self.name = name
        self.rng = rng
        self.options = options | {"maxMessagesPerTrigger": str(BATCH_MESSAGES)}
        self.offsets: dict[int, str] = {}
        self.commits: set[int] = set()
        self.crashes: Counter[str] = Counter()
        self.safe = False
        """Whether nothing goes wrong any more."""

    def step(self, name: str) -> None:
        """Perhaps die here."""
        if not self.safe and self.rng.random() < DANGEROUS.get(name, CRASH_SHARE):
            self.crashes[name] += 1
            raise Crashed(name)

    def is_unlucky(self) -> bool:
        """Whether something else goes wrong now."""
        return not self.safe and self.rng.random() < FAILURE_SHARE

    def live(self, batches: int, *, now: bool = False) -> int:
        """Start a driver and let it run for so many batches; gives how many it has processed."""
        reader = self.reader_type(read_source_options(self.options))
        try:
            self.begin()
            if now:
                reader.prepareForTriggerAvailableNow()
            for done in range(batches):
                if not self._batch(reader):
                    return done
            return batches
        finally:
            # The connections of a process end with it, however it ends.
            reader.stop()

    def _batch(self, reader: StreamReader) -> bool:
        last = max(self.offsets, default=-1)
        if last in self.commits or last < 0:
            if not self._construct(reader, last + 1):
                return False
            last += 1
        self.step("planned")
        start = self._offset(last - 1) or reader.initialOffset()
        parts = reader.partitions(start, self._offset(last))
        self.step("split")
        self.write(last, [functools.partial(reader.read, part) for part in parts])
        self.step("written")
        self.commits.add(last)
        return True

    def _construct(self, reader: StreamReader, number: int) -> bool:
        start = self._offset(number - 1) or reader.initialOffset()
        self.step("began")
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        self.step("reserved")
        if number and end == start:
            return False
        self.offsets[number] = json.dumps(end)
        self.noted(number)
        self.step("noted")
        if number:
            reader.commit(start)
        return True

    def _offset(self, number: int) -> Any:
        return json.loads(self.offsets[number]) if number in self.offsets else None

    def noted(self, number: int) -> None:
        """Write down the end of a batch where others look for it, too."""
        assert number in self.offsets

    @abc.abstractmethod
    def begin(self) -> None:
        """Do what a driver does before its first batch."""

    @abc.abstractmethod
    def haunt(self) -> int:
        """Let tasks of dead drivers go on; gives how many have done something."""

    @abc.abstractmethod
    def write(self, batch: int, tasks: list[Callable[[], Iterator[pa.RecordBatch]]]) -> None:
        """Write a batch."""


class ToTable(Query):
    """Into a table, as `ingest` does it where tasks copy ranges."""

    reader_type = RangeReader

    def __init__(
        self, rng: random.Random, options: dict[str, str], path: Path, format: str
    ) -> None:
        columns = "queue,arrived_time,arrival_number,label,body,priority,application_tag"
        super().__init__("table", rng, options | {"columns": columns})
        self.place = Output(format, str(path), ("queue", "date"))
        self.path = path
        self._checkpoint = path.with_name("checkpoint")
        self._copy = path.with_name("copy")
        self._read = read_source_options(self.options)
        self.stopped: Counter[str] = Counter()
        """How often a wrong checkpoint was noticed."""
        self._ghosts: list[Callable[[], list[Staged]]] = []
        """Attempts of tasks that have not begun when their driver dies."""

    # The checkpoint is on the disk, as Spark writes it: the table looks into it.

    def noted(self, number: int) -> None:
        (self._checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
        metadata = self._checkpoint / "metadata"
        if not metadata.exists():
            metadata.write_text(json.dumps({"id": f"{self.rng.randbytes(8).hex()}"}))
        text = f"v1\n{{}}\n{self.offsets[number]}"
        (self._checkpoint / "offsets" / str(number)).write_text(text)

    def forget(self) -> None:
        """Delete the checkpoint."""
        shutil.rmtree(self._checkpoint, ignore_errors=True)
        self.offsets, self.commits = {}, set()

    def with_an_old_copy(self) -> None:
        """Go on for a batch as with a copy of the checkpoint that was made earlier."""
        now = (self.offsets, self.commits)
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self._checkpoint, self._copy)
        kept = self.rng.randrange(max(self.offsets))
        self.offsets = {number: text for number, text in self.offsets.items() if number <= kept}
        self.commits = set(self.offsets)
        for number in now[0]:
            if number > kept:
                (self._checkpoint / "offsets" / str(number)).unlink()
        try:
            self.live(1)
        except (TableProblem, DataLost, QueueProblem) as problem:
            if isinstance(problem, QueueProblem) and "older copy" not in str(problem):
                raise
            self.stopped[type(problem).__name__] += 1
        self.offsets, self.commits = now
        shutil.rmtree(self._checkpoint)
        self._copy.rename(self._checkpoint)

    def begin(self) -> None:
        schema = arrow_schema(self._read.columns).append(pa.field("date", pa.date32()))
        ready = make_ready(Beginning(self._read, self.place, str(self._checkpoint), schema))
        self._table = self.place.open()
        self._copying = Copying(
            self._read, str(self._table.staging), self.place.partition_by, ready.columns
        )
        # Nothing of a batch that was cut off is left.
        require_no_strays(self.path, self.place.format)

    def write(self, batch: int, tasks: list[Callable[[], Iterator[pa.RecordBatch]]]) -> None:
        mark = Checkpoint(str(self._checkpoint)).mark(batch, self._read.reader)
        if self._table.has(mark):
            return
        files: list[Staged] = []
        for task in tasks:
            self.step("task")
            files += self._run(functools.partial(self._attempt, task))
        self.rng.shuffle(files)
        with contextlib.closing(self._table.publishing(mark, files)) as steps:
            for done in steps:
                self.step(f"table {done}")

    def _attempt(self, task: Callable[[], Iterator[pa.RecordBatch]]) -> list[Staged]:
        told = list(copy_ranges(self._copying, task()))
        return [Staged(**row) for rows in told for row in rows.to_pylist()]

    def _run(self, attempt: Callable[[], list[Staged]]) -> list[Staged]:
        while self.is_unlucky():
            self._ghosts.append(attempt)
        while self.is_unlucky():
            # It came to its end, and Spark took another one.
            attempt()
        if self.is_unlucky():
            (self._table.staging / "cut-off").write_bytes(b"PAR1")
        return attempt()

    def haunt(self) -> int:
        count = 0
        while self._ghosts:
            ghost = self._ghosts.pop(self.rng.randrange(len(self._ghosts)))
            # What it was to read may be completed by now; then it gets nothing.
            with contextlib.suppress(QueueProblem):
                count += bool(ghost())
        return count


class ToQueue(Query):
    """Into a queue, through the sink."""

    def __init__(self, rng: random.Random, options: dict[str, str], out: str) -> None:
        columns = "arrival_number,label,text,application_tag"
        super().__init__("queue", rng, options | {"columns": columns})
        self._out = read_sink_options({"qm": options["qm"], "queue": out})
        self._ghosts: list[Callable[[], Parts]] = []
        """Tasks of dead drivers that have not prepared what they read."""

    def begin(self) -> None:
        """Nothing: the queue manager knows what was committed."""

    def write(self, batch: int, tasks: list[Callable[[], Iterator[pa.RecordBatch]]]) -> None:
        sink = self._writer()
        ready: list[WriterCommitMessage | None] = []
        try:
            for partition, task in enumerate(tasks):
                ready.append(self._run(batch, partition, list(task())))
                self.step("task")
            self.rng.shuffle(ready)
            sink.commit(ready, batch)
        except QueueProblem:
            sink.abort(ready, batch)
            raise

    def _run(self, batch: int, partition: int, rows: list[pa.RecordBatch]) -> Parts:
        def attempt() -> Parts:
            properties = {"sql.streaming.queryId": self.name, "streaming.sql.batchId": str(batch)}
            TaskContext(partitionId=partition, localProperties=properties)
            try:
                return self._writer().write(map(_seen, rows))
            finally:
                # Only tasks have one.
                TaskContext._setTaskContext(None)  # noqa: SLF001

        while self.is_unlucky():
            self._ghosts.append(attempt)
        parts = attempt()
        while self.is_unlucky():
            # The first one has failed after all, or was too slow.
            parts = attempt()
        return parts

    def haunt(self) -> int:
        """Let tasks of dead drivers go on; gives how many have prepared something."""
        count = 0
        while self._ghosts:
            ghost = self._ghosts.pop(self.rng.randrange(len(self._ghosts)))
            # The query may have gone on: then what a ghost has is older, and refused.
            with contextlib.suppress(QueueProblem):
                count += bool(ghost().units)
        return count

    def _writer(self) -> StreamWriter:
        chosen = {name: name for name in ("body", "label", "application_tag")}
        return StreamWriter(self._out, chosen)


class Rehearsal:
    """A run: a queue manager, senders, and two streams whose drivers die all the time."""

    def __init__(self, folder: Path, seed: int, format: str = "parquet") -> None:
        self.rng = random.Random(seed)
        self.manager = Manager(folder)
        address = self.manager.address
        self.senders = Senders(address, seed, pause_s=0.01)
        with mq.connect(address) as manager:
            manager.create_queue(PLAIN)
            for name in (TRANSACTED, OUT):
                manager.create_queue(name, transactional=True)
        self.table = ToTable(self.rng, {"qm": address, "queue": PLAIN}, folder / "table", format)
        self.queue = ToQueue(self.rng, {"qm": address, "queue": TRANSACTED}, OUT)
        self.haunted = 0
        self.forgotten = 0
        self.manager_kills: Counter[str] = Counter()

    def run(self, lives: int, manager_kills: int) -> dict[str, object]:
        """Let drivers live and die; then process the rest, compare, and give the figures.

        So often the queue manager is killed under a living driver, and as often when a driver has
        died that had written a batch and not yet noted it.
        """
        try:
            self.senders.start(PLAIN, (TRANSACTED,))
            strikes = set(self.rng.sample(range(lives), manager_kills))
            for number in range(lives):
                with self._manager_killed() if number in strikes else contextlib.nullcontext():
                    died = self._life()
                if died == "written" and self.manager_kills["between drivers"] < manager_kills:
                    self._restart_manager("between drivers")
            self.senders.stop()
            self._drain()
            return self._check()
        finally:
            with contextlib.suppress(BaseException):
                self.senders.stop()
            self.manager.kill()

    def _life(self) -> str:
        """Let a driver live; gives where it died."""
        died = ""
        try:
            query = self.rng.choice((self.table, self.queue))
            if query is self.table:
                self._meddle()
            query.live(self.rng.randint(1, BATCHES_MAX_COUNT))
        except Crashed as death:
            died = f"{death}"
        if self.rng.random() < HAUNT_SHARE:
            self.haunted += query.haunt()
        return died

    def _meddle(self) -> None:
        """Perhaps delete the checkpoint of the table, or go on with an older copy of it."""
        if self.rng.random() < MEDDLE_SHARE:
            self.forgotten += 1
            self.table.forget()
            # The command takes out what the table has. What it is told to do then gives back what
            # was reserved for batches that the table does not have.
            self.table.begin()
            with mq.connect(self.manager.address) as manager:
                manager.release(PLAIN)
        elif max(self.table.offsets, default=0) > 0 and self.rng.random() < MEDDLE_SHARE:
            self.table.with_an_old_copy()

    @contextlib.contextmanager
    def _manager_killed(self) -> Iterator[None]:
        """Kill the queue manager at some moment of a block."""
        delay_s = self.rng.uniform(0, 0.3)
        killer = threading.Timer(delay_s, self._restart_manager, ("under a driver",))
        killer.start()
        yield
        killer.join()

    def _restart_manager(self, when: str) -> None:
        self.manager_kills[when] += 1
        self.manager.kill()
        self.manager.start_later()

    def _drain(self) -> None:
        for query in (self.table, self.queue):
            query.safe = True
            while query.live(1000, now=True):
                pass
            self.haunted += query.haunt()

    def _check(self) -> dict[str, object]:
        rows = list(table_rows(self.table.path, self.table.place.format))
        self.senders.plain.check_table(rows)
        found = list(queue_rows(self.manager.address, OUT))
        self.senders.transacted.check_queues([found])
        require_empty(self.manager.address, (PLAIN, TRANSACTED))
        return {
            "rows in the table": len(rows),
            "messages in the queue": len(found),
            "batches": len(self.table.commits) + len(self.queue.commits),
            "drivers killed": self.table.crashes.total() + self.queue.crashes.total(),
            "queue manager kills": dict(self.manager_kills),
            "parts of dead drivers": self.haunted,
            "checkpoints deleted": self.forgotten,
            "old checkpoints noticed": dict(self.table.stopped),
            "where drivers died": dict(sorted((self.table.crashes + self.queue.crashes).items())),
        }


def _seen(rows: pa.RecordBatch) -> pa.RecordBatch:
    """What the job does between source and sink."""
    return pa.RecordBatch.from_pylist(
        [
            {
                "body": f"seen {row['text']}",
                "label": f"{row['label']}@{row['arrival_number']}",
                "application_tag": row["application_tag"],
            }
            for row in rows.to_pylist()
        ]
    )
