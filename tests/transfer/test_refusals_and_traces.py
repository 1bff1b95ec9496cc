"""What refused messages cause, what is kept of sequences, and reports of traced messages."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.model.identity import Guid
from openmsmq.model.message import MessageClass
from openmsmq.wire.headers import base
from openmsmq.wire.headers.debug import DebugHeader
from openmsmq.wire.headers.queue_names import PrivateOnDestination
from openmsmq.wire.packets import UserMessage
from tests.transfer.letters import (
    SEQUENCE,
    direct,
    final_acks,
    let_pass,
    letter,
    letters_in,
    order_ack,
    session_ack,
)
from tests.transfer.network import ALPHA, BETA, PEER, Computer, Network, Peer

ORDERS = r"private$\orders"
LEDGER = r"private$\ledger"
TO_LEDGER = rf"DIRECT=TCP:{PEER}\{LEDGER}"


@pytest.fixture
def beta(network: Network) -> Computer:
    beta = network.manager("BETA", BETA)
    beta.create(ORDERS)
    beta.create(LEDGER, transactional=True, quota_kb=1)
    return beta


@pytest.fixture
def peer(network: Network) -> Peer:
    return network.peer()


# Final acknowledgments of refused messages.


@pytest.mark.spec("MQQB-3.1.5.8.2-15", "MQQB-3.1.5.8.2-19", "MQQB-3.1.5.8.8-09")
@pytest.mark.parametrize(
    ("queue", "body", "reason"),
    [
        (r"private$\missing", b"", MessageClass.NACK_BAD_DESTINATION_QUEUE),
        (ORDERS, b"", MessageClass.NACK_NOT_TRANSACTIONAL_QUEUE),
        (LEDGER, b"b" * 1_100, MessageClass.NACK_QUEUE_EXCEEDS_QUOTA),
    ],
)
@pytest.mark.parametrize(
    "config",
    [{"hosts": {"PEER": (PEER,)}}, {"permit_insecure_nacks": True}],
    ids=["a known peer", "permitted for all"],
)
def test_the_source_hears_of_every_transactional_message_that_is_refused(
    network: Network,
    peer: Peer,
    queue: str,
    body: bytes,
    reason: MessageClass,
    config: dict[str, Any],
) -> None:
    beta = network.manager("BETA", BETA, **config)
    beta.create(ORDERS)
    beta.create(LEDGER, transactional=True, quota_kb=1)
    peer.open_session(BETA)
    peer.write(letter(peer.identifier, 41, direct(BETA, queue), body, place=(SEQUENCE, 1, 0)))
    assert final_acks(let_pass(peer, 1_000), peer.identifier) == [(reason, 41)]


def test_a_stranger_does_not_hear_which_queues_there_are(beta: Computer, peer: Peer) -> None:
    beta.create(r"private$\closed", transactional=True, authentication_required=True)
    beta.create(r"private$\sealed", transactional=True, privacy=2)
    peer.open_session(BETA)
    answers = []
    for queue in (r"private$\missing", ORDERS, r"private$\closed", r"private$\sealed"):
        message = letter(
            peer.identifier, 41, direct(BETA, queue), place=(SEQUENCE, 1, 0), final_ack=True
        )
        peer.write(message)
        answers.append(final_acks(let_pass(peer, 1_000), peer.identifier))
    assert answers == [[(MessageClass.NACK_ACCESS_DENIED, 41)]] * 4


# Sequences.


@pytest.mark.spec("MQQB-3.1.5.8.8-18")
def test_an_incoming_sequence_is_shown_by_the_format_name_of_its_queue(
    beta: Computer, peer: Peer
) -> None:
    peer.open_session(BETA)
    peer.write(letter(peer.identifier, 41, direct(BETA, LEDGER), place=(SEQUENCE, 1, 0)))
    stock = beta.manager._stock  # noqa: SLF001 - what is asked is inside
    (flow,) = stock.sequences.statuses()
    assert flow.destination == rf"DIRECT=TCP:{BETA}\{LEDGER}"


def test_sequences_that_are_done_are_forgotten(
    network: Network, alpha: Computer, peer: Peer
) -> None:
    alpha.send(TO_LEDGER, b"body", transactional=True)
    network.run()
    peer.accept_session()
    for count in range(1, 51):
        (message,) = letters_in(peer.take(), peer.identifier)
        peer.write(session_ack(count, count, 1, sent_count=count - 1))
        peer.write(order_ack(message, alpha.identifier))
        assert alpha.outgoing()[0].message_count == 0
        alpha.send(TO_LEDGER, b"body", transactional=True)
        network.run()
    outgoing = alpha.manager._stock.outgoing  # noqa: SLF001 - memory is what is tested
    assert len(outgoing._by_sequence) < 10  # noqa: SLF001 - as above


# Reports about traced messages.

TRACES = r"private$\traces"


def traced(message: UserMessage, queue: Guid) -> UserMessage:
    flags = msgspec.structs.replace(message.base, flags=message.base.flags | base.TRACE)
    return msgspec.structs.replace(message, base=flags, debug=DebugHeader(queue))


def trace_queue(computer: Computer) -> Guid:
    """Create the queue for reports; they know it by its identifier."""
    computer.create(TRACES)
    return Guid(computer.ok(api.GetQueue(TRACES)).queues[0].identifier)


@pytest.mark.spec("MQQB-3.1.5.8.9-01", "MQQB-3.1.5.8.9-08")
@pytest.mark.parametrize("recoverable", [True, False], ids=["recoverable", "express"])
def test_a_traced_message_that_arrives_is_reported(
    network: Network, peer: Peer, recoverable: bool
) -> None:
    beta = network.manager("BETA", BETA, trace_reports=True)
    beta.create(ORDERS)
    queue = trace_queue(beta)
    peer.open_session(BETA)
    plain = letter(peer.identifier, 41, direct(BETA, ORDERS), recoverable=recoverable)
    peer.write(traced(plain, queue), letter(peer.identifier, 42, direct(BETA, ORDERS)))
    (report,) = beta.messages(TRACES)
    assert report.properties.message_class == MessageClass.REPORT
    assert ":00000029:00 received by " in report.properties.label_text
    assert len(beta.bodies(ORDERS)) == 2


@pytest.mark.spec("MQQB-3.1.5.8.9-09")
def test_a_report_without_a_queue_is_dropped(network: Network, peer: Peer) -> None:
    beta = network.manager("BETA", BETA, trace_reports=True)
    beta.create(ORDERS)
    peer.open_session(BETA)
    message = letter(peer.identifier, 41, direct(BETA, ORDERS))
    peer.write(traced(message, Guid(bytes([0xEE]) * 16)))
    assert beta.bodies(ORDERS) == [b"body"]
    assert letters_in(let_pass(peer, 1_000), peer.identifier) == []
    assert peer.is_open


def test_nothing_is_reported_unless_that_is_switched_on(network: Network, peer: Peer) -> None:
    beta = network.manager("BETA", BETA)
    beta.create(ORDERS)
    queue = trace_queue(beta)
    peer.open_session(BETA)
    peer.write(traced(letter(peer.identifier, 41, direct(BETA, ORDERS)), queue))
    assert beta.messages(TRACES) == []


@pytest.mark.spec("MQQB-3.1.7.1.7-01", "MQQB-3.1.7.1.7-02")
def test_a_traced_message_that_leaves_is_reported(network: Network, peer: Peer) -> None:
    hops = {str(peer.identifier): (PEER,)}
    beta = network.manager("BETA", BETA, trace_reports=True, next_hops=hops)
    queue = trace_queue(beta)
    source = network.peer(ALPHA)
    source.identifier = Guid(bytes([0xCD]) * 16)
    source.open_session(BETA)
    message = letter(
        source.identifier, 41, PrivateOnDestination(0x1F), manager=peer.identifier, hops=3
    )
    source.write(traced(message, queue))
    peer.accept_session()
    labels = [report.properties.label_text for report in beta.messages(TRACES)]
    assert [label.split(" ")[1] for label in labels] == ["received", "sent"]
    assert ":00000029:04 sent by " in labels[1]
    body = beta.messages(TRACES)[1].properties.body.decode("utf-16-le")
    assert f"<NEXT HOP>{PEER}</NEXT HOP>" in body
