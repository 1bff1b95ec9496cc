"""Transactions: sends and receives of several queues that take effect together. [MQDMPR 3.1.4]"""

from __future__ import annotations

from openmsmq.manager.messages.delivery import Delivery
from openmsmq.manager.messages.placing import Placing, are_plain_sends
from openmsmq.manager.queues.queue import LocalQueue, Row
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.transactions.effects import HoldsReleased
from openmsmq.manager.transactions.states import TransactionEvent, TransactionState, after
from openmsmq.manager.turn.ledger import Ledger
from openmsmq.model.clock import Instant
from openmsmq.model.identity import Guid
from openmsmq.model.message import MessageClass
from openmsmq.model.transaction import Xid
from openmsmq.storage.records import (
    AsideRun,
    HeldEntry,
    StagedSend,
    TransactionRecord,
    transaction_key,
)
from openmsmq.wire import message_bytes
from openmsmq.wire.headers.transaction import transaction_mark, transaction_marks


class Transaction:
    """One transaction of an application, or one that outlived it because it is prepared."""

    __slots__ = (
        "aside",
        "batch",
        "bytes",
        "connection",
        "maker",
        "marked",
        "moves",
        "number",
        "owner",
        "prepared_time_s",
        "query",
        "receives",
        "sends",
        "state",
        "unit_of_work",
        "wire_number",
        "xid",
    )

    def __init__(
        self,
        number: int,
        wire_number: int,
        unit_of_work: Guid,
        connection: int | None,
        owner: str = "",
    ) -> None:
        self.number = number
        """Names it inside this run of the queue manager; holders of entries are such numbers."""
        self.wire_number = wire_number
        self.unit_of_work = unit_of_work
        self.connection = connection
        self.maker = connection
        """The connection on which its number means anything, also once it is prepared."""
        self.owner = owner
        """Who may end it from elsewhere by its lasting name, as `Caller.owner_name`."""
        self.state = TransactionState.ACTIVE
        self.sends: list[StagedSend] = []
        self.aside: list[AsideRun] = []
        """What it sends instead, once that is set aside in the store."""
        self.marked: list[bytes] = []
        """The packets that are on their way there."""
        self.receives: list[tuple[LocalQueue, int]] = []
        self.moves: list[tuple[LocalQueue, int, LocalQueue]] = []
        self.bytes = 0
        self.prepared_time_s = 0
        self.query = ""
        """The query of whose batch it is a part; empty for a transaction of its own."""
        self.batch = 0
        self.xid: Xid | None = None
        """What its coordinator calls it, if it has one that says so."""

    def happen(self, event: TransactionEvent) -> None:
        """Go on to where an event leads; raise `Defect` if it must not happen now."""
        self.state = after(self.number, self.state, event)

    def will_send(self, sends: list[StagedSend], size: int) -> None:
        """Take in messages that it sends, and how many bytes these are."""
        self.sends += sends
        self.bytes += size

    @property
    def mark(self) -> int:
        """What all messages that it sends have in common, and have since they were sent."""
        return transaction_mark(self.wire_number)

    @property
    def message_count(self) -> int:
        """How many messages it sends, receives and moves."""
        return self.send_count + len(self.receives) + len(self.moves)

    @property
    def send_count(self) -> int:
        """How many messages it sends."""
        return sum(run.count for run in self.aside) if self.aside else len(self.sends)

    @property
    def key(self) -> bytes:
        """Where the store has it while it is prepared, and under what its messages are aside."""
        return transaction_key(self.unit_of_work)

    def keep_aside(self) -> None:
        """Keep nothing here of what the store has set aside."""
        self.sends = []
        self.marked = []

    def prepare(self, time_s: int) -> None:
        """Be prepared, since a time."""
        self.happen(TransactionEvent.PREPARE)
        self.prepared_time_s = time_s

    def unprepare(self) -> None:
        """Be part of no batch, and have nothing aside: the disk refused it."""
        self.prepared_time_s = 0
        self.join("", 0)
        self.xid = None
        self.aside = []
        self.marked = []

    def join(self, query: str, batch: int) -> None:
        """Be a part of a query's batch; without a query, of none."""
        self.query, self.batch = query, batch

    def be_called(self, xid: Xid) -> None:
        """Have a name that its coordinator knows it by."""
        self.xid = xid

    def change_owner(self, owner: str) -> None:
        """Let somebody else end it from elsewhere."""
        self.owner = owner

    def leave_connection(self) -> None:
        """Be nobody's who would take it along when he goes."""
        self.connection = None

    def sends_to(self, queue: int) -> bool:
        """Whether it will put something into a queue."""
        return any(run.queue == queue for run in self.aside) or any(
            send.queue == queue for send in self.sends
        )

    def record(self, now: Instant) -> TransactionRecord:
        """What a prepared transaction needs to survive."""
        held = [HeldEntry(queue.id, lookup_id) for queue, lookup_id in self.receives]
        held += [HeldEntry(queue.id, found, target.id) for queue, found, target in self.moves]
        sends = [] if self.aside else self.sends
        return TransactionRecord(
            sends, held, now.unix_s, self.query, self.batch, self.owner, self.aside, self.xid
        )


class TransactionWork:
    """Carries out the end of transactions, within the current turn."""

    def __init__(
        self, table: QueueTable, placing: Placing, delivery: Delivery, ledger: Ledger
    ) -> None:
        self._table = table
        self._delivery = delivery
        self._placing = placing
        self._ledger = ledger

    def commit(self, work: Transaction, now: Instant) -> None:
        """Let everything take effect, all with one batch."""
        first = 0
        for run in work.aside:
            queue = self._table.by_id(run.queue)
            # Nobody wants to hear of them if their queue is gone: they are plain.
            if queue is not None:
                self._placing.take_aside(queue, work.key, first, run, now)
            first += run.count
        for number, (sends, marks) in ({} if work.aside else _sends_by_queue(work)).items():
            queue = self._table.by_id(number)
            if queue is not None:
                self._put(queue, sends, marks, now)
            else:
                for send in sends:
                    self._delivery.tell(
                        send.asks, send.packet, MessageClass.NACK_QUEUE_DELETED, now
                    )
        for queue, rows in self._rows_by_queue(work).items():
            self._delivery.end(queue, rows, MessageClass.ACK_RECEIVE, now)
        for queue, lookup_id, target in work.moves:
            self._move(work, queue, lookup_id, target, now)

    def _put(
        self, queue: LocalQueue, sends: list[StagedSend], marks: list[int], now: Instant
    ) -> None:
        """Put messages into a queue, in the fast way if they are like most."""
        if not queue.can.lead_away and are_plain_sends(sends):
            self._placing.put_staged(queue, sends, marks, now)
        else:
            self._delivery.put(queue, sends, now, marks)

    def set_aside(self, work: Transaction) -> None:
        """Let the store have the messages of a transaction, so that its commit only names them.

        They are as their queues will have them, but for what is known of their arrival. If what
        becomes of any of them is decided when the transaction commits, nothing is set aside.
        """
        if not are_plain_sends(work.sends):
            return
        values: list[bytes] = []
        runs: list[AsideRun] = []
        marked, own = message_bytes.marked, work.mark
        for number, (sends, marks) in _sends_by_queue(work).items():
            queue = self._table.by_id(number)
            if queue is None or queue.can.lead_away:
                return
            # All have the mark of their transaction; the first and the last one get another.
            packets = [
                send.packet if mark == own else marked(send.packet, mark)
                for send, mark in zip(sends, marks, strict=True)
            ]
            values += packets
            runs.append(AsideRun(number, len(sends), sum([len(packet) for packet in packets])))
        work.aside = runs
        work.marked = values

    def abort(self, work: Transaction, now: Instant) -> None:
        """Give everything back; what was received counts one more abort.

        What was purged in the meantime does not come back (C-126).
        """
        doomed = {
            (queue, lookup_id): reason
            for queue, lookup_id in _held(work)
            if (reason := queue.entries.doom_of(lookup_id)) is not None
        }
        prepared = work.state is TransactionState.ABORTING_PREPARED
        if not (prepared or work.receives or doomed):
            self.release(work)
            return
        self._ledger.add_waiting(HoldsReleased(self, work, now, is_lasting=prepared))
        self._count_aborts(work)
        for (queue, lookup_id), reason in doomed.items():
            value = _mine(work, queue, lookup_id)
            if value is not None:
                self._delivery.end(queue, [(lookup_id, value)], reason, now)

    def release(self, work: Transaction) -> None:
        """Give back what a transaction holds, purged or not."""
        for queue, lookup_id in _held(work):
            self._give_back(work, queue, lookup_id)

    def release_unpurged(self, work: Transaction, now: Instant) -> None:
        """Give back what an aborted transaction holds; what was purged by now goes."""
        for queue, lookup_id in _held(work):
            reason = queue.entries.doom_of(lookup_id)
            if reason is None:
                self._give_back(work, queue, lookup_id)
            elif (value := _mine(work, queue, lookup_id)) is not None:
                # Nobody has it any more: if the disk refuses, it is there for all.
                queue.entries.free([lookup_id])
                self._delivery.end(queue, [(lookup_id, value)], reason, now)

    def restore(self, work: Transaction, record: TransactionRecord) -> None:
        """Take up a prepared transaction again after a restart, with all its locks."""
        work.prepare(record.prepared_time_s)
        work.sends = record.sends
        work.aside = record.aside
        work.bytes = sum(len(send.packet) for send in record.sends)
        work.bytes += sum(run.size for run in record.aside)
        work.join(record.query, record.batch)
        work.xid = record.xid
        for held in record.held:
            queue = self._table.by_id(held.queue)
            if queue is None:
                continue
            if held.lookup_id in queue.entries.held:
                # No store should say so. To use it all the same costs nobody a message; to refuse
                # it would keep all the others from their readers.
                continue
            if queue.entry(held.lookup_id) is not None:
                queue.entries.hold([held.lookup_id], work.number)
            target = self._table.by_id(held.target)
            if target is None:
                work.receives.append((queue, held.lookup_id))
            else:
                work.moves.append((queue, held.lookup_id, target))

    def _move(
        self,
        work: Transaction,
        queue: LocalQueue,
        lookup_id: int,
        target: LocalQueue,
        now: Instant,
    ) -> None:
        value = _mine(work, queue, lookup_id)
        if value is None:
            return
        row = (lookup_id, value)
        if target in self._table:
            self._delivery.move(queue, row, target, now)
        else:
            self._delivery.end(queue, [row], MessageClass.NACK_QUEUE_DELETED, now)

    def _count_aborts(self, work: Transaction) -> None:
        for queue, rows in self._rows_by_queue(work).items():
            for row in rows:
                if queue.entries.doom_of(row[0]) is None:
                    self._delivery.count_abort(queue, row)

    def _give_back(self, work: Transaction, queue: LocalQueue, lookup_id: int) -> None:
        value = _mine(work, queue, lookup_id)
        if value is not None:
            queue.entries.pardon(lookup_id)
            self._delivery.give_back(queue, lookup_id, value)

    def _rows_by_queue(self, work: Transaction) -> dict[LocalQueue, list[Row]]:
        found: dict[LocalQueue, list[Row]] = {}
        number = work.number
        for queue, lookup_id in work.receives:
            # As `_mine` says; there may be very many.
            if queue.entries.held.get(lookup_id) != number:
                continue
            value = queue.entry(lookup_id)
            if value is not None:
                found.setdefault(queue, []).append((lookup_id, value))
        return found


def _sends_by_queue(work: Transaction) -> dict[int, tuple[list[StagedSend], list[int]]]:
    """Return what goes to each queue, with its marks."""
    marks = transaction_marks(len(work.sends), work.wire_number)
    found: dict[int, tuple[list[StagedSend], list[int]]] = {}
    if len({send.queue for send in work.sends}) == 1:
        return {work.sends[0].queue: (work.sends, marks)}
    for send, mark in zip(work.sends, marks, strict=True):
        sends, own_marks = found.setdefault(send.queue, ([], []))
        sends.append(send)
        own_marks.append(mark)
    return found


def _held(work: Transaction) -> list[tuple[LocalQueue, int]]:
    return work.receives + [(queue, lookup_id) for queue, lookup_id, _ in work.moves]


def _mine(work: Transaction, queue: LocalQueue, lookup_id: int) -> bytes | None:
    """Return an entry that a transaction holds.

    None if it holds it no more: an express message is gone after a restart, and one of an outgoing
    queue when its destination has it after all.
    """
    if not queue.entries.is_held_by(lookup_id, work.number):
        return None
    return queue.entry(lookup_id)
