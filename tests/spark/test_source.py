"""The source as a query sees it: what it plans, reads, takes out, and says when it cannot."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import EqualTo, GreaterThan, StringStartsWith
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
)

import openmsmq as mq
from openmsmq.model.errors import SharingViolation
from openmsmq.spark.errors import BadOption, DataLost, QueueGone, QueueProblem, sentence_in
from openmsmq.spark.schema import NAMES
from openmsmq.spark.source.batch_reader import BatchReader, FilteringBatchReader
from openmsmq.spark.source.data_source import MsmqDataSource
from openmsmq.spark.source.options import read_source_options
from openmsmq.spark.source.queue_range import TASK_MIN_COUNT
from openmsmq.spark.source.stream_reader import StreamReader
from openmsmq.storage import records
from openmsmq.storage.opening import open_store
from openmsmq.storage.port import Batch
from tests.spark.exactly_once.harness import Manager
from tests.spark.streams import Stream, names, send

NOBODY = "127.0.90.9"
"""An address where no queue manager is."""


# Exactly once.


def test_a_batch_is_the_same_however_often_it_is_planned_and_read(qm: mq.QueueManager) -> None:
    queue = qm.create_queue(r"private$\a")
    send(queue, "1", priority=0)
    send(queue, "2", priority=7)
    stream = Stream(qm, r"private$\a")
    end = stream.plan()
    send(queue, "3", priority=7)
    assert queue.receive(0).label == "3", "what is reserved was given to somebody else"
    for _ in range(2):
        assert stream.read(end) == ["1", "2"]
        stream.reader = stream.again()
    assert queue.count() == 2
    stream.offset = end
    stream.reader.commit(end)
    assert queue.count() == 0
    assert stream.plan() == end, "no news must be no change, or Spark runs empty batches"


def test_what_was_processed_is_taken_out_even_if_the_driver_died_before_it_said_so(
    qm: mq.QueueManager,
) -> None:
    queue = qm.create_queue(r"private$\a")
    send(queue, "1", "2")
    stream = Stream(qm, r"private$\a")
    end = stream.plan()
    assert stream.read(end) == ["1", "2"]
    stream.offset, stream.reader = end, stream.again()
    assert stream.plan() == end
    assert queue.count() == 0


def test_a_message_that_somebody_holds_is_waited_for(qm: mq.QueueManager) -> None:
    queue = qm.create_queue(r"private$\a", transactional=True)
    stream = Stream(qm, r"private$\a")
    for label in "123":
        send(queue, label, transaction=mq.SINGLE_MESSAGE)
    first = qm.begin()
    assert queue.receive(0, transaction=first).label == "1"
    second = qm.begin()
    assert queue.receive(0, transaction=second).label == "2"
    assert stream.next() == []
    first.abort()
    assert stream.next() == ["1"]
    second.commit()
    assert stream.next() == ["3"]


def test_a_transaction_that_commits_late_is_read_late_and_not_skipped(qm: mq.QueueManager) -> None:
    queue = qm.create_queue(r"private$\a", transactional=True)
    stream = Stream(qm, r"private$\a")
    late = qm.begin()
    send(queue, "late", transaction=late)
    send(queue, "early", transaction=mq.SINGLE_MESSAGE)
    assert stream.next() == ["early"]
    late.commit()
    assert stream.next() == ["late"]


def test_two_readers_of_one_queue_are_told_apart(qm: mq.QueueManager) -> None:
    send(qm.create_queue(r"private$\a"), "1")
    first = Stream(qm, r"private$\a")
    first.plan()
    second = Stream(qm, r"private$\a", reader="other")
    with pytest.raises(QueueProblem, match=r"is being read by 'spark'.*queue release private\$\\a"):
        second.plan()
    qm.release(r"private$\a")
    assert second.next() == ["1"]


# Where a stream begins and ends.


def test_a_stream_that_browses_leaves_everything(qm: mq.QueueManager) -> None:
    queue = qm.create_queue(r"private$\a")
    send(queue, "1", "2")
    stream = Stream(qm, r"private$\a", mode="browse", maxMessagesPerTrigger="1")
    assert [stream.next(), stream.next(), stream.next()] == [["1"], ["2"], []]
    assert queue.count() == 2
    assert queue.properties().reserved_for == ""


def test_a_stream_from_the_latest_message_on_reads_later_ones_only(qm: mq.QueueManager) -> None:
    queue = qm.create_queue(r"private$\a")
    send(queue, "before")
    stream = Stream(qm, r"private$\a", startingOffsets="latest")
    send(queue, "after")
    assert stream.next() == ["after"]
    assert queue.peek(0).label == "before"


def test_where_a_stream_began_does_not_change_when_spark_asks_again(qm: mq.QueueManager) -> None:
    queue = qm.create_queue(r"private$\a")
    stream = Stream(qm, r"private$\a", startingOffsets="latest")
    send(queue, "1")
    end = stream.plan()
    send(queue, "2")
    # It asks for the beginning whenever it plans the first batch, also after a restart.
    stream.reader = stream.again()
    stream.offset = stream.reader.initialOffset()
    assert stream.read(end) == ["1"]
    stream.offset = end
    assert stream.next() == ["2"]
    assert queue.count() == 0


def test_what_a_driver_reserved_that_died_before_it_noted_anything_is_not_passed_over(
    qm: mq.QueueManager,
) -> None:
    queue = qm.create_queue(r"private$\a")
    send(queue, "before")
    stream = Stream(qm, r"private$\a", startingOffsets="latest")
    send(queue, "1")
    stream.plan()
    send(queue, "2")
    stream.reader.stop()
    again = Stream(qm, r"private$\a", startingOffsets="latest")
    assert again.next() == ["1", "2"]
    assert queue.receive(0).label == "before"


def test_a_stream_from_a_time_on_leaves_earlier_messages_out(qm: mq.QueueManager) -> None:
    queue = qm.create_queue(r"private$\a")
    send(queue, "first")
    began = queue.peek(0).arrived_time
    sent = 0
    while queue.peek_many(10_000)[-1].arrived_time == began:
        send(queue, f"{(sent := sent + 1)}")
    later = queue.peek_many(10_000)[-1].arrived_time.isoformat()
    for text, expected in (
        (later, [f"{sent}"]),
        (later.removesuffix("+00:00"), [f"{sent}"]),
        (began.isoformat(), ["first", *(f"{number}" for number in range(1, sent + 1))]),
        (datetime(2100, 1, 1, tzinfo=UTC).isoformat(), []),
    ):
        assert Stream(qm, r"private$\a", startingTime=text, mode="browse").next() == expected


def test_available_now_ends_at_what_was_there_in_batches_of_the_size_asked_for(
    qm: mq.QueueManager,
) -> None:
    queue = qm.create_queue(r"private$\a")
    send(queue, *"12345")
    stream = Stream(qm, r"private$\a", maxMessagesPerTrigger="2")
    stream.reader.prepareForTriggerAvailableNow()
    found = [stream.next()]
    send(queue, "later")
    found += [stream.next(), stream.next(), stream.next()]
    assert found == [["1", "2"], ["3", "4"], ["5"], []]
    assert queue.count() == 1
    stream.reader = stream.again()
    assert stream.next() == ["later"]


def test_batches_are_limited_by_bytes_and_have_at_least_one_message(qm: mq.QueueManager) -> None:
    queue = qm.create_queue(r"private$\a")
    for label in "1234":
        queue.send(bytes(10_000), label=label)
    stream = Stream(qm, r"private$\a", maxBytesPerTrigger="15000")
    assert [len(stream.next()) for _ in range(3)] == [2, 2, 0]
    send(queue, *"56")
    stream = Stream(qm, r"private$\a", maxBytesPerTrigger="1", reader="slow")
    assert [stream.next(), stream.next()] == [["5"], ["6"]]


def test_spark_is_told_the_limit_and_may_ask_for_everything(qm: mq.QueueManager) -> None:
    send(qm.create_queue(r"private$\a"), *"123")
    for options, limit in (
        ({"maxMessagesPerTrigger": "2"}, ReadMaxRows(2)),
        ({"maxBytesPerTrigger": "2"}, ReadMaxBytes(2)),
        ({}, ReadAllAvailable()),
    ):
        stream = Stream(qm, r"private$\a", mode="browse", **options)
        assert stream.reader.getDefaultReadLimit() == limit
        assert len(stream.read(stream.reader.latestOffset(stream.offset, ReadAllAvailable()))) == 3


# Which queues.


def test_several_queues_share_a_limit_and_a_new_one_is_read_from_its_beginning(
    qm: mq.QueueManager,
) -> None:
    first, second = qm.create_queue(r"private$\a"), qm.create_queue(r"private$\b")
    send(first, *"1234")
    send(second, *"56")
    stream = Stream(qm, "*", maxMessagesPerTrigger="3", startingOffsets="earliest")
    assert stream.next() == ["1", "2", "5"]
    send(qm.create_queue(r"private$\c"), "7")
    assert stream.next() == ["3", "6", "7"]
    assert stream.next() == ["4"]
    assert stream.next() == []


@pytest.mark.parametrize("mode", ["consume", "browse"])
def test_a_limit_is_used_by_the_queues_that_have_something(qm: mq.QueueManager, mode: str) -> None:
    busy, idle = qm.create_queue(r"private$\a"), qm.create_queue(r"private$\b")
    send(busy, *map(str, range(100)))
    send(idle, "one")
    stream = Stream(qm, "*", maxMessagesPerTrigger="50", mode=mode)
    assert [len(stream.next()) for _ in range(4)] == [50, 50, 1, 0]
    for _ in range(10):
        busy.send(bytes(10_000))
    by_bytes = Stream(qm, "*", maxBytesPerTrigger="50000", mode=mode, reader="other")
    by_bytes.offset = stream.offset if mode == "browse" else by_bytes.offset
    assert [len(by_bytes.next()) for _ in range(3)] == [5, 5, 0]


def test_a_batch_waits_for_so_many_messages_but_not_for_ever(qm: mq.QueueManager) -> None:
    queue = qm.create_queue(r"private$\a")
    now = 1000.0
    stream = Stream(qm, r"private$\a", minMessagesPerTrigger="3", maxTriggerDelay="60")
    assert stream.reader.getDefaultReadLimit() == ReadMinRows(3)
    stream.reader = StreamReader(read_source_options(stream.options), lambda: now)
    send(queue, "1")
    assert stream.next() == ["1"], "the first batch waits for nothing"
    send(queue, "2")
    now += 59
    assert stream.plan() == stream.offset
    send(queue, "3", "4")
    assert stream.next() == ["2", "3", "4"]
    send(queue, "5")
    now += 59
    assert stream.plan() == stream.offset
    now += 1
    assert stream.next() == ["5"]
    send(queue, "6")
    stream.reader.prepareForTriggerAvailableNow()
    assert stream.next() == ["6"], "a query that ends would wait for ever"


def test_queues_are_named_by_patterns(qm: mq.QueueManager) -> None:
    for name in ("orders", "ORDERLY", "invoices"):
        send(qm.create_queue(rf"private$\{name}"), name)

    def labels(queue: str) -> list[str]:
        return sorted(Stream(qm, queue, mode="browse").next())

    assert labels(r"private$\ord*") == ["ORDERLY", "orders"]
    assert labels(r"*ers, private$\invoices") == ["invoices", "orders"]
    assert labels(r"private$\x*") == []
    qm.create_queue(r"private$\kept", journaling=True)
    send(qm.queue(r"private$\kept"), "received")
    qm.queue(r"private$\kept").receive(0)
    assert labels(r"private$\k*;journal") == ["received"]
    assert labels(r"private$\ord*;journal") == []


def test_a_stream_begins_where_the_option_says_for_each_queue(qm: mq.QueueManager) -> None:
    for name in "abc":
        send(qm.create_queue(rf"private$\{name}"), f"{name}1", f"{name}2")
    second = qm.queue(r"private$\a").properties().last_arrival_number - 4
    wishes = {r"private$\A": second, r"private$\b*": "latest"}
    stream = Stream(qm, "*", startingOffsets=json.dumps(wishes))
    assert stream.next() == ["a2", "c1", "c2"]
    assert qm.queue(r"private$\a").peek(0).label == "a1"
    with pytest.raises(BadOption, match=r"option startingOffsets: private\$\\a has no arrival num"):
        Stream(qm, "*", startingOffsets=json.dumps({r"private$\a": second + 1000}))


def test_a_batch_begins_and_ends_where_the_options_say(qm: mq.QueueManager) -> None:
    for name in "ab":
        send(qm.create_queue(rf"private$\{name}"), *(f"{name}{number}" for number in range(4)))
    first = qm.queue(r"private$\a").properties().last_arrival_number - 7
    options = {
        "qm": qm.settings.address,
        "queue": "*",
        "columns": "label",
        "startingOffsets": json.dumps({r"private$\a": first + 1}),
        "endingOffsets": json.dumps({r"private$\a": first + 3, r"private$\b": first + 5}),
    }
    rows = read_batch(BatchReader(read_source_options(options)))
    assert [row["label"] for row in rows] == ["a1", "a2", "b0"]


def test_several_queue_managers_are_read_as_one_stream(qm: mq.QueueManager, tmp_path: Path) -> None:
    other = Manager(tmp_path)
    try:
        with mq.connect(other.address) as second:
            for connection, label in ((qm, "here"), (second, "there")):
                send(connection.create_queue(r"private$\a"), label)
            stream = Stream(qm, r"private$\a", qm=f"{qm.settings.address},{other.address}")
            assert stream.next() == ["here", "there"]
            report = stream.reader.reportLatestOffset()
            assert [place["qm"] for place in report.values()] == [
                qm.settings.address,
                other.address,
            ]
    finally:
        other.kill()


def test_journals_and_dead_letters_are_sources_too(qm: mq.QueueManager) -> None:
    queue = qm.create_queue(r"private$\a", journaling=True)
    send(queue, "received")
    queue.receive(0)
    send(queue, "too late", time_to_be_received_s=0, journal_on_failure=True)
    stream = Stream(qm, names(r"private$\a;journal", "system$;deadletter"))
    while "too late" not in (found := stream.next()):
        assert found in ([], ["received"])
    assert qm.queue("system$;deadletter").count() == 0
    assert queue.journal.count() == 0


@pytest.mark.parametrize("mode", ["consume", "browse"])
def test_the_lag_of_each_queue_is_told_in_messages(qm: mq.QueueManager, mode: str) -> None:
    queue, other = qm.create_queue(r"private$\a"), qm.create_queue(r"private$\b")
    send(queue, *"12345")
    send(other, *"678")

    def lag(reader: StreamReader) -> list[int]:
        return [place["behind"] for place in reader.reportLatestOffset().values()]

    stream = Stream(qm, r"private$\a", maxMessagesPerTrigger="2", mode=mode)
    assert lag(stream.reader) == [5]
    end = stream.plan()
    assert lag(stream.reader) == [3]
    # Right after a restart the batch is repeated.
    stream.reader = stream.again()
    assert lag(stream.reader) == [3 if mode == "consume" else 5]
    stream.read(end)
    assert lag(stream.reader) == [3]
    (place,) = stream.reader.reportLatestOffset().values()
    assert place["waiting"] == 5
    assert place["next"] == queue.properties().last_arrival_number + 1


# What is gone.


def lose(stream: Stream) -> str:
    """Return what a stream says about lost messages when it plans its next batch."""
    with pytest.raises(DataLost) as lost:
        stream.plan()
    assert "failOnDataLoss=false" in str(lost.value)
    return str(lost.value)


def test_a_queue_that_is_deleted_stops_the_stream_or_not_as_asked(qm: mq.QueueManager) -> None:
    send(qm.create_queue(r"private$\a"), "1")
    send(qm.create_queue(r"private$\b"), "2")
    both = names(r"private$\a", r"private$\b")
    strict = Stream(qm, both, mode="browse")
    easy = Stream(qm, both, failOnDataLoss="false")
    assert easy.next() == ["1", "2"]
    qm.delete_queue(r"private$\a")
    assert lose(strict).startswith(rf"queue private$\a at {qm.settings.address} was deleted")
    send(qm.queue(r"private$\b"), "3")
    assert easy.next() == ["3"]
    easy.reader.reportLatestOffset()
    easy.reader.prepareForTriggerAvailableNow()
    assert easy.next() == []
    # A new queue of the same name is another one, and all that is in it is new.
    easy.reader = easy.again()
    send(qm.create_queue(r"private$\a"), "4")
    assert easy.next() == ["4"]
    assert lose(strict).startswith(
        rf"queue private$\a at {qm.settings.address} was deleted and made"
    )


def test_a_batch_whose_queue_is_gone_is_empty_or_refused_as_asked(qm: mq.QueueManager) -> None:
    send(qm.create_queue(r"private$\a"), "1")
    stream = Stream(qm, r"private$\a")
    end = stream.plan()
    qm.delete_queue(r"private$\a")
    with pytest.raises(DataLost, match="is not there"):
        stream.read(end)
    stream.options["failOnDataLoss"] = "false"
    stream.reader = stream.again()
    assert stream.read(end) == []
    stream.reader.commit(end)


def test_a_batch_that_was_released_is_refused_or_reserved_again_as_asked(
    qm: mq.QueueManager,
) -> None:
    queue = qm.create_queue(r"private$\a")
    send(queue, *"123")
    stream = Stream(qm, r"private$\a")
    end = stream.plan()
    qm.release(r"private$\a")
    assert queue.receive(0).label == "1"
    with pytest.raises(DataLost, match="had reserved in"):
        stream.read(end)
    stream.options["failOnDataLoss"] = "false"
    stream.reader = stream.again()
    assert stream.read(end) == ["2", "3"]
    stream.reader.commit(end)
    assert queue.count() == 0


@pytest.mark.parametrize("missing", ["beginning", "end"])
def test_a_batch_of_which_a_part_is_not_reserved_any_more_is_refused_or_read_as_asked(
    qm: mq.QueueManager, missing: str
) -> None:
    queue = qm.create_queue(r"private$\a")
    send(queue, *"123")
    stream = Stream(qm, r"private$\a")
    end = stream.plan()
    qm.release(r"private$\a")
    if missing == "beginning":
        assert queue.receive(0).label == "1"
        queue.reserve("spark", queue.properties().last_arrival_number - 1)
    else:
        queue.reserve("spark", 0, count=2)
        assert queue.receive(0).label == "3"
    with pytest.raises(DataLost, match="had reserved in"):
        stream.read(end)
    stream.options["failOnDataLoss"] = "false"
    stream.reader = stream.again()
    if missing == "end":
        assert stream.read(end) == ["1", "2"]
    else:
        with pytest.raises(QueueProblem, match="another one uses its name, or it has lost its"):
            stream.read(end)


def test_nobody_completes_a_batch_who_only_goes_by_the_name_of_the_reader(
    qm: mq.QueueManager,
) -> None:
    queue = qm.create_queue(r"private$\a")
    send(queue, *"123")
    stream = Stream(qm, r"private$\a")
    end = stream.plan()
    with pytest.raises(SharingViolation, match="is being read from another checkpoint"):
        queue.complete("spark", 1 << 50)
    assert stream.read(end) == ["1", "2", "3"]


@pytest.mark.parametrize("change", [{"identity": "00" * 16}, {"next": 1_000_000}])
def test_a_batch_of_another_queue_or_store_takes_nothing_out_of_this_one(
    qm: mq.QueueManager, change: dict[str, Any]
) -> None:
    """By the number of arrival alone these messages were read; but those were other messages."""
    queue = qm.create_queue(r"private$\a")
    send(queue, *"123")
    stream = Stream(qm, r"private$\a")
    end = stream.plan()
    changed = {key: spot | (change if "queue" in spot else {}) for key, spot in end.items()}
    assert changed != end
    stream.reader.commit(changed)
    assert queue.count() == 3
    assert stream.read(end) == ["1", "2", "3"]
    stream.reader.commit(end)
    assert queue.count() == 0


@pytest.mark.parametrize("reader", ["spark", "other"])
def test_an_older_copy_of_the_store_is_refused_or_read_as_asked(
    qm: mq.QueueManager, reader: str
) -> None:
    queue = qm.create_queue(r"private$\a")
    send(queue, *"12")
    stream = Stream(qm, r"private$\a")
    place = queue.properties().last_arrival_number
    if reader == "spark":
        # The copy was made when the first message was processed and the second one reserved.
        queue.complete(reader, queue.reserve(reader, 0, count=1))
        queue.reserve(reader, place)
    for spot in stream.offset.values():
        if "next" in spot:
            spot["next"] = place + 1000
    assert "its store was replaced" in lose(stream)
    stream.options["failOnDataLoss"] = "false"
    stream.reader = stream.again()
    assert stream.next() == (["2"] if reader == "spark" else ["1", "2"])
    send(queue, "3")
    assert stream.next() == ["3"]
    assert queue.count() == 0


# What goes wrong.


def test_an_address_where_nobody_answers_is_named_at_once(qm: mq.QueueManager) -> None:
    with pytest.raises(QueueProblem, match=rf"option qm, {NOBODY}: no queue manager answers"):
        Stream(qm, r"private$\a", qm=NOBODY, reconnectWithin="0")
    reader = BatchReader(read_source_options({"qm": NOBODY, "queue": "*"}))
    with pytest.raises(QueueProblem, match=f"option qm, {NOBODY}: "):
        reader.partitions()


def test_a_queue_manager_that_restarts_is_waited_for(
    qm: mq.QueueManager, killable: Manager
) -> None:
    send(qm.create_queue(r"private$\a"), "1")
    stream = Stream(qm, r"private$\a")
    end = stream.plan()
    killable.kill()
    stream.options["reconnectWithin"] = "0"
    stream.reader, patient = stream.again(), stream.reader
    with pytest.raises(QueueProblem, match="Is it running"):
        stream.plan()
    stream.reader = patient
    killable.start_later()
    assert stream.read(end) == ["1"]


def test_a_queue_that_is_not_there_is_named(qm: mq.QueueManager) -> None:
    address = re.escape(qm.settings.address)
    with pytest.raises(QueueGone, match=rf"queue private\$\\x at {address} is not there"):
        Stream(qm, r"private$\x")


def test_a_file_of_authorities_that_is_missing_is_named(qm: mq.QueueManager) -> None:
    with pytest.raises(BadOption, match="option ca: /nowhere cannot be used on this computer"):
        Stream(qm, r"private$\a", ca="/nowhere")


def test_a_schema_of_ones_own_is_refused() -> None:
    source = MsmqDataSource({"queue": r"private$\a", "columns": "label"})
    with pytest.raises(BadOption, match=r"leave out schema\(\)"):
        source.streamReader(MsmqDataSource({"queue": r"private$\a"}).schema())


# Messages that cannot be decoded.


def spoil(killable: Manager, label: str) -> int:
    """Break the packets of messages with a label, while the queue manager is stopped."""
    killable.kill()
    store = open_store(killable.folder / "data" / "store")
    start, stop = records.kind_range(b"E")
    changes = [
        (key, value[: records.FACTS_BYTES] + b"\xff" * (len(value) - records.FACTS_BYTES))
        for key, value in store.scan(start, stop, 1000)
        if label.encode("utf-16-le") in value
    ]
    store.commit(Batch(changes))
    store.close()
    killable.start()
    return len(changes)


def test_messages_that_cannot_be_decoded_become_what_the_option_says(
    killable: Manager, qm: mq.QueueManager
) -> None:
    queue = qm.create_queue(r"private$\a")
    poison = qm.create_queue(r"private$\poison", transactional=True)
    send(queue, "1", "spoiled", "2", "spoiled")
    assert spoil(killable, "spoiled") == 2
    browse = {"mode": "browse", "columns": "label,body,error,arrival_number"}
    row, skip, fail, set_aside = (
        Stream(qm, r"private$\a", onError=mode, **browse, **options)
        for mode, options in (
            *(("row", {}), ("skip", {}), ("fail", {})),
            ("queue", {"poisonQueue": r"private$\poison"}),
        )
    )
    end = row.plan()
    (part,) = row.reader.partitions(row.offset, end)
    found = pa.Table.from_batches(row.reader.read(part)).to_pylist()
    assert [each["label"] for each in found] == ["1", None, "2", None]
    assert [each["error"] is None for each in found] == [True, False, True, False]
    assert set(found[1]["body"]) == {0xFF}
    assert skip.next() == ["1", "2"]
    with pytest.raises(QueueProblem, match=r"2 messages of private\$\\a .* cannot be decoded"):
        fail.next()
    for _ in range(2):
        assert set_aside.read(end) == ["1", "2"]
    bad = poison.receive_many(10, 0)
    assert [message.body_bytes for message in bad] == [found[1]["body"], found[3]["body"]]
    assert bad[0].label.startswith(r"private$\a ")
    assert poison.count() == 0, "messages were set aside twice"


# Queues as tables.


def read_batch(reader: BatchReader) -> list[dict[str, Any]]:
    return [
        row
        for part in reader.partitions()
        for batch in reader.read(part)
        for row in batch.to_pylist()
    ]


def test_filters_are_applied_by_the_tasks_and_by_the_plan(qm: mq.QueueManager) -> None:
    for name in "ab":
        send(qm.create_queue(rf"private$\{name}"), f"{name}1", f"{name}2", f"{name}3")
    options = {"qm": qm.settings.address, "queue": "*", "columns": "queue,label,arrival_number"}
    reader = FilteringBatchReader(read_source_options(options | {"pushFilters": "true"}))
    first = qm.queue(r"private$\b").properties().last_arrival_number - 2
    conditions = [
        EqualTo(("queue",), r"private$\b"),
        GreaterThan(("arrival_number",), first),
        StringStartsWith(("label",), "b"),
        EqualTo(("colour",), "red"),
    ]
    assert list(reader.pushFilters(conditions)) == conditions[3:]
    (task,) = reader.partitions()
    (part,) = task.ranges
    assert (part.queue, part.start) == (r"private$\b", first + 1)
    assert [row["label"] for row in read_batch(reader)] == ["b2", "b3"]


def test_a_long_queue_is_shared_by_tasks_and_later_messages_are_not_in_it(
    qm: mq.QueueManager,
) -> None:
    queue = qm.create_queue(r"private$\a")
    other = qm.create_queue(r"private$\b")
    send(queue, "first")
    other.send_many([b""] * 2 * TASK_MIN_COUNT)
    send(queue, "last")
    options = {"qm": qm.settings.address, "columns": "label", "numPartitions": "2"}
    sparse = names(r"private$\a", r"PRIVATE$\A")
    reader = BatchReader(read_source_options(options | {"queue": sparse}))
    assert len(reader.partitions()) == 1, "numbers that others have do not count"
    parts = BatchReader(read_source_options(options | {"queue": "*"})).partitions()
    send(queue, "later")
    counts = [sum(batch.num_rows for batch in reader.read(part)) for part in parts]
    assert len(counts) == 2
    assert sum(counts) == 2 * TASK_MIN_COUNT + 2
    assert min(counts) > 0.8 * TASK_MIN_COUNT


def test_large_messages_are_shared_by_their_bytes_and_small_queues_are_put_together(
    qm: mq.QueueManager,
) -> None:
    large = qm.create_queue(r"private$\large")
    large.send_many([bytes(1 << 20)] * 48)
    for number in range(30):
        send(qm.create_queue(rf"private$\small{number}"), f"{number}")
    options = {"qm": qm.settings.address, "queue": "*", "columns": "queue"}
    reader = BatchReader(read_source_options(options))
    parts = reader.partitions()
    found = [
        [row["queue"] for batch in reader.read(part) for row in batch.to_pylist()] for part in parts
    ]
    assert len(found) == 3
    assert sorted(name for names in found for name in names) == sorted(
        [r"private$\large"] * 48 + [rf"private$\small{number}" for number in range(30)]
    )
    assert max(names.count(r"private$\large") for names in found) <= 20


# Through Spark.


def said(spark_error: Exception) -> str:
    sentence = sentence_in(str(spark_error))
    assert sentence is not None, spark_error
    return sentence


def test_a_table_of_messages_in_spark(qm: mq.QueueManager, spark: SparkSession) -> None:
    for name in "ab":
        send(qm.create_queue(rf"private$\{name}"), f"{name}1", f"{name}2")
    reading = spark.read.format("msmq").option("qm", qm.settings.address).option("queue", "*")
    table = reading.load()
    assert tuple(table.columns) == NAMES
    assert table.count() == 4
    narrow = reading.option("columns", "label,queue").option("pushFilters", "true").load()
    found = narrow.where(r"queue = 'private$\\b' AND label > 'b1'").collect()
    assert [tuple(row) for row in found] == [("b2", r"private$\b")]
    for options, sentence in (
        ({"qmm": "x"}, "option qmm: is not known; there are qm, "),
        ({"queue": r"private$\x"}, rf"queue private$\x at {qm.settings.address} is not there"),
        ({"qm": NOBODY}, f"option qm, {NOBODY}: no queue manager answers"),
        ({"columns": "colour"}, "option columns: 'colour' is no column; there are queue_manager"),
    ):
        with pytest.raises(Exception) as failed:  # noqa: PT011 -- Spark has several kinds
            reading.options(**options).load().count()
        assert said(failed.value).startswith(sentence)
        reading = spark.read.format("msmq").option("qm", qm.settings.address).option("queue", "*")


def test_a_stream_of_messages_in_spark(
    qm: mq.QueueManager, spark: SparkSession, tmp_path: Path
) -> None:
    queue = qm.create_queue(r"private$\a")
    send(queue, *"12345")

    def process() -> tuple[list[int], list[str]]:
        query = (
            spark.readStream.format("msmq")
            .options(qm=qm.settings.address, queue=r"private$\a", maxMessagesPerTrigger=2)
            .load()
            .select("label")
            .writeStream.format("parquet")
            .options(path=str(tmp_path / "table"), checkpointLocation=str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        table = spark.read.schema("label STRING").parquet(str(tmp_path / "table"))
        rows = [each.numInputRows for each in query.recentProgress if each.numInputRows]
        return rows, sorted(row.label for row in table.collect())

    assert process() == ([2, 2, 1], ["1", "2", "3", "4", "5"])
    assert queue.count() == 0
    send(queue, "6")
    assert process() == ([1], ["1", "2", "3", "4", "5", "6"])
    qm.delete_queue(r"private$\a")
    with pytest.raises(StreamingQueryException) as failed:
        process()
    assert said(failed.value).startswith(rf"queue private$\a at {qm.settings.address} is not there")
