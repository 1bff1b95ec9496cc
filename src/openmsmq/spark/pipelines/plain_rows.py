"""Rows of Arrow as plain tuples, and back: for what is decided about rows in Python.

Times are microseconds since 1970 in tuples. The same functions work in tasks of Spark, and here
if there are few rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_type_hints

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame

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


def in_tasks(
    rows: DataFrame,
    lists: Column,
    task: Callable[[list[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
) -> DataFrame:
    """Map rows in tasks; each of the lists has rows that a task must see together.

    It is what `mapInArrow` does. But that wants to know the columns of its rows at once, and a
    definition of a declarative pipeline must not ask for them: its tables are not there yet.
    """
    made = pa.struct(list(schema))

    def run(column: pa.Array) -> pa.Array:
        batch = pa.RecordBatch.from_struct_array(column.flatten())
        found = [each.to_struct_array() for each in task([batch])]
        values = pa.concat_arrays(found) if found else pa.array([], made)
        # All that is made of these lists stands in the place of the first: nobody counts them.
        ends = [len(values) if place else 0 for place in range(len(column) + 1)]
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values)

    # Spark looks at the types that a function says it takes.
    run.__annotations__ = {"column": pa.Array, "return": pa.Array}
    map_lists: Any = arrow_udf(run, ArrayType(from_arrow_schema(schema)))  # type: ignore[call-overload]
    return rows.select(F.inline(map_lists(lists)))


def one_by_one(names: Sequence[str]) -> Column:
    """Return lists of one row each, with these columns."""
    return F.array(F.struct(*names))
