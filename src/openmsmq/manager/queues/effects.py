"""What a turn does to queues themselves: they come, change and go. Their entries are elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openmsmq.manager.queues.queue import NO_RESERVATION, LocalQueue
from openmsmq.manager.turn.effects import Effect, Plain
from openmsmq.manager.turn.writes import Writes
from openmsmq.model.errors import MsmqError
from openmsmq.model.queue import QueueProperties
from openmsmq.storage import records

if TYPE_CHECKING:
    from openmsmq.manager.queues.registry import QueueRegistry


class QueueCreated(Effect):
    """A queue comes into being. It is found at once, so that no second one takes its name."""

    __slots__ = ("queue", "table")

    def __init__(self, table: QueueRegistry, queue: LocalQueue) -> None:
        self.table = table
        self.queue = queue

    def apply(self) -> None:
        """Let it be found."""
        if self.queue.parent is not None:
            self.queue.parent.take_part(self.queue)
        self.table.insert(self.queue)

    def store(self, writes: Writes) -> None:
        """Write what it is, and its counts."""
        writes.put(records.queue_key(self.queue.id), self.table.record_of(self.queue))
        writes.touch(self.queue)

    def revert(self, _: MsmqError, /) -> None:
        """Let it not be found any more."""
        self.table.remove(self.queue)
        if self.queue.parent is not None:
            self.queue.parent.lose_part(self.queue)

    def describe(self) -> dict[str, Plain]:
        """Return which queue it is."""
        return {"queue": self.queue.name, "number": self.queue.id, "role": self.queue.role.name}


class PropertiesChanged(Effect):
    """A queue has other properties."""

    __slots__ = ("after", "before", "queue", "table")

    def __init__(self, table: QueueRegistry, queue: LocalQueue, after: QueueProperties) -> None:
        self.table = table
        self.queue = queue
        self.before = queue.properties
        self.after = after

    def apply(self) -> None:
        """Let the new ones count."""
        self.table.listen(self.queue, self.after.multicast_address)
        self.queue.take_properties(self.after)

    def store(self, writes: Writes) -> None:
        """Write what the queue is now."""
        writes.put(records.queue_key(self.queue.id), self.table.record_of(self.queue))

    def revert(self, _: MsmqError, /) -> None:
        """Let the old ones count."""
        self.table.listen(self.queue, self.before.multicast_address)
        self.queue.take_properties(self.before)

    def describe(self) -> dict[str, Plain]:
        """Return which queue it is, and which properties are other ones."""
        changed = (
            name
            for name in self.after.__struct_fields__
            if getattr(self.before, name) != getattr(self.after, name)
        )
        return {"queue": self.queue.name, "changed": " ".join(changed)}


class QueuesDeleted(Effect):
    """A queue is out of sight, with its journal and subqueues. Their entries go bit by bit."""

    __slots__ = ("family", "reservations", "table")

    def __init__(self, table: QueueRegistry, family: list[LocalQueue]) -> None:
        self.table = table
        self.family = family
        self.reservations = [member.reservation for member in family]

    def apply(self) -> None:
        """Let them not be found any more."""
        for member in self.family:
            self.table.remove(member)
            member.keep(NO_RESERVATION)

    def store(self, writes: Writes) -> None:
        """Delete what is known of them, and note that entries may be left."""
        for member in self.family:
            writes.delete(records.queue_key(member.id))
            writes.delete(records.counts_key(member.id))
            writes.delete(records.reservation_key(member.id))
            writes.delete(records.readers_key(member.id))
            writes.put(records.deleted_key(member.id), b"")

    def revert(self, _: MsmqError, /) -> None:
        """Let them be found, and be reserved as they were."""
        for member, reserved in zip(self.family, self.reservations, strict=True):
            self.table.insert(member)
            member.keep(reserved)

    def describe(self) -> dict[str, Plain]:
        """Return which queue it is, and how many go with it."""
        return {"queue": self.family[0].name, "queues": len(self.family)}


class OutgoingForgotten(Effect):
    """An outgoing queue that is empty, and that nobody has open, is forgotten."""

    __slots__ = ("family", "table")

    def __init__(self, table: QueueRegistry, family: list[LocalQueue]) -> None:
        self.table = table
        self.family = family

    def apply(self) -> None:
        """Let it not be found any more."""
        for member in self.family:
            self.table.remove(member)

    def store(self, writes: Writes) -> None:
        """Delete what is known of it."""
        for member in self.family:
            for key in (records.queue_key, records.counts_key, records.outgoing_key):
                writes.delete(key(member.id))

    def revert(self, _: MsmqError, /) -> None:
        """Let it be found."""
        for member in self.family:
            self.table.insert(member)

    def describe(self) -> dict[str, Plain]:
        """Return which queue it is."""
        return {"queue": self.family[0].name, "queues": len(self.family)}
