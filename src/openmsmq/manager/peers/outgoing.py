"""Outgoing queues: messages for other computers, until those have them. [MQDMPR 3.1.1.3]

The messages themselves lie in the store like those of any queue. What is kept here is how far each
queue has come: its place on a link, the numbering of its transactional messages, and which entries
are on their way. An entry on its way is held; it is free again when its session ends, and gone when
the neighbour has it (transactional: when the destination has it).
"""

from __future__ import annotations

from itertools import repeat

from openmsmq.manager.messages.news import News
from openmsmq.manager.peers.claims import Claims
from openmsmq.manager.peers.effects import EntriesGivenUp, MessagesNumbered, QueuePaused
from openmsmq.manager.queues.queue import LocalQueue, Row
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.identity import NIL_GUID, Guid, SequenceId
from openmsmq.model.message import MessageClass
from openmsmq.model.names import (
    DirectFormatName,
    FormatName,
    PublicFormatName,
    parse_format_name,
)
from openmsmq.protocol.outgoing_sequence import OutgoingSequence
from openmsmq.storage import records
from openmsmq.storage.records import ASKS_FINAL_ACK, FACTS_BYTES, OutgoingRecord, StagedSend
from openmsmq.wire import message_bytes
from openmsmq.wire.srmp.limits import RECEIPTS_TOKEN_BYTES


class OutgoingQueue:
    """How far the messages for one queue of another computer have come."""

    __slots__ = (
        "in_flight",
        "is_http",
        "is_rerouted",
        "leaving_count",
        "name",
        "neighbour",
        "noted_session",
        "paused",
        "queue",
        "reached",
        "reached_at",
        "receipts_token",
        "sequence",
        "session",
    )

    def __init__(
        self, queue: LocalQueue, name: FormatName, sequence: OutgoingSequence, *, paused: bool
    ) -> None:
        self.queue = queue
        self.name = name
        self.sequence = sequence
        self.paused = paused
        self.is_http = isinstance(name, DirectFormatName) and name.protocol.is_http
        """Whether its messages leave over HTTP, and not through sessions."""
        self.receipts_token = b""
        """The word by which receipts of its streams are known, if they come over HTTP."""
        self.is_rerouted = False
        """Whether the directory has changed, so that its session may lead the wrong way."""
        self.neighbour = ""
        """The key of the neighbour it was last seen behind."""
        self.reached = NIL_GUID
        """Who was at the other end of its last session, by his own word."""
        self.reached_at = ""
        """Where that was, if nobody but himself vouches for him."""
        self.session: int | None = None
        """The session its messages go through; kept while that is open, so that they stay in
        order."""
        self.noted_session: int | None = None
        """The session at whose other end `reached` was noted."""
        self.leaving_count = 0
        """Removals that wait for the disk. If it refuses one, the entries are there again; a
        transactional message behind them must not have arrived before them."""
        self.in_flight: set[int] = set()
        """Transactional entries that are sent and that no session has acknowledged yet."""

    def know_receipts_by(self, token: bytes) -> None:
        """Note the word by which receipts of its streams are known."""
        self.receipts_token = token

    def join(self, session: int) -> None:
        """Send through a session from now on."""
        self.session = session

    def leave(self) -> None:
        """Send through no session: it has ended, or leads the wrong way."""
        self.session = None

    def note_session(self, session: int) -> None:
        """Note at the other end of which session `reached` was seen."""
        self.noted_session = session

    def reach(self, reached: Guid, place: str) -> None:
        """Note who is at the other end, and where if nobody but himself vouches for him."""
        self.reached, self.reached_at = reached, place

    def pause(self, *, paused: bool) -> None:
        """Let its messages wait, or go on."""
        self.paused = paused

    def doubt_way(self) -> None:
        """Look at its session again before more is sent: the directory has changed."""
        self.is_rerouted = self.session is not None

    def trust_way(self) -> None:
        """Look at its session no more: that was done."""
        self.is_rerouted = False

    def see_behind(self, neighbour: str) -> None:
        """Note the key of the neighbour it is behind; empty for none."""
        self.neighbour = neighbour

    def count_leaving(self, change: int) -> None:
        """Count removals that wait for the disk."""
        self.leaving_count += change

    @property
    def awaiting(self) -> LocalQueue | None:
        """Messages that arrived and whose final acknowledgment is awaited."""
        return self.queue.subqueues.get("")

    @property
    def has_open_ends(self) -> bool:
        """Whether the end of something that has arrived is open: its stream goes on (S-30).

        [MQSRM 3.1.7.6]
        """
        awaiting = self.awaiting
        return self.is_http and awaiting is not None and awaiting.count > 0

    @property
    def owner_by_messages(self) -> Guid | None:
        """The queue manager to which the messages themselves are addressed."""
        first = next(self.queue.rows(-1), None)
        if first is None:
            return None
        owner = Guid(message_bytes.destination_manager(first[1], FACTS_BYTES))
        return None if owner == NIL_GUID else owner

    @property
    def has_own_words(self) -> bool:
        """Whether an application of this computer sends there, now or with places in a sequence.

        Reports and acknowledgments go where others have asked for them to go. They may stand
        before the messages of applications, and change nothing about those.
        """
        if self.sequence.id is not None:
            return True
        first = next(self.queue.rows(-1), None)
        if first is None:
            return False
        return message_bytes.message_class(first[1][FACTS_BYTES:]) == MessageClass.NORMAL

    @property
    def has_work(self) -> bool:
        """Whether something waits to be sent, beyond what is under way."""
        return not self.paused and bool(self.queue.front(1, 1))

    @property
    def record(self) -> OutgoingRecord:
        """What is to be known of it after a restart."""
        sequence = self.sequence
        return OutgoingRecord(
            0 if sequence.id is None else int(sequence.id),
            sequence.last_number,
            self.paused,
            self.reached,
            self.reached_at,
            self.receipts_token,
        )

    @property
    def is_unneeded(self) -> bool:
        """Whether nothing would be lost with it."""
        awaiting = self.awaiting
        return (
            not self.queue.count
            and not self.queue.open_count
            and not self.paused
            and self.session is None
            and (awaiting is None or not awaiting.count)
        )


class OutgoingQueues:
    """All outgoing queues: numbers their messages, and knows how far they have come."""

    def __init__(self, base: Foundation, table: QueueTable, claims: Claims, news: News) -> None:
        self._config = base.config.transfer
        self._counters = base.counters
        self._ledger = base.ledger
        self._reader = base.reader
        self._table = table
        self._claims = claims
        self._news = news
        self._rng = base.rng
        self._by_queue: dict[LocalQueue, OutgoingQueue] = {}
        self._by_sequence: dict[int, OutgoingQueue] = {}
        for queue in list(table):
            if queue.can.lead_away:
                self.of(queue)
                news.ready[queue] = None

    def __len__(self) -> int:
        return len(self._by_queue)

    @property
    def has_guests(self) -> bool:
        """Whether there are outgoing queues that no application has asked for."""
        return self._table.guests.count > 0

    def all(self) -> list[OutgoingQueue]:
        """Return all outgoing queues."""
        return list(self._by_queue.values())

    def owner_of(self, name: PublicFormatName) -> Guid:
        """Return the queue manager of a public queue; nil if it is not known."""
        return self._table.published.owner_of(name)

    def knows(self, outgoing: OutgoingQueue) -> bool:
        """Whether an outgoing queue was not forgotten meanwhile."""
        return self._by_queue.get(outgoing.queue) is outgoing

    def present(self, queue: LocalQueue) -> OutgoingQueue | None:
        """Find what is known of an outgoing queue; None if it is not there any more."""
        return self.of(queue) if queue in self._table else None

    def of(self, queue: LocalQueue) -> OutgoingQueue:
        """Find what is known of an outgoing queue."""
        outgoing = self._by_queue.get(queue)
        if outgoing is None:
            value = self._reader.get(records.outgoing_key(queue.id))
            record = (
                OutgoingRecord()
                if value is None
                else records.decode_record(value, records.OutgoingRecord)
            )
            identifier = SequenceId.from_int(record.sequence) if record.sequence else None
            sequence = OutgoingSequence(self._config, identifier, record.last_number)
            name = parse_format_name(queue.name)
            outgoing = OutgoingQueue(queue, name, sequence, paused=record.paused)
            outgoing.reach(record.reached, record.reached_at)
            outgoing.know_receipts_by(record.receipts_token)
            if record.reached_at:
                self._claims.restore(record.reached, record.reached_at)
            self._by_queue[queue] = outgoing
            self.note_sequence(outgoing)
        return outgoing

    def drop(self, outgoing: OutgoingQueue) -> None:
        """Forget an outgoing queue that is not needed any more."""
        del self._by_queue[outgoing.queue]
        if outgoing.sequence.id is not None:
            self._by_sequence.pop(int(outgoing.sequence.id), None)
        if outgoing.reached_at:
            self._claims.end(outgoing.reached)
        if outgoing.queue in self._table:
            self._table.drop_outgoing(outgoing.queue)

    def pause(self, outgoing: OutgoingQueue, *, paused: bool) -> None:
        """Let the messages of a queue wait, or go on. [MQDMPR 3.1.7.2.3]"""
        self._ledger.add(QueuePaused(outgoing, paused=paused))

    def note_reached(
        self, outgoing: OutgoingQueue, reached: Guid, place: str, now: Instant
    ) -> None:
        """Note who is at the other end, and where if only he himself says so.

        After a restart his acknowledgments still count, and nobody else's.
        """
        if (reached, place) == (outgoing.reached, outgoing.reached_at):
            return
        if place:
            self._claims.begin(reached, place, now)
        if outgoing.reached_at:
            self._claims.end(outgoing.reached)
        outgoing.reach(reached, place)
        self._ledger.put(
            records.outgoing_key(outgoing.queue.id), records.encode_record(outgoing.record)
        )

    # Numbers.

    def number(
        self, queue: LocalQueue, sends: list[StagedSend], marks: list[int] | None, now: Instant
    ) -> list[StagedSend]:
        """Return our own transactional messages their places in the sequence (C-65).

        The numbers become durable with the messages, long before one of them is sent.
        """
        own = self._counters.identifier
        if not any(message_bytes.is_transactional(send.packet) for send in sends):
            return sends
        outgoing = self.of(queue)
        sequence = outgoing.sequence
        before = sequence.id, sequence.last_number
        empty = not queue.count and not outgoing.has_open_ends
        numbered: list[StagedSend] = []
        for send, mark in zip(sends, marks or repeat(0), strict=False):
            packet = send.packet
            if not message_bytes.is_transactional(packet) or message_bytes.source(packet) != own:
                numbered.append(send)
                continue
            if sequence.needs_renewal(empty):
                if empty and sequence.id is not None:
                    # Nothing of the old sequence is left that could be acknowledged.
                    self._by_sequence.pop(int(sequence.id), None)
                sequence.renew(self._new_sequence(sequence.id, now))
            empty = False
            numbered.append(self._with_number(send, mark, outgoing))
        if outgoing.is_http and not outgoing.receipts_token:
            # It becomes durable with the numbers, before anybody hears of either.
            outgoing.know_receipts_by(self._rng.randbytes(RECEIPTS_TOKEN_BYTES))
        self._ledger.add(MessagesNumbered(self, outgoing, before))
        return numbered

    def given_up(self, queue: LocalQueue, rows: list[Row]) -> None:
        """Entries leave for another reason: when that is durable, their places are bridged."""
        outgoing = self.of(queue)
        self._ledger.add(EntriesGivenUp(outgoing, rows, self._news.ready))

    def _new_sequence(self, before: SequenceId | None, now: Instant) -> SequenceId:
        """Return a sequence of which no other queue has messages: it names the queue (C-64)."""
        found = self._counters.take_sequence(before, now)
        while int(found) in self._by_sequence:
            found = self._counters.take_sequence(None, now)
        return found

    def _with_number(self, send: StagedSend, mark: int, outgoing: OutgoingQueue) -> StagedSend:
        point = outgoing.sequence.take_number()
        offset = message_bytes.transaction_offset(send.packet)
        packet = message_bytes.numbered(
            send.packet, mark, point.id, point.number, offset, over_http=outgoing.is_http
        )
        asks = send.asks
        if message_bytes.wants_final_ack(packet, offset):
            asks |= ASKS_FINAL_ACK
        return StagedSend(send.queue, packet, send.deadline_s, asks)

    def note_sequence(self, outgoing: OutgoingQueue) -> None:
        """Let a queue be found by its sequence."""
        if outgoing.sequence.id is not None:
            self._by_sequence[int(outgoing.sequence.id)] = outgoing

    def forget_sequence(self, sequence: SequenceId) -> None:
        """Let no queue be found by a sequence that nobody has heard of."""
        self._by_sequence.pop(int(sequence), None)

    def of_sequence(self, sequence: SequenceId) -> OutgoingQueue | None:
        """Find the queue whose messages have, or had last, places in a sequence."""
        return self._by_sequence.get(int(sequence))
