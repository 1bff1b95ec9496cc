"""How transactional messages end, at their source and at their queue. [MQQB 3.1.5.7, 3.1.7.2.2]"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.model.message import MessageClass
from openmsmq.model.queue import AccessMode
from openmsmq.wire.bodies.acknowledgments import FinalAck
from openmsmq.wire.headers.establish import EstablishHeader
from openmsmq.wire.headers.queue_names import DirectName, PrivateOnDestination
from openmsmq.wire.packets import EstablishConnection, Packet, UserMessage
from tests.transfer.letters import (
    SEQUENCE,
    acknowledgments,
    by_number,
    direct,
    final_ack,
    final_acks,
    let_pass,
    letter,
    letters_in,
    order_ack,
    session_ack,
)
from tests.transfer.neighbour import ORDERS, Neighbour, packets_in
from tests.transfer.network import ALPHA, BETA, PEER, Computer, Network, Peer

LEDGER = r"private$\ledger"
TO_LEDGER = rf"DIRECT=TCP:{PEER}\{LEDGER}"
BOTH = {"journal_on_success": True, "journal_on_failure": True}


@pytest.fixture
def peer(network: Network) -> Peer:
    return network.peer()


def sent(computer: Computer, peer: Peer, body: bytes, **wishes: bool) -> UserMessage:
    """Send a message to the peer, which opens its session, and give it as it came."""
    computer.send(TO_LEDGER, body, transactional=True, **wishes)
    computer.network.run()
    peer.accept_session()
    (message,) = letters_in(peer.take(), peer.identifier)
    return message


# At the source.


@pytest.mark.spec("MQQB-3.1.5.7-02", "MQQB-3.1.5.7-03", "MQQB-3.1.5.7-04")
@pytest.mark.parametrize("ordered", [True, False], ids=["after its order ack", "without one"])
def test_a_message_that_was_received_goes_to_the_journal(
    alpha: Computer, peer: Peer, ordered: bool
) -> None:
    message = sent(alpha, peer, b"good", **BOTH)
    if ordered:
        peer.write(order_ack(message, alpha.identifier))
    peer.write(final_ack(message, alpha.identifier, MessageClass.ACK_RECEIVE))
    assert alpha.bodies("system$;journal") == [b"good"]
    assert alpha.bodies("system$;deadxact") == []
    (status,) = alpha.outgoing()
    assert (status.message_count, status.unread_count, status.unacknowledged_count) == (0, 0, 0)


@pytest.mark.spec("MQQB-3.1.5.7-05", "MQQB-3.1.5.7-06")
@pytest.mark.parametrize("ordered", [True, False], ids=["after its order ack", "without one"])
@pytest.mark.parametrize(
    "reason",
    [
        MessageClass.NACK_BAD_DESTINATION_QUEUE,
        MessageClass.NACK_NOT_TRANSACTIONAL_QUEUE,
        MessageClass.NACK_QUEUE_PURGED,
        MessageClass.NACK_RECEIVE_TIMEOUT,
    ],
)
def test_a_message_that_failed_goes_to_the_transactional_dead_letters(
    alpha: Computer, peer: Peer, ordered: bool, reason: MessageClass
) -> None:
    message = sent(alpha, peer, b"bad", **BOTH)
    if ordered:
        peer.write(order_ack(message, alpha.identifier))
    peer.write(final_ack(message, alpha.identifier, reason))
    assert alpha.bodies("system$;deadxact") == [b"bad"]
    assert alpha.classes("system$;deadxact") == [reason]
    assert alpha.bodies("system$;deadletter") == []
    assert alpha.bodies("system$;journal") == []
    (status,) = alpha.outgoing()
    assert (status.message_count, status.unread_count) == (0, 0)


@pytest.mark.parametrize(
    ("wishes", "reason"),
    [
        ({"journal_on_success": True}, MessageClass.NACK_QUEUE_PURGED),
        ({"journal_on_failure": True}, MessageClass.ACK_RECEIVE),
    ],
    ids=["failed", "received"],
)
def test_a_message_that_asked_for_the_other_end_leaves_nothing(
    alpha: Computer, peer: Peer, wishes: dict[str, bool], reason: MessageClass
) -> None:
    message = sent(alpha, peer, b"body", **wishes)
    peer.write(order_ack(message, alpha.identifier))
    peer.write(final_ack(message, alpha.identifier, reason))
    assert alpha.bodies("system$;journal") == []
    assert alpha.bodies("system$;deadxact") == []
    (status,) = alpha.outgoing()
    assert (status.message_count, status.unread_count) == (0, 0)


@pytest.mark.spec("MQQB-3.1.5.7-07")
def test_a_message_that_failed_goes_to_the_dead_letter_queue_it_names(
    network: Network, alpha: Computer, peer: Peer
) -> None:
    alpha.create(r"private$\mine", transactional=True)
    alpha.send(
        TO_LEDGER,
        b"bad",
        transactional=True,
        journal_on_failure=True,
        dead_letter_queue=r".\private$\mine",
    )
    network.run()
    peer.accept_session()
    (message,) = letters_in(peer.take(), peer.identifier)
    peer.write(order_ack(message, alpha.identifier))
    peer.write(final_ack(message, alpha.identifier, MessageClass.NACK_QUEUE_PURGED))
    assert alpha.bodies(r"private$\mine") == [b"bad"]
    assert alpha.bodies("system$;deadxact") == []


def test_a_second_final_acknowledgment_changes_nothing(alpha: Computer, peer: Peer) -> None:
    message = sent(alpha, peer, b"good", **BOTH)
    peer.write(final_ack(message, alpha.identifier, MessageClass.ACK_RECEIVE))
    peer.write(final_ack(message, alpha.identifier, MessageClass.NACK_QUEUE_PURGED))
    assert alpha.bodies("system$;journal") == [b"good"]
    assert alpha.bodies("system$;deadxact") == []
    assert peer.is_open


def test_the_end_of_a_message_of_somebody_else_is_not_the_end_of_ours(
    alpha: Computer, peer: Peer
) -> None:
    message = sent(alpha, peer, b"good", **BOTH)
    header = msgspec.structs.replace(message.user, source=peer.identifier)
    theirs = msgspec.structs.replace(message, user=header)
    peer.write(final_ack(theirs, alpha.identifier, MessageClass.ACK_RECEIVE))
    assert alpha.outgoing()[0].message_count == 1
    assert alpha.bodies("system$;journal") == []


def test_a_message_waits_for_its_end_through_a_crash(alpha: Computer, peer: Peer) -> None:
    message = sent(alpha, peer, b"good", **BOTH)
    peer.write(order_ack(message, alpha.identifier))
    alpha.crash()
    peer.open_session(ALPHA)
    assert alpha.outgoing()[0].unread_count == 1
    peer.write(final_ack(message, alpha.identifier, MessageClass.ACK_RECEIVE))
    assert alpha.bodies("system$;journal") == [b"good"]


@pytest.mark.spec("MQQB-3.1.5.6-01", "MQQB-3.1.5.7-01", "MQQB-3.1.5.8-01")
@pytest.mark.parametrize("kind", ["order ack", "final ack", "message"])
def test_messages_before_a_session_is_open_close_it(
    network: Network, alpha: Computer, peer: Peer, kind: str
) -> None:
    alpha.create(r"private$\orders")
    network.down.add(PEER)
    alpha.send(TO_LEDGER, b"body", transactional=True, **BOTH)
    peer.connect(ALPHA)
    peer.write(EstablishConnection(EstablishHeader(peer.identifier, alpha.identifier)))
    place = letter(alpha.identifier, 1, None, place=(SEQUENCE, 1, 0))
    packets: dict[str, Packet] = {
        "order ack": order_ack(place, alpha.identifier),
        "final ack": final_ack(place, alpha.identifier, MessageClass.ACK_RECEIVE),
        "message": letter(peer.identifier, 1, direct(ALPHA, r"private$\orders")),
    }
    assert peer.is_open
    peer.write(packets[kind])
    assert not peer.is_open
    assert alpha.bodies(r"private$\orders") == []
    assert alpha.outgoing(TO_LEDGER)[0].message_count == 1


# At the queue.


@pytest.fixture
def beta(network: Network) -> Computer:
    beta = network.manager("BETA", BETA)
    beta.create(LEDGER, transactional=True)
    return beta


def arrived(beta: Computer, peer: Peer, **wishes: Any) -> None:
    """Let a message of the peer arrive, and the acknowledgments of its arrival go."""
    peer.open_session(BETA)
    place = (SEQUENCE, 1, 0)
    peer.write(letter(peer.identifier, 41, direct(BETA, LEDGER), place=place, **wishes))
    assert final_acks(let_pass(peer, 600), peer.identifier) == []
    peer.write(session_ack(1, sent_count=1, recoverable_sent_count=1))
    assert beta.bodies(LEDGER) != []


@pytest.mark.spec(
    "MQQB-3.1.7.2-01", "MQQB-3.1.7.2.2-01", "MQDMPR-3.1.1.12-56", "MQDMPR-3.1.1.12-57"
)
@pytest.mark.parametrize("wish", ["journal_on_success", "journal_on_failure", "final_ack"])
def test_a_message_that_is_received_is_reported_to_its_source(
    beta: Computer, peer: Peer, wish: str
) -> None:
    arrived(beta, peer, **{wish: True})
    beta.bodies(LEDGER, take=True)
    assert final_acks(let_pass(peer, 100), peer.identifier) == [(MessageClass.ACK_RECEIVE, 41)]


@pytest.mark.spec("MQQB-3.1.7.2.2-01", "MQDMPR-3.1.1.12-58")
def test_a_message_that_did_not_ask_ends_in_silence(beta: Computer, peer: Peer) -> None:
    arrived(beta, peer)
    beta.bodies(LEDGER, take=True)
    assert final_acks(let_pass(peer, 1_000), peer.identifier) == []


@pytest.mark.spec("MQQB-3.1.7.2-01", "MQQB-3.1.7.2.2-01")
def test_a_message_that_nobody_received_in_time_is_reported(beta: Computer, peer: Peer) -> None:
    arrived(beta, peer, final_ack=True, time_to_be_received_s=60)
    assert final_acks(let_pass(peer, 55_000), peer.identifier) == []
    packets = let_pass(peer, 10_000)
    assert final_acks(packets, peer.identifier) == [(MessageClass.NACK_RECEIVE_TIMEOUT, 41)]


@pytest.mark.spec("MQQB-3.1.7.2.2-01")
@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("purge", MessageClass.NACK_QUEUE_PURGED),
        ("delete", MessageClass.NACK_QUEUE_DELETED),
    ],
)
def test_a_purge_and_a_deleted_queue_are_reported(
    beta: Computer, peer: Peer, action: str, reason: MessageClass
) -> None:
    arrived(beta, peer, final_ack=True)
    if action == "purge":
        opened = beta.ok(api.OpenQueue(LEDGER, AccessMode.RECEIVE))
        beta.ask(api.Purge(opened.handle))
    else:
        beta.ok(api.DeleteQueue(LEDGER))
    assert final_acks(let_pass(peer, 1_000), peer.identifier) == [(reason, 41)]


@pytest.mark.spec("MQQB-3.1.7.17-02", "MQQB-3.1.7.17-03")
@pytest.mark.parametrize("by_address", [True, False], ids=["by address", "by number"])
def test_a_final_acknowledgment_says_which_message_it_means(
    beta: Computer, peer: Peer, by_address: bool
) -> None:
    peer.open_session(BETA)
    number, manager = by_number(beta, LEDGER)
    message = (
        letter(
            peer.identifier,
            41,
            direct(BETA, LEDGER),
            place=(SEQUENCE, 1, 0),
            final_ack=True,
        )
        if by_address
        else letter(
            peer.identifier,
            41,
            number,
            manager=manager,
            place=(SEQUENCE, 1, 0),
            final_ack=True,
        )
    )
    peer.write(message)
    let_pass(peer, 600)
    beta.bodies(LEDGER, take=True)
    ((_, ack, carrier),) = acknowledgments(let_pass(peer, 100), peer.identifier)
    assert isinstance(ack, FinalAck)
    assert (ack.sequence, ack.number, ack.previous_number) == (SEQUENCE, 1, 0)
    assert (ack.message.source, ack.message.number) == (peer.identifier, 41)
    assert carrier.properties.label_text == "QM Ordering Ack"
    assert carrier.user.recoverable
    assert carrier.base.priority == 0
    assert carrier.user.source == beta.identifier
    assert not carrier.user.journal_on_failure
    assert not carrier.user.journal_on_success
    assert carrier.user.admin_queue is None
    expected = (
        DirectName(rf"TCP:{PEER}\PRIVATE$\order_queue$") if by_address else PrivateOnDestination(4)
    )
    assert carrier.user.destination == expected


def test_the_way_back_is_known_after_a_restart(
    network: Network, beta: Computer, peer: Peer
) -> None:
    arrived(beta, peer, final_ack=True)
    beta.crash()
    beta.bodies(LEDGER, take=True)
    network.run()
    peer.accept_session()
    assert final_acks(peer.take(), peer.identifier) == [(MessageClass.ACK_RECEIVE, 41)]


# Whom a flow has reached was forgotten: its disk was full, and then the power was lost.


def forgetful(network: Network, beta: Computer, *, arrives: bool) -> Computer:
    """A sender of one message that has forgotten whom it reached."""
    sender = network.manager("SENDER", ALPHA)
    sender.create(ORDERS)
    sender.send(rf"DIRECT=TCP:{BETA}\{LEDGER}", b"precious", transactional=True, **BOTH)
    sender.fail_commits = 1
    network.run(10_000 if arrives else 0)
    network.down = {ALPHA, BETA}
    sender.crash()
    assert beta.bodies(LEDGER, take=True) == [b"precious"]
    return sender


@pytest.mark.parametrize("arrives", [True, False], ids=["after its order ack", "without one"])
def test_a_final_acknowledgment_counts_though_it_was_forgotten_who_was_reached(
    network: Network, beta: Computer, arrives: bool
) -> None:
    """And nothing that the receiver sends itself waits behind it for ever."""
    sender = forgetful(network, beta, arrives=arrives)
    beta.send(rf"DIRECT=TCP:{ALPHA}\{ORDERS}", b"answer")
    # First only the receiver can connect.
    network.down = {BETA}
    network.run(60_000)
    network.down = set()
    network.run(60_000)
    assert sender.bodies("system$;journal") == [b"precious"]
    assert sender.bodies(ORDERS) == [b"answer"]
    assert [queue.message_count for queue in beta.outgoing()] == [0, 0]


def test_a_stranger_ends_nothing_while_it_is_forgotten_who_was_reached(
    network: Network, beta: Computer
) -> None:
    sender = forgetful(network, beta, arrives=False)
    (message,) = letters_in(packets_in(sender.sent), sender.identifier)
    network.down = {BETA}
    stranger = Neighbour(network, PEER)
    for source in (stranger.identifier, beta.identifier):
        stranger.open(ALPHA)
        forged = final_ack(message, sender.identifier, MessageClass.ACK_RECEIVE, source=source)
        stranger.say(forged)
    network.run(60_000)
    assert sender.bodies("system$;journal") == []
    assert sender.outgoing()[0].message_count == 1
    network.down = set()
    network.run(60_000)
    assert sender.bodies("system$;journal") == [b"precious"]
