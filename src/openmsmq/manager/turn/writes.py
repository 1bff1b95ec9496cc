"""What a turn writes: one batch of records, and the counts of the queues it touched."""

from __future__ import annotations

from typing import Protocol

from openmsmq.manager.turn.defects import Defect
from openmsmq.storage import records
from openmsmq.storage.port import Batch, Taken


class Counted(Protocol):
    """What has counts that are written with the turn: a queue."""

    id: int
    stored_count: int
    stored_bytes: int


class Writes:
    """The records that one turn keeps and removes."""

    __slots__ = ("_touched", "batch")

    def __init__(self) -> None:
        self.batch = Batch()
        self._touched: set[Counted] = set()

    def put(self, key: bytes, value: bytes) -> None:
        """Make a record durable."""
        self.batch.changes.append((key, value))

    def put_many(self, records: list[tuple[bytes, bytes]], *, volatile: bool) -> None:
        """Keep several records, durable or in memory only."""
        if volatile:
            self.batch.volatile.extend(records)
        else:
            self.batch.changes.extend(records)

    def take_out(self, keys: list[bytes], *, volatile: bool) -> None:
        """Remove several records that are durable, or in memory only."""
        if volatile:
            self.batch.forgotten.extend(keys)
        else:
            self.batch.changes.extend([(key, None) for key in keys])

    def delete_range(self, start: bytes, stop: bytes) -> None:
        """Remove all records with `start` <= key < `stop`, before this turn keeps any."""
        self.batch.ranges.append((start, stop))

    def set_aside(self, name: bytes, values: list[bytes]) -> None:
        """Make values durable that a later turn takes or drops."""
        self.batch.aside.append((name, values))

    def take(self, taken: Taken) -> None:
        """Let values that were set aside become records."""
        self.batch.taken.append(taken)

    def drop(self, name: bytes) -> None:
        """Forget what was set aside under a name, when this turn has taken what it takes."""
        self.batch.dropped.append(name)

    def delete(self, key: bytes) -> None:
        """Remove a record, wherever it is."""
        self.batch.changes.append((key, None))

    def touch(self, queue: Counted) -> None:
        """Write the queue's counts, as they are when the turn ends."""
        self._touched.add(queue)

    def close(self) -> Batch:
        """Return the batch, with the counts of all queues that were touched."""
        for queue in sorted(self._touched, key=lambda touched: touched.id):
            if queue.stored_count < 0 or queue.stored_bytes < 0:
                raise Defect(
                    f"queue {queue.id} is to have {queue.stored_count} messages with "
                    f"{queue.stored_bytes} bytes"
                )
            counts = records.encode_counts(queue.stored_count, queue.stored_bytes)
            self.batch.changes.append((records.counts_key(queue.id), counts))
        return self.batch
