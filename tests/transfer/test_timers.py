"""What the passing of time does to sessions and to messages that wait for acknowledgments."""

from __future__ import annotations

from itertools import pairwise

import pytest

from openmsmq.model.identity import SequenceId
from openmsmq.model.queue import ConnectionStatus
from openmsmq.wire.bodies.acknowledgments import OrderAck
from openmsmq.wire.packets import UserMessage
from tests.transfer.neighbour import (
    LEDGER,
    ORDERS,
    Neighbour,
    asked_count,
    numbered,
    to_ledger,
    to_orders,
)
from tests.transfer.network import ALPHA, BETA, PEER, Computer, Network

TO_PEER = rf"DIRECT=TCP:{PEER}\{ORDERS}"
TO_PEER_LEDGER = rf"DIRECT=TCP:{PEER}\{LEDGER}"
DAYS_MS = 24 * 3_600_000


@pytest.fixture
def peer(network: Network) -> Neighbour:
    return Neighbour(network, PEER)


def seconds(moments: list[int]) -> list[int]:
    """The pauses between moments."""
    return [(after - before) // 1000 for before, after in pairwise(moments)]


# Sessions.


@pytest.mark.spec("MQQB-3.1.3.2-11", "MQQB-3.1.3.2-12", "MQQB-3.1.3.2-13", "MQQB-3.1.3.2-25")
def test_a_session_without_messages_is_silent_and_ends_after_five_minutes(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    peer.open(BETA)
    written = len(beta.sent)
    network.run(299_999)
    assert peer.is_open
    network.run(1)
    assert not peer.is_open
    assert len(beta.sent) == written


def test_after_an_idle_session_has_ended_the_next_message_opens_another(
    network: Network, beta: Computer
) -> None:
    alpha = network.manager("ALPHA", ALPHA)
    name = rf"DIRECT=TCP:{BETA}\{ORDERS}"
    alpha.send(name, b"first")
    network.run(310_000)
    assert alpha.outgoing()[0].state == "CONNECTED"
    network.run(300_000)
    assert alpha.outgoing()[0].state == "DISCONNECTED"
    assert asked_count(alpha) == 1
    alpha.send(name, b"second")
    network.run()
    assert asked_count(alpha) == 2
    assert alpha.outgoing()[0].state == "CONNECTED"
    assert beta.bodies(ORDERS) == [b"first", b"second"]


@pytest.mark.spec("MQQB-3.1.6.3-02")
def test_silence_is_no_fault_when_nothing_waits_for_an_acknowledgment(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    beta.send(TO_PEER, b"acknowledged")
    network.run(250_000)
    assert peer.is_open
    # What follows is not given up earlier because of the silence before.
    peer.acknowledges = False
    beta.send(TO_PEER, b"never acknowledged")
    network.run(39_999)
    assert peer.is_open
    network.run(40_001)
    assert not peer.is_open
    attempts = beta.outgoing()[0].history
    assert attempts[-1].status == ConnectionStatus.SOCKET_SEND_FAILURE


def test_express_messages_are_acknowledged_after_half_the_wait_and_recoverable_ones_sooner(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    peer.open(BETA, ack_ms=30_000, recoverable_ms=2_000)
    peer.say(peer.message(to_orders(BETA), recoverable=False))
    network.run(14_999)
    assert peer.headers == []
    network.run(1)
    assert [header.received_count for header in peer.headers] == [1]
    peer.say(peer.message(to_orders(BETA)))
    network.run(1_999)
    assert len(peer.headers) == 1
    network.run(1)
    assert [header.received_count for header in peer.headers] == [1, 2]
    assert beta.bodies(ORDERS) == [b"body", b"body"]


# Order acknowledgments.


@pytest.mark.spec("MQQB-3.1.3.2-31")
def test_a_steady_stream_is_acknowledged_in_order_after_ten_seconds(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    peer.open(BETA)
    sequence = SequenceId(1, 1)
    began = network.now.ticks_ms
    for number in range(1, 61):
        peer.say(peer.message(to_ledger(BETA), place=(sequence, number, number - 1)))
        network.run(400)
    first = peer.moments[0] - began
    assert 10_000 <= first <= 10_900
    assert len(beta.bodies(LEDGER)) == 60


@pytest.mark.spec("MQQB-3.1.6.9-01")
def test_an_order_acknowledgment_follows_half_a_second_after_the_last_message(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    peer.open(BETA)
    sequence = SequenceId(1, 1)
    for number in (1, 2):
        peer.say(peer.message(to_ledger(BETA), place=(sequence, number, number - 1)))
        network.run(300)
    network.run(199)
    assert peer.messages == []
    network.run(1)
    (ack,) = peer.messages
    assert ack.properties.label_text == "QM Ordering Ack"
    assert OrderAck.decode(ack.properties.body) == OrderAck.up_to(sequence, 2)
    assert ack.user.source == beta.identifier


# Resends of transactional messages.


def run_until_resent(network: Network, peer: Neighbour, count: int) -> None:
    """Let time pass until so many messages have come in all."""
    for _ in range(200):
        if len(peer.messages) >= count:
            return
        network.run(600_000)
    raise AssertionError(f"only {len(peer.messages)} of {count} came")


@pytest.mark.spec(
    "MQQB-3.1.1.3-12",
    "MQQB-3.1.1.3-13",
    "MQQB-3.1.1.3-14",
    "MQQB-3.1.1.3-15",
    "MQQB-3.1.6.5-02",
    "MQQB-3.1.2-01",
)
@pytest.mark.parametrize(
    ("options", "pauses"),
    [
        ({}, (30, 300, 1_800, 21_600)),
        (
            {
                "resend_first_s": 7,
                "resend_second_s": 11,
                "resend_third_s": 13,
                "resend_last_s": 17,
            },
            (7, 11, 13, 17),
        ),
    ],
    ids=["as usual", "as configured"],
)
def test_transactional_messages_are_resent_with_growing_pauses_also_after_a_restart(
    network: Network, options: dict[str, int], pauses: tuple[int, int, int, int]
) -> None:
    alpha = network.manager("ALPHA", ALPHA, session_idle_ms=DAYS_MS, **options)
    peer = Neighbour(network, PEER)
    first, second, third, last = pauses
    schedule = [first] * 3 + [second] * 3 + [third] * 3 + [last] * 2
    alpha.send(TO_PEER_LEDGER, b"entry", transactional=True)
    network.run()
    run_until_resent(network, peer, 12)
    assert seconds(peer.moments[:12]) == schedule
    assert {message.transaction for message in peer.messages} == {peer.messages[0].transaction}
    peer.arrived.clear()
    alpha.crash()
    network.run()
    run_until_resent(network, peer, 12)
    assert seconds(peer.moments[:12]) == schedule
    assert peer.opened_count == 2


@pytest.mark.spec("MQQB-3.1.6.5-02")
def test_a_resend_repeats_all_that_is_outstanding_in_order_and_in_the_same_session(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    beta.send(TO_PEER_LEDGER, *numbered(4), transactional=True)
    network.run(1_000)
    first: list[UserMessage] = peer.messages
    assert [message.transaction.number for message in first if message.transaction] == [1, 2, 3, 4]
    peer.say(peer.order_ack(first[1]))
    network.run(29_999)
    assert len(peer.messages) == 4
    network.run(1_001)
    assert peer.bodies[4:] == [b"2", b"3"]
    assert [message.transaction.number for message in peer.messages[4:] if message.transaction] == [
        3,
        4,
    ]
    assert peer.opened_count == 1
    peer.say(peer.order_ack(first[3]))
    network.run(3_600_000)
    assert len(peer.messages) == 6
