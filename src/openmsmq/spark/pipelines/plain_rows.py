"""Rows of Arrow as plain tuples, and back: for what is decided about rows in Python.

Times are microseconds since 1970 in tuples. The same functions work in tasks of Spark, and here
if there are few rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_type_hints

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS_MAX_COUNT: Final = 10_000
"""Rows of a record batch that is made here."""

TIME: Final = pa.timestamp("us", "UTC")

Made = TypeVar("Made")

_TYPES: Final = {
    hint: arrow
    for plain, arrow in (
        (str, pa.string()),
        (int, pa.int64()),
        (float, pa.float64()),
        (bool, pa.bool_()),
    )
    for hint in (plain, plain | None)
}


def schema_of(kind: type[tuple[Any, ...]], **others: pa.DataType) -> pa.Schema:
    """Return the columns for tuples of a kind: by the types of its fields, but for `others`."""
    found = get_type_hints(kind).items()
    return pa.schema([(name, others.get(name) or _TYPES[hint]) for name, hint in found])


def tuples_of(
    rows: pa.RecordBatch | pa.Table, make: Callable[[Iterable[Any]], Made]
) -> Iterator[Made]:
    """Yield each row, made of its values in their order, such as by `_make` of a named tuple."""
    columns = (column.cast(_plain(column.type)) for column in rows.columns)
    return map(make, zip(*(column.to_pylist() for column in columns), strict=True))


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type that a column has in tuples: numbers for times."""
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _plain(field.type)) for field in kind])
    return kind


def batches_of(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield record batches of these rows."""
    left = iter(rows)
    while some := list(islice(left, ROWS_MAX_COUNT)):
        columns = zip(zip(*some, strict=True), schema.types, strict=True)
        yield pa.record_batch([pa.array(values, type_) for values, type_ in columns], schema=schema)
