"""What applications can rely on about messages for other computers, whichever client they use.

The server takes no part in the transfer, so that what is sent elsewhere stays where it can be
looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import openmsmq as mq
from openmsmq.client.settings import Settings
from openmsmq.model import errors
from openmsmq.model.message import MessageClass
from openmsmq.storage.memory import MemoryStore
from tests.contracts.awaited import connect_awaited
from tests.server_thread import start_server

ORDERS = r"DIRECT=TCP:127.0.99.99\private$\orders"
BILLS = r"PRIVATE=2d2c0f6e-6f3c-4f0e-9a53-0f5d1a7f3b11\7"


@pytest.fixture(params=["blocking", "asyncio"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with ExitStack() as opened:
        server = opened.enter_context(start_server(str(tmp_path), store=MemoryStore()))
        settings = Settings(address=f"{server.host}:{server.port}")
        connected: Any
        if request.param == "blocking":
            connected = mq.connect(settings)
        else:
            connected = connect_awaited(opened.enter_context(asyncio.Runner()), settings)
        opened.callback(connected.close)
        yield connected


def waiting(manager: Any) -> dict[str, int]:
    return {found.format_name: found.message_count for found in manager.outgoing()}


def test_messages_for_other_computers_wait_in_outgoing_queues(manager: Any) -> None:
    assert manager.outgoing() == []
    manager.queue(ORDERS).send_many(["a", "b"])
    manager.queue(BILLS).send("c", recoverable=True)
    orders = manager.outgoing_queue(ORDERS)
    assert waiting(manager) == {orders.format_name: 2, BILLS: 1}
    assert manager.outgoing_queue(BILLS).message_count == 1
    assert (manager.status().outgoing_count, manager.queues()) == (2, [])


def test_an_outgoing_queue_says_why_its_first_message_has_not_left(manager: Any) -> None:
    manager.queue(BILLS).send("c")
    assert "no route to queue manager" in manager.outgoing_queue(BILLS).explanation


def test_an_outgoing_queue_is_paused_and_resumed(manager: Any) -> None:
    manager.queue(ORDERS).send("a")
    manager.pause_outgoing(ORDERS)
    paused = manager.outgoing_queue(ORDERS)
    assert (paused.paused, paused.state) == (True, "ONHOLD")
    manager.resume_outgoing(ORDERS)
    assert not manager.outgoing_queue(ORDERS).paused


def test_sending_again_keeps_messages_that_were_not_acknowledged(manager: Any) -> None:
    manager.queue(ORDERS).send("a", transaction=mq.SINGLE_MESSAGE)
    manager.resend_outgoing(ORDERS)
    assert manager.outgoing_queue(ORDERS).message_count == 1


def test_a_queue_manager_goes_offline_and_comes_back(manager: Any) -> None:
    manager.queue(ORDERS).send("a")
    manager.set_online(False)
    assert not manager.status().online
    assert "offline" in manager.outgoing_queue(ORDERS).explanation
    manager.set_online(True)
    assert manager.status().online
    assert "offline" not in manager.outgoing_queue(ORDERS).explanation


def test_an_outgoing_queue_is_read_by_those_who_open_it_for_that(manager: Any) -> None:
    manager.queue(ORDERS).send_many(["a", "b", "c"])
    looking = manager.open(ORDERS, mq.AccessMode.PEEK_ADMIN)
    assert [message.body for message in looking.browse()] == ["a", "b", "c"]
    with pytest.raises(errors.AccessDenied):
        looking.receive()
    taking = manager.open(ORDERS, mq.AccessMode.RECEIVE_ADMIN)
    assert taking.receive().body == "a"
    assert manager.outgoing_queue(ORDERS).message_count == 2
    assert taking.purge() == 2
    assert manager.outgoing_queue(ORDERS).message_count == 0


def test_a_transaction_reaches_other_computers_when_it_commits(manager: Any) -> None:
    orders, bills = manager.queue(ORDERS), manager.queue(BILLS)
    aborted = manager.begin()
    orders.send("never", transaction=aborted)
    aborted.abort()
    work = manager.begin()
    orders.send("a", transaction=work)
    bills.send("b", transaction=work)
    assert sum(waiting(manager).values()) == 0
    work.commit()
    assert list(waiting(manager).values()) == [1, 1]
    assert manager.outgoing_queue(ORDERS).next_number == 2


def test_the_packet_says_what_the_sender_asked_for(manager: Any) -> None:
    manager.queue(ORDERS).send(
        "a",
        label="order",
        priority=6,
        recoverable=True,
        acknowledge=mq.AckRequest.FULL_RECEIVE,
        admin_queue=r"private$\admin",
        time_to_reach_queue_s=60,
        time_to_be_received_s=120,
        journal_on_success=True,
    )
    found = manager.open(ORDERS, mq.AccessMode.PEEK_ADMIN).peek()
    assert (found.label, found.priority, found.recoverable) == ("order", 6, True)
    assert (found.time_to_reach_queue_s, found.time_to_be_received_s) == (60, 120)
    # Another computer needs to know where the queue is.
    assert str(found.admin_queue).casefold() == r"direct=os:alpha\private$\admin"
    assert str(found.destination).casefold() == ORDERS.casefold()


def test_who_sends_too_late_is_told(manager: Any) -> None:
    admin = manager.create_queue(r"private$\admin")
    sent = manager.queue(ORDERS).send(
        "a",
        time_to_reach_queue_s=1,
        journal_on_failure=True,
        acknowledge=mq.AckRequest.FULL_REACH_QUEUE,
        admin_queue=admin.name,
    )
    told = admin.receive(20)
    assert told.correlation_id == sent.to_bytes()
    assert told.message_class == MessageClass.NACK_REACH_QUEUE_TIMEOUT
    assert manager.queue("system$;deadletter").receive(20).body == "a"


@pytest.mark.parametrize(
    "verb", ["outgoing_queue", "pause_outgoing", "resume_outgoing", "resend_outgoing"]
)
def test_only_outgoing_queues_are_asked_and_told(manager: Any, verb: str) -> None:
    with pytest.raises(errors.QueueNotActive):
        getattr(manager, verb)(ORDERS)
    manager.create_queue(r"private$\here")
    with pytest.raises(errors.UnsupportedAccessMode, match="not an outgoing one"):
        getattr(manager, verb)(r"private$\here")
