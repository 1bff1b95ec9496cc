"""Transactional messages that arrive: each once, in order. [MQQB 3.1.5.8.6, 3.1.5.8.8]"""

from __future__ import annotations

import pytest

from openmsmq.api import messages as api
from openmsmq.manager.incoming.incoming_sequences import Flow
from openmsmq.model.identity import Guid, SequenceId
from openmsmq.storage import records
from openmsmq.storage.records import IncomingRecord
from openmsmq.wire.bodies.acknowledgments import OrderAck
from openmsmq.wire.headers.queue_names import DirectName, PrivateOnDestination
from openmsmq.wire.packets import UserMessage
from tests.transfer.letters import (
    SEQUENCE,
    acknowledgments,
    by_number,
    direct,
    headers_in,
    let_pass,
    letter,
    letters_in,
    order_acks,
)
from tests.transfer.network import BETA, PEER, ROUTING_PEER, START_S, Computer, Network, Peer

LEDGER = r"private$\ledger"
OTHER_LEDGER = r"private$\other_ledger"
TO_LEDGER = direct(BETA, LEDGER)
NEXT_SEQUENCE = SequenceId(SEQUENCE.ordinal + 1, SEQUENCE.timestamp)
OTHER = Guid(bytes([0xCD]) * 16)


@pytest.fixture
def beta(network: Network) -> Computer:
    beta = network.manager("BETA", BETA, peers=ROUTING_PEER)
    beta.create(LEDGER, transactional=True)
    beta.create(OTHER_LEDGER, transactional=True)
    return beta


@pytest.fixture
def peer(network: Network, beta: Computer) -> Peer:
    assert beta.address == BETA
    peer = network.peer()
    peer.open_session(BETA)
    return peer


def entry(peer: Peer, number: int, previous: int, sequence: SequenceId = SEQUENCE) -> UserMessage:
    """The message with a number, of which the one before it has another number."""
    body = b"%d" % number
    return letter(
        peer.identifier, 100 + number, TO_LEDGER, body, place=(sequence, number, previous)
    )


def sequences(computer: Computer) -> list[Flow]:
    stock = computer.manager._stock  # noqa: SLF001 - what is asked is inside
    return stock.sequences.statuses()


def stored_streams(computer: Computer) -> list[IncomingRecord]:
    start, stop = records.kind_range(b"I")
    return [
        records.decode_record(value, records.IncomingRecord)
        for _, value in computer.store.scan(start, stop, 100)
    ]


@pytest.mark.spec(
    "MQQB-3.1.1.6.2-04",
    "MQQB-3.1.1.6.2-07",
    "MQQB-3.1.5.8.6-01",
    "MQQB-3.1.5.8.6-04",
    "MQQB-3.1.5.8.6-09",
)
def test_the_sender_hears_half_a_second_later_how_far_its_sequence_has_come(
    beta: Computer, peer: Peer
) -> None:
    peer.write(entry(peer, 1, 0), entry(peer, 2, 1))
    assert order_acks(let_pass(peer, 499), peer.identifier) == []
    assert order_acks(let_pass(peer, 1), peer.identifier) == [OrderAck.up_to(SEQUENCE, 2)]
    assert order_acks(let_pass(peer, 5_000), peer.identifier) == [], "once is enough"
    assert beta.bodies(LEDGER) == [b"1", b"2"]


@pytest.mark.spec("MQQB-3.1.1.6.2-04")
def test_messages_that_keep_coming_put_the_acknowledgment_off_but_not_for_ever(
    network: Network, beta: Computer, peer: Peer
) -> None:
    assert beta.address == BETA
    found: list[tuple[int, int]] = []
    for number in range(1, 61):
        peer.write(entry(peer, number, number - 1))
        network.run(250)
        acks = order_acks(peer.take(), peer.identifier)
        found += [(network.now.ticks_ms, ack.number) for ack in acks]
    assert [moment_ms for moment_ms, _ in found] == [10_250]


@pytest.mark.spec("MQQB-3.1.1.3.1-05")
def test_how_many_were_dropped_is_known_after_a_restart(beta: Computer, peer: Peer) -> None:
    peer.write(entry(peer, 1, 0))
    assert [flow.sequence.rejected_count for flow in sequences(beta)] == [0]
    peer.write(entry(peer, 3, 2), entry(peer, 4, 3))
    peer.write(entry(peer, 4, 3))
    beta.crash()
    (found,) = beta.ok(api.PageIncomingSequences()).sequences
    assert (found.number, found.rejected_count) == (1, 3)
    peer.open_session(BETA)
    peer.write(entry(peer, 2, 1))
    beta.crash()
    (found,) = beta.ok(api.PageIncomingSequences()).sequences
    assert (found.number, found.rejected_count) == (2, 0)


def test_a_stranger_gets_no_record_for_messages_that_are_not_taken(
    beta: Computer, peer: Peer
) -> None:
    peer.write(entry(peer, 3, 2))
    assert [flow.sequence.rejected_count for flow in sequences(beta)] == [1]
    beta.crash()
    assert sequences(beta) == []
    assert beta.ok(api.PageIncomingSequences()).sequences == []


@pytest.mark.spec("MQQB-3.1.1.6.2-03", "MQQB-3.1.5.8.6-05", "MQQB-3.1.5.8.6-06")
def test_after_a_gap_nothing_is_taken_or_acknowledged_until_it_is_filled(
    beta: Computer, peer: Peer
) -> None:
    peer.write(entry(peer, 1, 0), entry(peer, 2, 1), entry(peer, 4, 3), entry(peer, 5, 4))
    assert beta.bodies(LEDGER) == [b"1", b"2"]
    assert [flow.sequence.rejected_count for flow in sequences(beta)] == [2]
    assert order_acks(let_pass(peer, 600), peer.identifier) == [OrderAck.up_to(SEQUENCE, 2)]
    assert peer.is_open
    peer.write(entry(peer, 3, 2), entry(peer, 4, 3), entry(peer, 5, 4))
    assert beta.bodies(LEDGER) == [b"1", b"2", b"3", b"4", b"5"]
    assert [flow.sequence.rejected_count for flow in sequences(beta)] == [0]
    assert order_acks(let_pass(peer, 600), peer.identifier) == [OrderAck.up_to(SEQUENCE, 5)]


def test_a_message_that_names_one_known_before_it_bridges_those_given_up(
    beta: Computer, peer: Peer
) -> None:
    peer.write(entry(peer, 1, 0), entry(peer, 4, 1))
    assert beta.bodies(LEDGER) == [b"1", b"4"]


def test_what_is_taken_already_is_acknowledged_again_and_dropped(
    beta: Computer, peer: Peer
) -> None:
    peer.write(entry(peer, 1, 0), entry(peer, 2, 1))
    let_pass(peer, 600)
    peer.write(entry(peer, 1, 0))
    packets = let_pass(peer, 600)
    assert order_acks(packets, peer.identifier) == [OrderAck.up_to(SEQUENCE, 2)]
    assert beta.bodies(LEDGER) == [b"1", b"2"]


def test_a_younger_sequence_replaces_an_older_one_from_its_first_message_on(
    beta: Computer, peer: Peer
) -> None:
    peer.write(entry(peer, 1, 0), entry(peer, 3, 2, NEXT_SEQUENCE))
    assert beta.bodies(LEDGER) == [b"1"]
    peer.write(entry(peer, 2, 0, NEXT_SEQUENCE), entry(peer, 3, 2, NEXT_SEQUENCE))
    assert beta.bodies(LEDGER) == [b"1", b"2", b"3"]
    peer.write(entry(peer, 2, 1))
    packets = let_pass(peer, 600)
    assert beta.bodies(LEDGER) == [b"1", b"2", b"3"]
    assert order_acks(packets, peer.identifier) == [OrderAck.up_to(NEXT_SEQUENCE, 3)]


def test_nothing_is_acknowledged_before_anything_was_taken(beta: Computer, peer: Peer) -> None:
    peer.write(entry(peer, 2, 1))
    packets = let_pass(peer, 2_000)
    assert order_acks(packets, peer.identifier) == []
    assert beta.bodies(LEDGER) == []


@pytest.mark.spec(
    "MQQB-3.1.5.8.8-14",
    "MQQB-3.1.5.8.8-15",
    "MQQB-3.1.5.8.8-16",
    "MQQB-3.1.5.8.8-17",
    "MQQB-3.1.5.8.8-20",
    "MQQB-3.1.5.8.8-22",
    "MQQB-3.1.5.8.8-23",
)
def test_a_sequence_is_noted_with_its_queue_its_place_and_its_time(
    network: Network, beta: Computer, peer: Peer
) -> None:
    assert sequences(beta) == []
    network.run(7_000)
    peer.write(entry(peer, 1, 0), entry(peer, 2, 1))
    (flow,) = sequences(beta)
    assert flow.source == peer.identifier
    assert "ledger" in flow.destination
    assert (flow.sequence.id, flow.sequence.number) == (SEQUENCE, 2)
    assert flow.sequence.last_access_time_s == START_S + 7
    assert flow.sequence.rejected_count == 0
    assert stored_streams(beta) == [
        IncomingRecord(
            int(SEQUENCE), 2, flow.destination, PEER, 0, START_S + 7, place="", seen_at=PEER
        )
    ]


def test_two_senders_and_two_queues_have_sequences_of_their_own(beta: Computer, peer: Peer) -> None:
    for source in (peer.identifier, OTHER):
        for queue in (LEDGER, OTHER_LEDGER):
            to = direct(BETA, queue)
            peer.write(letter(source, 1, to, b"first", place=(SEQUENCE, 1, 0)))
            peer.write(letter(source, 2, to, b"gap", place=(SEQUENCE, 3, 2)))
    assert beta.bodies(LEDGER) == [b"first"] * 2
    assert beta.bodies(OTHER_LEDGER) == [b"first"] * 2
    assert len(sequences(beta)) == 4


@pytest.mark.spec("MQQB-3.1.5.8.7-12", "MQQB-3.1.5.8.6-09")
def test_a_receiver_that_crashes_goes_on_where_its_disk_is(
    network: Network, beta: Computer, peer: Peer
) -> None:
    peer.write(entry(peer, 1, 0), entry(peer, 2, 1))
    beta.crash()
    peer.open_session(BETA)
    peer.write(entry(peer, 2, 1), entry(peer, 3, 2))
    network.run(600)
    assert beta.bodies(LEDGER) == [b"1", b"2", b"3"]
    assert order_acks(peer.take(), peer.identifier) == [OrderAck.up_to(SEQUENCE, 3)]


def test_the_place_goes_back_when_the_disk_refuses_a_message(
    network: Network, beta: Computer, peer: Peer
) -> None:
    peer.write(entry(peer, 1, 0))
    beta.fail_commits = 1
    peer.write(entry(peer, 2, 1))
    assert not peer.is_open
    network.run(10_000)
    peer.open_session(BETA)
    peer.write(entry(peer, 2, 1))
    assert beta.bodies(LEDGER) == [b"1", b"2"]


@pytest.mark.spec("MQQB-3.1.5.8.2-04", "MQQB-3.1.7.17-01", "MQQB-3.1.7.17-02", "MQQB-3.1.7.17-03")
def test_an_acknowledgment_goes_to_where_a_message_by_address_came_from(
    beta: Computer, peer: Peer
) -> None:
    assert beta.address == BETA
    peer.write(entry(peer, 1, 0))
    ((_, _, carrier),) = acknowledgments(let_pass(peer, 600), peer.identifier)
    assert carrier.user.destination == DirectName(rf"TCP:{PEER}\PRIVATE$\order_queue$")
    _assert_is_system_message(carrier, beta)


@pytest.mark.spec("MQQB-3.1.7.17-02", "MQQB-3.1.7.17-03")
def test_an_acknowledgment_of_a_message_by_number_goes_to_the_number_of_the_order_queue(
    beta: Computer, peer: Peer
) -> None:
    number, manager = by_number(beta, LEDGER)
    peer.write(letter(peer.identifier, 1, number, manager=manager, place=(SEQUENCE, 1, 0)))
    ((_, _, carrier),) = acknowledgments(let_pass(peer, 600), peer.identifier)
    assert carrier.user.destination == PrivateOnDestination(4)
    assert carrier.user.destination_manager == peer.identifier
    _assert_is_system_message(carrier, beta)


def _assert_is_system_message(carrier: UserMessage, sender: Computer) -> None:
    assert carrier.properties.label_text == "QM Ordering Ack"
    assert carrier.properties.message_class == 0x00FF
    assert carrier.properties.body_type == 0
    assert carrier.properties.acknowledge == 0
    assert carrier.base.priority == 0
    assert not carrier.base.traced
    assert carrier.user.source == sender.identifier
    assert carrier.user.message_number != 0
    assert carrier.user.admin_queue is None
    assert carrier.user.response_queue is None
    assert not carrier.user.journal_on_failure
    assert not carrier.user.journal_on_success
    assert carrier.security is None
    assert not carrier.user.recoverable, "it comes again with every resend (C-63)"


@pytest.mark.spec("MQQB-3.1.7.17-04")
def test_an_acknowledgment_that_has_no_way_is_dropped(beta: Computer, peer: Peer) -> None:
    number, manager = by_number(beta, LEDGER)
    peer.write(letter(OTHER, 1, number, manager=manager, place=(SEQUENCE, 1, 0)))
    packets = let_pass(peer, 2_000)
    assert letters_in(packets, peer.identifier) == []
    assert order_acks(packets, OTHER) == []
    assert beta.bodies(LEDGER) == [b"body"]


@pytest.mark.spec("MQQB-3.1.5.8-02", "MQQB-3.1.5.8.2-30", "MQQB-3.1.5.8.7-01")
def test_a_message_goes_through_all_steps(beta: Computer, peer: Peer) -> None:
    admin = direct(PEER, r"private$\admin")
    message = letter(
        peer.identifier,
        1,
        TO_LEDGER,
        place=(SEQUENCE, 1, 0),
        acknowledge=0x01,
        admin_queue=admin,
    )
    peer.write(message, message)
    packets = let_pass(peer, 1_000)
    assert beta.bodies(LEDGER) == [b"body"]
    assert order_acks(packets, peer.identifier) == [OrderAck.up_to(SEQUENCE, 1)]
    assert [ack.properties.message_class for ack in letters_in(packets, peer.identifier)] == [2]
    stored = [(header.stored_base, header.stored_bits) for header in headers_in(packets)]
    assert (1, 0b11) in stored
