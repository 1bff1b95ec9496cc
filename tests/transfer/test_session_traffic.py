"""What an open session does with messages and acknowledgments, seen from both of its ends."""

from __future__ import annotations

import msgspec
import pytest

from openmsmq.model.message import MessageClass
from openmsmq.wire.framing import take_packets
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.packets import UserMessage, decode, encode
from tests.transfer.neighbour import LEDGER, ORDERS, Neighbour, numbered, to_ledger, to_orders
from tests.transfer.network import ALPHA, BETA, GAMMA, PEER, Computer, Network

TO_PEER = rf"DIRECT=TCP:{PEER}\{ORDERS}"
TO_PEER_LEDGER = rf"DIRECT=TCP:{PEER}\{LEDGER}"


@pytest.fixture
def peer(network: Network) -> Neighbour:
    return Neighbour(network, PEER)


@pytest.mark.spec("MQQB-2.1.1-01")
def test_every_packet_of_a_session_begins_with_a_base_header(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    beta.send(TO_PEER, b"out")
    network.run()
    peer.say(peer.message(to_ledger(BETA), b"in"))
    network.run(20_000)
    packets = list(take_packets(bytearray().join(beta.sent)))
    assert len({type(decode(packet)) for packet in packets}) == 4
    for packet in packets:
        assert (packet[0], packet[4:8]) == (0x10, b"LIOR")
        assert int.from_bytes(packet[8:12], "little") <= len(packet)


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("at_a_time", [0, 1])
def test_an_acknowledgment_that_rides_on_a_message_does_not_hide_the_next_one(
    network: Network, beta: Computer, peer: Neighbour, counted: bool, at_a_time: int
) -> None:
    beta.send(TO_PEER, b"out", recoverable=False)
    peer.acknowledges = False
    network.run()
    first, second = (peer.message(to_orders(BETA), body) for body in (b"laden", b"plain"))
    header = SessionHeader(1, sent_count=1, recoverable_sent_count=1)
    laden = msgspec.structs.replace(first, session=header, session_counted=counted)
    peer.say(laden, second, at_a_time=at_a_time)
    assert beta.bodies(ORDERS) == [b"laden", b"plain"]
    assert beta.outgoing()[0].message_count == 0
    assert peer.is_open


def test_an_acknowledgment_of_ours_rides_on_a_message_when_it_is_nearly_due(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    peer.open(BETA)
    peer.say(peer.message(to_orders(BETA), recoverable=False))
    network.run(7_600)
    beta.send(TO_PEER, b"first", recoverable=False)
    network.run()
    beta.send(TO_PEER, b"second", recoverable=False)
    network.run()
    laden, plain = peer.messages
    assert laden.session is not None
    assert (laden.session.received_count, laden.session.sent_count) == (1, 1)
    assert plain.session is None
    assert peer.bodies == [b"first", b"second"]


@pytest.mark.spec(
    "MQQB-3.1.7.12-03",
    "MQQB-3.1.7.12-04",
    "MQQB-3.1.7.12-07",
    "MQQB-3.1.7.12-08",
    "MQQB-3.1.7.12-10",
    "MQQB-3.1.6.1-02",
    "MQQB-3.1.5.4.2-02",
)
@pytest.mark.parametrize("recoverable", [False, True])
def test_what_was_queued_before_the_session_all_arrives_and_is_deleted_only_when_acknowledged(
    network: Network, beta: Computer, recoverable: bool
) -> None:
    bodies = numbered(200)
    beta.send(TO_PEER, *bodies, recoverable=recoverable)
    network.run(60_000)
    peer = Neighbour(network, PEER)
    peer.acknowledges = False
    network.run(6_000)
    assert peer.bodies == bodies[:64]
    # One acknowledgment of ten packets frees ten places, and takes out these ten alone.
    bits = 0xFFFF_FFFF if recoverable else 0
    peer.write(peer.ack(received=10, base=1, bits=bits & 0x3FF))
    assert beta.outgoing()[0].message_count == 190
    assert peer.bodies == bodies[:74]
    peer.acknowledges = True
    peer.write(*(peer.ack(received=74, base=base, bits=bits) for base in (11, 43)))
    network.run(1_000)
    assert peer.bodies == bodies
    assert peer.opened_count == 1
    assert beta.outgoing()[0].message_count == 0


@pytest.mark.slow
def test_seventy_thousand_messages_pass_through_one_session(network: Network) -> None:
    gamma = network.manager("GAMMA", GAMMA)
    gamma.create(ORDERS)
    alpha = network.manager("ALPHA", ALPHA)
    for start in range(0, 70_000, 5_000):
        alpha.send(rf"DIRECT=TCP:{GAMMA}\{ORDERS}", *numbered(5_000, start), recoverable=False)
        network.run()
        assert gamma.bodies(ORDERS, take=True) == numbered(5_000, start)
    network.run(11_000)
    (queue,) = alpha.outgoing()
    assert queue.message_count == 0
    assert [attempt.status for attempt in queue.history] == [0, 1, 2]


def test_a_window_of_one_lets_one_message_pass_at_a_time_and_a_larger_one_more(
    network: Network, beta: Computer
) -> None:
    peer = Neighbour(network, PEER, window=1)
    peer.acknowledges = False
    beta.send(TO_PEER, *numbered(100), recoverable=False)
    network.run()
    assert len(peer.bodies) == 1
    peer.write(peer.ack(received=1))
    assert len(peer.bodies) == 2
    peer.write(peer.ack(received=2, window=64))
    assert len(peer.bodies) == 66
    peer.window = 64
    peer.acknowledges = True
    peer.write(peer.ack(received=66))
    network.run()
    assert peer.bodies == numbered(100)


def test_a_sender_with_a_window_of_one_hears_of_each_message_at_once(
    network: Network, beta: Computer
) -> None:
    peer = Neighbour(network, PEER, window=1)
    peer.open(BETA)
    for count in range(1, 4):
        peer.say(peer.message(to_orders(BETA), b"%d" % count, recoverable=False))
        assert [header.received_count for header in peer.headers] == list(range(1, count + 1))
    assert beta.bodies(ORDERS) == [b"1", b"2", b"3"]


@pytest.mark.spec(
    "MQQB-3.1.5.5-02",
    "MQQB-3.1.5.5.1-01",
    "MQQB-3.1.5.5.1-04",
    "MQQB-3.1.5.5.2-01",
)
def test_an_acknowledgment_with_ten_in_flight_deletes_what_it_covers_and_resends_nothing(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    peer.acknowledges = False
    beta.send(TO_PEER, *numbered(10), recoverable=False)
    network.run()
    for received in (1, 5, 5, 9):
        peer.write(peer.ack(received=received))
        (queue,) = beta.outgoing()
        assert (queue.message_count, queue.in_flight_count) == (10 - received, 10 - received)
    beta.send(TO_PEER, *numbered(3, 10), recoverable=False)
    network.run()
    assert peer.bodies == numbered(13)


@pytest.mark.spec("MQQB-3.1.5.5.3-02")
def test_recoverable_messages_are_deleted_one_by_one_as_their_bits_come(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    peer.acknowledges = False
    beta.send(TO_PEER, *numbered(5), journal_on_success=True)
    network.run()
    # Received is not stored: no bit, no deletion, although the number is as high as it can be.
    peer.write(peer.ack(received=5))
    assert beta.outgoing()[0].message_count == 5
    peer.write(peer.ack(received=5, base=2, bits=0b101))
    assert beta.outgoing()[0].message_count == 3
    assert beta.bodies("system$;journal") == [b"1", b"3"]
    peer.write(peer.ack(received=5, base=1, bits=0b11111))
    assert beta.outgoing()[0].message_count == 0
    assert sorted(beta.bodies("system$;journal")) == numbered(5)


@pytest.mark.spec("MQQB-3.1.5.5.4-01")
@pytest.mark.parametrize("recoverable", [False, True])
@pytest.mark.usefixtures("peer")
def test_an_acknowledged_message_that_asks_for_it_is_kept_in_the_journal(
    network: Network, beta: Computer, recoverable: bool
) -> None:
    beta.send(TO_PEER, b"plain", recoverable=recoverable)
    beta.send(TO_PEER, b"kept", recoverable=recoverable, journal_on_success=True)
    assert beta.bodies("system$;journal") == []
    network.run()
    assert beta.outgoing()[0].message_count == 0
    assert beta.bodies("system$;journal") == [b"kept"]


@pytest.mark.spec("MQQB-3.1.5.5.5-03", "MQQB-3.1.5.5.3-03")
@pytest.mark.parametrize("order_first", [False, True])
def test_a_transactional_message_is_kept_until_its_order_acknowledgment(
    network: Network, beta: Computer, peer: Neighbour, order_first: bool
) -> None:
    peer.acknowledges = False
    beta.send(TO_PEER_LEDGER, b"entry", transactional=True)
    network.run()
    (message,) = peer.messages
    stored = peer.ack(received=1, base=1, bits=1)
    if order_first:
        peer.say(peer.order_ack(message))
        peer.write(peer.ack(received=1, base=1, bits=1))
    else:
        peer.write(stored)
        assert beta.outgoing()[0].message_count == 1
        network.run(29_000)
        assert beta.outgoing()[0].message_count == 1
        peer.say(peer.order_ack(message))
    (queue,) = beta.outgoing()
    assert (queue.message_count, queue.in_flight_count) == (0, 0)
    network.run(120_000)
    assert len(peer.messages) == 1


@pytest.mark.spec(
    "MQQB-3.1.1.4-01",
    "MQQB-3.1.1.3.1-01",
    "MQQB-3.1.3.2-01",
    "MQQB-3.1.5.10-01",
    "MQMQ-2.2.20.4-05",
    "MQMQ-2.2.20.4-09",
    "MQMQ-2.2.20.4-10",
    "MQMQ-2.2.20.4-11",
)
def test_each_session_counts_its_own_messages_from_one(network: Network, beta: Computer) -> None:
    first, second = Neighbour(network, PEER), Neighbour(network, GAMMA)
    first.open(BETA)
    second.open(BETA)
    first.say(*(first.message(to_orders(BETA), body) for body in numbered(5)))
    second.say(*(second.message(to_orders(BETA), body) for body in numbered(2)))
    network.run(600)
    assert (first.headers[-1].received_count, second.headers[-1].received_count) == (5, 2)
    assert (first.headers[-1].sent_count, second.headers[-1].sent_count) == (0, 0)
    for number in range(1, 4):
        beta.send(TO_PEER, b"out", recoverable=number == 2)
        network.run(7_600)
        first.say(first.message(to_orders(BETA), b"in", recoverable=False))
        network.run(10_000)
        assert first.headers[-1].sent_count == number
        assert first.headers[-1].recoverable_sent_count == (number >= 2)
    assert second.headers[-1].sent_count == 0
    assert first.is_open
    assert second.is_open
    # The next session begins at one again.
    first.close()
    first.headers.clear()
    first.open(BETA)
    first.say(first.message(to_orders(BETA), b"again"))
    network.run(600)
    (header,) = first.headers
    assert (header.received_count, header.sent_count, header.recoverable_sent_count) == (1, 0, 0)
    assert (header.stored_base, header.stored_bits) == (1, 1)


@pytest.mark.spec("MQQB-3.1.3.2-07", "MQQB-3.1.7.11-14", "MQMQ-2.2.20.4-06", "MQMQ-2.2.20.4-08")
def test_each_acknowledgment_goes_on_after_the_last_recoverable_message_it_told(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    peer.open(BETA, recoverable_ms=1_000)
    peer.say(*(peer.message(to_orders(BETA), body) for body in numbered(3)))
    network.run(1_000)
    peer.say(*(peer.message(to_orders(BETA), body) for body in numbered(2)))
    network.run(900)
    # More than three quarters of the delay are over, so this one carries the acknowledgment.
    beta.send(TO_PEER, b"out", recoverable=False)
    network.run(200)
    peer.say(peer.message(to_orders(BETA)))
    network.run(1_000)
    told = [(header.stored_base, header.stored_bits) for header in peer.headers]
    assert told == [(1, 0b111), (4, 0b11), (6, 0b1)]
    assert peer.messages[0].session == peer.headers[1]


@pytest.mark.spec("MQQB-3.1.7.10-01", "MQQB-3.1.7.10-02", "MQQB-3.1.7.10-03")
def test_what_arrives_is_the_message_that_was_sent(beta: Computer, peer: Neighbour) -> None:
    peer.open(BETA)
    sent = peer.message(
        to_orders(BETA), b"all of it", label="a label", application_tag=7, body_type=8
    )
    peer.say(sent)
    (message,) = beta.messages(ORDERS)
    assert message == sent


@pytest.mark.spec("MQQB-3.1.7.11-01", "MQQB-3.1.7.11-02", "MQQB-3.1.7.12-05", "MQQB-3.1.7.12-01")
def test_what_is_sent_is_the_packet_of_the_message(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    (number,) = beta.send(TO_PEER, b"whole", priority=5, correlation_id=b"c" * 20)
    network.run()
    (message,) = peer.messages
    assert message.user.source == beta.identifier
    assert message.user.message_number == number
    assert message.user.sent_time_s == network.now.unix_s
    assert message.properties.body == b"whole"
    assert message.properties.correlation_id == b"c" * 20
    assert message.base.flags & 7 == 5
    assert message.session is None
    decoded = decode(encode(message))
    assert isinstance(decoded, UserMessage)


@pytest.mark.spec("MQQB-3.1.5.11-01")
def test_an_administration_acknowledgment_is_put_into_its_queue_like_any_message(
    network: Network, beta: Computer, peer: Neighbour
) -> None:
    peer.open(BETA)
    report = peer.message(
        to_orders(BETA), b"", message_class=MessageClass.ACK_REACH_QUEUE, recoverable=False
    )
    peer.say(report, report)
    assert beta.classes(ORDERS) == [MessageClass.ACK_REACH_QUEUE]
    peer.say(peer.message(r"TCP:127.0.0.3\private$\none", message_class=MessageClass.ACK_RECEIVE))
    network.run(11_000)
    assert peer.headers[-1].received_count == 3
    assert peer.is_open
