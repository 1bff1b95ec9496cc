"""Offsets survive the checkpoint, and say when the messages behind them are gone."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.api.messages import QueueStatus
from openmsmq.spark.errors import DataLost
from openmsmq.spark.source.offsets import (
    Spot,
    data_lost,
    from_offset,
    problem_with,
    spot_of,
    to_offset,
)
from openmsmq.spark.source.reading import RANGE_MIN_SPAN, split

numbers = st.integers(0, (1 << 56) - 1)
spots = st.builds(
    Spot,
    address=st.text(),
    queue=st.text(),
    identity=st.binary(min_size=16, max_size=16).map(bytes.hex),
    next=numbers,
    begin=st.none() | numbers,
)
IDENTITY = bytes(range(16))


def status(last: int = 100, identifier: bytes = IDENTITY) -> QueueStatus:
    return QueueStatus(
        r"private$\a", "DIRECT=OS:A\\private$\\a", identifier, False, False, 0, 0, "", False, 0,
        *(0, 0, 0, 0, 0, 0, 0, 0), last,
    )  # fmt: skip


@given(st.lists(spots, unique_by=lambda spot: spot.key))
def test_an_offset_survives_the_checkpoint(known: list[Spot]) -> None:
    written = json.loads(json.dumps(to_offset(known)))
    assert from_offset(written) == {spot.key: spot for spot in known}


def test_an_offset_of_a_version_without_beginnings_is_read() -> None:
    old = {"a\\b": {"qm": "a", "queue": "b", "identity": "00", "next": 7}}
    assert from_offset(old) == {"a\\b": Spot("a", "b", "00", 7)}
    assert to_offset([Spot("a", "b", "00", 7)]) == old


@pytest.mark.parametrize(
    "offset",
    [
        {"k": {"qm": "a", "queue": "b", "identity": "00"}},
        {"k": {"qm": "a", "queue": "b", "identity": "00", "next": "x"}},
        {"k": 7},
        [],
    ],
)
def test_an_offset_that_makes_no_sense_is_refused_with_what_to_do(offset: object) -> None:
    with pytest.raises(DataLost, match="use the version that wrote it, or a new checkpoint"):
        from_offset(offset)  # type: ignore[arg-type]


def test_a_queue_that_is_the_same_and_has_come_as_far_is_no_problem() -> None:
    for place in (0, 50, 101):
        assert problem_with(spot_of("a", status(), place), status()) is None


def test_a_queue_that_was_made_again_is_noticed() -> None:
    problem = problem_with(spot_of("a", status(), 50), status(identifier=bytes(16)))
    assert problem == r"queue a\private$\a was deleted and made again since"


def test_an_older_copy_of_a_store_is_noticed() -> None:
    problem = problem_with(spot_of("a", status(), 102), status())
    assert problem is not None
    assert "has given out only 100: its store was replaced" in problem


def test_the_error_for_lost_messages_names_both_ways_out() -> None:
    text = str(data_lost("it is gone"))
    assert text.startswith("it is gone. ")
    assert "failOnDataLoss=false" in text
    assert "checkpointLocation" in text


@given(numbers, st.integers(0, 20 * RANGE_MIN_SPAN), st.integers(1, 50))
def test_a_range_is_split_without_gap_or_overlap(start: int, span: int, count: int) -> None:
    stop = start + span
    parts = split("a", "q", start, stop, count)
    assert len(parts) <= count
    covered = start
    for part in parts:
        assert (part.address, part.queue, part.start) == ("a", "q", covered)
        assert part.stop > part.start
        covered = part.stop
    assert covered == stop
    if len(parts) > 1:
        assert min(part.stop - part.start for part in parts) >= RANGE_MIN_SPAN // 2


@given(numbers, st.integers(0, 100), st.integers(1, 50))
def test_an_empty_range_has_no_parts(start: int, back: int, count: int) -> None:
    assert split("a", "q", start, start - back, count) == []


def test_spots_differ_by_where_their_batch_begins() -> None:
    spot = Spot("a", "b", "00", 7, 0)
    assert msgspec.structs.replace(spot, begin=None) != spot
