"""What operators are told of sequences that other queue managers send here."""

from __future__ import annotations

from typing import Any

import pytest

from openmsmq.api import messages as api
from openmsmq.manager.requests.watching import sequences as shown_module
from openmsmq.model.identity import Guid
from openmsmq.model.limits import QUEUE_FILTER_MAX_CHARACTERS, SEQUENCE_PAGE_MAX_COUNT
from tests.transfer.letters import SEQUENCE, direct, letter
from tests.transfer.network import BETA, PEER, ROUTING_PEER, START_S, Computer, Network, Peer

LEDGER = r"private$\ledger"
PLACES = [bytes([number]) * 16 for number in range(1, 8)]
"""Senders whose messages the peer brings, by their identifiers."""


@pytest.fixture
def beta(network: Network) -> Computer:
    beta = network.manager("BETA", BETA, peers=ROUTING_PEER)
    beta.create(LEDGER, transactional=True)
    return beta


@pytest.fixture
def peer(network: Network, beta: Computer) -> Peer:
    assert beta.address == BETA
    peer = network.peer()
    peer.open_session(BETA)
    return peer


def page(computer: Computer, **asked: Any) -> api.IncomingSequencePage:
    found: api.IncomingSequencePage = computer.ok(api.PageIncomingSequences(**asked))
    return found


def bring(peer: Peer, source: Guid, number: int, previous: int) -> None:
    to = direct(BETA, LEDGER)
    peer.write(letter(source, 100 + number, to, place=(SEQUENCE, number, previous)))


def test_a_sequence_says_who_sends_it_where_to_and_how_far_it_has_come(
    network: Network, beta: Computer, peer: Peer
) -> None:
    assert page(beta) == api.IncomingSequencePage([], 0)
    network.run(7_000)
    bring(peer, peer.identifier, 1, 0)
    bring(peer, peer.identifier, 2, 1)
    bring(peer, peer.identifier, 4, 3)
    (found,) = page(beta).sequences
    assert (found.manager, found.name, found.address) == (bytes(peer.identifier), "", PEER)
    assert found.destination.lower() == rf"direct=tcp:{BETA}\{LEDGER}"
    assert (found.sequence, found.number, found.rejected_count) == (int(SEQUENCE), 2, 1)
    assert (found.since_s, found.last_time_s) == (SEQUENCE.timestamp, START_S + 7)


def test_one_of_which_nothing_was_taken_is_shown_and_one_in_the_store_too(
    beta: Computer, peer: Peer
) -> None:
    bring(peer, peer.identifier, 1, 0)
    beta.crash()
    peer.open_session(BETA)
    late = Guid(PLACES[0])
    bring(peer, late, 5, 4)
    found = {Guid(one.manager): one for one in page(beta).sequences}
    assert page(beta).total_count == 2
    assert (found[peer.identifier].number, found[peer.identifier].rejected_count) == (1, 0)
    assert (found[late].sequence, found[late].number, found[late].since_s) == (0, 0, 0)
    assert found[late].rejected_count == 1
    (waits,) = page(beta, only_rejected=True).sequences
    assert waits == found[late]


@pytest.mark.parametrize("looked_at_count", [1, 3, 1000])
@pytest.mark.parametrize("is_in_the_store", [False, True])
def test_pages_have_each_sequence_once_in_one_order(
    beta: Computer,
    peer: Peer,
    monkeypatch: pytest.MonkeyPatch,
    looked_at_count: int,
    is_in_the_store: bool,
) -> None:
    monkeypatch.setattr(shown_module, "SEQUENCES_LOOKED_AT_MAX_COUNT", looked_at_count)
    for source in reversed(PLACES):
        bring(peer, Guid(source), 1, 0)
    if is_in_the_store:
        beta.crash()
    found: list[bytes] = []
    after = b""
    for _ in range(2 * len(PLACES)):
        part = page(beta, after=after, limit=2)
        assert len(part.sequences) <= 2
        assert part.total_count == len(PLACES)
        found += [one.manager for one in part.sequences]
        after = part.after
        if not after:
            break
    assert found == PLACES


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        ("LEDGER", len(PLACES)),
        (str(Guid(PLACES[2])).upper(), 1),
        ("nobody", 0),
        (PEER, 1),
    ],
)
def test_a_text_finds_senders_and_queues(
    beta: Computer, peer: Peer, wanted: str, count: int
) -> None:
    for source in PLACES[1:]:
        bring(peer, Guid(source), 1, 0)
    bring(peer, peer.identifier, 1, 0)
    assert len(page(beta, filter=wanted).sequences) == count


def test_the_directory_has_the_name_of_the_sender(
    network: Network, office: Computer, shop: Computer
) -> None:
    shop.create(LEDGER, transactional=True)
    office.send(rf"DIRECT=TCP:{BETA}\{LEDGER}", b"x", transactional=True)
    network.run(3_000)
    (found,) = page(shop, filter="office").sequences
    assert (found.name, found.number) == ("OFFICE", 1)


@pytest.mark.parametrize(
    "asked",
    [
        {"limit": 0},
        {"limit": SEQUENCE_PAGE_MAX_COUNT + 1},
        {"after": b"x"},
        {"after": bytes(600)},
        {"filter": "x" * (QUEUE_FILTER_MAX_CHARACTERS + 1)},
    ],
)
def test_what_no_page_has_said_is_refused(beta: Computer, asked: dict[str, Any]) -> None:
    assert isinstance(beta.ask(api.PageIncomingSequences(**asked)), api.Failed)


def test_a_place_that_somebody_made_up_shows_what_is_behind_it(beta: Computer, peer: Peer) -> None:
    bring(peer, peer.identifier, 1, 0)
    for after, count in ((bytes(33), 1), (b"\xff" * 33, 0)):
        assert len(page(beta, after=after).sequences) == count
