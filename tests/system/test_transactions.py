"""Transactions of applications, with queue managers that are processes. [MQOD 2.1.3.2]"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import openmsmq as mq
from openmsmq.model.errors import MsmqError, ReceiveTimeout
from openmsmq.xa import Branch, Xid
from tests.runtime.computers import Computer, neighbours, running

ORDERS, INVOICES, DONE = r"private$\orders", r"private$\invoices", r"private$\done"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Computer]:
    """A queue manager with three transactional queues; its neighbour is away."""
    shop, _ = neighbours(tmp_path, "SHOP", "AWAY")
    with running(shop):
        with shop.connect() as manager:
            for name in (ORDERS, INVOICES, DONE):
                manager.create_queue(name, transactional=True)
        yield shop


AWAY = r"DIRECT=TCP:127.0.0.3\private$\orders"


def fill(manager: mq.QueueManager, name: str, *bodies: str) -> None:
    for body in bodies:
        manager.queue(name).send(body, transaction=mq.SINGLE_MESSAGE)


def bodies(manager: mq.QueueManager, name: str) -> list[object]:
    return [message.body for message in manager.queue(name).browse()]


def waiting(manager: mq.QueueManager) -> dict[str, int]:
    """How many messages wait to leave for other computers."""
    return {queue.format_name: queue.message_count for queue in manager.outgoing()}


@pytest.mark.spec("MQOD-2.1.3.2-01", "MQOD-2.5.4-01")
def test_what_is_sent_in_a_transaction_is_there_when_that_commits(shop: Computer) -> None:
    away = AWAY.upper().replace("ORDERS", "orders")
    with shop.connect() as manager, shop.connect() as other:
        for commits in (False, True):
            transaction = manager.begin()
            for name in (ORDERS, AWAY):
                for body in ("one", "two"):
                    manager.queue(name).send(body, transaction=transaction)
            for looks in (manager, other):
                assert bodies(looks, ORDERS) == []
                assert waiting(looks).get(away, 0) == 0
                with pytest.raises(ReceiveTimeout):
                    looks.queue(ORDERS).receive(0)
            transaction.commit() if commits else transaction.abort()
            assert bodies(other, ORDERS) == (["one", "two"] if commits else [])
            assert waiting(other).get(away, 0) == (2 if commits else 0)


@pytest.mark.spec("MQOD-2.1.3.2-02", "MQOD-2.5.7-01")
def test_what_is_received_in_a_transaction_is_nobody_elses_until_its_end(shop: Computer) -> None:
    with shop.connect() as manager, shop.connect() as other:
        fill(manager, ORDERS, "one", "two", "three", "four")
        for commits in (False, True):
            transaction = manager.begin()
            orders = manager.queue(ORDERS)
            taken = [orders.receive(0, transaction=transaction).body for _ in range(2)]
            assert taken == ["one", "two"]
            assert bodies(manager, ORDERS) == bodies(other, ORDERS) == ["three", "four"]
            transaction.commit() if commits else transaction.abort()
            left = ["three", "four"] if commits else ["one", "two", "three", "four"]
            assert bodies(other, ORDERS) == left
        # A transaction whose application is gone has failed, too.
        lost = shop.connect()
        assert lost.queue(ORDERS).receive(0, transaction=lost.begin()).body == "three"
        lost.close()
        assert other.queue(ORDERS).receive(10).body == "three"


@pytest.mark.spec("MQOD-2.1.3.2-03")
def test_a_transaction_is_about_several_queues_of_one_queue_manager(
    shop: Computer, tmp_path: Path
) -> None:
    def work(manager: mq.QueueManager) -> mq.Transaction:
        transaction = manager.begin()
        order = manager.queue(ORDERS).receive(0, transaction=transaction)
        manager.queue(INVOICES).send(f"for {order.body}", transaction=transaction)
        manager.queue(DONE).send(order.body, transaction=transaction)
        return transaction

    def found(manager: mq.QueueManager) -> list[list[object]]:
        return [bodies(manager, name) for name in (ORDERS, INVOICES, DONE)]

    with shop.connect() as manager:
        fill(manager, ORDERS, "one")
        work(manager).abort()
        assert found(manager) == [["one"], [], []]
        work(manager)
        # Not committed: a crash undoes all of it.
        shop.kill()
        shop.start()
    with shop.connect() as manager:
        assert found(manager) == [["one"], [], []]
        work(manager).commit()
        shop.kill()
        shop.start()
    with shop.connect() as manager:
        assert found(manager) == [[], ["for one"], ["one"]]
        # Only its own queue manager takes part.
        elsewhere = Computer(tmp_path, "OTHER", "127.0.0.4", shop.session_port)
        with running(elsewhere), elsewhere.connect() as other:
            queue = other.create_queue(ORDERS, transactional=True)
            ours, theirs = manager.begin(), other.begin()
            with pytest.raises(MsmqError, match="or another queue manager"):
                queue.send("x", transaction=ours)
            with pytest.raises(MsmqError, match="or another queue manager"):
                queue.receive(0, transaction=ours)
            theirs.commit()
            ours.commit()
            assert queue.count() == 0


def begun(manager: mq.QueueManager, name: str) -> Branch:
    """Do half of a transaction that somebody else coordinates: move an order to the invoices."""
    branch = Branch(manager)
    branch.tpc_begin(Xid(7, name, "queues"))
    order = manager.queue(ORDERS).receive(0, transaction=branch.transaction)
    manager.queue(INVOICES).send(order.body, transaction=branch.transaction)
    return branch


@pytest.mark.spec("MQOD-2.1.3.2-04")
def test_an_external_coordinator_has_the_queue_manager_take_part(shop: Computer) -> None:
    with shop.connect() as manager:
        fill(manager, ORDERS, "one", "two", "three", "four", "five")
        # Prepared, and ended by the coordinator's word.
        committed, aborted = begun(manager, "committed"), begun(manager, "aborted")
        for branch in (committed, aborted):
            branch.tpc_prepare()
        assert bodies(manager, ORDERS) == ["three", "four", "five"]
        assert bodies(manager, INVOICES) == []
        committed.tpc_commit()
        aborted.tpc_rollback()
        assert bodies(manager, ORDERS) == ["two", "three", "four", "five"]
        assert bodies(manager, INVOICES) == ["one"]
        # Prepared, when the queue manager dies: in doubt, and neither here nor there.
        for name in ("to commit", "to abort"):
            begun(manager, name).tpc_prepare()
        begun(manager, "never prepared")
        shop.kill()
        shop.start()
    with shop.connect() as manager:
        assert bodies(manager, ORDERS) == ["four", "five"]
        assert bodies(manager, INVOICES) == ["one"]
        coordinator = Branch(manager)
        in_doubt = coordinator.tpc_recover()
        assert sorted(xid.global_id for xid in in_doubt) == ["to abort", "to commit"]
        assert len(shop.objects("transaction", "list")) == 2
        for xid in in_doubt:
            ends = coordinator.tpc_commit if "commit" in xid.global_id else coordinator.tpc_rollback
            ends(xid)
        assert coordinator.tpc_recover() == []
        assert bodies(manager, INVOICES) == ["one", "two"]
        assert bodies(manager, ORDERS) == ["three", "four", "five"]
