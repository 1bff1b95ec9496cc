"""What applications ask about messages: to receive them, look at them, move and remove them.

A read that finds no message waits here until one comes, its time is up, or it is cancelled.
"""

from __future__ import annotations

import heapq
from collections.abc import Set as AbstractSet
from typing import Final

import msgspec

from openmsmq.api import messages as api
from openmsmq.manager.access.handlers import Handlers
from openmsmq.manager.messages.delivery import Delivery
from openmsmq.manager.messages.housekeeping import Housekeeping
from openmsmq.manager.queues.connections import Connection, OpenQueue
from openmsmq.manager.queues.queue import LocalQueue, Row
from openmsmq.manager.queues.reads import NOTHING, WaitingRead, fitting, rows_for, seek, within
from openmsmq.manager.queues.replies import Replies
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.reading.effects import HandedOver
from openmsmq.manager.reading.locks import ReadLocks
from openmsmq.manager.transactions.requests import TransactionRequests
from openmsmq.manager.turn.foundation import Foundation
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
        base: Foundation,
        table: QueueTable,
        delivery: Delivery,
        housekeeping: Housekeeping,
        transactions: TransactionRequests,
        replies: Replies,
    ) -> None:
        self._config = base.config
        self._ledger = base.ledger
        self._deadlines = base.deadlines
        self._table = table
        self._delivery = delivery
        self._housekeeping = housekeeping
        self._transactions = transactions
        self._replies = replies
        self.locks = ReadLocks(base, table, delivery, transactions, replies)
        self._waiting: dict[tuple[int, int], WaitingRead] = {}
        self._timeouts: list[tuple[int, int, WaitingRead]] = []
        self._timeout_order = 0
        self._available = delivery.news.available

    def serve(self, handlers: Handlers) -> None:
        """Say which requests are carried out here."""
        handlers.add(api.Receive, self.receive)
        handlers.add(api.Find, self.receive)
        handlers.add(api.EndReceive, self.locks.end)
        handlers.add(api.Seek, self.seek)
        handlers.add(api.Cancel, self.cancel)
        handlers.add(api.Purge, self.purge)
        handlers.add(api.Move, self.move)

    def receive(
        self, state: Connection, call: int, request: api.Receive | api.Find, now: Instant
    ) -> None:
        """Take or peek messages, waiting for the first if there is none."""
        opened = state.queue(request.handle)
        queue = self.require_readable(
            state, opened, peek=request.peek, transaction=request.transaction
        )
        _require_sense(request)
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
            raise ReceiveTimeout(f"no message in {queue.name}")
        if len(self._waiting) >= self._config.waiting_reads_max:
            raise InsufficientResources(f"{self._config.waiting_reads_max} reads wait already")
        self._wait(read)

    def _try(self, read: WaitingRead, now: Instant) -> bool:
        """Serve a read if its message is there."""
        request, queue = read.request, read.opened.queue
        shown = self._transactions.shown_in(queue) if request.peek else NOTHING
        rows = rows_for(request, queue, read.cursor, shown)
        while rows and read.cursor is None:
            live = self._live(queue, rows, now)
            if live:
                rows = live
                break
            rows = rows_for(request, queue, read.cursor, shown)
        if not rows:
            return False
        if request.body_max_bytes is not None:
            rows = fitting(rows, request.body_max_bytes)
        state = self._replies.connections[read.connection]
        if not request.peek:
            self._take(state, read.opened, rows, request, now)
        self._give(state.id, read.call, request, rows)
        if read.cursor is not None:
            read.cursor.go_to(rows[-1][0], taken=not request.peek)
        return True

    def _live(self, queue: LocalQueue, rows: list[Row], now: Instant) -> list[Row]:
        """Leave out messages whose time is up; what somebody holds is left to him."""
        if now.unix_s < self._deadlines.next_s:
            return rows
        locked = {lookup_id for lookup_id, _ in rows if queue.is_held(lookup_id)}
        free = [row for row in rows if row[0] not in locked]
        live = self._housekeeping.without_expired(queue, free, now)
        kept = locked.union(lookup_id for lookup_id, _ in live)
        return [row for row in rows if row[0] in kept]

    def _give(
        self,
        connection: int,
        call: int,
        request: api.Receive | api.Find | api.Seek,
        rows: list[Row],
    ) -> None:
        # What a transaction takes is only locked: that needs no disk, and no disk can refuse it.
        if request.peek or request.transaction or request.lock:
            self._replies.answer(connection, call, entries_of(rows))
        else:
            self._replies.answer_when_done(connection, call, entries_of(rows))

    def _take(
        self,
        state: Connection,
        opened: OpenQueue,
        rows: list[Row],
        request: api.Receive | api.Find | api.Seek,
        now: Instant,
    ) -> None:
        queue = opened.queue
        if request.transaction:
            work = self._transactions.find(state, request.transaction)
            self._transactions.require_room(work, len(rows))
            queue.hold(rows, work.number)
            work.receives.extend([(queue, lookup_id) for lookup_id, _ in rows])
            if isinstance(request, api.Seek) and request.allow_peek:
                self._transactions.show(work, queue, rows[0][0])
        elif request.lock:
            self.locks.lock(state, opened, rows)
        else:
            queue.pass_over(rows)
            self._delivery.end(queue, rows, MessageClass.ACK_RECEIVE, now)

    def seek(self, state: Connection, call: int, request: api.Seek, now: Instant) -> None:
        """Take or peek a message by its lookup identifier."""
        opened = state.queue(request.handle)
        queue = self.require_readable(
            state, opened, peek=request.peek, transaction=request.transaction
        )
        try:
            action = SeekAction(request.action)
        except ValueError:
            raise InvalidParameter(f"{request.action!r} is no seek action") from None
        _require_sense(request)
        shown = self._transactions.shown_in(queue) if request.peek else NOTHING
        row = seek(queue, action, request.lookup_id, shown)
        _require_free(queue, row[0], shown, peek=request.peek)
        if request.body_max_bytes is not None:
            fitting([row], request.body_max_bytes)
        if not request.peek:
            self._take(state, opened, [row], request, now)
        self._give(state.id, call, request, [row])

    def purge(self, state: Connection, call: int, request: api.Purge, now: Instant) -> None:
        """Remove all messages of a queue."""
        opened = state.queue(request.handle)
        queue = self.require_readable(state, opened, peek=False, transaction=0)
        self._housekeeping.purge(
            queue,
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
        source = self.require_readable(state, opened, peek=False, transaction=request.transaction)
        into = target.queue
        if source is into or source.whole is not into.whole:
            raise InvalidParameter(
                f"messages move between a queue and its subqueues, "
                f"not from {source.name} to {into.name}"
            )
        row = seek(source, SeekAction.CURRENT, request.lookup_id)
        _require_free(source, row[0], NOTHING, peek=False)
        if request.transaction:
            work = self._transactions.find(state, request.transaction)
            self._transactions.require_room(work, 1)
            source.entries.hold([row[0]], work.number)
            work.moves.append((source, row[0], into))
            self._replies.answer(state.id, call, api.Done())
        else:
            self._delivery.move(source, row, into, now)
            self._replies.answer_when_done(state.id, call, api.Done())

    # Waiting.

    def _wait(self, read: WaitingRead) -> None:
        self._waiting[read.connection, read.call] = read
        read.opened.queue.waiting[read] = None
        if read.deadline_ms is not None:
            self._timeout_order += 1
            heapq.heappush(self._timeouts, (read.deadline_ms, self._timeout_order, read))
        if len(self._timeouts) > 2 * len(self._waiting) + _ENDED_READS_KEPT:
            self._timeouts = [entry for entry in self._timeouts if self._is_waiting(entry[2])]
            heapq.heapify(self._timeouts)

    def _is_waiting(self, read: WaitingRead) -> bool:
        return self._waiting.get((read.connection, read.call)) is read

    def end_read(self, read: WaitingRead, error: MsmqError | None) -> None:
        """End a read that waits, with an error unless it was served."""
        self._waiting.pop((read.connection, read.call), None)
        read.opened.queue.waiting.pop(read, None)
        if error is not None:
            self._replies.fail(read.connection, read.call, error)

    def serve_waiting(self, now: Instant) -> None:
        """Give messages that became available to the reads that wait for them, oldest first."""
        self.locks.finish(now)
        news = self._available
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

    def hand_over(self, queue: LocalQueue, rows: list[Row], now: Instant) -> int:
        """Return messages that are just coming to the reads that wait for any, oldest first."""
        entry, arrived_s = api.Entry, now.unix_s
        taken = 0
        for read in list(queue.waiting):
            request = read.request
            if not isinstance(request, api.Receive) or not read.takes_the_front:
                break
            if request.peek or request.transaction or request.lock:
                break
            if request.body_max_bytes is not None:
                break
            mine = within(rows, taken, request.count, request.bytes_max)
            taken += len(mine)
            self.end_read(read, None)
            entries = [
                entry(lookup_id, arrived_s, 0, 0, value[FACTS_BYTES:]) for lookup_id, value in mine
            ]
            # Senders hear first: they prepare their next message while readers are being woken.
            self._ledger.add_waiting(HandedOver(self, read, api.Entries(entries)), last=True)
            if taken == len(rows):
                break
        return taken

    def served(self, read: WaitingRead, reply: api.Entries) -> None:
        """Answer a read that has waited."""
        self._replies.answer(read.connection, read.call, reply)

    def wait_again(self, read: WaitingRead) -> None:
        """Let a read go on waiting, because the disk refused what it was to have."""
        state = self._replies.connections.get(read.connection)
        if state is None:
            return
        if read.opened.handle in state.queues:
            # Others may have all places by now; to refuse what was taken on is no way out.
            self._wait(read)
        else:
            self.end_read(read, OperationCancelled("the queue was closed while the read waited"))

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
            if self._is_waiting(read):
                queue = read.opened.queue
                self.end_read(read, ReceiveTimeout(f"no message came into {queue.name} in time"))

    def next_timeout_ms(self) -> int | None:
        """When the next read has waited long enough, in ticks."""
        while self._timeouts and not self._is_waiting(self._timeouts[0][2]):
            heapq.heappop(self._timeouts)
        return self._timeouts[0][0] if self._timeouts else None

    # Checks.

    def require_readable(
        self, state: Connection, opened: OpenQueue, *, peek: bool, transaction: int
    ) -> LocalQueue:
        """Return the queue that is open; refuse a read that it was not opened for."""
        queue = opened.queue
        if queue not in self._table:
            raise QueueDeleted(queue.name)
        takes = opened.access in (AccessMode.RECEIVE, AccessMode.RECEIVE_ADMIN)
        if not opened.reads or (not peek and not takes):
            raise AccessDenied(f"{queue.name} is not open for {'peeking' if peek else 'receiving'}")
        if transaction:
            self._transactions.find(state, transaction)
            if not queue.properties.transactional:
                raise TransactionUsage(f"{queue.name} is not transactional")
        return queue


def entries_of(rows: list[Row]) -> api.Entries:
    """Return rows as applications get them."""
    entry, place = api.Entry, records.place_of
    entries = [entry(lookup_id, *place(value), value[FACTS_BYTES:]) for lookup_id, value in rows]
    for index, found in enumerate(entries):
        if found.move_count:
            moved_time_s = records.decode_facts(rows[index][1]).moved_time_s
            entries[index] = msgspec.structs.replace(found, moved_time_s=moved_time_s)
    return api.Entries(entries)


def _require_sense(request: api.Receive | api.Find | api.Seek) -> None:
    """Refuse wishes that contradict each other."""
    if request.lock and (request.peek or request.transaction):
        raise InvalidParameter("a read with `lock` neither peeks nor is part of a transaction")
    if request.body_max_bytes is not None and request.body_max_bytes < 0:
        raise InvalidParameter(f"body_max_bytes is {request.body_max_bytes}; None takes any body")
    if (
        isinstance(request, api.Seek)
        and request.allow_peek
        and (request.peek or not request.transaction)
    ):
        raise InvalidParameter("`allow_peek` is for a message that a transaction takes")


def _require_free(
    queue: LocalQueue, lookup_id: int, shown: AbstractSet[int], *, peek: bool
) -> None:
    """Refuse a message that somebody else holds, unless it may be looked at all the same."""
    if not queue.is_held(lookup_id) or lookup_id in shown:
        return
    if peek:
        raise TransactionUsage(
            f"lookup id {lookup_id} in {queue.name} is held by another reader, who does not let "
            "others look at it"
        )
    raise MessageLocked(f"lookup id {lookup_id} in {queue.name}")


def _require_identifier(request: api.Find) -> None:
    if (request.message_id is None) == (request.correlation_id is None):
        raise InvalidParameter("one of message_id and correlation_id says what to look for")
    wanted = request.message_id if request.correlation_id is None else request.correlation_id
    if wanted is not None and len(wanted) != IDENTIFIER_BYTES:
        raise IllegalPropertySize(f"an identifier of {len(wanted)} bytes, not {IDENTIFIER_BYTES}")
