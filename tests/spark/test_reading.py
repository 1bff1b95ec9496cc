"""What a task does: its share of the messages, and values made ahead of those who use them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.spark.source.queue_range import (
    TASK_MIN_BYTES,
    TASK_MIN_COUNT,
    Piece,
    QueueRange,
    tasks_of,
)
from openmsmq.spark.source.reading import ahead
from openmsmq.spark.source.reservations import shares

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


# Who reads what.


WHOLE = QueueRange("127.0.0.1", "q", 0, 0, "its identity", "reader", "word")
contents = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.integers(1, 4 * TASK_MIN_COUNT),
        st.integers(0, 2 * TASK_MIN_BYTES),
    ),
    max_size=60,
)


def pieces(found: list[tuple[str, int, int]]) -> list[Piece]:
    """Return pieces of queues, each behind the one before it."""
    return [
        Piece(
            msgspec.structs.replace(WHOLE, queue=queue, start=10 * place, stop=10 * place + 10),
            count,
            size,
        )
        for place, (queue, count, size) in enumerate(sorted(found, key=lambda each: each[0]))
    ]


def numbers(ranges: Iterable[QueueRange]) -> list[tuple[str, int]]:
    return [(part.queue, number) for part in ranges for number in range(part.start, part.stop)]


@given(contents, st.integers(1, 20))
def test_tasks_share_everything_once_and_in_order(
    found: list[tuple[str, int, int]], most: int
) -> None:
    parts = pieces(found)
    tasks = tasks_of(parts, most)
    assert len(tasks) <= most
    assert all(task.ranges for task in tasks)
    shared = [part for task in tasks for part in task.ranges]
    assert numbers(shared) == numbers(part.range for part in parts)
    assert {part.checkpoint for part in shared} <= {"word"}
    for task in tasks:
        names = [part.queue for part in task.ranges]
        assert len(set(names)) == len(names), "neighbours are joined"


@given(contents, st.integers(1, 20))
def test_no_task_has_much_more_than_its_share(found: list[tuple[str, int, int]], most: int) -> None:
    parts = pieces(found)
    tasks = tasks_of(parts, most)
    total = sum(part.weight for part in parts)
    largest = max((part.weight for part in parts), default=0)
    weights = {part.range.start: part.weight for part in parts}
    for task in tasks:
        starts = (start for part in task.ranges for start in range(part.start, part.stop, 10))
        fair = total / min(most, max(1, int(total + 1e-6)))
        assert sum(weights[start] for start in starts) <= fair + largest + 1e-6


@pytest.mark.parametrize(
    ("queues", "count", "size", "expected"),
    [
        (1, 150, 100, 1),
        (200, 10, 100, 1),
        (1, 300, 1 << 20, 8),
        (1, 2 * TASK_MIN_COUNT, 10, 2),
        (200, TASK_MIN_COUNT, 10, 8),
    ],
)
def test_there_are_as_many_tasks_as_messages_and_bytes_are_worth(
    queues: int, count: int, size: int, expected: int
) -> None:
    parts = [
        Piece(
            msgspec.structs.replace(WHOLE, queue=f"{queue}", start=step, stop=step + 1),
            count // 10,
            count * size // 10,
        )
        for queue in range(queues)
        for step in range(10)
    ]
    assert len(tasks_of(parts, 8)) == expected


# How much.


@given(st.integers(1, 10_000), st.lists(st.integers(0, 10_000), min_size=1, max_size=20))
def test_queues_share_a_limit_by_what_they_have(limit: int, wanted: list[int]) -> None:
    found = shares(limit, wanted)
    assert min(found) >= 1, "0 would be no limit"
    total = sum(wanted)
    assert sum(found) <= limit + len(wanted)
    for share, each in zip(found, wanted, strict=True):
        if total <= limit:
            assert share >= each
        else:
            assert share == pytest.approx(max(1, limit * each / total), abs=1)
