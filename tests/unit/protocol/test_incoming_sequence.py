"""Transactional messages are taken once and in order, and acknowledged when they are on disk."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.clock import Instant
from openmsmq.model.identity import SequenceId, SequencePoint
from openmsmq.protocol.config import TransferConfig
from openmsmq.protocol.incoming_sequence import (
    ORDER_ACK_AFTER_COUNT,
    IncomingSequence,
    Verdict,
)

NOTHING = SequenceId(0, 0)
OLD, CURRENT, NEW = SequenceId(7, 5), SequenceId(8, 5), SequenceId(1, 6)
START_MS = 50_000


def sequence(number: int = 3, id: SequenceId = CURRENT) -> IncomingSequence:
    return IncomingSequence(TransferConfig(), id, number)


def at(ticks_ms: int) -> Instant:
    return Instant(START_MS + ticks_ms, 1_700_000_000 + ticks_ms // 1000)


def take(incoming: IncomingSequence, number: int, ticks_ms: int, *, settle: bool = True) -> None:
    assert incoming.judge(CURRENT, number, number - 1) is Verdict.ACCEPT
    incoming.assume(CURRENT, number)
    incoming.heard(at(ticks_ms))
    if settle:
        incoming.settle(CURRENT, number)


@pytest.mark.parametrize(
    ("id", "number", "previous", "verdict"),
    [
        pytest.param(CURRENT, 4, 3, Verdict.ACCEPT, id="the next one"),
        pytest.param(CURRENT, 9, 3, Verdict.ACCEPT, id="those between have expired"),
        pytest.param(CURRENT, 9, 0, Verdict.ACCEPT, id="all before are acknowledged or gone"),
        pytest.param(CURRENT, 3, 2, Verdict.DUPLICATE, id="the last one again"),
        pytest.param(CURRENT, 1, 0, Verdict.DUPLICATE, id="an earlier one again"),
        pytest.param(CURRENT, 5, 4, Verdict.GAP, id="one is missing"),
        pytest.param(NEW, 1, 0, Verdict.ACCEPT, id="a younger sequence"),
        pytest.param(NEW, 4, 0, Verdict.ACCEPT, id="a younger one whose first messages expired"),
        pytest.param(NEW, 2, 1, Verdict.GAP, id="the first of a younger sequence is missing"),
        pytest.param(NEW, 0, 0, Verdict.GAP, id="not numbered"),
        pytest.param(OLD, 4, 3, Verdict.STALE, id="an older sequence"),
        pytest.param(OLD, 1, 0, Verdict.STALE, id="the first of an older sequence"),
    ],
)
def test_a_message_is_judged_by_its_place(
    id: SequenceId, number: int, previous: int, verdict: Verdict
) -> None:
    assert sequence().judge(id, number, previous) is verdict


ids = st.builds(SequenceId, st.integers(0, 2), st.integers(0, 2))
numbers = st.integers(0, 4)


@given(ids, numbers, ids, numbers, numbers)
def test_exactly_what_follows_is_accepted(
    current: SequenceId, last: int, id: SequenceId, number: int, previous: int
) -> None:
    follows = current == id and number > last >= previous
    begins = (current.timestamp, current.ordinal) < (id.timestamp, id.ordinal) and previous == 0
    verdict = sequence(last, current).judge(id, number, previous)
    assert (verdict is Verdict.ACCEPT) == (follows or (begins and number > 0))


def test_judging_changes_nothing() -> None:
    incoming = sequence()
    assert [incoming.judge(CURRENT, 4, 3) for _ in range(3)] == [Verdict.ACCEPT] * 3


def test_what_is_assumed_decides_about_the_next_message() -> None:
    incoming = sequence()
    incoming.assume(CURRENT, 4)
    assert incoming.judge(CURRENT, 4, 3) is Verdict.DUPLICATE
    assert incoming.judge(CURRENT, 5, 4) is Verdict.ACCEPT
    incoming.assume(NEW, 1)
    assert incoming.judge(CURRENT, 5, 4) is Verdict.STALE
    assert incoming.judge(NEW, 2, 1) is Verdict.ACCEPT
    assert (incoming.id, incoming.number) == (CURRENT, 3)


def test_a_refusing_disk_takes_back_what_was_assumed() -> None:
    incoming = sequence()
    incoming.assume(CURRENT, 4)
    incoming.settle(CURRENT, 4)
    incoming.assume(NEW, 1)
    incoming.forget_assumed()
    assert incoming.judge(CURRENT, 4, 3) is Verdict.DUPLICATE
    assert incoming.judge(CURRENT, 5, 4) is Verdict.ACCEPT
    assert incoming.judge(NEW, 1, 0) is Verdict.ACCEPT


def test_what_is_on_disk_never_goes_back() -> None:
    incoming = sequence()
    for id, number in [(NEW, 2), (NEW, 1), (CURRENT, 9)]:
        incoming.settle(id, number)
    assert (incoming.id, incoming.number) == (NEW, 2)


def test_what_reached_the_disk_after_all_counts_as_assumed() -> None:
    incoming = sequence()
    incoming.assume(CURRENT, 4)
    incoming.forget_assumed()
    incoming.settle(CURRENT, 4)
    assert incoming.judge(CURRENT, 4, 3) is Verdict.DUPLICATE
    incoming.settle(NEW, 1)
    assert incoming.judge(NEW, 1, 0) is Verdict.DUPLICATE


@pytest.mark.spec("MQQB-3.1.5.8.6-07")
def test_gaps_are_counted_until_a_message_is_taken() -> None:
    incoming = sequence()
    incoming.reject()
    incoming.reject()
    assert incoming.rejected_count == 2
    incoming.assume(CURRENT, 4)
    assert incoming.rejected_count == 0


@pytest.mark.spec("MQQB-3.1.5.8.6-08")
def test_the_last_access_is_when_a_message_came() -> None:
    incoming = sequence()
    incoming.heard(at(7_000))
    assert incoming.last_access_time_s == at(7_000).unix_s


@pytest.mark.spec(
    "MQQB-3.1.1.6.2-06",
    "MQQB-3.1.2.7-01",
    "MQQB-3.1.3.2-28",
    "MQQB-3.1.5.8.6-03",
)
def test_an_order_acknowledgment_follows_a_message_after_half_a_second() -> None:
    incoming = sequence()
    assert incoming.next_wake_ms is None
    take(incoming, 4, 0)
    assert incoming.next_wake_ms == START_MS + 500
    assert incoming.order_ack_due(at(499)) is None
    assert incoming.order_ack_due(at(500)) == SequencePoint(CURRENT, 4, 3)


def test_an_order_acknowledgment_is_given_once() -> None:
    incoming = sequence()
    take(incoming, 4, 0)
    assert incoming.order_ack_due(at(600)) is not None
    assert incoming.order_ack_due(at(60_000)) is None
    assert incoming.next_wake_ms is None


def test_a_message_that_is_not_taken_is_answered_with_what_there_is() -> None:
    incoming = sequence()
    incoming.heard(at(0))
    assert incoming.order_ack_due(at(500)) == SequencePoint(CURRENT, 3, 2)


@pytest.mark.spec("MQQB-3.1.1.6.2-05", "MQQB-3.1.5.8.6-02")
def test_further_messages_put_the_order_acknowledgment_off() -> None:
    incoming = sequence()
    for index in range(20):
        take(incoming, 4 + index, 400 * index)
        assert incoming.order_ack_due(at(400 * index + 399)) is None
    assert incoming.next_wake_ms == START_MS + 400 * 19 + 500
    assert incoming.order_ack_due(at(400 * 19 + 500)) == SequencePoint(CURRENT, 23, 22)


@pytest.mark.spec("MQQB-3.1.3.2-30", "MQQB-3.1.6.9-02")
def test_under_load_ten_seconds_pass_between_order_acknowledgments() -> None:
    incoming = sequence(0)
    acknowledged_ms = []
    for index in range(250):
        ticks_ms = 100 * index
        if incoming.order_ack_due(at(ticks_ms)) is not None:
            acknowledged_ms.append(ticks_ms)
        take(incoming, 1 + index, ticks_ms)
    # The last message that puts it off comes just before ten seconds are over.
    assert acknowledged_ms == [10_400, 20_800]


def test_many_settled_messages_are_acknowledged_without_waiting() -> None:
    incoming = sequence(0)
    for number in range(1, ORDER_ACK_AFTER_COUNT):
        take(incoming, number, 0)
    assert incoming.order_ack_due(at(0)) is None
    take(incoming, ORDER_ACK_AFTER_COUNT, 0)
    assert incoming.next_wake_ms == START_MS
    point = SequencePoint(CURRENT, ORDER_ACK_AFTER_COUNT, ORDER_ACK_AFTER_COUNT - 1)
    assert incoming.order_ack_due(at(0)) == point
    take(incoming, ORDER_ACK_AFTER_COUNT + 1, 1)
    assert incoming.order_ack_due(at(1)) is None


def test_a_younger_sequence_begins_to_count_anew() -> None:
    incoming = sequence(ORDER_ACK_AFTER_COUNT)
    incoming.assume(NEW, ORDER_ACK_AFTER_COUNT)
    incoming.heard(at(0))
    incoming.settle(NEW, ORDER_ACK_AFTER_COUNT - 1)
    assert incoming.order_ack_due(at(0)) is None
    incoming.settle(NEW, ORDER_ACK_AFTER_COUNT)
    assert incoming.order_ack_due(at(0)) is not None


def test_only_what_is_on_disk_is_acknowledged() -> None:
    incoming = sequence()
    take(incoming, 4, 0)
    take(incoming, 5, 0, settle=False)
    assert incoming.order_ack_due(at(500)) == SequencePoint(CURRENT, 4, 3)


def test_a_slow_disk_does_not_lose_the_order_acknowledgment() -> None:
    incoming = sequence()
    take(incoming, 4, 0, settle=False)
    assert incoming.order_ack_due(at(500)) == SequencePoint(CURRENT, 3, 2)
    incoming.settle(CURRENT, 4)
    assert incoming.next_wake_ms == START_MS + 1_000
    assert incoming.order_ack_due(at(1_000)) == SequencePoint(CURRENT, 4, 3)
    assert incoming.next_wake_ms is None


def test_nothing_is_acknowledged_before_a_message_is_on_disk() -> None:
    incoming = sequence(0, NOTHING)
    take(incoming, 1, 0, settle=False)
    assert incoming.order_ack_due(at(500)) is None
    incoming.forget_assumed()
    assert incoming.order_ack_due(at(1_000)) is None
    assert incoming.next_wake_ms is None


def test_waking_early_or_without_a_message_changes_nothing() -> None:
    incoming = sequence()
    assert incoming.order_ack_due(at(0)) is None
    take(incoming, 4, 0)
    for ticks_ms in (0, 100, 100, 499):
        assert incoming.order_ack_due(at(ticks_ms)) is None
    assert incoming.next_wake_ms == START_MS + 500
