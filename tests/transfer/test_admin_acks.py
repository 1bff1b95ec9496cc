"""Administration acknowledgments between queue managers. [MQQB 3.1.7.15, 3.1.7.2.1, 3.1.5.8.10]"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.manager.config import ManagerConfig
from openmsmq.model.identity import Guid, MessageId
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import MessageClass
from openmsmq.model.queue import AccessMode
from openmsmq.wire.headers.queue_names import (
    DirectName,
    PrivateName,
    PrivateOnDestination,
    PrivateOnSource,
    PublicName,
    QueueName,
)
from openmsmq.wire.packets import UserMessage
from tests.transfer.letters import (
    ARRIVAL_ACK,
    ARRIVAL_NACK,
    RECEIVE_ACK,
    RECEIVE_NACK,
    SEQUENCE,
    by_number,
    direct,
    headers_in,
    let_pass,
    letter,
    letters_in,
)
from tests.transfer.network import ALPHA, BETA, GAMMA, PEER, Computer, Network, Peer

ORDERS = r"private$\orders"
LEDGER = r"private$\ledger"
ADMIN = r"private$\admin"
TO_ADMIN = direct(PEER, r"PRIVATE$\admin")


@pytest.fixture
def peer(network: Network, beta: Computer) -> Peer:
    assert beta.address == BETA
    peer = network.peer()
    peer.open_session(BETA)
    return peer


def write(peer: Peer, acknowledge: int, admin: QueueName = TO_ADMIN, **wishes: Any) -> None:
    to = wishes.pop("to", direct(BETA, ORDERS))
    wishes.setdefault("body", b"body")
    peer.write(
        letter(peer.identifier, 41, to, acknowledge=acknowledge, admin_queue=admin, **wishes)
    )


def reports(peer: Peer) -> list[UserMessage]:
    return letters_in(let_pass(peer, 100), peer.identifier)


def classes(peer: Peer) -> list[int]:
    return [report.properties.message_class for report in reports(peer)]


@pytest.mark.spec("MQQB-3.1.5.8.10-01", "MQQB-3.1.5.8.10-02", "MQMQ-2.2.19.3-01")
@pytest.mark.parametrize("by_address", [True, False], ids=["by address", "by number"])
def test_a_message_that_reached_its_queue_is_reported_if_that_was_asked_for(
    beta: Computer, peer: Peer, by_address: bool
) -> None:
    number, manager = by_number(beta, ORDERS)
    way: dict[str, Any] = {} if by_address else {"to": number, "manager": manager}
    write(peer, ARRIVAL_ACK, **way)
    assert classes(peer) == [MessageClass.ACK_REACH_QUEUE]
    assert beta.bodies(ORDERS) == [b"body"]


def test_a_message_that_asked_for_other_reports_gets_none_when_it_arrives(
    beta: Computer, peer: Peer
) -> None:
    write(peer, RECEIVE_ACK | ARRIVAL_NACK | RECEIVE_NACK)
    assert classes(peer) == []
    assert beta.bodies(ORDERS) == [b"body"]


@pytest.mark.spec("MQQB-3.1.7.2-01", "MQQB-3.1.7.2.1-03", "MQMQ-2.2.19.3-02")
def test_a_message_that_is_received_is_reported_if_that_was_asked_for(
    beta: Computer, peer: Peer
) -> None:
    write(peer, RECEIVE_ACK)
    assert classes(peer) == []
    beta.bodies(ORDERS, take=True)
    assert classes(peer) == [MessageClass.ACK_RECEIVE]


@pytest.mark.spec("MQQB-3.1.7.2-01", "MQQB-3.1.7.2.1-03", "MQMQ-2.2.19.3-04")
@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("purge", MessageClass.NACK_QUEUE_PURGED),
        ("delete", MessageClass.NACK_QUEUE_DELETED),
        ("time", MessageClass.NACK_RECEIVE_TIMEOUT),
    ],
)
@pytest.mark.parametrize("asked", [RECEIVE_NACK, RECEIVE_ACK], ids=["asked", "not asked"])
def test_every_other_end_is_reported_if_that_was_asked_for(
    network: Network, beta: Computer, peer: Peer, end: str, reason: MessageClass, asked: int
) -> None:
    write(peer, asked, time_to_be_received_s=10)
    if end == "purge":
        opened = beta.ok(api.OpenQueue(ORDERS, AccessMode.RECEIVE))
        beta.ask(api.Purge(opened.handle))
    elif end == "delete":
        beta.ok(api.DeleteQueue(ORDERS))
    else:
        network.run(12_000)
    assert classes(peer) == ([reason] if asked == RECEIVE_NACK else [])


@pytest.mark.spec("MQQB-3.1.7.2.1-01", "MQQB-3.1.7.2.1-02")
@pytest.mark.parametrize("recoverable", [True, False], ids=["recoverable", "express"])
def test_a_report_is_delivered_as_the_message_was(
    beta: Computer, peer: Peer, recoverable: bool
) -> None:
    write(peer, ARRIVAL_ACK | RECEIVE_ACK, recoverable=recoverable)
    beta.bodies(ORDERS, take=True)
    found = reports(peer)
    assert [report.user.recoverable for report in found] == [recoverable] * 2


@pytest.mark.spec("MQQB-3.1.7.15-01", "MQQB-3.1.7.15-02", "MQQB-3.1.7.15-03", "MQMQ-2.2.19.3-14")
def test_a_report_says_of_which_message_it_is_and_asks_for_nothing(
    beta: Computer, peer: Peer
) -> None:
    write(peer, ARRIVAL_ACK, journal_on_failure=True, journal_on_success=True, label="mine")
    (report,) = reports(peer)
    identifier = MessageId(peer.identifier, 41).to_bytes()
    assert report.properties.correlation_id == identifier
    assert report.properties.body == b"", "who knows the message knows its body"
    assert report.properties.acknowledge == 0
    assert report.user.source == beta.identifier
    assert report.user.destination == TO_ADMIN
    assert report.user.response_queue == direct(BETA, ORDERS)
    assert report.user.admin_queue is None
    assert report.user.time_to_be_received_s == INFINITE_S
    assert report.base.time_to_reach_queue_s == INFINITE_S
    assert not report.user.journal_on_failure
    assert not report.user.journal_on_success
    assert report.properties.privacy_level == 0
    assert report.security is None


@pytest.mark.spec("MQQB-3.1.7.15-02")
def test_a_report_of_a_failure_has_the_body(peer: Peer) -> None:
    write(peer, ARRIVAL_NACK, to=direct(BETA, LEDGER), body=b"what failed")
    (report,) = reports(peer)
    assert report.properties.message_class == MessageClass.NACK_NOT_TRANSACTIONAL_MESSAGE
    assert report.properties.body == b"what failed"


@pytest.mark.spec("MQQB-3.1.7.15-02")
def test_strangers_do_not_hear_that_a_queue_is_missing(beta: Computer, peer: Peer) -> None:
    assert not beta.config.transfer.permit_insecure_nacks
    write(peer, ARRIVAL_NACK, to=direct(BETA, r"private$\missing"))
    assert classes(peer) == []


@pytest.mark.spec("MQQB-3.1.7.15-02")
@pytest.mark.parametrize(
    ("admin", "expected"),
    [
        (PrivateOnSource(0x1F), PrivateOnDestination(0x1F)),
        (PrivateName(Guid(bytes([0xAB]) * 16), 0x1F), PrivateOnDestination(0x1F)),
        (TO_ADMIN, TO_ADMIN),
    ],
    ids=["on the source", "private", "direct"],
)
def test_the_administration_queue_is_found_in_every_form(
    beta: Computer, peer: Peer, admin: QueueName, expected: QueueName
) -> None:
    assert beta.address == BETA
    write(peer, ARRIVAL_ACK, admin)
    (report,) = reports(peer)
    assert report.user.destination == expected
    if not isinstance(expected, DirectName):
        assert report.user.destination_manager == peer.identifier


@pytest.mark.spec("MQQB-3.1.7.15-02")
def test_an_administration_queue_may_be_here(beta: Computer, peer: Peer) -> None:
    beta.create(ADMIN)
    number, _ = by_number(beta, ADMIN)
    write(peer, ARRIVAL_ACK, number)
    assert beta.classes(ADMIN) == [MessageClass.ACK_REACH_QUEUE]
    assert classes(peer) == []


@pytest.mark.spec("MQQB-3.1.7.15-02", "MQQB-3.1.7.15-04")
@pytest.mark.parametrize(
    "admin",
    [None, PublicName(Guid(bytes([0xEE]) * 16)), DirectName(rf"TCP:{BETA}\private$\missing")],
    ids=["none", "unknown", "missing"],
)
def test_a_report_that_has_no_queue_is_dropped(
    beta: Computer, peer: Peer, admin: QueueName
) -> None:
    write(peer, ARRIVAL_ACK, admin)
    assert classes(peer) == []
    assert beta.bodies(ORDERS) == [b"body"]
    assert peer.is_open


@pytest.mark.spec("MQQB-3.1.7.1-02")
def test_what_a_queue_manager_writes_itself_is_sent_as_every_message(
    beta: Computer, peer: Peer
) -> None:
    write(peer, ARRIVAL_ACK, to=direct(BETA, LEDGER), place=(SEQUENCE, 1, 0), final_ack=True)
    first = let_pass(peer, 600)
    beta.bodies(LEDGER, take=True)
    packets = first + let_pass(peer, 15_000)
    own = [packet for packet in packets if isinstance(packet, UserMessage)]
    assert [message.properties.message_class for message in own] == [0x0002, 0x00FF, 0x4000]
    numbers = [message.user.message_number for message in own]
    assert numbers == sorted(set(numbers))
    assert [message.user.recoverable for message in own] == [True, False, True]
    again = letter(peer.identifier, 42, direct(BETA, ORDERS))
    peer.write(again)
    last = headers_in(let_pass(peer, 15_000))[-1]
    assert (last.sent_count, last.recoverable_sent_count) == (3, 2)


def test_a_report_finds_its_way_through_a_computer_between(network: Network) -> None:
    gamma = network.manager("GAMMA", GAMMA)
    gamma.create(ORDERS)
    alpha = network.manager("ALPHA", ALPHA)
    alpha.create(ADMIN)
    there, here = str(gamma.identifier), str(alpha.identifier)
    for computer, other in ((alpha, there), (gamma, here)):
        computer.config = _with_hops(computer, {other: (BETA,)})
        computer.crash()
    network.manager("BETA", BETA, next_hops={there: (GAMMA,), here: (ALPHA,)})
    name = gamma.ok(api.GetNames(ORDERS)).private_name
    alpha.send(name, b"body", acknowledge=ARRIVAL_ACK, admin_queue=rf"TCP:{ALPHA}\{ADMIN}")
    network.run(1_000)
    assert gamma.bodies(ORDERS) == [b"body"]
    assert alpha.classes(ADMIN) == [MessageClass.ACK_REACH_QUEUE]


def _with_hops(computer: Computer, hops: dict[str, tuple[str, ...]]) -> ManagerConfig:
    transfer = msgspec.structs.replace(computer.config.transfer, next_hops=hops)
    return msgspec.structs.replace(computer.config, transfer=transfer)
