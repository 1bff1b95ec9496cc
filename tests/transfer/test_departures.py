"""How messages leave: numbers, deadlines, windows, lost connections. [MQQB 3.1.7.1, 3.1.1.6.1]"""

from __future__ import annotations

import pytest

from openmsmq.model.identity import NIL_GUID
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import MessageClass
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.packets import EstablishConnection, SessionAck, UserMessage
from tests.transfer.letters import (
    ARRIVAL_NACK,
    direct,
    headers_in,
    let_pass,
    letter,
    letters_in,
    order_ack,
    session_ack,
)
from tests.transfer.network import ALPHA, PEER, Computer, Network, Peer

ORDERS = r"private$\orders"
TO_ORDERS = rf"DIRECT=TCP:{PEER}\{ORDERS}"


@pytest.fixture
def peer(network: Network) -> Peer:
    return network.peer()


def opened(
    computer: Computer, peer: Peer, *bodies: bytes, window: int = 64, **wishes: bool
) -> list[UserMessage]:
    """Send messages, let the peer open its session, and give what came to it."""
    computer.send(TO_ORDERS, *bodies, **wishes)
    computer.network.run()
    peer.accept_session(window=window)
    return letters_in(peer.take(), peer.identifier)


def bodies(found: list[UserMessage]) -> list[bytes]:
    return [message.properties.body for message in found]


def waiting(computer: Computer) -> int:
    return computer.outgoing()[0].message_count


@pytest.mark.spec(
    "MQQB-3.1.7.1.1-01",
    "MQQB-3.1.7.1.1-02",
    "MQMQ-2.2.18.1.3-01",
    "MQMQ-2.2.18.1.3-02",
    "MQMQ-2.2.19.2-07",
)
def test_messages_have_numbers_that_grow_and_are_never_used_again(
    network: Network, alpha: Computer, peer: Peer
) -> None:
    numbers = alpha.send(TO_ORDERS, b"a", b"b")
    numbers += alpha.send(TO_ORDERS, b"c")
    assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2]
    assert numbers[0] > 0
    alpha.crash()
    later = alpha.send(TO_ORDERS, b"d")
    assert later[0] > numbers[-1]
    network.run()
    peer.accept_session()
    found = letters_in(peer.take(), peer.identifier)
    assert [message.user.message_number for message in found] == numbers + later
    assert {message.user.source for message in found} == {alpha.identifier}


@pytest.mark.spec("MQQB-3.1.1.6.1-01", "MQQB-3.1.7.1.3-12", "MQQB-3.1.7.1.3-26")
def test_express_messages_are_done_when_the_session_has_counted_them(
    alpha: Computer, peer: Peer
) -> None:
    opened(alpha, peer, *(b"%d" % number for number in range(10)), recoverable=False)
    peer.write(session_ack(4))
    assert waiting(alpha) == 6
    assert letters_in(peer.take(), peer.identifier) == [], "what is under way is not sent again"
    peer.write(session_ack(10))
    assert waiting(alpha) == 0


@pytest.mark.spec("MQQB-3.1.1.6.1-02", "MQQB-3.1.7.1.3-12")
def test_recoverable_messages_are_done_when_their_bit_says_that_they_are_stored(
    alpha: Computer, peer: Peer
) -> None:
    opened(alpha, peer, b"1", b"2", b"3", b"4")
    peer.write(session_ack(4))
    assert waiting(alpha) == 4
    peer.write(session_ack(4, 2, 0b101))
    assert waiting(alpha) == 2
    peer.close()
    alpha.network.run(6_000)
    peer.accept_session()
    assert bodies(letters_in(peer.take(), peer.identifier)) == [b"1", b"3"]


@pytest.mark.spec("MQQB-3.1.1.6.1-03", "MQQB-3.1.1.6.1-04")
def test_who_has_stored_nothing_acknowledges_nothing_as_stored(alpha: Computer, peer: Peer) -> None:
    alpha.create(ORDERS)
    peer.open_session(ALPHA)
    peer.write(letter(peer.identifier, 1, direct(ALPHA, ORDERS), recoverable=False))
    (header,) = headers_in(let_pass(peer, 12_000))
    assert (header.received_count, header.stored_base, header.stored_bits) == (1, 0, 0)


@pytest.mark.spec("MQQB-3.1.7.1-01")
def test_the_window_bounds_what_is_under_way(alpha: Computer, peer: Peer) -> None:
    first = opened(alpha, peer, *(b"%d" % number for number in range(10)), window=3)
    assert bodies(first) == [b"0", b"1", b"2"]
    peer.write(SessionAck(SessionHeader(3, 1, 0b111, window=5)))
    assert bodies(letters_in(peer.take(), peer.identifier)) == [b"%d" % n for n in range(3, 8)]
    assert waiting(alpha) == 7


@pytest.mark.spec("MQQB-3.1.7.1.2-01", "MQQB-3.1.7.1.2-02", "MQMQ-2.2.19.1-23", "MQMQ-2.2.19.1-24")
def test_a_message_that_is_too_late_does_not_leave(
    network: Network, alpha: Computer, peer: Peer
) -> None:
    network.down.add(PEER)
    alpha.send(TO_ORDERS, b"late", time_to_reach_queue_s=20)
    alpha.send(TO_ORDERS, b"received in time only", time_to_be_received_s=20)
    alpha.send(TO_ORDERS, b"for ever")
    network.run(30_000)
    assert waiting(alpha) == 1
    network.down.clear()
    network.run(10_000)
    peer.accept_session()
    assert bodies(letters_in(peer.take(), peer.identifier)) == [b"for ever"]


@pytest.mark.spec("MQQB-3.1.7.1.2-03")
@pytest.mark.parametrize("asked", [ARRIVAL_NACK, 0], ids=["asked", "not asked"])
def test_the_administration_queue_hears_of_a_message_that_did_not_leave_in_time(
    network: Network, alpha: Computer, asked: int
) -> None:
    alpha.create(r"private$\admin")
    alpha.send(
        TO_ORDERS,
        b"late",
        time_to_reach_queue_s=20,
        acknowledge=asked,
        admin_queue=rf"TCP:{ALPHA}\private$\admin",
    )
    network.run(30_000)
    expected = [MessageClass.NACK_REACH_QUEUE_TIMEOUT] if asked else []
    assert alpha.classes(r"private$\admin") == expected


@pytest.mark.spec("MQQB-3.1.7.1.2-04")
@pytest.mark.parametrize(
    ("transactional", "queue"), [(False, "system$;deadletter"), (True, "system$;deadxact")]
)
def test_a_message_that_did_not_leave_in_time_is_a_dead_letter_if_that_was_asked_for(
    network: Network, alpha: Computer, transactional: bool, queue: str
) -> None:
    for wanted in (True, False):
        alpha.send(
            TO_ORDERS,
            b"wanted" if wanted else b"not wanted",
            time_to_reach_queue_s=20,
            transactional=transactional,
            journal_on_failure=wanted,
        )
    network.run(30_000)
    assert alpha.bodies(queue) == [b"wanted"]
    assert alpha.classes(queue) == [MessageClass.NACK_REACH_QUEUE_TIMEOUT]
    other = "system$;deadxact" if queue.endswith("letter") else "system$;deadletter"
    assert alpha.bodies(other) == []


@pytest.mark.spec("MQQB-3.1.7.1.2-04")
def test_a_message_that_did_not_leave_in_time_goes_to_the_dead_letter_queue_it_names(
    network: Network, alpha: Computer
) -> None:
    alpha.create(r"private$\mine", transactional=True)
    alpha.send(
        TO_ORDERS,
        b"late",
        transactional=True,
        journal_on_failure=True,
        time_to_reach_queue_s=20,
        dead_letter_queue=r".\private$\mine",
    )
    network.run(30_000)
    assert alpha.bodies(r"private$\mine") == [b"late"]
    assert alpha.bodies("system$;deadxact") == []


@pytest.mark.parametrize("sent_time_s", [1_700_000_000 + 100_000, 1_700_000_000 - 250])
def test_clocks_that_differ_expire_nothing_that_is_on_time(
    alpha: Computer, peer: Peer, sent_time_s: int
) -> None:
    alpha.create(ORDERS)
    peer.open_session(ALPHA)
    to = direct(ALPHA, ORDERS)
    peer.write(letter(peer.identifier, 1, to, sent_time_s=sent_time_s, time_to_reach_queue_s=60))
    assert alpha.bodies(ORDERS) == [b"body"]


@pytest.mark.spec("MQMQ-2.2.19.1-23", "MQMQ-2.2.19.1-24")
@pytest.mark.parametrize(
    ("reach_s", "receive_s", "kept"),
    [
        (INFINITE_S, INFINITE_S, True),
        (60, INFINITE_S, False),
        (INFINITE_S, 60, False),
        (1_000_000, 60, False),
        (1_000_000, 2_000_000, True),
    ],
)
def test_a_message_that_travelled_too_long_is_dead_where_it_arrives(
    alpha: Computer, peer: Peer, reach_s: int, receive_s: int, kept: bool
) -> None:
    alpha.create(ORDERS)
    peer.open_session(ALPHA)
    message = letter(
        peer.identifier,
        1,
        direct(ALPHA, ORDERS),
        sent_time_s=1_700_000_000 - 1_000,
        time_to_reach_queue_s=reach_s,
        time_to_be_received_s=receive_s,
        journal_on_failure=True,
    )
    peer.write(message)
    assert alpha.bodies(ORDERS) == ([b"body"] if kept else [])
    assert alpha.bodies("system$;deadletter") == ([] if kept else [b"body"])


@pytest.mark.spec("MQQB-3.1.7.1.3-23", "MQQB-3.1.7.1.3-25", "MQQB-3.1.5.8.7-11")
def test_what_a_message_acknowledges_on_its_back_is_not_acknowledged_again(
    network: Network, alpha: Computer, peer: Peer
) -> None:
    alpha.create(ORDERS)
    opened(alpha, peer, b"out")
    network.run(1_000)
    for number in (1, 2):
        peer.write(letter(peer.identifier, number, direct(ALPHA, ORDERS)))
    assert headers_in(peer.take()) == []
    network.run(400)
    alpha.send(TO_ORDERS, b"with it")
    network.run()
    (header,) = headers_in(peer.take())
    assert (header.stored_base, header.stored_bits, header.received_count) == (1, 0b11, 2)
    assert headers_in(let_pass(peer, 5_000)) == []
    peer.write(letter(peer.identifier, 3, direct(ALPHA, ORDERS)))
    (header,) = headers_in(let_pass(peer, 600))
    assert (header.stored_base, header.stored_bits, header.received_count) == (3, 1, 3)


@pytest.mark.spec("MQQB-3.1.7.1.6-01", "MQQB-3.1.7.1.6-02", "MQQB-3.1.7.1.6-03", "MQQB-3.1.7.3-01")
def test_what_was_under_way_when_the_connection_broke_goes_again_over_the_next(
    network: Network, alpha: Computer, peer: Peer
) -> None:
    first = opened(alpha, peer, b"1", b"2", b"3")
    assert bodies(first) == [b"1", b"2", b"3"]
    assert alpha.outgoing()[0].state == "CONNECTED"
    peer.write(session_ack(1, 1, 1))
    session = peer.session
    network.cut(PEER)
    (status,) = alpha.outgoing()
    assert status.state != "CONNECTED"
    assert (status.message_count, status.in_flight_count) == (2, 0)
    network.run(6_000)
    peer.accept_session()
    assert peer.session != session
    again = letters_in(peer.take(), peer.identifier)
    assert bodies(again) == [b"2", b"3"]
    assert [m.user.message_number for m in again] == [m.user.message_number for m in first[1:]]
    peer.write(session_ack(2, 1, 0b11))
    assert waiting(alpha) == 0


@pytest.mark.spec("MQQB-3.1.7.3-01")
def test_a_peer_that_goes_away_takes_nothing_with_it(alpha: Computer, peer: Peer) -> None:
    alpha.create(ORDERS)
    peer.open_session(ALPHA)
    peer.write(letter(peer.identifier, 1, direct(ALPHA, ORDERS)))
    peer.close()
    peer.open_session(ALPHA)
    peer.write(letter(peer.identifier, 2, direct(ALPHA, ORDERS)))
    (header,) = headers_in(let_pass(peer, 1_000))
    assert (header.received_count, header.stored_base) == (1, 1), "each session counts anew"
    assert len(alpha.bodies(ORDERS)) == 2


@pytest.mark.spec("MQQB-3.1.7.16-01", "MQQB-3.1.7.16-02")
def test_a_message_that_was_sent_leaves_its_place_to_the_next(alpha: Computer, peer: Peer) -> None:
    found = opened(alpha, peer, b"1", b"2", window=1)
    assert bodies(found) == [b"1"]
    alpha.send(TO_ORDERS, b"3")
    alpha.network.run()
    for number in (1, 2, 3):
        peer.write(SessionAck(SessionHeader(number, number, 1, window=1)))
        found += letters_in(peer.take(), peer.identifier)
    assert bodies(found) == [b"1", b"2", b"3"]


def test_queues_to_one_neighbour_take_turns(alpha: Computer, peer: Peer) -> None:
    # Else a long queue, or one that is sent again and again, keeps back the acknowledgments that
    # would shorten it.
    long = [b"%d" % number for number in range(5)]
    found = opened(alpha, peer, *long, window=1)
    for name in ("second", "third"):
        alpha.send(rf"DIRECT=TCP:{PEER}\private$\{name}", name.encode(), name.encode())
    alpha.network.run()
    for number in range(1, 9):
        peer.write(SessionAck(SessionHeader(number, number, 1, window=1)))
        found += letters_in(peer.take(), peer.identifier)
    assert bodies(found)[:7] == [b"0", b"second", b"third", b"1", b"second", b"third", b"2"]


@pytest.mark.spec("MQQB-3.1.7.4-01", "MQQB-3.1.7.4-02", "MQQB-3.1.7.4-03", "MQMQ-2.2.19.2-04")
@pytest.mark.parametrize("name", [TO_ORDERS, rf"DIRECT=OS:somewhere\{ORDERS}"])
def test_a_direct_name_leads_to_the_host_it_names_whoever_that_is(
    network: Network, alpha: Computer, peer: Peer, name: str
) -> None:
    network.hosts["somewhere"] = (PEER,)
    alpha.send(name, b"body")
    network.run()
    (establish,) = (p for p in peer.packets if isinstance(p, EstablishConnection))
    assert establish.establish.server == NIL_GUID
    peer.accept_session()
    (message,) = letters_in(peer.take(), peer.identifier)
    assert message.properties.body == b"body"
    assert message.user.destination_manager == NIL_GUID


@pytest.mark.spec("MQQB-3.1.7.4-05", "MQMQ-2.2.19.2-03", "MQMQ-2.2.19.2-29")
def test_a_name_by_number_leads_to_the_queue_manager_it_names(network: Network) -> None:
    peer = network.peer()
    alpha = network.manager("ALPHA", ALPHA, next_hops={str(peer.identifier): (PEER,)})
    alpha.send(rf"PRIVATE={peer.identifier}\1f", b"body")
    network.run()
    peer.accept_session()
    (message,) = letters_in(peer.take(), peer.identifier)
    assert message.user.destination_manager == peer.identifier


def test_an_order_acknowledgment_may_overtake_the_one_of_the_session(
    network: Network, alpha: Computer, peer: Peer
) -> None:
    (message,) = opened(alpha, peer, b"body", transactional=True)
    peer.write(order_ack(message, alpha.identifier))
    assert waiting(alpha) == 0
    peer.write(session_ack(1, 1, 1, sent_count=1))
    assert peer.is_open
    peer.close()
    network.run(60_000)
    assert letters_in(peer.take(), peer.identifier) == []
