"""Departures: which messages of an outgoing queue leave next, and what becomes of them."""

from __future__ import annotations

from operator import itemgetter
from typing import Final, TypeAlias

from openmsmq.manager.incoming.traces import Traces
from openmsmq.manager.messages.delivery import Delivery
from openmsmq.manager.messages.housekeeping import Housekeeping
from openmsmq.manager.peers.outgoing import OutgoingQueue
from openmsmq.manager.queues.entries import IN_TRANSIT
from openmsmq.manager.queues.queue import LocalQueue, Row
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.identity import SequencePoint
from openmsmq.protocol.session import Session, SessionState, Token
from openmsmq.storage import records
from openmsmq.storage.records import FACTS_BYTES
from openmsmq.wire import message_bytes
from openmsmq.wire.extensions import without_extensions

DISPATCH_BYTES: Final = 4 * 1024 * 1024
"""How many bytes of one queue are read from the store at a time."""


Transit: TypeAlias = tuple[OutgoingQueue, int, bytes]
"""A message on its way, as a session knows it: its queue, lookup id and entry."""


class Departures:
    """Hands messages to sessions and hears what became of them."""

    def __init__(
        self,
        base: Foundation,
        delivery: Delivery,
        housekeeping: Housekeeping,
        traces: Traces,
    ) -> None:
        self._counters = base.counters
        self._delivery = delivery
        self._housekeeping = housekeeping
        self._traces = traces
        self.resend_count = 0
        """How often a message was sent again because its end was not heard of."""

    def send_some(self, outgoing: OutgoingQueue, session: Session, now: Instant) -> bool:
        """Send what the window takes; says whether more may be there to send."""
        taken, packets, more = self.take(outgoing, session.room, session.room_bytes, now)
        if taken:
            tokens: list[Token] = [(outgoing, lookup_id, value) for lookup_id, value in taken]
            session.send(tokens, packets, now)
            if self._traces.is_wanted:
                self._traces.left(packets, session.address, now)
        return more and session.state is SessionState.OPEN

    def take(
        self, outgoing: OutgoingQueue, room: int, room_bytes: int, now: Instant
    ) -> tuple[list[Row], list[bytes], bool]:
        """Return what leaves next, held from now on, and its packets; and whether more may be
        there to send."""
        queue = outgoing.queue
        room_bytes = min(room_bytes, DISPATCH_BYTES)
        rows = queue.front(room, room_bytes)
        if not rows:
            return [], [], False
        is_all = len(rows) < room and sum([len(value) for _, value in rows]) < room_bytes
        rows = self._without_expired(outgoing, rows, now)
        packets = self._plain_packets(rows)
        taken = rows
        if packets is None:
            packets = self._ready_packets(outgoing, rows, now)
            taken = rows[: len(packets)]
        if taken:
            queue.hold(taken, IN_TRANSIT)
        return taken, packets, not is_all and len(taken) == len(rows)

    @staticmethod
    def _plain_packets(rows: list[Row]) -> list[bytes] | None:
        """Return packets that leave as they are stored; None if one of them may not."""
        for _, value in rows:
            if message_bytes.is_transactional(value, FACTS_BYTES) or (
                message_bytes.journals_failure(value, FACTS_BYTES)
            ):
                return None
        return [value[FACTS_BYTES:] for _, value in rows]

    def _ready_packets(self, outgoing: OutgoingQueue, rows: list[Row], now: Instant) -> list[bytes]:
        """Return packets as they are to leave, up to the first that has to wait."""
        packets: list[bytes] = []
        identifier = self._counters.identifier
        for row in rows:
            packet = row[1][FACTS_BYTES:]
            if message_bytes.source(packet) == identifier:
                if message_bytes.journals_failure(packet):
                    packet = without_extensions(packet)
                if message_bytes.is_transactional(packet):
                    placed = None
                    if not outgoing.leaving_count:
                        placed = self._in_sequence(outgoing, row, packet, now)
                    if placed is None:
                        return packets
                    packet = placed
                    outgoing.in_flight.add(row[0])
            packets.append(packet)
        return packets

    def _without_expired(self, outgoing: OutgoingQueue, rows: list[Row], now: Instant) -> list[Row]:
        """Take out messages that are too late; not every deadline is noted for the clock."""
        deadlines = {value[4:8] for _, value in rows}
        if all(int.from_bytes(deadline, "little") > now.unix_s for deadline in deadlines):
            return rows
        expired = [row for row in rows if records.deadline_of(row[1]) <= now.unix_s]
        self._housekeeping.end_overdue(outgoing.queue, expired, now)
        gone = set(map(itemgetter(0), expired))
        return [row for row in rows if row[0] not in gone]

    def _in_sequence(
        self, outgoing: OutgoingQueue, row: Row, packet: bytes, now: Instant
    ) -> bytes | None:
        """Return a transactional message of ours ready to leave (C-69); None if it has to wait."""
        sequence = outgoing.sequence
        offset = message_bytes.transaction_offset(packet)
        identifier, number, _ = message_bytes.sequence_place(packet, offset)
        point = SequencePoint(identifier, number, 0)
        if not sequence.can_send and not sequence.is_outstanding(row[0]):
            return None
        previous = sequence.previous_of(number)
        sequence.sent(point, row[0], now)
        return message_bytes.following(packet, previous, offset)

    def give_back(self, queue: LocalQueue, lookup_id: int, value: bytes, now: Instant) -> None:
        """Let an entry be sent again, unless it was purged meanwhile."""
        if not queue.entries.is_held_by(lookup_id, IN_TRANSIT):
            return
        reason = queue.entries.doom_of(lookup_id)
        if reason is None:
            self._delivery.give_back(queue, lookup_id, value)
            return
        queue.entries.free([lookup_id])
        self._delivery.end(queue, [(lookup_id, value)], reason, now)

    def acknowledged(self, tokens: list[Transit], now: Instant) -> None:
        """The neighbour has these; a transactional one waits on for its destination."""
        delivered: dict[OutgoingQueue, list[Row]] = {}
        own = self._counters.identifier
        for outgoing, lookup_id, value in tokens:
            if not outgoing.queue.entries.is_held_by(lookup_id, IN_TRANSIT):
                continue
            if message_bytes.is_transactional(value, FACTS_BYTES) and (
                message_bytes.source(value, FACTS_BYTES) == own
            ):
                outgoing.in_flight.discard(lookup_id)
            else:
                delivered.setdefault(outgoing, []).append((lookup_id, value))
        for outgoing, rows in delivered.items():
            self._let_go(outgoing.queue, rows, now)

    def _let_go(self, queue: LocalQueue, rows: list[Row], now: Instant) -> None:
        """Take out what the neighbour has; a full disk must not make us send it again and again."""
        self._housekeeping.surely(
            queue, rows, lambda moment: self._delivery.delivered(queue, rows, moment), now
        )

    def send_again(self, outgoing: OutgoingQueue, now: Instant) -> None:
        """Let everything be sent again that the destination has not acknowledged."""
        queue = outgoing.queue
        for lookup_id in outgoing.sequence.outstanding():
            if lookup_id in outgoing.in_flight:
                continue
            value = queue.entry(lookup_id)
            if value is not None:
                self.resend_count += 1
                self.give_back(queue, lookup_id, value, now)
