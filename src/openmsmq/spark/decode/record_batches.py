"""Raw packets to Arrow's record batches, a column at a time.

The usual messages are decoded all together; those with rare headers and those that cannot be
decoded go through `rows`, one by one, and take their place among the others. Which way a message
went does not show.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa

from openmsmq.api.messages import Packets
from openmsmq.spark.decode.columns import Messages
from openmsmq.spark.decode.layouts import Layout, lay_out
from openmsmq.spark.decode.packed import Numbers, Packed
from openmsmq.spark.decode.queue_texts import QueueTexts, read_queue_texts
from openmsmq.spark.decode.rows import Row, entry_at, row_of
from openmsmq.spark.schema import NAMES, arrow_schema


class Failure(msgspec.Struct, frozen=True):
    """A message that cannot be decoded: its row, its place in the queue, why, and its packet."""

    row: int
    lookup_id: int
    error: str
    packet: bytes


class Decoded(msgspec.Struct, frozen=True):
    """Messages as rows of Arrow, and which of them could not be decoded."""

    batch: pa.RecordBatch
    failures: tuple[Failure, ...]

    @property
    def readable(self) -> pa.RecordBatch:
        """The rows that could be decoded."""
        if not self.failures:
            return self.batch
        keep = np.ones(self.batch.num_rows, bool)
        keep[[failure.row for failure in self.failures]] = False
        return self.batch.filter(pa.array(keep))


def decode(
    raw: Packets, *, queue_manager: str, queue: str, columns: Sequence[str] = NAMES
) -> Decoded:
    """Decode messages into the columns that are asked for.

    A message that cannot be decoded has a row with its place in the queue, its packet as `body`
    and the reason as `error`. An answer that makes no sense as a whole is a `QueueProblem`.
    """
    schema = arrow_schema(columns)
    packed = Packed(raw)
    rows, layout, queues = _readable(packed)
    if len(rows):
        messages = Messages(packed, rows, layout, queues, (queue_manager, queue))
        arrays = [messages.column(name) for name in columns]
    else:
        arrays = [pa.array([], field.type) for field in schema]
    if len(rows) == packed.count:
        return Decoded(_batch(arrays, schema, packed.count), ())
    others = np.setdiff1d(np.arange(packed.count), rows, assume_unique=True)
    read = [
        row_of(entry_at(packed, row), queue_manager=queue_manager, queue=queue, columns=columns)
        for row in others.tolist()
    ]
    arrays = _interleave(arrays, read, np.argsort(np.concatenate((rows, others))), schema)
    return Decoded(_batch(arrays, schema, packed.count), _failures(others, read))


def _readable(packed: Packed) -> tuple[Numbers, Layout, QueueTexts]:
    """Choose the messages that can be decoded all together, and lay them out."""
    rows = np.arange(packed.count)
    layout = lay_out(packed)
    if not layout.good.all():
        rows = rows[layout.good]
        layout = lay_out(packed, rows)
    queues = read_queue_texts(packed, layout)
    if not queues.all_good:
        rows = rows[queues.good]
        layout = lay_out(packed, rows)
        queues = read_queue_texts(packed, layout)
    return rows, layout, queues


def _interleave(
    arrays: list[pa.Array], read: list[Row], order: Numbers, schema: pa.Schema
) -> list[pa.Array]:
    """Put the rows that were read one by one between those that were decoded together."""
    indices = pa.array(order)
    return [
        pa.concat_arrays([array, pa.array([row[field.name] for row in read], field.type)]).take(
            indices
        )
        for array, field in zip(arrays, schema, strict=True)
    ]


def _failures(others: Numbers, read: list[Row]) -> tuple[Failure, ...]:
    return tuple(
        Failure(number, row["lookup_id"], row["error"], row["body"])
        for number, row in zip(others.tolist(), read, strict=True)
        if row["error"] is not None
    )


def _batch(arrays: list[pa.Array], schema: pa.Schema, count: int) -> pa.RecordBatch:
    if arrays:
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    # Whoever only counts messages asks for no column.
    return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))
