"""A message that comes twice is taken once. [MQQB 3.1.5.8.1, 3.1.5.8.2]"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from openmsmq.model.identity import Guid
from openmsmq.model.limits import DUPLICATE_FILTER_MAX_COUNT
from openmsmq.model.message import MessageClass
from openmsmq.wire.headers.queue_names import DirectName
from tests.transfer.letters import (
    ARRIVAL_ACK,
    SEQUENCE,
    direct,
    headers_in,
    let_pass,
    letter,
    letters_in,
    order_acks,
)
from tests.transfer.network import BETA, KNOWN_PEER, PEER, Computer, Network, Peer

ORDERS = r"private$\orders"
LEDGER = r"private$\ledger"
TO_ORDERS = direct(BETA, ORDERS)
TO_LEDGER = direct(BETA, LEDGER)
OTHER = Guid(bytes([0xCD]) * 16)


@pytest.fixture
def beta(network: Network) -> Computer:
    return office(network)


@pytest.fixture
def peer(network: Network, beta: Computer) -> Peer:
    assert beta.address == BETA
    return connected(network)


def office(network: Network, **transfer: int) -> Computer:
    beta = network.manager("BETA", BETA, peers=KNOWN_PEER, **transfer)
    beta.create(ORDERS)
    beta.create(LEDGER, transactional=True)
    return beta


def connected(network: Network) -> Peer:
    peer = network.peer()
    peer.open_session(BETA)
    return peer


@pytest.mark.spec("MQQB-3.1.5.8.1-03", "MQQB-3.1.5.8.2-05", "MQQB-3.1.5.8.2-07")
@pytest.mark.parametrize("recoverable", [False, True], ids=["express", "recoverable"])
def test_a_duplicate_after_a_new_connection_is_dropped_and_acknowledged(
    beta: Computer, peer: Peer, recoverable: bool
) -> None:
    wish: dict[str, Any] = {
        "acknowledge": ARRIVAL_ACK,
        "admin_queue": direct(PEER, r"private$\admin"),
    }
    message = letter(peer.identifier, 5, TO_ORDERS, recoverable=recoverable, **wish)
    peer.write(message)
    assert len(letters_in(peer.take(), peer.identifier)) == 1
    peer.close()
    peer.open_session(BETA)
    peer.write(message, letter(peer.identifier, 6, TO_ORDERS, b"next", recoverable=recoverable))
    packets = let_pass(peer, 15_000)
    assert beta.bodies(ORDERS) == [b"body", b"next"]
    assert letters_in(packets, peer.identifier) == [], "it is not reported a second time"
    assert peer.is_open
    last = headers_in(packets)[-1]
    assert last.received_count == 2
    stored = [
        (header.stored_base + bit) & 0xFFFF
        for header in headers_in(packets)
        for bit in range(32)
        if header.stored_bits >> bit & 1
    ]
    assert stored == ([1, 2] if recoverable else [])


@pytest.mark.spec("MQQB-3.1.5.8.2-05")
def test_equal_numbers_of_two_senders_are_two_messages(beta: Computer, peer: Peer) -> None:
    peer.write(
        letter(peer.identifier, 5, TO_ORDERS, b"of one"),
        letter(OTHER, 5, TO_ORDERS, b"of the other"),
        letter(peer.identifier, 5, TO_ORDERS, b"again"),
    )
    assert beta.bodies(ORDERS) == [b"of one", b"of the other"]


@pytest.mark.spec("MQQB-3.1.5.8.2-06", "MQQB-3.1.5.8.2-07")
def test_the_message_heard_of_longest_ago_is_forgotten_first(network: Network) -> None:
    beta = office(network, duplicates_max=2)
    peer = connected(network)
    for number in (1, 2, 3):
        peer.write(letter(peer.identifier, number, TO_ORDERS, b"%d" % number))
        network.run(1_000)
    peer.write(letter(peer.identifier, 3, TO_ORDERS, b"3 again"))
    peer.write(letter(peer.identifier, 2, TO_ORDERS, b"2 again"))
    peer.write(letter(peer.identifier, 1, TO_ORDERS, b"1 again"))
    assert beta.bodies(ORDERS) == [b"1", b"2", b"3", b"1 again"]


@pytest.mark.spec("MQQB-3.1.5.8.2-08", "MQQB-3.1.5.8.1-02")
@pytest.mark.parametrize("wish", [{}, {"journal_on_failure": True}], ids=["plain", "with a wish"])
def test_a_message_is_forgotten_after_its_time_counted_from_when_it_came_last(
    network: Network, wish: dict[str, Any]
) -> None:
    beta = office(network, duplicates_kept_ms=10_000)
    peer = connected(network)
    message = letter(peer.identifier, 1, TO_ORDERS, recoverable=False, **wish)
    peer.write(message)
    for _ in range(3):
        network.run(9_000)
        peer.write(message)
        assert len(beta.bodies(ORDERS)) == 1
    network.run(21_000)
    peer.write(message)
    assert len(beta.bodies(ORDERS)) == 2


@pytest.mark.spec("MQQB-3.1.5.8.1-01")
def test_a_transactional_message_is_known_by_its_place_not_by_its_number(
    beta: Computer, peer: Peer
) -> None:
    peer.write(
        letter(peer.identifier, 1, TO_LEDGER, b"1", place=(SEQUENCE, 1, 0)),
        letter(peer.identifier, 1, TO_LEDGER, b"2", place=(SEQUENCE, 2, 1)),
        letter(peer.identifier, 2, TO_LEDGER, b"2 again", place=(SEQUENCE, 2, 1)),
    )
    assert beta.bodies(LEDGER) == [b"1", b"2"]
    (ack,) = order_acks(let_pass(peer, 1_000), peer.identifier)
    assert (ack.sequence, ack.number) == (SEQUENCE, 2)


@pytest.mark.spec("MQQB-3.1.5.8.2-05")
def test_what_was_heard_of_before_a_crash_is_known_after_it(beta: Computer, peer: Peer) -> None:
    message = letter(peer.identifier, 5, TO_ORDERS)
    peer.write(message)
    assert beta.bodies(ORDERS, take=True) == [b"body"]
    beta.crash()
    peer.open_session(BETA)
    peer.write(message, letter(peer.identifier, 6, TO_ORDERS, b"next"))
    assert beta.bodies(ORDERS) == [b"next"]


def test_a_message_that_the_disk_refused_may_come_again(
    network: Network, beta: Computer, peer: Peer
) -> None:
    message = letter(peer.identifier, 5, TO_ORDERS)
    beta.fail_commits = 1
    peer.write(message)
    assert not peer.is_open
    network.run(10_000)
    peer.open_session(BETA)
    peer.write(message)
    assert beta.bodies(ORDERS) == [b"body"]
    assert peer.is_open


def test_a_rejected_message_is_rejected_once(network: Network) -> None:
    office(network, permit_insecure_nacks=True)
    peer = connected(network)
    message = letter(
        peer.identifier,
        5,
        DirectName(rf"TCP:{BETA}\private$\missing"),
        acknowledge=0x04,
        admin_queue=direct(PEER, r"private$\admin"),
    )
    peer.write(message, message)
    packets = let_pass(peer, 1_000)
    (nack,) = letters_in(packets, peer.identifier)
    assert nack.properties.message_class == MessageClass.NACK_BAD_DESTINATION_QUEUE
    assert headers_in(packets)[-1].received_count == 2


def test_the_page_says_how_many_messages_are_remembered() -> None:
    page = Path(__file__).parents[2] / "docs" / "concepts" / "delivery-guarantees.md"
    said = f"remembers the last {DUPLICATE_FILTER_MAX_COUNT:,} messages"
    assert said in page.read_text(encoding="utf-8")
