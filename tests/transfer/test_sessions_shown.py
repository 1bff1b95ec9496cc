"""What operators are told of sessions with other queue managers, and of attempts that failed."""

from __future__ import annotations

from typing import Any

import pytest

from openmsmq.api import messages as api
from openmsmq.model.queue import SessionWait
from tests.transfer.neighbour import ORDERS, Neighbour, numbered
from tests.transfer.network import ALPHA, BETA, GAMMA, PEER, Computer, Network

TO_PEER = rf"DIRECT=TCP:{PEER}\{ORDERS}"
TO_BETA = rf"DIRECT=TCP:{BETA}\{ORDERS}"
TO_NOBODY = rf"DIRECT=TCP:{GAMMA}\{ORDERS}"


@pytest.fixture
def peer(network: Network) -> Neighbour:
    return Neighbour(network, PEER)


def sessions(computer: Computer) -> list[api.SessionStatus]:
    found: Any = computer.ok(api.ListSessions())
    return list(found.sessions)


def status(computer: Computer) -> api.Status:
    found: api.Status = computer.ok(api.GetStatus())
    return found


def test_both_ends_of_a_session_tell_of_each_other(
    network: Network, alpha: Computer, beta: Computer
) -> None:
    assert sessions(alpha) == []
    network.run(5_000)
    since_s = network.now.unix_s
    alpha.send(TO_BETA, b"one", b"two", recoverable=True)
    network.run(3_000)
    (here,), (there,) = sessions(alpha), sessions(beta)
    assert (here.manager, there.manager) == (bytes(beta.identifier), bytes(alpha.identifier))
    assert (here.address, there.address) == (BETA, ALPHA)
    assert (here.is_dialled, there.is_dialled) == (True, False)
    assert (here.state, here.waits_for) == ("open", SessionWait.NOTHING.value)
    assert (here.sent_count, here.received_count) == (2, 0)
    assert (there.sent_count, there.received_count) == (0, 2)
    assert (here.sent_bytes, here.received_bytes) == (there.received_bytes, there.sent_bytes)
    assert here.sent_bytes > here.received_bytes > 0
    assert (here.in_flight_count, here.unstored_count, here.proven) == (0, 0, "")
    assert since_s <= here.since_s <= network.now.unix_s
    assert [name.lower() for name in here.queues] == [TO_BETA.lower()]
    assert (here.queue_count, there.queues) == (1, [])
    assert status(alpha).session_count == 1


def test_a_session_says_what_it_waits_for(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    peer.acknowledges = False
    alpha.send(TO_PEER, b"unheard of")
    network.run(1_000)
    (found,) = sessions(alpha)
    assert (found.waits_for, found.in_flight_count) == (SessionWait.ACKNOWLEDGMENT.value, 1)
    alpha.send(TO_PEER, *numbered(200))
    network.run(1_000)
    (found,) = sessions(alpha)
    assert found.waits_for == SessionWait.WINDOW.value
    assert found.in_flight_count == found.window


def test_a_session_that_is_only_beginning_is_told_of_too(network: Network, alpha: Computer) -> None:
    network.peer(PEER)
    alpha.send(TO_PEER, b"x")
    network.run(1_000)
    (found,) = sessions(alpha)
    assert found.waits_for == SessionWait.HANDSHAKE.value
    assert (found.manager, found.name) == (bytes(16), "")


def test_the_directory_has_the_name_of_the_other_one(
    network: Network, office: Computer, shop: Computer
) -> None:
    shop.create(ORDERS)
    office.send(rf"DIRECT=TCP:{BETA}\{ORDERS}", b"x")
    network.run(3_000)
    assert {found.name for found in sessions(office)} == {"SHOP"}


def test_attempts_that_fail_are_counted(network: Network, alpha: Computer) -> None:
    assert status(alpha).unreached_count == 0
    alpha.send(TO_NOBODY, b"x")
    network.run(60_000)
    assert status(alpha).unreached_count >= 2


def test_messages_that_are_sent_again_are_counted(
    network: Network, alpha: Computer, peer: Neighbour
) -> None:
    del peer
    # The neighbour acknowledges the packet, and never says that its sequence has come so far.
    alpha.send(TO_PEER, b"x", transactional=True)
    network.run(10_000)
    assert status(alpha).resend_count == 0
    network.run(200_000)
    assert status(alpha).resend_count >= 1
