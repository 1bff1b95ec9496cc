"""Batches go into PostgreSQL exactly once, wherever the driver or the server dies."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

import openmsmq as mq
from bench.peers.databases import program
from openmsmq.spark.errors import DatabaseProblem, sentence_in
from openmsmq.spark.write_once import BATCHES_TABLE, WriteOnce, write_once
from tests.postgres import Postgres
from tests.spark.exactly_once.harness import Manager

pytestmark = pytest.mark.skipif(
    program("initdb") is None,
    reason="there is no PostgreSQL: scripts/ensure-postgres installs it on Debian",
)

TABLE = "sales.orders"


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    found = Postgres()
    yield found
    found.remove()


@pytest.fixture
def database(server: Postgres) -> Iterator[str]:
    """A database with an empty table."""
    with psycopg.connect(server.database, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS sales CASCADE")
        connection.execute(f"DROP TABLE IF EXISTS {BATCHES_TABLE}")
        connection.execute("CREATE SCHEMA sales")
        connection.execute(f"CREATE TABLE {TABLE} (place serial, label text, body bytea)")
    return server.database


class Killed(BaseException):
    """The driver is dead."""


class Frame:
    """The rows of a batch, as the driver gets them from Spark, without Spark."""

    columns = ("label", "body")

    def __init__(self, *labels: str, then: Callable[[], None] = lambda: None) -> None:
        self._labels = labels
        self._then = then

    def toLocalIterator(self, *, prefetchPartitions: bool) -> Iterator[tuple[object, ...]]:
        assert prefetchPartitions
        for label in self._labels:
            yield label, bytearray(label.encode())
        self._then()

    def count(self) -> int:
        return len(self._labels)


def write(
    database: str, batch: int, *labels: str, checkpoint: str = "c1", query: str = "orders"
) -> None:
    put(write_once(database, TABLE, query=query, checkpoint=checkpoint), Frame(*labels), batch)


def put(once: WriteOnce, frame: Any, batch: int) -> None:
    once(frame, batch)


def labels(database: str) -> list[str]:
    with psycopg.connect(database) as connection:
        rows = connection.execute(f"SELECT label, body FROM {TABLE} ORDER BY place").fetchall()
    assert all(body == label.encode() for label, body in rows)
    return [label for label, _ in rows]


def test_each_batch_is_written_once(database: str) -> None:
    for batch in (0, 0, 1, 1, 5):
        write(database, batch, f"{batch} a", f"{batch} b")
    assert labels(database) == ["0 a", "0 b", "1 a", "1 b", "5 a", "5 b"]


def test_a_batch_without_rows_counts_too(database: str) -> None:
    write(database, 0)
    with pytest.raises(DatabaseProblem, match="written with 0 rows, and comes again with 1"):
        write(database, 0, "new")
    write(database, 1, "next")
    assert labels(database) == ["next"]


@pytest.mark.parametrize(
    ("batch", "checkpoint", "rows", "problem"),
    [
        (6, "c1", ("new",), "batch 6 of 'orders' is older than the last one written, 7"),
        (7, "c1", ("old", "new"), "was written with 1 rows, and comes again with 2"),
        (7, "c2", ("new",), "from checkpoint 'c1': .* DELETE FROM openmsmq_batches"),
        (8, "c2", ("new",), "comes from checkpoint 'c2'"),
    ],
)
def test_what_is_neither_next_nor_a_repetition_is_refused_and_not_dropped(
    database: str, batch: int, checkpoint: str, rows: tuple[str, ...], problem: str
) -> None:
    write(database, 7, "old")
    with pytest.raises(DatabaseProblem, match=problem):
        write(database, batch, *rows, checkpoint=checkpoint)
    assert labels(database) == ["old"]
    write(database, 8, "next")
    assert labels(database) == ["old", "next"]


def test_queries_have_numbers_of_their_own(database: str) -> None:
    for query in ("one", "two"):
        write(database, 0, f"of {query}", query=query)
    assert labels(database) == ["of one", "of two"]


def test_a_driver_that_dies_in_a_batch_has_written_nothing_of_it(database: str) -> None:
    def die() -> None:
        raise Killed

    once = write_once(database, TABLE, query="orders", checkpoint="c1")
    for batch in range(3):
        with contextlib.suppress(Killed):
            put(once, Frame("a", "b", then=die), batch)
        assert len(labels(database)) == 2 * batch
        for _ in range(2):
            # The second one comes because the driver died before it could note the first.
            put(once, Frame("a", "b"), batch)
    assert labels(database) == ["a", "b"] * 3


def test_a_server_that_crashes_in_a_batch_has_nothing_of_it(
    server: Postgres, database: str
) -> None:
    once = write_once(database, TABLE, query="orders", checkpoint="c1")
    put(once, Frame("first"), 0)
    with pytest.raises(DatabaseProblem, match=r"batch 1 of 'orders' could not be written to sales"):
        put(once, Frame("second", then=server.stop), 1)
    with pytest.raises(DatabaseProblem):
        put(once, Frame("second"), 1)
    server.start()
    put(once, Frame("first"), 0)
    for _ in range(2):
        put(once, Frame("second"), 1)
    assert labels(database) == ["first", "second"]


def test_a_driver_that_was_only_thought_dead_waits_and_finds_the_batch_written(
    database: str,
) -> None:
    entered, finish = threading.Event(), threading.Event()

    def linger() -> None:
        entered.set()
        assert finish.wait(60)

    def run(frame: Frame) -> None:
        put(write_once(database, TABLE, query="orders", checkpoint="c1"), frame, 0)

    slow = threading.Thread(target=run, args=(Frame("a", then=linger),))
    slow.start()
    assert entered.wait(60)
    second = threading.Thread(target=run, args=(Frame("a"),))
    second.start()
    finish.set()
    for thread in (slow, second):
        thread.join(60)
        assert not thread.is_alive()
    assert labels(database) == ["a"]


@pytest.mark.parametrize(
    ("table", "problem"),
    [("sales.nix", 'relation "sales.nix" does not exist'), (TABLE, 'column "size" of relation')],
)
def test_what_the_database_says_is_one_sentence(database: str, table: str, problem: str) -> None:
    frame = Frame("a")
    frame.columns = ("label", "size")
    with pytest.raises(DatabaseProblem, match=f"could not be written to {table}: {problem}"):
        put(write_once(database, table, query="orders", checkpoint="c1"), frame, 0)


def test_a_query_needs_a_name_and_a_checkpoint(database: str) -> None:
    with pytest.raises(DatabaseProblem, match="query='orders'"):
        write_once(database, TABLE, query="")
    with pytest.raises(DatabaseProblem, match="option checkpoint"):
        put(write_once(database, TABLE, query="orders"), Frame("a"), 0)


def test_a_note_of_an_earlier_version_counts_and_gets_what_it_lacks(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            f"CREATE TABLE {BATCHES_TABLE} (query text PRIMARY KEY, checkpoint text NOT NULL,"
            " batch bigint NOT NULL, row_count bigint NOT NULL,"
            " written_time timestamptz NOT NULL DEFAULT now())"
        )
        connection.execute(f"INSERT INTO {BATCHES_TABLE} VALUES ('orders', 'c1', 7, 1)")
    write(database, 7, "old")
    with pytest.raises(DatabaseProblem, match="was written with 1 rows, and comes again with 2"):
        write(database, 7, "old", "new")
    write(database, 8, "next")
    assert labels(database) == ["next"]


def test_the_advice_to_forget_a_name_is_sql_whatever_the_name_is(database: str) -> None:
    write(database, 0, "a", query="the shop's")
    with pytest.raises(DatabaseProblem) as refused:
        write(database, 1, "b", query="the shop's", checkpoint="c2")
    with psycopg.connect(database) as connection:
        advice = str(refused.value).partition("forget the name with ")[2]
        assert connection.execute(advice).rowcount == 1


class Stream:
    """A database, a queue that a stream looks at, and the stream into the database."""

    def __init__(
        self, database: str, session: SparkSession, qm: mq.QueueManager, folder: Path
    ) -> None:
        self.folder = folder
        self.queue = qm.create_queue(r"private$\in")
        self.messages = (
            session.readStream.format("msmq")
            .options(qm=qm.settings.address, queue=self.queue.name, mode="browse")
            .option("maxMessagesPerTrigger", 2)
            .load()
            .selectExpr("text AS label", "cast(text AS binary) AS body")
        )
        self.once = write_once(database, TABLE, query="orders")

    def send(self, bodies: str) -> None:
        self.queue.send_many(list(bodies), recoverable=True)

    def process(self, checkpoint: str) -> None:
        (
            self.messages.writeStream.foreachBatch(self.once)
            .option("checkpointLocation", str(self.folder / checkpoint))
            .trigger(availableNow=True)
            .start()
            .awaitTermination()
        )


@pytest.fixture
def stream(database: str, spark: SparkSession, tmp_path: Path) -> Iterator[Stream]:
    manager = Manager(tmp_path)
    try:
        with mq.connect(manager.address) as qm:
            yield Stream(database, spark, qm, tmp_path)
    finally:
        manager.kill()


def test_a_batch_that_an_older_copy_plans_anew_is_refused_though_it_has_as_many_rows(
    database: str, stream: Stream
) -> None:
    stream.send("ab")
    stream.process("one")
    shutil.copytree(stream.folder / "one", stream.folder / "copy")
    stream.send("cd")
    stream.process("one")
    # Somebody takes a message, so that the next two are others.
    assert [stream.queue.receive(0).body for _ in "abc"] == list("abc")
    stream.send("e")
    for _ in range(2):
        with pytest.raises(Exception, match="comes again with another end") as failed:
            stream.process("copy")
        assert (sentence_in(str(failed.value)) or "").startswith("batch 1 of 'orders' was written")
    assert labels(database) == list("abcd")
    stream.process("one")
    assert labels(database) == list("abcde")


def test_a_stream_of_messages_goes_into_a_table(database: str, stream: Stream) -> None:
    stream.send("abcde")
    stream.process("one")
    assert labels(database) == list("abcde")
    for name in ("2", ".2.crc"):
        (stream.folder / "one" / "commits" / name).unlink()
    stream.process("one")
    assert labels(database) == list("abcde")
    with pytest.raises(Exception, match="comes from checkpoint") as failed:
        stream.process("two")
    assert (sentence_in(str(failed.value)) or "").startswith("batch 0 of 'orders' comes from")
    assert labels(database) == list("abcde")
