"""The rows of a task as parts of a batch: messages for each queue, in lists of bounded size.

A queue gets its messages in the order of their rows, whichever names the rows have for it: each
name is looked up once, and names of the same queue are one.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator
from typing import Final, TypeAlias

import pyarrow as pa

from openmsmq.client.blocking import Queue, QueueManager, Transaction
from openmsmq.client.errors import ConnectionLost
from openmsmq.model.errors import MsmqError, TransactionSequence
from openmsmq.spark.connecting import explained
from openmsmq.spark.errors import QueueProblem
from openmsmq.spark.sink.messages_from_rows import Outgoing, body_size, messages_from
from openmsmq.spark.sink.options import QUEUE

PART_MAX_COUNT: Final = 20_000
"""Messages in one part of a batch."""

PART_MAX_BYTES: Final = 16 << 20
"""Bytes of bodies after which a part takes no more messages."""

QUEUES_MAX_COUNT: Final = 1000
"""Different queues to which the rows of one batch go."""

Part: TypeAlias = dict[str, list[Outgoing]]
"""Messages by the name of their queue."""


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

    def of_rows(self, batch: pa.RecordBatch, column: str | None) -> Iterable[str]:
        """Return for each row the one name of its queue."""
        if column is None:
            if self._default not in self._queues:
                self._queues[self._default] = self._manager.queue(self._default)
            return itertools.repeat(self._default, batch.num_rows)
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
                queue.send_many(messages, transaction=transaction)
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
    count = size = 0
    for batch in batches:
        queues = targets.of_rows(batch, columns.get(QUEUE))
        for queue, message in zip(queues, messages_from(batch, columns), strict=True):
            part.setdefault(queue, []).append(message)
            count += 1
            size += body_size(message)
            if count >= PART_MAX_COUNT or size >= PART_MAX_BYTES:
                yield part
                part, count, size = {}, 0, 0
    if part:
        yield part
