"""Transactional messages that leave: numbered once, kept until acknowledged. [MQQB 3.1.5.6]"""

from __future__ import annotations

from typing import Any

import pytest

from openmsmq.model.identity import SequenceId
from openmsmq.model.message import MessageClass
from openmsmq.wire.packets import Packet, UserMessage
from tests.transfer.letters import letters_in, order_ack, session_ack
from tests.transfer.network import ALPHA, PEER, START_S, Computer, Network, Peer

LEDGER = r"private$\ledger"
TO_LEDGER = rf"DIRECT=TCP:{PEER}\{LEDGER}"
TO_OTHER = rf"DIRECT=TCP:{PEER}\private$\other"


@pytest.fixture
def peer(network: Network) -> Peer:
    return network.peer()


def send(computer: Computer, *bodies: bytes, to: str = TO_LEDGER, **wishes: Any) -> None:
    computer.send(to, *bodies, transactional=True, **wishes)
    computer.network.run()


def opened(computer: Computer, peer: Peer, *bodies: bytes, **wishes: Any) -> list[UserMessage]:
    """Send messages, let the peer open its session, and give what came to it."""
    send(computer, *bodies, **wishes)
    peer.accept_session()
    return messages(peer.take(), peer)


def messages(packets: list[Packet], peer: Peer) -> list[UserMessage]:
    return letters_in(packets, peer.identifier)


def places(found: list[UserMessage]) -> list[tuple[bytes, int, int]]:
    return [
        (message.properties.body, message.transaction.number, message.transaction.previous_number)
        for message in found
        if message.transaction is not None
    ]


def sequence_of(message: UserMessage) -> SequenceId:
    assert message.transaction is not None
    return message.transaction.sequence


@pytest.mark.spec(
    "MQQB-3.1.7.1.3-01",
    "MQQB-3.1.7.1.3-02",
    "MQQB-3.1.7.1.3-03",
    "MQQB-3.1.7.1.3-04",
    "MQQB-3.1.7.1.3-07",
    "MQMQ-2.2.20.5-17",
    "MQMQ-2.2.20.5-18",
    "MQMQ-2.2.20.5-19",
)
def test_messages_are_numbered_from_one_each_naming_the_one_before(
    alpha: Computer, peer: Peer
) -> None:
    first = opened(alpha, peer, b"a", b"b")
    send(alpha, b"c")
    found = first + messages(peer.take(), peer)
    assert places(found) == [(b"a", 1, 0), (b"b", 2, 1), (b"c", 3, 2)]
    assert len({sequence_of(message) for message in found}) == 1
    (status,) = alpha.outgoing()
    assert status.sequence == int(sequence_of(found[0]))
    assert (status.unacknowledged_count, status.next_number) == (3, 4)


@pytest.mark.spec("MQQB-3.1.1.6.2-09", "MQQB-3.1.1.6.2-10", "MQQB-3.1.7.1.3-05")
def test_a_session_acknowledgment_is_not_enough(
    network: Network, alpha: Computer, peer: Peer
) -> None:
    found = opened(alpha, peer, b"a", b"b")
    peer.write(session_ack(2, 1, 0b11))
    network.run(5_000)
    assert alpha.outgoing()[0].message_count == 2
    assert alpha.outgoing()[0].in_flight_count == 0
    peer.write(order_ack(found[0], alpha.identifier))
    assert alpha.outgoing()[0].message_count == 1
    peer.write(order_ack(found[1], alpha.identifier))
    assert alpha.outgoing()[0].message_count == 0


@pytest.mark.spec(
    "MQQB-3.1.5.6-02",
    "MQQB-3.1.5.6-12",
    "MQQB-3.1.5.6-15",
    "MQQB-3.1.5.6-24",
    "MQQB-3.1.7.1.3-05",
)
def test_an_order_acknowledgment_releases_all_up_to_its_number(
    network: Network, alpha: Computer, peer: Peer
) -> None:
    found = opened(alpha, peer, b"a", b"b", b"c")
    peer.write(session_ack(3, 1, 0b111))
    network.run(35_000)
    (status,) = alpha.outgoing()
    assert (status.resend_count, status.last_ack_time_s) == (1, 0)
    peer.write(session_ack(6, 4, 0b111), order_ack(found[1], alpha.identifier))
    (status,) = alpha.outgoing()
    assert status.message_count == 1
    assert status.unacknowledged_count == 1
    assert status.last_acknowledged_number == 2
    assert status.last_ack_time_s == START_S + 35
    assert status.resend_count == 0
    assert status.resend_time_s == START_S + 35 + 30
    network.run(30_000)
    assert places(messages(peer.take(), peer))[-1] == (b"c", 3, 0)


@pytest.mark.spec("MQQB-3.1.5.6-13", "MQQB-3.1.5.6-23", "MQQB-3.1.1.6.2-11")
def test_a_message_with_a_copy_asked_for_waits_on_for_its_end(
    network: Network, alpha: Computer, peer: Peer
) -> None:
    first = opened(alpha, peer, b"good", journal_on_success=True)
    send(alpha, b"bad", journal_on_failure=True)
    send(alpha, b"plain")
    found = first + messages(peer.take(), peer)
    assert [message.transaction.final_ack_wanted for message in found if message.transaction] == [
        True,
        True,
        False,
    ]
    peer.write(session_ack(3, 1, 0b111), order_ack(found[2], alpha.identifier))
    (status,) = alpha.outgoing()
    assert (status.message_count, status.unread_count) == (0, 2)
    assert alpha.bodies("system$;journal") == []
    network.run(200_000)
    assert alpha.outgoing()[0].unread_count == 2
    assert messages(peer.take(), peer) == [], "what has arrived is not sent again"


@pytest.mark.spec("MQQB-3.1.5.6-14")
def test_when_all_is_acknowledged_a_new_sequence_begins(alpha: Computer, peer: Peer) -> None:
    (old,) = opened(alpha, peer, b"a")
    peer.write(session_ack(1, 1, 1), order_ack(old, alpha.identifier))
    send(alpha, b"b", b"c")
    found = messages(peer.take(), peer)
    assert places(found) == [(b"b", 1, 0), (b"c", 2, 1)]
    assert sequence_of(found[0]).ordinal == sequence_of(old).ordinal + 1
    assert sequence_of(found[0]) > sequence_of(old)


def test_a_late_acknowledgment_of_an_older_sequence_says_nothing_about_the_new_one(
    alpha: Computer, peer: Peer
) -> None:
    (old,) = opened(alpha, peer, b"a")
    peer.write(order_ack(old, alpha.identifier))
    send(alpha, b"b")
    peer.write(order_ack(old, alpha.identifier))
    assert alpha.outgoing()[0].message_count == 1
    assert peer.is_open


def test_two_queues_of_one_peer_share_a_session_but_no_sequence(
    alpha: Computer, peer: Peer
) -> None:
    first = opened(alpha, peer, b"1a", b"2a")
    send(alpha, b"1b", to=TO_OTHER)
    found = first + messages(peer.take(), peer)
    assert places(found) == [(b"1a", 1, 0), (b"2a", 2, 1), (b"1b", 1, 0)]
    assert sequence_of(found[0]) != sequence_of(found[2])
    peer.write(order_ack(found[2], alpha.identifier))
    assert [alpha.outgoing(name)[0].message_count for name in (TO_LEDGER, TO_OTHER)] == [2, 0]


@pytest.mark.spec("MQQB-3.1.5.6-05", "MQQB-3.1.5.6-06")
def test_the_pauses_between_resends_grow_and_the_last_one_stays(network: Network) -> None:
    alpha = network.manager(
        "ALPHA",
        ALPHA,
        resend_first_s=2,
        resend_second_s=3,
        resend_third_s=4,
        resend_last_s=6,
    )
    peer = network.peer()
    opened(alpha, peer, b"a")
    peer.write(session_ack(1, 1, 1))
    moments: list[int] = []
    received = 1
    for second in range(1, 50):
        network.run(1_000)
        again = messages(peer.take(), peer)
        if again:
            received += len(again)
            moments.append(second)
            peer.write(session_ack(received, received, 1))
    assert moments == [2, 4, 6, 9, 12, 15, 19, 23, 27, 33, 39, 45]
    assert peer.is_open


def test_a_message_that_got_lost_is_sent_again_with_its_place(
    network: Network, alpha: Computer, peer: Peer
) -> None:
    found = opened(alpha, peer, b"1", b"2", b"3", b"4", b"5")
    peer.write(session_ack(5, 1, 0b11111), order_ack(found[1], alpha.identifier))
    network.run(29_000)
    assert messages(peer.take(), peer) == []
    network.run(1_000)
    again = messages(peer.take(), peer)
    assert places(again) == [(b"3", 3, 0), (b"4", 4, 3), (b"5", 5, 4)]
    assert {sequence_of(message) for message in again} == {sequence_of(found[0])}
    assert [message.user.message_number for message in again] == [
        message.user.message_number for message in found[2:]
    ]


def test_when_a_message_expires_the_next_one_bridges_the_gap(
    network: Network, alpha: Computer, peer: Peer
) -> None:
    found = opened(alpha, peer, b"1", b"2")
    alpha.send(
        TO_LEDGER, b"3", transactional=True, time_to_reach_queue_s=20, journal_on_failure=True
    )
    send(alpha, b"4", b"5")
    found += messages(peer.take(), peer)
    assert places(found)[2:] == [(b"3", 3, 2), (b"4", 4, 3), (b"5", 5, 4)]
    peer.write(session_ack(5, 1, 0b11111), order_ack(found[1], alpha.identifier))
    network.run(31_000)
    assert places(messages(peer.take(), peer)) == [(b"4", 4, 0), (b"5", 5, 4)]
    assert alpha.classes("system$;deadxact") == [MessageClass.NACK_REACH_QUEUE_TIMEOUT]


def test_numbers_stay_with_their_messages_through_a_crash(
    network: Network, alpha: Computer, peer: Peer
) -> None:
    before = opened(alpha, peer, b"a", b"b")
    alpha.crash()
    network.run()
    peer.accept_session()
    after = messages(peer.take(), peer)
    assert places(after) == places(before)
    assert {sequence_of(message) for message in after} == {sequence_of(before[0])}
    send(alpha, b"c")
    assert places(messages(peer.take(), peer)) == [(b"c", 3, 2)]


def test_acknowledgments_of_numbers_that_were_never_given_are_ignored(
    alpha: Computer, peer: Peer
) -> None:
    (message,) = opened(alpha, peer, b"a")
    peer.write(order_ack(message, alpha.identifier, number=99))
    assert alpha.outgoing()[0].message_count == 1
    assert peer.is_open
