"""Work that takes more than one turn, or that time brings: expiry, purge, deleted queues.

Long work is done in slices, so that a queue with a million messages is purged without making
other applications wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from openmsmq.manager.messages.delivery import Delivery
from openmsmq.manager.messages.effects import (
    EntriesDoomed,
    HousekeepingDone,
    QueueSwept,
    RemovalPromised,
    SliceRemoved,
)
from openmsmq.manager.notices import NoticeKind
from openmsmq.manager.queues.queue import LocalQueue, Row
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.errors import MsmqError
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import MessageClass
from openmsmq.storage import records
from openmsmq.storage.records import ASKS_DEAD_LETTER

SLICE_ROWS: Final = 2000
"""How many messages one slice of long work removes."""

_SHOWN_CHARACTERS: Final = 200

RETRY_MS: Final = 1000
"""How long work that the disk refused is put off."""


class Job:
    """A queue being emptied, up to the messages it had when that was asked for."""

    __slots__ = (
        "arrival_limit",
        "failed",
        "finished",
        "is_over",
        "position",
        "queue",
        "reason",
        "removed",
    )

    def __init__(
        self,
        queue: LocalQueue,
        reason: MessageClass,
        arrival_limit: int,
        finished: Callable[[int], None],
        failed: Callable[[MsmqError], None] | None,
    ) -> None:
        self.queue = queue
        self.reason = reason
        self.arrival_limit = arrival_limit
        self.finished = finished
        self.failed = failed
        """Who hears that the disk refused a slice; without it the work is tried again."""
        self.is_over = False
        """Whether somebody has heard that it was given up."""
        self.position = -1
        self.removed = 0


class Housekeeping:
    """Expires messages and empties queues."""

    def __init__(self, base: Foundation, table: QueueTable, delivery: Delivery) -> None:
        self._notices = base.notices
        self._deadlines = base.deadlines
        self._counters = base.counters
        self._ledger = base.ledger
        self._reader = base.reader
        self._table = table
        self._delivery = delivery
        self._jobs: deque[Job] = deque()
        self._held_back: list[LocalQueue] = []
        """Deleted queues of which transactions still hold entries."""
        self._again: list[tuple[LocalQueue, list[Row], Callable[[Instant], None]]] = []
        """Entries that are to go, how, and whose removal the disk refused."""
        self._paused_until_ms = 0
        start, stop = records.kind_range(b"X")
        self._leftovers = [
            records.queue_of(key) for key, _ in base.reader.scan(start, stop, 100_000)
        ]

    def purge(
        self,
        queue: LocalQueue,
        finished: Callable[[int], None],
        failed: Callable[[MsmqError], None],
    ) -> None:
        """Remove all messages that are in a queue now; `finished` hears how many."""
        limit = self._counters.last_arrival
        self._jobs.append(Job(queue, queue.can.when_purged, limit, finished, failed))
        self._paused_until_ms = 0

    def delete(self, queue: LocalQueue) -> None:
        """Remove what is left of a queue that was deleted."""
        limit = self._counters.last_arrival
        self._jobs.append(
            Job(
                queue,
                MessageClass.NACK_QUEUE_DELETED,
                limit,
                lambda _: self._emptied(queue),
                None,
            )
        )

    def run(self, now: Instant) -> None:
        """Do what is due, one slice of it."""
        if now.ticks_ms < self._paused_until_ms:
            return
        if self._again:
            again, self._again = self._again, []
            for queue, rows, action in again:
                self.surely(queue, rows, action, now)
        if now.unix_s >= self._deadlines.next_s:
            self.expire(now)
        for queue in [queue for queue in self._held_back if not queue.entries.held]:
            self._held_back.remove(queue)
            self.delete(queue)
        if self._jobs:
            self._slice(self._jobs[0], now)
        elif self._leftovers:
            self._sweep(self._leftovers[-1], now)

    def next_run_ms(self, now: Instant) -> int | None:
        """When `run` has something to do next, in ticks."""
        if self._jobs or self._leftovers or self._again or self._can_go_on_deleting:
            due_ms = now.ticks_ms
        elif self._deadlines.next_s == INFINITE_S:
            return None
        else:
            due_ms = now.ticks_ms + max(0, self._deadlines.next_s - now.unix_s) * 1000
        return max(due_ms, self._paused_until_ms)

    @property
    def _can_go_on_deleting(self) -> bool:
        return any(not queue.entries.held for queue in self._held_back)

    def expire(self, now: Instant) -> None:
        """Remove messages whose time is up; those that somebody holds are left to him."""
        due: list[tuple[LocalQueue, int]] = []
        for key in self._deadlines.take_due(now.unix_s, SLICE_ROWS):
            _, number, lookup_id = records.read_deadline_key(key)
            queue = self._table.by_id(number)
            if queue is None or queue.entry(lookup_id) is None:
                self._ledger.delete(key)
            elif not queue.is_held(lookup_id):
                due.append((queue, lookup_id))
        for queue, lookup_id in due:
            value = queue.entry(lookup_id)
            if value is not None:
                self.end_overdue(queue, [(lookup_id, value)], now)

    def without_expired(self, queue: LocalQueue, rows: list[Row], now: Instant) -> list[Row]:
        """Remove messages whose time is up from `rows`, and from the queue."""
        if now.unix_s < self._deadlines.next_s:
            return rows
        expired = [row for row in rows if records.deadline_of(row[1]) <= now.unix_s]
        if not expired:
            return rows
        self.end_overdue(queue, expired, now)
        return [row for row in rows if records.deadline_of(row[1]) > now.unix_s]

    def _slice(self, job: Job, now: Instant) -> None:
        queue = job.queue
        rows, doomed, more = self._next_slice(job)
        job.removed += len(rows)
        if doomed:
            self._ledger.add(EntriesDoomed(queue, doomed, job.reason))
        if rows:
            self._delivery.end(queue, rows, job.reason, now)
        if not more:
            self._jobs.popleft()
        self._ledger.add_waiting(SliceRemoved(self, job, is_last=not more))
        self._ledger.add_waiting(HousekeepingDone(self, now))

    def surely(
        self,
        queue: LocalQueue,
        rows: list[Row],
        action: Callable[[Instant], None],
        now: Instant,
    ) -> None:
        """Take entries out by an action; nobody sees them any more, even if the disk refuses.

        Then the action is tried again as soon as the disk may let them go.
        """

        self._ledger.add(RemovalPromised(self, queue, rows, action))
        action(now)
        self._ledger.add_waiting(HousekeepingDone(self, now))

    def put_off(
        self, queue: LocalQueue, rows: list[Row], action: Callable[[Instant], None]
    ) -> None:
        """Try again later to take entries out, because the disk refused it."""
        self._again.append((queue, rows, action))

    def end_overdue(self, queue: LocalQueue, rows: list[Row], now: Instant) -> None:
        """Take out messages whose time is up."""
        lost = sum(not records.asks_of(value) & ASKS_DEAD_LETTER for _, value in rows)
        if lost and queue.can.tell_of_expiry:
            self._notices.note(
                NoticeKind.MESSAGE_DROPPED, "expired", lost, queue=queue.name[:_SHOWN_CHARACTERS]
            )
        self.surely(
            queue,
            rows,
            lambda moment: self._delivery.end(queue, rows, queue.can.when_expired, moment),
            now,
        )

    def _next_slice(self, job: Job) -> tuple[list[Row], list[int], bool]:
        """Return entries to remove, those that transactions hold, and whether there are more.

        What a reader has reserved is neither, and not looked at: it has been read already.
        """
        entries = job.queue.entries
        held = entries.held
        rows: list[Row] = []
        doomed: list[int] = []
        for row in job.queue.rows(job.position):
            lookup_id = job.position = row[0]
            if lookup_id & records.ARRIVAL_MASK > job.arrival_limit:
                continue
            if lookup_id not in held:
                rows.append(row)
            elif not entries.is_leaving(lookup_id):
                doomed.append(lookup_id)
            if len(rows) + len(doomed) >= SLICE_ROWS:
                return rows, doomed, True
        return rows, doomed, False

    def refused(self, job: Job, error: MsmqError) -> None:
        """Give long work up because the disk refused a slice, or begin it again."""
        if job in self._jobs:
            self._jobs.remove(job)
        if job.failed is None:
            job.position = -1
            self._jobs.append(job)
        elif not job.is_over:
            # Two slices may fall together, and nobody hears twice of one call.
            job.is_over = True
            job.failed(error)

    def _emptied(self, queue: LocalQueue) -> None:
        if queue.entries.held:
            self._held_back.append(queue)
        else:
            self._forget(queue.id)

    def _forget(self, number: int) -> None:
        self._ledger.delete(records.deleted_key(number))
        self._ledger.delete(records.counts_key(number))

    def _sweep(self, number: int, now: Instant) -> None:
        """Remove entries of a queue that was deleted before a restart."""
        rows = self._reader.scan(
            records.entry_key(number, 0), records.entries_end(number), SLICE_ROWS
        )
        for key, value in rows:
            self._ledger.delete(key)
            deadline_s = records.deadline_of(value)
            if deadline_s != INFINITE_S:
                lookup_id = records.lookup_of(key)
                self._ledger.delete(records.deadline_key(deadline_s, number, lookup_id))
            asks = records.asks_of(value)
            if asks:
                packet = value[records.FACTS_BYTES :]
                self._delivery.tell(asks, packet, MessageClass.NACK_QUEUE_DELETED, now)
        if len(rows) < SLICE_ROWS:
            self._ledger.add(QueueSwept(self._leftovers, number))
        self._ledger.add_waiting(HousekeepingDone(self, now))

    def pause(self, now: Instant) -> None:
        """Do nothing for a while."""
        self._paused_until_ms = now.ticks_ms + RETRY_MS
