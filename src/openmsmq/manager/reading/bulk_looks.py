"""Looking at very many messages by arrival number: the messages, how far they reach, and how many.

Whoever fetches for a query that has reserved them leaves a mark that they were read. The mark is on
the disk before the first of them is handed out.
"""

from __future__ import annotations

import sys
from array import array
from typing import Final

from openmsmq.api import messages as api
from openmsmq.manager.queues.connections import Connection
from openmsmq.manager.queues.queue import LocalQueue, Row
from openmsmq.manager.queues.replies import Replies
from openmsmq.manager.reading.by_arrival import (
    ARRIVALS_MAX_BYTES,
    LOOKUP_START,
    Arrivals,
    Stored,
    by_arrival,
    last_arrival,
)
from openmsmq.manager.reading.effects import ReservationRead
from openmsmq.manager.reading.readers import Readers
from openmsmq.manager.reading.requests import ReadRequests, entries_of
from openmsmq.manager.reading.surveys import surveyed
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.errors import InvalidParameter, SharingViolation
from openmsmq.model.limits import INFINITE_S, SURVEY_PARTS_MAX_COUNT
from openmsmq.model.lives import is_good_place
from openmsmq.storage import records
from openmsmq.storage.port import Stretch, head_bytes, stretch_of

SLICE_ROWS: Final = 10_000
"""How many messages one request takes out, and one step of longer work looks at."""

_DEADLINE_START: Final = 4
_FACTS_END: Final = records.FACTS_BYTES
_LOOKUP_BYTES: Final = 8
_NEVER: Final = INFINITE_S.to_bytes(4, "little")

_U32_CODE: Final = next(code for code in "ILH" if array(code).itemsize == 4)


class _Look:
    """The messages of a range that are not on their way out, one step after the other."""

    def __init__(self, queue: LocalQueue, request: api.FetchRange | api.FetchPackets) -> None:
        self._queue = queue
        self._arrivals = Arrivals(queue, request.start, request.stop)
        self._stop = request.stop
        self._count = request.count
        self._bytes = max(1, min(request.bytes_max, ARRIVALS_MAX_BYTES))
        self.next_start = request.start
        """Where the range goes on behind what was taken."""

    def take(self) -> list[Stored]:
        """Return the next ones; none behind the last."""
        while self._count > 0 and self._bytes > 0:
            rows, size = self._arrivals.take(self._count, self._bytes)
            if not rows:
                self.next_start = self._stop
                break
            self.next_start = self._arrivals.start
            if self._queue.entries.held or self._queue.entries.ranges:
                rows = [row for row in rows if not _is_leaving(self._queue, row)]
                size = sum([len(value) for _, value in rows])
            self._count -= len(rows)
            self._bytes -= size
            if rows:
                return rows
        return []

    def take_stretch(self) -> Stretch | None:
        """Return the next ones side by side; None behind the last."""
        entries = self._queue.entries
        if self._count > 0 and self._bytes > 0 and not (entries.held or entries.ranges):
            found = self._arrivals.take_stretch(self._count, self._bytes)
            if found is not None:
                self.next_start = self._arrivals.start
                self._count -= len(found.sizes)
                self._bytes -= found.values_bytes
                return found
        rows = self.take()
        return stretch_of(rows) if rows else None


class BulkLooks:
    """Shows messages by arrival number."""

    def __init__(
        self,
        base: Foundation,
        reads: ReadRequests,
        replies: Replies,
        readers: Readers,
    ) -> None:
        self._counters = base.counters
        self._ledger = base.ledger
        self._reads = reads
        self._replies = replies
        self._readers = readers
        self._marking: set[LocalQueue] = set()
        """Queues whose reservation counts as read as soon as the disk says so."""

    def fetch_range(
        self, state: Connection, call: int, request: api.FetchRange, _: Instant
    ) -> None:
        """Peek messages by their arrival numbers."""
        look = self._look(state, request)
        rows: list[Row] = []
        while found := look.take():
            rows += [(int.from_bytes(key[LOOKUP_START:], "big"), value) for key, value in found]
        self._replies.answer(state.id, call, entries_of(rows))

    def fetch_packets(
        self, state: Connection, call: int, request: api.FetchPackets, now: Instant
    ) -> None:
        """Peek messages by their arrival numbers, for a reader of very many."""
        queue = state.queue(request.handle).queue
        if request.checkpoint:
            self._require_reserved(queue, request)
            self._readers.heard(queue, request.reader, request.checkpoint, now)
        look = self._look(state, request)
        is_reserved = queue.reservation.start <= request.start < queue.reservation.stop
        keys: list[bytes] = []
        sizes = array(_U32_CODE)
        pieces: list[bytes | memoryview] = []
        facts: set[bytes] = set()
        total_bytes = 0
        while (found := look.take_stretch()) is not None:
            keys.append(found.keys)
            sizes.fromlist(found.sizes)
            pieces.append(found.values)
            total_bytes += found.values_bytes
            if is_reserved:
                _add_facts(facts, found)
        count = len(sizes)
        entries = b"".join(pieces)
        if is_reserved:
            self._note(queue, request.start, look.next_start, facts, count, total_bytes)
        lookup_ids = _lookup_ids(b"".join(keys), count)
        reply = api.Packets(lookup_ids, _little_endian(sizes), entries, look.next_start)
        if request.checkpoint and count:
            self._mark_read(queue, request.start)
        if queue in self._marking:
            self._replies.answer_when_done(state.id, call, reply)
        else:
            self._replies.answer(state.id, call, reply)

    def _require_reserved(self, queue: LocalQueue, request: api.FetchPackets) -> None:
        """Refuse the task of a query that has its messages no more: they may be others now."""
        if queue.reservation.reader != request.reader or (
            queue.reservation.checkpoint not in ("", request.checkpoint)
        ):
            raise SharingViolation(
                f"{queue.name} is being read by {queue.reservation.reader or 'nobody'!r} now, from "
                "another checkpoint: give each query a name of its own with the option reader"
            )
        if request.start < queue.reservation.start or queue.reservation.stop < request.stop:
            raise SharingViolation(
                f"arrival numbers {request.start} to {request.stop - 1} of {queue.name} are not "
                "reserved any more: this task is late, or what it was to read was released"
            )

    def _mark_read(self, queue: LocalQueue, start: int) -> None:
        """Note that somebody has what is reserved; nobody gets it before that is durable."""
        kept = queue.reservation
        if kept.is_read or not kept.start <= start < kept.stop:
            return
        self._ledger.add(ReservationRead(queue, self._marking))

    def _note(
        self, queue: LocalQueue, start: int, stop: int, kinds: set[bytes], count: int, size: int
    ) -> None:
        """Remember how much a part of what is reserved is, if its end causes nothing else."""
        if not start < stop <= queue.reservation.stop:
            return
        for facts in kinds:
            if facts[:4] != _NEVER or facts[-1]:
                return
        queue.fetched.note(start, stop, count, size - records.FACTS_BYTES * count)

    def _look(self, state: Connection, request: api.FetchRange | api.FetchPackets) -> _Look:
        """Begin to look at a range, if the caller may."""
        opened = state.queue(request.handle)
        self._reads.require_readable(state, opened, peek=True, transaction=0)
        if request.count < 1:
            raise InvalidParameter("count must be 1 or more")
        return _Look(opened.queue, request)

    def measure(self, state: Connection, call: int, request: api.Measure, _: Instant) -> None:
        """Tell how far so many messages reach; what is told is durable."""
        opened = state.queue(request.handle)
        self._reads.require_readable(state, opened, peek=True, transaction=0)
        self.require_limits(request)
        stop = end_of(opened.queue, request, self.below(request))
        self._replies.answer_when_done(state.id, call, api.Measured(stop))

    def survey(self, state: Connection, call: int, request: api.Survey, _: Instant) -> None:
        """Tell how messages are spread over a range."""
        opened = state.queue(request.handle)
        self._reads.require_readable(state, opened, peek=True, transaction=0)
        if not 1 <= request.parts <= SURVEY_PARTS_MAX_COUNT:
            raise InvalidParameter(f"parts is a number from 1 to {SURVEY_PARTS_MAX_COUNT}")
        stop = min(request.stop, self._counters.last_arrival + 1)
        found = surveyed(opened.queue, request.start, stop, request.parts)
        self._replies.answer(state.id, call, api.Surveyed(found))

    def get_epochs(self, state: Connection, call: int, _: api.GetEpochs, __: Instant) -> None:
        """Tell which lives of the queue manager the store remembers; what is told is durable."""
        lives = [api.Epoch(life.identifier, life.first) for life in self._counters.epochs()]
        self._replies.answer_when_done(state.id, call, api.Epochs(lives))

    def require_limits(self, request: api.Reserve | api.Measure) -> None:
        """Refuse a range that cannot be."""
        if min(request.start, request.count, request.bytes_max, request.below) < 0:
            raise InvalidParameter("start, count, bytes_max and below are 0 or more")
        last = self._counters.last_arrival
        if request.start > last + 1:
            raise InvalidParameter(
                f"arrival number {request.start} was never given, the last one was {last}: this "
                "is not the store in which the reader has come so far; let it begin anew"
            )
        if not request.epoch:
            return
        lives = [(life.identifier, life.first) for life in self._counters.epochs()]
        if not is_good_place(lives, request.epoch, request.start):
            raise InvalidParameter(
                f"arrival number {request.start} was told in another life of the queue manager: "
                "this is an older copy of the store in which the reader has come so far"
            )

    def below(self, request: api.Reserve | api.Measure) -> int:
        """Return the arrival number before which the messages of a range end."""
        stop = self._counters.last_arrival + 1
        return min(stop, request.below) if request.below else stop


def end_of(queue: LocalQueue, request: api.Reserve | api.Measure, stop: int) -> int:
    """Return where a range ends: behind its last message, so that no news is no change."""
    start = request.start
    if not request.count and not request.bytes_max:
        last = last_arrival(queue, start, stop)
        return start if last is None else last + 1
    count = request.count or stop
    size = request.bytes_max or 1 << 62
    while rows := by_arrival(
        queue, start, stop, min(count, SLICE_ROWS), min(size, ARRIVALS_MAX_BYTES)
    ):
        start = arrival_of(rows[-1]) + 1
        count -= len(rows)
        size -= sum(len(value) for _, value in rows)
        if count <= 0 or size <= 0:
            break
    return start


def _add_facts(facts: set[bytes], found: Stretch) -> None:
    """Add from each entry when it expires to what its end has to cause. Few are different."""
    values = bytes(found.values)
    end = 0
    for size in found.sizes:
        begin = end + head_bytes(size)
        facts.add(values[begin + _DEADLINE_START : begin + _FACTS_END])
        end += size


def _lookup_ids(keys: bytes, count: int) -> bytes:
    """Return the last eight bytes of each key, which are those that the reply has."""
    if not count:
        return b""
    found = bytearray(_LOOKUP_BYTES * count)
    step = len(keys) // count
    for place in range(_LOOKUP_BYTES):
        found[place::_LOOKUP_BYTES] = keys[step - _LOOKUP_BYTES + place :: step]
    return bytes(found)


def _is_leaving(queue: LocalQueue, row: Stored) -> bool:
    """Whether the removal of an entry waits for the disk."""
    return queue.entries.is_leaving(int.from_bytes(row[0][LOOKUP_START:], "big"))


def arrival_of(row: Row) -> int:
    """The arrival number of an entry."""
    return row[0] & records.ARRIVAL_MASK


def _little_endian(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()
