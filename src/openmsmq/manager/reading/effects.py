"""What a turn does for readers: messages are handed over, unlocked, reserved, and completed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from openmsmq.api import messages as api
from openmsmq.manager.queues.connections import Connection, OpenQueue
from openmsmq.manager.queues.queue import NO_RESERVATION, LocalQueue
from openmsmq.manager.queues.reads import WaitingRead
from openmsmq.manager.turn.effects import Effect, Plain
from openmsmq.manager.turn.writes import Writes
from openmsmq.model.errors import MsmqError
from openmsmq.model.message import MessageClass
from openmsmq.storage import records
from openmsmq.storage.records import ReaderRecord, ReadersRecord, ReservationRecord

if TYPE_CHECKING:
    from openmsmq.manager.messages.news import News
    from openmsmq.manager.reading.bulk_reads import BulkReads
    from openmsmq.manager.reading.locks import ReadLocks
    from openmsmq.manager.reading.requests import ReadRequests
    from openmsmq.storage.port import StoreReader


class HandedOver(Effect):
    """A read that waits is given what is just coming, before it was ever in the queue."""

    __slots__ = ("read", "reply", "requests")

    def __init__(self, requests: ReadRequests, read: WaitingRead, reply: api.Entries) -> None:
        self.requests = requests
        self.read = read
        self.reply = reply

    def follow(self) -> None:
        """Answer."""
        entries = self.reply.entries
        size = sum([len(entry.packet) for entry in entries])
        self.read.opened.queue.flow.passed(len(entries), size)
        self.requests.served(self.read, self.reply)

    def revert(self, _: MsmqError, /) -> None:
        """Let the read go on waiting."""
        self.requests.wait_again(self.read)

    def describe(self) -> dict[str, Plain]:
        """Return who is given how many."""
        return {
            "connection": self.read.connection,
            "call": self.read.call,
            "count": len(self.reply.entries),
        }


class LockEnded(Effect):
    """A locked message is taken out. It is added before that, so that it is taken back after it:
    by then the message is locked again."""

    __slots__ = ("locks", "lookup_id", "opened", "state")

    def __init__(
        self, locks: ReadLocks, state: Connection, opened: OpenQueue, lookup_id: int
    ) -> None:
        self.locks = locks
        self.state = state
        self.opened = opened
        self.lookup_id = lookup_id

    def apply(self) -> None:
        """Let the reader have no lock on it."""
        self.opened.locked.discard(self.lookup_id)

    def revert(self, _: MsmqError, /) -> None:
        """Let the reader have the lock again, or nobody if it is gone."""
        self.locks.lock_again(self.state, self.opened, self.lookup_id)

    def describe(self) -> dict[str, Plain]:
        """Return which message it is."""
        return {"queue": self.opened.queue.name, "lookup_id": self.lookup_id}


class ReservationChanged(Effect):
    """Messages are kept for a reader, more or less than before, or none any more."""

    __slots__ = ("after", "before", "queue")

    def __init__(self, queue: LocalQueue, after: ReservationRecord) -> None:
        self.queue = queue
        self.before = queue.reservation
        self.after = after

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept any more."""
        return self.after.start >= self.after.stop

    def apply(self) -> None:
        """Keep them from now on."""
        self.queue.keep(NO_RESERVATION if self.is_empty else self.after)

    def store(self, writes: Writes) -> None:
        """Write for whom which are kept."""
        key = records.reservation_key(self.queue.id)
        if self.is_empty:
            writes.delete(key)
        else:
            writes.put(key, records.encode_record(self.after))

    def follow(self) -> None:
        """Believe from now on what is counted of them: nobody else can take any."""
        if self.queue.reservation.reader == self.after.reader:
            self.queue.fetched.reach(self.after.stop)

    def revert(self, _: MsmqError, /) -> None:
        """Keep what was kept before."""
        self.queue.keep(self.before)
        self.queue.fetched.forget()

    def describe(self) -> dict[str, Plain]:
        """Return for whom which are kept."""
        return {
            "queue": self.queue.name,
            "reader": self.after.reader,
            "start": self.after.start,
            "stop": self.after.stop,
        }


class ReservationExtended(Effect):
    """A reservation reaches further. It is added before that is so, and taken back after it."""

    __slots__ = ("queue", "reads", "start", "stop")

    def __init__(self, reads: BulkReads, queue: LocalQueue, start: int, stop: int) -> None:
        self.reads = reads
        self.queue = queue
        self.start = start
        self.stop = stop

    def revert(self, _: MsmqError, /) -> None:
        """Let others have the messages again, and let them expire."""
        self.reads.free_again(self.queue, self.start, self.stop)

    def describe(self) -> dict[str, Plain]:
        """Return what comes to it."""
        return {"queue": self.queue.name, "start": self.start, "stop": self.stop}


class ReservationGivenUp(Effect):
    """Nobody has read what a query had reserved that is gone: others may have it."""

    __slots__ = ("queue", "reads", "start", "stop")

    def __init__(self, reads: BulkReads, queue: LocalQueue) -> None:
        self.reads = reads
        self.queue = queue
        self.start = queue.reservation.start
        self.stop = queue.reservation.stop

    def follow(self) -> None:
        """Let others have the messages, and let them expire."""
        self.reads.free_again(self.queue, self.start, self.stop)

    def describe(self) -> dict[str, Plain]:
        """Return what it was."""
        return {"queue": self.queue.name, "start": self.start, "stop": self.stop}


class ReservationReleased(Effect):
    """A reservation ends, not before that is durable: a transaction could take messages."""

    __slots__ = ("queue", "reads", "releasing")

    def __init__(self, reads: BulkReads, queue: LocalQueue, releasing: set[LocalQueue]) -> None:
        self.reads = reads
        self.queue = queue
        self.releasing = releasing

    def apply(self) -> None:
        """Let nobody reserve anything until then."""
        self.releasing.add(self.queue)

    def store(self, writes: Writes) -> None:
        """Forget for whom they are kept."""
        writes.delete(records.reservation_key(self.queue.id))

    def follow(self) -> None:
        """Let everybody have the messages."""
        self.releasing.discard(self.queue)
        kept = self.queue.reservation
        self.queue.keep(NO_RESERVATION)
        self.reads.free_again(self.queue, kept.start, kept.stop)

    def revert(self, _: MsmqError, /) -> None:
        """Keep them."""
        self.releasing.discard(self.queue)

    def describe(self) -> dict[str, Plain]:
        """Return whose it was."""
        return {"queue": self.queue.name, "reader": self.queue.reservation.reader}


class ReservationRead(Effect):
    """Somebody fetches what is reserved; nobody gets it before that is durable."""

    __slots__ = ("after", "marking", "queue")

    def __init__(self, queue: LocalQueue, marking: set[LocalQueue]) -> None:
        self.queue = queue
        self.marking = marking
        self.after = msgspec.structs.replace(queue.reservation, is_read=True)

    def apply(self) -> None:
        """Let what others fetch wait for that, too."""
        self.queue.keep(self.after)
        self.marking.add(self.queue)

    def store(self, writes: Writes) -> None:
        """Write that somebody has it."""
        writes.put(records.reservation_key(self.queue.id), records.encode_record(self.after))

    def follow(self) -> None:
        """Let the next ones have it at once."""
        self.marking.discard(self.queue)

    def revert(self, _: MsmqError, /) -> None:
        """Let it be unread; it may have been released since then, or changed."""
        self.marking.discard(self.queue)
        self.queue.keep(msgspec.structs.replace(self.queue.reservation, is_read=False))

    def describe(self) -> dict[str, Plain]:
        """Return whose it is."""
        return {"queue": self.queue.name, "reader": self.after.reader}


class RangeRemoved(Effect):
    """All durable messages between two arrival numbers leave, of which so many are there."""

    __slots__ = ("bounds", "count", "news", "queue", "reader", "size")

    def __init__(
        self,
        news: News,
        reader: StoreReader,
        queue: LocalQueue,
        bounds: tuple[int, int],
        count: int,
        size: int,
    ) -> None:
        self.news = news
        self.reader = reader
        self.queue = queue
        self.bounds = bounds
        self.count = count
        self.size = size

    def apply(self) -> None:
        """Hide them, and count them no more."""
        self.queue.entries.remove_range(self.bounds)
        self.queue.count_range(-self.count, -self.size)

    def store(self, writes: Writes) -> None:
        """Remove them, in each priority that has any."""
        start, stop = self.bounds
        for level in range(8):
            low = records.entry_key(self.queue.id, level << 56 | start)
            high = records.entry_key(self.queue.id, level << 56 | stop)
            if self.reader.scan(low, high, 1):
                writes.delete_range(low, high)
        writes.touch(self.queue)

    def follow(self) -> None:
        """Forget them."""
        self.queue.entries.range_gone(self.bounds)
        self.queue.flow.left(self.count, self.size, MessageClass.ACK_RECEIVE)

    def revert(self, _: MsmqError, /) -> None:
        """Let them be there again."""
        self.queue.entries.range_gone(self.bounds)
        self.queue.count_range(self.count, self.size)
        self.queue.became_available(0)
        self.news.of(self.queue)

    def describe(self) -> dict[str, Plain]:
        """Return which they are, and how much."""
        start, stop = self.bounds
        return {
            "queue": self.queue.name,
            "start": start,
            "stop": stop,
            "count": self.count,
            "bytes": self.size,
        }


class ReadersChanged(Effect):
    """Which queries read a queue under which names is other than before."""

    __slots__ = ("after", "before", "queue")

    def __init__(self, queue: LocalQueue, after: dict[str, ReaderRecord]) -> None:
        self.queue = queue
        self.before = queue.readers
        self.after = after

    def apply(self) -> None:
        """Let it be so."""
        self.queue.take_readers(self.after)

    def store(self, writes: Writes) -> None:
        """Write it, or that there is none."""
        key = records.readers_key(self.queue.id)
        if self.after:
            writes.put(key, records.encode_record(ReadersRecord(self.after)))
        else:
            writes.delete(key)

    def revert(self, _: MsmqError, /) -> None:
        """Let it be as it was."""
        self.queue.take_readers(self.before)

    def describe(self) -> dict[str, Plain]:
        """Return how many there are."""
        return {"queue": self.queue.name, "count": len(self.after)}
