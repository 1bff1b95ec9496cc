"""Messages that came already are known, for a while and up to a number."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from openmsmq.model.clock import Instant
from openmsmq.model.identity import Guid, MessageId
from openmsmq.protocol.duplicates import DuplicateFilter

KEPT_MS = 1_800_000
START_MS = 50_000
ALPHA, BETA = Guid(b"A" * 16), Guid(b"B" * 16)


def at(ticks_ms: int) -> Instant:
    return Instant(START_MS + ticks_ms, 1_700_000_000 + ticks_ms // 1000)


def key(number: int, source: Guid = ALPHA) -> bytes:
    return MessageId(source, number).to_bytes()


def keys(*numbers: int) -> list[bytes]:
    return [key(number) for number in numbers]


def known(duplicates: DuplicateFilter, numbers: range) -> list[int]:
    return [number for number in numbers if key(number) in duplicates]


def filter_of(max_count: int = 10) -> DuplicateFilter:
    return DuplicateFilter(max_count, KEPT_MS)


def test_a_message_that_comes_again_and_again_needs_no_more_room() -> None:
    duplicates = filter_of()
    duplicates.note(keys(*range(10)), at(0))
    tracemalloc.start()
    try:
        for moment in range(50_000):
            duplicates.refresh(key(moment % 10), at(moment))
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most_bytes < 1_000_000
    assert len(duplicates) == 10


@pytest.mark.spec("MQQB-3.1.1.3-05", "MQQB-3.1.3.1-02")
def test_at_first_nothing_is_known() -> None:
    duplicates = filter_of()
    assert key(1) not in duplicates
    assert len(duplicates) == 0
    assert duplicates.next_wake_ms is None
    assert duplicates.expired(at(0)) == []


@pytest.mark.spec("MQQB-3.1.5.8.1-01")
def test_a_message_that_came_is_known() -> None:
    duplicates = filter_of()
    duplicates.note(keys(1, 2), at(0))
    assert known(duplicates, range(4)) == [1, 2]


def test_messages_of_different_senders_may_have_the_same_number() -> None:
    duplicates = filter_of()
    duplicates.note([key(1, ALPHA)], at(0))
    assert key(1, BETA) not in duplicates


@pytest.mark.spec("MQQB-3.1.1.3-04")
def test_the_oldest_fall_out_when_there_are_too_many() -> None:
    duplicates = filter_of(max_count=4)
    duplicates.note(keys(1, 2, 3), at(0))
    duplicates.note(keys(4, 5, 6), at(0))
    assert known(duplicates, range(9)) == [3, 4, 5, 6]
    duplicates.note(keys(*range(10, 20)), at(0))
    assert known(duplicates, range(30)) == [16, 17, 18, 19]


@pytest.mark.spec("MQQB-3.1.2.8-01", "MQQB-3.1.3.1-03", "MQQB-3.1.6.7-01", "MQQB-3.1.6.7-02")
def test_what_is_older_than_the_period_is_forgotten_when_it_is_over() -> None:
    duplicates = filter_of()
    duplicates.note(keys(1), at(0))
    duplicates.note(keys(2), at(1_000))
    assert duplicates.next_wake_ms == START_MS + KEPT_MS
    duplicates.expired(at(KEPT_MS - 1))
    assert known(duplicates, range(4)) == [1, 2]
    duplicates.expired(at(KEPT_MS + 500))
    assert known(duplicates, range(4)) == [2]


@pytest.mark.spec("MQQB-3.1.6.7-03")
def test_the_cleanup_goes_on_until_nothing_is_left() -> None:
    duplicates = filter_of()
    duplicates.note(keys(1), at(0))
    duplicates.note(keys(2), at(1_000))
    duplicates.expired(at(KEPT_MS + 500))
    assert duplicates.next_wake_ms == START_MS + 2 * KEPT_MS + 500
    duplicates.expired(at(2 * KEPT_MS + 500))
    assert duplicates.next_wake_ms is None
    duplicates.note(keys(3), at(3 * KEPT_MS))
    assert duplicates.next_wake_ms == START_MS + 4 * KEPT_MS


@pytest.mark.spec("MQQB-3.1.5.8.1-02")
def test_a_message_that_came_again_is_remembered_from_then_on() -> None:
    duplicates = filter_of(max_count=3)
    duplicates.note(keys(1, 2, 3), at(0))
    duplicates.refresh(key(1), at(10_000))
    duplicates.refresh(key(9), at(10_000))
    duplicates.note(keys(4), at(10_000))
    assert known(duplicates, range(10)) == [1, 3, 4]
    duplicates.expired(at(KEPT_MS + 5_000))
    assert known(duplicates, range(10)) == [1, 4]


def test_a_record_is_given_when_its_last_message_is_forgotten() -> None:
    duplicates = filter_of(max_count=3)
    duplicates.note(keys(1, 2), at(0), record=70)
    duplicates.note(keys(3, 4), at(0), record=71)
    assert duplicates.expired(at(0)) == []
    duplicates.note(keys(5), at(7))
    assert duplicates.next_wake_ms == at(7).ticks_ms
    assert duplicates.expired(at(7)) == [70]
    assert duplicates.expired(at(7)) == []
    duplicates.expired(at(KEPT_MS + 1))
    assert known(duplicates, range(9)) == [5]


def test_records_are_given_when_their_time_is_over() -> None:
    duplicates = filter_of()
    duplicates.note(keys(1, 2), at(0), record=70)
    duplicates.note(keys(3), at(5_000), record=71)
    assert duplicates.expired(at(KEPT_MS + 1)) == [70]
    assert duplicates.expired(at(2 * KEPT_MS + 1)) == [71]


def test_a_record_lives_as_long_as_a_message_in_it_that_came_again() -> None:
    duplicates = filter_of()
    duplicates.note(keys(1, 2), at(0), record=70)
    duplicates.refresh(key(2), at(5_000))
    assert duplicates.expired(at(KEPT_MS + 1)) == []
    assert duplicates.expired(at(2 * KEPT_MS + 1)) == [70]


def test_a_batch_that_the_disk_refused_is_taken_back() -> None:
    duplicates = filter_of()
    duplicates.note(keys(1), at(0), record=70)
    duplicates.note(keys(2, 3), at(0), record=71)
    duplicates.refresh(key(3), at(1))
    duplicates.forget(71)
    assert known(duplicates, range(9)) == [1]
    duplicates.forget(70)
    duplicates.forget(99)
    assert len(duplicates) == 0
    assert duplicates.next_wake_ms is None
    assert duplicates.expired(at(3 * KEPT_MS)) == []


def test_a_record_without_messages_is_given_at_once() -> None:
    duplicates = filter_of()
    duplicates.note([], at(0), record=70)
    assert duplicates.expired(at(0)) == [70]
    assert duplicates.next_wake_ms is None


class Comparison(RuleBasedStateMachine):
    """The filter against a plain list of [identifier, time, record], the oldest first."""

    def __init__(self) -> None:
        super().__init__()
        self.duplicates = filter_of(max_count=6)
        self.rows: list[tuple[int, int, int | None]] = []
        self.records: set[int] = set()
        self.record = 0
        self.ticks_ms = 0
        self.cleanup_at_ms: int | None = None

    @rule(numbers=st.lists(st.integers(0, 12), max_size=8), recorded=st.booleans())
    def note(self, numbers: list[int], recorded: bool) -> None:
        record = None
        if recorded:
            self.record = record = self.record + 1
            self.records.add(record)
        self.duplicates.note(keys(*numbers), at(self.ticks_ms), record)
        for number in numbers:
            self.rows = [row for row in self.rows if row[0] != number]
            self.rows.append((number, self.ticks_ms, record))
        self.rows = self.rows[-6:]
        if self.rows and self.cleanup_at_ms is None:
            self.cleanup_at_ms = self.ticks_ms + KEPT_MS

    @rule(number=st.integers(0, 12))
    def refresh(self, number: int) -> None:
        self.duplicates.refresh(key(number), at(self.ticks_ms))
        for row in [row for row in self.rows if row[0] == number]:
            self.rows.remove(row)
            self.rows.append((number, self.ticks_ms, row[2]))

    @rule(back=st.integers(0, 3))
    def forget(self, back: int) -> None:
        record = self.record - back
        if any(row[2] == record for row in self.rows):
            self.duplicates.forget(record)
            self.rows = [row for row in self.rows if row[2] != record]
            self.records.discard(record)
            if not self.rows:
                self.cleanup_at_ms = None

    @rule(pause_ms=st.sampled_from([1, 1_000, KEPT_MS // 2, KEPT_MS]))
    def time_passes(self, pause_ms: int) -> None:
        self.ticks_ms += pause_ms
        if self.cleanup_at_ms is not None and self.ticks_ms >= self.cleanup_at_ms:
            self.rows = [row for row in self.rows if self.ticks_ms - row[1] <= KEPT_MS]
            self.cleanup_at_ms = self.ticks_ms + KEPT_MS if self.rows else None
        expired = self.duplicates.expired(at(self.ticks_ms))
        held = {row[2] for row in self.rows}
        assert sorted(expired) == sorted(self.records - held)
        self.records -= set(expired)

    @invariant()
    def it_knows_what_the_list_holds(self) -> None:
        assert known(self.duplicates, range(13)) == sorted(row[0] for row in self.rows)
        assert len(self.duplicates) == len(self.rows)

    @invariant()
    def it_wakes_for_the_cleanup_and_for_records(self) -> None:
        wake_ms = self.duplicates.next_wake_ms
        if self.records - {row[2] for row in self.rows}:
            assert wake_ms is not None
            assert wake_ms <= START_MS + self.ticks_ms
        else:
            assert wake_ms == (self.cleanup_at_ms and START_MS + self.cleanup_at_ms)


TestComparison = Comparison.TestCase
TestComparison.settings = settings(max_examples=100, stateful_step_count=30)
