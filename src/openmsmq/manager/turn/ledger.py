"""The ledger of a turn: what is to become durable, and what follows when it is.

Everything a queue manager does in one turn is one batch. Nobody hears of it before the disk has
it: replies, and everything others could see, wait in the ledger until `settle`. If the disk
refuses, `revoke` undoes what memory already assumed, in reverse order.

One batch at a time is on its way to the disk. What happens meanwhile is the next turn; it may build
on what memory assumes, so it falls together with the batch before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from openmsmq.manager.outputs import Persist
from openmsmq.model.errors import MsmqError
from openmsmq.storage import records
from openmsmq.storage.port import Batch

Undo = Callable[[MsmqError], None]


class Counted(Protocol):
    """What has counts that are written with the turn: a queue."""

    id: int
    stored_count: int
    stored_bytes: int


class Turn:
    """One batch and its consequences."""

    __slots__ = ("batch", "done", "done_last", "last_words", "touched", "undo")

    def __init__(self) -> None:
        self.batch = Batch([], [], [], [])
        self.done: list[Callable[[], None]] = []
        self.done_last: list[Callable[[], None]] = []
        self.undo: list[Undo] = []
        self.touched: set[Counted] = set()
        self.last_words: list[Callable[[], None]] = []

    def follow(self) -> None:
        """Let everything happen that waited for the batch."""
        for action in self.done:
            action()
        for action in self.done_last:
            action()


class Ledger:
    """Collects the current turn and remembers the one on its way to the disk."""

    def __init__(self) -> None:
        self._turn = Turn()
        self._ticket = 0
        self._under_way: dict[int, Turn] = {}

    def put(self, key: bytes, value: bytes) -> None:
        """Make a record durable with this turn."""
        self._turn.batch.changes.append((key, value))

    def put_many(self, records: list[tuple[bytes, bytes]], *, volatile: bool) -> None:
        """Keep several records, durable or in memory only."""
        batch = self._turn.batch
        if volatile:
            batch.volatile += records
        else:
            batch.changes += records

    def put_volatile(self, key: bytes, value: bytes) -> None:
        """Keep a record in memory only."""
        self._turn.batch.volatile.append((key, value))

    def take_out(self, keys: list[bytes], *, volatile: bool) -> None:
        """Remove several records that are durable, or in memory only."""
        batch = self._turn.batch
        if volatile:
            batch.forgotten += keys
        else:
            batch.changes += [(key, None) for key in keys]

    def delete_range(self, start: bytes, stop: bytes) -> None:
        """Remove all records with `start` <= key < `stop`, before this turn keeps any."""
        self._turn.batch.ranges.append((start, stop))

    def delete(self, key: bytes) -> None:
        """Remove a record with this turn, wherever it is."""
        self._turn.batch.changes.append((key, None))

    def touch(self, queue: Counted) -> None:
        """Write the queue's counts with this turn."""
        self._turn.touched.add(queue)

    def before_seal(self, action: Callable[[], None]) -> None:
        """Do something at the end of the turn, before its batch is closed."""
        self._turn.last_words.append(action)

    def when_done(
        self, action: Callable[[], None], undo: Undo, *, after_others: bool = False
    ) -> None:
        """Do something once the turn is durable, or undo what was assumed when it fails."""
        turn = self._turn
        (turn.done_last if after_others else turn.done).append(action)
        turn.undo.append(undo)

    def seal(self) -> Persist | None:
        """Close the turn; give what must be persisted, or None when its consequences may follow.

        A turn that stores nothing has no one to wait for: it is settled here. While a batch is
        under way the turn stays open.
        """
        if self._under_way:
            return None
        turn = self._turn
        while turn.last_words:
            turn.last_words.pop()()
        if not turn.batch:
            if turn.done or turn.done_last:
                self._turn = Turn()
                turn.follow()
            return None
        self._turn = Turn()
        for queue in sorted(turn.touched, key=lambda touched: touched.id):
            counts = records.encode_counts(queue.stored_count, queue.stored_bytes)
            turn.batch.changes.append((records.counts_key(queue.id), counts))
        self._ticket += 1
        self._under_way[self._ticket] = turn
        return Persist(self._ticket, turn.batch)

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be sealed."""
        return not (self._turn.batch or self._turn.done or self._turn.done_last)

    def settle(self, ticket: int) -> None:
        """The batch is durable: let everything follow."""
        self._under_way.pop(ticket).follow()

    def revoke(self, ticket: int, error: MsmqError) -> None:
        """The batch was refused: undo it and what was built on it, last first."""
        later, self._turn = self._turn, Turn()
        for turn in (later, self._under_way.pop(ticket)):
            for undo in reversed(turn.undo):
                undo(error)
