"""What a turn does with entries: they come into a queue, leave it, expire, and are purged."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from openmsmq.manager.messages.news import News
from openmsmq.manager.queues.queue import LocalQueue, Row
from openmsmq.manager.turn.deadlines import Deadlines
from openmsmq.manager.turn.effects import Effect, Plain
from openmsmq.manager.turn.writes import Writes
from openmsmq.model.clock import Instant
from openmsmq.model.errors import MsmqError
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import MessageClass
from openmsmq.storage import records
from openmsmq.storage.port import Taken
from openmsmq.storage.records import FACTS_BYTES

if TYPE_CHECKING:
    from openmsmq.manager.messages.housekeeping import Housekeeping, Job

Due: TypeAlias = tuple[int, int]
"""A lookup identifier, and when that entry expires."""


class EntriesPlaced(Effect):
    """New entries, all express or none, come into a queue; readers see them when it is durable."""

    __slots__ = ("clock", "due", "express", "lookup_ids", "news", "queue", "rows", "size")

    def __init__(
        self,
        news: News,
        clock: Deadlines,
        queue: LocalQueue,
        rows: list[Row],
        due: list[Due],
        *,
        express: bool,
    ) -> None:
        self.news = news
        self.clock = clock
        self.queue = queue
        self.rows = rows
        self.due = due
        """Those of them that the clock is to watch."""
        self.express = express
        self.lookup_ids = [lookup_id for lookup_id, _ in rows]
        self.size = size_of(rows)

    def apply(self) -> None:
        """Count them, so that nobody takes their room."""
        self.queue.entries.place(self.lookup_ids)
        self.queue.count_many_in(self.lookup_ids, self.size, express=self.express)

    def store(self, writes: Writes) -> None:
        """Write them, and when they expire."""
        entry_key, number = records.entry_key, self.queue.id
        kept = [(entry_key(number, lookup_id), value) for lookup_id, value in self.rows]
        writes.put_many(kept, volatile=self.express)
        if self.due:
            write_due(writes, self.queue, self.due, express=self.express)
        if not self.express:
            writes.touch(self.queue)

    def follow(self) -> None:
        """Let readers and the clock know of them."""
        self.queue.entries.arrive(self.lookup_ids)
        self.queue.flow.came(len(self.lookup_ids), self.size)
        self.queue.became_available(min(self.lookup_ids))
        watch(self.clock, self.queue, self.due)
        self.news.of(self.queue)

    def revert(self, _: MsmqError, /) -> None:
        """Count them no more: they never came."""
        self.queue.entries.withdraw(self.lookup_ids)
        self.queue.count_many_out(self.lookup_ids, self.size, express=self.express)

    def describe(self) -> dict[str, Plain]:
        """Return into which queue, and how much."""
        return {
            "queue": self.queue.name,
            "count": len(self.lookup_ids),
            "bytes": self.size,
            "express": self.express,
        }


class EntriesTaken(EntriesPlaced):
    """New entries come into a queue that were set aside before."""

    __slots__ = ("taken",)

    def __init__(
        self, news: News, clock: Deadlines, queue: LocalQueue, taken: Taken, size: int
    ) -> None:
        super().__init__(news, clock, queue, [], [], express=False)
        self.taken = taken
        first = records.lookup_of(taken.key)
        self.lookup_ids = list(range(first, first + taken.count))
        self.size = size

    def store(self, writes: Writes) -> None:
        """Say which they are; their bytes are on the disk."""
        writes.take(self.taken)
        writes.touch(self.queue)


class EntriesRemoved(Effect):
    """Entries leave a queue; nobody sees them while that waits for the disk."""

    __slots__ = (
        "before",
        "clock",
        "heavy",
        "light",
        "lookup_ids",
        "news",
        "queue",
        "reason",
        "rows",
        "size",
    )

    def __init__(
        self,
        news: News,
        clock: Deadlines,
        queue: LocalQueue,
        rows: list[Row],
        reason: MessageClass | None = None,
    ) -> None:
        self.news = news
        self.clock = clock
        self.queue = queue
        self.rows = rows
        self.reason = reason
        """What became of them; None if they go to another queue of this computer."""
        self.size = size_of(rows)
        self.lookup_ids = [lookup_id for lookup_id, _ in rows]
        self.light, self.heavy = queue.by_kind(rows)
        """The express ones, and the others."""
        self.before: dict[int, int] = {}
        """Who had those that somebody had."""

    def apply(self) -> None:
        """Hide them, and count them no more."""
        self.before = self.queue.entries.remove(self.lookup_ids)
        for part, express in ((self.light, True), (self.heavy, False)):
            if part:
                lookup_ids = self._lookup_ids(part)
                self.queue.count_many_out(lookup_ids, self._size_of(part), express=express)

    def store(self, writes: Writes) -> None:
        """Remove them."""
        entry_key, number = records.entry_key, self.queue.id
        for part, express in ((self.light, True), (self.heavy, False)):
            if part:
                keys = [entry_key(number, lookup_id) for lookup_id in self._lookup_ids(part)]
                writes.take_out(keys, volatile=express)
        if self.heavy:
            writes.touch(self.queue)

    def _lookup_ids(self, part: list[Row]) -> list[int]:
        if len(part) == len(self.rows):
            return self.lookup_ids
        return [lookup_id for lookup_id, _ in part]

    def _size_of(self, part: list[Row]) -> int:
        return self.size if len(part) == len(self.rows) else size_of(part)

    def follow(self) -> None:
        """Forget them."""
        self.queue.entries.gone(self.lookup_ids)
        self.queue.flow.left(len(self.lookup_ids), self.size, self.reason)

    def revert(self, _: MsmqError, /) -> None:
        """Let them be there again, and whose they were."""
        for part, express in ((self.light, True), (self.heavy, False)):
            if part:
                lookup_ids = self._lookup_ids(part)
                self.queue.count_many_in(lookup_ids, size_of(part), express=express)
        available = set(self.queue.entries.stay(self.lookup_ids, self.before))
        for lookup_id, value in self.rows:
            if lookup_id in available:
                available_again(self.news, self.clock, self.queue, (lookup_id, value))

    def describe(self) -> dict[str, Plain]:
        """Return out of which queue, and how much."""
        return {
            "queue": self.queue.name,
            "count": len(self.rows),
            "bytes": self.size,
        }


def available_again(news: News, clock: Deadlines, queue: LocalQueue, row: Row) -> None:
    """Let readers and the clock know of an entry that they may have again."""
    lookup_id, value = row
    queue.became_available(lookup_id)
    news.of(queue)
    deadline_s = records.deadline_of(value)
    if deadline_s != INFINITE_S:
        clock.note(deadline_s, queue.id, lookup_id)


def size_of(rows: list[Row]) -> int:
    """Return how many bytes the messages of entries have."""
    return sum([len(value) for _, value in rows]) - FACTS_BYTES * len(rows)


class DeadlinesNoted(Effect):
    """Entries that were placed long ago expire soon: the clock is to watch them."""

    __slots__ = ("clock", "due", "queue")

    def __init__(self, clock: Deadlines, queue: LocalQueue, due: list[Due]) -> None:
        self.clock = clock
        self.queue = queue
        self.due = due

    def store(self, writes: Writes) -> None:
        """Write when they expire, in memory for those that are only there."""
        light = self.queue.express_ids
        for each in self.due:
            write_due(writes, self.queue, [each], express=each[0] in light)

    def follow(self) -> None:
        """Let the clock know of them."""
        watch(self.clock, self.queue, self.due)

    def describe(self) -> dict[str, Plain]:
        """Return of which queue, and how many."""
        return {"queue": self.queue.name, "count": len(self.due)}


def watch(clock: Deadlines, queue: LocalQueue, due: list[Due]) -> None:
    """Let the clock know when entries expire that are in the store."""
    for lookup_id, deadline_s in due:
        clock.note(deadline_s, queue.id, lookup_id)


def write_due(writes: Writes, queue: LocalQueue, due: list[Due], *, express: bool) -> None:
    """Write down for the clock when entries expire."""
    key, number = records.deadline_key, queue.id
    notes = [(key(deadline_s, number, lookup_id), b"") for lookup_id, deadline_s in due]
    writes.put_many(notes, volatile=express)


class EntriesDoomed(Effect):
    """Entries that somebody holds are purged: they go when he gives them back (C-126)."""

    __slots__ = ("before", "lookup_ids", "queue", "reason")

    def __init__(self, queue: LocalQueue, lookup_ids: list[int], reason: MessageClass) -> None:
        self.queue = queue
        self.lookup_ids = lookup_ids
        self.reason = reason
        self.before: dict[int, MessageClass] = {}
        """Those that were doomed already, and why."""

    def apply(self) -> None:
        """Doom them; there is nothing to store, for who holds them is in memory too."""
        self.before = self.queue.entries.doom(self.lookup_ids, self.reason)

    def revert(self, _: MsmqError, /) -> None:
        """Let them be as they were, unless they were given back."""
        self.queue.entries.undo_doom(self.lookup_ids, self.before)

    def describe(self) -> dict[str, Plain]:
        """Return of which queue, and how many."""
        return {"queue": self.queue.name, "count": len(self.lookup_ids)}


class SliceRemoved(Effect):
    """A slice of long work is done; the last one ends it."""

    __slots__ = ("housekeeping", "is_last", "job", "removed")

    def __init__(self, housekeeping: Housekeeping, job: Job, *, is_last: bool) -> None:
        self.housekeeping = housekeeping
        self.job = job
        self.removed = job.removed
        self.is_last = is_last

    def follow(self) -> None:
        """Tell who waits for the end of the work."""
        if self.is_last:
            self.job.finished(self.removed)

    def revert(self, error: MsmqError, /) -> None:
        """Give the work up, or begin it again."""
        self.housekeeping.refused(self.job, error)

    def describe(self) -> dict[str, Plain]:
        """Return which queue is being emptied, and how far that is."""
        return {"queue": self.job.queue.name, "removed": self.removed, "is_last": self.is_last}


class RemovalPromised(Effect):
    """Entries are finished, and taken out by an action that is tried until the disk agrees.

    It is added before the action is carried out, so that it is taken back after it.
    """

    __slots__ = ("action", "housekeeping", "queue", "rows")

    def __init__(
        self,
        housekeeping: Housekeeping,
        queue: LocalQueue,
        rows: list[Row],
        action: Callable[[Instant], None],
    ) -> None:
        self.housekeeping = housekeeping
        self.queue = queue
        self.rows = rows
        self.action = action

    def apply(self) -> None:
        """Let nobody see them again; that is not taken back."""
        self.queue.entries.finish([lookup_id for lookup_id, _ in self.rows])

    def revert(self, _: MsmqError, /) -> None:
        """Try again later."""
        self.housekeeping.put_off(self.queue, self.rows, self.action)

    def describe(self) -> dict[str, Plain]:
        """Return of which queue, and how many."""
        return {"queue": self.queue.name, "count": len(self.rows)}


class QueueSwept(Effect):
    """Nothing is left of a queue that was deleted before a restart."""

    __slots__ = ("leftovers", "number")

    def __init__(self, leftovers: list[int], number: int) -> None:
        self.leftovers = leftovers
        self.number = number

    def apply(self) -> None:
        """Look there no more."""
        self.leftovers.remove(self.number)

    def store(self, writes: Writes) -> None:
        """Forget that it was deleted."""
        writes.delete(records.deleted_key(self.number))
        writes.delete(records.counts_key(self.number))

    def revert(self, _: MsmqError, /) -> None:
        """Look there again."""
        self.leftovers.append(self.number)

    def describe(self) -> dict[str, Plain]:
        """Return which queue it was."""
        return {"number": self.number}


class HousekeepingDone(Effect):
    """Work was done that a full disk may refuse: then it is not tried again at once."""

    __slots__ = ("housekeeping", "now")

    def __init__(self, housekeeping: Housekeeping, now: Instant) -> None:
        self.housekeeping = housekeeping
        self.now = now

    def revert(self, _: MsmqError, /) -> None:
        """Pause: to try again at once would be all we did."""
        self.housekeeping.pause(self.now)

    def describe(self) -> dict[str, Plain]:
        """Return when it was done."""
        return {"ticks_ms": self.now.ticks_ms}
