"""Rows to a queue, exactly once: tasks prepare parts of a batch, the driver commits them all.

Parts are prepared transactions of the queue manager, named by query and batch. The driver commits
the parts of the tasks that counted, all at once, and the queue manager notes the number of the
batch with them, the checkpoint that it belongs to, and where it ends. So nothing of a failed or
doubled task appears, and a batch that Spark writes again after a restart is recognised. A batch
that is older than the last one, of another checkpoint, or with another end, is refused: none of
them would be a repetition.

Rows may go to many queues. In each, batches follow each other; in a batch, messages have the order
of its partitions and of the rows in them. A stream of one queue that is not shuffled on its way
therefore keeps the order of arrival.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from openmsmq.client.blocking import QueueManager
from openmsmq.client.errors import ConnectionLost
from openmsmq.model.errors import TransactionSequence
from openmsmq.spark.checkpoint import end_in
from openmsmq.spark.connecting import connected
from openmsmq.spark.errors import BadOption, QueueProblem
from openmsmq.spark.sink.options import SinkOptions
from openmsmq.spark.sink.parts import Part, Targets, count_of, in_parts, require_few

ATTEMPTS_MAX_COUNT: Final = 5
"""How often a task prepares a part again after its connection was lost."""

# Names that Spark gives to what its tasks know about the query they work for. The id of a query is
# in its checkpoint: it survives restarts, and a new checkpoint has a new one.
_QUERY_PROPERTY: Final = "sql.streaming.queryId"
_BATCH_PROPERTY: Final = "streaming.sql.batchId"


class Parts(WriterCommitMessage):
    """What one task has prepared."""

    def __init__(
        self,
        query: str,
        batch: int,
        partition: int,
        units: list[bytes],
        checkpoint: str = "",
    ) -> None:
        self.query = query
        self.batch = batch
        self.partition = partition
        self.units = units
        self.checkpoint = checkpoint
        self.queues: tuple[str, ...] = ()
        self.row_count = 0


class _Staging:
    """Prepares the rows of one task as parts of a batch."""

    def __init__(self, options: SinkOptions, columns: dict[str, str]) -> None:
        self.options = options
        self.address = options.place.addresses[0]
        self.columns = columns

    @contextlib.contextmanager
    def _connected(self) -> Iterator[QueueManager]:
        """Connect for as long as a block runs; why a batch is refused is said as it is."""
        with connected(self.options.place, self.address, self.options.queue) as manager:
            try:
                yield manager
            except TransactionSequence as error:
                # The general advice for this error is about transactions of one's own.
                raise QueueProblem(f"{self.address}: {error.detail}") from None

    def write(self, query: str, batch: int, batches: Iterator[pa.RecordBatch]) -> Parts:
        """Prepare all rows; gives the names of the parts."""
        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        parts = Parts(query, batch, partition, [], _property(_QUERY_PROPERTY))
        with self._connected() as manager:
            if _is_committed(manager, parts):
                # It took effect already, if it is the same: the commit looks.
                parts.row_count = sum(each.num_rows for each in batches)
                return parts
            targets = Targets(manager, self.address, self.options.queue)
            for part in in_parts(batches, self.columns, targets):
                parts.units.append(self._prepare(manager, parts, targets, part))
                parts.row_count += count_of(part)
            parts.queues = targets.names
        return parts

    def _prepare(self, manager: QueueManager, parts: Parts, targets: Targets, part: Part) -> bytes:
        """Prepare one part, again if the connection is lost: what was sent is then forgotten."""
        for attempt in range(1, ATTEMPTS_MAX_COUNT + 1):
            transaction = manager.begin()
            try:
                targets.send(part, transaction)
                transaction.prepare(
                    query=parts.query, batch=parts.batch, checkpoint=parts.checkpoint
                )
                return bytes(transaction.unit_of_work)
            except (ConnectionLost, TransactionSequence):
                # If it was prepared all the same, the commit of the batch aborts it.
                if attempt == ATTEMPTS_MAX_COUNT or _is_committed(manager, parts):
                    raise
        raise AssertionError

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Make all parts visible, in the order of the partitions."""
        parts = sorted(_parts(messages), key=lambda part: part.partition)
        if not parts:
            return
        require_few({name for part in parts for name in part.queues})
        first = parts[0]
        with self._connected() as manager:
            units = [unit for part in parts for unit in part.units]
            manager.commit_batch(
                first.query,
                first.batch,
                units,
                checkpoint=first.checkpoint,
                row_count=sum(part.row_count for part in parts),
                # Spark has written it down before the tasks began.
                end=end_in(self.options.checkpoint, first.checkpoint, first.batch),
            )

    def end(self, query: str) -> None:
        """Give up what is prepared for a query that is over, and what tasks prepare for it later.

        Spark does not wait for the tasks that it stops.
        """
        with self._connected() as manager:
            manager.forget_query(query, is_over=True)

    def abort(self, query: str, batch: int, checkpoint: str = "") -> None:
        """Give up what the tasks have prepared."""
        with self._connected() as manager:
            manager.abort_batch(query, batch, checkpoint=checkpoint)


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes the batches of a query."""

    def __init__(self, options: SinkOptions, columns: dict[str, str]) -> None:
        if options.batch is not None:
            raise BadOption("batch", "is for data frames: the batches of a stream have numbers")
        self._staging = _Staging(options, columns)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Parts:
        """Prepare the rows of one task."""
        query = self._staging.options.query or _property(_QUERY_PROPERTY)
        batch = _property(_BATCH_PROPERTY)
        if not query or not batch:
            raise BadOption(
                "query", "this Spark does not tell its tasks which query they work for: name it"
            )
        return self._staging.write(query, int(batch), iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Make the batch visible, unless it is already."""
        for part in _parts(messages):
            if part.batch != batchId:
                raise QueueProblem(f"tasks wrote batch {part.batch}, but {batchId} is committed")
        self._staging.commit(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Give up the batch; Spark writes it again.

        If no task has come to its end, nobody here knows the name of the query. What such tasks
        have prepared goes when the query commits its next batch.
        """
        found = {(part.query, part.checkpoint) for part in _parts(messages)}
        for query, checkpoint in found or {(self._staging.options.query, "")}:
            if query:
                self._staging.abort(query, batchId, checkpoint)


class BatchWriter(DataSourceArrowWriter):
    """Writes a data frame: all of it, or nothing."""

    def __init__(self, options: SinkOptions, columns: dict[str, str]) -> None:
        self._staging = _Staging(options, columns)
        self._query = options.query or f"write {secrets.token_hex(16)}"
        self._batch = options.batch or 0

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Parts:
        """Prepare the rows of one task."""
        return self._staging.write(self._query, self._batch, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make everything visible."""
        self._staging.commit(messages)
        if not self._staging.options.query:
            # Nobody else knows the name, so nobody can write it again. The messages are sent,
            # whatever becomes of this: an error would make the application send them again.
            with contextlib.suppress(QueueProblem):
                self._staging.end(self._query)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Give everything up, also what tasks have prepared that failed later.

        A query with a name of its own may be written again: what tasks that still run prepare for
        it goes when it is.
        """
        if self._staging.options.query:
            checkpoint = next((part.checkpoint for part in _parts(messages)), "")
            self._staging.abort(self._query, self._batch, checkpoint)
        else:
            self._staging.end(self._query)


def _is_committed(manager: QueueManager, parts: Parts) -> bool:
    return manager.has_batch(parts.query, parts.batch, checkpoint=parts.checkpoint)


def _property(name: str) -> str:
    """Return what Spark has told a task under a name; empty if it was told nothing."""
    context = TaskContext.get()
    return "" if context is None else context.getLocalProperty(name) or ""


def _parts(messages: Sequence[WriterCommitMessage | None]) -> list[Parts]:
    return [message for message in messages if isinstance(message, Parts)]
