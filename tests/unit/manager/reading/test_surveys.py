"""How messages are spread over a range: exact where it is short, close where it is long."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.api import messages as api
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.totals import Totals
from openmsmq.manager.reading.surveys import COUNTED_BYTES, COUNTED_ROWS, surveyed
from openmsmq.model.identity import Guid
from openmsmq.model.limits import SURVEY_PARTS_MAX_COUNT
from openmsmq.model.queue import QueueProperties
from openmsmq.storage import records
from openmsmq.storage.memory import MemoryStore
from openmsmq.storage.port import Batch
from tests.unit.manager.office import ORDERS, Office

END = 1 << 40


def shelf(messages: dict[int, int]) -> tuple[LocalQueue, MemoryStore]:
    """Make a queue of messages: arrival numbers, and how many bytes each has."""
    store = MemoryStore()
    properties = QueueProperties(identifier=Guid(bytes(16)), path_name=ORDERS)
    queue = LocalQueue(7, ORDERS, properties, store, Totals())
    store.commit(
        Batch(
            [
                (records.entry_key(7, (number % 3) << 56 | number), bytes(size))
                for number, size in messages.items()
            ]
        )
    )
    return queue, store


def test_an_empty_range_has_no_parts() -> None:
    queue, _ = shelf({5: 10, 9: 10})
    assert surveyed(queue, 0, 5, 8) == surveyed(queue, 6, 9, 8) == surveyed(queue, 10, END, 8) == []


@given(st.dictionaries(st.integers(0, 10_000), st.integers(0, 50), max_size=COUNTED_ROWS))
def test_a_short_range_is_counted(messages: dict[int, int]) -> None:
    queue, _ = shelf(messages)
    expected = []
    if messages:
        first, last = min(messages), max(messages)
        expected = [api.Part(first, last + 1, len(messages), sum(messages.values()))]
    assert surveyed(queue, 0, END, 8) == expected


@given(
    st.lists(st.tuples(st.integers(1, 3000), st.integers(1, 40)), min_size=1, max_size=5),
    st.integers(1, 64),
)
def test_the_parts_of_a_long_range_lie_side_by_side(
    runs: list[tuple[int, int]], count: int
) -> None:
    messages: dict[int, int] = {}
    number = 17
    for length, step in runs:
        for _ in range(length):
            messages[number] = 10
            number += step
    queue, _ = shelf(messages)
    parts = surveyed(queue, 0, END, count)
    assert len(parts) <= count
    assert (parts[0].start, parts[-1].stop) == (17, max(messages) + 1)
    assert all(before.stop == after.start for before, after in pairwise(parts))
    for part in parts:
        there = sum(part.start <= number < part.stop for number in messages)
        assert bool(part.count) == bool(there), "a part with messages would not be read"


@pytest.mark.parametrize("step", [1, 7])
def test_a_long_even_range_is_measured_well(step: int) -> None:
    queue, _ = shelf({step * number: 100 for number in range(10_000)})
    parts = surveyed(queue, 0, END, 32)
    assert sum(part.count for part in parts) == pytest.approx(10_000, rel=0.1)
    assert sum(part.size for part in parts) == pytest.approx(1_000_000, rel=0.1)


def test_a_crowded_end_is_noticed() -> None:
    sparse = {100 * number: 10 for number in range(1000)}
    queue, _ = shelf(sparse | {100_000 + number: 10 for number in range(100_000)})
    parts = surveyed(queue, 0, END, 32)
    early = sum(part.count for part in parts if part.stop <= 100_000)
    assert early < 2000
    assert sum(part.count for part in parts) == pytest.approx(101_000, rel=0.1)


def test_few_large_messages_are_measured_by_some_of_them() -> None:
    queue, _ = shelf(dict.fromkeys(range(300), COUNTED_BYTES))
    parts = surveyed(queue, 0, END, 32)
    assert sum(part.count for part in parts) == 300
    assert sum(part.size for part in parts) == 300 * COUNTED_BYTES


def test_a_survey_has_a_bounded_number_of_parts() -> None:
    office = Office()
    office.send(b"one", b"two")
    handle = office.open()
    [part] = office.ok(api.Survey(handle, 0, END)).parts
    assert part.count == 2
    for count in (0, SURVEY_PARTS_MAX_COUNT + 1):
        assert office.error(api.Survey(handle, 0, END, count)) == "MQ_ERROR_INVALID_PARAMETER"
