"""What each kind of message is promised, from one queue manager to another. [MQOD 2.1.2.1]"""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.model.errors import MsmqError, TransactionUsage
from openmsmq.model.message import MessageClass
from openmsmq.model.queue import AccessMode
from tests.strategies.messages import Draft
from tests.transfer.letters import direct, letter
from tests.transfer.network import ALPHA, BETA, KNOWN_PEER, Computer, Network, addressed

ORDERS, LEDGER = r"private$\orders", r"private$\ledger"
TO_ORDERS, TO_LEDGER = direct(BETA, ORDERS), direct(BETA, LEDGER)
THERE = f"DIRECT={TO_ORDERS.text}"
LEDGER_THERE = f"DIRECT={TO_LEDGER.text}"
ORDER = [b"%d" % number for number in range(40)]


@pytest.fixture
def network() -> Network:
    return Network()


@pytest.fixture
def beta(network: Network) -> Computer:
    return network.manager("BETA", BETA, peers=KNOWN_PEER).with_queues(ORDERS, LEDGER)


@pytest.fixture
def alpha(network: Network, beta: Computer) -> Computer:
    del beta
    return network.manager("ALPHA", ALPHA).with_queues(ORDERS, LEDGER)


def sent_twice(network: Network, *, recoverable: bool) -> None:
    """Send a message, lose the connection before its acknowledgment, and send it again."""
    peer = network.peer()
    for _ in range(2):
        peer.open_session(BETA)
        peer.write(letter(peer.identifier, 5, TO_ORDERS, b"twice", recoverable=recoverable))
        peer.close()
        network.run(1_000)


@pytest.mark.spec("MQOD-2.1.2.1-01")
def test_express_messages_come_at_most_once_and_are_gone_after_a_restart(
    network: Network, alpha: Computer, beta: Computer
) -> None:
    # At most once: a second copy is dropped.
    sent_twice(network, recoverable=False)
    assert beta.bodies(ORDERS) == [b"twice"]
    # Best effort: one that waits is lost with its sender.
    network.down.add(BETA)
    alpha.send(THERE, b"waits", recoverable=False)
    alpha.send(ORDERS, b"here", recoverable=False)
    assert alpha.bodies(ORDERS) == [b"here"]
    alpha.crash()
    network.down.clear()
    network.run(60_000)
    assert alpha.bodies(ORDERS) == []
    assert beta.bodies(ORDERS) == [b"twice"]
    # And one that has arrived, with the receiver.
    beta.crash()
    assert beta.bodies(ORDERS) == []


@pytest.mark.spec("MQOD-2.1.2.1-02")
def test_recoverable_messages_come_at_most_once_and_survive_restarts(
    network: Network, alpha: Computer, beta: Computer
) -> None:
    sent_twice(network, recoverable=True)
    assert beta.bodies(ORDERS) == [b"twice"]
    network.down.add(BETA)
    alpha.send(THERE, b"waits")
    alpha.crash()
    network.down.clear()
    network.run(60_000)
    assert beta.bodies(ORDERS) == [b"twice", b"waits"]
    beta.crash()
    assert beta.bodies(ORDERS) == [b"twice", b"waits"]
    # Best effort: one that cannot be brought in its time ends.
    network.down.add(BETA)
    network.cut(BETA)
    alpha.send(THERE, b"too late", time_to_reach_queue_s=60)
    network.run(120_000)
    network.down.clear()
    network.run(60_000)
    assert beta.bodies(ORDERS) == [b"twice", b"waits"]
    assert not any(queue.message_count for queue in alpha.outgoing())


@pytest.mark.spec("MQOD-2.1.2.1-03")
def test_transactional_messages_come_exactly_once_and_in_order(
    network: Network, alpha: Computer, beta: Computer
) -> None:
    # Lost connections and crashes on both sides, at every moment of the way.
    for number, body in enumerate(ORDER):
        alpha.send(LEDGER_THERE, body, transactional=True)
        network.step(number)
        (alpha.crash, beta.crash, lambda: network.cut(ALPHA))[number % 3]()
    network.run(600_000)
    assert beta.bodies(LEDGER) == ORDER
    assert not any(queue.message_count for queue in alpha.outgoing())
    # To transactional queues only, be they here or there, and in transactions only.
    for name, transaction in ((ORDERS, api.OWN_TRANSACTION), (LEDGER, 0)):
        opened = alpha.ok(api.OpenQueue(name, AccessMode.SEND))
        packet = addressed(Draft(transactional=bool(transaction)).packet(), opened)
        refused = alpha.ask(api.Send(opened.handle, [packet], transaction))
        assert isinstance(refused, api.Failed)
        assert type(MsmqError.from_code(refused.code, "")) is TransactionUsage
    alpha.send(THERE, b"to a plain queue", transactional=True, journal_on_failure=True)
    alpha.send(LEDGER_THERE, b"to a transactional queue")
    network.run(60_000)
    assert beta.bodies(ORDERS) == []
    assert beta.bodies(LEDGER) == ORDER
    (dead,) = alpha.messages("system$;deadxact")
    assert dead.properties.message_class in (
        MessageClass.NACK_NOT_TRANSACTIONAL_QUEUE,
        MessageClass.NACK_ACCESS_DENIED,
    )
    # Received in a transaction: what is undone is there again, and what is done is gone.
    opened = beta.ok(api.OpenQueue(LEDGER, AccessMode.RECEIVE))
    for end in (api.Abort, api.Commit):
        transaction = beta.ok(api.Begin()).transaction
        entries = beta.ok(api.Receive(opened.handle, 3, 0, transaction=transaction)).entries
        assert len(entries) == 3
        assert beta.bodies(LEDGER) == ORDER[3:]
        beta.ok(end(transaction))
        assert beta.bodies(LEDGER) == (ORDER if end is api.Abort else ORDER[3:])
    beta.crash()
    assert beta.bodies(LEDGER) == ORDER[3:]
