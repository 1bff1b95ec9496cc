"""The rows of a task as parts of a batch: messages for each queue, in lists of bounded size.

A queue gets its messages in the order of their rows, whichever names the rows have for it: each
name is looked up once, and names of the same queue are one.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from openmsmq.client.blocking import Queue, QueueManager, Transaction
from openmsmq.client.errors import ConnectionLost
from openmsmq.client.messages.columns import BodyColumn
from openmsmq.model.errors import MsmqError, TransactionSequence
from openmsmq.spark.connecting import explained
from openmsmq.spark.errors import QueueProblem
from openmsmq.spark.sink.messages_from_rows import Outgoing, column_from, messages_from
from openmsmq.spark.sink.options import QUEUE

PART_MAX_COUNT: Final = 20_000
"""Messages in one part of a batch."""

PART_MAX_BYTES: Final = 8 << 20
"""Bytes of bodies after which a part takes no more messages. It fits a file of the journal then."""

QUEUES_MAX_COUNT: Final = 1000
"""Different queues to which the rows of one batch go."""

Part: TypeAlias = dict[str, list[list[Outgoing] | BodyColumn]]
"""Messages by the name of their queue, some after the other."""


class Targets:
    """The queues to which a task sends, each opened once."""

    def __init__(self, manager: QueueManager, address: str, default: str) -> None:
        self._manager = manager
        self._address = address
        self._default = default
        self._queues: dict[str, Queue] = {}
        self._names: dict[str, str] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The queues so far, each by one name."""
        return tuple(self._queues)

    def of_rows(self, batch: pa.RecordBatch, column: str | None) -> str | Iterator[str]:
        """Return the one name of the queue of all rows, or one for each row."""
        if column is None:
            if self._default not in self._queues:
                self._queues[self._default] = self._manager.queue(self._default)
            return self._default
        return map(self._find, batch.column(column).to_pylist())

    def _find(self, name: str | None) -> str:
        name = name or self._default
        found = self._names.get(name)
        if found is None:
            if not name:
                raise QueueProblem(
                    "a row names no queue: give each row one, or name the queue of all others in "
                    "the option queue"
                )
            found = self._names[name] = self._format_name(name)
            if found not in self._queues:
                self._queues[found] = self._manager.queue(name)
                require_few(self._queues)
        return found

    def _format_name(self, name: str) -> str:
        try:
            return self._manager.format_name(name)
        except ConnectionLost:
            raise
        except MsmqError:
            # A list of queues has one name only. What is wrong with any other, sending tells.
            return name

    def send(self, part: Part, transaction: Transaction) -> None:
        """Send the messages of a part; what goes wrong names the queue."""
        for name, messages in part.items():
            queue = self._queues[name]
            try:
                for some in messages:
                    queue.send_many(some, transaction=transaction)
            except (ConnectionLost, TransactionSequence):
                raise
            except MsmqError:
                with explained(self._address, queue.name):
                    raise


def require_few(queues: Collection[str]) -> None:
    """Refuse more queues than one batch may have."""
    if len(queues) > QUEUES_MAX_COUNT:
        raise QueueProblem(
            f"the rows of a batch name more than {QUEUES_MAX_COUNT} queues: write fewer rows at "
            "once, or correct the column of the option queueColumn"
        )


def in_parts(
    batches: Iterator[pa.RecordBatch], columns: dict[str, str], targets: Targets
) -> Iterator[Part]:
    """Yield the messages of a task in parts."""
    part: Part = {}
    room_count, room_bytes = PART_MAX_COUNT, PART_MAX_BYTES
    for batch in batches:
        queues = targets.of_rows(batch, columns.get(QUEUE))
        messages = _Messages(batch, columns, is_for_one=isinstance(queues, str))
        sizes = _body_sizes(batch, columns)
        start = 0
        while start < batch.num_rows:
            count = fitting(sizes[start:], room_count, room_bytes)
            _add(part, queues, messages, count)
            room_count -= count
            room_bytes -= int(sizes[start : start + count].sum())
            start += count
            if room_count <= 0 or room_bytes <= 0:
                yield part
                part, room_count, room_bytes = {}, PART_MAX_COUNT, PART_MAX_BYTES
    if part:
        yield part


class _Messages:
    """The messages of a record batch, of which some are taken after others."""

    def __init__(self, batch: pa.RecordBatch, columns: dict[str, str], *, is_for_one: bool) -> None:
        self._column = column_from(batch, columns) if is_for_one else None
        self._others = messages_from(batch, columns)
        self._start = 0

    def take(self, count: int) -> list[Outgoing] | BodyColumn:
        """Return the next ones."""
        if self._column is None:
            return list(itertools.islice(self._others, count))
        start, self._start = self._start, self._start + count
        return self._column.between(start, self._start)


def _add(part: Part, queues: str | Iterator[str], messages: _Messages, count: int) -> None:
    """Add the next rows to a part."""
    taken = messages.take(count)
    if isinstance(queues, str):
        _go_on(part, queues, taken)
        return
    found: dict[str, list[Outgoing]] = {}
    for queue, message in zip(itertools.islice(queues, count), taken, strict=True):
        found.setdefault(queue, []).append(message)
    for queue, own in found.items():
        _go_on(part, queue, own)


def _go_on(part: Part, queue: str, more: list[Outgoing] | BodyColumn) -> None:
    """Put messages behind those that a part has for a queue; few calls send them then."""
    there = part.setdefault(queue, [])
    last = there[-1] if there else None
    if isinstance(last, list) and isinstance(more, list):
        last += more
    else:
        there.append(more)


def count_of(part: Part) -> int:
    """Return how many messages a part has."""
    return sum(len(some) for messages in part.values() for some in messages)


def _body_sizes(batch: pa.RecordBatch, columns: dict[str, str]) -> NDArray[np.int64]:
    """Return the length of each row's body, in bytes."""
    sizes = pc.binary_length(batch.column(columns["body"]))
    return np.asarray(pc.fill_null(sizes, 0)).astype(np.int64)


def fitting(sizes: NDArray[np.int64], room_count: int, room_bytes: int) -> int:
    """Return how many of some rows a part takes: up to the first with which it has enough."""
    enough = int(np.searchsorted(np.cumsum(sizes), room_bytes)) + 1
    return min(len(sizes), enough, room_count)
