"""What others confirm: messages of ours that have arrived, and how they ended. [MQQB 3.1.5.6]"""

from __future__ import annotations

from typing import NamedTuple

from openmsmq.manager.messages.delivery import Delivery
from openmsmq.manager.messages.lifetimes import receive_deadline_s
from openmsmq.manager.messages.news import News
from openmsmq.manager.peers.effects import MoveAwaited
from openmsmq.manager.peers.outgoing import OutgoingQueue, OutgoingQueues
from openmsmq.manager.queues.queue import LocalQueue, Row
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.identity import SequenceId
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import MessageClass, is_negative
from openmsmq.storage import records
from openmsmq.storage.records import ASKS_DEAD_LETTER, ASKS_FINAL_ACK, FACTS_BYTES, SENT_HERE
from openmsmq.wire import message_bytes
from openmsmq.wire.bodies.acknowledgments import FinalAck


class Awaited(NamedTuple):
    """A message whose final acknowledgment is awaited: who sends it, and where it waits."""

    outgoing: OutgoingQueue
    queue: LocalQueue
    row: Row


class Confirmations:
    """Takes messages out that have arrived, or lets them wait to hear of their end."""

    def __init__(
        self,
        base: Foundation,
        table: QueueTable,
        delivery: Delivery,
        outgoing: OutgoingQueues,
        news: News,
    ) -> None:
        self._config = base.config.transfer
        self._counters = base.counters
        self._ledger = base.ledger
        self._reader = base.reader
        self._table = table
        self._delivery = delivery
        self._outgoing = outgoing
        self._news = news
        self._moving: dict[int, tuple[LocalQueue, Row]] = {}
        """Messages of which the change of queue is not durable yet, by message number."""

    def order_acked(
        self, outgoing: OutgoingQueue, sequence: SequenceId, number: int, now: Instant
    ) -> None:
        """The destination has our messages up to a number (C-64, C-67). [MQQB 3.1.5.6]"""
        released = outgoing.sequence.order_acked(sequence, number, now)
        queue = outgoing.queue
        rows = [
            (entry, value)
            for entry in released
            if not queue.entries.is_leaving(entry) and (value := queue.entry(entry)) is not None
        ]
        self.arrived(outgoing, rows, now)
        self._news.ready[queue] = None

    def arrived(self, outgoing: OutgoingQueue, rows: list[Row], now: Instant) -> None:
        """Transactional messages are in their queue: they are done, or wait for their end."""
        queue = outgoing.queue
        # No session has them any more: if the disk refuses, they are sent again.
        queue.entries.free([lookup_id for lookup_id, _ in rows])
        outgoing.in_flight.difference_update(lookup_id for lookup_id, _ in rows)
        done = [row for row in rows if not records.asks_of(row[1]) & ASKS_FINAL_ACK]
        if done:
            self._delivery.delivered(queue, done, now)
        waiting = [row for row in rows if records.asks_of(row[1]) & ASKS_FINAL_ACK]
        for row in waiting:
            target = self._table.awaiting(queue)
            deadline_s = self._final_deadline_s(row[1][FACTS_BYTES:])
            self._delivery.transfer(queue, row, target, deadline_s, now)
            number = message_bytes.message_number(row[1], FACTS_BYTES)
            self._ledger.add(MoveAwaited(self._moving, number, target, row))
        if waiting:
            # The disk may have refused to note whom we reached. Nothing is sent there any more that
            # would let us find out again, and only his final acknowledgments count.
            self._ledger.put(records.outgoing_key(queue.id), records.encode_record(outgoing.record))

    def _final_deadline_s(self, packet: bytes) -> int:
        """Until when a final acknowledgment can come (C-76)."""
        received_s = receive_deadline_s(packet)
        if received_s == INFINITE_S:
            return INFINITE_S
        return min(received_s + self._config.final_ack_grace_s, INFINITE_S - 1)

    def awaited(self, ack: FinalAck) -> Awaited | None:
        """Find the message that a final acknowledgment is about: all that it says must fit."""
        if ack.message.source != self._counters.identifier:
            return None
        found = self._awaited(ack.message.number)
        if found is None:
            return None
        queue, row = found
        packet = row[1][FACTS_BYTES:]
        if not message_bytes.is_transactional(packet):
            return None
        sequence, number, _ = message_bytes.sequence_place(packet)
        if (sequence, number) != (ack.sequence, ack.number):
            return None
        sender = queue if queue.can.lead_away else queue.parent
        if sender is None or not sender.can.lead_away:
            return None
        return Awaited(self._outgoing.of(sender), queue, row)

    def final_acked(self, found: Awaited, message_class: int, now: Instant) -> None:
        """A message was received, or has failed for good (C-75). [MQQB 3.1.5.7]"""
        queue, row = found.queue, found.row
        lookup_id, value = row
        queue.entries.free([lookup_id])
        self._moving.pop(message_bytes.message_number(value, FACTS_BYTES), None)
        self._delivery.end(queue, [row], MessageClass.ACK_RECEIVE, now, told=False)
        if queue.can.lead_away:
            outgoing = self._outgoing.of(queue)
            outgoing.in_flight.discard(lookup_id)
            outgoing.sequence.gone(lookup_id)
        packet = value[FACTS_BYTES:]
        if not is_negative(message_class):
            self._delivery.journal_sent(value, now)
        elif records.asks_of(value) & ASKS_DEAD_LETTER:
            reason = MessageClass.NACK_RECEIVE_REJECTED
            if message_class in MessageClass.__members__.values():
                reason = MessageClass(message_class)
            asks = records.asks_of(value) & (ASKS_DEAD_LETTER | SENT_HERE)
            self._delivery.tell(asks, packet, reason, now)

    def _awaited(self, number: int) -> tuple[LocalQueue, Row] | None:
        moving = self._moving.get(number)
        if moving is not None:
            return moving
        place = self._reader.get(records.final_key(number))
        if place is None:
            return None
        queue_number, lookup_id = records.decode_place(place)
        queue = self._table.by_id(queue_number)
        if queue is None or queue.entries.is_leaving(lookup_id):
            return None
        value = queue.entry(lookup_id)
        return None if value is None else (queue, (lookup_id, value))
