"""Filters that Spark hands down: which rows need not leave the task that reads them.

A filter is taken only if Arrow and Spark agree about it; all others stay Spark's work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

ARRIVALS_END: Final = 1 << 56
"""Above all arrival numbers."""

_COMPARISONS: Final[dict[type, Callable[[pa.Array, Any], pa.Array]]] = {
    EqualTo: pc.equal,
    GreaterThan: pc.greater,
    GreaterThanOrEqual: pc.greater_equal,
    LessThan: pc.less,
    LessThanOrEqual: pc.less_equal,
}
_TEXT_MATCHES: Final[dict[type, Callable[[pa.Array, str], pa.Array]]] = {
    StringStartsWith: pc.starts_with,
    StringEndsWith: pc.ends_with,
    StringContains: pc.match_substring,
}


def is_taken(condition: Filter, schema: pa.Schema) -> bool:
    """Whether the tasks apply a filter."""
    name = _column(condition)
    if name is None or name not in schema.names:
        return False
    if isinstance(condition, IsNull | IsNotNull):
        return True
    kind = schema.field(name).type
    if type(condition) in _TEXT_MATCHES:
        return bool(pa.types.is_string(kind))
    if type(condition) in _COMPARISONS:
        return _fits(getattr(condition, "value", None), kind)
    if isinstance(condition, In):
        return all(_fits(value, kind) for value in condition.value)
    return False


def _column(condition: Filter) -> str | None:
    path = getattr(condition, "attribute", ())
    return path[0] if isinstance(path, tuple) and len(path) == 1 else None


def _fits(value: object, kind: pa.DataType) -> bool:
    if isinstance(value, datetime):
        # Without a time zone it would mean another moment here than in Spark's session.
        return value.tzinfo is not None and bool(pa.types.is_timestamp(kind))
    if isinstance(value, bool):
        return bool(pa.types.is_boolean(kind))
    if isinstance(value, int):
        return bool(pa.types.is_integer(kind)) and abs(value) < 1 << kind.bit_width - 1
    return isinstance(value, str) and bool(pa.types.is_string(kind))


def keep_matching(batch: pa.RecordBatch, conditions: Iterable[Filter]) -> pa.RecordBatch:
    """Leave out the rows that a filter does not let pass; an unknown answer is a no."""
    for condition in conditions:
        column = batch.column(batch.schema.get_field_index(_column(condition)))
        batch = batch.filter(_mask(condition, column), null_selection_behavior="drop")
    return batch


def _mask(condition: Filter, column: pa.Array) -> pa.Array:
    if isinstance(condition, IsNull):
        return pc.is_null(column)
    if isinstance(condition, IsNotNull):
        return pc.is_valid(column)
    if isinstance(condition, In):
        return pc.is_in(column, pa.array(condition.value, column.type))
    match = _TEXT_MATCHES.get(type(condition))
    if match is not None:
        return match(column, condition.value)  # type: ignore[attr-defined]
    value = pa.scalar(condition.value, column.type)  # type: ignore[attr-defined]
    return _COMPARISONS[type(condition)](column, value)


def arrival_bounds(conditions: Iterable[Filter]) -> tuple[int, int]:
    """Return the range of arrival numbers outside of which no row can match."""
    start, stop = 0, ARRIVALS_END
    for condition in conditions:
        value = getattr(condition, "value", None)
        if _column(condition) != "arrival_number" or not isinstance(value, int):
            continue
        match condition:
            case EqualTo():
                start, stop = max(start, value), min(stop, value + 1)
            case GreaterThan():
                start = max(start, value + 1)
            case GreaterThanOrEqual():
                start = max(start, value)
            case LessThan():
                stop = min(stop, value)
            case LessThanOrEqual():
                stop = min(stop, value + 1)
            case _:
                pass
    return start, stop


def may_match(conditions: Iterable[Filter], column: str, value: str) -> bool:
    """Whether rows with a value in a column can match at all."""
    for condition in conditions:
        if _column(condition) != column:
            continue
        if isinstance(condition, EqualTo) and condition.value != value:
            return False
        if isinstance(condition, In) and value not in condition.value:
            return False
    return True
