"""A queue manager in transactions of the package `transaction`."""

from __future__ import annotations

from typing import Any

import pytest
import transaction

import openmsmq as mq
from openmsmq.xa import join


class Voter:
    """Another data manager, which votes after or before ours."""

    def __init__(self, manager: Any, place: str, *, vote: bool) -> None:
        self.transaction_manager = manager
        self._place = place
        self._vote = vote
        self.events: list[str] = []

    def sortKey(self) -> str:  # noqa: N802
        return self._place

    def tpc_vote(self, _: object) -> None:
        self.events.append("vote")
        if not self._vote:
            raise ValueError("no")

    def __getattr__(self, name: str) -> Any:
        return lambda _: self.events.append(name)


@pytest.fixture
def together() -> Any:
    return transaction.TransactionManager(explicit=True)


def labels(queue: mq.Queue) -> list[str]:
    return [message.label for message in queue.messages(timeout=0)]


def test_messages_are_sent_when_all_have_voted_for_it(
    manager: mq.QueueManager, orders: mq.Queue, together: Any
) -> None:
    together.begin()
    together.get().join(voter := Voter(together, "~last", vote=True))
    orders.send("x", label="one", transaction=join(manager, together))
    together.commit()
    assert labels(orders) == ["one"]
    assert voter.events == ["tpc_begin", "commit", "vote", "tpc_finish"]


@pytest.mark.parametrize("sort_key", ["a first", "~last"])
def test_a_vote_against_undoes_all(
    manager: mq.QueueManager, orders: mq.Queue, together: Any, sort_key: str
) -> None:
    orders.send("x", label="one", transaction=mq.SINGLE_MESSAGE)
    together.begin()
    together.get().join(Voter(together, sort_key, vote=False))
    orders.receive(timeout=0, transaction=join(manager, together))
    with pytest.raises(ValueError, match="no"):
        together.commit()
    together.abort()
    assert manager.in_doubt() == []
    assert labels(orders) == ["one"]


def test_an_abort_undoes_all(manager: mq.QueueManager, orders: mq.Queue, together: Any) -> None:
    together.begin()
    orders.send("x", label="one", transaction=join(manager, together))
    together.abort()
    assert labels(orders) == []


def test_without_a_manager_it_is_the_transaction_of_the_thread(
    manager: mq.QueueManager, orders: mq.Queue
) -> None:
    with transaction.manager:
        orders.send("x", label="one", transaction=join(manager))
    assert labels(orders) == ["one"]
