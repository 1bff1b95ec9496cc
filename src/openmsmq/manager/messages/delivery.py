"""How messages enter queues and leave them, and what else that causes. [MQDMPR 3.1.7.2.1]"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from openmsmq.manager.messages.dead_letters import dead_letter_queue
from openmsmq.manager.messages.lifetimes import is_near
from openmsmq.manager.queues.queue import LocalQueue, Row
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.turn.counters import Counters
from openmsmq.manager.turn.deadlines import Deadlines
from openmsmq.manager.turn.ledger import Ledger
from openmsmq.model.clock import Instant
from openmsmq.model.errors import InsufficientResources, MsmqError
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import MessageClass, is_negative
from openmsmq.model.names import FormatName, SystemQueue
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

if TYPE_CHECKING:
    from openmsmq.manager.messages.reporting import Reporter

_NEVER: Final = INFINITE_S.to_bytes(4, "little")


class Delivery:
    """Puts messages into queues and takes them out, within the current turn."""

    def __init__(
        self,
        table: QueueTable,
        counters: Counters,
        ledger: Ledger,
        deadlines: Deadlines,
    ) -> None:
        self._table = table
        self._counters = counters
        self._ledger = ledger
        self._deadlines = deadlines
        self.reporter: Reporter
        """Sends what messages ask for; must be there before the first message."""
        self.hand_over: Callable[[LocalQueue, list[Row], Instant], int] = lambda *_: 0
        """Gives entries to readers that wait; says how many they took, from the front."""
        self.number: Callable[
            [LocalQueue, list[StagedSend], list[int] | None, Instant], list[StagedSend]
        ] = lambda _queue, sends, _marks, _now: sends
        """Gives transactional messages of an outgoing queue their places in its sequence."""
        self.send_final_ack: Callable[[bytes, MessageClass, Instant], None] = (
            lambda _packet, _reason, _now: None
        )
        """Tells the source of a transactional message how it ended."""
        self.given_up: Callable[[LocalQueue, list[Row]], None] = lambda _queue, _rows: None
        """Hears which entries leave an outgoing queue without having arrived."""
        self.copied: Callable[[LocalQueue, LocalQueue, int], None] = lambda *_: None
        """Hears that so many bytes have gone from a queue into a journal or dead-letter queue."""
        self.may_enter_plain: Callable[[LocalQueue], bool] = lambda _queue: True
        """Says whether a message that proves nothing may enter a queue of this computer."""
        self.became_available: dict[LocalQueue, None] = {}
        """Queues with news for their readers since the manager last looked, in order."""
        self.ready: dict[LocalQueue, None] = {}
        """Outgoing queues with something to send since the manager last looked, in order."""

    # In.

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
            sends = self.number(queue, sends, marks, now)
        elif marks is not None:
            sends = [
                StagedSend(
                    send.queue, message_bytes.marked(send.packet, mark), send.deadline_s, send.asks
                )
                for send, mark in zip(sends, marks, strict=True)
            ]
        arrival = self._counters.take_arrivals(len(sends))
        in_order = queue.properties.transactional
        placed: list[tuple[int, int, int]] = []
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
            self._keep(queue, lookup_id, deadline_s, facts, packet, now)
            placed.append((lookup_id, len(packet), deadline_s))
            if asks & ASKS_FINAL_ACK and outgoing:
                self._expect_final_ack(queue, lookup_id, packet)
            if (
                message_bytes.journals_success(packet)
                and is_goal
                and not arrived
                and message_bytes.source(packet) == self._counters.identifier
            ):
                self._copy(self._table.system(SystemQueue.JOURNAL), packet, now)
        self._announce(queue, placed, now)

    def report_arrivals(self, queue: LocalQueue, sends: list[StagedSend], now: Instant) -> None:
        """Tell administration queues of messages that reached their queue, if this is it."""
        if not queue.can.take_messages or queue.is_connector:
            return
        for send in sends:
            packet = send.packet
            if message_bytes.has_admin_queue(packet) and (
                message_bytes.acknowledge(packet, outline(packet)) & POSITIVE_ARRIVAL
            ):
                self.report(send.packet, MessageClass.ACK_REACH_QUEUE, now)

    def require_room(self, queue: LocalQueue, packets: list[bytes]) -> None:
        """Refuse messages for which a queue or the queue manager has no room."""
        size = sum(map(len, packets))
        if not queue.room_for(size):
            raise InsufficientResources(
                f"{queue.name} holds {queue.size} bytes and may hold {queue.properties.quota_kb} KB"
            )
        if not self._table.totals.room_for(size):
            raise InsufficientResources(
                f"this queue manager may hold {self._table.totals.quota_kb} KB"
            )
        totals = self._table.totals
        if not totals.memory_for(len(packets), size):
            light = [packet for packet in packets if not message_bytes.is_recoverable(packet)]
            if light and not totals.memory_for(len(light), sum(map(len, light))):
                raise InsufficientResources(
                    f"express messages may take {totals.express_memory_kb} KB of memory "
                    "(express_memory_kb), and the quota of the queue manager: send recoverable "
                    "ones, or receive some first"
                )

    # Out.

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
        lookup_ids = [lookup_id for lookup_id, _ in rows]
        before = queue.entries.remove(lookup_ids)
        light, heavy = queue.by_kind(rows)
        self._take_out(queue, light, express=True)
        self._take_out(queue, heavy, express=False)
        journal = self._journal_for(queue, reason)
        unnoted = _NEVER
        for lookup_id, value in rows:
            if value[4:8] != unnoted and not self._forget_deadline(queue, lookup_id, value, now):
                unnoted = value[4:8]
            if journal is not None and self._copy(journal, value[FACTS_BYTES:], now):
                self.copied(queue, journal, len(value) - FACTS_BYTES)
            if value[ASKS_OFFSET]:
                self._heed_wishes(queue, value, reason, now, told=told)
        if told and queue.can.lead_away:
            self.given_up(queue, rows)

        def still_there(_: MsmqError) -> None:
            for part, is_light in ((light, True), (heavy, False)):
                for lookup_id, value in part:
                    queue.count_in(lookup_id, len(value) - FACTS_BYTES, express=is_light)
            self._stay(queue, rows, lookup_ids, before)

        self._ledger.when_done(lambda: queue.entries.gone(lookup_ids), still_there)

    def _stay(
        self, queue: LocalQueue, rows: list[Row], lookup_ids: list[int], before: dict[int, int]
    ) -> None:
        """Let entries be whose they were, because the disk refused to remove them."""
        available = set(queue.entries.stay(lookup_ids, before))
        for lookup_id, value in rows:
            if lookup_id in available:
                self._available_again(queue, lookup_id, value)

    def _take_out(self, queue: LocalQueue, rows: list[Row], *, express: bool) -> None:
        """Remove entries of one kind, and count them out."""
        if not rows:
            return
        if not express:
            self._ledger.touch(queue)
        entry_key, number = records.entry_key, queue.id
        lookup_ids = [lookup_id for lookup_id, _ in rows]
        size = sum(len(value) for _, value in rows) - FACTS_BYTES * len(rows)
        queue.count_many_out(lookup_ids, size, express=express)
        keys = [entry_key(number, lookup_id) for lookup_id in lookup_ids]
        self._ledger.take_out(keys, volatile=express)

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
                self.copied(queue, kept, len(value) - FACTS_BYTES)

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
            self._copy(self._table.system(SystemQueue.JOURNAL), packet, now)

    def transfer(
        self, source: LocalQueue, row: Row, target: LocalQueue, deadline_s: int, now: Instant
    ) -> None:
        """Let an entry that the caller holds wait on in another queue, until a deadline."""
        lookup_id, value = row
        packet = value[FACTS_BYTES:]
        self.end(source, [row], MessageClass.ACK_REACH_QUEUE, now, told=False)
        facts = EntryFacts(now.unix_s, deadline_s, asks=records.asks_of(value))
        self._place(target, lookup_id, facts, packet)
        self._expect_final_ack(target, lookup_id, packet)
        self._announce(target, [(lookup_id, len(packet), deadline_s)], now)

    def _expect_final_ack(self, queue: LocalQueue, lookup_id: int, packet: bytes) -> None:
        place = records.encode_place(queue.id, lookup_id)
        self._ledger.put(records.final_key(message_bytes.message_number(packet)), place)

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
        before = source.entries.remove([lookup_id])
        self._ledger.delete(records.entry_key(source.id, lookup_id))
        if facts.deadline_s != INFINITE_S:
            self._ledger.delete(records.deadline_key(facts.deadline_s, source.id, lookup_id))
        express = source.count_out(lookup_id, len(packet))
        if not express:
            self._ledger.touch(source)

        def still_there(_: MsmqError) -> None:
            source.count_in(lookup_id, len(packet), express=express)
            self._stay(source, [row], [lookup_id], before)

        self._ledger.when_done(lambda: source.entries.gone([lookup_id]), still_there)
        there = lookup_id
        if target.is_reserved(there):
            there = there & ~records.ARRIVAL_MASK | self._counters.take_arrivals(1)
        self._place(target, there, moved, packet)
        self._announce(target, [(there, len(packet), facts.deadline_s)], now)

    def give_back(self, queue: LocalQueue, lookup_id: int, value: bytes) -> None:
        """Let readers have an entry that was held."""
        queue.release(lookup_id)
        self._available_again(queue, lookup_id, value)

    def _available_again(self, queue: LocalQueue, lookup_id: int, value: bytes) -> None:
        queue.became_available(lookup_id)
        self.news(queue)
        if value[4:8] != _NEVER:
            self._deadlines.note(records.deadline_of(value), queue.id, lookup_id)

    def news(self, queue: LocalQueue) -> None:
        """Let whoever looks after a queue know that something became available in it."""
        if queue.can.lead_away:
            self.ready[queue] = None
        else:
            self.became_available[queue] = None

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
        if lookup_id in queue.express_ids:
            self._ledger.put_volatile(key, entry)
        else:
            self._ledger.put(key, entry)

    # Internals.

    def _place(self, queue: LocalQueue, lookup_id: int, facts: EntryFacts, packet: bytes) -> None:
        # Whether a deadline is near is decided when an entry comes into its queue.
        now = Instant(0, max(facts.arrived_time_s, facts.moved_time_s))
        self._keep(queue, lookup_id, facts.deadline_s, records.encode_facts(facts), packet, now)

    def _keep(
        self,
        queue: LocalQueue,
        lookup_id: int,
        deadline_s: int,
        facts: bytes,
        packet: bytes,
        now: Instant,
    ) -> None:
        express = not message_bytes.is_recoverable(packet)
        put = self._ledger.put_volatile if express else self._ledger.put
        put(records.entry_key(queue.id, lookup_id), facts + packet)
        queue.count_in(lookup_id, len(packet), express=express)
        if not express:
            self._ledger.touch(queue)
        if deadline_s != INFINITE_S and (
            not queue.can.lead_away or is_near(deadline_s, now.unix_s)
        ):
            self.note_deadline(queue, lookup_id, deadline_s, express=express)

    def note_deadline(
        self, queue: LocalQueue, lookup_id: int, deadline_s: int, *, express: bool
    ) -> None:
        """Write down for the clock when an entry expires."""
        put = self._ledger.put_volatile if express else self._ledger.put
        put(records.deadline_key(deadline_s, queue.id, lookup_id), b"")

    def note_deadlines(self, queue: LocalQueue, rows: list[Row], now: Instant) -> None:
        """Write the notes of entries whose deadline has come near since they were placed."""
        near = [
            (lookup_id, records.deadline_of(value))
            for lookup_id, value in rows
            if is_near(records.deadline_of(value), now.unix_s)
        ]
        for lookup_id, deadline_s in near:
            express = lookup_id in queue.express_ids
            self.note_deadline(queue, lookup_id, deadline_s, express=express)

        def noted() -> None:
            for lookup_id, deadline_s in near:
                self._deadlines.note(deadline_s, queue.id, lookup_id)

        self._ledger.when_done(noted, lambda _: None)

    def _announce(
        self, queue: LocalQueue, placed: list[tuple[int, int, int]], now: Instant
    ) -> None:
        """Let readers and the clock know of entries (lookup id, size, deadline) once they count."""

        lookup_ids = [lookup_id for lookup_id, _, _ in placed]
        queue.entries.place(lookup_ids)
        noted = not queue.can.lead_away

        def available() -> None:
            queue.entries.arrive(lookup_ids)
            for lookup_id, _, deadline_s in placed:
                queue.became_available(lookup_id)
                if deadline_s != INFINITE_S and (noted or is_near(deadline_s, now.unix_s)):
                    self._deadlines.note(deadline_s, queue.id, lookup_id)
            self.news(queue)

        def never_came(_: MsmqError) -> None:
            queue.entries.withdraw(lookup_ids)
            for lookup_id, size, _deadline_s in placed:
                queue.count_out(lookup_id, size)

        self._ledger.when_done(available, never_came)

    def _journal_for(self, queue: LocalQueue, reason: MessageClass) -> LocalQueue | None:
        journal = queue.journal
        if reason is not MessageClass.ACK_RECEIVE or not queue.properties.journaling:
            return None
        return journal if journal is not None and journal in self._table else None

    def _copy(self, queue: LocalQueue, packet: bytes, now: Instant) -> bool:
        """Keep a copy in a journal or dead-letter queue; say whether there was room for it."""
        size, express = len(packet), not message_bytes.is_recoverable(packet)
        if not queue.room_for(size) or (express and not self._table.totals.memory_for(1, size)):
            return False
        level = 0 if queue.properties.transactional else message_bytes.priority(packet)
        lookup_id = (7 - level) << 56 | self._counters.take_arrivals(1)
        self._place(queue, lookup_id, EntryFacts(now.unix_s), packet)
        self._announce(queue, [(lookup_id, len(packet), INFINITE_S)], now)
        return True

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
            self.report(packet, reason, now)
        if asks & ASKS_FINAL_ACK:
            self.send_final_ack(packet, reason, now)
        return kept

    def keep_dead_letter(
        self, packet: bytes, reason: MessageClass, now: Instant, *, sent_here: bool = False
    ) -> LocalQueue | None:
        """Keep a copy of a message that failed, with the reason; give where it is."""
        queue = dead_letter_queue(self._table, packet, sent_here=sent_here)
        return queue if self._copy(queue, message_bytes.with_class(packet, reason), now) else None

    def report(self, packet: bytes, reason: MessageClass, now: Instant) -> None:
        """Tell the administration queue of a message what became of it, if it asked for that."""
        self.reporter.report(packet, reason, now)

    def post(
        self,
        name: FormatName,
        packet: bytes,
        now: Instant,
        *,
        express_max_count: int | None = None,
        is_final: bool = False,
    ) -> None:
        """Send a message of the queue manager itself, as `Reporter.post` says."""
        self.reporter.post(
            name, packet, now, express_max_count=express_max_count, is_final=is_final
        )
