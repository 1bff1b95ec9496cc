"""What a turn does to outgoing queues: numbers are given, queues wait, messages change places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openmsmq.manager.queues.queue import LocalQueue, Row
from openmsmq.manager.turn.effects import Effect, Plain
from openmsmq.manager.turn.writes import Writes
from openmsmq.model.errors import MsmqError
from openmsmq.model.identity import SequenceId
from openmsmq.storage import records

if TYPE_CHECKING:
    from openmsmq.manager.peers.outgoing import OutgoingQueue, OutgoingQueues


class QueuePaused(Effect):
    """The messages of an outgoing queue wait, or go on."""

    __slots__ = ("before", "outgoing", "paused")

    def __init__(self, outgoing: OutgoingQueue, *, paused: bool) -> None:
        self.outgoing = outgoing
        self.before = outgoing.paused
        self.paused = paused

    def apply(self) -> None:
        """Let them wait, or go on."""
        self.outgoing.pause(paused=self.paused)

    def store(self, writes: Writes) -> None:
        """Write it: it is so after a restart, too."""
        store_outgoing(writes, self.outgoing)

    def revert(self, _: MsmqError, /) -> None:
        """Let it be as it was."""
        self.outgoing.pause(paused=self.before)

    def describe(self) -> dict[str, Plain]:
        """Return which queue it is."""
        return {"queue": self.outgoing.queue.name, "paused": self.paused}


class MessagesNumbered(Effect):
    """Messages have places in the sequence of their queue: it goes on after them.

    The numbers become durable with the messages, long before one of them is sent.
    """

    __slots__ = ("after", "before", "outgoing", "queues")

    def __init__(
        self,
        queues: OutgoingQueues,
        outgoing: OutgoingQueue,
        before: tuple[SequenceId | None, int],
    ) -> None:
        self.queues = queues
        self.outgoing = outgoing
        self.before = before
        """The sequence, and the last number in it, before the messages had theirs."""
        self.after = outgoing.sequence.id, outgoing.sequence.last_number

    def apply(self) -> None:
        """Let the sequence name its queue."""
        self.queues.note_sequence(self.outgoing)

    def store(self, writes: Writes) -> None:
        """Write how far the numbers are given."""
        store_outgoing(writes, self.outgoing)

    def revert(self, _: MsmqError, /) -> None:
        """Give the numbers to the messages that come next: nobody has heard of them."""
        self.outgoing.sequence.restore(*self.before)
        self.queues.note_sequence(self.outgoing)
        given = self.after[0]
        if given is not None and given != self.before[0]:
            self.queues.forget_sequence(given)

    def describe(self) -> dict[str, Plain]:
        """Return the queue, its sequence, and the last number before and after."""
        return {
            "queue": self.outgoing.queue.name,
            "sequence": str(self.after[0]),
            "last_number": self.after[1],
            "sequence_before": None if self.before[0] is None else str(self.before[0]),
            "last_number_before": self.before[1],
        }


class MoveAwaited(Effect):
    """A message is found where it goes before the disk has it there: its end may be heard of."""

    __slots__ = ("moving", "number", "place")

    def __init__(
        self, moving: dict[int, tuple[LocalQueue, Row]], number: int, queue: LocalQueue, row: Row
    ) -> None:
        self.moving = moving
        self.number = number
        self.place = queue, row

    def apply(self) -> None:
        """Let it be found by its number."""
        self.moving[self.number] = self.place

    def follow(self) -> None:
        """Let it be found in the store."""
        self.moving.pop(self.number, None)

    def revert(self, _: MsmqError, /) -> None:
        """Let it be found in the store, where it was before."""
        self.moving.pop(self.number, None)

    def describe(self) -> dict[str, Plain]:
        """Return the message's number and where it goes."""
        return {"message": self.number, "queue": self.place[0].name}


class EntriesGivenUp(Effect):
    """Entries leave an outgoing queue unsent: when that is durable, their places are bridged.

    Until then no transactional message of the queue leaves.
    """

    __slots__ = ("outgoing", "ready", "rows")

    def __init__(
        self, outgoing: OutgoingQueue, rows: list[Row], ready: dict[LocalQueue, None]
    ) -> None:
        self.outgoing = outgoing
        self.rows = rows
        self.ready = ready

    def apply(self) -> None:
        """Let others wait until it is known what goes before them."""
        self.outgoing.count_leaving(1)

    def follow(self) -> None:
        """Let the sequence go on without them."""
        for lookup_id, _ in self.rows:
            self.outgoing.sequence.gone(lookup_id)
        self._look_again()

    def revert(self, _: MsmqError, /) -> None:
        """Let everything leave as before."""
        self._look_again()

    def _look_again(self) -> None:
        self.outgoing.count_leaving(-1)
        self.ready[self.outgoing.queue] = None

    def describe(self) -> dict[str, Plain]:
        """Return the queue, and how many entries."""
        return {"queue": self.outgoing.queue.name, "entries": len(self.rows)}


def store_outgoing(writes: Writes, outgoing: OutgoingQueue) -> None:
    """Write what is to be known of an outgoing queue after a restart."""
    record = records.encode_record(outgoing.record)
    writes.put(records.outgoing_key(outgoing.queue.id), record)
