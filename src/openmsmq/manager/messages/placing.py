"""How messages enter queues: stored, counted, and seen by readers when that is durable."""

from __future__ import annotations

from typing import Final, Protocol

from openmsmq.manager.messages.effects import DeadlinesNoted, Due, EntriesPlaced, EntriesTaken
from openmsmq.manager.messages.lifetimes import is_near
from openmsmq.manager.messages.news import News
from openmsmq.manager.queues.queue import LocalQueue, Row
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.queues.totals import Totals
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.errors import InsufficientResources
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.names import SystemQueue
from openmsmq.storage import records
from openmsmq.storage.port import Taken
from openmsmq.storage.records import (
    ASKS_FINAL_ACK,
    FACTS_BYTES,
    AsideRun,
    EntryFacts,
    StagedSend,
)
from openmsmq.wire import message_bytes
from openmsmq.wire.headers import user

_UNUSUAL: Final = user.ADMIN_QUEUE | user.JOURNAL_ON_FAILURE | user.JOURNAL_ON_SUCCESS
"""Flags of packets of a transaction that cause more than their own arrival."""


class OutgoingNumbers(Protocol):
    """Knows how far the messages of each outgoing queue have come."""

    def number(
        self, queue: LocalQueue, sends: list[StagedSend], marks: list[int] | None, now: Instant
    ) -> list[StagedSend]:
        """Return transactional messages of an outgoing queue with their places in its sequence."""
        ...

    def given_up(self, queue: LocalQueue, rows: list[Row]) -> None:
        """Hear which entries leave an outgoing queue without having arrived."""
        ...


class Placing:
    """Puts messages into queues, within the current turn."""

    def __init__(
        self, base: Foundation, table: QueueTable, news: News, outgoing: OutgoingNumbers
    ) -> None:
        self._counters = base.counters
        self._ledger = base.ledger
        self._deadlines = base.deadlines
        self._table = table
        self.news = news
        self._outgoing = outgoing

    def put(
        self,
        queue: LocalQueue,
        sends: list[StagedSend],
        now: Instant,
        marks: list[int] | None = None,
        *,
        arrived: bool = False,
    ) -> None:
        """Put messages into a queue; readers see them when the turn is durable.

        `marks` are the bits of the transaction they belong to, as `transaction_marks` gives them.
        """
        outgoing, is_goal = queue.can.lead_away, queue.can.take_messages
        if outgoing:
            sends = self._outgoing.number(queue, sends, marks, now)
        elif marks is not None:
            sends = [
                StagedSend(
                    send.queue, message_bytes.marked(send.packet, mark), send.deadline_s, send.asks
                )
                for send, mark in zip(sends, marks, strict=True)
            ]
        arrival = self._counters.take_arrivals(len(sends))
        in_order = queue.properties.transactional
        rows: list[Row] = []
        copies: list[bytes] = []
        known: tuple[int, int] | None = None
        facts = b""
        for send in sends:
            packet, deadline_s, asks = send.packet, send.deadline_s, send.asks
            if known != (deadline_s, asks):
                known = deadline_s, asks
                facts = records.encode_facts(EntryFacts(now.unix_s, deadline_s, asks=asks))
            # Transactional messages keep the order of their sequence, whatever they say (C-77g).
            ordered = in_order or message_bytes.is_transactional(packet)
            level = 0 if ordered else message_bytes.priority(packet)
            lookup_id = (7 - level) << 56 | arrival
            arrival += 1
            rows.append((lookup_id, facts + packet))
            if asks & ASKS_FINAL_ACK and outgoing:
                self.expect_final_ack(queue, lookup_id, packet)
            if (
                message_bytes.journals_success(packet)
                and is_goal
                and not arrived
                and message_bytes.source(packet) == self._counters.identifier
            ):
                copies.append(packet)
        self.place(queue, rows, now)
        for packet in copies:
            self.keep_copy(self._table.system(SystemQueue.JOURNAL), packet, now)

    def expect_final_ack(self, queue: LocalQueue, lookup_id: int, packet: bytes) -> None:
        """Note where a message waits whose end its receiver is to tell us."""
        place = records.encode_place(queue.id, lookup_id)
        self._ledger.put(records.final_key(message_bytes.message_number(packet)), place)

    def place(self, queue: LocalQueue, rows: list[Row], now: Instant) -> None:
        """Put entries into a queue, express ones and others."""
        for express in (True, False):
            alike = [
                row
                for row in rows
                if message_bytes.is_recoverable(row[1], FACTS_BYTES) is not express
            ]
            if alike:
                due = self._due(queue, alike, now)
                self.place_alike(queue, alike, due, express=express)

    def _due(self, queue: LocalQueue, rows: list[Row], now: Instant) -> list[Due]:
        """Return the entries that the clock is to watch from now on."""
        noted = not queue.can.lead_away
        deadlines = [(lookup_id, records.deadline_of(value)) for lookup_id, value in rows]
        return [
            (lookup_id, deadline_s)
            for lookup_id, deadline_s in deadlines
            if deadline_s != INFINITE_S and (noted or is_near(deadline_s, now.unix_s))
        ]

    def place_alike(
        self, queue: LocalQueue, rows: list[Row], due: list[Due], *, express: bool
    ) -> None:
        """Put entries into a queue that are all express or all not."""
        self._ledger.add(
            EntriesPlaced(self.news, self._deadlines, queue, rows, due, express=express)
        )

    def note_deadlines(self, queue: LocalQueue, rows: list[Row], now: Instant) -> None:
        """Write the notes of entries whose deadline has come near since they were placed."""
        near = [
            (lookup_id, records.deadline_of(value))
            for lookup_id, value in rows
            if is_near(records.deadline_of(value), now.unix_s)
        ]
        self._ledger.add(DeadlinesNoted(self._deadlines, queue, near))

    def keep_copy(self, queue: LocalQueue, packet: bytes, now: Instant) -> bool:
        """Keep a copy in a journal or dead-letter queue; say whether there was room for it."""
        size, express = len(packet), not message_bytes.is_recoverable(packet)
        if not queue.room_for(size) or (express and not self._table.totals.memory_for(1, size)):
            return False
        level = 0 if queue.properties.transactional else message_bytes.priority(packet)
        lookup_id = (7 - level) << 56 | self._counters.take_arrivals(1)
        facts = records.encode_facts(EntryFacts(now.unix_s))
        self.place_alike(queue, [(lookup_id, facts + packet)], [], express=express)
        return True

    # Messages that cause nothing but their own arrival.

    def put_staged(
        self, queue: LocalQueue, sends: list[StagedSend], marks: list[int], now: Instant
    ) -> None:
        """Put what a transaction sends to a queue of this computer, with its marks.

        Only for messages that `are_plain_sends` says are plain: what `Delivery.put` does for them.
        """
        arrival = self._counters.take_arrivals(len(sends))
        facts = records.encode_facts(EntryFacts(now.unix_s))
        marked = message_bytes.marked
        # Transactional messages keep the order of their sequence, whatever they say (C-77g).
        rows = [
            (7 << 56 | number, marked(send.packet, mark, facts))
            for number, (send, mark) in enumerate(zip(sends, marks, strict=True), arrival)
        ]
        self.place_alike(queue, rows, [], express=False)

    def take_aside(
        self, queue: LocalQueue, name: bytes, first: int, run: AsideRun, now: Instant
    ) -> None:
        """Put messages into a queue that are set aside under a name, with their marks."""
        arrival = self._counters.take_arrivals(run.count)
        facts = records.encode_facts(EntryFacts(now.unix_s))
        key = records.entry_key(queue.id, 7 << 56 | arrival)
        taken = Taken(name, first, run.count, key, facts)
        self._ledger.add(EntriesTaken(self.news, self._deadlines, queue, taken, run.size))


def are_plain_sends(sends: list[StagedSend]) -> bool:
    """Whether messages of a transaction cause nothing but their own arrival."""
    for send in sends:
        packet = send.packet
        if (
            send.asks
            or send.deadline_s != INFINITE_S
            or message_bytes.user_flags(packet) & _UNUSUAL
            or not message_bytes.is_recoverable(packet)
            or not message_bytes.is_transactional(packet)
        ):
            return False
    return bool(sends)


def require_room(totals: Totals, queue: LocalQueue, packets: list[bytes]) -> None:
    """Refuse messages for which a queue or the queue manager has no room."""
    size = sum(map(len, packets))
    if not queue.room_for(size):
        raise InsufficientResources(
            f"{queue.name} holds {queue.size} bytes, may hold {queue.properties.quota_kb} KB, and "
            f"transactions wait to send it {queue.whole.staged_bytes} bytes"
        )
    if not totals.room_for(size):
        raise InsufficientResources(
            f"this queue manager may hold {totals.quota_kb} KB, with what transactions wait to send"
        )
    if not totals.memory_for(len(packets), size):
        light = [packet for packet in packets if not message_bytes.is_recoverable(packet)]
        if light and not totals.memory_for(len(light), sum(map(len, light))):
            raise InsufficientResources(
                f"express messages may take {totals.express_memory_kb} KB of memory "
                "(express_memory_kb), and the quota of the queue manager: send recoverable "
                "ones, or receive some first"
            )
