"""Rows go to the queues that they name: all of a batch at once, each once, in order."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import TaskContext

import openmsmq as mq
from openmsmq.model.errors import ReceiveTimeout
from openmsmq.spark.errors import BadOption, QueueProblem
from openmsmq.spark.sink.options import read_sink_options
from openmsmq.spark.sink.writers import Parts, StreamWriter
from tests.spark.exactly_once.harness import Manager

QUEUE_COUNT = 100
DEFAULT = r"private$\default"
COLUMNS = {"body": "body", "queue": "target"}
SCHEMA = pa.schema([("target", pa.string()), ("body", pa.string())])


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manager]:
    found = Manager(tmp_path_factory.mktemp("queues"))
    with mq.connect(found.address) as connection:
        for number in range(QUEUE_COUNT):
            connection.create_queue(target(number), transactional=True)
        connection.create_queue(DEFAULT, transactional=True)
        connection.create_queue(r"private$\plain")
    yield found
    found.kill()


@pytest.fixture
def qm(manager: Manager) -> Iterator[mq.QueueManager]:
    with mq.connect(manager.address) as connection:
        for query in connection.queries():
            connection.forget_query(query.query)
        for status in connection.queues():
            connection.queue(status.path_name).purge()
        yield connection


def target(number: int) -> str:
    return rf"private$\target-{number}"


def writer(qm: mq.QueueManager, **options: str) -> StreamWriter:
    given = {"qm": qm.settings.address, "queueColumn": "target"} | options
    return StreamWriter(read_sink_options(given), COLUMNS)


def write(
    sink: StreamWriter, *rows: tuple[str | None, str], batch: int = 0, partition: int = 0
) -> Parts:
    """Let a task write rows, each with the queue that it names."""
    properties = {"sql.streaming.queryId": "checkpoint", "streaming.sql.batchId": str(batch)}
    TaskContext(partitionId=partition, localProperties=properties)
    try:
        found = [{"target": queue, "body": body} for queue, body in rows]
        return sink.write(iter([pa.RecordBatch.from_pylist(found, SCHEMA)]))
    finally:
        # Only tasks have one.
        TaskContext._setTaskContext(None)  # noqa: SLF001


def bodies(qm: mq.QueueManager, queue: str) -> list[object]:
    return [message.body for message in qm.queue(queue).browse()]


def test_each_row_goes_to_the_queue_that_it_names_and_the_rest_to_that_of_the_option(
    qm: mq.QueueManager,
) -> None:
    sink = writer(qm, queue=DEFAULT)
    parts = write(sink, (target(1), "a"), (None, "b"), (target(2), "c"), (target(1), "d"))
    assert [bodies(qm, queue) for queue in (target(1), target(2), DEFAULT)] == [[], [], []]
    sink.commit([parts], 0)
    assert bodies(qm, target(1)) == ["a", "d"]
    assert bodies(qm, target(2)) == ["c"]
    assert bodies(qm, DEFAULT) == ["b"]


def test_a_queue_keeps_the_order_of_its_rows_whatever_they_call_it(qm: mq.QueueManager) -> None:
    path = target(3)
    names = (path, f".\\{path}", f"DIRECT=OS:.\\{path}", path.upper(), f"ONCE\\{path}", path)
    sink = writer(qm)
    parts = write(sink, *((name, str(number)) for number, name in enumerate(names)))
    sink.commit([parts], 0)
    assert bodies(qm, path) == [str(number) for number in range(len(names))]


@pytest.mark.parametrize(
    ("queue", "problem"),
    [
        (r"private$\nix", r"queue private\$\\nix at .* is not there"),
        (r"private$\plain", r"private\$\\plain at .*transactional"),
        ("DIRECT=nonsense", "DIRECT=nonsense at .*malformed"),
        (None, "a row names no queue: .* option queue"),
        ("", "a row names no queue: .* option queue"),
    ],
)
def test_a_row_with_a_queue_that_cannot_take_it_is_refused_and_nothing_is_sent(
    qm: mq.QueueManager, queue: str | None, problem: str
) -> None:
    with pytest.raises(QueueProblem, match=problem):
        write(writer(qm), (target(1), "good"), (queue, "bad"))
    assert (bodies(qm, target(1)), qm.in_doubt()) == ([], [])


def test_the_queues_of_one_batch_are_bounded(
    qm: mq.QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("openmsmq.spark.sink.parts.QUEUES_MAX_COUNT", 3)
    sink = writer(qm)
    rows = [(target(number), "x") for number in range(4)]
    with pytest.raises(QueueProblem, match="a batch name more than 3 queues"):
        write(sink, *rows)
    # Two tasks may name them together.
    parts = [write(sink, *rows[:2]), write(sink, *rows[1:3])]
    with pytest.raises(QueueProblem, match="a batch name more than 3 queues"):
        sink.commit([*parts, write(sink, rows[3])], 0)
    sink.commit([*parts], 0)
    assert [bodies(qm, queue) for queue, _ in rows] == [["x"], ["x", "x"], ["x"], []]


def test_rows_reach_queues_of_other_computers_through_the_own_one(
    qm: mq.QueueManager, tmp_path: Path
) -> None:
    other = Manager(tmp_path)
    try:
        away = rf"DIRECT=TCP:{other.address}\private$\away"
        with mq.connect(other.address) as there:
            inbox = there.create_queue(r"private$\away", transactional=True)
            sink = writer(qm)
            parts = write(sink, (away, "1"), (target(5), "here"), (away, "2"))
            sink.commit([parts], 0)
            sink.commit([write(sink, (away, "1"))], 0)
            assert [inbox.receive(30).body for _ in range(2)] == ["1", "2"]
            with pytest.raises(ReceiveTimeout):
                inbox.receive(0)
        assert bodies(qm, target(5)) == ["here"]
    finally:
        other.kill()


def test_a_sink_needs_a_queue_or_the_column_that_names_one() -> None:
    with pytest.raises(BadOption, match=r"option queue: is missing.*option queueColumn"):
        read_sink_options({})
    assert read_sink_options({"queueColumn": "target"}).columns == {"queue": "target"}


# Drivers that die.

PARTITIONS, BATCHES = 3, 4


class Killed(Exception):
    """The driver is dead."""


class Driver:
    """What a driver does with batches of rows to all queues; it dies at one of its steps."""

    def __init__(self, qm: mq.QueueManager, noted: set[int], dies_at: int) -> None:
        self.qm = qm
        self.noted = noted
        self.steps = itertools.count()
        self.dies_at = dies_at

    def step(self) -> None:
        if next(self.steps) == self.dies_at:
            raise Killed

    def run(self) -> None:
        for batch in range(BATCHES):
            if batch not in self.noted:
                self.write(batch)

    def write(self, batch: int) -> None:
        sink, parts = writer(self.qm), []
        for partition in range(PARTITIONS):
            # A part more than Spark counts: the task was run twice.
            for _ in range(2):
                found = write(sink, *rows_of(batch, partition), batch=batch, partition=partition)
                self.step()
            parts.append(found)
        sink.commit([*reversed(parts)], batch)
        self.step()
        self.noted.add(batch)
        self.step()


def rows_of(batch: int, partition: int) -> list[tuple[str, str]]:
    """Two rows for each queue, the queues in turn."""
    return [
        (target(queue), f"{batch} {partition} {number}")
        for number in range(2)
        for queue in range(QUEUE_COUNT)
    ]


def test_a_hundred_queues_get_each_batch_once_and_in_order_wherever_the_driver_dies(
    qm: mq.QueueManager,
) -> None:
    noted: set[int] = set()
    deaths = 0
    steps_of_a_batch = 2 * PARTITIONS + 2
    for dies_at in [*range(steps_of_a_batch)] * 2:
        with contextlib.suppress(Killed):
            Driver(qm, noted, dies_at).run()
            break
        deaths += 1
    Driver(qm, noted, -1).run()
    assert deaths > steps_of_a_batch
    expected = [
        f"{batch} {partition} {number}"
        for batch in range(BATCHES)
        for partition in range(PARTITIONS)
        for number in range(2)
    ]
    for queue in range(QUEUE_COUNT):
        assert bodies(qm, target(queue)) == expected, target(queue)
    assert qm.in_doubt() == []
