r"""The Spark job that is killed: two streams, one into a table and one from queue to many queues.

    python -c 'from tests.spark.exactly_once.driver import main; main()' '{"qm": "127.0.90.1", ...}'

It says `ready` on its output when both streams run. `drain` on its input lets it process what is
there, to the end, and say `drained`. Tasks fail on purpose at their first attempt: in the middle,
and after the sink has prepared its part.
"""

from __future__ import annotations

import hashlib
import os
import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from openmsmq.spark.errors import sentence_in
from openmsmq.spark.pipelines import ingest
from openmsmq.spark.pipelines.ingest import copying as ingest_copying
from openmsmq.spark.pipelines.ingest.copying import Copying
from openmsmq.spark.session import make_session
from openmsmq.spark.sink.messages_from_rows import chosen_columns
from openmsmq.spark.sink.options import read_sink_options
from openmsmq.spark.sink.writers import Parts, StreamWriter
from openmsmq.spark.source import queue_range
from openmsmq.spark.source.data_source import MsmqDataSource
from openmsmq.spark.source.ranges import RangeReader, RangeSource
from openmsmq.spark.source.stream_reader import StreamReader

PLAIN, TRANSACTED, OUT = r"private$\in", r"private$\tx-in", r"private$\out"
PLAIN_COLUMNS = "queue,arrived_time,arrival_number,label,body,priority,application_tag"
TABLE, TABLE_CHECKPOINT, QUEUE_CHECKPOINT = "table", "to-table", "to-queue"
STUMBLES, SLEPT = "stumbles", "slept"

_QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss4m"


def target(number: object) -> str:
    """Return the name of one of the queues to which rows go."""
    return rf"private$\out-{number}"


class Job(msgspec.Struct, frozen=True):
    """What the job is told on its command line."""

    qm: str
    folder: str
    """Where the table, the checkpoints and the notes about failures on purpose are."""
    master: str = "local[2,4]"
    batch_messages: int = 200
    fail_one_in: int = 3
    """Of so many partitions, one fails at its first attempt; 0 for none."""
    slow_s: float = 0.0
    """How long such a partition of the sink is idle before it fails, so that Spark speculates."""
    task_messages: int = 100
    """Messages that are worth a task of their own."""
    format: str = "parquet"
    """Of the table."""
    sources: tuple[str, ...] = (TRANSACTED,)
    target_count: int = 100
    """The queues among which the rows of the second stream are dealt out."""
    settings: dict[str, str] = {}

    def at(self, name: str) -> str:
        """Return the path of something in the folder."""
        return str(Path(self.folder) / name)


def stumble(job: Job, where: str) -> str:
    """Return the place, batch and part of this attempt if it is to fail, and note it; else ""."""
    context = TaskContext.get()
    if context is None or context.attemptNumber() > 0 or not job.fail_one_in:
        return ""
    batch = context.getLocalProperty("streaming.sql.batchId")
    attempt = f"{where} {batch} {context.partitionId()}"
    if hashlib.sha256(attempt.encode()).digest()[0] % job.fail_one_in:
        return ""
    note(job, STUMBLES, attempt)
    return attempt


def note(job: Job, file: str, text: str) -> None:
    """Add a line to a file, with the folder of the executor that this runs for."""
    with open(job.at(file), "ab", buffering=0) as notes:
        notes.write(f"{text}\t{Path.cwd()}\n".encode())


def stumbling(job: Job, frame: DataFrame, where: str) -> DataFrame:
    """Return the same rows, by tasks some of which fail when they have given some."""

    def step(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        unlucky = stumble(job, where)
        for batch in batches:
            yield batch
            if unlucky:
                raise RuntimeError("failed on purpose, in the middle")

    return frame.mapInArrow(step, frame.schema)


class StumblingWriter(StreamWriter):
    """A sink some of whose tasks fail when all their messages are prepared."""

    job: Job

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Parts:
        parts = super().write(iterator)
        if unlucky := stumble(self.job, "sink"):
            # This is long enough for a second attempt elsewhere to overtake it.
            time.sleep(self.job.slow_s)
            note(self.job, SLEPT, unlucky)
            raise RuntimeError("failed on purpose, after preparing")
        return parts


def stumbling_source(job: Job) -> type[MsmqDataSource]:
    """Make the data source `stumbling_msmq`; it also splits short batches among tasks."""

    class StumblingSource(MsmqDataSource):
        @classmethod
        def name(cls) -> str:
            return "stumbling_msmq"

        def streamReader(self, schema: StructType) -> StreamReader:
            queue_range.TASK_MIN_COUNT = job.task_messages  # type: ignore[misc]
            return super().streamReader(schema)

        def streamWriter(self, schema: StructType, overwrite: bool) -> StumblingWriter:
            assert not overwrite
            options = read_sink_options(self.options)
            writer = StumblingWriter(options, chosen_columns(schema, options.columns))
            writer.job = job
            return writer

    return StumblingSource


def stumble_in_ingest(job: Job) -> None:
    """Let tasks of `ingest` fail before they have told of their files, some after a while."""

    class StumblingRanges(RangeSource):
        def streamReader(self, schema: StructType) -> RangeReader:
            queue_range.TASK_MIN_COUNT = job.task_messages  # type: ignore[misc]
            return super().streamReader(schema)

    def copy_ranges(copying: Copying, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        unlucky = stumble(job, "table")
        for told in ingest_copying.copy_ranges(copying, rows):
            if unlucky:
                # Real time passes in Spark's other processes: a second attempt may overtake it.
                time.sleep(job.slow_s)
                note(job, SLEPT, unlucky)
                raise RuntimeError("failed on purpose, after writing a file")
            yield told

    ingest.RangeSource = StumblingRanges  # type: ignore[misc]
    ingest.copy_ranges = copy_ranges


def reading(session: SparkSession, job: Job, queue: str, columns: str) -> DataFrame:
    """Read a queue as a stream of small batches."""
    return (
        session.readStream.format("stumbling_msmq")
        .option("qm", job.qm)
        .option("queue", queue)
        .option("columns", columns)
        .option("maxMessagesPerTrigger", job.batch_messages)
        .load()
    )


def start_both(session: SparkSession, job: Job, *, now: bool) -> list[StreamingQuery]:
    """Start the streams: for ever, or until all is processed that is there now."""
    how = {"availableNow": True} if now else {"processingTime": "0 seconds"}
    table = ingest.ingest(
        session,
        {
            "qm": job.qm,
            "queue": PLAIN,
            "columns": PLAIN_COLUMNS,
            "maxMessagesPerTrigger": str(job.batch_messages),
        },
        job.at(TABLE),
        checkpoint=job.at(TABLE_CHECKPOINT),
        format=job.format,
        every_s=None if now else 0.0,
    )
    columns = "arrival_number,label,text,application_tag"
    rows = stumbling(job, reading(session, job, ",".join(job.sources), columns), "queue")
    queue = (
        rows.selectExpr(
            "concat('seen ', text) AS body",
            "concat(label, '@', arrival_number) AS label",
            "application_tag",
            f"concat(r'{target('')}', application_tag % {job.target_count}) AS target",
        )
        .writeStream.format("stumbling_msmq")
        .option("qm", job.qm)
        .option("queueColumn", "target")
        .option("checkpointLocation", job.at(QUEUE_CHECKPOINT))
        .trigger(**how)
        .start()
    )
    return [table, queue]


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def run(job: Job) -> None:
    """Run the streams until `drain` comes, then to the end of what is there."""
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": job.at("warehouse"),
        "spark.driver.extraJavaOptions": _QUICK_START,
        "spark.executor.extraJavaOptions": _QUICK_START,
        "spark.sql.streaming.stopTimeout": "60s",
    }
    session = make_session("exactly once", job.master, settings | job.settings)
    session.dataSource.register(stumbling_source(job))
    stumble_in_ingest(job)
    queries = start_both(session, job, now=False)
    say("ready")
    while not select.select([sys.stdin], [], [], 0.5)[0]:
        for query in queries:
            raise_failure(query)
    for query in queries:
        raise_failure(query)
        query.stop()
    for query in start_both(session, job, now=True):
        query.awaitTermination()
    say("drained")
    session.stop()


def raise_failure(query: StreamingQuery) -> None:
    """Tell of a stream that has ended by itself."""
    error = query.exception()
    if error is not None:
        raise error


def main() -> None:
    """Run the job of the command line."""
    try:
        run(msgspec.json.decode(sys.argv[1], type=Job))
    except Exception as error:
        busy = "Python worker failed to connect back" in str(error)
        say("too busy" if busy else f"failed: {sentence_in(str(error)) or error}")
        raise
