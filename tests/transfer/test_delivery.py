"""Messages between queue managers: all kinds, both ways, through faults."""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.model.message import MessageClass
from tests.transfer.network import ALPHA, BETA, GAMMA, Computer, Network

ORDERS = r"private$\orders"
LEDGER = r"private$\ledger"
TO_ORDERS = rf"DIRECT=TCP:{BETA}\{ORDERS}"
TO_LEDGER = rf"DIRECT=TCP:{BETA}\{LEDGER}"


@pytest.fixture
def network() -> Network:
    return Network()


@pytest.fixture
def alpha(network: Network) -> Computer:
    return network.manager("ALPHA", ALPHA)


@pytest.fixture
def beta(network: Network) -> Computer:
    beta = network.manager("BETA", BETA)
    beta.create(ORDERS)
    beta.create(LEDGER, transactional=True)
    return beta


def numbered(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_all_kinds_arrive_and_leave_nothing_behind(
    network: Network, alpha: Computer, beta: Computer
) -> None:
    alpha.send(TO_ORDERS, *numbered(100), recoverable=False)
    alpha.send(TO_ORDERS, *numbered(100), recoverable=True)
    alpha.send(TO_LEDGER, *numbered(100), transactional=True)
    network.run(2_000)
    assert beta.bodies(ORDERS) == numbered(100) * 2
    assert beta.bodies(LEDGER) == numbered(100)
    assert [queue.message_count for queue in alpha.outgoing()] == [0, 0]


def test_a_backlog_of_before_the_connection_goes_out_in_order(
    network: Network, alpha: Computer, beta: Computer
) -> None:
    network.down.add(BETA)
    alpha.send(TO_LEDGER, *numbered(200), transactional=True)
    network.run(60_000)
    assert "does not accept connections" in alpha.outgoing()[0].explanation
    network.down.clear()
    network.run(10_000)
    assert beta.bodies(LEDGER) == numbered(200)


def test_a_receiver_that_crashes_loses_and_repeats_nothing(
    network: Network, alpha: Computer, beta: Computer
) -> None:
    for round_number in range(5):
        alpha.send(TO_LEDGER, *numbered(50), transactional=True)
        alpha.send(TO_ORDERS, *numbered(50))
        network.run(round_number * 100)
        beta.crash()
        network.run(6_000)
    network.run(120_000)
    assert beta.bodies(LEDGER) == numbered(50) * 5
    assert beta.bodies(ORDERS) == numbered(50) * 5


def test_a_sender_that_crashes_loses_and_repeats_nothing(
    network: Network, alpha: Computer, beta: Computer
) -> None:
    for _ in range(5):
        alpha.send(TO_LEDGER, *numbered(50), transactional=True)
        alpha.send(TO_ORDERS, *numbered(50))
        alpha.crash()
        network.run(6_000)
    network.run(120_000)
    assert beta.bodies(LEDGER) == numbered(50) * 5
    assert beta.bodies(ORDERS) == numbered(50) * 5
    assert [queue.message_count for queue in alpha.outgoing()] == [0, 0]


def test_messages_pass_through_a_computer_between(network: Network) -> None:
    gamma = network.manager("GAMMA", GAMMA)
    gamma.create(LEDGER, transactional=True)
    target = str(gamma.identifier)
    network.manager("BETA", BETA, next_hops={target: (GAMMA,)})
    alpha = network.manager("ALPHA", ALPHA, next_hops={target: (BETA,)})
    name = gamma.ok(api.GetNames(LEDGER)).private_name
    alpha.send(name, *numbered(20), transactional=True, journal_on_success=True)
    network.run(2_000)
    assert gamma.bodies(LEDGER, take=True) == numbered(20)


def test_dead_letters_and_journals_are_kept_at_the_source(
    network: Network, alpha: Computer, beta: Computer
) -> None:
    wishes = {"transactional": True, "journal_on_failure": True, "journal_on_success": True}
    alpha.send(TO_LEDGER, b"good", **wishes)
    alpha.send(rf"DIRECT=TCP:{BETA}\private$\missing", b"lost", **wishes)
    alpha.send(TO_ORDERS, b"misplaced", **wishes)
    network.run(2_000)
    assert beta.bodies(LEDGER, take=True) == [b"good"]
    network.run(2_000)
    assert alpha.bodies("system$;journal") == [b"good"]
    assert sorted(alpha.bodies("system$;deadxact")) == [b"lost", b"misplaced"]
    assert sorted(alpha.classes("system$;deadxact")) == [
        MessageClass.NACK_BAD_DESTINATION_QUEUE,
        MessageClass.NACK_NOT_TRANSACTIONAL_QUEUE,
    ]


def test_a_message_that_does_not_leave_in_time_is_dead(network: Network, alpha: Computer) -> None:
    alpha.send(TO_ORDERS, b"late", reach_queue_within_s=30, journal_on_failure=True)
    network.run(29_000)
    assert alpha.bodies("system$;deadletter") == []
    network.run(2_000)
    assert alpha.classes("system$;deadletter") == [MessageClass.NACK_REACH_QUEUE_TIMEOUT]
    assert alpha.outgoing()[0].message_count == 0
