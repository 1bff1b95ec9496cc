"""An open session: what is acknowledged when, what time does to it, and why it ends."""

from __future__ import annotations

import pytest

from openmsmq.protocol.config import TransferConfig
from openmsmq.protocol.session import (
    Acknowledged,
    Arrived,
    Closed,
    CloseReason,
    Session,
    SessionState,
    Written,
)
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.packets import SessionAck, UserMessage, encode
from tests.golden import golden
from tests.unit.protocol.session_checks import (
    CONFIG,
    Conversation,
    ack,
    acks_in,
    at,
    close_reason,
    message,
    of_type,
    open_acceptor,
    open_initiator,
    send,
    written,
)

EXPRESS = message(1)
RECOVERABLE = message(2, recoverable=True)
MIB = 1 << 20


def receive(session: Session, *packets: bytes, now: int = 0, settle: bool = True) -> None:
    """Let messages arrive, and settle them."""
    session.receive_data(b"".join(packets), at(now))
    if settle:
        session.settled(len(packets), at(now))


FIELDS = (
    "received_count",
    "stored_base",
    "sent_count",
    "recoverable_sent_count",
    "stored_bits",
    "window",
)
"""What a SessionHeader says, in the order in which the specification comes to it."""


def each_field(header: SessionHeader, *statements: tuple[str, ...]) -> pytest.MarkDecorator:
    """One case for each field of a header, with the statements about it."""
    return pytest.mark.parametrize(
        ("field", "value"),
        [
            pytest.param(field, getattr(header, field), id=field, marks=pytest.mark.spec(*ids))
            for field, ids in zip(FIELDS, statements, strict=True)
        ],
    )


# The worked example, and the first header of a session.


@pytest.mark.spec(
    "MQQB-3.1.5.8.2-02",
    "MQQB-3.1.5.8.7-13",
    "MQQB-3.1.5.8.7-15",
    "MQQB-3.1.6.4-02",
    "MQQB-3.1.6.4-03",
    "MQQB-3.1.7.1.3-11",
    "MQQB-3.1.7.1.3-13",
)
def test_two_transactional_messages_with_order_and_final_acknowledgments_are_counted_alike() -> (
    None
):
    talk = Conversation()
    sender, receiver = talk.left, talk.right
    for number in (1, 2):
        sender.send([message(number, recoverable=True)], talk.now)
    talk.deliver(sender)
    receiver.settle(2, talk.now)
    receiver.send([golden("order-ack-private")], talk.now)
    talk.advance(499)
    assert talk.deliver(receiver) == golden("order-ack-private")
    talk.advance(1)
    assert talk.deliver(receiver) == ack(
        received_count=2,
        stored_base=1,
        stored_bits=0b11,
        sent_count=1,
        recoverable_sent_count=0,
        window=64,
    )
    assert sender.acknowledged == [0, 1]
    finals = [message(n, recoverable=True, message_class=0x4000) for n in (3, 4)]
    for final in finals:
        receiver.send([final], talk.now)
    assert talk.deliver(receiver) == b"".join(finals)
    sender.settle(3, talk.now)
    talk.advance(500)
    assert talk.deliver(sender) == ack(
        received_count=3,
        stored_base=1,
        stored_bits=0b11,
        sent_count=2,
        recoverable_sent_count=2,
        window=64,
    )
    assert receiver.acknowledged == [0, 1, 2]
    assert sender.reason is receiver.reason is None


@pytest.mark.spec(
    "MQQB-3.1.3.2-02",
    "MQQB-3.1.3.2-03",
    "MQQB-3.1.3.2-04",
    "MQQB-3.1.3.2-05",
    "MQQB-3.1.3.2-06",
    "MQQB-3.1.3.2-08",
)
def test_a_session_begins_to_count_at_nothing() -> None:
    session = open_initiator()
    session.advertise(63, at(0))
    assert acks_in(session.take_outputs()) == [SessionHeader(window=63)]
    # Nothing has come, so it owes no acknowledgment when it ends.
    session.close(CloseReason.STOPPING, at(0))
    assert session.take_outputs() == [Closed(CloseReason.STOPPING)]


@pytest.mark.spec("MQQB-3.1.3.2-09", "MQQB-3.1.3.2-10")
def test_a_session_begins_with_no_timer_but_that_of_idleness() -> None:
    assert open_initiator().next_wake_ms == at(300_000).ticks_ms


def test_an_acknowledgment_has_the_bytes_of_a_captured_one_but_for_its_reserved_fields() -> None:
    session = open_acceptor()
    receive(session, *[RECOVERABLE] * 32)
    (output,) = of_type(session.take_outputs(), Written)
    captured = golden("mqqb-4.1-frame-8-session-ack")
    assert output.data[2:20] == captured[2:20]
    assert len(output.data) == len(captured)


# When acknowledgments leave.


@pytest.mark.spec("MQQB-3.1.5.8.2-03", "MQQB-3.1.6.4-01", "MQQB-3.1.5.8.2-09")
def test_express_messages_are_acknowledged_after_half_the_wait_of_their_sender() -> None:
    session = open_acceptor(ack_ms=30_000)
    receive(session, EXPRESS)
    session.take_outputs()
    assert session.next_wake_ms == at(15_000).ticks_ms
    receive(session, EXPRESS, now=9_000)
    session.wake(at(14_999))
    assert acks_in(session.take_outputs()) == []
    session.wake(at(15_000))
    assert acks_in(session.take_outputs()) == [SessionHeader(received_count=2)]


@each_field(
    SessionHeader(3, 1, 0b11, 2, 1, 64),
    *((f"MQQB-3.1.6.4-{number:02}",) for number in range(4, 10)),
)
def test_an_acknowledgment_that_is_due_says_it_in_each_field(field: str, value: int) -> None:
    session = open_acceptor()
    send(session, RECOVERABLE, EXPRESS)
    receive(session, RECOVERABLE, EXPRESS, RECOVERABLE)
    session.take_outputs()
    session.wake(at(500))
    (packet,) = written(session.take_outputs())
    assert isinstance(packet, SessionAck)
    assert getattr(packet.session, field) == value


@pytest.mark.spec("MQQB-3.1.5.8.7-14")
def test_recoverable_messages_are_acknowledged_sooner_and_more_of_them_change_nothing() -> None:
    session = open_acceptor()
    receive(session, EXPRESS)
    receive(session, RECOVERABLE, now=1_000)
    receive(session, RECOVERABLE, now=1_400)
    session.wake(at(1_499))
    assert acks_in(session.take_outputs()) == []
    session.wake(at(1_500))
    assert acks_in(session.take_outputs()) == [
        SessionHeader(received_count=3, stored_base=1, stored_bits=0b11)
    ]


def test_a_recoverable_message_never_makes_an_acknowledgment_later() -> None:
    session = open_acceptor()
    receive(session, EXPRESS)
    receive(session, RECOVERABLE, now=9_900)
    session.wake(at(10_000))
    assert len(acks_in(session.take_outputs())) == 1


@pytest.mark.spec("MQQB-3.1.6.4-10", "MQMQ-2.2.20.4-07")
def test_an_acknowledgment_is_sent_once_and_the_next_goes_on_where_it_ended() -> None:
    session = open_acceptor()
    receive(session, RECOVERABLE, EXPRESS, RECOVERABLE)
    session.wake(at(500))
    assert acks_in(session.take_outputs()) == [
        SessionHeader(received_count=3, stored_base=1, stored_bits=0b11)
    ]
    session.wake(at(20_000))
    assert session.take_outputs() == []
    receive(session, RECOVERABLE, now=20_000)
    session.wake(at(20_500))
    assert acks_in(session.take_outputs()) == [
        SessionHeader(received_count=4, stored_base=3, stored_bits=0b1)
    ]
    receive(session, EXPRESS, now=20_500)
    session.wake(at(30_500))
    assert acks_in(session.take_outputs()) == [SessionHeader(received_count=5)]


@pytest.mark.parametrize(
    ("own", "theirs", "threshold"), [(64, 64, 32), (10, 64, 5), (64, 7, 3), (1, 64, 1), (64, 1, 1)]
)
def test_half_a_window_is_acknowledged_at_once(own: int, theirs: int, threshold: int) -> None:
    session = open_acceptor(TransferConfig(window=own), window=theirs)
    for count in range(1, threshold):
        receive(session, EXPRESS)
        assert acks_in(session.take_outputs()) == [], count
    receive(session, EXPRESS)
    assert acks_in(session.take_outputs()) == [SessionHeader(received_count=threshold, window=own)]


def outputs_for_32_recoverable_messages() -> list[Written]:
    """What a session says that has sent two messages, when the last of 32 arrives."""
    session = open_acceptor(TransferConfig(window=1_000), window=1_000)
    send(session, RECOVERABLE, EXPRESS)
    receive(session, *[RECOVERABLE] * 31)
    assert written(session.take_outputs()) == []
    receive(session, RECOVERABLE)
    return of_type(session.take_outputs(), Written)


@pytest.mark.spec("MQQB-3.1.5.8.7-02", "MQQB-3.1.5.8.7-03", "MQQB-3.1.5.8.7-04")
def test_32_recoverable_messages_are_acknowledged_at_once_in_one_packet() -> None:
    outputs = outputs_for_32_recoverable_messages()
    assert written(outputs) == [SessionAck(SessionHeader(32, 1, 0xFFFF_FFFF, 2, 1, 1_000))]
    base_flags, internal_flags = outputs[0].data[2], outputs[0].data[18]
    assert base_flags & 0x18 == 0x18, "internal, with a session header"
    assert internal_flags & 0x0F == 1


@each_field(
    SessionHeader(32, 1, 0xFFFF_FFFF, 2, 1, 1_000),
    *((f"MQQB-3.1.5.8.7-{number:02}",) for number in range(5, 11)),
)
def test_the_acknowledgment_of_32_messages_says_it_in_each_field(field: str, value: int) -> None:
    (packet,) = written(outputs_for_32_recoverable_messages())
    assert isinstance(packet, SessionAck)
    assert getattr(packet.session, field) == value


def test_many_recoverable_messages_at_once_take_as_many_acknowledgments_as_their_bits_need() -> (
    None
):
    session = open_acceptor()
    receive(session, *[RECOVERABLE] * 70)
    headers = acks_in(session.take_outputs())
    assert [(h.stored_base, h.stored_bits.bit_count()) for h in headers] == [
        (1, 32),
        (33, 32),
        (65, 6),
    ]
    assert {h.received_count for h in headers} == {70}


def test_large_messages_are_acknowledged_before_they_are_many() -> None:
    session = open_acceptor()
    large = message(body=bytes(2 * MIB - 500))
    receive(session, large)
    assert acks_in(session.take_outputs()) == []
    receive(session, large, message(body=bytes(1000)))
    assert acks_in(session.take_outputs()) == [SessionHeader(received_count=3)]


def test_only_what_is_settled_is_acknowledged_in_order() -> None:
    session = open_acceptor()
    receive(session, RECOVERABLE, EXPRESS, RECOVERABLE, RECOVERABLE, settle=False)
    session.settled(3, at(0))
    session.wake(at(500))
    assert acks_in(session.take_outputs()) == [
        SessionHeader(received_count=3, stored_base=1, stored_bits=0b11)
    ]
    session.settled(1, at(600))
    session.wake(at(1_100))
    assert acks_in(session.take_outputs()) == [
        SessionHeader(received_count=4, stored_base=3, stored_bits=0b1)
    ]


def test_while_the_disk_is_slow_the_sender_hears_that_we_live() -> None:
    session = open_acceptor()
    receive(session, *[RECOVERABLE] * 64, settle=False)
    session.take_outputs()
    heard = []
    while (due_ms := session.next_wake_ms) is not None and due_ms < at(40_000).ticks_ms:
        session.wake(at(due_ms - at(0).ticks_ms))
        heard += acks_in(session.take_outputs())
    assert len(heard) == 4
    assert set(heard) == {SessionHeader()}
    session.settled(64, at(40_000))
    assert [h.received_count for h in acks_in(session.take_outputs())] == [64, 64]


# Riding on messages.


@pytest.mark.spec(
    "MQQB-3.1.7.11-03",
    "MQQB-3.1.7.11-04",
    "MQQB-3.1.7.11-11",
    "MQQB-3.1.7.11-12",
    "MQQB-3.1.7.11-13",
    "MQQB-3.1.7.1.3-15",
    "MQQB-3.1.7.1.3-21",
    "MQQB-3.1.7.1.3-24",
)
def test_an_acknowledgment_that_is_nearly_due_rides_on_the_last_message() -> None:
    session = open_acceptor()
    receive(session, EXPRESS, RECOVERABLE)
    session.send([1, 2], [RECOVERABLE, EXPRESS], at(376))
    first, last = written(session.take_outputs())
    assert isinstance(first, UserMessage)
    assert isinstance(last, UserMessage)
    assert first.session is None
    assert last.session == SessionHeader(2, 1, 0b1, 2, 1, 64)
    session.wake(at(20_000))
    assert session.take_outputs() == []


@each_field(
    SessionHeader(2, 1, 0b1, 2, 1, 64),
    *(
        (f"MQQB-3.1.7.11-{number:02}", f"MQQB-3.1.7.1.3-{other}")
        for number, other in zip(range(5, 11), (16, 17, 18, 19, 20, 22), strict=True)
    ),
)
def test_what_rides_on_a_message_says_it_in_each_field(field: str, value: int) -> None:
    session = open_acceptor()
    receive(session, EXPRESS, RECOVERABLE)
    session.send([1, 2], [RECOVERABLE, EXPRESS], at(376))
    *_, last = written(session.take_outputs())
    assert isinstance(last, UserMessage)
    assert last.session is not None
    assert getattr(last.session, field) == value


def test_a_message_that_leaves_before_three_quarters_of_the_time_carries_nothing() -> None:
    session = open_acceptor()
    receive(session, EXPRESS, RECOVERABLE)
    session.take_outputs()
    session.send([1], [EXPRESS], at(375))
    assert session.take_outputs() == [Written(EXPRESS)]


def test_a_message_carries_nothing_when_nothing_is_owed() -> None:
    session = open_acceptor()
    receive(session, RECOVERABLE)
    session.wake(at(500))
    session.take_outputs()
    session.send([1], [EXPRESS], at(499_000))
    assert session.take_outputs() == [Written(EXPRESS)]


@pytest.mark.parametrize(
    "carrier", [golden("order-ack-private"), message(tail=bytes(16))], ids=["order ack", "tail"]
)
def test_what_cannot_ride_follows_by_itself(carrier: bytes) -> None:
    session = open_acceptor()
    receive(session, RECOVERABLE)
    session.take_outputs()
    session.send([1], [carrier], at(400))
    assert session.take_outputs() == [
        Written(carrier + encode(SessionAck(SessionHeader(1, 1, 0b1, 1, 0))))
    ]


@pytest.mark.spec("MQQB-3.1.5.8.4-01")
def test_an_acknowledgment_on_a_message_counts_like_one_that_stands_alone() -> None:
    session = open_initiator()
    send(session, EXPRESS, RECOVERABLE, EXPRESS)
    header = SessionHeader(2, 1, 0b1, sent_count=2, recoverable_sent_count=1)
    session.receive_data(EXPRESS + message(2, recoverable=True, session=header), at(0))
    assert session.take_outputs() == [
        Acknowledged([0, 1]),
        Arrived([EXPRESS, RECOVERABLE]),
    ]
    assert session.in_flight_count == 1
    assert session.unacknowledged() == [2]


# What is sent.


@pytest.mark.spec("MQQB-3.1.7.1.3-14", "MQQB-3.1.5.5.1-02")
def test_an_acknowledgment_frees_the_window_and_sends_nothing_again() -> None:
    session = open_initiator(window=10)
    send(session, *[EXPRESS] * 10)
    assert (session.room, session.in_flight_count) == (0, 10)
    session.receive_data(ack(received_count=4, window=10), at(0))
    assert session.take_outputs() == [Acknowledged([0, 1, 2, 3])]
    assert (session.room, session.in_flight_count) == (4, 6)
    assert session.unacknowledged() == [4, 5, 6, 7, 8, 9]


def test_200_messages_that_waited_for_the_session_all_arrive_through_its_window() -> None:
    talk = Conversation()
    waiting = [message(number, recoverable=number % 3 == 0) for number in range(200)]
    while len(talk.left.sent) < 200:
        room = talk.left.session.room
        assert room > 0
        start = len(talk.left.sent)
        talk.left.send(waiting[start : start + room], talk.now)
        talk.deliver(talk.left)
        talk.right.settle(talk.right.unsettled_count, talk.now)
        talk.deliver(talk.right)
    assert talk.right.arrived == waiting
    unacknowledged = talk.left.session.unacknowledged()
    assert sorted(talk.left.acknowledged + unacknowledged) == list(range(200))
    talk.settle_everything()
    assert sorted(talk.left.acknowledged) == list(range(200))


def test_recoverable_messages_leave_the_window_when_received_but_wait_to_be_stored() -> None:
    session = open_initiator(window=2)
    send(session, RECOVERABLE, RECOVERABLE)
    session.receive_data(ack(received_count=2, window=2), at(0))
    assert session.take_outputs() == []
    assert session.room == 2
    assert session.unacknowledged() == [0, 1]
    session.receive_data(ack(received_count=2, stored_base=1, stored_bits=0b11), at(0))
    assert session.take_outputs() == [Acknowledged([0, 1])]
    assert session.unacknowledged() == []


def test_several_acknowledgments_at_once_are_told_once() -> None:
    session = open_initiator()
    send(session, EXPRESS, RECOVERABLE)
    session.receive_data(
        ack(received_count=1) + ack(received_count=2, stored_base=1, stored_bits=1), at(0)
    )
    assert session.take_outputs() == [Acknowledged([0, 1])]


def test_sending_more_than_there_is_room_is_our_own_mistake() -> None:
    session = open_initiator(window=2)
    with pytest.raises(AssertionError, match="room"):
        session.send([1, 2, 3], [EXPRESS] * 3, at(0))


def test_settling_more_than_has_arrived_is_our_own_mistake() -> None:
    session = open_initiator()
    receive(session, EXPRESS, settle=False)
    with pytest.raises(AssertionError, match="arrived"):
        session.settled(2, at(0))


# Windows.


def test_a_window_of_one_lets_one_packet_go_at_a_time_until_it_grows_back() -> None:
    session = open_initiator()
    session.receive_data(ack(window=1), at(0))
    assert session.room == 1
    send(session, EXPRESS)
    assert session.room == 0
    session.receive_data(ack(received_count=1, window=1), at(5_000))
    assert session.room == 1
    rooms = []
    for second in (34, 35, 65, 95, 125, 155, 184, 185, 300):
        session.wake(at(second * 1_000))
        rooms.append(session.room)
    assert rooms == [1, 2, 4, 8, 16, 32, 32, 64, 64]


def test_a_window_that_the_peer_opens_again_is_used_at_once() -> None:
    session = open_initiator()
    session.receive_data(ack(window=1), at(0))
    session.receive_data(ack(window=64), at(1))
    assert session.room == 64
    session.receive_data(ack(window=0), at(2))
    assert session.room == 1


def test_a_smaller_window_than_what_is_in_flight_leaves_no_room() -> None:
    session = open_initiator()
    send(session, *[EXPRESS] * 10)
    session.receive_data(ack(window=4), at(0))
    assert session.room == 0
    session.receive_data(ack(received_count=7, window=4), at(0))
    assert session.room == 1


def test_our_own_window_is_told_at_once_and_then_every_packet_is_acknowledged() -> None:
    session = open_acceptor()
    session.advertise(1, at(0))
    assert acks_in(session.take_outputs()) == [SessionHeader(window=1)]
    session.advertise(1, at(0))
    assert session.take_outputs() == []
    receive(session, EXPRESS)
    assert acks_in(session.take_outputs()) == [SessionHeader(received_count=1, window=1)]


def test_a_peer_that_recovers_slowly_from_a_small_window_is_not_kept_waiting() -> None:
    session = open_acceptor()
    session.advertise(1, at(0))
    session.advertise(64, at(1_000))
    session.take_outputs()
    receive(session, EXPRESS, now=2_000)
    assert acks_in(session.take_outputs()) == [SessionHeader(received_count=1)]
    session.wake(at(61_000))
    receive(session, EXPRESS, now=61_000)
    assert acks_in(session.take_outputs()) == []
    receive(session, EXPRESS, now=61_000)
    assert acks_in(session.take_outputs()) == [SessionHeader(received_count=3)]


def test_a_window_is_never_told_larger_than_configured_and_the_handshake_tells_it_too() -> None:
    session = open_acceptor()
    session.advertise(9_999, at(0))
    assert session.take_outputs() == []
    talk_window = TransferConfig(window=100_000)
    assert open_acceptor(talk_window, window=0xFFFF).room == 0x3FFF


# Time.


@pytest.mark.spec(
    "MQQB-3.1.6.3-01",
    "MQQB-3.1.6.3-03",
    "MQQB-3.1.6.3-04",
    "MQQB-3.1.2.4-01",
    "MQQB-3.1.7.1.3-27",
    "MQQB-3.1.5.4.1-03",
)
@pytest.mark.parametrize(("direct", "wait_ms"), [(False, 20_000), (True, 40_000)])
def test_a_peer_that_says_nothing_is_given_up_at_the_second_look(
    direct: bool, wait_ms: int
) -> None:
    session = open_initiator(direct=direct)
    send(session, EXPRESS, RECOVERABLE, now=1_000)
    session.wake(at(1_000 + wait_ms))
    assert session.take_outputs() == []
    session.wake(at(999 + 2 * wait_ms))
    assert session.take_outputs() == []
    session.wake(at(1_000 + 2 * wait_ms))
    assert session.take_outputs() == [Closed(CloseReason.NO_ACKNOWLEDGMENT)]
    assert session.unacknowledged() == [0, 1]


@pytest.mark.spec("MQQB-3.1.5.1-01")
def test_a_peer_that_says_anything_is_not_given_up() -> None:
    session = open_initiator()
    send(session, EXPRESS)
    for second in range(19, 400, 19):
        receive(session, EXPRESS, now=second * 1_000)
        session.wake(at(second * 1_000))
    assert session.state is SessionState.OPEN
    assert session.unacknowledged() == [0]


@pytest.mark.spec("MQQB-3.1.5.5.5-02")
def test_each_acknowledgment_gives_the_rest_new_time_and_the_last_ends_the_wait() -> None:
    session = open_initiator()
    send(session, EXPRESS, EXPRESS)
    session.receive_data(ack(received_count=1), at(15_000))
    assert session.next_wake_ms == at(35_000).ticks_ms
    session.receive_data(ack(received_count=2), at(16_000))
    assert session.next_wake_ms == at(300_000).ticks_ms


@pytest.mark.spec("MQQB-3.1.6.2-01", "MQQB-3.1.6.2-02", "MQQB-3.1.2.2-01")
def test_an_idle_session_closes() -> None:
    session = open_initiator(TransferConfig(session_idle_ms=120_000))
    session.wake(at(119_999))
    assert session.take_outputs() == []
    session.wake(at(120_000))
    assert session.take_outputs() == [Closed(CloseReason.IDLE)]


@pytest.mark.spec("MQQB-3.1.6.2-03", "MQQB-3.1.5.8.2-10", "MQQB-3.1.7.1.3-28")
@pytest.mark.parametrize("sends", [True, False], ids=["sends", "receives"])
def test_a_session_that_was_used_stays_open_for_another_round(sends: bool) -> None:
    session = open_initiator()
    if sends:
        send(session, EXPRESS, now=100)
        session.receive_data(ack(received_count=1), at(200))
    else:
        receive(session, EXPRESS, now=100)
        session.wake(at(10_100))
    session.take_outputs()
    session.wake(at(300_000))
    assert session.take_outputs() == []
    assert session.next_wake_ms == at(600_000).ticks_ms
    session.wake(at(600_000))
    assert session.take_outputs() == [Closed(CloseReason.IDLE)]


def test_acknowledgments_alone_do_not_keep_a_session_open() -> None:
    session = open_initiator()
    session.receive_data(ack(), at(250_000))
    session.wake(at(300_000))
    assert session.take_outputs() == [Closed(CloseReason.IDLE)]


def test_a_session_with_work_on_the_disk_is_not_idle() -> None:
    session = open_initiator()
    receive(session, RECOVERABLE, settle=False)
    session.wake(at(300_000))
    session.wake(at(600_000))
    assert session.state is SessionState.OPEN
    session.settled(1, at(601_000))
    session.wake(at(900_000))
    assert close_reason(session.take_outputs()) is CloseReason.IDLE


def test_waking_early_or_twice_changes_nothing() -> None:
    session = open_initiator()
    send(session, EXPRESS)
    receive(session, EXPRESS, RECOVERABLE)
    session.take_outputs()
    before = session.describe()
    for _ in range(3):
        session.wake(at(499))
    assert session.take_outputs() == []
    assert session.describe() == before
    session.wake(at(500))
    assert len(acks_in(session.take_outputs())) == 1
    session.wake(at(500))
    assert session.take_outputs() == []


# How it ends.


@pytest.mark.spec("MQQB-3.1.5.5.5-01")
@pytest.mark.parametrize(
    "facts",
    [
        {"sent_count": 3, "recoverable_sent_count": 1},
        {"sent_count": 1, "recoverable_sent_count": 1},
        {"sent_count": 2, "recoverable_sent_count": 0},
        {"sent_count": 2, "recoverable_sent_count": 2},
    ],
    ids=["one lost", "one too many", "a recoverable one too many", "a recoverable one lost"],
)
@pytest.mark.parametrize("rides", [False, True], ids=["alone", "on a message"])
def test_counts_that_differ_close_the_session_after_what_arrived(
    facts: dict[str, int], rides: bool
) -> None:
    session = open_initiator()
    send(session, EXPRESS, EXPRESS)
    header = SessionHeader(received_count=1, **facts)
    carrier = message(2, recoverable=True, session=header if rides else None)
    alone = b"" if rides else encode(SessionAck(header))
    session.receive_data(EXPRESS + carrier + alone + message(3), at(0))
    assert session.take_outputs() == [
        Acknowledged([0]),
        Arrived([EXPRESS, RECOVERABLE]),
        Closed(CloseReason.COUNT_MISMATCH),
    ]
    assert session.unacknowledged() == [1]


def test_a_peer_known_to_count_badly_may_be_tolerated_but_not_with_recoverable_messages() -> None:
    config = TransferConfig(close_on_count_mismatch=False)
    session = open_initiator(config)
    session.receive_data(ack(sent_count=9), at(0))
    assert session.state is SessionState.OPEN
    session.receive_data(ack(sent_count=9, recoverable_sent_count=9), at(0))
    assert session.take_outputs() == [Closed(CloseReason.COUNT_MISMATCH)]


@pytest.mark.parametrize(
    "header",
    [
        {"received_count": 3},
        {"received_count": 0xFFFF},
        {"received_count": 0x8000},
        {"stored_base": 1, "stored_bits": 0b10},
        {"stored_base": 2, "stored_bits": 0b1},
        {"stored_base": 0, "stored_bits": 0b1},
    ],
    ids=str,
)
def test_an_acknowledgment_of_what_was_never_sent_closes_the_session(
    header: dict[str, int],
) -> None:
    session = open_initiator()
    send(session, EXPRESS, RECOVERABLE)
    session.receive_data(ack(**header), at(0))
    assert session.take_outputs() == [Closed(CloseReason.BAD_ACKNOWLEDGMENT)]
    assert session.unacknowledged() == [0, 1]


def test_an_acknowledgment_that_goes_back_closes_the_session() -> None:
    session = open_initiator()
    send(session, EXPRESS, EXPRESS)
    session.receive_data(ack(received_count=2) + ack(received_count=1), at(0))
    assert session.take_outputs() == [
        Acknowledged([0, 1]),
        Closed(CloseReason.BAD_ACKNOWLEDGMENT),
    ]


def test_a_message_that_the_peer_received_but_never_stores_goes_again_in_another_session() -> None:
    session = open_initiator()
    sent = 0
    while session.state is SessionState.OPEN:
        assert sent < 0x4100
        session.send(list(range(sent, sent + 32)), [RECOVERABLE] * 32, at(0))
        bits = 0xFFFF_FFFF if sent else 0xFFFF_FFFE
        header = {"received_count": sent + 32, "stored_base": sent + 1, "stored_bits": bits}
        session.receive_data(ack(**header), at(0))
        sent += 32
    assert sent > 0x3FFF
    assert close_reason(session.take_outputs()) is CloseReason.NO_ACKNOWLEDGMENT
    assert session.unacknowledged() == [0]


def test_a_peer_that_ignores_every_window_is_closed() -> None:
    session = open_acceptor()
    small = EXPRESS * 512
    for _ in range(64):
        session.receive_data(small, at(0))
    outputs = session.take_outputs()
    assert close_reason(outputs) is CloseReason.OVERRUN
    assert sum(len(output.packets) for output in of_type(outputs, Arrived)) == 32_768


@pytest.mark.parametrize("reason", [CloseReason.STOPPING, CloseReason.IDLE])
def test_an_orderly_end_acknowledges_what_is_settled_first(reason: CloseReason) -> None:
    session = open_acceptor()
    receive(session, RECOVERABLE, EXPRESS, RECOVERABLE, settle=False)
    session.settled(2, at(0))
    session.take_outputs()
    session.close(reason, at(1))
    assert session.take_outputs() == [
        Written(ack(received_count=2, stored_base=1, stored_bits=1)),
        Closed(reason),
    ]


def test_a_full_store_acknowledges_nothing_any_more() -> None:
    session = open_acceptor()
    receive(session, RECOVERABLE, EXPRESS, settle=False)
    session.take_outputs()
    session.close(CloseReason.STORE_FULL, at(1))
    assert session.take_outputs() == [Closed(CloseReason.STORE_FULL)]


def test_the_facts_show_since_when_nothing_is_acknowledged() -> None:
    session = open_initiator(window=2)
    assert session.describe()["unheard_since_ms"] is None
    send(session, EXPRESS, RECOVERABLE, now=3_000)
    facts = session.describe()
    assert facts["unheard_since_ms"] == at(3_000).ticks_ms
    assert (facts["state"], facts["in_flight_count"], facts["window"], facts["room"]) == (
        "open",
        2,
        2,
        0,
    )
    session.receive_data(ack(received_count=1, window=2), at(4_000))
    assert session.describe()["unheard_since_ms"] == at(4_000).ticks_ms
    session.receive_data(ack(received_count=2, window=2), at(5_000))
    facts = session.describe()
    assert (facts["unheard_since_ms"], facts["unstored_count"]) == (None, 1)


def test_a_session_knows_its_peer_and_its_role() -> None:
    session = open_acceptor(CONFIG)
    facts = session.describe()
    assert facts["role"] == "acceptor"
    assert facts["remote"] == str(session.remote)
    assert facts["address"] == session.address
