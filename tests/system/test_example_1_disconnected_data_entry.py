"""Disconnected data entry, step by step with the commands. [MQOD 3.1]

A salesperson enters orders on a laptop. The first one reaches the office and is processed there;
the second one finds nobody, and comes back to the dead-letter queue of the laptop.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from openmsmq.capture.frames import read_frames
from openmsmq.model.message import MessageClass
from openmsmq.wire.packets import (
    ConnectionParameters,
    EstablishConnection,
    Packet,
    SessionAck,
    UserMessage,
    decode,
)
from tests.runtime.computers import Computer, neighbours, running, wait_for
from tests.strategies.captures import said_in

ORDERS = r"private$\orders"
ORDER = ("--transactional", "--deadletter")


def outgoing(computer: Computer, name: str) -> dict[str, object]:
    (found,) = computer.objects("outgoing", "show", name)
    return found


def attempts(computer: Computer, name: str) -> list[object]:
    history = outgoing(computer, name)["history"]
    assert isinstance(history, list)
    return [attempt["status"] for attempt in history]


def words(packet: Packet) -> str:
    """Name a packet as the steps of the example do."""
    match packet:
        case EstablishConnection():
            return "establish"
        case ConnectionParameters():
            return "parameters"
        case SessionAck():
            return "session ack"
        case UserMessage():
            return MessageClass(packet.properties.message_class).name.lower()
    raise AssertionError(packet)


def spoken(capture: Path, port: int) -> list[tuple[str, str]]:
    """Return what went over the network: who said it, and what."""
    with capture.open("rb") as file:
        items = said_in(read_frames(file.read), port)
    return [(str(item.source).partition(":")[0], words(decode(item.data))) for item in items]


@pytest.mark.spec("MQOD-3.1-01")
def test_an_order_reaches_the_office_or_comes_back(tmp_path):
    laptop, office = neighbours(tmp_path, "LAPTOP", "OFFICE")
    capture = tmp_path / "laptop.pcapng"
    laptop.options = ("--capture", str(capture))
    queue = office.queue(ORDERS)
    with running(laptop, office):
        office.command("queue", "create", ORDERS, "--transactional")

        # 1-4: the order is sent in a transaction and waits in an outgoing queue.
        laptop.command("offline")
        with laptop.connect() as entry, entry.transaction() as transaction:
            entry.queue(queue).send("first", transaction=transaction, journal_on_failure=True)
        waiting = outgoing(laptop, queue)
        assert waiting["message_count"] == 1
        assert waiting["explanation"] == "This queue manager is offline: bring it online to send."

        # 5-7: it is transferred and acknowledged, but nobody has received it yet.
        laptop.command("online")
        (arrived,) = office.objects("peek", ORDERS, "--timeout", "30")
        assert arrived["text"] == "first"
        wait_for(lambda: outgoing(laptop, queue)["message_count"] == 0)
        assert outgoing(laptop, queue)["unread_count"] == 1

        # 8-12: it is received in a transaction, deleted with it, and the laptop hears of it.
        with office.connect() as processing:
            with processing.transaction() as transaction:
                received = processing.queue(ORDERS).receive(0, transaction=transaction)
                assert str(received.id) == arrived["message_id"]
                assert outgoing(laptop, queue)["unread_count"] == 1
            assert processing.queue(ORDERS).count() == 0
        wait_for(lambda: outgoing(laptop, queue)["unread_count"] == 0)

        # 13-16: another order is sent when the office cannot be reached.
        office.kill()
        laptop.command("send", queue, "--body", "second", *ORDER, "--time-to-reach-queue", "2")
        assert outgoing(laptop, queue)["message_count"] == 1

        # 17-20: every attempt to transfer it fails.
        wait_for(lambda: attempts(laptop, queue).count("socket_connect_failure") >= 2)

        # 21-22: it is moved to the dead-letter queue, and received from there.
        wait_for(lambda: laptop.objects("deadletter", "--transactional"))
        assert outgoing(laptop, queue)["message_count"] == 0
        (returned,) = laptop.objects("deadletter", "--transactional", "--receive")
        assert returned["text"] == "second"
        assert returned["reason"] == "NACK_REACH_QUEUE_TIMEOUT"

        # In the end everything is as in the beginning: one queue, and no message anywhere.
        assert laptop.objects("deadletter", "--transactional") == []
        assert laptop.objects("queue", "list") == []
        assert laptop.end() == 0
        office.start()
        (left,) = office.objects("queue", "list")
        assert (left["path_name"], left["message_count"]) == (ORDERS, 0)

    said = spoken(capture, laptop.session_port)
    here, there = laptop.address, office.address
    assert said[:5] == [
        (here, "establish"),
        (there, "establish"),
        (here, "parameters"),
        (there, "parameters"),
        (here, "normal"),
    ]
    assert (there, "session ack") in said
    acks = [what for who, what in said if who == there and what not in ("session ack",)]
    assert acks[2:] == ["order_ack", "ack_receive"]
