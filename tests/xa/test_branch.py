"""A queue manager's part of a transaction, by the names of PEP 249."""

from __future__ import annotations

from pathlib import Path

import pytest

import openmsmq as mq
from openmsmq.model.errors import InvalidParameter, TransactionSequence
from openmsmq.runtime.api.tokens import create_token
from openmsmq.security.access.callers import Scope
from openmsmq.security.access.sids import Sid
from openmsmq.storage.memory import MemoryStore
from openmsmq.xa import Branch, Xid
from tests.server_thread import ServerThread, start_server

GUEST = Sid.parse("S-1-5-21-1-2-3-1001")
ORDERS = r"private$\orders"
XID = Xid(7, "order 4711", "queues")


@pytest.fixture
def branch(manager: mq.QueueManager) -> Branch:
    return Branch(manager)


def labels(queue: mq.Queue) -> list[str]:
    return [message.label for message in queue.messages(timeout=0)]


def test_what_is_prepared_and_committed_is_there(branch: Branch, orders: mq.Queue) -> None:
    branch.tpc_begin(XID)
    orders.send("x", label="one", transaction=branch.transaction)
    branch.tpc_prepare()
    assert branch.tpc_recover() == [XID]
    assert labels(orders) == []
    branch.tpc_commit()
    assert branch.tpc_recover() == []
    assert labels(orders) == ["one"]


def test_without_a_first_phase_a_commit_is_one_of_one_phase(
    branch: Branch, orders: mq.Queue
) -> None:
    branch.tpc_begin(XID)
    orders.send("x", label="one", transaction=branch.transaction)
    branch.tpc_commit()
    assert labels(orders) == ["one"]


@pytest.mark.parametrize("is_prepared", [False, True])
def test_what_is_rolled_back_was_never_received(
    branch: Branch, orders: mq.Queue, is_prepared: bool
) -> None:
    orders.send("x", label="one", transaction=mq.SINGLE_MESSAGE)
    branch.tpc_begin(XID)
    orders.receive(timeout=0, transaction=branch.transaction)
    if is_prepared:
        branch.tpc_prepare()
    branch.tpc_rollback()
    assert labels(orders) == ["one"]


@pytest.mark.parametrize(("commits", "left"), [(True, ["one"]), (False, [])])
def test_another_program_ends_by_name_what_one_that_died_has_prepared(
    place: ServerThread, manager: mq.QueueManager, orders: mq.Queue, commits: bool, left: list[str]
) -> None:
    with mq.connect(f"{place.host}:{place.port}") as first:
        branch = Branch(first)
        branch.tpc_begin(XID)
        first.queue(orders.name).send("x", label="one", transaction=branch.transaction)
        branch.tpc_prepare()
    second = Branch(manager)
    assert second.tpc_recover() == [XID]
    (second.tpc_commit if commits else second.tpc_rollback)(XID)
    assert second.tpc_recover() == []
    assert labels(orders) == left
    with pytest.raises(TransactionSequence, match="no prepared transaction of yours is called 7:"):
        second.tpc_commit(XID)


def test_two_prepared_transactions_never_have_the_same_name(
    branch: Branch, manager: mq.QueueManager, orders: mq.Queue
) -> None:
    branch.tpc_begin(XID)
    orders.send("x", label="one", transaction=branch.transaction)
    branch.tpc_prepare()
    other = Branch(manager)
    other.tpc_begin(XID)
    orders.send("x", label="two", transaction=other.transaction)
    with pytest.raises(TransactionSequence, match="another prepared transaction of yours has"):
        other.tpc_prepare()
    # It is as it was, and ends as if nobody had asked.
    other.tpc_commit()
    assert labels(orders) == ["two"]
    branch.tpc_commit()
    assert labels(orders) == ["one"]
    # The name is free again.
    other.tpc_begin(XID)
    other.tpc_prepare()
    other.tpc_rollback()


def test_a_coordinator_ends_only_what_is_its_own_even_if_it_administers(tmp_path: Path) -> None:
    text, _ = create_token(tmp_path / "tokens.json", "shop", (Scope.SEND,), now_s=0, user=GUEST)
    server = start_server(str(tmp_path), store=MemoryStore(), api_socket="none")
    with (
        server,
        mq.connect(f"{server.host}:{server.port}") as root,
        mq.connect(f"{server.host}:{server.port}", token=text) as guest,
    ):
        queue = root.create_queue(ORDERS, transactional=True)
        theirs, ours = Branch(guest), Branch(root)
        theirs.tpc_begin(XID)
        guest.queue(ORDERS).send("x", label="theirs", transaction=theirs.transaction)
        theirs.tpc_prepare()
        # The same name is another transaction, and whoever is told of both ends his own.
        ours.tpc_begin(XID)
        ours.tpc_prepare()
        assert len(root.in_doubt()) == 2
        again = Branch(root)
        assert again.tpc_recover() == [XID]
        again.tpc_rollback(XID)
        with pytest.raises(TransactionSequence, match="no prepared transaction of yours"):
            again.tpc_commit(XID)
        assert labels(queue) == []
        theirs.tpc_commit()
        assert labels(queue) == ["theirs"]


def test_a_part_of_a_batch_has_no_other_name(manager: mq.QueueManager, orders: mq.Queue) -> None:
    transaction = manager.begin()
    orders.send("x", transaction=transaction)
    with pytest.raises(InvalidParameter, match="batch 1 of 'query'"):
        transaction.prepare(query="query", batch=1, xid=XID)


def test_names_that_cannot_be_are_refused_before_they_are_sent(branch: Branch) -> None:
    assert branch.xid(0, "g" * 64, "") == Xid(0, "g" * 64, "")
    with pytest.raises(InvalidParameter, match="65 characters"):
        branch.xid(0, "g" * 65, "")
    with pytest.raises(InvalidParameter, match="65 characters"):
        branch.xid(0, "", "b" * 65)
    for format_id in (-1, 1 << 31):
        with pytest.raises(InvalidParameter, match="is not from 0 to 2147483647"):
            branch.xid(format_id, "", "")


def test_the_queue_manager_takes_no_name_that_cannot_be(manager: mq.QueueManager) -> None:
    transaction = manager.begin()
    with pytest.raises(InvalidParameter, match="65 characters"):
        transaction.prepare(xid=Xid(0, "g" * 65, ""))
    assert manager.in_doubt() == []


def test_the_order_of_the_calls_matters(branch: Branch) -> None:
    for call in (branch.tpc_prepare, branch.tpc_commit, branch.tpc_rollback):
        with pytest.raises(TransactionSequence, match="call tpc_begin first"):
            call()
    branch.tpc_begin(XID)
    with pytest.raises(TransactionSequence, match="commit it or roll it back first"):
        branch.tpc_begin(XID)
    branch.tpc_rollback()
    branch.tpc_begin(XID)
    branch.tpc_rollback()
