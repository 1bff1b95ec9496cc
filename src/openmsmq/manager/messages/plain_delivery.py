"""The fast way into a queue, for messages that cause nothing but their own arrival.

Most messages are such. They are stamped, placed and counted in a few passes over all of them, which
costs a fraction of what `Delivery` does for each.
"""

from __future__ import annotations

from typing import Final, Protocol

from openmsmq.manager.messages import lifetimes
from openmsmq.manager.messages.effects import Due
from openmsmq.manager.messages.placing import Placing
from openmsmq.manager.queues.queue import LocalQueue, Row
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.limits import INFINITE_S
from openmsmq.storage import records
from openmsmq.storage.records import EntryFacts
from openmsmq.wire import message_bytes
from openmsmq.wire.headers import user
from openmsmq.wire.outline import Outline

_UNUSUAL: Final = (
    user.ADMIN_QUEUE | user.JOURNAL_ON_FAILURE | user.JOURNAL_ON_SUCCESS | user.TRANSACTION
)
"""Flags of packets that cause more than their own arrival."""


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
        if (
            flags & _UNUSUAL
            or flags & user.RECOVERABLE != delivery
            or message_bytes.time_to_be_received_s(packet) != INFINITE_S
        ):
            return False
    return bool(found)


class WaitingReads(Protocol):
    """Serves reads that wait for a message."""

    def hand_over(self, queue: LocalQueue, rows: list[Row], now: Instant) -> int:
        """Hand entries to readers that wait; return how many they took, from the front."""
        ...


class PlainDelivery:
    """Puts plain messages into queues, within the current turn."""

    def __init__(self, base: Foundation, placing: Placing, reads: WaitingReads) -> None:
        self._counters = base.counters
        self._ledger = base.ledger
        self._placing = placing
        self._reads = reads

    def put_alike(
        self, queue: LocalQueue, packets: list[bytes], numbers: list[int], now: Instant
    ) -> None:
        """Stamp packets and put them: what `stamp`, `stage` and `put` do, in one pass.

        Only for packets that `are_plain` says are plain.
        """
        express = not message_bytes.is_recoverable(packets[0])
        arrival = self._counters.take_arrivals(len(packets))
        identifier, sent_s, transactional = (
            self._counters.identifier,
            now.unix_s,
            queue.properties.transactional,
        )
        outgoing = queue.can.lead_away
        facts, within_s, is_soon, deadline_s = b"", INFINITE_S, False, INFINITE_S
        near: list[Due] = []
        rows: list[Row] = []
        for message_number, packet in zip(numbers, packets, strict=True):
            level = 0 if transactional else message_bytes.priority(packet)
            lookup_id = (7 - level) << 56 | arrival
            arrival += 1
            if outgoing and message_bytes.time_to_reach_queue_s(packet) != within_s:
                within_s, facts = message_bytes.time_to_reach_queue_s(packet), b""
            if not facts:
                deadline_s = lifetimes.deadline_s(sent_s, within_s)
                is_soon = lifetimes.is_near(deadline_s, sent_s)
                facts = records.encode_facts(EntryFacts(sent_s, deadline_s))
            if is_soon:
                near.append((lookup_id, deadline_s))
            stamped = message_bytes.stamped(packet, identifier, sent_s, message_number, facts)
            rows.append((lookup_id, stamped))
        self._put_ready(queue, rows, near, now, express=express)

    def put_received(self, queue: LocalQueue, packets: list[bytes], now: Instant) -> None:
        """Put packets of other queue managers that cause nothing but their own arrival.

        They are all express or all not, and no lifetime of them ends.
        """
        express = not message_bytes.is_recoverable(packets[0])
        first = self._counters.take_arrivals(len(packets))
        facts = records.encode_facts(EntryFacts(now.unix_s))
        ordered = queue.properties.transactional
        rows = [
            ((7 if ordered else 7 - message_bytes.priority(packet)) << 56 | arrival, facts + packet)
            for arrival, packet in enumerate(packets, first)
        ]
        self._put_ready(queue, rows, [], now, express=express)

    def _put_ready(
        self, queue: LocalQueue, rows: list[Row], due: list[Due], now: Instant, *, express: bool
    ) -> None:
        """Keep new entries of one kind, or give them to readers that wait."""
        handed = 0
        if queue.waiting and not queue.entries.arriving and not queue.properties.journaling:
            rows.sort()
            # They are stored and removed in one batch: sender and reader hear of it after one sync.
            handed = self._reads.hand_over(queue, rows, now)
        if handed:
            if not express:
                keys = [records.entry_key(queue.id, lookup_id) for lookup_id, _ in rows[:handed]]
                values = [value for _, value in rows[:handed]]
                self._ledger.put_many(list(zip(keys, values, strict=True)), volatile=False)
                self._ledger.take_out(keys, volatile=False)
            rows = rows[handed:]
            kept = {lookup_id for lookup_id, _ in rows}
            due = [each for each in due if each[0] in kept]
        if rows:
            self._placing.place_alike(queue, rows, due, express=express)
