"""How messages leave queues, and what their arrival and their end cause. [MQDMPR 3.1.7.2.1]"""

from __future__ import annotations

from typing import Final, Protocol

from openmsmq.manager.messages.dead_letters import dead_letter_queue
from openmsmq.manager.messages.effects import EntriesRemoved, available_again
from openmsmq.manager.messages.lifetimes import is_near
from openmsmq.manager.messages.placing import OutgoingNumbers, Placing
from openmsmq.manager.messages.reporting import Reporter
from openmsmq.manager.messages.shares import Shares
from openmsmq.manager.queues.queue import LocalQueue, Row
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import MessageClass, is_negative
from openmsmq.model.names import SystemQueue
from openmsmq.storage import records
from openmsmq.storage.records import (
    ASKS_DEAD_LETTER,
    ASKS_FINAL_ACK,
    ASKS_OFFSET,
    ASKS_RECEIVE_REPORT,
    FACTS_BYTES,
    SENT_HERE,
    EntryFacts,
    StagedSend,
)
from openmsmq.wire import message_bytes
from openmsmq.wire.headers.message_properties import POSITIVE_ARRIVAL
from openmsmq.wire.outline import outline

_NEVER: Final = INFINITE_S.to_bytes(4, "little")


class FinalAcks(Protocol):
    """Tells the sources of transactional messages how those ended."""

    def send(self, packet: bytes, reason: MessageClass, now: Instant) -> None:
        """Tell the source of a transactional message how it ended."""
        ...


class Delivery:
    """Takes messages out of queues, and does what their arrival and their end cause."""

    def __init__(
        self,
        base: Foundation,
        table: QueueTable,
        placing: Placing,
        reporter: Reporter,
        finals: FinalAcks,
        outgoing: OutgoingNumbers,
        shares: Shares,
    ) -> None:
        self._counters = base.counters
        self._ledger = base.ledger
        self._deadlines = base.deadlines
        self._table = table
        self._placing = placing
        self.news = placing.news
        self._reporter = reporter
        self._finals = finals
        self._outgoing = outgoing
        self._shares = shares

    def put(
        self,
        queue: LocalQueue,
        sends: list[StagedSend],
        now: Instant,
        marks: list[int] | None = None,
        *,
        arrived: bool = False,
    ) -> None:
        """Put messages into a queue, as `Placing.put`, and tell of that who wants to know."""
        self._placing.put(queue, sends, now, marks, arrived=arrived)
        self._report_arrivals(queue, sends, now)

    def _report_arrivals(self, queue: LocalQueue, sends: list[StagedSend], now: Instant) -> None:
        """Tell administration queues of messages that reached their queue, if this is it."""
        if not queue.can.take_messages or queue.is_connector:
            return
        for send in sends:
            packet = send.packet
            if message_bytes.has_admin_queue(packet) and (
                message_bytes.acknowledge(packet, outline(packet)) & POSITIVE_ARRIVAL
            ):
                self._reporter.report(send.packet, MessageClass.ACK_REACH_QUEUE, now)

    def end(
        self,
        queue: LocalQueue,
        rows: list[Row],
        reason: MessageClass,
        now: Instant,
        *,
        told: bool = True,
    ) -> None:
        """Take entries out for good; nobody sees them while that waits for the disk.

        If the disk refuses, they are again whose they were. Unless `told`, nobody hears of it: that
        is for messages which only go on to another place.
        """
        self._ledger.add(EntriesRemoved(self.news, self._deadlines, queue, rows, reason))
        journal = self._journal_for(queue, reason)
        unnoted = _NEVER
        for lookup_id, value in rows:
            if value[4:8] != unnoted and not self._forget_deadline(queue, lookup_id, value, now):
                unnoted = value[4:8]
            if journal is not None and self._placing.keep_copy(journal, value[FACTS_BYTES:], now):
                self._shares.copied(queue, journal, len(value) - FACTS_BYTES)
            if value[ASKS_OFFSET]:
                self._heed_wishes(queue, value, reason, now, told=told)
        if told and queue.can.lead_away:
            self._outgoing.given_up(queue, rows)

    def _heed_wishes(
        self, queue: LocalQueue, value: bytes, reason: MessageClass, now: Instant, *, told: bool
    ) -> None:
        """Do what an entry asked for at its end."""
        asks = records.asks_of(value)
        if asks & ASKS_FINAL_ACK and queue.can.hold_sent:
            # There it is we who wait for the final acknowledgment.
            asks &= ~ASKS_FINAL_ACK
            self._ledger.delete(records.final_key(message_bytes.message_number(value, FACTS_BYTES)))
        if reason is MessageClass.ACK_RECEIVE and queue.is_connector:
            asks &= ~ASKS_RECEIVE_REPORT
        if told:
            kept = self.tell(asks, value[FACTS_BYTES:], reason, now)
            if kept is not None:
                self._shares.copied(queue, kept, len(value) - FACTS_BYTES)

    def _forget_deadline(
        self, queue: LocalQueue, lookup_id: int, value: bytes, now: Instant
    ) -> bool:
        """Delete the note of an entry's deadline; says whether there may be one.

        One that was never written need not be deleted, and a forgotten one is found in its time.
        """
        deadline_s = records.deadline_of(value)
        if queue.can.lead_away and not is_near(deadline_s, now.unix_s):
            return False
        self._ledger.delete(records.deadline_key(deadline_s, queue.id, lookup_id))
        return True

    def delivered(self, queue: LocalQueue, rows: list[Row], now: Instant) -> None:
        """Take out messages that another queue manager has now; the source may want a copy."""
        self.end(queue, rows, MessageClass.ACK_REACH_QUEUE, now, told=False)
        for _, value in rows:
            if message_bytes.journals_success(value, FACTS_BYTES):
                self.journal_sent(value, now)

    def journal_sent(self, value: bytes, now: Instant) -> None:
        """Keep a copy of an entry that was delivered, if it was sent here and asked for that."""
        packet = value[FACTS_BYTES:]
        if records.asks_of(value) & SENT_HERE and message_bytes.journals_success(packet):
            self._placing.keep_copy(self._table.system(SystemQueue.JOURNAL), packet, now)

    def transfer(
        self, source: LocalQueue, row: Row, target: LocalQueue, deadline_s: int, now: Instant
    ) -> None:
        """Let an entry that the caller holds wait on in another queue, until a deadline."""
        lookup_id, value = row
        packet = value[FACTS_BYTES:]
        self.end(source, [row], MessageClass.ACK_REACH_QUEUE, now, told=False)
        facts = EntryFacts(now.unix_s, deadline_s, asks=records.asks_of(value))
        self._placing.expect_final_ack(target, lookup_id, packet)
        self._placing.place(target, [(lookup_id, records.encode_entry(facts, packet))], now)

    def move(self, source: LocalQueue, row: Row, target: LocalQueue, now: Instant) -> None:
        """Move an entry to another queue; its lookup identifier stays.

        Unless it would come between messages that are reserved there: their reader has read them
        without it, and would take it out with them. Then it arrives there like a new one.
        """
        lookup_id, value = row
        facts = records.decode_facts(value)
        packet = value[FACTS_BYTES:]
        moved = EntryFacts(
            facts.arrived_time_s,
            facts.deadline_s,
            now.unix_s,
            facts.abort_count,
            min(facts.move_count + 1, 0xFF),
            facts.asks,
        )
        self._ledger.add(EntriesRemoved(self.news, self._deadlines, source, [row]))
        if facts.deadline_s != INFINITE_S:
            self._ledger.delete(records.deadline_key(facts.deadline_s, source.id, lookup_id))
        there = lookup_id
        if target.is_reserved(there):
            there = there & ~records.ARRIVAL_MASK | self._counters.take_arrivals(1)
        self._placing.place(target, [(there, records.encode_entry(moved, packet))], now)

    def give_back(self, queue: LocalQueue, lookup_id: int, value: bytes) -> None:
        """Let readers have an entry that was held."""
        queue.entries.release(lookup_id)
        available_again(self.news, self._deadlines, queue, (lookup_id, value))

    def count_abort(self, queue: LocalQueue, row: Row) -> None:
        """Note that a transaction gave an entry back: applications look for poison messages."""
        lookup_id, value = row
        facts = records.decode_facts(value)
        changed = EntryFacts(
            facts.arrived_time_s,
            facts.deadline_s,
            facts.moved_time_s,
            min(facts.abort_count + 1, 0xFFFF),
            facts.move_count,
            facts.asks,
        )
        entry = records.encode_entry(changed, value[FACTS_BYTES:])
        key = records.entry_key(queue.id, lookup_id)
        self._ledger.put_many([(key, entry)], volatile=lookup_id in queue.express_ids)

    def _journal_for(self, queue: LocalQueue, reason: MessageClass) -> LocalQueue | None:
        journal = queue.journal
        if reason is not MessageClass.ACK_RECEIVE or not queue.properties.journaling:
            return None
        return journal if journal is not None and journal in self._table else None

    def tell(
        self, asks: int, packet: bytes, reason: MessageClass, now: Instant
    ) -> LocalQueue | None:
        """Do what a message asked for at its end: a dead letter, an acknowledgment.

        Gives the queue that has the dead letter, if there is one.
        """
        kept: LocalQueue | None = None
        if asks & ASKS_DEAD_LETTER and is_negative(reason):
            kept = self.keep_dead_letter(packet, reason, now, sent_here=bool(asks & SENT_HERE))
        if asks & ASKS_RECEIVE_REPORT:
            self._reporter.report(packet, reason, now)
        if asks & ASKS_FINAL_ACK:
            self._finals.send(packet, reason, now)
        return kept

    def keep_dead_letter(
        self, packet: bytes, reason: MessageClass, now: Instant, *, sent_here: bool = False
    ) -> LocalQueue | None:
        """Keep a copy of a message that failed, with the reason; give where it is."""
        queue = dead_letter_queue(self._table, packet, sent_here=sent_here)
        letter = message_bytes.with_class(packet, reason)
        return queue if self._placing.keep_copy(queue, letter, now) else None
