"""One Spark session for the tests that need one, in the same worker, and queue managers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import openmsmq as mq
from openmsmq.client.blocking import QueueManager
from tests.runtime.computers import Computer, running
from tests.runtime.scripted_engine import free_port

if TYPE_CHECKING:
    from tests.spark.exactly_once.harness import Manager

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Starting Spark takes seconds, so one worker does it for all.

    First of all: the plugin that sends tests to workers looks at the marks in this hook, too.
    """
    for item in items:
        if HERE in item.path.parents and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17: scripts/ensure-java installs it on Debian")
    from openmsmq.spark.session import make_session

    session = make_session(
        "tests",
        "local[2]",
        {
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            "spark.sql.streaming.stopTimeout": "60s",
        },
    )
    yield session
    session.stop()


@pytest.fixture(scope="module")
def alpha(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Computer]:
    """A queue manager for the tests of a module, at the module's `ADDRESS`."""
    address = request.module.ADDRESS
    computer = Computer(tmp_path_factory.mktemp("alpha"), "ALPHA", address, free_port(address))
    with running(computer):
        yield computer


@pytest.fixture(scope="module")
def manager(alpha: Computer) -> Iterator[QueueManager]:
    """A connection to it."""
    with alpha.connect() as manager:
        yield manager


@pytest.fixture(scope="module")
def killable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manager]:
    """A queue manager for the tests of a module, in a process of its own."""
    from tests.spark.exactly_once.harness import Manager

    found = Manager(tmp_path_factory.mktemp("killable"))
    yield found
    found.kill()


@pytest.fixture
def qm(killable: Manager) -> Iterator[mq.QueueManager]:
    """A connection to it, without queues and queries of other tests."""
    with mq.connect(killable.address) as connection:
        for status in connection.queues():
            connection.delete_queue(status.path_name)
        for query in connection.queries():
            connection.forget_query(query.query)
        yield connection
