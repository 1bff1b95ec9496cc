"""How messages enter queues and leave them, and what else that causes. [MQDMPR 3.1.7.2.1]"""

from __future__ import annotations

import struct
from collections.abc import Callable
from operator import itemgetter
from typing import Final

from openmsmq.manager.counters import Counters
from openmsmq.manager.deadlines import Deadlines
from openmsmq.manager.ledger import Ledger
from openmsmq.manager.queue_table import QueueTable
from openmsmq.manager.queues import BEING_REMOVED, LocalQueue, Row
from openmsmq.manager.reports import report_for
from openmsmq.model.clock import Instant
from openmsmq.model.errors import InsufficientResources, MsmqError
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import MessageClass, is_negative
from openmsmq.model.names import SystemQueue
from openmsmq.storage import records
from openmsmq.storage.records import (
    ASKS_DEAD_LETTER,
    ASKS_OFFSET,
    ASKS_RECEIVE_REPORT,
    FACTS_BYTES,
    EntryFacts,
    StagedSend,
)
from openmsmq.wire.headers import base, user
from openmsmq.wire.headers.message_properties import (
    NEGATIVE_RECEIVE,
    POSITIVE_ARRIVAL,
    POSITIVE_RECEIVE,
)
from openmsmq.wire.outline import Outline, outline

_UNUSUAL: Final = (
    user.ADMIN_QUEUE | user.JOURNAL_ON_FAILURE | user.JOURNAL_ON_SUCCESS | user.TRANSACTION
)
"""Flags of packets that cause more than their own arrival."""

_STAMP: Final = struct.Struct("<II")
_FLAGS: Final = 60
_KEY: Final = itemgetter(0)
_NEVER: Final = INFINITE_S.to_bytes(4, "little")


def are_plain(packets: list[bytes], found: list[Outline]) -> bool:
    """Whether packets cause nothing but their own arrival, and are all express or all not."""
    delivery = found[0].flags & user.RECOVERABLE if found else 0
    last = None
    for packet, outlined in zip(packets, found, strict=True):
        if outlined is last:
            # It has the same outline because it has the same headers.
            continue
        last = outlined
        flags = outlined.flags
        if flags & _UNUSUAL or flags & user.RECOVERABLE != delivery or packet[48:52] != _NEVER:
            return False
    return bool(found)


class Delivery:
    """Puts messages into queues and takes them out, within the current turn."""

    def __init__(
        self, table: QueueTable, counters: Counters, ledger: Ledger, deadlines: Deadlines
    ) -> None:
        self._table = table
        self._counters = counters
        self._ledger = ledger
        self._deadlines = deadlines
        self.hand_over: Callable[[LocalQueue, list[Row]], int] = lambda _queue, _rows: 0
        """Gives entries to readers that wait; says how many they took, from the front."""
        self.became_available: dict[LocalQueue, None] = {}
        """Queues with news for their readers since the manager last looked, in order."""

    # In.

    def stamp(self, packet: bytes, number: int, sent_time_s: int) -> bytes:
        """Write who sends it, when, and under which number, into an application's packet."""
        return b"".join(
            (
                packet[:16],
                self._counters.identifier,
                packet[32:52],
                _STAMP.pack(sent_time_s, number),
                packet[60:],
            )
        )

    def stage(self, queue: LocalQueue, packet: bytes, found: Outline) -> StagedSend:
        """Note what a stamped packet will cause once it is in the queue."""
        deadline_s = INFINITE_S
        if packet[48:52] != _NEVER:
            within_s, sent_s = _STAMP.unpack_from(packet, 48)
            deadline_s = min(sent_s + within_s, INFINITE_S - 1)
        asks = 0
        if found.flags & user.ADMIN_QUEUE and (
            packet[found.properties_offset] & (POSITIVE_RECEIVE | NEGATIVE_RECEIVE)
        ):
            asks |= ASKS_RECEIVE_REPORT
        if found.flags & user.JOURNAL_ON_FAILURE:
            asks |= ASKS_DEAD_LETTER
        return StagedSend(queue.id, packet, deadline_s, asks)

    def put(self, queue: LocalQueue, sends: list[StagedSend], now: Instant) -> None:
        """Put messages into a queue; readers see them when the turn is durable."""
        arrival = self._counters.take_arrivals(len(sends))
        transactional = queue.properties.transactional
        placed: list[tuple[int, int, int]] = []
        for send in sends:
            packet = send.packet
            level = 0 if transactional else packet[2] & base.PRIORITY
            lookup_id = (7 - level) << 56 | arrival
            arrival += 1
            facts = EntryFacts(now.unix_s, send.deadline_s, asks=send.asks)
            self._place(queue, lookup_id, facts, packet)
            placed.append((lookup_id, len(packet), send.deadline_s))
            if packet[_FLAGS + 1] & _JOURNAL_ON_SUCCESS and queue.role == "queue":
                self._copy(self._table.system(SystemQueue.JOURNAL), packet, now)
        self._announce(queue, placed)

    def put_alike(
        self, queue: LocalQueue, packets: list[bytes], numbers: list[int], now: Instant
    ) -> None:
        """Stamp packets and put them: what `stamp`, `stage` and `put` do, in one pass.

        Only for packets that `is_plain` says are plain, and that are all express or all not.
        """
        express = not packets[0][_FLAGS] & user.RECOVERABLE
        arrival = self._counters.take_arrivals(len(packets))
        identifier, sent_s, transactional = (
            self._counters.identifier,
            now.unix_s,
            queue.properties.transactional,
        )
        facts = records.encode_facts(EntryFacts(sent_s))
        entry_key, number, join, stamp = records.entry_key, queue.id, b"".join, _STAMP.pack
        placed: list[tuple[bytes, bytes]] = []
        for message_number, packet in zip(numbers, packets, strict=True):
            level = 0 if transactional else packet[2] & base.PRIORITY
            placed.append(
                (
                    entry_key(number, (7 - level) << 56 | arrival),
                    join(
                        (
                            facts,
                            packet[:16],
                            identifier,
                            packet[32:52],
                            stamp(sent_s, message_number),
                            packet[60:],
                        )
                    ),
                )
            )
            arrival += 1
        handed = self._handed_over(queue, placed)
        if handed and express:
            del placed[:handed]
            handed = 0
        self._ledger.put_many(placed, volatile=express)
        for key, _ in placed[:handed]:
            self._ledger.delete(key)
        rest = placed[handed:]
        if rest:
            self._expect(queue, rest, express=express)

    def _handed_over(self, queue: LocalQueue, placed: list[tuple[bytes, bytes]]) -> int:
        """Give new entries to readers that wait for them; says how many, from the front.

        They are stored and removed in one batch: sender and reader hear of it after one sync.
        """
        if not queue.waiting or queue.pending or queue.properties.journaling:
            return 0
        placed.sort(key=_KEY)
        return self.hand_over(queue, [(records.lookup_of(key), value) for key, value in placed])

    def _expect(
        self, queue: LocalQueue, placed: list[tuple[bytes, bytes]], *, express: bool
    ) -> None:
        """Count new entries in, and let readers have them when the turn is durable."""
        lookup_ids = [records.lookup_of(key) for key, _ in placed]
        size = sum(len(value) - FACTS_BYTES for _, value in placed)
        queue.count_many_in(lookup_ids, size, express=express)
        queue.pending += len(placed)
        if not express:
            self._ledger.touch(queue)

        def available() -> None:
            queue.pending -= len(placed)
            queue.became_available(min(lookup_ids))
            self.became_available[queue] = None

        def never_came(_: MsmqError) -> None:
            queue.pending -= len(placed)
            queue.count_many_out(lookup_ids, size, express=express)

        self._ledger.when_done(available, never_came)

    def report_arrivals(self, sends: list[StagedSend], now: Instant) -> None:
        """Tell administration queues of messages that reached their queue."""
        for send in sends:
            if (
                send.packet[_FLAGS + 1] & _ADMIN_QUEUE
                and send.packet[outline(send.packet).properties_offset] & POSITIVE_ARRIVAL
            ):
                self._report(send.packet, MessageClass.ACK_REACH_QUEUE, now)

    def require_room(self, queue: LocalQueue, size: int, quota_kb: int) -> None:
        """Refuse messages for which a queue or the queue manager has no room."""
        if not queue.room_for(size):
            raise InsufficientResources(
                f"{queue.name} holds {queue.size} bytes and may hold {queue.properties.quota_kb} KB"
            )
        if self._table.totals.bytes + size > quota_kb * 1024:
            raise InsufficientResources(f"this queue manager may hold {quota_kb} KB")

    # Out.

    def end(self, queue: LocalQueue, rows: list[Row], reason: MessageClass, now: Instant) -> None:
        """Take entries out for good that the caller holds; they stay held until that is durable."""
        ledger = self._ledger
        journal = self._journal_for(queue, reason)
        express: set[int] = set()
        delete, entry_key, number = ledger.delete, records.entry_key, queue.id
        for lookup_id, value in rows:
            delete(entry_key(number, lookup_id))
            if queue.count_out(lookup_id, len(value) - FACTS_BYTES):
                express.add(lookup_id)
            if value[4:8] != _NEVER:
                deadline_s = records.deadline_of(value)
                ledger.delete(records.deadline_key(deadline_s, queue.id, lookup_id))
            if journal is not None:
                self._copy(journal, value[FACTS_BYTES:], now)
            if value[ASKS_OFFSET]:
                self.tell(records.asks_of(value), value[FACTS_BYTES:], reason, now)
        if len(express) < len(rows):
            ledger.touch(queue)

        def still_there(_: MsmqError) -> None:
            for lookup_id, value in rows:
                queue.count_in(lookup_id, len(value) - FACTS_BYTES, express=lookup_id in express)
                self.give_back(queue, lookup_id, value)

        ledger.when_done(lambda: queue.let_go(rows), still_there)

    def move(self, source: LocalQueue, row: Row, target: LocalQueue, now: Instant) -> None:
        """Move an entry to another queue; its lookup identifier stays."""
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
        source.hold_all([row], BEING_REMOVED)
        self._ledger.delete(records.entry_key(source.id, lookup_id))
        if facts.deadline_s != INFINITE_S:
            self._ledger.delete(records.deadline_key(facts.deadline_s, source.id, lookup_id))
        express = source.count_out(lookup_id, len(packet))
        if not express:
            self._ledger.touch(source)

        def still_there(_: MsmqError) -> None:
            source.count_in(lookup_id, len(packet), express=express)
            self.give_back(source, lookup_id, value)

        self._ledger.when_done(lambda: source.let_go([row]), still_there)
        self._place(target, lookup_id, moved, packet)
        self._announce(target, [(lookup_id, len(packet), facts.deadline_s)])

    def give_back(self, queue: LocalQueue, lookup_id: int, value: bytes) -> None:
        """Let readers have an entry that was held."""
        queue.release(lookup_id)
        self.became_available[queue] = None
        if value[4:8] != _NEVER:
            self._deadlines.note(records.deadline_of(value), queue.id, lookup_id)

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
        express = not packet[_FLAGS] & user.RECOVERABLE
        key = records.entry_key(queue.id, lookup_id)
        entry = records.encode_entry(facts, packet)
        put = self._ledger.put_volatile if express else self._ledger.put
        put(key, entry)
        queue.count_in(lookup_id, len(packet), express=express)
        if not express:
            self._ledger.touch(queue)
        if facts.deadline_s != INFINITE_S:
            put(records.deadline_key(facts.deadline_s, queue.id, lookup_id), b"")

    def _announce(self, queue: LocalQueue, placed: list[tuple[int, int, int]]) -> None:
        """Let readers and the clock know of entries (lookup id, size, deadline) once they count."""

        queue.pending += len(placed)

        def available() -> None:
            queue.pending -= len(placed)
            for lookup_id, _, deadline_s in placed:
                queue.became_available(lookup_id)
                if deadline_s != INFINITE_S:
                    self._deadlines.note(deadline_s, queue.id, lookup_id)
            self.became_available[queue] = None

        def never_came(_: MsmqError) -> None:
            queue.pending -= len(placed)
            for lookup_id, size, _deadline_s in placed:
                queue.count_out(lookup_id, size)

        self._ledger.when_done(available, never_came)

    def _journal_for(self, queue: LocalQueue, reason: MessageClass) -> LocalQueue | None:
        journal = queue.journal
        if reason is not MessageClass.ACK_RECEIVE or not queue.properties.journaling:
            return None
        return journal if journal is not None and journal in self._table else None

    def _copy(self, queue: LocalQueue, packet: bytes, now: Instant) -> None:
        """Keep a copy in a journal or dead-letter queue; without room there is none."""
        if not queue.room_for(len(packet)):
            return
        level = 0 if queue.properties.transactional else packet[2] & base.PRIORITY
        lookup_id = (7 - level) << 56 | self._counters.take_arrivals(1)
        self._place(queue, lookup_id, EntryFacts(now.unix_s), packet)
        self._announce(queue, [(lookup_id, len(packet), INFINITE_S)])

    def tell(self, asks: int, packet: bytes, reason: MessageClass, now: Instant) -> None:
        """Do what a message asked for at its end: a dead letter, an acknowledgment."""
        if asks & ASKS_DEAD_LETTER and is_negative(reason):
            transactional = packet[_FLAGS + 2] & _TRANSACTION
            name = (
                SystemQueue.TRANSACTIONAL_DEAD_LETTER if transactional else SystemQueue.DEAD_LETTER
            )
            self._copy(self._table.system(name), _with_class(packet, reason), now)
        if asks & ASKS_RECEIVE_REPORT:
            self._report(packet, reason, now)

    def _report(self, packet: bytes, reason: MessageClass, now: Instant) -> None:
        report = report_for(packet, reason, self._counters.identifier)
        if report is None:
            return
        try:
            queue = self._table.find_format_name(report.queue)
        except MsmqError:
            return
        if queue.role != "queue" or queue.properties.transactional:
            return
        if not queue.room_for(len(report.packet)):
            return
        try:
            number = self._counters.take_messages(1)[0]
        except InsufficientResources:
            return
        stamped = self.stamp(report.packet, number, now.unix_s)
        self.put(queue, [self.stage(queue, stamped, outline(stamped))], now)


_ADMIN_QUEUE: Final = user.ADMIN_QUEUE >> 8
_JOURNAL_ON_SUCCESS: Final = user.JOURNAL_ON_SUCCESS >> 8
_TRANSACTION: Final = user.TRANSACTION >> 16


def _with_class(packet: bytes, reason: MessageClass) -> bytes:
    """Give a message that says itself why it is in a dead-letter queue."""
    offset = outline(packet).properties_offset + 2
    return b"".join((packet[:offset], reason.to_bytes(2, "little"), packet[offset + 2 :]))
