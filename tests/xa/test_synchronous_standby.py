"""Both or neither, also when the database has a synchronous standby and fails over to it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

import openmsmq as mq
from bench.peers.databases import Databases, program
from openmsmq.client.errors import OutcomeUnknown
from openmsmq.xa import two_phase
from tests.runtime.computers import wait_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        program("initdb") is None,
        reason="there is no PostgreSQL: scripts/ensure-postgres installs it on Debian",
    ),
]

INSERT = "INSERT INTO labels VALUES (%s)"


@pytest.fixture
def databases() -> Iterator[Databases]:
    made = Databases()
    with psycopg.connect(made.first.address, autocommit=True) as connection:
        connection.execute("CREATE TABLE labels (label text)")
    yield made
    made.remove()


def in_queue(orders: mq.Queue) -> list[str]:
    return [message.label for message in orders.browse()]


def waiting(databases: Databases) -> list[int]:
    """Return who waits for the standby; what waits is there and cannot be seen yet."""
    with psycopg.connect(databases.first.address, autocommit=True) as connection:
        asked = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        return [row[0] for row in connection.execute(asked)]


def move(
    manager: mq.QueueManager, orders: mq.Queue, databases: Databases, problems: list[BaseException]
) -> None:
    """Move a message into the database; remember what went wrong."""
    try:
        with (
            psycopg.connect(databases.first.address) as database,
            two_phase(manager, database) as transaction,
        ):
            label = orders.receive(timeout=0, transaction=transaction).label
            database.execute(INSERT, [label])
    except (psycopg.Error, OutcomeUnknown) as error:
        problems.append(error)


def recover(manager: mq.QueueManager, databases: Databases) -> None:
    """Settle what is in doubt, as a program does that begins to work with the two."""
    with psycopg.connect(databases.first.address) as database:
        two_phase(manager, database)


@contextlib.contextmanager
def commit_that_waits(
    manager: mq.QueueManager, orders: mq.Queue, databases: Databases
) -> Iterator[None]:
    """Move a message while the standby is away: the body runs beside the commit and ends its wait.

    Who commits is never told whether it was done.
    """
    orders.send("x", label="one", transaction=mq.SINGLE_MESSAGE)
    recover(manager, databases)
    problems: list[BaseException] = []
    databases.second.stop()
    moving = threading.Thread(target=move, args=(manager, orders, databases, problems))
    moving.start()
    wait_for(lambda: waiting(databases))
    yield
    moving.join(30)
    assert [type(each) for each in problems] == [OutcomeUnknown]


def test_a_commit_that_is_not_replicated_decides_nothing_until_it_is(
    manager: mq.QueueManager, orders: mq.Queue, databases: Databases
) -> None:
    with (
        commit_that_waits(manager, orders, databases),
        psycopg.connect(databases.first.address, autocommit=True) as connection,
    ):
        # Somebody ends the wait: the database warns, in words of its own language, and says COMMIT.
        for pid in waiting(databases):
            connection.execute("SELECT pg_cancel_backend(%s)", [pid])
    assert len(manager.in_doubt()) == 1
    databases.second.start()
    recover(manager, databases)
    assert (in_queue(orders), manager.in_doubt()) == ([], [])


def test_recovery_ends_nothing_by_what_the_database_can_still_lose(
    manager: mq.QueueManager, orders: mq.Queue, databases: Databases
) -> None:
    with commit_that_waits(manager, orders, databases):
        databases.first.stop()
    # It starts again, and shows the decision, which is on one disk only.
    databases.first.start()
    recovering = threading.Thread(target=_recover_in_vain, args=(manager, databases))
    recovering.start()
    wait_for(lambda: waiting(databases))
    time.sleep(0.2)
    assert len(manager.in_doubt()) == 1
    # That disk is lost, and with it the decision. The message is not.
    databases.first.stop()
    recovering.join(30)
    databases.second.start()
    databases.second.set(synchronous_standby_names="")
    databases.second.promote()
    with psycopg.connect(databases.second.address) as database:
        two_phase(manager, database)
        rows = database.execute("SELECT label FROM labels").fetchall()
    assert (in_queue(orders), rows, manager.in_doubt()) == (["one"], [], [])


def _recover_in_vain(manager: mq.QueueManager, databases: Databases) -> None:
    with contextlib.suppress(psycopg.Error, OutcomeUnknown):
        recover(manager, databases)
