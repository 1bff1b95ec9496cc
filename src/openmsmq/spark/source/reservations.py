"""What a stream that consumes has for itself in the queue managers, and what it says if it has not.

A reservation belongs to the reader of the options and to one checkpoint. It is asked for before
Spark hears where a batch ends, and completed when Spark has committed the batch, if a task has
read in it. What a batch had to leave out, because its queue manager was gone, is noted at others.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from time import monotonic, sleep  # noqa: TID251 -- Spark's processes are no part of the core
from typing import Final

import msgspec

from openmsmq.api.messages import QueueStatus, Reserved
from openmsmq.client.blocking import Queue
from openmsmq.spark.connecting import explained
from openmsmq.spark.errors import QueueProblem
from openmsmq.spark.source.offsets import Spot
from openmsmq.spark.source.options import SourceOptions, UnreadBatches
from openmsmq.spark.source.queues import Source

HOLDER_PATIENCE_S: Final = 5.0
"""How long a query waits for another one of its name to end: it may be the one before it."""

_PAUSE_S: Final = 0.1


def shares(limit: int, wanted: Sequence[int]) -> list[int]:
    """Share a limit among queues by what waits in them, with one for each at least."""
    total = sum(wanted)
    if total <= limit:
        # More may come meanwhile, and then has its place.
        return [each + max(1, (limit - total) // len(wanted)) for each in wanted]
    found = [max(1, limit * each // total) for each in wanted]
    by_rest = sorted(range(len(wanted)), key=lambda place: -(limit * wanted[place] % total))
    for place in by_rest[: max(0, limit - sum(found))]:
        found[place] += 1
    return found


class Reservations:
    """The reservations of one driver."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._process = secrets.token_hex(16)

    def reserve(
        self,
        queue: Queue,
        spot: Spot,
        checkpoint: str,
        limits: Mapping[str, int],
        *,
        is_new: bool = False,
    ) -> Reserved:
        """Reserve messages from a place on; gives where they end, or that this was done before."""
        give_up = monotonic() + HOLDER_PATIENCE_S
        with explained(spot.address, spot.queue):
            while True:
                reply = queue.reserve_batch(
                    self._options.reader,
                    spot.next,
                    checkpoint=checkpoint,
                    holder=self._process,
                    is_new=is_new,
                    epoch=spot.epoch,
                    **limits,
                )
                if not reply.held:
                    return reply
                if monotonic() > give_up:
                    raise QueueProblem(f"queue {spot.name}: {reply.held}")
                sleep(_PAUSE_S)

    def complete(self, queue: Queue, spot: Spot, checkpoint: str) -> None:
        """Take out what Spark is done with: all below a place."""
        with explained(spot.address, spot.queue):
            is_done = queue.complete_batch(
                self._options.reader,
                spot.next,
                checkpoint=checkpoint,
                unread_too=self._options.unread_batches is UnreadBatches.DROP,
            )
        if not is_done:
            raise QueueProblem(
                f"queue {spot.name}: Spark has committed a batch up to arrival number {spot.next}, "
                "and no task has read it: the output has a batch of this number already, from "
                "another checkpoint, or foreachBatch did not use the rows. The messages are still "
                "in the queue. Give the output the checkpoint that belongs to it; or write to a "
                "new output with a new checkpointLocation; or, if messages are to be dropped that "
                "nobody reads, set the option unreadBatches=drop"
            )

    def covers(self, status: QueueStatus, start: int, stop: int) -> bool:
        """Whether all messages of a range are the reader's."""
        return (
            status.reserved_for == self._options.reader
            and status.reserved_start <= start
            and stop <= status.reserved_stop
        )

    def is_mine(self, status: QueueStatus) -> bool:
        """Whether the reader has something in a queue."""
        return status.reserved_for == self._options.reader


class _Note(msgspec.Struct, frozen=True):
    """Messages of one queue that a batch did not have which ends behind them."""

    name: str
    turn: int
    first: int


class LeftOut:
    """What the batches of a reader have left out, as far as its queue managers know.

    With `failOnDataLoss=false` a query goes on without a queue manager that is not in the option
    any more. If it repeats a batch then, the batch is written without the messages that it had
    there. A driver before may have read them, so that they count as read; they would be taken out,
    and lost, when the queue manager is back. So the others note what was left out, and it is
    planned once more.
    """

    def __init__(self, reader: str) -> None:
        self._reader = reader
        self._notes: dict[str, _Note] | None = None

    def note(self, sources: Sequence[Source], checkpoint: str, spot: Spot, first: int) -> None:
        """Let all queue managers note that messages up to a place were left out."""
        note = _Note(self._name(checkpoint, spot), spot.turn + 1, first)
        for source in sources:
            with explained(source.address):
                source.manager.commit_batch(note.name, note.turn, [], checkpoint=str(first))
        self._known(sources, checkpoint)[note.name] = note

    def again(self, sources: Sequence[Source], checkpoint: str, spot: Spot) -> Spot | None:
        """Return the place with the messages before it that are to be read once more, if there are.

        When they are planned, the checkpoint has the turn, and the note is over.
        """
        name = self._name(checkpoint, spot)
        note = self._known(sources, checkpoint).get(name)
        if note is None:
            return None
        if note.turn > spot.turn:
            return msgspec.structs.replace(spot, begin=note.first, turn=note.turn)
        for source in sources:
            with explained(source.address):
                source.manager.forget_query(name)
        del self._known(sources, checkpoint)[name]
        return None

    def _known(self, sources: Sequence[Source], checkpoint: str) -> dict[str, _Note]:
        """Return the notes; they are asked for once, because only this driver makes new ones."""
        if self._notes is None:
            found: dict[str, _Note] = {}
            for source in sources:
                with explained(source.address):
                    listed = source.manager.queries(prefix=self._prefix(checkpoint))
                for each in listed:
                    # One that was put back to an older state knows less.
                    if each.query not in found or each.batch > found[each.query].turn:
                        found[each.query] = _Note(each.query, each.batch, int(each.checkpoint))
            self._notes = found
        return self._notes

    def _name(self, checkpoint: str, spot: Spot) -> str:
        return f"{self._prefix(checkpoint)}{_digest(spot.key, spot.identity)} {spot.next}"

    def _prefix(self, checkpoint: str) -> str:
        return f"left out {_digest(self._reader, checkpoint)} "


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
