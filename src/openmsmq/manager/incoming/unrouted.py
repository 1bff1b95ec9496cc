"""Messages of others for queue managers that the copy of the directory does not have yet.

Recoverable ones wait for a route, as our own do. [MQQB 3.1.5.8.5, 3.1.5.2.1] The directory is asked
at once. If it does not know the queue manager either, and still does not after a while in which
other copies and servers of the directory come up to date, the messages are refused. Anybody may
name queue managers without end, so it is bounded what waits, and strangers have a small share of
that.

What a restart finds waits on without such an end: its queue manager may have been known before.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from openmsmq.directory.limits import (
    UNROUTED_MAX_BYTES,
    UNROUTED_MAX_COUNT,
    UNROUTED_PATIENCE_S,
    UNROUTED_STRANGERS_FACTOR,
)
from openmsmq.manager.directory.known_ways import KnownWays
from openmsmq.manager.incoming.order_acks import FinalAcks
from openmsmq.manager.messages.delivery import Delivery
from openmsmq.manager.messages.housekeeping import SLICE_ROWS, Housekeeping
from openmsmq.manager.messages.reporting import Reachable
from openmsmq.manager.notices import NoticeKind
from openmsmq.manager.queues.queue import LocalQueue, Row
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.manager.turn.timers import earliest
from openmsmq.model.clock import Instant
from openmsmq.model.errors import MsmqError
from openmsmq.model.identity import Guid
from openmsmq.model.message import MessageClass
from openmsmq.model.names import FormatName
from openmsmq.storage import records
from openmsmq.storage.records import ASKS_DEAD_LETTER, ASKS_RECEIVE_REPORT, FACTS_BYTES
from openmsmq.wire import message_bytes

_REASON: Final = MessageClass.NACK_BAD_DESTINATION_QUEUE


class _Awaited:
    """A queue to which no way is known, and what the directory still has to say about it."""

    __slots__ = (
        "arrival_limit",
        "due_ms",
        "manager",
        "name",
        "question",
        "queue",
        "strangers",
        "strangers_bytes",
    )

    def __init__(self, name: FormatName, manager: Guid, due_ms: int) -> None:
        self.name = name
        self.manager = manager
        self.queue: LocalQueue | None = None
        """Where its messages wait; None before the first of them does."""
        self.due_ms: int | None = due_ms
        """When the last question is to be put; None once it is."""
        self.question = 0
        self.arrival_limit = 0
        """The last message that had arrived when the last question was put."""
        self.strangers: set[bytes] = set()
        """The identifiers of messages that came from strangers."""
        self.strangers_bytes = 0


class Unrouted:
    """Says which messages without a way may wait, and ends them when there will be none."""

    def __init__(
        self,
        base: Foundation,
        table: QueueTable,
        delivery: Delivery,
        housekeeping: Housekeeping,
        finals: FinalAcks,
        ways: KnownWays,
        reachable: Reachable,
    ) -> None:
        self._counters = base.counters
        self._notices = base.notices
        self._reports = base.config.transfer.permit_insecure_nacks
        self._table = table
        self._delivery = delivery
        self._housekeeping = housekeeping
        self._finals = finals
        self._ways = ways
        self._reachable = reachable
        self._awaited: dict[FormatName, _Awaited] = {}

    # Arrivals.

    def has_way(self, name: FormatName, manager: Guid, now: Instant) -> bool:
        """Whether it is known how to reach a queue of a queue manager."""
        return self._reachable.has_way(name, manager, now)

    def lets_wait(
        self, name: FormatName, manager: Guid, packet: bytes, address: str, now: Instant
    ) -> bool:
        """Whether a message without a way may wait in its outgoing queue; it is refused if not."""
        if not self._ways.may_learn:
            return False
        is_peer = self._ways.is_peer(address, Guid(message_bytes.source(packet)))
        if not self._has_room(name, len(packet), is_peer=is_peer):
            return False
        self._ways.doubt()
        if not message_bytes.is_recoverable(packet):
            return False
        awaited = self._awaited.get(name)
        if awaited is None:
            due_ms = now.ticks_ms + UNROUTED_PATIENCE_S * 1000
            awaited = self._awaited[name] = _Awaited(name, manager, due_ms)
        if not is_peer:
            awaited.strangers.add(message_bytes.message_id(packet))
            awaited.strangers_bytes += len(packet)
        return True

    def _has_room(self, name: FormatName, size: int, *, is_peer: bool) -> bool:
        found = self._awaited
        share = 1
        names: Collection[FormatName] = found
        if is_peer:
            queues = map(self._queue_of, found.values())
            held = sum(queue.size for queue in queues if queue is not None)
        else:
            names = {each.name for each in found.values() if each.strangers}
            held = sum(each.strangers_bytes for each in found.values())
            share = UNROUTED_STRANGERS_FACTOR
        return held + size <= UNROUTED_MAX_BYTES // share and (
            name in names or len(names) < UNROUTED_MAX_COUNT // share
        )

    def _queue_of(self, awaited: _Awaited) -> LocalQueue | None:
        if awaited.queue is None or awaited.queue not in self._table:
            try:
                awaited.queue = self._table.outgoing(awaited.name, create=False)
            except MsmqError:
                awaited.queue = None
        return awaited.queue

    def refused(self, packet: bytes, address: str, now: Instant) -> None:
        """Count a message that was refused on arrival; one of a peer may leave a dead letter.

        Its source has been told that we have it.
        """
        self._note(Guid(message_bytes.destination_manager(packet)))
        if (
            message_bytes.journals_failure(packet)
            and not message_bytes.is_transactional(packet)
            and self._ways.is_peer(address, Guid(message_bytes.source(packet)))
            and self._table.totals.room_for(len(packet))
        ):
            self._delivery.keep_dead_letter(packet, _REASON, now)

    # What the directory says.

    def heard(self, now: Instant) -> None:
        """The directory has answered."""
        for awaited in list(self._awaited.values()):
            queue = self._waiting(awaited, now)
            if queue is None:
                del self._awaited[awaited.name]
            elif awaited.due_ms is None and self._ways.is_answered(awaited.question):
                self._refuse(queue, awaited, now)

    def _waiting(self, awaited: _Awaited, now: Instant) -> LocalQueue | None:
        """Return the queue in which messages wait for a way; None if none do any more."""
        queue = self._queue_of(awaited)
        if (
            queue is None
            or not queue.count
            or self._reachable.has_way(awaited.name, awaited.manager, now)
        ):
            return None
        return queue

    def _refuse(self, queue: LocalQueue, awaited: _Awaited, now: Instant) -> None:
        """End what had arrived before the last question, a slice at a time."""
        own = self._counters.identifier
        theirs = (row for row in queue.rows(-1) if message_bytes.source(row[1], FACTS_BYTES) != own)
        rows: list[Row] = []
        has_newer = False
        for row in theirs:
            if row[0] & records.ARRIVAL_MASK > awaited.arrival_limit:
                has_newer = True
            elif row[0] not in queue.entries.held:
                rows.append(row)
                if len(rows) == SLICE_ROWS:
                    break
        strangers = awaited.strangers
        if rows:
            self._housekeeping.surely(
                queue, rows, lambda moment: self._end(queue, rows, strangers, moment), now
            )
        if len(rows) == SLICE_ROWS:
            return
        if has_newer:
            # What has come since then has its own time.
            awaited.due_ms = now.ticks_ms + UNROUTED_PATIENCE_S * 1000
        else:
            del self._awaited[awaited.name]

    def _end(self, queue: LocalQueue, rows: list[Row], strangers: set[bytes], now: Instant) -> None:
        self._delivery.end(queue, rows, _REASON, now, told=False)
        for _, value in rows:
            packet, asks = value[FACTS_BYTES:], records.asks_of(value)
            self._note(Guid(message_bytes.destination_manager(packet)))
            if not self._reports:
                # It tells a stranger what is not there (C-88).
                asks &= ~ASKS_RECEIVE_REPORT
            if message_bytes.message_id(packet) in strangers:
                # They would have a way to fill the disk.
                asks &= ~ASKS_DEAD_LETTER
            self._delivery.tell(asks, packet, _REASON, now)
            if message_bytes.is_transactional(packet):
                self._finals.send(packet, _REASON, now)

    def _note(self, manager: Guid) -> None:
        self._notices.note(NoticeKind.MESSAGE_DROPPED, "not-passed-on", manager=str(manager))

    # Time.

    def wake(self, now: Instant) -> None:
        """Time has passed: the last question is put, or the next slice ends."""
        for awaited in list(self._awaited.values()):
            if awaited.due_ms is not None and awaited.due_ms > now.ticks_ms:
                continue
            queue = self._waiting(awaited, now)
            if queue is None:
                del self._awaited[awaited.name]
            elif awaited.due_ms is not None:
                awaited.due_ms = None
                awaited.arrival_limit = self._counters.last_arrival
                awaited.question = self._ways.doubt()
            elif self._ways.is_answered(awaited.question):
                self._refuse(queue, awaited, now)

    def next_wake_ms(self, now: Instant) -> int | None:
        """When `wake` has something to do."""
        if not self._awaited:
            return None
        return earliest(
            *(
                now.ticks_ms if self._ways.is_answered(awaited.question) else None
                for awaited in self._awaited.values()
                if awaited.due_ms is None
            ),
            *(awaited.due_ms for awaited in self._awaited.values()),
        )
