"""Queues of one computer, read by applications of another: both as processes, either killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from openmsmq.client.errors import ConnectionLost
from openmsmq.model.errors import (
    AccessDenied,
    MessageNotFound,
    MsmqError,
    NoTransactionCoordinator,
    QueueNotAvailable,
    QueueNotFound,
    ReceiveTimeout,
    StaleHandle,
)
from openmsmq.runtime.api.accounts import ACCOUNTS_FILE, add_account
from tests.runtime.computers import Computer, running
from tests.runtime.scripted_engine import free_port

PASSWORD = "correct horse battery"
ORDERS = r"private$\orders"
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


@pytest.fixture
def computers(tmp_path: Path) -> Iterator[tuple[Computer, Computer]]:
    """The computer whose queue is read, and the one through which it is."""
    # The endpoint mapper has one port only, so that these have addresses of their own.
    addresses = [f"127.0.{96 + WORKER}.{number}" for number in (2, 3)]
    port = free_port(*addresses)
    far = Computer(tmp_path, "FAR", addresses[0], port)
    near = Computer(tmp_path, "NEAR", addresses[1], port)
    far.data.mkdir()
    add_account(far.data / ACCOUNTS_FILE, "reader", PASSWORD, administrator=False, now_s=1)
    far.configure("[rpc]\nenabled = true\n")
    near.data.mkdir()
    secret = near.data / "password"
    secret.write_text(f"{PASSWORD}\n")
    secret.chmod(0o600)
    near.configure(
        f'[rpc]\nremote_hosts = ["{far.address}", "127.0.0.99"]\nremote_user = "reader"\n'
        'remote_password_file = "password"\nremote_callers = "everybody"\n'
    )
    with running(far, near):
        with far.connect() as manager:
            manager.create_queue(ORDERS)
        far.command("queue", "acl", "grant", ORDERS, "account:reader", "receive")
        yield far, near


def fill(far: Computer, *bodies: str) -> None:
    with far.connect() as manager:
        orders = manager.queue(ORDERS)
        for body in bodies:
            orders.send(body)


def left(far: Computer) -> list[object]:
    """What is in the queue, seen where it is."""
    with far.connect() as manager:
        return [message.body for message in manager.queue(ORDERS).browse()]


@pytest.mark.spec("MQRR-3.2.3-01", "MQRR-3.2.4.1-02")
def test_a_queue_of_another_computer_is_read_like_one_of_this(
    computers: tuple[Computer, Computer],
) -> None:
    far, near = computers
    fill(far, *"abcdefgh")
    with near.connect() as manager:
        orders = manager.queue(far.queue(ORDERS))
        assert orders.peek(0).body == "a"
        assert orders.receive(0).body == "a"
        second = orders.peek(0)
        assert orders.receive_by_lookup_id(second.lookup_id).body == "b"
        with pytest.raises(MessageNotFound):
            orders.receive_by_lookup_id(second.lookup_id)
        with orders.cursor() as cursor:
            assert [cursor.peek(0).body, cursor.next(0).body] == ["c", "d"]
            assert cursor.receive(0).body == "d"
            assert cursor.next(0).body == "e"
        locked = orders.begin_receive(0)
        assert (locked.body, orders.receive(0).body) == ("c", "e")
        orders.end_receive(locked, remove=False)
        assert orders.receive(0).body == "c"
        with manager.transaction() as transaction, pytest.raises(NoTransactionCoordinator):
            orders.receive(0, transaction=transaction)
        assert left(far) == ["f", "g", "h"]
        orders.move(orders.peek(0), "later")
        assert left(far) == ["g", "h"]
        later = manager.queue(f"{orders.name};later")
        assert later.receive(0).body == "f"
        with pytest.raises(MessageNotFound):
            orders.move(second, "later")
        later.close()
        orders.purge()
        with pytest.raises(ReceiveTimeout):
            orders.receive(0)
        orders.close()
    assert left(far) == []
    assert near.problems() == far.problems() == []


def test_the_commands_read_it_too(computers: tuple[Computer, Computer]) -> None:
    far, near = computers
    fill(far, "one", "two", "three")
    name = far.queue(ORDERS)
    assert [found["text"] for found in near.objects("peek", name)] == ["one"]
    taken = near.objects("receive", name, "--count", "2")
    assert [found["text"] for found in taken] == ["one", "two"]
    assert left(far) == ["three"]


def test_a_read_waits_for_what_comes_and_ends_with_its_queue(
    computers: tuple[Computer, Computer],
) -> None:
    far, near = computers
    found: list[object] = []
    with near.connect() as manager:
        orders = manager.queue(far.queue(ORDERS))

        def wait() -> None:
            try:
                found.append(orders.receive(None).body)
                orders.receive(None)
            except (MsmqError, ConnectionLost) as error:
                found.append(type(error))

        thread = threading.Thread(target=wait)
        thread.start()
        fill(far, "late")
        for _ in range(600):
            if found:
                break
            time.sleep(0.05)
        assert found == ["late"]
    thread.join(30)
    assert len(found) == 2
    # Nobody waits there any more: what comes now stays.
    fill(far, "later")
    assert left(far) == ["later"]


@pytest.mark.parametrize("who", ["application", "queue manager"])
def test_what_a_lost_reader_had_locked_is_there_again(
    computers: tuple[Computer, Computer], who: str
) -> None:
    far, near = computers
    fill(far, "one", "two")
    manager = near.connect()
    assert manager.queue(far.queue(ORDERS)).begin_receive(0).body == "one"
    with far.connect() as there:
        assert there.queue(ORDERS).peek(0).body == "two"
        if who == "application":
            manager.close()
        else:
            near.kill()
        for _ in range(600):
            if there.queue(ORDERS).peek(0).body == "one":
                break
            time.sleep(0.05)
    assert left(far) == ["one", "two"]
    manager.close()
    if who != "application":
        near.start()
        with near.connect() as again:
            assert again.queue(far.queue(ORDERS)).receive(0).body == "one"


def test_a_computer_that_dies_costs_only_the_reads_of_its_queues(
    computers: tuple[Computer, Computer],
) -> None:
    far, near = computers
    with far.connect() as there:
        there.queue(ORDERS).send("one", recoverable=True)
    with near.connect() as manager:
        orders = manager.queue(far.queue(ORDERS))
        locked = orders.begin_receive(0)
        far.end(signal.SIGKILL)
        with pytest.raises((StaleHandle, QueueNotAvailable)):
            orders.receive(None)
        with pytest.raises((StaleHandle, QueueNotAvailable)):
            orders.end_receive(locked, remove=True)
        with pytest.raises(QueueNotAvailable):
            manager.queue(far.queue(ORDERS)).peek(0)
        far.start()
        assert manager.queue(far.queue(ORDERS)).receive(0).body == "one"
    assert near.problems() == []


def test_what_stands_in_the_way_is_said(computers: tuple[Computer, Computer]) -> None:
    far, near = computers
    with near.connect() as manager:
        with pytest.raises(QueueNotFound):
            manager.queue(far.queue(r"private$\none")).peek(0)
        with pytest.raises(AccessDenied, match="remote_hosts"):
            manager.queue(r"DIRECT=TCP:127.0.0.97\private$\x").peek(0)
        with pytest.raises(QueueNotAvailable, match=r"127\.0\.0\.99"):
            manager.queue(r"DIRECT=TCP:127.0.0.99\private$\x").peek(0)
        far.command("queue", "acl", "reset", ORDERS)
        with pytest.raises(AccessDenied):
            manager.queue(far.queue(ORDERS)).receive(0)
        (near.data / "password").write_text("something else\n")
        with pytest.raises(AccessDenied, match="does not accept our account"):
            manager.queue(far.queue(ORDERS)).receive(0)
        (near.data / "password").chmod(0o644)
        with pytest.raises(AccessDenied, match="chmod 600"):
            manager.queue(far.queue(ORDERS)).receive(0)
