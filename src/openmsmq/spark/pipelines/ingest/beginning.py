"""What happens before the first batch: the table is made ready, and other checkpoints are heard.

With Spark Connect, none of this can be done where `ingest` is called: the table, the checkpoint
and the queue managers are those of the server. So a task does it there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from openmsmq.spark.connecting import explained
from openmsmq.spark.errors import BadOption, QueueGone, QueueTaken, TableProblem, sentence_in
from openmsmq.spark.paths import is_remote
from openmsmq.spark.pipelines.ingest.checkpoint import Checkpoint, Mark
from openmsmq.spark.pipelines.ingest.formats import Output
from openmsmq.spark.pipelines.ingest.table import Table
from openmsmq.spark.source.offsets import Spot, from_offset, problem_with
from openmsmq.spark.source.options import Mode, SourceOptions
from openmsmq.spark.source.queues import Managers, Source, home_of
from openmsmq.spark.source.ranges import RangeReader
from openmsmq.spark.source.reservations import LeftOut


class Beginning(msgspec.Struct, frozen=True):
    """A query that is about to start."""

    options: SourceOptions
    output: Output
    checkpoint: str
    schema: Any
    """The columns of its rows, as Arrow calls them."""


class Ready(msgspec.Struct, frozen=True):
    """What a query has to know when its table is ready."""

    columns: Any
    """The columns that files must have, as Arrow calls them."""
    starting_offsets: str = ""
    """The option with which a new query begins behind what the table has, if it needs one."""


def begin(spark: SparkSession, job: Beginning) -> Ready:
    """Make the table ready."""
    if not is_remote(spark):
        return make_ready(job)
    one = spark.range(1).coalesce(1)
    try:
        rows = one.mapInArrow(partial(_as_a_task, job), "schema binary, starting string").collect()
    except PySparkException as error:
        sentence = sentence_in(str(error))
        if sentence is None:
            raise
        raise TableProblem(sentence) from None
    columns = pa.ipc.read_schema(pa.py_buffer(bytes(rows[0]["schema"])))
    return Ready(columns, rows[0]["starting"])


def _as_a_task(job: Beginning, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in rows:
        ready = make_ready(job)
        schema = ready.columns.serialize().to_pybytes()
        yield pa.RecordBatch.from_pydict({"schema": [schema], "starting": [ready.starting_offsets]})


def make_ready(job: Beginning) -> Ready:
    """Make the table ready, on this computer."""
    table = job.output.open()
    columns = table.prepare(job.schema)
    if not Checkpoint(job.checkpoint).is_new():
        return Ready(columns)
    with table.explained():
        return Ready(columns, _go_on_behind_others(job, table))


def _go_on_behind_others(job: Beginning, table: Table) -> str:
    """Let a new checkpoint begin where the table ends; gives the option that says where.

    What the last batch of another checkpoint has consumed may still be in its queue: Spark says
    that a batch is done only when it plans the next one. The table has it, so it can be taken out.
    If somebody has released it before, it is anybody's, and stays; then the query begins behind it.
    """
    marks = table.marks()
    is_open = job.options.starting_offsets == "earliest" and job.options.starting_time_s is None
    if job.options.mode is Mode.CONSUME:
        own = [mark for mark in marks if mark.reader == job.options.reader]
        _complete(job, own)
        places = _places_behind(job.options, own) if own and is_open else {}
        return msgspec.json.encode(places).decode() if places else ""
    if marks and is_open:
        raise BadOption(
            "checkpoint",
            f"{table.path} was written with another one, and messages that are only looked at "
            "would be there twice: give that checkpoint, or begin with the latest message or with "
            "a time",
        )
    return ""


def _complete(job: Beginning, marks: Sequence[Mark]) -> None:
    """Take out of the queues what the table has.

    A checkpoint that was followed by another has nothing more to say to the queue manager, whether
    that one has brought a batch into the table or not: only what is completed, released, or was
    never read can be followed.
    """
    reader = RangeReader(job.options)
    try:
        for mark in marks:
            with suppress(QueueTaken):
                reader.commit(msgspec.json.decode(mark.offset))
    finally:
        reader.stop()


def _places_behind(options: SourceOptions, marks: Sequence[Mark]) -> dict[str, int]:
    """Return where to begin in each queue that has messages of these batches, by its key.

    Somebody has released them before they were taken out, so they are anybody's. They are left in
    the queue: others may be among them that came back with an old number, and nobody has read. A
    batch completes those before it when it is planned: so only the last one of a checkpoint, for
    which there is a mark, can have something in a queue.
    """
    managers = Managers(options.place)
    try:
        found: dict[str, int] = {}
        sources = managers.now()
        for mark in marks:
            end = from_offset(msgspec.json.decode(mark.offset))
            start = from_offset(msgspec.json.decode(mark.start) if mark.start else {}).spots
            left_out = LeftOut(options.reader)
            for key, spot in end.spots.items():
                home = home_of(spot, sources)
                # Where nobody noted the start, it is known only if the query was new.
                first = spot.first(start.get(key))
                is_known = key in start or spot.begin is not None
                if home is None or not is_known or first >= spot.next:
                    continue
                if left_out.again(sources, end.checkpoint, spot) is None:
                    # A queue that is gone has nothing.
                    with suppress(QueueGone):
                        if _has_released(home, spot, first):
                            found[key] = max(found.get(key, 0), spot.next)
        return found
    finally:
        managers.close()


def _has_released(source: Source, spot: Spot, first: int) -> bool:
    """Whether messages of a batch are in a queue, and nobody's."""
    with explained(source.address, spot.queue), source.manager.queue(spot.queue) as queue:
        status = queue.properties()
        is_reserved = status.reserved_for and status.reserved_start < spot.next
        if is_reserved or problem_with(spot, status, source.epochs) is not None:
            return False
        if not queue.fetch_range(first, spot.next, 1, 1):
            return False
        if queue.fetch_range(0, first, 1, 1):
            raise TableProblem(
                f"queue {spot.name} has messages that the table has, with the arrival numbers "
                f"{first} to {spot.next - 1}, which were released, and others before them that it "
                "does not have: take those out of the queue that the table has, or begin with the "
                "latest message or with a time"
            )
        return True
