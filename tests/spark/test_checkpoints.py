"""What a stream does when life goes on around it: checkpoints are deleted, copied and brought back,
addresses change, queue managers go, and stores are put back to what they were."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import openmsmq as mq
from openmsmq.spark.errors import DataLost, QueueProblem, sentence_in
from openmsmq.spark.source import reservations
from tests.spark.exactly_once.harness import Manager
from tests.spark.streams import Stream, send

A = r"private$\a"


@pytest.fixture
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for another query to end."""
    monkeypatch.setattr(reservations, "HOLDER_PATIENCE_S", 0.0)


# A batch that nobody has read.


def test_messages_of_a_batch_that_no_task_has_read_stay_in_the_queue(qm: mq.QueueManager) -> None:
    queue = qm.create_queue(A)
    send(queue, *"123")
    stream = Stream(qm, A)
    end = stream.plan()
    # The sink has a batch of this number, so Spark does not read it, and commits.
    for word in (stream.reader.commit, lambda end: stream.reader.latestOffset(end, None)):
        with pytest.raises(QueueProblem) as refused:
            word(end)
        for part in ("no task has read it", "are still in the queue", "unreadBatches=drop"):
            assert part in str(refused.value)
    assert queue.count() == 3
    # A new checkpoint, with a new output, reads them.
    stream.reader.stop()
    assert Stream(qm, A).next() == ["1", "2", "3"]
    assert queue.count() == 0


def test_messages_that_nobody_has_read_go_if_one_asks_for_it(qm: mq.QueueManager) -> None:
    queue = qm.create_queue(A)
    send(queue, *"123")
    stream = Stream(qm, A, unreadBatches="drop")
    stream.reader.commit(stream.plan())
    assert queue.count() == 0


def test_a_batch_that_an_earlier_driver_has_read_is_completed(qm: mq.QueueManager) -> None:
    """The driver was killed when the sink had the batch, and Spark had not noted it."""
    queue = qm.create_queue(A)
    send(queue, *"123")
    stream = Stream(qm, A)
    end = stream.plan()
    assert stream.read(end) == ["1", "2", "3"]
    stream.reader = stream.again()
    stream.reader.commit(end)
    assert queue.count() == 0


def test_the_next_batch_is_unread_though_the_one_before_it_was_read(qm: mq.QueueManager) -> None:
    queue = qm.create_queue(A)
    send(queue, *"123")
    stream = Stream(qm, A, maxMessagesPerTrigger="2")
    assert stream.next() == ["1", "2"]
    end = stream.plan()
    with pytest.raises(QueueProblem, match="no task has read it"):
        stream.reader.commit(end)
    assert queue.count() == 1


def test_an_empty_batch_needs_no_reader(qm: mq.QueueManager) -> None:
    send(qm.create_queue(A), "1")
    qm.create_queue(r"private$\b")
    stream = Stream(qm, "*")
    assert [stream.next(), stream.next()] == [["1"], []]


# Which query it is.


@pytest.mark.usefixtures("no_patience")
def test_two_queries_that_run_with_one_name_are_told_apart(qm: mq.QueueManager) -> None:
    queue = qm.create_queue(A)
    send(queue, "1")
    first = Stream(qm, A)
    assert first.next() == ["1"]
    second = Stream(qm, A)
    send(queue, "2")
    with pytest.raises(QueueProblem, match=r"another query that runs .* with the option reader"):
        second.plan()
    assert first.next() == ["2"]
    first.reader.stop()
    send(queue, "3")
    assert second.next() == ["3"]
    # It was followed, and does not take messages from the other one unnoticed.
    first.reader = first.started()
    send(queue, "4")
    with pytest.raises(QueueProblem, match="has another checkpoint since"):
        first.plan()
    assert second.next() == ["4"]


def test_a_query_that_is_to_go_on_after_all_does_so_when_the_queue_is_released(
    qm: mq.QueueManager,
) -> None:
    queue = qm.create_queue(A)
    send(queue, "1")
    first = Stream(qm, A)
    assert first.next() == ["1"]
    first.reader.stop()
    send(queue, "2")
    second = Stream(qm, A)
    second.plan()
    second.reader.stop()
    qm.release(A)
    first.reader = first.started()
    assert first.next() == ["2"]


def test_what_another_checkpoint_has_read_is_not_read_again(qm: mq.QueueManager) -> None:
    queue = qm.create_queue(A)
    send(queue, "1")
    first = Stream(qm, A)
    end = first.plan()
    assert first.read(end) == ["1"]
    first.reader.stop()
    second = Stream(qm, A)
    with pytest.raises(QueueProblem, match="were read by the query that 'spark' had before"):
        second.plan()
    # It is the first one that knows whether the message was processed.
    first.reader = first.started()
    first.reader.commit(end)
    second.reader = second.again()
    send(queue, "2")
    assert second.next() == ["2"]


def test_a_task_of_a_query_that_was_followed_gets_nothing(qm: mq.QueueManager) -> None:
    send(qm.create_queue(A), "1")
    first = Stream(qm, A)
    (part,) = first.reader.partitions(first.offset, first.plan())
    first.reader.stop()
    second = Stream(qm, A)
    end = second.plan()
    with pytest.raises(QueueProblem, match="from another checkpoint"):
        list(first.reader.read(part))
    assert second.read(end) == ["1"]


def test_an_older_copy_of_a_checkpoint_is_noticed(qm: mq.QueueManager) -> None:
    queue = qm.create_queue(A)
    send(queue, *"1234")
    stream = Stream(qm, A, maxMessagesPerTrigger="1")
    stream.next()
    copy = stream.offset
    assert stream.next() == ["2"]
    stream.offset, stream.reader = copy, stream.again()
    with pytest.raises(QueueProblem, match=r"older copy: .* Put the newer checkpoint back"):
        stream.plan()
    assert queue.count() == 2
    # A new one finds what the other had not read.
    assert Stream(qm, A).next() == ["3", "4"]


def test_an_older_copy_of_a_checkpoint_is_noticed_also_where_messages_may_be_gone(
    qm: mq.QueueManager,
) -> None:
    """To go on would give messages the batch number of others, which a sink has already."""
    send(qm.create_queue(A), *"123")
    stream = Stream(qm, A, maxMessagesPerTrigger="1", failOnDataLoss="false")
    stream.next()
    copy, _ = stream.offset, stream.next()
    newer = stream.offset
    stream.offset, stream.reader = copy, stream.again()
    with pytest.raises(QueueProblem, match="Put the newer checkpoint back"):
        stream.plan()
    stream.offset, stream.reader = newer, stream.again()
    assert stream.next() == ["3"]


def test_a_checkpoint_of_an_older_version_goes_on(qm: mq.QueueManager) -> None:
    """It has no word of its own, and queues go by the address."""
    queue = qm.create_queue(A)
    send(queue, *"123")
    status = queue.properties()
    stop = queue.reserve("spark", 0, count=1)
    old = {"qm": "elsewhere", "queue": A, "identity": status.identifier.hex(), "next": stop}
    stream = Stream(qm, A, maxMessagesPerTrigger="1")
    stream.offset = {rf"elsewhere\{A}": old}
    first = stream.plan()
    assert queue.count() == 2, "what the older version had committed is still there"
    stream.reader = stream.again()
    assert stream.plan() == first, "the word for the checkpoint is another one after a crash"
    assert [stream.next(), stream.next()] == [["2"], ["3"]]
    assert queue.count() == 0


# Where queues are.


def test_one_queue_manager_with_two_addresses_is_read_once(
    qm: mq.QueueManager, killable: Manager
) -> None:
    queue = qm.create_queue(A)
    send(queue, "1")
    address = killable.address
    stream = Stream(qm, A, qm=f"{address},{address}:1802")
    assert stream.next() == ["1"]
    stream.options["qm"] = f"{address}:1802"
    stream.reader = stream.again()
    assert stream.plan() == stream.offset, "another spelling of the address is another queue"
    send(queue, "2")
    assert stream.next() == ["2"]
    assert queue.count() == 0


def test_a_batch_is_repeated_and_completed_under_another_address(
    qm: mq.QueueManager, killable: Manager
) -> None:
    queue = qm.create_queue(A)
    send(queue, "1")
    stream = Stream(qm, A)
    end = stream.plan()
    stream.options["qm"] = f"{killable.address}:1802"
    stream.reader = stream.again()
    assert stream.read(end) == ["1"]
    stream.reader.commit(end)
    assert queue.count() == 0


def test_a_queue_manager_that_was_taken_out_stops_the_stream_or_not_as_asked(
    qm: mq.QueueManager, tmp_path: Path
) -> None:
    other = Manager(tmp_path)
    try:
        with mq.connect(other.address) as second:
            for connection, label in ((qm, "here"), (second, "there")):
                send(connection.create_queue(A), label)
        stream = Stream(qm, A, qm=f"{qm.settings.address},{other.address}")
        end = stream.plan()
    finally:
        other.kill()
    stream.options["qm"] = qm.settings.address
    stream.reader = stream.again()
    for word in (lambda: stream.read(end), stream.plan):
        with pytest.raises(DataLost) as refused:
            word()
        said = f"the queue manager that was at {other.address} is not in the option qm any more"
        assert str(refused.value).startswith(said)
    stream.options["failOnDataLoss"] = "false"
    stream.reader = stream.again()
    assert stream.read(end) == ["here"]
    stream.offset = end
    stream.reader.commit(end)
    send(qm.queue(A), "again")
    assert stream.next() == ["again"]


def test_a_new_query_begins_at_a_place_that_is_meant_at_one_of_two_queue_managers(
    qm: mq.QueueManager, own: Manager
) -> None:
    """By the key that an offset has; a name means the queues of both."""
    with mq.connect(own.address) as there:
        for connection in (qm, there):
            send(connection.create_queue(A), "old")
        place = qm.queue(A).properties().last_arrival_number + 1
        for connection in (qm, there):
            send(connection.queue(A), "new")
        wish = json.dumps({f"{qm.identifier.hex()}\\{A}": place})
        stream = Stream(
            qm, A, qm=f"{qm.settings.address},{own.address}", startingOffsets=wish, mode="browse"
        )
        assert sorted(stream.next()) == ["new", "new", "old"]


def test_what_a_batch_has_left_out_is_read_when_its_queue_manager_is_back(
    qm: mq.QueueManager, own: Manager
) -> None:
    """A driver has read it, and was killed; the next one has repeated the batch without it."""
    both = f"{qm.settings.address},{own.address}"
    with mq.connect(own.address) as there:
        send(there.create_queue(A), "there")
        send(qm.create_queue(A), "here")
        stream = Stream(qm, A, qm=both)
        end = stream.plan()
        assert sorted(stream.read(end)) == ["here", "there"]
        for _ in range(2):
            stream.options |= {"qm": qm.settings.address, "failOnDataLoss": "false"}
            stream.reader = stream.again()
            # Spark has this end in its checkpoint, so the batch is written without the rest.
            assert "there" not in stream.read(end)
            stream.offset = end
            stream.options |= {"qm": both, "failOnDataLoss": "true"}
            stream.reader = stream.again()
            end = stream.plan()
            # What Spark says when it has noted the end of the next batch.
            stream.reader.commit(stream.offset)
            assert there.queue(A).count() == 1, "it was taken out, and nobody has written it"
        stream.reader = stream.again()
        assert stream.read(end) == ["there"]
        stream.offset = end
        send(there.queue(A), "more")
        assert stream.next() == ["more"]
        assert there.queue(A).count() == 0
        assert qm.queries(prefix="left out") == []


# Which store.


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Manager]:
    """A queue manager of a test's own, whose store it may exchange."""
    found = Manager(tmp_path)
    yield found
    found.kill()


def test_a_store_that_was_put_back_and_has_caught_up_is_noticed(own: Manager) -> None:
    store, backup = own.folder / "data" / "store", own.folder / "backup"
    with mq.connect(own.address) as connection:
        connection.create_queue(A)
    own.kill()
    shutil.copytree(store, backup)
    own.start()
    with mq.connect(own.address) as connection:
        send(connection.queue(A), *map(str, range(50)))
        stream = Stream(connection, A)
        assert len(stream.next()) == 50
        stream.reader.stop()
    own.kill()
    shutil.rmtree(store)
    shutil.copytree(backup, store)
    own.start()
    with mq.connect(own.address) as connection:
        queue = connection.queue(A)
        send(queue, *map(str, range(100)))
        stream.reader = stream.started()
        with pytest.raises(DataLost, match="its store was replaced by an older copy"):
            stream.plan()
        assert queue.count() == 100
        stream.options["failOnDataLoss"] = "false"
        stream.reader = stream.again()
        assert len(stream.next()) == 100
        stream.reader.stop()


def test_a_queue_manager_that_restarts_has_the_same_store(own: Manager) -> None:
    with mq.connect(own.address) as connection:
        send(connection.create_queue(A), "1")
        stream = Stream(connection, A)
        assert stream.next() == ["1"]
        for label in "23":
            own.kill()
            own.start()
            send(connection.queue(A), label)
            assert stream.next() == [label]
        own.kill()
        own.start()
        assert stream.plan() == stream.offset
        stream.reader.stop()


# Through Spark.


def test_a_new_checkpoint_beside_an_older_output_destroys_nothing(
    qm: mq.QueueManager, spark: SparkSession, tmp_path: Path
) -> None:
    queue = qm.create_queue(A)
    messages = (
        spark.readStream.format("msmq")
        .options(qm=qm.settings.address, queue=A, maxMessagesPerTrigger=10)
        .load()
        .select("label")
    )

    def process(table: str, checkpoint: str) -> None:
        run(messages, tmp_path / table, tmp_path / checkpoint).awaitTermination()

    def labels(table: str) -> list[str]:
        rows = spark.read.schema("label STRING").parquet(str(tmp_path / table))
        return sorted(row.label for row in rows.collect())

    first = [f"{number:02}" for number in range(20)]
    send(queue, *first)
    process("table", "checkpoint")
    assert labels("table") == first
    later = [f"{number:02}" for number in range(20, 50)]
    send(queue, *later)
    with pytest.raises(StreamingQueryException) as failed:
        process("table", "new checkpoint")
    sentence = sentence_in(str(failed.value))
    assert sentence is not None
    assert "no task has read it" in sentence
    assert queue.count() == 30, "messages are gone that are in no table"
    process("new table", "newer checkpoint")
    assert labels("new table") == later
    assert queue.count() == 0


def run(messages: DataFrame, table: Path, checkpoint: Path) -> StreamingQuery:
    return (
        messages.writeStream.format("parquet")
        .options(path=str(table), checkpointLocation=str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
