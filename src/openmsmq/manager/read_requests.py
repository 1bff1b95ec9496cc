"""What applications ask about messages: to receive them, look at them, move and remove them.

A read that finds no message waits here until one comes, its time is up, or it is cancelled.
"""

from __future__ import annotations

import heapq
from typing import Final

from openmsmq.api import messages as api
from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.connections import Connection, OpenQueue
from openmsmq.manager.deadlines import Deadlines
from openmsmq.manager.delivery import Delivery
from openmsmq.manager.housekeeping import Housekeeping
from openmsmq.manager.ledger import Ledger
from openmsmq.manager.queue_table import QueueTable
from openmsmq.manager.queues import BEING_REMOVED, LocalQueue, Row
from openmsmq.manager.reads import WaitingRead, rows_for, seek, within
from openmsmq.manager.replies import Replies
from openmsmq.manager.transaction_requests import TransactionRequests
from openmsmq.model.clock import Instant
from openmsmq.model.errors import (
    AccessDenied,
    IllegalCursorAction,
    IllegalPropertySize,
    InsufficientResources,
    InvalidParameter,
    MessageLocked,
    MsmqError,
    OperationCancelled,
    QueueDeleted,
    ReceiveTimeout,
    TransactionUsage,
)
from openmsmq.model.limits import IDENTIFIER_BYTES
from openmsmq.model.message import MessageClass
from openmsmq.model.queue import AccessMode, SeekAction
from openmsmq.storage import records
from openmsmq.storage.records import FACTS_BYTES

_ENDED_READS_KEPT: Final = 64
"""How many timers of reads that ended early may be around before they are cleared away."""


class ReadRequests:
    """Serves reads, now or when their message comes."""

    def __init__(
        self,
        config: ManagerConfig,
        table: QueueTable,
        delivery: Delivery,
        deadlines: Deadlines,
        housekeeping: Housekeeping,
        transactions: TransactionRequests,
        replies: Replies,
        ledger: Ledger,
    ) -> None:
        self._config = config
        self._table = table
        self._delivery = delivery
        self._deadlines = deadlines
        self._housekeeping = housekeeping
        self._transactions = transactions
        self._replies = replies
        self._ledger = ledger
        delivery.hand_over = self.hand_over
        self._waiting: dict[tuple[int, int], WaitingRead] = {}
        self._timeouts: list[tuple[int, int, WaitingRead]] = []
        self._timeout_order = 0

    def receive(
        self, state: Connection, call: int, request: api.Receive | api.Find, now: Instant
    ) -> None:
        """Take or peek messages, waiting for the first if there is none."""
        opened = state.queue(request.handle)
        self.require_readable(state, opened, peek=request.peek, transaction=request.transaction)
        cursor = None
        if isinstance(request, api.Receive):
            if request.count < 1:
                raise InvalidParameter("count must be 1 or more")
            if request.cursor:
                cursor = state.cursor(request.cursor, opened)
            elif request.next:
                raise IllegalCursorAction("only a cursor has a next message")
        else:
            _require_identifier(request)
        if request.timeout_ms is not None and request.timeout_ms < 0:
            raise InvalidParameter(f"timeout_ms is {request.timeout_ms}; None waits for ever")
        deadline = None if request.timeout_ms is None else now.ticks_ms + request.timeout_ms
        read = WaitingRead(state.id, call, request, opened, cursor, deadline)
        if self._try(read, now):
            return
        if request.timeout_ms == 0:
            raise ReceiveTimeout(f"no message in {opened.queue.name}")
        self._wait(read)

    def _try(self, read: WaitingRead, now: Instant) -> bool:
        """Serve a read if its message is there."""
        queue = read.opened.queue
        rows = rows_for(read.request, queue, read.cursor)
        while rows and read.cursor is None:
            live = self._housekeeping.without_expired(queue, rows, now)
            if live:
                rows = live
                break
            rows = rows_for(read.request, queue, read.cursor)
        if not rows:
            return False
        state = self._replies.connections[read.connection]
        if not read.request.peek:
            self._take(state, queue, rows, read.request.transaction, now)
        self._give(state.id, read.call, read.request, rows)
        if isinstance(read.request, api.Receive) and read.cursor is not None:
            read.cursor.current = rows[-1][0]
        return True

    def _give(
        self,
        connection: int,
        call: int,
        request: api.Receive | api.Find | api.Seek,
        rows: list[Row],
    ) -> None:
        # What a transaction takes is only locked: that needs no disk, and no disk can refuse it.
        if request.peek or request.transaction:
            self._replies.answer(connection, call, _entries(rows))
        else:
            self._replies.answer_when_done(connection, call, _entries(rows))

    def _take(
        self, state: Connection, queue: LocalQueue, rows: list[Row], transaction: int, now: Instant
    ) -> None:
        if transaction:
            work = self._transactions.find(state, transaction)
            self._transactions.require_room(work, len(rows))
            queue.hold(rows, work.number)
            work.receives += ((queue, lookup_id) for lookup_id, _ in rows)
        else:
            queue.hold(rows, BEING_REMOVED)
            self._delivery.end(queue, rows, MessageClass.ACK_RECEIVE, now)

    def seek(self, state: Connection, call: int, request: api.Seek, now: Instant) -> None:
        """Take or peek a message by its lookup identifier."""
        opened = state.queue(request.handle)
        self.require_readable(state, opened, peek=request.peek, transaction=request.transaction)
        try:
            action = SeekAction(request.action)
        except ValueError:
            raise InvalidParameter(f"{request.action!r} is no seek action") from None
        row = seek(opened.queue, action, request.lookup_id)
        if row[0] in opened.queue.held and not request.peek:
            raise MessageLocked(f"lookup id {row[0]} in {opened.queue.name}")
        if not request.peek:
            self._take(state, opened.queue, [row], request.transaction, now)
        self._give(state.id, call, request, [row])

    def fetch_range(
        self, state: Connection, call: int, request: api.FetchRange, _: Instant
    ) -> None:
        """Peek messages by their arrival numbers."""
        opened = state.queue(request.handle)
        self.require_readable(state, opened, peek=True, transaction=0)
        if request.count < 1:
            raise InvalidParameter("count must be 1 or more")
        size = 0
        found: list[Row] = []
        for row in opened.queue.by_arrival(request.start, request.stop, request.count):
            if found and size >= request.bytes_max:
                break
            if opened.queue.held.get(row[0]) != BEING_REMOVED:
                found.append(row)
                size += len(row[1])
        self._replies.answer(state.id, call, _entries(found))

    def remove_range(
        self, state: Connection, call: int, request: api.RemoveRange, now: Instant
    ) -> None:
        """Take out messages by their arrival numbers."""
        opened = state.queue(request.handle)
        self.require_readable(state, opened, peek=False, transaction=0)
        queue = opened.queue
        removed = 0
        start = request.start
        while start < request.stop:
            rows = queue.by_arrival(start, request.stop, 1000)
            free = [row for row in rows if row[0] not in queue.held]
            if free:
                queue.hold_all(free, BEING_REMOVED)
                self._delivery.end(queue, free, MessageClass.ACK_RECEIVE, now)
                removed += len(free)
            if len(rows) < 1000:
                break
            start = (rows[-1][0] & records.ARRIVAL_MASK) + 1
        self._replies.answer_when_done(state.id, call, api.Removed(removed))

    def purge(self, state: Connection, call: int, request: api.Purge, now: Instant) -> None:
        """Remove all messages of a queue."""
        opened = state.queue(request.handle)
        self.require_readable(state, opened, peek=False, transaction=0)
        self._housekeeping.purge(
            opened.queue,
            lambda count: self._replies.answer(state.id, call, api.Removed(count)),
            lambda error: self._replies.fail(state.id, call, error),
        )
        self._housekeeping.run(now)

    def move(self, state: Connection, call: int, request: api.Move, now: Instant) -> None:
        """Move a message between a queue and its subqueues."""
        opened = state.queue(request.handle)
        target = state.queue(request.target)
        if target.access is not AccessMode.MOVE:
            raise AccessDenied(f"{target.queue.name} is not open for moving messages into it")
        self.require_readable(state, opened, peek=False, transaction=request.transaction)
        source, into = opened.queue, target.queue
        if source is into or _family(source) is not _family(into):
            raise InvalidParameter(
                f"messages move between a queue and its subqueues, "
                f"not from {source.name} to {into.name}"
            )
        row = seek(source, SeekAction.CURRENT, request.lookup_id)
        if row[0] in source.held:
            raise MessageLocked(f"lookup id {row[0]} in {source.name}")
        if request.transaction:
            work = self._transactions.find(state, request.transaction)
            self._transactions.require_room(work, 1)
            source.hold_all([row], work.number)
            work.moves.append((source, row[0], into))
            self._replies.answer(state.id, call, api.Done())
        else:
            self._delivery.move(source, row, into, now)
            self._replies.answer_when_done(state.id, call, api.Done())

    # Waiting.

    def _wait(self, read: WaitingRead) -> None:
        if len(self._waiting) >= self._config.waiting_reads_max:
            raise InsufficientResources(f"{self._config.waiting_reads_max} reads wait already")
        self._waiting[read.connection, read.call] = read
        read.opened.queue.waiting[read] = None
        if read.deadline_ms is not None:
            self._timeout_order += 1
            heapq.heappush(self._timeouts, (read.deadline_ms, self._timeout_order, read))
        if len(self._timeouts) > 2 * len(self._waiting) + _ENDED_READS_KEPT:
            self._timeouts = [entry for entry in self._timeouts if not entry[2].ended]
            heapq.heapify(self._timeouts)

    def end_read(self, read: WaitingRead, error: MsmqError | None) -> None:
        """End a read that waits, with an error unless it was served."""
        read.ended = True
        self._waiting.pop((read.connection, read.call), None)
        read.opened.queue.waiting.pop(read, None)
        if error is not None:
            self._replies.fail(read.connection, read.call, error)

    def serve_waiting(self, now: Instant) -> None:
        """Give messages that became available to the reads that wait for them, oldest first."""
        news = self._delivery.became_available
        while news:
            if now.unix_s >= self._deadlines.next_s:
                self._housekeeping.expire(now)
            queue = next(iter(news))
            del news[queue]
            self._serve_queue(queue, now)

    def _serve_queue(self, queue: LocalQueue, now: Instant) -> None:
        nothing_left = False
        for read in list(queue.waiting):
            if nothing_left and read.takes_the_front:
                continue
            try:
                served = self._try(read, now)
            except MsmqError as error:
                self.end_read(read, error)
                continue
            if served:
                self.end_read(read, None)
            else:
                nothing_left = nothing_left or read.takes_the_front

    def hand_over(self, queue: LocalQueue, rows: list[Row]) -> int:
        """Give messages that are just coming to the reads that wait for any, oldest first."""
        taken = 0
        for read in list(queue.waiting):
            request = read.request
            if not isinstance(request, api.Receive) or not read.takes_the_front:
                break
            if request.peek or request.transaction:
                break
            mine = within(rows, taken, request.count, request.bytes_max)
            taken += len(mine)
            self.end_read(read, None)
            self._answer_or_wait(read, _entries(mine))
            if taken == len(rows):
                break
        return taken

    def _answer_or_wait(self, read: WaitingRead, reply: api.Entries) -> None:
        """Answer when the turn is durable; when it is refused, the read goes on waiting."""

        def wait_again(_: MsmqError) -> None:
            state = self._replies.connections.get(read.connection)
            if state is not None and read.opened.handle in state.queues:
                read.ended = False
                self._wait(read)

        self._ledger.when_done(
            lambda: self._replies.answer(read.connection, read.call, reply), wait_again
        )

    def cancel(self, state: Connection, call: int, request: api.Cancel, _: Instant) -> None:
        """Cancel a read that waits."""
        read = self._waiting.get((state.id, request.call))
        if read is None:
            raise InvalidParameter(f"call {request.call} does not wait")
        self.end_read(read, OperationCancelled("the application cancelled the read"))
        self._replies.answer(state.id, call, api.Done())

    def end_timeouts(self, now: Instant) -> None:
        """End the reads that have waited long enough."""
        while self._timeouts and self._timeouts[0][0] <= now.ticks_ms:
            read = heapq.heappop(self._timeouts)[2]
            if not read.ended:
                queue = read.opened.queue
                self.end_read(read, ReceiveTimeout(f"no message came into {queue.name} in time"))

    def next_timeout_ms(self) -> int | None:
        """When the next read has waited long enough, in ticks."""
        while self._timeouts and self._timeouts[0][2].ended:
            heapq.heappop(self._timeouts)
        return self._timeouts[0][0] if self._timeouts else None

    # Checks.

    def require_open(self, queue: LocalQueue) -> None:
        """Refuse to work on a queue that was deleted after it was opened."""
        if queue not in self._table:
            raise QueueDeleted(queue.name)

    def require_readable(
        self, state: Connection, opened: OpenQueue, *, peek: bool, transaction: int
    ) -> None:
        """Refuse a read that a queue was not opened for."""
        self.require_open(opened.queue)
        if not opened.reads or (not peek and opened.access is not AccessMode.RECEIVE):
            raise AccessDenied(
                f"{opened.queue.name} is not open for {'peeking' if peek else 'receiving'}"
            )
        if transaction:
            self._transactions.find(state, transaction)
            if not opened.queue.properties.transactional:
                raise TransactionUsage(f"{opened.queue.name} is not transactional")


def _entries(rows: list[Row]) -> api.Entries:
    entry, place = api.Entry, records.place_of
    return api.Entries(
        [entry(lookup_id, *place(value), value[FACTS_BYTES:]) for lookup_id, value in rows]
    )


def _require_identifier(request: api.Find) -> None:
    if (request.message_id is None) == (request.correlation_id is None):
        raise InvalidParameter("one of message_id and correlation_id says what to look for")
    wanted = request.message_id if request.correlation_id is None else request.correlation_id
    if wanted is not None and len(wanted) != IDENTIFIER_BYTES:
        raise IllegalPropertySize(f"an identifier of {len(wanted)} bytes, not {IDENTIFIER_BYTES}")


def _family(queue: LocalQueue) -> LocalQueue:
    return queue.parent if queue.role == "subqueue" and queue.parent is not None else queue
