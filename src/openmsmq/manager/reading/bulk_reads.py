"""Reading very many messages by arrival number, and keeping them for one reader meanwhile.

A reader that goes by arrival numbers may read the same messages again after it failed, so they
must still be there: it reserves them first, and says when it is done with them. A reservation is
a range, in the store as two numbers, so a million reserved messages cost no more than one.

It is done with them in the same way. Messages whose end causes nothing else, and which it fetched,
so that their number and bytes are known, go as a range too. A query that has a checkpoint is
believed only if somebody has fetched from what it is done with: a sink may have taken its batch
for an older one, and written nothing.
"""

from __future__ import annotations

from typing import Final

import msgspec

from openmsmq.api import messages as api
from openmsmq.manager.access.control import AccessControl
from openmsmq.manager.access.handlers import Handlers
from openmsmq.manager.messages.delivery import Delivery
from openmsmq.manager.queues.connections import Connection, OpenQueue
from openmsmq.manager.queues.queue import LocalQueue, Row
from openmsmq.manager.queues.replies import Replies
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.reading.bulk_looks import SLICE_ROWS, BulkLooks, arrival_of, end_of
from openmsmq.manager.reading.by_arrival import by_arrival
from openmsmq.manager.reading.effects import (
    RangeRemoved,
    ReservationChanged,
    ReservationExtended,
    ReservationGivenUp,
    ReservationReleased,
)
from openmsmq.manager.reading.readers import Readers
from openmsmq.manager.reading.requests import ReadRequests
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.access import QueueAccess
from openmsmq.model.clock import Instant
from openmsmq.model.errors import AccessDenied, InvalidParameter, SharingViolation
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import MessageClass
from openmsmq.model.queue import AccessMode
from openmsmq.security.access.callers import Caller
from openmsmq.storage import records
from openmsmq.storage.records import ReservationRecord

_NOTHING: Final = ReservationRecord("", 0, 0)
_CHANGE: Final = int(QueueAccess.SET_PROPERTIES)


class BulkReads:
    """Serves readers that go by arrival numbers."""

    def __init__(
        self,
        base: Foundation,
        table: QueueTable,
        delivery: Delivery,
        reads: ReadRequests,
        replies: Replies,
        access: AccessControl,
    ) -> None:
        self._config = base.config
        self._deadlines = base.deadlines
        self._ledger = base.ledger
        self._reader = base.reader
        self._table = table
        self._delivery = delivery
        self._reads = reads
        self._replies = replies
        self._access = access
        self._readers = Readers(base.ledger, access)
        self.looks = BulkLooks(base, reads, replies, self._readers)
        self._releasing: set[LocalQueue] = set()
        """Queues whose reservation is over as soon as the disk says so."""
        for queue in table:
            value = base.reader.get(records.reservation_key(queue.id))
            if value is not None:
                kept = records.decode_record(value, records.ReservationRecord)
                queue.keep(kept)
                queue.fetched.reach(kept.stop)
            value = base.reader.get(records.readers_key(queue.id))
            if value is not None:
                queue.take_readers(records.decode_readers(value))

    def serve(self, handlers: Handlers) -> None:
        """Say which requests are carried out here."""
        handlers.add(api.FetchRange, self.looks.fetch_range)
        handlers.add(api.FetchPackets, self.looks.fetch_packets)
        handlers.add(api.RemoveRange, self.remove_range)
        handlers.add(api.Reserve, self.reserve)
        handlers.add(api.Measure, self.looks.measure)
        handlers.add(api.Survey, self.looks.survey)
        handlers.add(api.GetEpochs, self.looks.get_epochs)
        handlers.add(api.Complete, self.complete)
        handlers.add(api.Release, self.release)

    def connection_lost(self, state: Connection) -> None:
        """Note that whoever read through a connection may be gone."""
        self._readers.connection_lost(state)

    # Taking.

    def remove_range(
        self, state: Connection, call: int, request: api.RemoveRange, now: Instant
    ) -> None:
        """Take out the first messages of a range of arrival numbers."""
        queue = self._receiving(state, request.handle).queue
        rows = by_arrival(queue, request.start, request.stop, SLICE_ROWS)
        removed = self._take_out(queue, rows, now)
        next_start = 0
        if rows and by_arrival(queue, arrival_of(rows[-1]) + 1, request.stop, 1):
            next_start = arrival_of(rows[-1]) + 1
        self._replies.answer_when_done(state.id, call, api.Removed(removed, next_start))

    def _take_out(self, queue: LocalQueue, rows: list[Row], now: Instant) -> int:
        free = [row for row in rows if not queue.is_held(row[0])]
        if free:
            self._delivery.end(queue, free, MessageClass.ACK_RECEIVE, now)
        return len(free)

    def _receiving(self, state: Connection, handle: int) -> OpenQueue:
        opened = state.queue(handle)
        self._reads.require_readable(state, opened, peek=False, transaction=0)
        return opened

    # Reservations.

    def reserve(self, state: Connection, call: int, request: api.Reserve, now: Instant) -> None:
        """Keep messages for a reader."""
        opened = self._receiving(state, request.handle)
        queue = opened.queue
        if opened.access is not AccessMode.RECEIVE:
            raise InvalidParameter(f"{queue.name} is an outgoing queue: nothing is reserved there")
        self._readers.require_names(request)
        self.looks.require_limits(request)
        if queue in self._releasing:
            raise SharingViolation(
                f"what is reserved in {queue.name} is just being released: ask again"
            )
        held = self._readers.holder_of(queue, request, now) if request.checkpoint else ""
        if held:
            self._replies.answer(state.id, call, api.Reserved(request.start, held=held))
            return
        self._readers.require_current(queue, request, state)
        completed = self._readers.completed(queue, request)
        if completed > request.start:
            reply = api.Reserved(request.start, completed)
            self._replies.answer_when_done(state.id, call, reply)
            return
        stop = self._reserve(queue, request, state.caller)
        self._readers.reserved(queue, request, state, now)
        self._replies.answer_when_done(state.id, call, api.Reserved(stop))

    def _reserve(self, queue: LocalQueue, request: api.Reserve, caller: Caller) -> int:
        """Keep messages for a reader, beside those it has; give where they end."""
        kept = ReservationRecord(
            request.reader,
            request.start,
            request.start,
            caller.owner_name,
            request.checkpoint,
            is_read=not request.checkpoint,
        )
        if self._is_pending(queue):
            self._require_mine(queue, request, caller)
            if queue.reservation.checkpoint not in ("", request.checkpoint):
                self._readers.require_unread(queue, request)
                self._give_up(queue)
            else:
                self._require_unread(queue, request)
                kept = msgspec.structs.replace(queue.reservation, checkpoint=request.checkpoint)
        stop = self._stop_for(queue, request, kept.stop)
        if stop > kept.stop:
            self._ledger.add_waiting(ReservationExtended(self, queue, kept.stop, stop))
            self._ledger.add(ReservationChanged(queue, msgspec.structs.replace(kept, stop=stop)))
        elif kept.start < kept.stop and kept.checkpoint != queue.reservation.checkpoint:
            self._ledger.add(ReservationChanged(queue, kept))
        return stop

    def _require_unread(self, queue: LocalQueue, request: api.Reserve) -> None:
        """Refuse to plan what this query has read.

        Tasks read a batch when its end is in the checkpoint: then it is repeated, not planned. A
        batch with more in it would go by the number of the one that was read.
        """
        kept = queue.reservation
        if not kept.checkpoint or not kept.is_read or request.start >= kept.stop:
            return
        raise SharingViolation(
            f"arrival numbers {kept.start} to {kept.stop - 1} of {queue.name} "
            "were read from a newer state of this checkpoint: an older copy of it was put back, or "
            "its last files were lost. Put the newer checkpoint back. If that is gone, look "
            "whether the output has them, release the queue, and begin with a new "
            "checkpointLocation and a new output"
        )

    def _give_up(self, queue: LocalQueue) -> None:
        """Let messages go that a query had reserved which is gone, and which nobody has read."""
        self._ledger.add_waiting(ReservationGivenUp(self, queue))
        self._ledger.add(ReservationChanged(queue, _NOTHING))

    def _is_pending(self, queue: LocalQueue) -> bool:
        """Whether a reader has messages for itself that it has not completed."""
        return bool(by_arrival(queue, queue.reservation.start, queue.reservation.stop, 1))

    def _require_mine(self, queue: LocalQueue, request: api.Reserve, caller: Caller) -> None:
        kept = queue.reservation
        if kept.reader != request.reader:
            raise SharingViolation(
                f"{queue.name} is being read by {kept.reader!r}: stop that reader and let "
                f"it complete, or release what it has reserved"
            )
        self._require_owner(queue, caller)
        if queue.reservation.checkpoint not in ("", request.checkpoint):
            # It is another query's, and where a new one begins does not depend on that.
            return
        if not queue.reservation.start <= request.start <= queue.reservation.stop:
            raise SharingViolation(
                f"the reader {request.reader!r} of {queue.name} has reserved arrival numbers "
                f"{kept.start} to {kept.stop - 1} and is asked to begin at "
                f"{request.start}: another one uses its name, or it has lost its place; give it "
                "another name, or release what is reserved"
            )

    def _require_owner(self, queue: LocalQueue, caller: Caller) -> None:
        """Refuse a caller who uses the name of somebody else's reader."""
        if not self._access.may_use(caller, queue.reservation.owner):
            owner = queue.reservation.owner or "administrators, because an older version began it"
            raise AccessDenied(
                f"the reader {queue.reservation.reader!r} of {queue.name} belongs to {owner}: "
                "connect as who began it, or have who may change the queue release what it has "
                "reserved"
            )

    def _stop_for(self, queue: LocalQueue, request: api.Reserve, mine_below: int) -> int:
        """Return how far a reservation reaches: before the first message that may come back.

        Those are the ones that somebody holds, and the ones whose removal the disk refused. If it
        refuses a removal that is under way now, this reservation falls with it.
        """
        stop = self.looks.below(request)
        for lookup_id in queue.entries.may_return():
            arrival = lookup_id & records.ARRIVAL_MASK
            if mine_below <= arrival < stop:
                stop = arrival
        return end_of(queue, request, stop)

    def complete(self, state: Connection, call: int, request: api.Complete, now: Instant) -> None:
        """Take out what a reader is done with."""
        queue = self._receiving(state, request.handle).queue
        self._readers.require_names(request)
        self._readers.require_current(queue, request, state)
        self._readers.heard(queue, request.reader, request.checkpoint, now)
        start, stop = queue.reservation.start, min(request.stop, queue.reservation.stop)
        if stop <= start or queue in self._releasing:
            self._replies.answer_when_done(state.id, call, api.Completed(0, False))
            return
        if queue.reservation.reader != request.reader:
            raise SharingViolation(f"{queue.name} is being read by {queue.reservation.reader!r}")
        self._require_owner(queue, state.caller)
        if queue.reservation.checkpoint not in ("", request.checkpoint):
            raise SharingViolation(f"{queue.name} is being read from another checkpoint")
        is_unread = not queue.reservation.is_read and bool(by_arrival(queue, start, stop, 1))
        if is_unread and not request.unread_too:
            self._replies.answer_when_done(state.id, call, api.Completed(0, False, unread=True))
            return
        count, size = self._tallied(queue, start, stop)
        if count >= self._config.range_removal_min:
            self._advance(queue, stop, stop)
            self._readers.done(queue, request, stop, now)
            bounds = (start, stop)
            removed = RangeRemoved(self._delivery.news, self._reader, queue, bounds, count, size)
            self._ledger.add(removed)
            self._replies.answer_when_done(state.id, call, api.Completed(count, False))
            return
        rows = by_arrival(queue, start, stop, SLICE_ROWS)
        done_below = arrival_of(rows[-1]) + 1 if rows else stop
        more = bool(by_arrival(queue, done_below, stop, 1))
        done_below = done_below if more else stop
        self._advance(queue, done_below, stop)
        if not more:
            self._readers.done(queue, request, stop, now)
        count = self._take_out(queue, rows, now)
        self._replies.answer_when_done(state.id, call, api.Completed(count, more))

    def _tallied(self, queue: LocalQueue, start: int, stop: int) -> tuple[int, int]:
        """Return count and bytes of reserved messages that can go as a range; 0 if they cannot."""
        if queue.express_ids or queue.properties.journaling:
            return 0, 0
        if any(
            start <= lookup_id & records.ARRIVAL_MASK < stop for lookup_id in queue.entries.held
        ):
            return 0, 0
        count = size = 0
        while start < stop:
            reached, seen, seen_size = queue.fetched.total(start, stop)
            count, size = count + seen, size + seen_size
            if reached < stop:
                # Nobody asks about numbers that no message has.
                rows = by_arrival(queue, reached, stop, 1)
                reached = arrival_of(rows[0]) if rows else stop
                if rows and reached == start:
                    return 0, 0
            start = reached
        return count, size

    def release(self, state: Connection, call: int, request: api.Release, _: Instant) -> None:
        """Give what is reserved back to all readers."""
        queue = self._table.find(request.name)
        if (queue.reservation.stop or queue.readers) and queue not in self._releasing:
            for owner in self._readers.owners(queue):
                if not self._access.may_use(state.caller, owner):
                    # Who may change it could also delete it, with all that is reserved there.
                    self._access.require_queue(state.caller, queue, _CHANGE)
            self._readers.forget(queue)
            if queue.reservation.stop:
                self._ledger.add(ReservationReleased(self, queue, self._releasing))
        self._replies.answer_when_done(state.id, call, api.Done())

    def free_again(self, queue: LocalQueue, start: int, stop: int) -> None:
        """Let others have messages that nobody but their reader could see, and let them expire."""
        self._delivery.news.of(queue)
        while rows := by_arrival(queue, start, stop, SLICE_ROWS):
            for lookup_id, value in rows:
                deadline_s = records.deadline_of(value)
                if deadline_s != INFINITE_S:
                    self._deadlines.note(deadline_s, queue.id, lookup_id)
            start = arrival_of(rows[-1]) + 1

    def _advance(self, queue: LocalQueue, start: int, batch_stop: int) -> None:
        """Let a reservation begin later; what is behind a batch, nobody has read."""
        kept = queue.reservation
        is_read = kept.is_read and (start < batch_stop or not kept.checkpoint)
        changed = msgspec.structs.replace(kept, start=start, is_read=is_read)
        self._ledger.add(ReservationChanged(queue, changed))
