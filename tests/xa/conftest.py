"""A queue manager with its store in memory, and a server of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import openmsmq as mq
from openmsmq.storage.memory import MemoryStore
from tests.postgres import Postgres
from tests.server_thread import ServerThread, start_server


@pytest.fixture
def place(tmp_path: Path) -> Iterator[ServerThread]:
    with start_server(str(tmp_path), store=MemoryStore()) as running:
        yield running


@pytest.fixture
def manager(place: ServerThread) -> Iterator[mq.QueueManager]:
    with mq.connect(f"{place.host}:{place.port}") as connected:
        yield connected


@pytest.fixture
def orders(manager: mq.QueueManager) -> mq.Queue:
    return manager.create_queue(r"private$\orders", transactional=True)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    found = Postgres()
    yield found
    found.remove()


@pytest.fixture
def database(postgres: Postgres) -> Iterator[psycopg.Connection]:
    """A connection to a database with an empty table of labels."""
    with psycopg.connect(postgres.database, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS openmsmq_decisions, labels")
        connection.execute(
            "CREATE TABLE labels (label text PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)"
        )
    with psycopg.connect(postgres.database) as connection:
        yield connection
