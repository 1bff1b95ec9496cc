"""What a stream that consumes has for itself in the queue managers, and what it says if it has not.

A reservation belongs to the reader of the options and to one checkpoint. It is asked for before
Spark hears where a batch ends, and completed when Spark has committed the batch, if a task has
read in it.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from time import monotonic, sleep  # noqa: TID251 -- Spark's processes are no part of the core
from typing import Final

from openmsmq.api.messages import QueueStatus, Reserved
from openmsmq.client.blocking import Queue
from openmsmq.spark.connecting import explained
from openmsmq.spark.errors import QueueProblem
from openmsmq.spark.source.offsets import Spot
from openmsmq.spark.source.options import SourceOptions, UnreadBatches

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
