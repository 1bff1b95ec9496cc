"""What those can rely on who watch a queue manager, whichever client they use."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import openmsmq as mq
from openmsmq.client.metrics import metrics_text
from openmsmq.client.settings import Settings
from openmsmq.model import errors
from openmsmq.model.queue import QueueOrder, QueueRole
from tests.contracts.awaited import connect_awaited
from tests.server_thread import start_server

ORDERS = r"private$\orders"


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    with start_server(str(tmp_path)) as server:
        yield Settings(address=f"{server.host}:{server.port}")


@pytest.fixture(params=["blocking", "asyncio"])
def manager(request: pytest.FixtureRequest, settings: Settings) -> Iterator[Any]:
    with ExitStack() as opened:
        connected: Any
        if request.param == "blocking":
            connected = mq.connect(settings)
        else:
            connected = connect_awaited(opened.enter_context(asyncio.Runner()), settings)
        opened.callback(connected.close)
        yield connected


def test_queues_come_in_pages(manager: Any) -> None:
    for name in ("b", "a", "c"):
        manager.create_queue(rf"private$\{name}")
    manager.queue(r"private$\c").send("x")
    page = manager.queue_page(sort=QueueOrder.MESSAGES, descending=True, limit=1)
    assert ([found.path_name for found in page.queues], page.total_count) == (["private$\\c"], 3)
    names = [found.path_name for found in manager.queue_page(filter="*[ab]").queues]
    assert names == [r"private$\a", r"private$\b"]
    both = manager.queue_page(kinds=[QueueRole.SYSTEM, "journal"])
    assert both.total_count == 6
    with pytest.raises(errors.IllegalPropertyValue, match="'name', 'messages'"):
        manager.queue_page(sort="colour")


def test_status_tells_what_the_server_has_measured(manager: Any) -> None:
    before = manager.status().vitals
    manager.create_queue(ORDERS)
    after = manager.status().vitals
    assert after.commit_count > before.commit_count >= 1
    assert after.commit_total_us >= after.commit_worst_us >= after.commit_last_us > 0
    assert after.free_disk_bytes > 0
    assert after.store_bytes > 0


def test_an_operator_sees_connections_and_ends_one(
    manager: Any, settings: Settings, tmp_path: Path
) -> None:
    manager.create_queue(ORDERS, transactional=True)
    with mq.connect(settings) as other:
        work = other.begin()
        other.queue(ORDERS).send("undone", transaction=work)
        (found,) = [each for each in manager.connections() if not each.is_own]
        assert found.door == "tcp"
        assert found.peer.startswith(settings.address.split(":")[0])
        assert [handle.name for handle in found.queues] == [ORDERS]
        assert found.transaction_count == 1
        manager.close_connection(found.number)
        with pytest.raises((ConnectionError, errors.MsmqError)):
            work.commit()
    assert found.number not in {each.number for each in manager.connections()}
    assert manager.queue(ORDERS).count() == 0
    with pytest.raises(errors.InvalidParameter, match="has ended"):
        manager.close_connection(found.number)
    lines = [json.loads(line) for line in _audit(tmp_path).read_text().splitlines()]
    closings = [line for line in lines if line["action"] == "close-connection"]
    assert [(each["with"], each["result"]) for each in closings] == [
        ({"connection": found.number}, "done"),
        ({"connection": found.number}, "MQ_ERROR_INVALID_PARAMETER"),
    ]


def test_one_may_end_its_own_connection_and_hears_that_it_is_done(manager: Any) -> None:
    (own,) = [each for each in manager.connections() if each.is_own]
    manager.close_connection(own.number)
    (next_,) = manager.connections()
    assert next_.number > own.number


def test_metrics_are_what_the_replies_say(manager: Any) -> None:
    manager.create_queue(ORDERS)
    manager.queue(ORDERS).send("x")
    text = manager.metrics()
    assert 'openmsmq_queue_messages{queue="private$\\\\orders"} 1\n' in text
    assert 'openmsmq_queue_in_messages_total{queue="private$\\\\orders"} 1\n' in text
    page = manager.queue_page(kinds=["queue", "subqueue", "system"], with_totals=True)
    again = metrics_text(manager.status(), page, manager.outgoing(), manager.sessions())
    assert {line.split(" ")[0] for line in again.splitlines() if line[0] != "#"} == {
        line.split(" ")[0] for line in text.splitlines() if line[0] != "#"
    }


def _audit(data: Path) -> Path:
    (found,) = data.rglob("audit.log")
    return found
