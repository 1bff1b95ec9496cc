"""Runs: messages that arrive one after the other for the same queue are put into it together.

Whether there is room for one more depends on those that were taken and are not in their queue yet.
"""

from __future__ import annotations

from openmsmq.manager.messages.delivery import Delivery
from openmsmq.manager.messages.lifetimes import travel_deadline_s
from openmsmq.manager.messages.plain_delivery import PlainDelivery
from openmsmq.manager.messages.shares import Shares
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import MessageClass
from openmsmq.storage.records import StagedSend
from openmsmq.wire import message_bytes
from openmsmq.wire.message_bytes import is_recoverable


class NoRoom(Exception):
    """The queue manager has no room for more messages: their sender must keep them for now."""

    def __init__(self, *, is_general: bool) -> None:
        super().__init__("the quota of the queue manager is used up, or the share of a stranger")
        self.is_general = is_general
        """Whether there is no room for anybody."""


class Runs:
    """The messages that were taken and are not in their queue yet, and the room for more."""

    def __init__(
        self,
        base: Foundation,
        table: QueueTable,
        delivery: Delivery,
        plain: PlainDelivery,
        shares: Shares,
    ) -> None:
        self._clock_skew_max_s = base.config.transfer.clock_skew_max_s
        self._table = table
        self._delivery = delivery
        self._plain = plain
        self._shares = shares
        self.queue: LocalQueue | None = None
        self.bytes = 0
        """How many bytes wait to be put into the queue."""
        self._run: list[bytes] = []
        self._staged: list[StagedSend] = []

    def add_plain(self, queue: LocalQueue, packets: list[bytes], now: Instant) -> None:
        """Put plain messages, all recoverable or all not, into a queue."""
        run = self._run
        if (
            queue is not self.queue
            or self._staged
            or (run and is_recoverable(run[0]) != is_recoverable(packets[0]))
        ):
            self.flush(now)
            self.queue = queue
            run = self._run
        run += packets
        self.bytes += sum(map(len, packets))

    def add_staged(self, queue: LocalQueue, send: StagedSend, now: Instant) -> None:
        """Put a message of any kind into a queue."""
        if queue is not self.queue or self._run:
            self.flush(now)
            self.queue = queue
        self._staged.append(send)
        self.bytes += len(send.packet)

    def flush(self, now: Instant) -> None:
        """Put everything where it belongs."""
        queue, run, staged, size = self.queue, self._run, self._staged, self.bytes
        self.queue, self._run, self._staged, self.bytes = None, [], [], 0
        if queue is None:
            return
        self._shares.charge(queue, size)
        if run:
            self._plain.put_received(queue, run, now)
        if staged:
            self._delivery.put(queue, staged, now, arrived=True)

    # Whether there is time and room for more.

    def has_expired(self, packet: bytes, now: Instant) -> bool:
        """Whether a message has travelled too long, another clock being off allowed for (C-24)."""
        deadline_s = travel_deadline_s(packet)
        return deadline_s != INFINITE_S and (now.unix_s > deadline_s + self._clock_skew_max_s)

    def surely_enter(self, queue: LocalQueue, packets: list[bytes], now: Instant) -> bool:
        """Whether packets with the same lifetime are all in time and within all quotas."""
        size = self.bytes + sum(map(len, packets))
        if not queue.room_for(size) or not self._shares.take_all(packets, size):
            return False
        moments = {message_bytes.sent_time_s(packet): packet for packet in packets}
        return not any(self.has_expired(packet, now) for packet in moments.values())

    def quota_problem(self, queue: LocalQueue, packet: bytes) -> MessageClass | None:
        """Return why a message has no room in its queue; raise `NoRoom` if it must wait."""
        if self._shares.is_beyond_share(self.bytes + len(packet)):
            return MessageClass.NACK_QUEUE_EXCEEDS_QUOTA
        self.require_room(packet)
        waiting = self.bytes + len(packet)
        in_queue = waiting if queue is self.queue else len(packet)
        if queue.room_for(in_queue) and self._shares.has_memory(packet, self.bytes):
            return None
        return MessageClass.NACK_QUEUE_EXCEEDS_QUOTA

    def require_room(self, packet: bytes) -> None:
        """Raise `NoRoom` if the queue manager has no room for a message of the present asker."""
        size = self.bytes + len(packet)
        if not self._shares.takes(size):
            raise NoRoom(is_general=not self._table.totals.room_for(size))
