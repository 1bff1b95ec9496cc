"""A filter that a task applies keeps exactly the rows that Spark would keep."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from openmsmq.spark.schema import arrow_schema
from openmsmq.spark.source.filters import (
    ARRIVALS_END,
    arrival_bounds,
    is_taken,
    keep_matching,
    may_match,
)

COLUMNS = ("arrival_number", "priority", "label", "recoverable", "sent_time", "body")
SCHEMA = arrow_schema(COLUMNS)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Few values, so that rows and filters meet.
texts = st.text("aä\U0001f4e7 b", max_size=3)
numbers = st.integers(-2, 3)
times = st.integers(0, 3).map(lambda step: EPOCH + timedelta(microseconds=step))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "arrival_number": numbers,
    "priority": numbers,
    "label": texts,
    "recoverable": st.booleans(),
    "sent_time": times,
    "body": st.binary(max_size=2),
}
rows = st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()})

COMPARE: dict[type[Filter], Callable[[Any, Any], bool]] = {
    EqualTo: lambda value, other: value == other,
    GreaterThan: lambda value, other: value > other,
    GreaterThanOrEqual: lambda value, other: value >= other,
    LessThan: lambda value, other: value < other,
    LessThanOrEqual: lambda value, other: value <= other,
    In: lambda value, others: value in others,
    StringStartsWith: lambda value, other: value.startswith(other),
    StringEndsWith: lambda value, other: value.endswith(other),
    StringContains: lambda value, other: other in value,
}
_TEXT_ONLY = (StringStartsWith, StringEndsWith, StringContains)


@st.composite
def conditions(draw: st.DrawFn) -> Filter:
    """A filter of a kind that tasks can apply, or one that they cannot."""
    name = draw(st.sampled_from(COLUMNS))
    kind = draw(st.sampled_from([IsNull, IsNotNull, *COMPARE]))
    if kind in (IsNull, IsNotNull):
        return kind((name,))
    if kind in _TEXT_ONLY:
        return kind((draw(st.sampled_from(["label", name])),), draw(texts))
    if kind is In:
        return In((name,), tuple(draw(st.lists(VALUES[name], min_size=1, max_size=3))))
    return kind((name,), draw(VALUES[name]))


def keeps(condition: Filter, row: dict[str, Any]) -> bool:
    """What SQL says about a row; unknown is no."""
    (name,) = condition.attribute  # type: ignore[attr-defined]
    value = row[name]
    if isinstance(condition, IsNull):
        return value is None
    if isinstance(condition, IsNotNull):
        return value is not None
    if value is None:
        return False
    other = condition.value  # type: ignore[attr-defined]
    if isinstance(value, str) and not isinstance(condition, (In, EqualTo, *_TEXT_ONLY)):
        # Spark compares texts by their bytes.
        value, other = value.encode(), other.encode()
    return COMPARE[type(condition)](value, other)


@given(st.lists(rows, max_size=8), st.lists(conditions(), max_size=3))
def test_tasks_keep_the_rows_that_plain_python_keeps(
    found: list[dict[str, Any]], wanted: list[Filter]
) -> None:
    taken = [condition for condition in wanted if is_taken(condition, SCHEMA)]
    batch = pa.RecordBatch.from_pylist(found, SCHEMA)
    expected = [row for row in found if all(keeps(condition, row) for condition in taken)]
    assert keep_matching(batch, taken).to_pylist() == expected


@given(st.lists(rows, max_size=8), st.lists(conditions(), max_size=4))
def test_bounds_and_names_leave_out_no_row_that_matches(
    found: list[dict[str, Any]], wanted: list[Filter]
) -> None:
    taken = [condition for condition in wanted if is_taken(condition, SCHEMA)]
    low, high = arrival_bounds(taken)
    for row in found:
        if all(keeps(condition, row) for condition in taken):
            assert (
                row["arrival_number"] is None
                or row["arrival_number"] < 0
                or (low <= row["arrival_number"] < high)
            )
            assert row["label"] is None or may_match(taken, "label", row["label"])


def test_comparisons_of_arrival_numbers_bound_what_is_read() -> None:
    name = ("arrival_number",)
    assert arrival_bounds([]) == (0, ARRIVALS_END)
    assert arrival_bounds([EqualTo(name, 7)]) == (7, 8)
    assert arrival_bounds([GreaterThan(name, 7), LessThanOrEqual(name, 9)]) == (8, 10)
    assert arrival_bounds([GreaterThanOrEqual(name, 7), LessThan(name, 9)]) == (7, 9)
    assert arrival_bounds([GreaterThan(("priority",), 7)]) == (0, ARRIVALS_END)


def test_a_queue_that_cannot_match_need_not_be_read() -> None:
    assert not may_match([EqualTo(("queue",), "a")], "queue", "b")
    assert not may_match([In(("queue",), ("a", "c"))], "queue", "b")
    assert may_match([EqualTo(("queue",), "b"), EqualTo(("label",), "a")], "queue", "b")


@pytest.mark.parametrize(
    "condition",
    [
        EqualTo(("colour",), "red"),
        EqualTo(("label", "first"), "x"),
        EqualTo(("label",), 7),
        EqualTo(("priority",), True),
        EqualTo(("priority",), 1 << 31),
        EqualTo(("priority",), "7"),
        EqualTo(("recoverable",), 1),
        EqualTo(("label",), None),
        EqualTo(("body",), b"x"),
        EqualTo(("sent_time",), datetime(2026, 1, 31)),  # noqa: DTZ001 -- that is the point
        In(("priority",), (1, None)),
        EqualNullSafe(("priority",), 1),
        Not(EqualTo(("priority",), 1)),
        StringContains(("body",), "x"),
    ],
    ids=repr,
)
def test_a_filter_on_which_arrow_and_spark_may_disagree_is_left_to_spark(
    condition: Filter,
) -> None:
    assert not is_taken(condition, SCHEMA)
