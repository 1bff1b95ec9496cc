"""Numbers are given once; what is not acknowledged in order is sent again, ever more rarely."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.clock import Instant
from openmsmq.model.identity import SequenceId, SequencePoint
from openmsmq.model.queue import OutgoingSequenceStatus
from openmsmq.protocol.config import TransferConfig
from openmsmq.protocol.outgoing_sequence import (
    SEQUENCE_MAX_NUMBER,
    SEQUENCE_OUTSTANDING_MAX_COUNT,
    OutgoingSequence,
)

OLD, CURRENT, NEW = SequenceId(7, 5), SequenceId(8, 5), SequenceId(9, 5)
START_MS, START_S = 50_000, 1_700_000_000
NOW = Instant(START_MS, START_S)
FIRST_ENTRY = 100


def after(seconds: int) -> Instant:
    return Instant(START_MS + seconds * 1000, START_S + seconds)


def sequence(id: SequenceId | None = CURRENT, last_number: int = 0) -> OutgoingSequence:
    return OutgoingSequence(TransferConfig(), id, last_number)


def send(outgoing: OutgoingSequence, count: int, now: Instant = NOW) -> None:
    """Number and send messages; the entry of message n is 100 + n."""
    for _ in range(count):
        point = outgoing.take_number()
        outgoing.sent(point, FIRST_ENTRY + point.number, now)


def entries(*numbers: int) -> list[int]:
    return [FIRST_ENTRY + number for number in numbers]


@pytest.mark.spec("MQQB-3.1.1.5-01", "MQQB-3.1.7.1.3-08")
def test_numbers_follow_each_other() -> None:
    outgoing = sequence(CURRENT, 41)
    assert outgoing.take_number() == SequencePoint(CURRENT, 42, 41)
    assert outgoing.take_number() == SequencePoint(CURRENT, 43, 42)


@pytest.mark.spec("MQQB-3.1.1.5-04", "MQQB-3.1.1.5-05")
def test_a_new_sequence_begins_at_one() -> None:
    outgoing = sequence(CURRENT, 41)
    outgoing.renew(NEW)
    assert outgoing.take_number() == SequencePoint(NEW, 1, 0)
    assert outgoing.take_number() == SequencePoint(NEW, 2, 1)


@pytest.mark.spec("MQQB-3.1.1.3.1-02")
@pytest.mark.parametrize("id", [OLD, CURRENT])
def test_a_sequence_is_never_used_again(id: SequenceId) -> None:
    outgoing = sequence(CURRENT, 41)
    with pytest.raises(AssertionError):
        outgoing.renew(id)


def test_a_new_sequence_is_needed_when_there_is_none() -> None:
    assert sequence(None).needs_renewal(queue_is_empty=False)


def test_a_new_sequence_is_needed_when_all_messages_are_away() -> None:
    outgoing = sequence(CURRENT, 1)
    assert outgoing.needs_renewal(queue_is_empty=True)
    assert not outgoing.needs_renewal(queue_is_empty=False)


def test_a_sequence_that_gave_no_number_is_new_enough() -> None:
    assert not sequence(CURRENT, 0).needs_renewal(queue_is_empty=True)


def test_a_new_sequence_is_needed_when_the_numbers_are_used_up() -> None:
    outgoing = sequence(CURRENT, SEQUENCE_MAX_NUMBER - 1)
    assert not outgoing.needs_renewal(queue_is_empty=False)
    assert outgoing.take_number().number == SEQUENCE_MAX_NUMBER
    assert outgoing.needs_renewal(queue_is_empty=False)
    assert outgoing.status(0).next is None
    with pytest.raises(AssertionError):
        outgoing.take_number()


def test_numbers_that_did_not_reach_the_disk_are_given_again() -> None:
    outgoing = sequence(CURRENT, 41)
    outgoing.take_number()
    outgoing.renew(NEW)
    outgoing.take_number()
    outgoing.restore(CURRENT, 41)
    assert outgoing.take_number() == SequencePoint(CURRENT, 42, 41)


@pytest.mark.spec("MQQB-3.1.1.5-02", "MQQB-3.1.7.1.3-06")
def test_what_is_sent_is_outstanding_once_and_in_order() -> None:
    outgoing = sequence()
    send(outgoing, 3)
    outgoing.sent(SequencePoint(CURRENT, 2, 1), FIRST_ENTRY + 2, after(1))
    outgoing.sent(SequencePoint(CURRENT, 3, 2), FIRST_ENTRY + 3, after(1))
    assert outgoing.outstanding() == entries(1, 2, 3)
    assert outgoing.is_outstanding(FIRST_ENTRY + 3)
    outgoing.gone(FIRST_ENTRY + 3)
    assert not outgoing.is_outstanding(FIRST_ENTRY + 3)


def test_after_a_restart_messages_are_outstanding_when_they_are_sent() -> None:
    outgoing = sequence(CURRENT, 8)
    for number in (5, 8, 6):
        outgoing.sent(SequencePoint(CURRENT, number, 0), FIRST_ENTRY + number, NOW)
    assert outgoing.outstanding() == entries(5, 6, 8)


@pytest.mark.spec("MQQB-3.1.7.1.3-10")
def test_a_message_names_the_nearest_one_before_it_that_is_outstanding() -> None:
    outgoing = sequence()
    assert outgoing.previous_of(1) == 0
    send(outgoing, 5)
    assert [outgoing.previous_of(number) for number in range(1, 7)] == [0, 1, 2, 3, 4, 5]
    outgoing.gone(FIRST_ENTRY + 3)
    outgoing.gone(FIRST_ENTRY + 5)
    outgoing.order_acked(CURRENT, 1, NOW)
    assert [outgoing.previous_of(number) for number in (2, 4, 6)] == [0, 2, 4]


@pytest.mark.spec("MQQB-3.1.1.6.2-08", "MQQB-3.1.5.6-08", "MQQB-3.1.5.6-09")
def test_an_order_acknowledgment_releases_what_it_covers() -> None:
    outgoing = sequence()
    send(outgoing, 5)
    assert outgoing.order_acked(CURRENT, 3, NOW) == entries(1, 2, 3)
    assert outgoing.outstanding() == entries(4, 5)
    assert outgoing.order_acked(CURRENT, 3, NOW) == []
    assert outgoing.order_acked(CURRENT, 1, NOW) == []
    assert outgoing.order_acked(CURRENT, 5, NOW) == entries(4, 5)
    assert outgoing.outstanding() == []


@pytest.mark.parametrize("id", [OLD, NEW])
def test_an_order_acknowledgment_of_another_sequence_releases_nothing(id: SequenceId) -> None:
    outgoing = sequence()
    send(outgoing, 2)
    before = outgoing.status(0)
    assert outgoing.order_acked(id, 2, after(5)) == []
    assert outgoing.status(0) == before
    assert outgoing.outstanding() == entries(1, 2)


def test_an_order_acknowledgment_of_a_number_never_given_releases_nothing() -> None:
    outgoing = sequence()
    send(outgoing, 2)
    assert outgoing.order_acked(CURRENT, 3, NOW) == []
    assert outgoing.status(0).last_acknowledged == SequencePoint(CURRENT, 0, 0)


def test_a_late_order_acknowledgment_leaves_the_next_sequence_alone() -> None:
    outgoing = sequence()
    send(outgoing, 3)
    outgoing.order_acked(CURRENT, 3, NOW)
    outgoing.renew(NEW)
    send(outgoing, 3)
    assert outgoing.order_acked(CURRENT, 3, NOW) == []
    assert outgoing.order_acked(NEW, 3, NOW) == entries(1, 2, 3)


def test_an_acknowledgment_before_a_message_went_again_does_not_release_it() -> None:
    outgoing = sequence(CURRENT, 1)
    assert outgoing.order_acked(CURRENT, 1, NOW) == []
    outgoing.sent(SequencePoint(CURRENT, 1, 0), FIRST_ENTRY + 1, NOW)
    assert outgoing.outstanding() == entries(1)
    assert outgoing.order_acked(CURRENT, 1, NOW) == entries(1)


def test_a_message_given_up_is_no_longer_outstanding() -> None:
    outgoing = sequence()
    send(outgoing, 3)
    outgoing.gone(FIRST_ENTRY + 2)
    outgoing.gone(FIRST_ENTRY + 2)
    outgoing.gone(12345)
    assert outgoing.outstanding() == entries(1, 3)
    assert outgoing.order_acked(CURRENT, 3, NOW) == entries(1, 3)


def test_outstanding_messages_are_bounded() -> None:
    outgoing = sequence()
    send(outgoing, SEQUENCE_OUTSTANDING_MAX_COUNT - 1)
    assert outgoing.can_send
    send(outgoing, 1)
    assert not outgoing.can_send
    outgoing.order_acked(CURRENT, 1, NOW)
    assert outgoing.can_send


def test_a_younger_sequence_waits_until_the_older_one_is_acknowledged() -> None:
    outgoing = sequence(CURRENT, SEQUENCE_MAX_NUMBER - 2)
    send(outgoing, 2)
    outgoing.renew(NEW)
    point = outgoing.take_number()
    assert not outgoing.can_send
    with pytest.raises(AssertionError, match="must wait"):
        outgoing.sent(point, FIRST_ENTRY, NOW)
    outgoing.order_acked(CURRENT, SEQUENCE_MAX_NUMBER - 1, NOW)
    assert not outgoing.can_send
    outgoing.order_acked(CURRENT, SEQUENCE_MAX_NUMBER, NOW)
    assert outgoing.can_send
    outgoing.sent(point, FIRST_ENTRY, NOW)
    assert outgoing.can_send
    assert outgoing.order_acked(NEW, 1, NOW) == [FIRST_ENTRY]


def test_who_acknowledges_the_younger_sequence_has_all_of_the_older_one() -> None:
    """A restart may bring back what was acknowledged; the younger one had begun by then."""
    outgoing = sequence(CURRENT, SEQUENCE_MAX_NUMBER - 2)
    send(outgoing, 2)
    outgoing.renew(NEW)
    outgoing.take_number()
    assert outgoing.order_acked(NEW, 2, NOW) == []
    assert outgoing.order_acked(NEW, 0, NOW) == []
    assert len(outgoing.order_acked(NEW, 1, NOW)) == 2
    assert outgoing.can_send


@pytest.mark.spec("MQQB-3.1.2.6-01", "MQQB-3.1.7.1.3-09")
def test_the_resend_timer_starts_with_the_first_message() -> None:
    outgoing = sequence()
    assert outgoing.next_wake_ms is None
    send(outgoing, 1)
    send(outgoing, 1, after(10))
    assert outgoing.next_wake_ms == after(30).ticks_ms
    assert not outgoing.resend_due(after(29))
    assert outgoing.resend_due(after(30))


@pytest.mark.spec("MQQB-3.1.3.1-01")
def test_pauses_between_resends_grow_to_six_hours() -> None:
    outgoing = sequence()
    send(outgoing, 1)
    now_s, pauses = 0, []
    for _ in range(12):
        wake_ms = outgoing.next_wake_ms
        assert wake_ms is not None
        pauses.append((wake_ms - START_MS) // 1000 - now_s)
        assert outgoing.status(0).resend_interval_s == pauses[-1]
        now_s += pauses[-1]
        assert not outgoing.resend_due(after(now_s - 1))
        assert outgoing.resend_due(after(now_s))
        assert not outgoing.resend_due(after(now_s))
    assert pauses == [30] * 3 + [300] * 3 + [1800] * 3 + [21600] * 3


@pytest.mark.spec("MQQB-3.1.6.5-01")
def test_everything_outstanding_goes_again_when_the_time_is_up() -> None:
    outgoing = sequence()
    send(outgoing, 4)
    outgoing.order_acked(CURRENT, 1, NOW)
    outgoing.gone(FIRST_ENTRY + 3)
    assert outgoing.resend_due(after(30))
    assert outgoing.outstanding() == entries(2, 4)


def test_progress_makes_the_pauses_short_again() -> None:
    outgoing = sequence()
    send(outgoing, 2)
    for seconds in (30, 60, 90):
        assert outgoing.resend_due(after(seconds))
    assert outgoing.next_wake_ms == after(390).ticks_ms
    outgoing.order_acked(CURRENT, 1, after(100))
    assert outgoing.next_wake_ms == after(130).ticks_ms


def test_an_order_acknowledgment_without_progress_leaves_the_pauses_alone() -> None:
    outgoing = sequence()
    send(outgoing, 2)
    outgoing.order_acked(CURRENT, 1, NOW)
    for seconds in (30, 60, 90):
        assert outgoing.resend_due(after(seconds))
    outgoing.order_acked(CURRENT, 1, after(100))
    assert outgoing.next_wake_ms == after(390).ticks_ms


@pytest.mark.spec("MQQB-3.1.5.6-10")
def test_nothing_is_resent_when_everything_is_acknowledged() -> None:
    outgoing = sequence()
    send(outgoing, 2)
    assert outgoing.resend_due(after(30))
    outgoing.order_acked(CURRENT, 2, after(31))
    assert outgoing.next_wake_ms is None
    assert not outgoing.resend_due(after(100_000))
    assert outgoing.status(0).resend_count == 0


def test_nothing_is_resent_when_everything_is_given_up() -> None:
    outgoing = sequence()
    send(outgoing, 2)
    outgoing.gone(FIRST_ENTRY + 1)
    assert outgoing.next_wake_ms is not None
    outgoing.gone(FIRST_ENTRY + 2)
    assert outgoing.next_wake_ms is None
    assert outgoing.status(0).resend_time_s == 0


@pytest.mark.spec("MQQB-3.1.3.2-19", "MQQB-3.1.3.2-20")
def test_a_new_session_makes_the_pauses_short_again() -> None:
    outgoing = sequence()
    send(outgoing, 1)
    for seconds in (30, 60, 90):
        assert outgoing.resend_due(after(seconds))
    outgoing.reconnected(after(200))
    assert outgoing.next_wake_ms == after(230).ticks_ms
    assert outgoing.status(0).resend_count == 0


def test_sessions_that_come_and_go_do_not_put_off_what_is_due() -> None:
    outgoing = sequence()
    send(outgoing, 1)
    for seconds in (10, 20, 29):
        outgoing.reconnected(after(seconds))
        assert outgoing.next_wake_ms == after(30).ticks_ms
        assert outgoing.status(0).resend_time_s == after(30).unix_s
    assert outgoing.resend_due(after(30))


def test_a_new_session_without_messages_starts_no_timer() -> None:
    outgoing = sequence()
    outgoing.reconnected(NOW)
    assert outgoing.next_wake_ms is None


@pytest.mark.spec("MQQB-3.1.3.2-18", "MQQB-3.1.3.2-19", "MQQB-3.1.3.2-20", "MQQB-3.1.3.2-21")
def test_the_status_of_a_new_sequence_says_that_nothing_happened() -> None:
    assert sequence(None).status(0) == OutgoingSequenceStatus(resend_interval_s=30)


def status_of_six() -> OutgoingSequenceStatus:
    """Of six messages two are acknowledged, one is gone, and the rest was sent again."""
    outgoing = sequence()
    send(outgoing, 6)
    outgoing.gone(FIRST_ENTRY + 5)
    outgoing.order_acked(CURRENT, 2, after(5))
    outgoing.order_acked(CURRENT, 1, after(8))
    assert outgoing.resend_due(after(40))
    return outgoing.status(17)


@pytest.mark.spec("MQQB-3.1.5.6-03", "MQQB-3.1.5.6-07", "MQQB-3.1.5.6-11")
def test_the_status_tells_how_far_the_messages_have_come() -> None:
    assert status_of_six() == OutgoingSequenceStatus(
        first_unacknowledged=SequencePoint(CURRENT, 3, 0),
        last_unacknowledged=SequencePoint(CURRENT, 6, 4),
        last_acknowledged=SequencePoint(CURRENT, 2, 1),
        next=SequencePoint(CURRENT, 7, 6),
        last_ack_time_s=START_S + 8,
        last_ack_count=2,
        unacknowledged_count=3,
        unread_count=17,
        resend_count=1,
        resend_interval_s=30,
        resend_time_s=START_S + 40 + 30,
    )


@pytest.mark.parametrize(
    ("part", "value"),
    [
        pytest.param(part, value, id=part, marks=pytest.mark.spec(f"MQQB-3.1.5.6-{number}"))
        for part, value, number in (
            ("last_ack_time_s", START_S + 8, 16),
            ("last_ack_count", 2, 17),
            ("unacknowledged_count", 3, 18),
            ("resend_interval_s", 30, 19),
            ("first_unacknowledged", SequencePoint(CURRENT, 3, 0), 20),
            ("last_unacknowledged", SequencePoint(CURRENT, 6, 4), 21),
            ("last_acknowledged", SequencePoint(CURRENT, 2, 1), 22),
            ("resend_time_s", START_S + 40 + 30, 25),
        )
    ],
)
def test_each_part_of_the_status_is_what_its_name_says(part: str, value: object) -> None:
    assert getattr(status_of_six(), part) == value


@dataclass
class Plain:
    """The outstanding messages as a plain list of (number, entry)."""

    messages: list[tuple[int, int]] = field(default_factory=list)

    def previous_of(self, number: int) -> int:
        return max((n for n, _ in self.messages if n < number), default=0)


@given(st.lists(st.tuples(st.sampled_from("sagr"), st.integers(0, 12)), max_size=60))
def test_it_behaves_like_a_plain_list(steps: list[tuple[str, int]]) -> None:
    outgoing, plain = sequence(), Plain()
    for step, value in steps:
        if step == "s":
            send(outgoing, 1)
            plain.messages.append((outgoing.last_number, FIRST_ENTRY + outgoing.last_number))
        elif step == "a" and value <= outgoing.last_number:
            released = [entry for number, entry in plain.messages if number <= value]
            assert outgoing.order_acked(CURRENT, value, NOW) == released
            plain.messages = [pair for pair in plain.messages if pair[0] > value]
        elif step == "g":
            outgoing.gone(FIRST_ENTRY + value)
            plain.messages = [pair for pair in plain.messages if pair[1] != FIRST_ENTRY + value]
        elif step == "r" and any(number == value for number, _ in plain.messages):
            outgoing.sent(SequencePoint(CURRENT, value, 0), FIRST_ENTRY + value, NOW)
        assert outgoing.outstanding() == [entry for _, entry in plain.messages]
        for number in range(1, 15):
            assert outgoing.previous_of(number) == plain.previous_of(number)
        assert (outgoing.next_wake_ms is None) == (not plain.messages)
