"""Runs: messages that arrive one after the other for the same queue are put into it together."""

from __future__ import annotations

from openmsmq.manager.messages.delivery import Delivery
from openmsmq.manager.messages.plain_delivery import PlainDelivery
from openmsmq.manager.messages.shares import Shares
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.model.clock import Instant
from openmsmq.storage.records import StagedSend
from openmsmq.wire.message_bytes import is_recoverable


class Runs:
    """The messages that were taken and are not in their queue yet."""

    def __init__(self, delivery: Delivery, plain: PlainDelivery, shares: Shares) -> None:
        self._delivery = delivery
        self._shares = shares
        self._plain = plain
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
            self._delivery.report_arrivals(queue, staged, now)
