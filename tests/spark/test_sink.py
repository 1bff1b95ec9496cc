"""The sink: all rows of a batch or none, once, in order, and nothing left behind."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

import openmsmq as mq
from openmsmq.model.errors import AccessDenied, TransactionSequence
from openmsmq.runtime.api.tokens import create_token, revoke_token
from openmsmq.security.access.callers import Scope
from openmsmq.spark.errors import BadOption, QueueProblem, sentence_in
from openmsmq.spark.sink.options import read_sink_options
from openmsmq.spark.sink.parts import PART_MAX_COUNT
from openmsmq.spark.sink.writers import BatchWriter, Parts, StreamWriter
from openmsmq.spark.source.data_source import MsmqDataSource
from tests.spark.exactly_once.harness import Manager

NOBODY = "127.0.90.9"
OUT = r"private$\out"


@pytest.fixture
def out(qm: mq.QueueManager) -> mq.Queue:
    return qm.create_queue(OUT, transactional=True)


def writer(qm: mq.QueueManager, **options: str) -> BatchWriter:
    given = {"qm": qm.settings.address, "queue": OUT} | options
    return BatchWriter(read_sink_options(given), {"body": "body"})


def rows(*bodies: str) -> Iterator[pa.RecordBatch]:
    """Rows that a task gets, one in each record batch."""
    for body in bodies:
        yield pa.RecordBatch.from_pylist([{"body": body}])


def failing(*bodies: str) -> Iterator[pa.RecordBatch]:
    yield from rows(*bodies)
    raise ArithmeticError("the rows of this task cannot be computed")


@contextlib.contextmanager
def task_of(checkpoint: str, batch: int) -> Iterator[None]:
    """What runs here runs in a task of a streaming query, as Spark tells it."""
    properties = {"sql.streaming.queryId": checkpoint, "streaming.sql.batchId": str(batch)}
    TaskContext(partitionId=0, localProperties=properties)
    try:
        yield
    finally:
        # Only tasks have one.
        TaskContext._setTaskContext(None)  # noqa: SLF001


def stream_batch(
    qm: mq.QueueManager, checkpoint: str, batch: int, *texts: str, **options: str
) -> None:
    """Write a batch of a stream, whole."""
    given = {"qm": qm.settings.address, "queue": OUT, "query": "orders"} | options
    stream = StreamWriter(read_sink_options(given), {"body": "body"})
    with task_of(checkpoint, batch):
        parts = stream.write(rows(*texts))
    stream.commit([parts], batch)


def bodies(queue: mq.Queue) -> list[object]:
    return [message.body for message in queue.browse()]


def at(parts: Parts, partition: int) -> Parts:
    return Parts(parts.query, parts.batch, partition, parts.units, parts.checkpoint)


# Writers, as Spark drives them.


def test_nothing_is_visible_before_the_commit_and_then_all_in_the_order_of_partitions(
    qm: mq.QueueManager, out: mq.Queue
) -> None:
    sink = writer(qm)
    second = at(sink.write(rows("3", "4")), 1)
    first = at(sink.write(rows("1", "2")), 0)
    none = at(sink.write(rows()), 2)
    assert bodies(out) == []
    assert len(qm.in_doubt()) == 2
    sink.commit([second, None, none, first])
    assert bodies(out) == ["1", "2", "3", "4"]
    assert qm.in_doubt() == []
    assert qm.last_batch(first.query) == -1, "nobody will ask for it, so it need not be kept"


def test_a_long_partition_is_prepared_in_parts_and_keeps_its_order(
    qm: mq.QueueManager, out: mq.Queue
) -> None:
    numbers = [str(number) for number in range(PART_MAX_COUNT + 1)]
    sink = writer(qm)
    parts = sink.write(iter([pa.RecordBatch.from_pylist([{"body": each} for each in numbers])]))
    assert len(parts.units) == 2
    sink.commit([parts])
    found: list[object] = []
    while len(found) < len(numbers):
        found += [message.body for message in out.receive_many(5000, 0)]
    assert found == numbers


def test_a_weak_token_writes_batches_and_another_one_ends_none_of_them(
    killable: Manager, qm: mq.QueueManager, out: mq.Queue, tmp_path: Path
) -> None:
    """Driver and tasks show the same token; a name that somebody else knows is of no use."""
    shown = {}
    for name in ("spark", "mallory"):
        shown[name], _ = create_token(
            killable.folder / "data" / "tokens.json", name, (Scope.SEND,), now_s=0
        )
    file = tmp_path / "token"
    file.write_text(shown["spark"], encoding="utf-8")
    options = {"query": "orders", "tokenFile": str(file)}
    parts = [writer(qm, **options).write(rows("1")), writer(qm, **options).write(rows("2"))]
    assert {work.owner for work in qm.in_doubt()} == {"token:spark"}
    with mq.connect(qm.settings, token=shown["mallory"]) as thief:
        for attempt in (
            lambda: thief.commit_batch("orders", 0, []),
            lambda: thief.abort_batch("orders", 99),
            lambda: thief.forget_query("orders", is_over=True),
            lambda: thief.last_batch("orders"),
        ):
            with pytest.raises(AccessDenied, match="belongs to token:spark"):
                attempt()
        with pytest.raises(TransactionSequence):
            thief.resolve(parts[0].units[0], commit=False)
    writer(qm, **options).commit(parts)
    assert bodies(out) == ["1", "2"]
    for name in shown:
        revoke_token(killable.folder / "data" / "tokens.json", name)


def test_what_doubled_and_failed_tasks_have_prepared_goes_with_the_commit(
    qm: mq.QueueManager, out: mq.Queue
) -> None:
    sink = writer(qm)
    counts = sink.write(rows("1"))
    sink.write(rows("1"))
    with pytest.raises(ArithmeticError):
        sink.write(failing("1"))
    assert len(qm.in_doubt()) == 2
    sink.commit([counts])
    assert bodies(out) == ["1"]
    assert qm.in_doubt() == []


def test_a_task_that_comes_after_the_commit_leaves_nothing_behind(
    qm: mq.QueueManager, out: mq.Queue
) -> None:
    sink = writer(qm, query="a stream")
    counts = sink.write(rows("1"))

    def overtaken() -> Iterator[pa.RecordBatch]:
        sink.commit([counts])
        yield from rows("1")

    with pytest.raises(QueueProblem, match="is committed already"):
        sink.write(overtaken())
    assert sink.write(rows("1")).units == []
    assert (bodies(out), qm.in_doubt()) == (["1"], [])


def test_a_batch_that_is_given_up_leaves_nothing(qm: mq.QueueManager, out: mq.Queue) -> None:
    sink = writer(qm, query="tried")
    parts = sink.write(rows("1"))
    sink.abort([parts, None])
    assert (bodies(out), qm.in_doubt()) == ([], [])
    sink.write(rows("1"))
    sink.abort([None, None])
    assert (bodies(out), qm.in_doubt()) == ([], [])
    with pytest.raises(QueueProblem, match="write it again"):
        sink.commit([parts])


def test_a_task_that_comes_after_everything_was_given_up_leaves_nothing_behind(
    qm: mq.QueueManager, out: mq.Queue
) -> None:
    sink = writer(qm)

    def overtaken() -> Iterator[pa.RecordBatch]:
        sink.abort([None])
        yield from rows("1")

    with pytest.raises(QueueProblem, match="is over"):
        sink.write(overtaken())
    assert (bodies(out), qm.in_doubt()) == ([], [])


def test_what_was_written_under_a_name_is_not_written_again(
    qm: mq.QueueManager, out: mq.Queue
) -> None:
    for _ in range(2):
        sink = writer(qm, query="nightly")
        sink.commit([sink.write(rows("1"))])
    assert bodies(out) == ["1"]
    assert qm.in_doubt() == []


def test_a_batch_of_a_stream_that_comes_again_is_dropped(
    qm: mq.QueueManager, out: mq.Queue
) -> None:
    options = read_sink_options({"qm": qm.settings.address, "queue": OUT})
    stream = StreamWriter(options, {"body": "body"})
    parts = writer(qm, query="another stream").write(rows("1"))
    stream.commit([parts], 0)
    stream.commit([parts], 0)
    stream.commit([], 1)
    assert bodies(out) == ["1"]
    with pytest.raises(QueueProblem, match="tasks wrote batch 0, but 7 is committed"):
        stream.commit([parts], 7)
    stream.abort([parts, None], 0)
    stream.abort([None], 0)
    assert bodies(out) == ["1"]


# Only the last batch of a checkpoint can come again.


def test_an_older_batch_of_a_checkpoint_is_refused_and_not_dropped(
    qm: mq.QueueManager, out: mq.Queue
) -> None:
    for number in range(4):
        stream_batch(qm, "c1", number, f"row of batch {number}")
    stream_batch(qm, "c1", 3, "row of batch 3")
    with pytest.raises(QueueProblem, match="batch 1 of 'orders' is older than the last") as failed:
        stream_batch(qm, "c1", 1, "a row that was never written")
    assert str(failed.value).startswith(f"{qm.settings.address}: batch 1 ")
    assert str(failed.value).endswith("begin with a new checkpoint and another name")
    assert bodies(out) == [f"row of batch {number}" for number in range(4)]
    assert qm.in_doubt() == []


def test_a_copy_of_the_checkpoint_without_the_last_batch_is_noticed_by_its_rows(
    qm: mq.QueueManager, out: mq.Queue
) -> None:
    stream_batch(qm, "c1", 0, "first", "second")
    stream_batch(qm, "c1", 0, "first")
    with pytest.raises(QueueProblem, match="written with 2 rows, and comes again with 3"):
        stream_batch(qm, "c1", 0, "first", "second", "a row that was never written")
    assert (bodies(out), qm.in_doubt()) == (["first", "second"], [])


def planned(folder: Path, checkpoint: str, batch: int, *ends: str) -> str:
    """Let the checkpoint say where a batch ends, as Spark writes it; gives its location."""
    (folder / "offsets").mkdir(parents=True, exist_ok=True)
    (folder / "metadata").write_text(f'{{"id":"{checkpoint}"}}')
    (folder / "offsets" / str(batch)).write_text("\n".join(("v1", '{"conf":{}}', *ends)))
    return str(folder)


@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_a_batch_that_was_planned_anew_is_refused_also_if_it_has_as_many_rows(
    qm: mq.QueueManager, out: mq.Queue, tmp_path: Path, prefix: str
) -> None:
    """The source was told to go on elsewhere over an older copy of the checkpoint."""
    # Spark takes the path of an URL as it is written.
    folder = tmp_path / "a%20b c#d"
    place = prefix + planned(folder, "c1", 0, '{"next":5}')
    stream_batch(qm, "c1", 0, "first", "second", checkpointLocation=place)
    stream_batch(qm, "c1", 0, "first", "second", checkpointLocation=place)
    planned(folder, "c1", 0, '{"next":9}')
    for rows in (("third", "fourth"), ()):
        with pytest.raises(
            QueueProblem, match="'orders' was written, and comes again with another"
        ):
            stream_batch(qm, "c1", 0, *rows, checkpointLocation=place)
    assert (bodies(out), qm.in_doubt()) == (["first", "second"], [])
    planned(folder, "c1", 1, '{"next":9}')
    stream_batch(qm, "c1", 1, "third", "fourth", checkpointLocation=place)
    assert bodies(out) == ["first", "second", "third", "fourth"]


def test_a_repetition_may_have_other_rows_if_the_checkpoint_says_that_it_is_one(
    qm: mq.QueueManager, out: mq.Queue, tmp_path: Path
) -> None:
    """Of what depends on chance, the first writing counts."""
    place = planned(tmp_path, "c1", 0, '{"next":5}', '{"topic":7}')
    stream_batch(qm, "c1", 0, "by chance", checkpointLocation=place)
    stream_batch(qm, "c1", 0, "other", "rows", checkpointLocation=place)
    planned(tmp_path, "c1", 0, '{"next":6}', '{"topic":7}')
    with pytest.raises(QueueProblem, match="comes again with another end"):
        stream_batch(qm, "c1", 0, "of another first source", checkpointLocation=place)
    assert bodies(out) == ["by chance"]


@pytest.mark.parametrize("place", ["", "s3a://bucket{}", "file://host{}", "{}/nothing", "{}"])
def test_where_a_checkpoint_cannot_be_read_or_is_of_another_query_rows_are_counted(
    qm: mq.QueueManager, out: mq.Queue, tmp_path: Path, place: str
) -> None:
    planned(tmp_path, "another", 0, '{"next":5}')
    place = place.format(tmp_path)
    stream_batch(qm, "c1", 0, "first", "second", checkpointLocation=place)
    planned(tmp_path, "another", 0, '{"next":9}')
    stream_batch(qm, "c1", 0, "first", checkpointLocation=place)
    with pytest.raises(QueueProblem, match="written with 2 rows, and comes again with 3"):
        stream_batch(qm, "c1", 0, *"123", checkpointLocation=place)
    assert bodies(out) == ["first", "second"]


@pytest.mark.parametrize("batch", [0, 1, 2])
def test_a_batch_of_another_checkpoint_is_refused_and_not_dropped(
    qm: mq.QueueManager, out: mq.Queue, batch: int
) -> None:
    stream_batch(qm, "c1", 0, "first")
    stream_batch(qm, "c1", 1, "second")
    with pytest.raises(QueueProblem, match=r"'c2'.*from checkpoint 'c1': .* query forget"):
        stream_batch(qm, "c2", batch, "a row that was never written")
    assert (bodies(out), qm.in_doubt()) == (["first", "second"], [])
    qm.forget_query("orders")
    stream_batch(qm, "c2", batch, "third")
    assert bodies(out) == ["first", "second", "third"]


def test_a_refused_checkpoint_does_not_disturb_the_other(
    qm: mq.QueueManager, out: mq.Queue
) -> None:
    stream_batch(qm, "c1", 0, "first")
    options = {"qm": qm.settings.address, "queue": OUT, "query": "orders"}
    stream = StreamWriter(read_sink_options(options), {"body": "body"})
    with task_of("c1", 1):
        parts = stream.write(rows("second"))
    with pytest.raises(QueueProblem), task_of("c2", 1):
        stream.write(rows("a row that was never written"))
    stream.abort([None], 1)
    stream.commit([parts], 1)
    assert bodies(out) == ["first", "second"]


def test_streams_without_a_name_are_told_apart_by_their_checkpoints(
    qm: mq.QueueManager, out: mq.Queue
) -> None:
    for checkpoint in ("c1", "c2"):
        for _ in range(2):
            stream_batch(qm, checkpoint, 0, f"of {checkpoint}", query="")
    assert bodies(out) == ["of c1", "of c2"]


# Data frames in a series.


def test_data_frames_of_one_name_are_written_once_by_their_numbers(
    qm: mq.QueueManager, out: mq.Queue
) -> None:
    """As a function for foreachBatch writes them: one name for all batches."""
    for number in (0, 0, 1, 5, 5):
        with task_of("c1", number):
            sink = writer(qm, query="frames", batch=str(number))
            parts = sink.write(rows(f"row of {number}"))
        sink.commit([parts])
    assert bodies(out) == ["row of 0", "row of 1", "row of 5"]
    assert qm.last_batch("frames") == 5
    for checkpoint, number in (("c1", 4), ("c2", 6)):
        refused = pytest.raises(QueueProblem, match=f"batch {number} of 'frames'")
        with refused, task_of(checkpoint, number):
            writer(qm, query="frames", batch=str(number)).write(rows("new"))
    assert qm.in_doubt() == []


def test_a_data_frame_of_a_series_that_is_given_up_is_written_again(
    qm: mq.QueueManager, out: mq.Queue
) -> None:
    for number in (6, 7):
        sink = writer(qm, query="given up", batch=str(number))
        parts = sink.write(rows("1"))
        sink.abort([parts, None])
        assert qm.in_doubt() == []
        sink.commit([sink.write(rows(str(number)))])
    assert bodies(out) == ["6", "7"]


def test_the_batches_of_a_stream_take_no_number(qm: mq.QueueManager) -> None:
    options = {"qm": qm.settings.address, "queue": OUT, "query": "orders", "batch": "1"}
    with pytest.raises(BadOption, match="option batch: is for data frames"):
        StreamWriter(read_sink_options(options), {"body": "body"})


def test_a_queue_manager_that_restarts_between_write_and_commit_does_not_matter(
    killable: Manager, qm: mq.QueueManager, out: mq.Queue
) -> None:
    sink = writer(qm)
    parts = sink.write(rows("1"))
    killable.kill()
    killable.start_later()
    sink.commit([parts])
    assert bodies(out) == ["1"]


@pytest.mark.parametrize(
    ("queue", "problem"),
    [
        (r"private$\nix", r"queue private\$\\nix at .* is not there"),
        (r"private$\plain", r"private\$\\plain at .*transactional"),
    ],
)
def test_a_queue_that_cannot_take_a_batch_is_named(
    qm: mq.QueueManager, queue: str, problem: str
) -> None:
    qm.create_queue(r"private$\plain")
    with pytest.raises(QueueProblem, match=problem):
        writer(qm, queue=queue).write(rows("1"))
    assert qm.in_doubt() == []


def test_an_address_where_nobody_answers_is_named_before_any_task_begins() -> None:
    source = MsmqDataSource({"qm": NOBODY, "queue": OUT})
    with pytest.raises(QueueProblem, match=f"option qm, {NOBODY}: no queue manager answers"):
        source.writer(StructType().add("body", StringType()), overwrite=False)


def test_overwriting_is_refused() -> None:
    with pytest.raises(QueueProblem, match="write with mode append"):
        MsmqDataSource({"queue": OUT}).writer(StructType(), overwrite=True)


# Through Spark.


def test_a_data_frame_is_sent_as_a_whole_or_not_at_all(
    qm: mq.QueueManager, out: mq.Queue, spark: SparkSession
) -> None:
    numbers = spark.range(0, 40, 1, 4).withColumn("body", F.col("id").cast("string"))

    def write(frame: object) -> None:
        (
            frame.drop("id")  # type: ignore[attr-defined]
            .write.format("msmq")
            .options(qm=qm.settings.address, queue=OUT)
            .mode("append")
            .save()
        )

    write(numbers.withColumn("label", F.lit("all")).withColumn("priority", F.lit(5)))
    assert bodies(out) == [str(number) for number in range(40)]
    assert out.peek(0).label == "all"
    out.purge()
    broken = numbers.withColumn("body", F.expr("if(id = 39, raise_error('row 39 is bad'), body)"))
    with pytest.raises(Exception, match="row 39 is bad"):
        write(broken)
    with pytest.raises(Exception, match="colour") as failed:
        write(numbers.withColumn("colour", F.lit("red")))
    sentence = sentence_in(str(failed.value))
    assert sentence is not None
    assert sentence.startswith("no option says what to do with the columns colour: ")
    assert (bodies(out), qm.in_doubt()) == ([], [])


def test_a_stream_goes_on_with_its_own_checkpoint_and_with_no_other(
    qm: mq.QueueManager, out: mq.Queue, spark: SparkSession, tmp_path: Path
) -> None:
    source = qm.create_queue(r"private$\in")
    source.send_many([str(number) for number in range(10)], recoverable=True)
    own, copy = tmp_path / "own", tmp_path / "copy"

    def process(checkpoint: Path) -> None:
        query = (
            spark.readStream.format("msmq")
            .options(qm=qm.settings.address, queue=r"private$\in", mode="browse")
            .option("maxMessagesPerTrigger", 4)
            .load()
            .selectExpr("text AS body", "label")
            .writeStream.format("msmq")
            .options(qm=qm.settings.address, queue=OUT, query="copy")
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def forget_commit(checkpoint: Path, batch: int) -> None:
        for name in (f"{batch}", f".{batch}.crc"):
            (checkpoint / "commits" / name).unlink()

    def refusal(checkpoint: Path) -> str:
        with pytest.raises(Exception, match="copy") as failed:
            process(checkpoint)
        return sentence_in(str(failed.value)) or ""

    expected = [str(number) for number in range(10)]
    process(own)
    assert bodies(out) == expected
    shutil.copytree(own, copy)
    forget_commit(own, 2)
    process(own)
    assert bodies(out) == expected, "the driver was killed before it could note the last batch"
    source.send("10", recoverable=True)
    process(own)
    expected.append("10")
    assert bodies(out) == expected
    source.send("11", recoverable=True)
    assert "comes from checkpoint" in refusal(tmp_path / "new")
    # The copy knows three batches, and the queue manager four: the fourth has one row.
    assert "'copy' was written, and comes again with another end" in refusal(copy)
    forget_commit(copy, 2)
    for name in ("3", ".3.crc"):
        (copy / "offsets" / name).unlink()
    assert "batch 2 of 'copy' is older than the last one written, 3" in refusal(copy)
    process(own)
    assert bodies(out) == [*expected, "11"]
    assert (qm.last_batch("copy"), qm.in_doubt()) == (4, [])


def test_a_function_for_each_batch_writes_each_once_under_one_name(
    qm: mq.QueueManager, out: mq.Queue, spark: SparkSession, tmp_path: Path
) -> None:
    source = qm.create_queue(r"private$\in")
    source.send_many(["1", "2", "3"], recoverable=True)

    def write(frame: DataFrame, number: int) -> None:
        for _ in range(2):
            (
                frame.selectExpr("text AS body")
                .write.format("msmq")
                .options(qm=qm.settings.address, queue=OUT, query="each")
                .option("batch", number)
                .mode("append")
                .save()
            )

    def process(checkpoint: Path) -> None:
        (
            spark.readStream.format("msmq")
            .options(qm=qm.settings.address, queue=r"private$\in", mode="browse")
            .option("maxMessagesPerTrigger", 2)
            .load()
            .writeStream.foreachBatch(write)
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
            .awaitTermination()
        )

    process(tmp_path / "one")
    assert bodies(out) == ["1", "2", "3"]
    with pytest.raises(Exception, match="comes from checkpoint"):
        process(tmp_path / "two")
    assert bodies(out) == ["1", "2", "3"]
    [query] = qm.queries()
    assert (query.query, query.batch) == ("each", 1)
