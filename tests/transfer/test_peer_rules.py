"""What `[peers]` and the directory say of others, and what follows for those who connect."""

from __future__ import annotations

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.directory.limits import DIRECTORY_POLL_S
from openmsmq.directory.rows import row_of
from openmsmq.manager.notices import NoticeKind
from openmsmq.model.identity import Guid, SequenceId
from openmsmq.model.peers import PeerPolicy, PeerRule
from tests.transfer.letters import by_number, letter, order_acks
from tests.transfer.neighbour import LEDGER, ORDERS, Neighbour
from tests.transfer.network import (
    BETA,
    GAMMA,
    KNOWN_PEER,
    PEER,
    Computer,
    Network,
    neighbour_identifier,
)
from tests.transfer.test_strangers import STRANGER, YOUNGER, entry, told

SOMEBODY = Guid(b"somebody else 00")


def beta_with(network: Network, *rules: PeerRule, strict: bool = False) -> Computer:
    policy = PeerPolicy(rules=rules, strict=strict)
    return network.manager("BETA", BETA, peers=policy).with_queues(ORDERS, LEDGER)


@pytest.fixture
def peer(network: Network) -> Neighbour:
    return Neighbour(network, PEER)


@pytest.fixture
def stranger(network: Network) -> Neighbour:
    return Neighbour(network, STRANGER)


def test_strictly_only_those_are_let_in_whom_a_rule_names(
    network: Network, peer: Neighbour, stranger: Neighbour
) -> None:
    beta = beta_with(network, *KNOWN_PEER.rules, strict=True)
    stranger.connect(BETA)
    assert not stranger.is_open, "nothing needs to be heard of him"
    other = Neighbour(network, PEER)
    other.identifier = SOMEBODY
    other.open(BETA)
    assert not other.is_open
    assert [each["reason"] for each in told(beta, NoticeKind.IDENTITY_REFUSED)] == ["not-named"] * 2
    peer = Neighbour(network, PEER)
    peer.open(BETA)
    peer.say(entry(peer.identifier, 1))
    assert beta.bodies(LEDGER) == [b"1"]


def test_strictly_nobody_is_let_in_because_we_have_called_him(
    network: Network, stranger: Neighbour
) -> None:
    beta = beta_with(network, *KNOWN_PEER.rules, strict=True)
    beta.send(rf"DIRECT=TCP:{STRANGER}\{ORDERS}", b"waits")
    network.run(1_000)
    assert stranger.bodies == []
    assert beta.outgoing()[0].message_count == 1
    assert "not let in" in beta.outgoing()[0].explanation


def test_who_is_refused_by_rule_is_refused_wherever_he_is(network: Network) -> None:
    bad = neighbour_identifier(STRANGER)
    beta = beta_with(network, PeerRule(name="bad", identifiers=(bad,), refuse=True))
    for address in (STRANGER, GAMMA):
        caller = Neighbour(network, address)
        caller.identifier = bad
        caller.open(BETA)
        assert not caller.is_open
    other = Neighbour(network, STRANGER)
    other.identifier = SOMEBODY
    other.open(BETA)
    assert other.is_open
    reasons = [each["reason"] for each in told(beta, NoticeKind.IDENTITY_REFUSED)]
    assert reasons == ["refused-by-rule"] * 2


def test_a_computer_with_several_addresses_is_named_with_all_of_them(network: Network) -> None:
    first, second = Neighbour(network, PEER), Neighbour(network, GAMMA)
    second.identifier = first.identifier
    rule = PeerRule(name="p", identifiers=(first.identifier,), addresses=(PEER, GAMMA))
    beta = beta_with(network, rule)
    first.open(BETA)
    first.say(entry(first.identifier, 1))
    second.open(BETA)
    second.say(entry(first.identifier, 2, 1))
    assert beta.bodies(LEDGER) == [b"1", b"2"]


def test_addresses_of_one_host_of_the_configuration_are_one_place(network: Network) -> None:
    beta = network.manager("BETA", BETA, hosts={"two": (PEER, GAMMA)}).with_queues(ORDERS, LEDGER)
    first, second = Neighbour(network, PEER), Neighbour(network, GAMMA)
    second.identifier = first.identifier
    first.open(BETA)
    first.say(entry(first.identifier, 1))
    second.open(BETA)
    second.say(entry(first.identifier, 2, 1))
    assert beta.bodies(LEDGER) == [b"1", b"2"]


def test_who_is_named_gets_back_what_another_had_claimed_before(
    network: Network, peer: Neighbour, stranger: Neighbour
) -> None:
    """An operator who pins an identifier makes a flow work again that a stranger had spoilt."""
    beta = network.manager("BETA", BETA).with_queues(ORDERS, LEDGER)
    stranger.identifier = peer.identifier
    stranger.open(BETA)
    stranger.say(entry(peer.identifier, 1, sequence=YOUNGER))
    peer.open(BETA)
    assert not peer.is_open
    transfer = msgspec.structs.replace(beta.config.transfer, peers=KNOWN_PEER)
    beta.config = msgspec.structs.replace(beta.config, transfer=transfer)
    beta.crash()
    stranger.open(BETA)
    assert not stranger.is_open
    peer.open(BETA)
    peer.say(entry(peer.identifier, 2), entry(peer.identifier, 3, 2))
    assert beta.bodies(LEDGER) == [b"1", b"2", b"3"]


def test_a_peer_that_routes_brings_messages_of_others_and_nobody_else_does(
    network: Network, stranger: Neighbour
) -> None:
    router = PeerRule(name="router", addresses=(PEER,), routes=True)
    beta = beta_with(network, router)
    way = Neighbour(network, PEER)
    way.open(BETA)
    way.say(entry(SOMEBODY, 1))
    stranger.open(BETA)
    stranger.say(entry(SOMEBODY, 2, 1))
    way.say(entry(SOMEBODY, 3, 1))
    assert beta.bodies(LEDGER) == [b"1", b"3"]


def test_a_certificate_counts_for_more_than_an_address(network: Network) -> None:
    who = neighbour_identifier(PEER)
    rule = PeerRule(name="office", identifiers=(who,), certificates=("ab" * 32,), tls=True)
    beta = beta_with(network, rule)
    beta.proven[GAMMA] = beta.proven[PEER] = "office"
    for number, address in enumerate((PEER, GAMMA, STRANGER), 1):
        caller = Neighbour(network, address)
        caller.identifier = who
        caller.open(BETA)
        caller.say(entry(who, number, number - 1))
        assert caller.is_open is (address != STRANGER)
    assert beta.bodies(LEDGER) == [b"1", b"2"]
    assert told(beta, NoticeKind.IDENTITY_REFUSED)[0]["reason"] == "not-over-tls"


def test_an_identifier_that_was_shown_with_a_certificate_is_not_believed_without(
    network: Network, stranger: Neighbour
) -> None:
    beta = beta_with(network, PeerRule(name="partner", certificate_names=("partner",), tls=True))
    beta.proven[PEER] = "partner"
    peer = Neighbour(network, PEER)
    peer.open(BETA)
    peer.say(entry(peer.identifier, 1))
    stranger.identifier = peer.identifier
    stranger.open(BETA)
    assert not stranger.is_open


# The directory.


def test_who_is_in_the_directory_is_believed_at_his_addresses_only(
    office: Computer, shop: Computer, stranger: Neighbour
) -> None:
    shop.create(LEDGER, transactional=True)
    stranger.identifier = office.identifier
    stranger.open(shop.address)
    assert not stranger.is_open
    (refused,) = told(shop, NoticeKind.IDENTITY_REFUSED)
    assert (refused["reason"], refused["known"]) == ("known-elsewhere", office.address)


def test_only_a_routing_server_of_the_directory_brings_messages_of_others(
    network: Network, office: Computer, shop: Computer
) -> None:
    shop.create(LEDGER, transactional=True)
    number, manager = by_number(shop, LEDGER)
    info = office.manager.directory.copy.image.managers[office.identifier]
    # The test plays somebody whom the directory knows.
    known = msgspec.structs.replace(
        info,
        identifier=neighbour_identifier(PEER),
        computer_name="PLAYED",
        qualified_computer_name="",
        addresses=(PEER,),
        routing_server=False,
        directory_server=None,
    )
    office.ok(api.ChangeDirectory([row_of(known)]))
    network.run(DIRECTORY_POLL_S * 1000)
    played = Neighbour(network, PEER)
    played.open(shop.address)
    message = letter(
        SOMEBODY, 1, number, b"1", manager=manager, place=(SequenceId(5, 1_600_000_000), 1, 0)
    )
    played.say(message)
    assert shop.bodies(LEDGER) == []
    assert told(shop, NoticeKind.SEQUENCE_REFUSED)[0]["reason"] == "foreign-source"
    office.ok(api.ChangeDirectory([row_of(msgspec.structs.replace(known, routing_server=True))]))
    network.run(DIRECTORY_POLL_S * 1000)
    played.open(shop.address)
    played.say(message)
    assert shop.bodies(LEDGER) == [b"1"]
    assert order_acks(played.messages, SOMEBODY) == []


def test_a_next_hop_by_name_is_known_once_its_address_was_asked_for(network: Network) -> None:
    network.hosts["hop"] = (PEER,)
    beta = network.manager("BETA", BETA, next_hops={str(SOMEBODY): ("hop",)})
    beta.create(LEDGER, transactional=True)
    way = Neighbour(network, PEER)
    way.open(BETA)
    way.say(entry(SOMEBODY, 1))
    assert beta.bodies(LEDGER) == []
    network.run(100)
    # Its source sends it again, because nobody has acknowledged it.
    way.say(entry(SOMEBODY, 1))
    assert beta.bodies(LEDGER) == [b"1"]
