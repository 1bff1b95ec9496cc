"""Messages between queue managers: all kinds, both ways, through faults."""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.model.message import MessageClass
from openmsmq.model.queue import AccessMode
from openmsmq.wire.headers.multi_queue import describe
from tests.strategies.messages import Draft
from tests.transfer.network import ALPHA, BETA, GAMMA, Computer, Network, addressed

ORDERS = r"private$\orders"
LEDGER = r"private$\ledger"
TO_ORDERS = rf"DIRECT=TCP:{BETA}\{ORDERS}"
TO_LEDGER = rf"DIRECT=TCP:{BETA}\{LEDGER}"


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
    beta = network.manager("BETA", BETA)
    alpha = network.manager("ALPHA", ALPHA)
    to_alpha, to_gamma = str(alpha.identifier), str(gamma.identifier)
    alpha.config.transfer.next_hops[to_gamma] = (BETA,)
    beta.config.transfer.next_hops.update({to_gamma: (GAMMA,), to_alpha: (ALPHA,)})
    gamma.config.transfer.next_hops[to_alpha] = (BETA,)
    name = gamma.ok(api.GetNames(LEDGER)).private_name
    alpha.send(name, *numbered(20), transactional=True, journal_on_success=True)
    network.run(1_000)
    assert alpha.outgoing(name)[0].unread_count == 20
    messages = gamma.messages(LEDGER, take=True)
    assert [message.properties.body for message in messages] == numbered(20)
    assert {message.user.hop_count for message in messages} == {1}
    network.run(1_000)
    assert alpha.bodies("system$;journal") == numbered(20)
    assert alpha.outgoing(name)[0].unread_count == 0


@pytest.mark.spec("MQMQ-2.2.20.1-01")
def test_one_message_to_several_queues_arrives_in_each(
    network: Network, alpha: Computer, beta: Computer
) -> None:
    alpha.create(ORDERS)
    local = rf"DIRECT=OS:ALPHA\{ORDERS}"
    gamma = network.manager("GAMMA", GAMMA)
    gamma.create(ORDERS)
    beta.create(r"private$\copy")
    names = [local, TO_ORDERS, rf"DIRECT=TCP:{BETA}\private$\copy", rf"DIRECT=TCP:{GAMMA}\{ORDERS}"]
    alpha.send(",".join(names), *numbered(5))
    network.run(1_000)
    for computer, queue in (
        (alpha, ORDERS),
        (beta, ORDERS),
        (beta, r"private$\copy"),
        (gamma, ORDERS),
    ):
        messages = computer.messages(queue)
        assert [message.properties.body for message in messages] == numbered(5)
        header = messages[0].multi_queue
        assert header is not None
        assert [describe(element).casefold() for element in header.destinations.elements] == [
            name.casefold() for name in names
        ]


def test_a_list_with_one_bad_queue_takes_nothing(alpha: Computer, beta: Computer) -> None:
    alpha.create(LEDGER, transactional=True)
    opened = alpha.ok(api.OpenQueue(rf"{TO_ORDERS},DIRECT=OS:ALPHA\{LEDGER}", AccessMode.SEND))
    reply = alpha.ask(api.Send(opened.handle, [Draft().packet()]))
    assert isinstance(reply, api.Failed)
    assert alpha.outgoing(TO_ORDERS)[0].message_count == 0
    assert beta.bodies(ORDERS) == []


@pytest.mark.spec("MQMQ-2.2.19.2-13", "MQMQ-2.2.19.2-14")
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
    # A stranger hears that they failed, not which queues there are.
    assert alpha.classes("system$;deadxact") == [MessageClass.NACK_ACCESS_DENIED] * 2


def test_a_message_that_does_not_leave_in_time_is_dead(network: Network, alpha: Computer) -> None:
    alpha.send(TO_ORDERS, b"late", time_to_reach_queue_s=30, journal_on_failure=True)
    network.run(29_000)
    assert alpha.bodies("system$;deadletter") == []
    network.run(2_000)
    assert alpha.classes("system$;deadletter") == [MessageClass.NACK_REACH_QUEUE_TIMEOUT]
    assert alpha.outgoing()[0].message_count == 0


def test_a_prepared_transaction_finds_its_outgoing_queue_after_a_restart(
    network: Network, alpha: Computer, beta: Computer
) -> None:
    opened = alpha.ok(api.OpenQueue(TO_LEDGER, AccessMode.SEND))
    begun = alpha.ok(api.Begin())
    packet = addressed(Draft(body=b"late", transactional=True).packet(), opened)
    alpha.ok(api.Send(opened.handle, [packet], begun.transaction))
    alpha.ok(api.Prepare(begun.transaction))
    alpha.crash()
    network.run(60_000)
    alpha.ok(api.Resolve(begun.unit_of_work, commit=True))
    network.run(10_000)
    assert beta.bodies(LEDGER) == [b"late"]
