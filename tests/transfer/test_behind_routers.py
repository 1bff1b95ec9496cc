"""Strangers behind an honest routing server: what it passes on for them moves nothing of others.

A routing server takes what a stranger says of himself, and under any name that is nobody's there.
Those to whom it passes that on believe it, as far as it can know whose it is.
"""

from __future__ import annotations

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.manager.notices import NoticeKind
from openmsmq.model.identity import Guid, SequenceId
from openmsmq.model.limits import INCOMING_SEQUENCE_BYTES, PEER_SILENCE_S
from openmsmq.model.message import MessageClass
from openmsmq.model.peers import PeerPolicy, PeerRule
from openmsmq.wire.headers.queue_names import PrivateOnDestination
from tests.transfer.conftest import LEDGER, ORDERS
from tests.transfer.directories import COPY, POLL_MS, joined
from tests.transfer.letters import (
    SEQUENCE,
    by_number,
    direct,
    final_ack,
    final_acks,
    letter,
    order_ack,
)
from tests.transfer.neighbour import Neighbour
from tests.transfer.network import ALPHA, BETA, GAMMA, PEER, Computer, Network, neighbour_identifier
from tests.transfer.test_doubts import Played
from tests.transfer.test_strangers import DEAD_LETTERS, STRANGER, told

YOUNGER = SequenceId(1, 0xFFFF_FFFF)
ROUTING = msgspec.structs.replace(COPY, routing_server=True)
RULE = PeerRule(name="outsider", identifiers=(neighbour_identifier(PEER),), addresses=(PEER,))
BY_RULE_OR_FLOW = pytest.mark.parametrize(
    "far", [(), (RULE,)], ids=["by his flow", "by a rule"], indirect=True
)
"""How it is known where the outsider is."""
LONG_MS = 20_000
"""Until what the routing server has taken is where it goes."""


@pytest.fixture
def router(network: Network, office: Computer) -> Computer:
    """An honest routing server, that has never heard of the outsider."""
    del office
    return joined(network, "SHOP", BETA, ROUTING)


@pytest.fixture
def far(network: Network, router: Computer, request: pytest.FixtureRequest) -> Computer:
    """To whom messages go; a rule says where the outsider is, or nobody does."""
    peers = PeerPolicy(rules=getattr(request, "param", ()))
    far = network.manager("FAR", GAMMA, COPY, peers=peers)
    network.run(POLL_MS)
    for each in (router, far):
        each.ok_soon(api.RefreshDirectory())
    return far.with_queues(ORDERS, LEDGER)


@pytest.fixture
def outsider(network: Network) -> Neighbour:
    """An honest queue manager that is not in the directory."""
    return Neighbour(network, PEER)


@pytest.fixture
def impostor(network: Network, outsider: Neighbour) -> Neighbour:
    """Somebody elsewhere who says that he is the outsider."""
    stranger = Neighbour(network, STRANGER)
    stranger.identifier = outsider.identifier
    return stranger


def waiting(computer: Computer) -> int:
    """How many messages wait to leave, or to be acknowledged."""
    return sum(queue.message_count for queue in computer.outgoing())


@BY_RULE_OR_FLOW
def test_nobody_moves_a_sequence_of_another_through_a_routing_server(
    network: Network, router: Computer, far: Computer, outsider: Neighbour, impostor: Neighbour
) -> None:
    to, manager = by_number(far, LEDGER)

    def entry(number: int, body: bytes, sequence: SequenceId = SEQUENCE) -> None:
        who = impostor if sequence == YOUNGER else outsider
        place = (sequence, number, number - 1)
        who.say(letter(outsider.identifier, number, to, body, manager=manager, place=place))
        network.run(LONG_MS)

    outsider.open(far.address)
    entry(1, b"one")
    impostor.open(router.address)
    entry(1, b"forged", YOUNGER)
    assert told(far, NoticeKind.SEQUENCE_REFUSED)[0]["reason"] == "foreign-source"
    entry(2, b"two")
    assert far.bodies(LEDGER) == [b"one", b"two"]


@BY_RULE_OR_FLOW
def test_nobody_makes_messages_look_like_copies_through_a_routing_server(
    network: Network, router: Computer, far: Computer, outsider: Neighbour, impostor: Neighbour
) -> None:
    to, manager = by_number(far, ORDERS)
    outsider.open(far.address)
    begun = letter(outsider.identifier, 1, direct(GAMMA, LEDGER), place=(SEQUENCE, 1, 0))
    outsider.say(begun)
    impostor.open(router.address)
    impostor.say(letter(outsider.identifier, 2, to, b"his", manager=manager))
    network.run(LONG_MS)
    outsider.say(letter(outsider.identifier, 2, to, b"true", manager=manager))
    network.run(1_000)
    # Anybody may send a message that is not transactional, and it costs the routing server nothing.
    assert far.bodies(ORDERS) == [b"his", b"true"]
    assert told(far, NoticeKind.MESSAGE_LEFT) == []


def test_what_a_silent_outsider_sends_may_come_through_a_routing_server(
    network: Network, router: Computer, far: Computer, outsider: Neighbour
) -> None:
    """He comes another way now: that is believed when he was silent for long, as everywhere."""
    to, manager = by_number(far, LEDGER)

    def entry(number: int) -> None:
        place = (SEQUENCE, number, number - 1)
        outsider.say(letter(outsider.identifier, number, to, manager=manager, place=place))
        network.run(LONG_MS)

    outsider.open(far.address)
    entry(1)
    outsider.close()
    network.run(PEER_SILENCE_S * 1000)
    outsider.open(router.address)
    entry(2)
    assert len(far.bodies(LEDGER)) == 2


def test_senders_that_are_invented_behind_a_routing_server_keep_no_newcomer_out(
    network: Network, router: Computer
) -> None:
    """How far they have come is remembered as what its address has brought."""
    quota_kb = 400
    far = network.manager("FAR", GAMMA, COPY, quota_kb=quota_kb)
    network.run(POLL_MS)
    router.ok_soon(api.RefreshDirectory())
    far.ok_soon(api.RefreshDirectory())
    far.create(LEDGER, transactional=True)
    to, manager = by_number(far, LEDGER)
    limit = quota_kb * 1024 // 8 // INCOMING_SEQUENCE_BYTES

    def entry(who: Neighbour, at: Computer) -> None:
        who.open(at.address)
        who.say(letter(who.identifier, 1, to, b"", manager=manager, place=(SEQUENCE, 1, 0)))
        who.close()

    for number in range(limit + 1):
        invented = Neighbour(network, STRANGER)
        invented.identifier = Guid(b"invented %07d" % number)
        entry(invented, router)
        network.run(100)
    network.run(LONG_MS)
    count = len(far.bodies(LEDGER))
    assert count >= limit
    entry(Neighbour(network, PEER), far)
    network.run(1_000)
    assert len(far.bodies(LEDGER)) == count + 1


@pytest.mark.parametrize("is_final", [False, True], ids=["order", "final"])
def test_a_stranger_acknowledges_nothing_through_a_routing_server(
    network: Network, office: Computer, router: Computer, is_final: bool
) -> None:
    """The routing server is a way from the destination; that does not make his words its."""
    played = Played(network, office, router)
    played.joins(routing=False)
    name = f"PRIVATE={played.at.identifier}\\5"
    office.send(name, b"precious", transactional=True, journal_on_failure=True)
    network.run(1_000)
    message = played.at.messages[-1]
    stranger = Neighbour(network, STRANGER)
    stranger.open(router.address)
    ack = order_ack(message, office.identifier, source=stranger.identifier)
    if is_final:
        reason = MessageClass.NACK_BAD_DESTINATION_QUEUE
        ack = final_ack(message, office.identifier, reason, source=stranger.identifier)
    stranger.say(ack)
    network.run(LONG_MS)
    assert told(office, NoticeKind.ACKNOWLEDGMENT_REFUSED)[0]["peer"] == BETA
    assert office.bodies(DEAD_LETTERS) == []
    assert waiting(office) == 1


def test_nobody_acknowledges_through_a_routing_server_what_went_to_an_address(
    network: Network, office: Computer, router: Computer, outsider: Neighbour, impostor: Neighbour
) -> None:
    office.send(rf"DIRECT=TCP:{PEER}\{LEDGER}", b"precious", transactional=True)
    network.run(1_000)
    ack = order_ack(outsider.messages[-1], office.identifier, source=outsider.identifier)
    impostor.open(router.address)
    impostor.say(ack)
    network.run(LONG_MS)
    assert waiting(office) == 1
    outsider.say(ack)
    network.run(1_000)
    assert waiting(office) == 0


def test_nobody_ends_our_own_messages_in_our_own_name_through_a_gateway(network: Network) -> None:
    """A message in our name that we refuse would tell us that ours has failed."""
    routes = PeerPolicy(rules=(PeerRule(name="gateway", addresses=(BETA,), routes=True),))
    alpha = network.manager("ALPHA", ALPHA, peers=routes)
    gateway = network.manager("BETA", BETA, next_hops={str(alpha.identifier): (ALPHA,)})
    peer = Neighbour(network, PEER)
    alpha.send(rf"DIRECT=TCP:{PEER}\{LEDGER}", b"precious", transactional=True)
    network.run(1_000)
    sent = peer.messages[-1]
    assert sent.transaction is not None
    stranger = Neighbour(network, STRANGER)
    stranger.identifier = alpha.identifier
    stranger.open(gateway.address)
    place = (sent.transaction.sequence, sent.transaction.number, 0)
    number, nowhere = sent.user.message_number, PrivateOnDestination(99)
    stranger.say(letter(alpha.identifier, number, nowhere, manager=alpha.identifier, place=place))
    network.run(LONG_MS)
    assert waiting(alpha) == 1
    assert told(alpha, NoticeKind.SEQUENCE_REFUSED)[0]["reason"] == "foreign-source"


def test_who_comes_through_a_routing_server_goes_on_whoever_claims_his_name_elsewhere(
    network: Network, router: Computer, far: Computer, outsider: Neighbour, impostor: Neighbour
) -> None:
    to, manager = by_number(far, LEDGER)

    def entry(number: int) -> None:
        place = (SEQUENCE, number, number - 1)
        outsider.say(letter(outsider.identifier, number, to, manager=manager, place=place))
        network.run(LONG_MS)

    outsider.open(router.address)
    entry(1)
    impostor.open(far.address)
    claim = letter(outsider.identifier, 9, direct(GAMMA, LEDGER), b"his", place=(SEQUENCE, 1, 0))
    impostor.say(claim)
    network.run(1_000)
    entry(2)
    assert far.bodies(LEDGER).count(b"body") == 2


def test_who_is_behind_a_routing_server_does_not_hear_which_queues_there_are(
    network: Network, router: Computer, far: Computer
) -> None:
    stranger = Neighbour(network, STRANGER)
    to, manager = by_number(far, ORDERS)
    stranger.open(router.address)
    for number, name in enumerate((PrivateOnDestination(99), to), 1):
        place = (SEQUENCE, number, 0)
        stranger.say(
            letter(stranger.identifier, number, name, manager=manager, place=place, final_ack=True)
        )
    network.run(LONG_MS)
    stranger.open(far.address)
    network.run(LONG_MS)
    # One queue is not there, the other is not transactional: both sound the same.
    refused = MessageClass.NACK_ACCESS_DENIED
    assert sorted(final_acks(stranger.messages, stranger.identifier)) == [
        (refused, 1),
        (refused, 2),
    ]


QUOTA_BYTES = 400 << 10
ONE_STRANGERS_BYTES = QUOTA_BYTES * 24 // 64


@pytest.mark.parametrize("dead_letters", [False, True], ids=["plain", "kept as dead letters"])
def test_who_is_behind_a_routing_server_leaves_room_to_others_and_stops_nobody(
    network: Network, router: Computer, *, dead_letters: bool
) -> None:
    far = network.manager("FAR", GAMMA, COPY, quota_kb=QUOTA_BYTES >> 10)
    network.run(POLL_MS)
    for each in (router, far):
        each.ok_soon(api.RefreshDirectory())
    far.with_queues(ORDERS, LEDGER)
    to, manager = by_number(far, ORDERS)
    stranger = Neighbour(network, STRANGER)
    stranger.open(router.address)
    for number in range(1, 121):
        said = letter(
            stranger.identifier,
            number,
            to,
            bytes(4_000),
            manager=manager,
            journal_on_failure=dead_letters,
        )
        stranger.say(said)
        network.run(200)
    network.run(LONG_MS)
    assert far.ok(api.GetStatus()).message_bytes <= ONE_STRANGERS_BYTES
    # Nor does the routing server wait with what is honest.
    router.send(rf"DIRECT=TCP:{GAMMA}\{ORDERS}", b"honest")
    network.run(LONG_MS)
    assert far.bodies(ORDERS)[-1] == b"honest"
    assert waiting(router) == 0
