"""What all messages of an answer have alike is held once, and a column of it is made once.

Neighbours in a queue differ in little but numbers and bodies. So a value of theirs is a number for
all of them if they were looked at and have the same, and otherwise one number each: numpy
calculates with both in the same way, and with one number it costs next to nothing.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from openmsmq.spark.decode.packed import Numbers, Records
from openmsmq.spark.schema import arrow_type

KEPT_MAX_COUNT: Final = 96
"""Columns of one value that are kept for the answers to come: more than a message has columns."""
KEPT_MAX_BYTES: Final = 96
"""The longest value of which one is kept."""
KEPT_MAX_ROWS: Final = 8192
"""The longest column that is kept; an answer to a task has no more messages."""


def alike(values: NDArray[Any]) -> NDArray[Any]:
    """Return what all rows have, without the dimension of rows; the values if they differ."""
    if values.ndim == 0 or len(values) == 0:
        return values
    first = values[0]
    if values.ndim > 1:
        same = values.tobytes() == first.tobytes() * len(values)
    else:
        # Numbers that go up differ at once.
        same = bool(first == values[-1] and (values == first).all())
    return np.asarray(first) if same else values


def each(values: NDArray[Any], count: int) -> NDArray[Any]:
    """Return a number for each row, also if all have the same."""
    return values if values.ndim else np.broadcast_to(values, (count,))


class Fields:
    """The fields of a structure that was read from each message."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._found: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a field: one value if all messages have the same, otherwise one for each."""
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = alike(self._records[name])
        return found

    def wide(self, name: str) -> Numbers:
        """Return a field to calculate places with."""
        numbers: Numbers = np.asarray(self[name].astype(np.int64))
        return numbers

    def rows(self, name: str) -> NDArray[Any]:
        """Return a field with one value for each message, in any case."""
        rows: NDArray[Any] = self._records[name]
        return rows


def constant(name: str, value: str | bytes | int | bool | None, count: int) -> pa.Array:
    """Make a column of one value."""
    is_long = isinstance(value, str | bytes) and len(value) > KEPT_MAX_BYTES
    if is_long or count > KEPT_MAX_ROWS:
        return _repeated(name, value, count)
    # A power of two, so that answers of about the same length share it.
    return _kept(name, value, 1 << (count - 1).bit_length()).slice(0, count)


def _repeated(name: str, value: str | bytes | int | bool | None, count: int) -> pa.Array:
    if value is None:
        return pa.nulls(count, arrow_type(name))
    return pa.repeat(pa.scalar(value, arrow_type(name)), count)


_kept: Final = lru_cache(KEPT_MAX_COUNT)(_repeated)
