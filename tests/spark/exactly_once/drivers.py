"""Spark's drivers, checkpoints and sinks for histories, as small as their promises allow.

A driver is a generator that stops between any two steps of Spark's protocol, so that a history
can do something there, let another driver go on, or forget this one: then it is dead.
"""

from __future__ import annotations

import abc
import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from openmsmq.spark.errors import SparkSideError
from openmsmq.spark.sink.options import read_sink_options
from openmsmq.spark.sink.writers import StreamWriter
from openmsmq.spark.source.options import read_source_options
from openmsmq.spark.source.stream_reader import StreamReader
from tests.spark.exactly_once.world import Store

Rows = list[pa.RecordBatch]
Task = Callable[[], Rows]


class Superseded(Exception):
    """Spark's own error: another driver has written to this checkpoint or output meanwhile."""


class Checkpoint:
    """What Spark keeps of a query, with the id that it gives to a new one."""

    def __init__(self, identifier: str) -> None:
        self.id = identifier
        self.offsets: dict[int, str] = {}
        self.commits: set[int] = set()

    def copy(self) -> Checkpoint:
        copied = Checkpoint(self.id)
        copied.offsets = dict(self.offsets)
        copied.commits = set(self.commits)
        return copied

    def note(self, batch: int, offset: str) -> None:
        if batch in self.offsets:
            raise Superseded(f"offsets of batch {batch}")
        self.offsets[batch] = offset

    def commit(self, batch: int) -> None:
        if batch in self.commits:
            raise Superseded(f"commit of batch {batch}")
        self.commits.add(batch)

    @contextlib.contextmanager
    def on_disk(self, batch: int) -> Iterator[str]:
        """Let the files be where Spark has them of a batch that runs, for as long as a block does.

        Gives the location.
        """
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder)
            (path / "metadata").write_text(json.dumps({"id": self.id}))
            (path / "offsets").mkdir()
            (path / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{self.offsets[batch]}")
            yield folder


class Output(abc.ABC):
    """Where a query writes; it lives apart from the checkpoint."""

    @abc.abstractmethod
    def write(self, checkpoint: Checkpoint, batch: int, tasks: list[Task]) -> Iterator[str]:
        """Write a batch, step by step."""

    @abc.abstractmethod
    def rows(self) -> list[int]:
        """Return the numbers of the messages that were written."""


class FileOutput(Output):
    """Spark's file sink: a batch whose number is not above the last in its log is skipped."""

    def __init__(self) -> None:
        self._log: dict[int, list[int]] = {}

    def write(self, checkpoint: Checkpoint, batch: int, tasks: list[Task]) -> Iterator[str]:  # noqa: ARG002
        if batch <= max(self._log, default=-1):
            return
        found: list[int] = []
        for task in tasks:
            found += _numbers(task())
            yield "task"
        if batch in self._log:
            raise Superseded(f"log of the output, batch {batch}")
        self._log[batch] = found

    def rows(self) -> list[int]:
        return [number for rows in self._log.values() for number in rows]


class ForeachOutput(Output):
    """A function for `foreachBatch` that does not write a batch whose number it has seen."""

    def __init__(self) -> None:
        self._seen: dict[int, list[int]] = {}

    def write(self, checkpoint: Checkpoint, batch: int, tasks: list[Task]) -> Iterator[str]:  # noqa: ARG002
        if batch in self._seen:
            return
        found: list[int] = []
        for task in tasks:
            found += _numbers(task())
            yield "task"
        # Its database has the number as a key.
        self._seen.setdefault(batch, found)

    def rows(self) -> list[int]:
        return [number for rows in self._seen.values() for number in rows]


class QueueOutput(Output):
    """The sink of the data source, with a name of the query or without."""

    def __init__(self, store: Store, queue: str, name: str) -> None:
        self.store = store
        self.queue = queue
        self.name = name

    def write(self, checkpoint: Checkpoint, batch: int, tasks: list[Task]) -> Iterator[str]:
        ready: list[Any] = []
        try:
            for place, task in enumerate(tasks):
                rows = map(_sent_on, task())
                with _task(checkpoint.id, batch, place):
                    ready.append(self._writer().write(iter(list(rows))))
                yield "task"
            with checkpoint.on_disk(batch) as location:
                self._writer(location).commit(ready, batch)
        except SparkSideError:
            self._writer().abort(ready, batch)
            raise

    def _writer(self, location: str = "") -> StreamWriter:
        options = {"qm": self.store.address, "queue": self.queue, "query": self.name}
        options["checkpointLocation"] = location
        chosen = {name: name for name in ("body", "application_tag")}
        return StreamWriter(read_sink_options(options), chosen)

    def rows(self) -> list[int]:
        return self.store.numbers(self.queue)


@contextlib.contextmanager
def _task(query: str, batch: int, partition: int) -> Iterator[None]:
    """Tell a task about its query as Spark does, for as long as a block runs."""
    properties = {"sql.streaming.queryId": query, "streaming.sql.batchId": str(batch)}
    TaskContext(partitionId=partition, localProperties=properties)
    try:
        yield
    finally:
        TaskContext._setTaskContext(None)  # noqa: SLF001


def _numbers(rows: Rows) -> list[int]:
    return [number for batch in rows for number in batch.column("application_tag").to_pylist()]


def _sent_on(batch: pa.RecordBatch) -> pa.RecordBatch:
    numbers = batch.column("application_tag")
    bodies = pa.array(["seen"] * batch.num_rows, pa.string())
    return pa.RecordBatch.from_arrays([bodies, numbers], ["body", "application_tag"])


class Driver:
    """One life of a driver: `step` lets it come to the next place where something may happen."""

    def __init__(
        self, checkpoint: Checkpoint, output: Output, options: Mapping[str, str], *, now: bool
    ) -> None:
        self._checkpoint = checkpoint
        # It reads the checkpoint when it starts, and then only writes to it.
        self._known = checkpoint.copy()
        self._output = output
        self._reader = StreamReader(read_source_options(options))
        self._now = now
        self._steps = self._run()

    def step(self) -> str:
        """Go on; gives where it is then, and `ended` if it has nothing more to do."""
        return next(self._steps, "ended")

    def die(self) -> None:
        """End it where it is; the system closes its connections."""
        self._steps.close()
        self._reader.stop()

    def _run(self) -> Iterator[str]:
        if self._now:
            self._reader.prepareForTriggerAvailableNow()
            yield "prepared"
        while True:
            last = max(self._known.offsets, default=-1)
            if last in self._known.commits or last < 0:
                planned = yield from self._construct(last + 1)
                if planned is None:
                    if self._now:
                        return
                    yield "idle"
                    continue
                last = planned
            yield from self._process(last)

    def _construct(self, batch: int) -> Any:
        start = self._start(batch)
        yield "began"
        end = self._reader.latestOffset(start, self._reader.getDefaultReadLimit())
        yield "reserved"
        if batch and end == start:
            return None
        self._note(batch, end)
        yield "noted"
        if batch:
            self._reader.commit(start)
            yield "completed"
        return batch

    def _note(self, batch: int, end: Any) -> None:
        text = json.dumps(end)
        self._checkpoint.note(batch, text)
        self._known.note(batch, text)

    def _process(self, batch: int) -> Iterator[str]:
        start = self._start(batch)
        yield "planned"
        parts = self._reader.partitions(start, json.loads(self._known.offsets[batch]))
        yield "split"
        tasks = [self._reading(batch, place, part) for place, part in enumerate(parts)]
        yield from self._output.write(self._checkpoint, batch, tasks)
        yield "written"
        self._checkpoint.commit(batch)
        self._known.commit(batch)
        yield "committed"

    def _start(self, batch: int) -> Any:
        before = self._known.offsets.get(batch - 1)
        if before is None:
            return json.loads(json.dumps(self._reader.initialOffset()))
        return json.loads(before)

    def _reading(self, batch: int, place: int, part: Any) -> Task:
        def read() -> Rows:
            with _task(self._checkpoint.id, batch, place):
                return list(self._reader.read(part))

        return read
