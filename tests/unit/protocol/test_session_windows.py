"""What is in flight, what is acknowledged, and how windows shrink and grow."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from openmsmq.protocol.session_windows import (
    SESSION_IN_FLIGHT_MAX_BYTES,
    UNSETTLED_MAX_BYTES,
    UNSETTLED_MAX_COUNT,
    Backlog,
    ReceiveWindow,
    RecoveringWindow,
    SendWindow,
)
from openmsmq.wire.headers.session import SessionHeader, read
from tests.unit.protocol.session_checks import at, message

EXPRESS = message(1)
RECOVERABLE = message(2, recoverable=True)


@given(st.lists(st.tuples(st.lists(st.integers(0, 50)), st.integers(0, 60))))
def test_a_backlog_knows_how_much_waits(steps: list[tuple[list[int], int]]) -> None:
    backlog = Backlog()
    model: list[int] = []
    for sizes, wanted in steps:
        backlog.add([bytes(size) for size in sizes])
        model += sizes
        count = min(wanted, len(model))
        assert backlog.drop(count) == sum(model[:count])
        del model[:count]
        assert (len(backlog), backlog.size_bytes) == (len(model), sum(model))


def test_a_window_that_was_made_smaller_doubles_every_30_seconds() -> None:
    window = RecoveringWindow(64)
    assert window.recover_at_ms is None
    window.adopt(3, at(0))
    seen = []
    while window.recover_at_ms is not None:
        due_ms = window.recover_at_ms - at(0).ticks_ms
        window.wake(at(due_ms - 1))
        before = window.current
        window.wake(at(due_ms))
        seen.append((due_ms, before, window.current))
    assert seen == [
        (30_000, 3, 6),
        (60_000, 6, 12),
        (90_000, 12, 24),
        (120_000, 24, 48),
        (150_000, 48, 64),
    ]


def test_a_window_grows_for_all_the_time_that_has_passed() -> None:
    window = RecoveringWindow(64)
    window.adopt(1, at(0))
    window.wake(at(95_000))
    assert window.current == 8
    window.wake(at(10_000_000))
    assert (window.current, window.recover_at_ms) == (64, None)


def test_a_window_is_cut_at_once_and_grows_only_to_where_it_may() -> None:
    window = RecoveringWindow(64)
    window.aim(2, at(0))
    assert (window.current, window.recover_at_ms) == (2, None)
    window.aim(5, at(0))
    assert window.current == 2
    window.wake(at(60_000))
    assert (window.current, window.recover_at_ms) == (5, None)


class FlightModel:
    """What each packet that was sent is, kept in the plainest way."""

    def __init__(self) -> None:
        self.packets: list[tuple[int, bool]] = []
        self.covered = 0
        self.stored: set[int] = set()
        self.done: list[int] = []

    @property
    def recoverable(self) -> list[int]:
        return [token for token, recoverable in self.packets if recoverable]

    def expected_done(self) -> set[int]:
        return {
            token
            for place, (token, recoverable) in enumerate(self.packets)
            if (token in self.stored if recoverable else place < self.covered)
        }


@given(st.data())
def test_express_packets_are_done_when_received_and_recoverable_ones_when_stored(
    data: st.DataObject,
) -> None:
    window = SendWindow(64)
    model = FlightModel()
    for _ in range(data.draw(st.integers(1, 12))):
        kinds = data.draw(st.lists(st.booleans(), max_size=window.room))
        first = len(model.packets)
        tokens = list(range(first, first + len(kinds)))
        window.sent(tokens, [RECOVERABLE if kind else EXPRESS for kind in kinds])  # type: ignore[arg-type]
        model.packets += zip(tokens, kinds, strict=True)
        model.covered += data.draw(st.integers(0, window.in_flight_count))
        numbers = model.recoverable
        base = data.draw(st.integers(1, max(1, len(numbers))))
        span = min(32, len(numbers) - base + 1)
        bits = data.draw(st.integers(0, (1 << span) - 1))
        model.stored |= {numbers[base - 1 + k] for k in range(span) if bits >> k & 1}
        done = window.acknowledge(SessionHeader(model.covered, base, bits))
        assert done is not None
        model.done += done  # type: ignore[arg-type]
        assert len(set(model.done)) == len(model.done)
        assert set(model.done) == model.expected_done()
        assert window.in_flight_count == len(model.packets) - model.covered
        waiting = [token for token, _ in model.packets if token not in set(model.done)]
        assert window.unacknowledged() == waiting


@given(
    st.integers(0, 70_000),
    st.integers(-4, 6) | st.integers(0, 0xFFFF),
    st.integers(-40, 8) | st.integers(0, 0xFFFF),
    st.integers(0, 0b111) | st.integers(0, 0xFFFF_FFFF),
)
@example(before=70_000, ahead=0, base_ahead=3, bits=1)
@example(before=0, ahead=0, base_ahead=0, bits=0b10)
def test_an_acknowledgment_of_what_was_never_sent_is_refused_and_changes_nothing(
    before: int, ahead: int, base_ahead: int, bits: int
) -> None:
    received, base = (before + ahead) & 0xFFFF, (before + base_ahead) & 0xFFFF
    window = advanced(before)
    window.sent([1, 2, 3], [RECOVERABLE, EXPRESS, RECOVERABLE])
    numbers = {(before + 1) & 0xFFFF: 1, (before + 2) & 0xFFFF: 3}
    older = {(before - k) & 0xFFFF for k in range(min(before, 0x7FFE))}
    named = {(base + k) & 0xFFFF for k in range(32) if bits >> k & 1}
    covered = (received - before) & 0xFFFF
    good = covered <= 3 and named <= set(numbers) | older
    done = window.acknowledge(SessionHeader(received, base, bits))
    assert (done is not None) == good
    if done is None:
        assert window.unacknowledged() == [1, 2, 3]
        assert window.in_flight_count == 3


def advanced(count: int) -> SendWindow:
    """A window through which so many recoverable packets have gone already."""
    window = SendWindow(64)
    window.sent_count = window.recoverable_sent_count = count
    window._covered_count = count  # noqa: SLF001
    return window


@pytest.mark.parametrize(
    ("sent", "base", "bits", "done"),
    [
        # The newest, and one that was never sent, with the newest or alone.
        (3, 3, 0b1, [3]),
        (3, 3, 0b11, None),
        (3, 3, 0b10, None),
        (3, 4, 0b1, None),
        (3, 1, 0b111, [1, 2, 3]),
        (3, 1, 0b1111, None),
        (3, 2, 0b110, None),
        # The first, and one before it.
        (3, 1, 0b1, [1]),
        (3, 0, 0b10, [1]),
        (3, 0, 0b1, None),
        (3, 0, 0b11, None),
        (3, 0xFFFF, 0b100, [1]),
        (3, 0xFFFF, 0b10, None),
        # Half of all numbers lie behind; what lies further is ahead, and was never sent.
        (0x9000, 0x9000 - 0x7FFF, 0b1, []),
        (0x9000, 0x9000 - 0x8000, 0b1, None),
        (0x8000, 1, 0b1, []),
        # Numbers begin again behind 65,535.
        (0x10000, 0, 0b1, [0x10000]),
        (0x10000, 0xFFFF, 0b11, [0xFFFF, 0x10000]),
        (0x10000, 0xFFFF, 0b111, None),
        (0x10000, 1, 0b1, None),
    ],
)
def test_what_was_stored_was_sent_before(
    sent: int, base: int, bits: int, done: list[int] | None
) -> None:
    """Literal cases at both ends; tokens are the numbers of the packets, the last three wait."""
    window = advanced(max(sent - 3, 0))
    tokens = list(range(window.sent_count + 1, sent + 1))
    window.sent(tokens, [RECOVERABLE] * len(tokens))  # type: ignore[arg-type]
    assert window.acknowledge(SessionHeader(sent & 0xFFFF, base & 0xFFFF, bits)) == done
    left = [token for token in tokens if token not in (done or ())]
    assert window.unacknowledged() == left


def test_a_lower_number_alone_stores_nothing() -> None:
    window = SendWindow(64)
    window.sent([1, 2, 3], [RECOVERABLE] * 3)
    assert window.acknowledge(SessionHeader(3, 3, 0b1)) == [3]
    assert window.unacknowledged() == [1, 2]
    assert window.acknowledge(SessionHeader(3, 2, 0)) == []
    assert window.unacknowledged() == [1, 2]


def test_bytes_in_flight_stop_sending_until_they_are_received() -> None:
    window = SendWindow(64)
    large = message(body=bytes(SESSION_IN_FLIGHT_MAX_BYTES // 5))
    window.sent([0, 1, 2, 3], [large] * 4)
    assert window.room == 60
    assert 0 < window.room_bytes < len(large)
    window.sent([4], [large])
    assert (window.room, window.room_bytes) == (0, 0)
    window.acknowledge(SessionHeader(2))
    assert window.room == 61


@pytest.mark.parametrize(
    ("pile", "overrun"),
    [
        (lambda: [EXPRESS] * UNSETTLED_MAX_COUNT, False),
        (lambda: [EXPRESS] * (UNSETTLED_MAX_COUNT + 1), True),
        (lambda: [bytes(1 << 22)] * (UNSETTLED_MAX_BYTES >> 22), False),
        (lambda: [bytes(1 << 22)] * (UNSETTLED_MAX_BYTES >> 22) + [EXPRESS], True),
    ],
    ids=["many", "too many", "much", "too much"],
)
def test_what_waits_to_be_settled_is_bounded(
    pile: Callable[[], list[bytes]], overrun: bool
) -> None:
    window = ReceiveWindow(64)
    window.arrived(pile(), at(0))
    assert window.is_overrun == overrun


@pytest.mark.spec("MQMQ-2.2.20.4-01", "MQMQ-2.2.20.4-02", "MQMQ-2.2.20.4-03", "MQMQ-2.2.20.4-04")
@given(st.lists(st.tuples(st.lists(st.booleans(), max_size=80), st.integers(0, 100))))
def test_headers_tell_what_is_settled_in_order_and_each_bit_once(
    steps: list[tuple[list[bool], int]],
) -> None:
    window = ReceiveWindow(64)
    kinds: list[bool] = []
    settled = 0
    told = 0
    for new, wanted in steps:
        window.arrived([RECOVERABLE if kind else EXPRESS for kind in new], at(0))
        kinds += new
        count = min(wanted, len(kinds) - settled)
        window.settle(count, at(0))
        settled += count
        stored = sum(kinds[:settled])
        while True:
            header, _ = read(window.header(5, 6, at(0)), 0)
            fresh = min(32, stored - told)
            assert header.stored_bits == (1 << fresh) - 1
            assert header.stored_base == ((told + 1) & 0xFFFF if fresh else 0)
            assert header.received_count == settled
            told += fresh
            if told == stored:
                break
            assert window.has_more_stored
        assert not window.has_more_stored
    assert (window.received_count, window.recoverable_received_count) == (len(kinds), sum(kinds))
