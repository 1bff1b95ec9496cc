"""Messages from end to end: what a computer between may touch, what faults may not break."""

from __future__ import annotations

import msgspec
import pytest

from openmsmq.manager.config import ManagerConfig
from openmsmq.model.identity import Guid
from openmsmq.model.message import MessageClass
from openmsmq.model.queue import OutgoingSequenceStatus
from openmsmq.wire.bodies.acknowledgments import OrderAck
from openmsmq.wire.headers.queue_names import PrivateOnDestination
from openmsmq.wire.packets import UserMessage, decode, encode
from tests.transfer.letters import (
    SEQUENCE,
    by_number,
    direct,
    final_acks,
    headers_in,
    let_pass,
    letter,
    letters_in,
    order_ack,
    order_acks,
    session_ack,
)
from tests.transfer.network import ALPHA, BETA, GAMMA, PEER, START_S, Computer, Network, Peer

ORDERS = r"private$\orders"
LEDGER = r"private$\ledger"
SOURCE = Guid(bytes([0xCD]) * 16)


def far_queue(peer: Peer) -> tuple[PrivateOnDestination, str]:
    """A queue of the peer, for which messages pass through BETA."""
    return PrivateOnDestination(0x1F), rf"PRIVATE={peer.identifier}\1f"


def router_to(network: Network, peer: Peer) -> Computer:
    return network.manager("BETA", BETA, next_hops={str(peer.identifier): (PEER,)})


@pytest.fixture
def peer(network: Network) -> Peer:
    return network.peer()


@pytest.fixture
def router(network: Network, peer: Peer) -> Computer:
    return router_to(network, peer)


def forwarded(peer: Peer, *messages: UserMessage) -> list[UserMessage]:
    """Let another computer send messages through the router, and give what comes out."""
    network = peer.network
    source = network.peer(GAMMA)
    source.identifier = messages[0].user.source
    source.open_session(BETA)
    source.write(*messages)
    peer.accept_session()
    assert order_acks(let_pass(source, 1_000), source.identifier) == []
    return letters_in(peer.take(), peer.identifier)


@pytest.mark.usefixtures("router")
@pytest.mark.spec("MQQB-3.1.1.6.2-01", "MQQB-3.1.1.6.2-02")
def test_a_computer_between_changes_nothing_but_the_hop_count(peer: Peer) -> None:
    number, _ = far_queue(peer)
    messages = [
        letter(
            SOURCE,
            n,
            number,
            manager=peer.identifier,
            place=(SEQUENCE, n, n - 1),
            final_ack=True,
            label="label",
        )
        for n in (5, 6, 8)
    ]
    found = forwarded(peer, *messages)
    assert [message.transaction for message in found] == [m.transaction for m in messages]
    for before, after in zip(messages, found, strict=True):
        changed = bytearray(encode(before))
        changed[60] += 1
        assert encode(after) == bytes(changed)


@pytest.mark.spec("MQQB-3.1.1.6.2-01", "MQQB-3.1.1.6.2-02")
def test_a_computer_between_is_done_when_the_next_one_has_a_message(
    network: Network, router: Computer, peer: Peer
) -> None:
    number, name = far_queue(peer)
    forwarded(peer, letter(SOURCE, 1, number, manager=peer.identifier, place=(SEQUENCE, 1, 0)))
    assert router.outgoing(name)[0].message_count == 1
    peer.write(session_ack(1, 1, 1))
    assert router.outgoing(name)[0].message_count == 0
    network.run(100_000)
    assert letters_in(peer.take(), peer.identifier) == [], "only the source sends again"


def shown_before_and_after(
    network: Network, router: Computer, peer: Peer
) -> tuple[OutgoingSequenceStatus, OutgoingSequenceStatus]:
    """How far our own messages to a queue have come, before and after one passes through to it."""
    number, name = far_queue(peer)
    router.send(name, b"1", b"2", transactional=True, journal_on_success=True)
    network.run()
    peer.accept_session()
    own = letters_in(peer.take(), peer.identifier)
    peer.write(session_ack(2, 1, 0b11), order_ack(own[0], router.identifier))
    network.run(5_000)
    before = sequence_status(router, name)
    (shown,) = router.outgoing(name)
    source = network.peer(GAMMA)
    source.open_session(BETA)
    source.write(
        letter(source.identifier, 1, number, manager=peer.identifier, place=(SEQUENCE, 1, 0))
    )
    (status,) = router.outgoing(name)
    assert status.message_count == shown.message_count + 1
    return before, sequence_status(router, name)


@pytest.mark.spec("MQQB-3.1.5.8.8-24")
def test_an_outgoing_queue_shows_its_own_sequence_whatever_passes_through_it(
    network: Network, router: Computer, peer: Peer
) -> None:
    before, after = shown_before_and_after(network, router, peer)
    assert after == before


@pytest.mark.parametrize(
    ("part", "value"),
    [
        pytest.param(part, value, id=part, marks=pytest.mark.spec(f"MQQB-3.1.5.8.8-{number}"))
        for number, part, value in (
            (25, "last_ack_time_s", START_S),
            (26, "last_ack_count", 1),
            (27, "unacknowledged_count", 1),
            (28, "resend_interval_s", 30),
            (29, "first_unacknowledged", (2, 0)),
            (30, "last_unacknowledged", (2, 0)),
            (31, "last_acknowledged", (1, 0)),
            (32, "next", (3, 2)),
            (33, "unread_count", 1),
            (34, "resend_count", 0),
            (35, "resend_time_s", START_S + 30),
        )
    ],
)
def test_what_passes_through_changes_no_part_of_what_is_shown(
    network: Network, router: Computer, peer: Peer, part: str, value: int | tuple[int, int]
) -> None:
    _, after = shown_before_and_after(network, router, peer)
    found = getattr(after, part)
    if isinstance(value, tuple):
        assert (found.number, found.previous) == value
    else:
        assert found == value


def sequence_status(computer: Computer, name: str) -> OutgoingSequenceStatus:
    operators = computer.manager._desk.operators  # noqa: SLF001 - more is known than is shown
    outgoing = operators._find(name)  # noqa: SLF001 - as above
    awaiting = outgoing.awaiting
    return outgoing.sequence.status(0 if awaiting is None else awaiting.count)


@pytest.mark.spec("MQQB-3.1.1.6.2-01", "MQMQ-2.2.18.1.6-01")
def test_acknowledgments_of_a_routed_message_go_to_its_source(network: Network) -> None:
    gamma = network.manager("GAMMA", GAMMA)
    gamma.create(LEDGER, transactional=True)
    alpha = network.peer(ALPHA)
    there, here = str(gamma.identifier), str(alpha.identifier)
    gamma.config = with_hops(gamma, {here: (BETA,)})
    gamma.crash()
    beta = network.manager("BETA", BETA, next_hops={there: (GAMMA,), here: (ALPHA,)})
    number, manager = by_number(gamma, LEDGER)
    alpha.open_session(BETA)
    alpha.write(
        letter(
            alpha.identifier,
            41,
            number,
            manager=manager,
            place=(SEQUENCE, 1, 0),
            final_ack=True,
        )
    )
    packets = let_pass(alpha, 1_000)
    gamma.bodies(LEDGER, take=True)
    packets += let_pass(alpha, 1_000)
    assert order_acks(packets, alpha.identifier) == [OrderAck.up_to(SEQUENCE, 1)]
    assert final_acks(packets, alpha.identifier) == [(MessageClass.ACK_RECEIVE, 41)]
    found = [packet for packet in packets if isinstance(packet, UserMessage)]
    assert {packet.user.source for packet in found} == {gamma.identifier}
    assert {packet.user.destination for packet in found} == {PrivateOnDestination(4)}
    assert {packet.user.hop_count for packet in found} == {1}
    assert beta.address == BETA


def with_hops(computer: Computer, hops: dict[str, tuple[str, ...]]) -> ManagerConfig:
    transfer = msgspec.structs.replace(computer.config.transfer, next_hops=hops)
    return msgspec.structs.replace(computer.config, transfer=transfer)


# From end to end.


@pytest.mark.spec(
    "MQQB-3.1.5.8.8-01",
    "MQQB-3.1.5.8.8-02",
    "MQQB-3.1.5.8.8-03",
    "MQQB-3.1.5.8.8-04",
    "MQQB-3.1.5.8.8-05",
)
def test_a_message_is_in_its_queue_as_it_came(network: Network, peer: Peer) -> None:
    beta = network.manager("BETA", BETA)
    beta.create(ORDERS)
    beta.create(LEDGER)
    peer.open_session(BETA)
    message = letter(
        peer.identifier,
        41,
        direct(BETA, ORDERS),
        b"the body",
        label="the label",
        body_type=8,
        application_tag=99,
        correlation_id=bytes(range(20)),
        extension=b"more",
    )
    peer.write(message)
    assert beta.messages(ORDERS) == [decode(encode(message))]
    assert beta.messages(LEDGER) == []


@pytest.mark.parametrize("victim", ["sender", "receiver", "both"])
def test_a_crash_at_any_moment_neither_loses_nor_repeats(network: Network, victim: str) -> None:
    alpha = network.manager("ALPHA", ALPHA)
    beta = network.manager("BETA", BETA)
    beta.create(ORDERS)
    beta.create(LEDGER, transactional=True)
    bodies = [b"%d" % number for number in range(40)]
    for start in range(0, 40, 4):
        alpha.send(rf"DIRECT=TCP:{BETA}\{LEDGER}", *bodies[start : start + 4], transactional=True)
        alpha.send(rf"DIRECT=TCP:{BETA}\{ORDERS}", *bodies[start : start + 4])
        network.run(start * 37 % 700)
        if victim in ("receiver", "both"):
            beta.crash()
        if victim in ("sender", "both"):
            alpha.crash()
    network.run(120_000)
    assert beta.bodies(LEDGER) == bodies
    assert sorted(beta.bodies(ORDERS)) == sorted(bodies)
    assert sum(queue.message_count for queue in alpha.outgoing()) == 0


@pytest.mark.parametrize("queue", [r"private$\missing", ORDERS], ids=["missing", "not for it"])
def test_after_a_message_that_failed_for_good_the_next_ones_arrive(
    network: Network, queue: str
) -> None:
    alpha = network.manager("ALPHA", ALPHA)
    beta = network.manager("BETA", BETA)
    beta.create(ORDERS)
    beta.create(LEDGER, transactional=True)
    wishes = {"transactional": True, "journal_on_failure": True}
    alpha.send(rf"DIRECT=TCP:{BETA}\{queue}", b"1", b"2", **wishes)
    network.run(2_000)
    assert alpha.bodies("system$;deadxact") == [b"1", b"2"]
    assert [status.message_count for status in alpha.outgoing()] == [0]
    beta.create(r"private$\later", transactional=True)
    alpha.send(rf"DIRECT=TCP:{BETA}\{LEDGER}", b"3", **wishes)
    network.run(2_000)
    assert beta.bodies(LEDGER) == [b"3"]


def test_a_full_disk_closes_the_session_and_the_messages_come_when_there_is_room(
    network: Network,
) -> None:
    alpha = network.manager("ALPHA", ALPHA)
    beta = network.manager("BETA", BETA)
    beta.create(ORDERS)
    beta.create(LEDGER, transactional=True)
    beta.fail_commits = 3
    alpha.send(rf"DIRECT=TCP:{BETA}\{LEDGER}", b"1", b"2", transactional=True)
    alpha.send(rf"DIRECT=TCP:{BETA}\{ORDERS}", b"3", b"4")
    network.run(1_000)
    assert beta.bodies(LEDGER) + beta.bodies(ORDERS) == []
    assert {queue.state for queue in alpha.outgoing()} != {"CONNECTED"}
    network.run(60_000)
    assert beta.bodies(LEDGER) == [b"1", b"2"]
    assert beta.bodies(ORDERS) == [b"3", b"4"]


def test_the_counters_of_a_conversation_with_copies_are_those_of_the_figure(
    network: Network, peer: Peer
) -> None:
    beta = network.manager("BETA", BETA)
    beta.create(LEDGER, transactional=True)
    peer.open_session(BETA)
    for number in (1, 2):
        peer.write(
            letter(
                peer.identifier,
                number,
                direct(BETA, LEDGER),
                place=(SEQUENCE, number, number - 1),
                final_ack=True,
                journal_on_success=True,
            )
        )
    packets = let_pass(peer, 5_000)
    (header,) = headers_in(packets)
    assert (header.received_count, header.stored_base, header.stored_bits) == (2, 1, 0b11)
    assert header.recoverable_sent_count == 0
    beta.bodies(LEDGER, take=True)
    assert len(final_acks(let_pass(peer, 100), peer.identifier)) == 2
    peer.write(session_ack(3, 1, 0b11, sent_count=2, recoverable_sent_count=2))
    assert peer.is_open
    assert [queue.message_count for queue in beta.outgoing()] == [0]
