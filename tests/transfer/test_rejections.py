"""Messages that cannot enter a queue here: who hears of it. [MQQB 3.1.5.8.2, 3.1.5.8.8]"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from openmsmq.manager.config import ManagerConfig
from openmsmq.model.message import MessageClass
from openmsmq.wire.headers.queue_names import PrivateOnDestination
from tests.transfer.letters import (
    ARRIVAL_NACK,
    SEQUENCE,
    by_number,
    direct,
    final_acks,
    headers_in,
    let_pass,
    letter,
    letters_in,
    order_acks,
)
from tests.transfer.network import BETA, GAMMA, PEER, ROUTING_PEER, Computer, Network, Peer

ORDERS = r"private$\orders"
LEDGER = r"private$\ledger"
MISSING = r"private$\missing"
ADMIN = direct(PEER, r"private$\admin")
NACK: dict[str, Any] = {"acknowledge": ARRIVAL_NACK, "admin_queue": ADMIN}


@pytest.fixture
def beta(network: Network) -> Computer:
    beta = network.manager("BETA", BETA, permit_insecure_nacks=True, peers=ROUTING_PEER)
    beta.create(ORDERS, quota_kb=1)
    beta.create(LEDGER, transactional=True, quota_kb=1)
    return beta


@pytest.fixture
def peer(network: Network, beta: Computer) -> Peer:
    assert beta.address == BETA
    peer = network.peer()
    peer.open_session(BETA)
    return peer


def nacks(peer: Peer) -> list[tuple[int, bytes]]:
    """The classes and bodies of the administration acknowledgments that come within a second."""
    return [
        (nack.properties.message_class, nack.properties.body)
        for nack in letters_in(let_pass(peer, 1_000), peer.identifier)
    ]


@pytest.mark.spec(
    "MQQB-3.1.5.8.2-11",
    "MQQB-3.1.5.8.2-12",
    "MQQB-3.1.5.8.2-13",
    "MQQB-3.1.5.8.2-14",
    "MQQB-3.1.5.8.2-16",
)
def test_a_message_to_a_missing_queue_is_dropped_and_reported(beta: Computer, peer: Peer) -> None:
    number = PrivateOnDestination(0x7777)
    peer.write(
        letter(peer.identifier, 1, direct(BETA, MISSING), b"by name", **NACK),
        letter(peer.identifier, 2, number, b"by number", manager=beta.identifier, **NACK),
        letter(peer.identifier, 3, direct(BETA, MISSING), b"without a wish"),
    )
    assert nacks(peer) == [
        (MessageClass.NACK_BAD_DESTINATION_QUEUE, b"by name"),
        (MessageClass.NACK_BAD_DESTINATION_QUEUE, b"by number"),
    ]
    assert peer.is_open


@pytest.mark.spec("MQQB-3.1.5.8.2-15", "MQQB-3.1.5.8.2-16")
def test_a_transactional_message_to_a_missing_queue_ends_and_its_sequence_goes_on(
    beta: Computer, peer: Peer
) -> None:
    to = direct(BETA, MISSING)
    wish: dict[str, Any] = {"journal_on_failure": True, "final_ack": True}
    peer.write(
        letter(peer.identifier, 41, to, place=(SEQUENCE, 1, 0), **wish),
        letter(peer.identifier, 42, to, place=(SEQUENCE, 2, 1), **wish),
    )
    packets = let_pass(peer, 1_000)
    assert final_acks(packets, peer.identifier) == [
        (MessageClass.NACK_BAD_DESTINATION_QUEUE, 41),
        (MessageClass.NACK_BAD_DESTINATION_QUEUE, 42),
    ]
    (ack,) = order_acks(packets, peer.identifier)
    assert (ack.sequence, ack.number) == (SEQUENCE, 2)
    assert beta.bodies("system$;deadxact") == [], "the dead letter is the source's"


@pytest.mark.spec(
    "MQQB-3.1.5.8.2-17", "MQQB-3.1.5.8.2-18", "MQQB-3.1.5.8.2-19", "MQQB-3.1.5.8.2-20"
)
def test_a_queue_without_transactions_takes_no_transactional_message(
    beta: Computer, peer: Peer
) -> None:
    number, manager = by_number(beta, ORDERS)
    message = letter(
        peer.identifier,
        41,
        number,
        manager=manager,
        place=(SEQUENCE, 1, 0),
        journal_on_failure=True,
        **NACK,
    )
    peer.write(message)
    packets = let_pass(peer, 1_000)
    (nack,) = letters_in(packets, peer.identifier)
    assert nack.properties.message_class == MessageClass.NACK_NOT_TRANSACTIONAL_QUEUE
    assert final_acks(packets, peer.identifier) == [(MessageClass.NACK_NOT_TRANSACTIONAL_QUEUE, 41)]
    assert beta.bodies(ORDERS) == []


@pytest.mark.spec("MQQB-3.1.5.8.2-21", "MQQB-3.1.5.8.2-22", "MQQB-3.1.5.8.2-23")
def test_a_transactional_queue_takes_only_transactional_messages(
    beta: Computer, peer: Peer
) -> None:
    number, manager = by_number(beta, LEDGER)
    peer.write(
        letter(peer.identifier, 1, number, b"by number", manager=manager, **NACK),
        letter(peer.identifier, 2, direct(BETA, LEDGER), b"by name", **NACK),
    )
    packets = let_pass(peer, 1_000)
    found = letters_in(packets, peer.identifier)
    assert [nack.properties.message_class for nack in found] == [
        MessageClass.NACK_NOT_TRANSACTIONAL_MESSAGE
    ] * 2
    assert final_acks(packets, peer.identifier) == []
    assert beta.bodies(LEDGER) == []


@pytest.mark.spec("MQQB-3.1.5.8.8-06", "MQQB-3.1.5.8.8-07", "MQQB-3.1.5.8.8-10", "MQMQ-2.2.19.3-03")
def test_a_full_queue_takes_no_more_and_the_session_goes_on(beta: Computer, peer: Peer) -> None:
    to = direct(BETA, ORDERS)
    peer.write(
        letter(peer.identifier, 1, to, b"a" * 500),
        letter(peer.identifier, 2, to, b"b" * 700, **NACK),
        letter(peer.identifier, 3, to, b"c" * 10),
    )
    assert nacks(peer) == [(MessageClass.NACK_QUEUE_EXCEEDS_QUOTA, b"b" * 700)]
    assert beta.bodies(ORDERS) == [b"a" * 500, b"c" * 10]
    assert peer.is_open


@pytest.mark.spec("MQQB-3.1.5.8.8-08")
def test_a_dead_letter_of_a_full_queue_is_kept_here(beta: Computer, peer: Peer) -> None:
    message = letter(
        peer.identifier, 1, direct(BETA, ORDERS), b"b" * 1_100, journal_on_failure=True
    )
    peer.write(message)
    assert beta.bodies("system$;deadletter") == [b"b" * 1_100]
    assert beta.classes("system$;deadletter") == [MessageClass.NACK_QUEUE_EXCEEDS_QUOTA]


@pytest.mark.spec("MQQB-3.1.5.8.8-09")
def test_a_full_transactional_queue_ends_a_message_at_its_source(
    beta: Computer, peer: Peer
) -> None:
    message = letter(
        peer.identifier,
        41,
        direct(BETA, LEDGER),
        b"b" * 1_100,
        place=(SEQUENCE, 1, 0),
        journal_on_failure=True,
    )
    peer.write(message)
    packets = let_pass(peer, 1_000)
    assert final_acks(packets, peer.identifier) == [(MessageClass.NACK_QUEUE_EXCEEDS_QUOTA, 41)]
    assert [ack.number for ack in order_acks(packets, peer.identifier)] == [1]
    assert beta.bodies("system$;deadletter") == []
    assert beta.bodies("system$;deadxact") == []


@pytest.mark.spec("MQQB-3.1.5.8.8-11", "MQQB-3.1.5.8.8-12", "MQQB-3.1.5.8.8-13")
@pytest.mark.parametrize("place", [None, (SEQUENCE, 1, 0)], ids=["plain", "transactional"])
def test_without_room_in_the_queue_manager_the_session_closes_and_the_sender_keeps_it(
    beta: Computer, peer: Peer, place: Any
) -> None:
    beta.create(r"private$\wide")
    beta.create(r"private$\wide_ledger", transactional=True)
    beta.config = _with_quota(beta, 4)
    beta.crash()
    peer.open_session(BETA)
    to = direct(BETA, r"private$\wide_ledger" if place else r"private$\wide")
    message = letter(
        peer.identifier, 1, to, b"b" * 5_000, place=place, journal_on_failure=True, **NACK
    )
    peer.write(message)
    packets = let_pass(peer, 1_000)
    assert not peer.is_open
    assert headers_in(packets) == []
    assert letters_in(packets, peer.identifier) == []
    assert final_acks(packets, peer.identifier) == []
    beta.config = _with_quota(beta, 100)
    beta.crash()
    peer.open_session(BETA)
    peer.write(message)
    assert beta.bodies(r"private$\wide_ledger" if place else r"private$\wide") == [b"b" * 5_000]


def _with_quota(computer: Computer, quota_kb: int) -> ManagerConfig:
    return msgspec.structs.replace(computer.config, quota_kb=quota_kb)


# Messages that only pass through.


@pytest.fixture
def router(network: Network, beta: Computer) -> Computer:
    target = network.manager("GAMMA", GAMMA)
    target.create(ORDERS)
    target.create(LEDGER, transactional=True)
    assert beta.address == BETA
    return network.manager(
        "BETA",
        BETA,
        next_hops={str(target.identifier): (GAMMA,)},
        permit_insecure_nacks=True,
        peers=ROUTING_PEER,
    )


@pytest.fixture
def gamma(network: Network, router: Computer) -> Computer:
    assert router.address == BETA
    computer = network.computers[GAMMA]
    assert isinstance(computer, Computer)
    return computer


@pytest.mark.spec("MQQB-3.1.5.8.2-24", "MQQB-3.1.5.8.2-25")
def test_a_message_that_passes_through_has_gone_one_hop_more(
    gamma: Computer, network: Network
) -> None:
    peer = network.peer()
    peer.open_session(BETA)
    number, manager = by_number(gamma, ORDERS)
    first = letter(peer.identifier, 1, number, manager=manager)
    last = letter(peer.identifier, 2, number, manager=manager, hops=28)
    peer.write(first, last)
    network.run(1_000)
    assert [message.user.hop_count for message in gamma.messages(ORDERS)] == [1, 29]


@pytest.mark.spec("MQQB-3.1.5.8.2-26", "MQQB-3.1.5.8.2-27", "MQQB-3.1.5.8.2-29")
def test_a_message_that_has_gone_29_hops_goes_no_further(
    gamma: Computer, router: Computer, network: Network
) -> None:
    peer = network.peer()
    peer.open_session(BETA)
    number, manager = by_number(gamma, ORDERS)
    peer.write(letter(peer.identifier, 1, number, b"far", manager=manager, hops=29, **NACK))
    assert nacks(peer) == [(MessageClass.NACK_HOP_COUNT_EXCEEDED, b"far")]
    assert gamma.bodies(ORDERS) == []
    assert peer.is_open
    assert sum(queue.message_count for queue in router.outgoing()) <= 1, "only the report"


@pytest.mark.spec("MQQB-3.1.5.8.2-28")
def test_the_source_of_a_transactional_message_hears_that_it_went_too_far(
    gamma: Computer, network: Network
) -> None:
    peer = network.peer()
    peer.open_session(BETA)
    number, manager = by_number(gamma, LEDGER)
    message = letter(
        peer.identifier,
        41,
        number,
        manager=manager,
        hops=29,
        place=(SEQUENCE, 1, 0),
        journal_on_failure=True,
    )
    peer.write(message)
    packets = let_pass(peer, 1_000)
    assert final_acks(packets, peer.identifier) == [(MessageClass.NACK_HOP_COUNT_EXCEEDED, 41)]
    assert gamma.bodies(LEDGER) == []


@pytest.mark.spec("MQQB-3.1.5.8.2-01")
def test_what_a_computer_between_cannot_save_stays_with_its_sender(
    gamma: Computer, router: Computer, network: Network
) -> None:
    peer = network.peer()
    peer.open_session(BETA)
    number, manager = by_number(gamma, ORDERS)
    message = letter(peer.identifier, 1, number, manager=manager, **NACK)
    router.fail_commits = 1
    peer.write(message)
    packets = let_pass(peer, 1_000)
    assert not peer.is_open
    assert packets == []
    assert gamma.bodies(ORDERS) == []
    assert sum(queue.message_count for queue in router.outgoing()) == 0
    network.run(10_000)
    peer.open_session(BETA)
    peer.write(message)
    network.run(1_000)
    assert gamma.bodies(ORDERS) == [b"body"]
