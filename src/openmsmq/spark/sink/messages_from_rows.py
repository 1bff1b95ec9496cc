"""Rows to messages: which column gives which property, checked before the first row comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
)

from openmsmq.client.messages import properties
from openmsmq.client.messages.columns import BodyColumn
from openmsmq.client.messages.outgoing import LabelledBody, OutgoingMessage
from openmsmq.client.messages.property import Kind
from openmsmq.model.errors import MsmqError
from openmsmq.model.identity import MessageId
from openmsmq.model.limits import LABEL_MAX_CHARACTERS
from openmsmq.spark.errors import BadOption, QueueProblem
from openmsmq.spark.schema import NAMES
from openmsmq.spark.sink.options import PROPERTIES, QUEUE

Outgoing: TypeAlias = OutgoingMessage | LabelledBody | bytes | str
"""A message, or what one has that has nothing else: a body, or a body and a label."""

_WHOLE: Final = (ByteType, ShortType, IntegerType, LongType)
_TYPES: Final[dict[Kind, tuple[type[DataType], ...]]] = {
    Kind.TEXT: (StringType,),
    Kind.BYTES: (BinaryType,),
    Kind.NUMBER: _WHOLE,
    Kind.SMALL: _WHOLE,
    Kind.YES_NO: (BooleanType,),
}
_KINDS: Final[dict[str, tuple[type[DataType], ...]]] = {
    **{name: _TYPES[properties.PROPERTIES[name].kind] for name in PROPERTIES},
    "body": (BinaryType, StringType),
    "correlation_id": (StringType, BinaryType),
    QUEUE: (StringType,),
}
"""What columns may give; two of them in two forms."""

_UNUSED_QUEUE: Final = (
    "there is a column queue: if rows are to go to the queues that it names, set the option "
    "queueColumn to queue; if all go to that of the option queue, drop the column"
)


def _correlation(value: str | bytes) -> bytes | MessageId:
    return MessageId.parse(value) if isinstance(value, str) else value


_CONVERT: Final[dict[str, Callable[[Any], Any]]] = {"correlation_id": _correlation}


def chosen_columns(schema: StructType, wishes: Mapping[str, str]) -> dict[str, str]:
    """Return for each property that rows have a value for the name of its column.

    Without an option it is the column of the same name. Columns that messages have and senders
    cannot choose are passed over; any other column is a mistake. The queue of a row is chosen by
    an option only: rows that were read from queues have a column of this name, and are rarely
    meant to go back to where they were. So a column `queue` that no option speaks of is refused.
    What is inserted into a table has all columns of messages, and null in most: such rows are
    refused only if they name a queue.
    """
    fields = {field.name: field.dataType for field in schema.fields}
    if QUEUE in fields and QUEUE not in wishes and not fields.keys() >= set(NAMES):
        raise QueueProblem(_UNUSED_QUEUE)
    chosen: dict[str, str] = {}
    for name in (*PROPERTIES, *({QUEUE} & wishes.keys())):
        column = wishes.get(name, name)
        option = "queueColumn" if name == QUEUE else name
        if column not in fields:
            if name in wishes:
                raise BadOption(option, f"there is no column {column}; there are {_list(fields)}")
            continue
        if not isinstance(fields[column], _KINDS[name]):
            wanted = " or ".join(kind().simpleString() for kind in _KINDS[name])
            raise BadOption(
                option, f"column {column} is {fields[column].simpleString()}; it takes {wanted}"
            )
        chosen[name] = column
    if "body" not in chosen:
        raise BadOption("body", f"no column gives the body; there are {_list(fields)}")
    unused = set(fields) - set(chosen.values()) - set(NAMES)
    if unused:
        raise QueueProblem(
            f"no option says what to do with the columns {_list(sorted(unused))}: name the "
            "property of each in an option, such as label, or drop them"
        )
    return chosen


def _list(names: Any) -> str:
    return ", ".join(names)


def column_from(batch: pa.RecordBatch, chosen: Mapping[str, str]) -> BodyColumn | None:
    """Return the messages of a record batch by the column; None if they are not so plain.

    They have nothing but a body, and perhaps a label in ASCII: then sending them costs least.
    """
    names = _given(batch, chosen)
    if names not in (["body"], ["body", "label"]):
        return None
    body = batch.column(chosen["body"])
    if body.null_count or not pa.types.is_binary(body.type):
        return None
    data, ends = _side_by_side(body)
    if names == ["body"]:
        return BodyColumn(data, ends)
    label = batch.column(chosen["label"])
    if label.null_count or not pa.types.is_string(label.type):
        return None
    text, label_ends = _side_by_side(label)
    # As UTF-16 these take two bytes for each of theirs; a NUL or one too long is refused elsewhere.
    labels = bytes(text[label_ends[0] : label_ends[-1]])
    longest = int(pc.max(pc.binary_length(label)).as_py() or 0)
    if not labels.isascii() or b"\0" in labels or longest > LABEL_MAX_CHARACTERS:
        return None
    first = label_ends[0]
    return BodyColumn(
        data, ends, labels, [end - first for end in label_ends] if first else label_ends
    )


def _given(batch: pa.RecordBatch, chosen: Mapping[str, str]) -> list[str]:
    """Return the properties that any row has a value for, in order."""
    is_unused = QUEUE not in chosen and QUEUE in batch.schema.names
    if is_unused and batch.column(QUEUE).null_count < batch.num_rows:
        raise QueueProblem(_UNUSED_QUEUE)
    return sorted(
        name
        for name, column in chosen.items()
        if name != QUEUE and batch.column(column).null_count < batch.num_rows
    )


def _side_by_side(column: pa.Array) -> tuple[memoryview, list[int]]:
    """Return the bytes of all values of a column, and where in them each ends.

    Before the first end stands where the first value begins.
    """
    _, ends, data = column.buffers()
    numbers = np.frombuffer(ends, np.int32, len(column) + 1, column.offset * 4)
    return memoryview(b"" if data is None else data), numbers.tolist()


def messages_from(batch: pa.RecordBatch, chosen: Mapping[str, str]) -> Iterator[Outgoing]:
    """Yield the messages of a record batch; what a row has nothing for is left to its default.

    Where no row has anything but a body and a label, these are given: sending them costs half as
    much.
    """
    names = _given(batch, chosen)
    if not names:
        yield from [b""] * batch.num_rows
        return
    columns = [batch.column(chosen[name]).to_pylist() for name in names]
    if names == ["body"]:
        yield from (b"" if body is None else body for body in columns[0])
        return
    if names == ["body", "label"]:
        bodies, labels = columns
        yield from (
            LabelledBody(b"" if body is None else body, label or "")
            for body, label in zip(bodies, labels, strict=True)
        )
        return
    converters = [_CONVERT.get(name) for name in names]
    for values in zip(*columns, strict=True):
        options: dict[str, Any] = {}
        try:
            for key, convert, value in zip(names, converters, values, strict=True):
                if value is not None:
                    options[key] = value if convert is None else convert(value)
            yield OutgoingMessage(**options)
        except (MsmqError, ValueError) as error:
            raise QueueProblem(f"a row cannot be a message: {error}") from None
