"""A queue manager and PostgreSQL commit together, or not at all."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import psycopg
import pytest

import openmsmq as mq
from bench.peers.databases import program
from openmsmq.model.errors import AccessDenied, InvalidParameter, TransactionSequence
from openmsmq.xa import Recovered, TwoPhase, two_phase
from tests.postgres import Postgres
from tests.server_thread import ServerThread
from tests.xa.rehearsal import Died, Rehearsal

pytestmark = pytest.mark.skipif(
    program("initdb") is None,
    reason="there is no PostgreSQL: scripts/ensure-postgres installs it on Debian",
)

ORDERS = r"private$\orders"
INSERT = "INSERT INTO labels VALUES (%s)"


def sent(orders: mq.Queue, *labels: str) -> None:
    for label in labels:
        orders.send("x", label=label, transaction=mq.SINGLE_MESSAGE)


def in_queue(orders: mq.Queue) -> list[str]:
    return [message.label for message in orders.browse()]


def in_database(postgres: Postgres, table: str = "labels", column: str = "label") -> list[str]:
    with psycopg.connect(postgres.database) as connection:
        rows = connection.execute(f"SELECT {column} FROM {table} ORDER BY 1")
        return [str(row[0]) for row in rows]


def move(both: TwoPhase, orders: mq.Queue, database: psycopg.Connection) -> None:
    with both as transaction:
        message = orders.receive(timeout=0, transaction=transaction)
        database.execute(INSERT, [message.label])


def dies(place: ServerThread, postgres: Postgres, step: str, name: str = "two-phase") -> None:
    """Let another program move a message, and die before a step."""

    def at(now: str) -> None:
        if now == step:
            raise Died

    with mq.connect(f"{place.host}:{place.port}") as manager:
        database = psycopg.connect(postgres.database)
        its = Rehearsal(manager, database, at=at, name=name)
        with pytest.raises(Died):
            move(its, manager.queue(ORDERS), database)
        database.close()


def test_what_commits_is_in_both(
    manager: mq.QueueManager, orders: mq.Queue, database: psycopg.Connection, postgres: Postgres
) -> None:
    sent(orders, "one", "two")
    both = two_phase(manager, database)
    move(both, orders, database)
    assert (in_queue(orders), in_database(postgres)) == (["two"], ["one"])
    move(both, orders, database)
    assert (in_queue(orders), in_database(postgres)) == ([], ["one", "two"])
    # The row of the first went with the second.
    assert len(in_database(postgres, "openmsmq_decisions", "unit_of_work")) == 1
    assert two_phase(manager, database).recover() == Recovered(0, 0, 0)
    assert in_database(postgres, "openmsmq_decisions", "unit_of_work") == []


def test_an_exception_undoes_both(
    manager: mq.QueueManager, orders: mq.Queue, database: psycopg.Connection, postgres: Postgres
) -> None:
    sent(orders, "one")
    with contextlib.suppress(ZeroDivisionError), two_phase(manager, database) as transaction:
        database.execute(INSERT, [orders.receive(timeout=0, transaction=transaction).label])
        raise ZeroDivisionError
    assert (in_queue(orders), in_database(postgres)) == (["one"], [])
    assert manager.in_doubt() == []


def test_what_the_database_refuses_at_its_commit_is_not_received(
    manager: mq.QueueManager, orders: mq.Queue, database: psycopg.Connection, postgres: Postgres
) -> None:
    # The key is looked at when the transaction commits, long after the queue manager has prepared.
    sent(orders, "one", "one")
    both = two_phase(manager, database)
    move(both, orders, database)
    with pytest.raises(psycopg.errors.UniqueViolation):
        move(both, orders, database)
    assert (in_queue(orders), in_database(postgres)) == (["one"], ["one"])
    assert manager.in_doubt() == []


def test_a_lost_connection_of_the_database_undoes_both(
    manager: mq.QueueManager, orders: mq.Queue, database: psycopg.Connection, postgres: Postgres
) -> None:
    sent(orders, "one")
    both = two_phase(manager, database)
    with contextlib.suppress(psycopg.OperationalError), both as transaction:
        orders.receive(timeout=0, transaction=transaction)
        with psycopg.connect(postgres.database, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", [database.info.backend_pid])
        database.execute(INSERT, ["one"])
    assert (in_queue(orders), in_database(postgres)) == (["one"], [])


@pytest.mark.parametrize(
    ("step", "outcome", "rows"),
    [
        ("prepare", Recovered(0, 0, 0), []),
        ("commit", Recovered(0, 1, 0), []),
        ("tell", Recovered(1, 0, 0), ["one"]),
        ("end", Recovered(0, 0, 0), ["one"]),
    ],
)
def test_who_comes_after_a_death_ends_what_was_begun(
    place: ServerThread,
    manager: mq.QueueManager,
    orders: mq.Queue,
    database: psycopg.Connection,
    postgres: Postgres,
    step: str,
    outcome: Recovered,
    rows: list[str],
) -> None:
    sent(orders, "one")
    dies(place, postgres, step)
    both = Rehearsal(manager, database, at=lambda _: None)
    assert both.recovered == [outcome]
    assert (in_queue(orders), in_database(postgres)) == ([] if rows else ["one"], rows)
    assert manager.in_doubt() == []
    assert in_database(postgres, "openmsmq_decisions", "unit_of_work") == []


def test_who_is_just_committing_is_left_alone(
    place: ServerThread,
    manager: mq.QueueManager,
    orders: mq.Queue,
    database: psycopg.Connection,
    postgres: Postgres,
) -> None:
    sent(orders, "one")
    waiting, go_on = threading.Event(), threading.Event()

    def at(step: str) -> None:
        if step == "commit":
            waiting.set()
            go_on.wait()

    def commits() -> None:
        with (
            mq.connect(f"{place.host}:{place.port}") as slow,
            psycopg.connect(postgres.database) as its_database,
        ):
            move(Rehearsal(slow, its_database, at=at), slow.queue(ORDERS), its_database)

    thread = threading.Thread(target=commits)
    thread.start()
    waiting.wait()
    try:
        both = two_phase(manager, database)
        assert both.recover() == Recovered(0, 0, 1)
    finally:
        go_on.set()
        thread.join()
    assert both.recover() == Recovered(0, 0, 0)
    assert (in_queue(orders), in_database(postgres)) == ([], ["one"])


def test_other_names_are_others_business(
    place: ServerThread,
    manager: mq.QueueManager,
    orders: mq.Queue,
    database: psycopg.Connection,
    postgres: Postgres,
) -> None:
    sent(orders, "one")
    dies(place, postgres, "tell", "other")
    two_phase(manager, database, name="mine")
    assert len(manager.in_doubt()) == 1
    two_phase(manager, database, name="other")
    assert manager.in_doubt() == []
    assert (in_queue(orders), in_database(postgres)) == ([], ["one"])


def test_a_queue_manager_that_does_not_hear_of_the_commit_hears_it_later(
    manager: mq.QueueManager,
    orders: mq.Queue,
    database: psycopg.Connection,
    postgres: Postgres,
    caplog: pytest.LogCaptureFixture,
) -> None:
    sent(orders, "one", "two")
    both = two_phase(manager, database)
    with both as transaction:
        database.execute(INSERT, [orders.receive(timeout=0, transaction=transaction).label])

        def lost() -> None:
            raise mq.OutcomeUnknown("commit", "the cable")

        transaction.commit = lost  # type: ignore[method-assign]
    assert "is committed in the database" in caplog.text
    assert len(manager.in_doubt()) == 1
    move(both, orders, database)
    assert (in_queue(orders), in_database(postgres)) == ([], ["one", "two"])
    assert manager.in_doubt() == []


def test_a_decision_is_durable_though_the_session_would_not_wait_for_the_disk(
    manager: mq.QueueManager, orders: mq.Queue, database: psycopg.Connection
) -> None:
    sent(orders, "one")
    database.execute("SET synchronous_commit = off")
    database.commit()
    seen = {}

    def at(step: str) -> None:
        if step == "commit":
            seen[step] = database.execute("SHOW synchronous_commit").fetchone()

    move(Rehearsal(manager, database, at=at), orders, database)
    assert seen == {"commit": ("on",)}


def test_what_is_used_wrongly_is_said(
    manager: mq.QueueManager, database: psycopg.Connection
) -> None:
    both = two_phase(manager, database)
    database.execute("SELECT 1")
    with pytest.raises(InvalidParameter, match="is intrans, not idle"), both:
        pass
    database.rollback()
    with pytest.raises(TransactionSequence, match="one after the other"), both, both:
        pass
    with pytest.raises(psycopg.ProgrammingError), both:
        database.commit()
    with pytest.raises(InvalidParameter, match="needs a name"):
        two_phase(manager, database, name="")


@pytest.mark.usefixtures("database")
def test_a_user_who_may_not_create_tables_uses_one_that_is_there(
    manager: mq.QueueManager, orders: mq.Queue, postgres: Postgres
) -> None:
    with psycopg.connect(postgres.database, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS limited")
        connection.execute("CREATE ROLE limited LOGIN")
        connection.execute("GRANT ALL ON labels TO limited")
    sent(orders, "one")
    with psycopg.connect(postgres.database.replace("user=tester", "user=limited")) as limited:
        with pytest.raises(AccessDenied, match="GRANT SELECT, INSERT, DELETE") as refused:
            two_phase(manager, limited)
        # What it says can be run as it is.
        with psycopg.connect(postgres.database, autocommit=True) as connection:
            connection.execute(refused.value.detail.partition(" run: ")[2].encode())
        move(two_phase(manager, limited), orders, limited)
    assert (in_queue(orders), in_database(postgres)) == ([], ["one"])
    with psycopg.connect(postgres.database, autocommit=True) as connection:
        connection.execute("DROP OWNED BY limited")


def test_a_table_of_another_version_is_refused_in_words(
    manager: mq.QueueManager, database: psycopg.Connection, postgres: Postgres
) -> None:
    with psycopg.connect(postgres.database, autocommit=True) as connection:
        connection.execute("CREATE TABLE openmsmq_decisions (number int)")
    with pytest.raises(InvalidParameter, match="use the version that has made it"):
        two_phase(manager, database)


class Interrupted:
    """A block whose commit is interrupted when it is there, and before anybody has heard it."""

    def __init__(self, block: Any) -> None:
        self._block = block

    def __enter__(self) -> None:
        raise AssertionError("it has begun")

    def __exit__(self, *error: Any) -> None:
        self._block.__exit__(*error)
        raise KeyboardInterrupt


class InterruptedOnce(TwoPhase):
    """Is interrupted in its first commit."""

    is_interrupted = False

    def _commit_database(self, transaction: mq.Transaction, block: Any) -> None:
        if not self.is_interrupted:
            self.is_interrupted = True
            block = Interrupted(block)
        super()._commit_database(transaction, block)


def test_who_is_interrupted_in_the_commit_hears_of_it_before_the_next_transaction(
    manager: mq.QueueManager, orders: mq.Queue, database: psycopg.Connection, postgres: Postgres
) -> None:
    sent(orders, "one", "two")
    both = InterruptedOnce(manager, database)
    with pytest.raises(KeyboardInterrupt):
        move(both, orders, database)
    assert len(manager.in_doubt()) == 1
    move(both, orders, database)
    assert (in_queue(orders), in_database(postgres)) == ([], ["one", "two"])
    assert manager.in_doubt() == []
