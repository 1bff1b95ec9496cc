"""What the hostile simulator found: strangers who replay, claim and fill what is between others."""

from __future__ import annotations

import msgspec
import pytest

from openmsmq.manager.notices import NoticeKind
from tests.transfer.letters import SEQUENCE, direct, letter
from tests.transfer.neighbour import LEDGER, ORDERS, Neighbour
from tests.transfer.network import BETA, PEER, Computer, Network

STRANGER = "127.0.0.66"


@pytest.fixture
def peer(network: Network) -> Neighbour:
    """An honest queue manager, whose way BETA has in its configuration."""
    return Neighbour(network, PEER)


@pytest.fixture
def beta(network: Network, peer: Neighbour) -> Computer:
    hops = {str(peer.identifier): (PEER,)}
    return network.manager("BETA", BETA, next_hops=hops).with_queues(ORDERS, LEDGER)


@pytest.fixture
def stranger(network: Network) -> Neighbour:
    return Neighbour(network, STRANGER)


def test_a_message_that_was_overheard_does_not_come_twice(
    network: Network, beta: Computer, peer: Neighbour, stranger: Neighbour
) -> None:
    message = letter(peer.identifier, 1, direct(BETA, ORDERS), b"once")
    peer.open(BETA)
    peer.say(message)
    for _ in range(2):
        stranger.open(BETA)
        stranger.say(message)
        message = letter(peer.identifier, 7, direct(BETA, ORDERS), b"once")
    network.run(1_000)
    assert beta.bodies(ORDERS) == [b"once"]
    refused = [each for each in beta.notices if each.kind is NoticeKind.MESSAGE_DROPPED]
    assert [dict(each.facts)["peer"] for each in refused] == [STRANGER, STRANGER]


def test_a_source_that_nobody_knows_is_nobodys(beta: Computer, stranger: Neighbour) -> None:
    unknown = type(stranger.identifier)(bytes(range(16)))
    stranger.open(BETA)
    stranger.say(letter(unknown, 1, direct(BETA, ORDERS), b"passed on"))
    assert stranger.is_open
    assert beta.bodies(ORDERS) == [b"passed on"]


@pytest.mark.parametrize("restarts", [False, True])
def test_who_is_known_by_a_next_hop_is_claimed_nowhere_else_once_he_has_sent(
    beta: Computer, peer: Neighbour, stranger: Neighbour, restarts: bool
) -> None:
    peer.open(BETA)
    peer.say(letter(peer.identifier, 1, direct(BETA, LEDGER), b"1", place=(SEQUENCE, 1, 0)))
    if restarts:
        beta.crash()
    stranger.identifier = peer.identifier
    stranger.open(BETA)
    assert not stranger.is_open


def test_a_final_acknowledgment_waits_though_reports_have_no_room(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    beta.config = msgspec.structs.replace(beta.config, quota_kb=64)
    beta.crash()
    peer.open(BETA)
    for number in range(1, 21):
        place = (SEQUENCE, number, number - 1)
        peer.say(
            letter(peer.identifier, number, direct(BETA, LEDGER), b"x", place=place, final_ack=True)
        )
    peer.close()
    del network.computers[PEER]
    network.run(1_000)
    before = sum(queue.message_count for queue in beta.outgoing())
    assert len(beta.bodies(LEDGER, take=True)) == 20
    assert sum(queue.message_count for queue in beta.outgoing()) == before + 20
