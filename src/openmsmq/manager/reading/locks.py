"""Reads in two steps: a message is locked, and then taken out or given back. [MQDMPR 3.1.7.1.11]

A reader that can be lost on the way, such as one on another computer, takes a message out only
once it has it. The lock belongs to the handle it was read through, and is in memory only: when the
handle or its connection is closed, and after a restart, the message is there for others again.
"""

from __future__ import annotations

from openmsmq.api import messages as api
from openmsmq.manager.messages.delivery import Delivery
from openmsmq.manager.queues.connections import Connection, OpenQueue
from openmsmq.manager.queues.queue import LocalQueue, Row
from openmsmq.manager.queues.replies import Replies
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.reading.effects import LockEnded
from openmsmq.manager.transactions.requests import TransactionRequests
from openmsmq.manager.turn.defects import Defect
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.errors import (
    InsufficientResources,
    QueueNotAvailable,
    TransactionSequence,
)
from openmsmq.model.message import MessageClass


class ReadLocks:
    """Holds messages for readers that will say later what becomes of them."""

    def __init__(
        self,
        base: Foundation,
        table: QueueTable,
        delivery: Delivery,
        transactions: TransactionRequests,
        replies: Replies,
    ) -> None:
        self._config = base.config
        self._ledger = base.ledger
        self._table = table
        self._delivery = delivery
        self._transactions = transactions
        self._replies = replies
        self._doomed: list[tuple[LocalQueue, int]] = []
        """Messages that were given back, and that were purged while they were locked."""

    def lock(self, state: Connection, opened: OpenQueue, rows: list[Row]) -> None:
        """Hold messages for the reader that has a queue open."""
        if len(opened.locked) + len(rows) > self._config.transaction_messages_max:
            raise InsufficientResources(
                f"a reader may lock {self._config.transaction_messages_max} messages"
            )
        opened.queue.hold(rows, self._holder(state))
        opened.locked.update(lookup_id for lookup_id, _ in rows)

    def _holder(self, state: Connection) -> int:
        if not state.lock_holder:
            state.lock_as(self._transactions.take_holder())
        return state.lock_holder

    def end(self, state: Connection, call: int, request: api.EndReceive, now: Instant) -> None:
        """Take a locked message out, or give it back. [MQDMPR 3.1.7.1.12]"""
        opened = state.queue(request.handle)
        queue, lookup_id = opened.queue, request.lookup_id
        if lookup_id not in opened.locked:
            raise TransactionSequence(
                f"lookup id {lookup_id} in {queue.name} is not locked through this handle"
            )
        if queue not in self._table:
            opened.locked.discard(lookup_id)
            self._unlock(state, queue, lookup_id)
            raise QueueNotAvailable(f"{queue.name} was deleted while the message was locked")
        if not request.remove:
            opened.locked.discard(lookup_id)
            self._unlock(state, queue, lookup_id)
            self._replies.answer(state.id, call, api.Done())
            return
        self._ledger.add(LockEnded(self, state, opened, lookup_id))
        if queue.entries.is_held_by(lookup_id, self._holder(state)):
            # A purge that came in between wins over the reader's word.
            reason = queue.entries.doom_of(lookup_id) or MessageClass.ACK_RECEIVE
            self._remove(queue, lookup_id, reason, now)
        self._replies.answer_when_done(state.id, call, api.Done())

    def lock_again(self, state: Connection, opened: OpenQueue, lookup_id: int) -> None:
        """Let a reader have a lock again, or give the message back if it is gone."""
        if state.queues.get(opened.handle) is opened:
            opened.locked.add(lookup_id)
        else:
            self._unlock(state, opened.queue, lookup_id)

    def release(self, state: Connection, opened: OpenQueue) -> None:
        """Give back what is locked through a handle that is being closed."""
        for lookup_id in opened.locked:
            self._unlock(state, opened.queue, lookup_id)
        opened.locked.clear()

    def finish(self, now: Instant) -> None:
        """Remove what was purged while it was locked."""
        while self._doomed:
            queue, lookup_id = self._doomed.pop()
            reason = queue.entries.doom_of(lookup_id) or MessageClass.ACK_RECEIVE
            # Nobody has it any more: if the disk refuses, it is there for all.
            queue.entries.free([lookup_id])
            self._remove(queue, lookup_id, reason, now)

    def _unlock(self, state: Connection, queue: LocalQueue, lookup_id: int) -> None:
        if not queue.entries.is_held_by(lookup_id, self._holder(state)):
            # Its destination has it after all, and it has left the outgoing queue.
            return
        if queue.entries.doom_of(lookup_id) is not None and queue in self._table:
            self._doomed.append((queue, lookup_id))
            # Whoever serves the reads of a queue with news finishes this first.
            self._delivery.news.available[queue] = None
        else:
            # What a deleted queue still has goes with the rest of it.
            queue.entries.pardon(lookup_id)
            self._delivery.give_back(queue, lookup_id, _there(queue, lookup_id))

    def _remove(
        self, queue: LocalQueue, lookup_id: int, reason: MessageClass, now: Instant
    ) -> None:
        self._delivery.end(queue, [(lookup_id, _there(queue, lookup_id))], reason, now)


def _there(queue: LocalQueue, lookup_id: int) -> bytes:
    value = queue.entry(lookup_id)
    if value is None:
        raise Defect(f"lookup id {lookup_id} is locked, and not in {queue.name}")
    return value
