"""What happens before the first batch: the table is made ready, and other checkpoints are heard.

With Spark Connect, none of this can be done where `ingest` is called: the table, the checkpoint
and the queue managers are those of the server. So a task does it there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from openmsmq.spark.errors import BadOption, QueueProblem, TableProblem, sentence_in
from openmsmq.spark.pipelines.ingest.checkpoint import Checkpoint, Mark
from openmsmq.spark.pipelines.ingest.formats import Output
from openmsmq.spark.pipelines.ingest.table import Table
from openmsmq.spark.source.options import Mode, SourceOptions
from openmsmq.spark.source.ranges import RangeReader


class Beginning(msgspec.Struct, frozen=True):
    """A query that is about to start."""

    options: SourceOptions
    output: Output
    checkpoint: str
    schema: Any
    """The columns of its rows, as Arrow calls them."""


def is_remote(spark: SparkSession) -> bool:
    """Whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def begin(spark: SparkSession, job: Beginning) -> pa.Schema:
    """Make the table ready; gives the columns that files must have."""
    if not is_remote(spark):
        return make_ready(job)
    one = spark.range(1).coalesce(1)
    try:
        rows = one.mapInArrow(partial(_as_a_task, job), "schema binary").collect()
    except PySparkException as error:
        sentence = sentence_in(str(error))
        if sentence is None:
            raise
        raise TableProblem(sentence) from None
    return pa.ipc.read_schema(pa.py_buffer(bytes(rows[0]["schema"])))


def _as_a_task(job: Beginning, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in rows:
        schema = make_ready(job).serialize().to_pybytes()
        yield pa.RecordBatch.from_pydict({"schema": [schema]})


def make_ready(job: Beginning) -> pa.Schema:
    """Make the table ready, on this computer."""
    table = job.output.open()
    columns = table.prepare(job.schema)
    if Checkpoint(job.checkpoint).is_new():
        with table.explained():
            _go_on_behind_others(job, table)
    return columns


def _go_on_behind_others(job: Beginning, table: Table) -> None:
    """Let a new checkpoint begin where the table ends.

    What the last batch of another checkpoint has consumed may still be in its queue: Spark says
    that a batch is done only when it plans the next one. The table has it, so it can be taken out.
    """
    marks = table.marks()
    if job.options.mode is Mode.CONSUME:
        _complete(job, [mark for mark in marks if mark.reader == job.options.reader])
    elif marks and job.options.starting_offsets == "earliest" and not job.options.starting_time_s:
        raise BadOption(
            "checkpoint",
            f"{table.path} was written with another one, and messages that are only looked at "
            "would be there twice: give that checkpoint, or begin with the latest message or with "
            "a time",
        )


def _complete(job: Beginning, marks: Sequence[Mark]) -> None:
    """Take out of the queues what the table has.

    Of several checkpoints only the last can have something there: one that was followed by another
    has nothing more to say to the queue manager.
    """
    problems: list[QueueProblem] = []
    reader = RangeReader(job.options)
    try:
        for mark in marks:
            try:
                reader.commit(msgspec.json.decode(mark.offset))
            except QueueProblem as problem:
                problems.append(problem)
    finally:
        reader.stop()
    if problems and len(problems) == len(marks):
        raise problems[-1]
