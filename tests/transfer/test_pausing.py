"""Operators hold queues, release them, and take a queue manager off the network."""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.console.asking.manager_views import is_stuck
from openmsmq.model.queue import ConnectionStatus
from tests.transfer.neighbour import (
    LEDGER,
    ORDERS,
    Neighbour,
    asked_count,
    numbered,
    to_orders,
)
from tests.transfer.network import ALPHA, GAMMA, PEER, Computer, Network

TO_PEER = rf"DIRECT=TCP:{PEER}\{ORDERS}"
TO_PEER_LEDGER = rf"DIRECT=TCP:{PEER}\{LEDGER}"


@pytest.fixture
def alpha(network: Network) -> Computer:
    alpha = network.manager("ALPHA", ALPHA)
    alpha.create(ORDERS)
    return alpha


@pytest.fixture
def peer(network: Network) -> Neighbour:
    return Neighbour(network, PEER)


def control(computer: Computer, name: str, action: str) -> None:
    computer.ok(api.ControlOutgoing(name, action))


@pytest.mark.spec("MQQB-3.1.7.13-13")
def test_a_paused_queue_sends_nothing_while_another_one_to_the_same_computer_does(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    alpha.send(TO_PEER, b"before")
    network.run()
    control(alpha, TO_PEER, "pause")
    alpha.send(TO_PEER, *numbered(3))
    alpha.send(TO_PEER_LEDGER, b"other", transactional=True)
    network.run(20_000)
    assert peer.bodies == [b"before", b"other"]
    (queue,) = alpha.outgoing(TO_PEER)
    assert (queue.state, queue.paused, queue.message_count) == ("ONHOLD", True, 3)
    assert "paused" in queue.explanation
    assert alpha.outgoing(TO_PEER_LEDGER)[0].state == "CONNECTED"


@pytest.mark.spec("MQQB-3.1.7.14-02", "MQQB-3.1.7.14-03")
def test_what_waited_in_a_paused_queue_goes_on_in_its_order(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    alpha.send(TO_PEER, b"before")
    network.run()
    control(alpha, TO_PEER, "pause")
    for body in numbered(5):
        alpha.send(TO_PEER, body)
    network.run(10_000)
    control(alpha, TO_PEER, "resume")
    network.run()
    assert peer.bodies == [b"before", *numbered(5)]
    assert peer.opened_count == 1
    assert alpha.outgoing()[0].message_count == 0


@pytest.mark.spec("MQQB-3.1.7.14-01")
def test_resuming_opens_a_session_for_what_waits(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    network.down.add(PEER)
    alpha.send(TO_PEER, b"first")
    network.run()
    control(alpha, TO_PEER, "pause")
    network.run(600_000)
    network.down.clear()
    control(alpha, TO_PEER, "resume")
    network.run()
    assert peer.bodies == [b"first"]


def test_resuming_does_not_wait_for_the_next_attempt(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    network.down.add(PEER)
    alpha.send(TO_PEER, b"impatient")
    network.run(1_000)
    network.down.clear()
    control(alpha, TO_PEER, "resume")
    network.run()
    assert peer.bodies == [b"impatient"]


@pytest.mark.spec("MQQB-3.1.7.14-04")
@pytest.mark.parametrize("resumed", [True, False])
def test_a_session_is_active_again_after_a_queue_is_resumed(
    network: Network, alpha: Computer, peer: Neighbour, resumed: bool
) -> None:
    alpha.send(TO_PEER, b"before")
    network.run(320_000)
    control(alpha, TO_PEER, "pause")
    alpha.send(TO_PEER, b"held")
    network.run(80_000)
    if resumed:
        control(alpha, TO_PEER, "resume")
    network.run(210_000)
    first_goes_on = peer.is_open and peer.opened_count == 1
    assert first_goes_on == resumed


def test_a_queue_is_still_paused_after_a_restart(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    alpha.send(TO_PEER, b"before")
    network.run()
    control(alpha, TO_PEER, "pause")
    alpha.send(TO_PEER, b"held")
    alpha.crash()
    network.run(60_000)
    assert peer.bodies == [b"before"]
    assert alpha.outgoing()[0].paused
    control(alpha, TO_PEER, "resume")
    network.run()
    assert peer.bodies == [b"before", b"held"]


@pytest.mark.spec("MQQB-3.1.7.12-06")
def test_a_message_that_becomes_available_leaves_at_once_and_once(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    peer.acknowledges = False
    alpha.send(TO_PEER, b"first")
    network.run()
    (queue,) = alpha.outgoing()
    assert (queue.in_flight_count, queue.message_count) == (1, 1)
    alpha.send(TO_PEER, b"second")
    network.run()
    (queue,) = alpha.outgoing()
    assert (queue.in_flight_count, queue.message_count) == (2, 2)
    assert peer.bodies == [b"first", b"second"]


def test_an_offline_queue_manager_closes_its_sessions_and_accepts_none(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    caller = Neighbour(network, GAMMA)
    alpha.send(TO_PEER, b"before")
    caller.open(ALPHA)
    caller.say(caller.message(to_orders(ALPHA), b"in"))
    alpha.ok(api.SetOnline(False))
    network.run()
    assert not peer.is_open
    assert not caller.is_open
    caller.open(ALPHA)
    assert not caller.is_open
    assert caller.opened_count == 1
    alpha.send(TO_PEER, b"held")
    network.run(60_000)
    assert peer.bodies == [b"before"]
    assert "offline" in alpha.outgoing()[0].explanation
    alpha.ok(api.SetOnline(True))
    network.run(5_000)
    assert peer.bodies == [b"before", b"held"]
    caller.open(ALPHA)
    assert caller.opened_count == 2
    assert alpha.bodies(ORDERS) == [b"in"]


def test_applications_go_on_while_the_queue_manager_is_offline(
    network: Network, alpha: Computer
) -> None:
    alpha.ok(api.SetOnline(False))
    alpha.send(rf"DIRECT=OS:.\{ORDERS}", *numbered(3))
    network.run()
    assert alpha.bodies(ORDERS, take=True) == numbered(3)


def test_what_is_told_before_going_offline_is_not_sent_again(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    alpha.send(TO_PEER, *numbered(10))
    network.run()
    alpha.ok(api.SetOnline(False))
    alpha.ok(api.SetOnline(True))
    alpha.send(TO_PEER, b"last")
    network.run(10_000)
    assert peer.bodies == [*numbered(10), b"last"]
    assert peer.opened_count == 2


def test_a_hardened_queue_manager_neither_sends_nor_accepts(
    network: Network, peer: Neighbour
) -> None:
    hard = network.manager("HARD", GAMMA, hardened=True)
    hard.create(ORDERS)
    hard.send(TO_PEER, b"stays")
    peer.open(GAMMA)
    network.run(60_000)
    assert not peer.is_open
    assert asked_count(hard) == 0
    (queue,) = hard.outgoing()
    assert queue.message_count == 1
    assert (queue.state, is_stuck(queue)) == ("INACTIVE", True)
    assert [a.status for a in queue.history if a.status != ConnectionStatus.IN_PROCESS] == []
