"""What a task does while it reads: values are made ahead of those who use them."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.spark.source.queue_range import QueueRange
from openmsmq.spark.source.reading import RANGE_MIN_SPAN, ahead, split

WAIT_S = 10


@given(st.lists(st.integers(), max_size=5))
def test_values_that_are_made_ahead_keep_their_order(values: list[int]) -> None:
    assert list(ahead(ahead(iter(values)))) == values


def test_the_next_value_is_made_while_one_is_used() -> None:
    made = threading.Event()

    def values() -> Iterator[int]:
        yield 1
        made.set()
        yield 2

    found = ahead(values())
    assert next(found) == 1
    assert made.wait(WAIT_S)
    assert list(found) == [2]


def test_what_goes_wrong_ahead_is_raised_in_its_place() -> None:
    def values() -> Iterator[int]:
        yield 1
        raise OSError("gone")

    found = ahead(values())
    assert next(found) == 1
    with pytest.raises(OSError, match="gone"):
        next(found)


def test_nothing_is_made_any_more_when_nobody_wants_it() -> None:
    before = threading.active_count()
    endless = ahead(ahead(iter(int, 1)))
    assert next(endless) == 0
    endless.close()
    del endless
    assert threading.active_count() == before


@given(
    st.integers(0, 1 << 50),
    st.integers(0, 20 * RANGE_MIN_SPAN),
    st.integers(1, 9),
)
def test_a_range_is_shared_without_gaps(start: int, span: int, count: int) -> None:
    whole = QueueRange("127.0.0.1", "q", start, start + span, "its identity", "reader", "word")
    ranges = split(whole, count)
    assert len(ranges) <= count
    edges = [edge for part in ranges for edge in (part.start, part.stop)]
    edges = [start, *edges, start + span]
    assert edges[::2] == edges[1::2]
    assert all(part.start < part.stop for part in ranges)
    for part in ranges:
        assert vars(whole.part(part.start, part.stop)) == vars(part)
        assert (part.manager, part.checkpoint) == ("its identity", "word")
