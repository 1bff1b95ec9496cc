"""A queue and the order in which its messages are taken.

The entries themselves are in the store. In memory a queue knows only how many there are, which of
them somebody holds, and a floor: below it there is nothing to take. So a queue with a million
messages costs no more memory than an empty one, and finding its front is one look into the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from openmsmq.manager.queues.counts import FetchedCounts
from openmsmq.manager.queues.entries import Entries
from openmsmq.manager.queues.roles import CAPABILITIES
from openmsmq.manager.queues.totals import KILOBYTE, Totals
from openmsmq.model.limits import UNLIMITED_KB
from openmsmq.model.names import SystemQueue
from openmsmq.model.queue import QueueKind, QueueProperties, QueueRole
from openmsmq.storage import records
from openmsmq.storage.records import ReaderRecord, ReservationRecord

if TYPE_CHECKING:
    from openmsmq.manager.queues.reads import WaitingRead
    from openmsmq.storage.port import StoreReader

SYSTEM_QUEUES: Final = {
    SystemQueue.JOURNAL: 1,
    SystemQueue.DEAD_LETTER: 2,
    SystemQueue.TRANSACTIONAL_DEAD_LETTER: 3,
}
"""The system queues are always there and have fixed numbers; applications' begin at 16."""

SCAN_ROWS: Final = 256
"""How many entries one look into the store brings when nobody says how many are wanted."""

ARRIVALS_MAX_BYTES: Final = 16 << 20
"""Bytes after which a look by arrival numbers brings no more entries."""
ARRIVALS_FIRST_ROWS: Final = 32
"""Entries that its first step brings; how large these are tells how many the next one may."""
ARRIVALS_GROWTH: Final = 4
_LOOKUP_ID: Final = itemgetter(0)
_NOTHING: Final = ReservationRecord("", 0, 0)

Row = tuple[int, bytes]
"""A lookup identifier and the value stored under it: facts, then the packet."""
Stored = tuple[bytes, bytes]
"""The same as the store has it: the key ends with the lookup identifier."""
LOOKUP_START: Final = 5
"""Where the lookup identifier begins in a key; the arrival number begins a byte later."""


class LocalQueue:
    """One queue of this queue manager: an application's, a journal, a subqueue, a system queue."""

    __slots__ = (
        "can",
        "closed_to_readers",
        "entries",
        "express_bytes",
        "express_ids",
        "fetched",
        "floor",
        "guest",
        "id",
        "journal",
        "name",
        "open_count",
        "opener",
        "parent",
        "properties",
        "reader",
        "reader_count",
        "readers",
        "reservation",
        "role",
        "stored_bytes",
        "stored_count",
        "subqueues",
        "totals",
        "transactional_twin",
        "waiting",
    )

    def __init__(
        self,
        number: int,
        name: str,
        properties: QueueProperties,
        reader: StoreReader,
        totals: Totals,
        *,
        role: QueueRole = QueueRole.APPLICATION,
        parent: LocalQueue | None = None,
    ) -> None:
        self.id = number
        self.name = name
        """The path name without the computer, such as `private$\\orders;journal`."""
        self.properties = properties
        self.reader = reader
        self.totals = totals
        self.role = role
        self.can = CAPABILITIES[role]
        self.parent = parent
        self.journal: LocalQueue | None = None
        self.subqueues: dict[str, LocalQueue] = {}
        self.transactional_twin: LocalQueue | None = None
        """Where the transactional messages go of a connector queue that takes the others."""
        self.stored_count = 0
        self.stored_bytes = 0
        self.express_bytes = 0
        self.express_ids: set[int] = set()
        self.floor = 0
        self.entries = Entries(name, totals.passage)
        self.reservation = _NOTHING
        """For whom messages are reserved, and which: see `is_reserved`."""
        self.readers: dict[str, ReaderRecord] = {}
        """Who reads it by arrival numbers, by name."""
        self.fetched = FetchedCounts()
        self.waiting: dict[WaitingRead, None] = {}
        """The reads that wait here, the oldest first."""
        self.open_count = 0
        self.guest = ""
        """For whom there is this outgoing queue, if no application has asked for it."""
        self.opener = ""
        """Which application has asked for it since the start, if it is not an administrator's."""
        self.reader_count = 0
        self.closed_to_readers = False

    @property
    def express_count(self) -> int:
        """How many express messages the queue has."""
        return len(self.express_ids)

    @property
    def count(self) -> int:
        """How many messages the queue has, those that transactions hold included."""
        return self.stored_count + self.express_count

    @property
    def size(self) -> int:
        """How many bytes the messages of the queue have."""
        return self.stored_bytes + self.express_bytes

    @property
    def is_public(self) -> bool:
        """Whether the directory knows it."""
        return self.properties.kind is QueueKind.PUBLIC

    @property
    def is_connector(self) -> bool:
        """Whether a connector takes messages from here on: then it tells senders of them."""
        return self.properties.kind is QueueKind.CONNECTOR

    def count_handles(self, change: int) -> None:
        """Note that an application has opened it, or closed it."""
        self.open_count += change

    @property
    def whole(self) -> LocalQueue:
        """The queue that it is a part of, or itself."""
        return self.parent if self.can.be_part and self.parent is not None else self

    def room_for(self, size: int) -> bool:
        """Whether so many more bytes stay within the quota; subqueues share their parent's."""
        owner = self.whole
        quota_kb = owner.properties.quota_kb
        if quota_kb == UNLIMITED_KB:
            return True
        used = owner.size + sum(sub.size for sub in owner.subqueues.values())
        return used + size <= quota_kb * KILOBYTE

    def count_many_in(self, lookup_ids: list[int], size: int, *, express: bool) -> None:
        """Account for new entries of one kind."""
        self.totals.add(size)
        if express:
            self.express_ids.update(lookup_ids)
            self.express_bytes += size
            self.totals.add_express(len(lookup_ids), size)
        else:
            self.stored_count += len(lookup_ids)
            self.stored_bytes += size

    def count_many_out(self, lookup_ids: list[int], size: int, *, express: bool) -> None:
        """Account for entries of one kind that go."""
        self.totals.add(-size)
        if express:
            self.express_ids.difference_update(lookup_ids)
            self.express_bytes -= size
            self.totals.add_express(-len(lookup_ids), -size)
        else:
            self.stored_count -= len(lookup_ids)
            self.stored_bytes -= size

    def count_range(self, count: int, size: int) -> None:
        """Account for durable entries that come back to the queue, or with less than 0 go."""
        self.totals.add(size)
        self.stored_count += count
        self.stored_bytes += size

    def by_kind(self, rows: list[Row]) -> tuple[list[Row], list[Row]]:
        """Tell express entries from the others."""
        express = self.express_ids
        if not express:
            return [], rows
        light = [row for row in rows if row[0] in express]
        if len(light) == len(rows):
            return light, []
        return light, [row for row in rows if row[0] not in express]

    def restore_counts(self, count: int, size: int) -> None:
        """Take over the counts that the store has."""
        self.totals.add(size - self.stored_bytes)
        self.stored_count, self.stored_bytes = count, size

    def became_available(self, lookup_id: int) -> None:
        """Take notice of an entry that readers can now take."""
        self.floor = min(self.floor, lookup_id)

    def release(self, lookup_id: int) -> None:
        """Give back an entry that was held."""
        self.entries.release(lookup_id)
        self.floor = min(self.floor, lookup_id)

    def is_reserved(self, lookup_id: int) -> bool:
        """Whether an entry is kept for the reader that reserved it, or leaves with a range."""
        arrival = lookup_id & records.ARRIVAL_MASK
        kept = self.reservation
        return kept.start <= arrival < kept.stop or self.entries.leaves_in_range(arrival)

    def is_held(self, lookup_id: int) -> bool:
        """Whether somebody has an entry, so that others can neither see nor take it."""
        return lookup_id in self.entries.held or self.is_reserved(lookup_id)

    def keep(self, reserved: ReservationRecord) -> None:
        """Keep the entries with `start` <= arrival number < `stop` for a reader."""
        if reserved.reader != self.reservation.reader:
            self.fetched.forget()
        self.reservation = reserved
        self.floor = 0

    def keep_nothing(self) -> None:
        """Keep no entries for a reader any longer."""
        self.keep(_NOTHING)

    def front(self, count: int, bytes_max: int) -> list[Row]:
        """Return the first available entries, at least one if there is any."""
        if not self.stored_count and not self.express_ids:
            return []
        found: list[Row] = []
        size = 0
        start = self.floor
        held = self.entries.held
        reserved = self.reservation.stop > 0 or bool(self.entries.ranges)
        while True:
            wanted = min(count - len(found), SCAN_ROWS)
            rows = self._scan(start, records.LOOKUP_MAX, wanted)
            jumped = False
            for key, value in rows:
                lookup_id = int.from_bytes(key[5:], "big")
                start = lookup_id + 1
                if lookup_id in held:
                    continue
                if reserved and self.is_reserved(lookup_id):
                    # Behind all that is reserved in this level of priority.
                    start, _ = self._around_reserved(lookup_id, start, start, backwards=False)
                    jumped = True
                    break
                found.append((lookup_id, value))
                size += len(value)
                if size >= bytes_max:
                    break
            if len(found) >= count or size >= bytes_max or (len(rows) < wanted and not jumped):
                break
        self.floor = found[0][0] if found else start
        return found

    def hold(self, rows: list[Row], holder: int) -> None:
        """Take entries that `front` gave just now out of other readers' sight."""
        self.entries.hold(map(_LOOKUP_ID, rows), holder)
        self.pass_over(rows)

    def pass_over(self, rows: list[Row]) -> None:
        """Look no more for entries that `front` gave just now: the caller holds or removes them."""
        if rows[0][0] == self.floor:
            self.floor = rows[-1][0] + 1

    def entry(self, lookup_id: int) -> bytes | None:
        """Return what is stored for an entry, held or not."""
        if not 0 <= lookup_id <= records.LOOKUP_MAX:
            return None
        return self.reader.get(records.entry_key(self.id, lookup_id))

    def next_available(self, lookup_id: int, *, backwards: bool = False) -> Row | None:
        """Return the nearest available entry behind `lookup_id`, or before it."""
        for found, value in self.rows(lookup_id, backwards=backwards):
            if found not in self.entries.held:
                return found, value
        return None

    def rows(self, lookup_id: int, *, backwards: bool = False) -> Iterator[Row]:
        """Walk over the entries behind `lookup_id`, or before it, held ones included.

        What is reserved is jumped over, however much it is.
        """
        start, stop = max(lookup_id + 1, 0), records.LOOKUP_MAX + 1
        if backwards:
            start, stop = 0, min(lookup_id, stop)
        while start < stop:
            rows = self._scan(start, stop - 1, SCAN_ROWS, reverse=backwards)
            last = len(rows) < SCAN_ROWS
            for key, value in rows:
                found = int.from_bytes(key[5:], "big")
                start, stop = (start, found) if backwards else (found + 1, stop)
                if self.is_reserved(found):
                    start, stop = self._around_reserved(found, start, stop, backwards=backwards)
                    last = False
                    break
                yield found, value
            if last:
                return

    def _around_reserved(
        self, lookup_id: int, start: int, stop: int, *, backwards: bool
    ) -> tuple[int, int]:
        """Return where to look on beside all that is reserved in one level of priority."""
        level, arrival = lookup_id & ~records.ARRIVAL_MASK, lookup_id & records.ARRIVAL_MASK
        kept = self.reservation
        for low, high in [(kept.start, kept.stop), *self.entries.ranges]:
            if low <= arrival < high:
                return (start, level | low) if backwards else (level | high, stop)
        return start, stop

    def by_arrival(
        self, start: int, stop: int, count: int, bytes_max: int = ARRIVALS_MAX_BYTES
    ) -> list[Row]:
        """Return entries with `start` <= arrival number < `stop`, lowest first, held or not.

        There are fewer than `count` and more beyond them when these have `bytes_max` bytes.
        """
        found = self.stored_by_arrival(start, stop, count, bytes_max)
        return [(int.from_bytes(key[LOOKUP_START:], "big"), value) for key, value in found]

    def stored_by_arrival(self, start: int, stop: int, count: int, bytes_max: int) -> list[Stored]:
        """Return what `by_arrival` gives, as the store has it: very many of these cost less."""
        found: list[Stored] = []
        start, stop = max(start, 0), min(stop, records.ARRIVAL_MASK + 1)
        step = ARRIVALS_FIRST_ROWS
        levels = list(range(8))
        while start < stop and len(found) < count and bytes_max > 0:
            wanted = min(count - len(found), step)
            rows, levels = self._next_arrivals(levels, start, stop, wanted)
            if not rows:
                break
            start = arrival_in(rows[-1][0]) + 1
            taken, left = _within_bytes(rows, bytes_max)
            found += taken
            if len(rows) < wanted:
                break
            usual = max(1, (bytes_max - left) // len(taken))
            bytes_max = left
            step = max(1, min(step * ARRIVALS_GROWTH, bytes_max // usual + 1))
        return found

    def last_arrival(self, start: int, stop: int) -> int | None:
        """Return the highest arrival number of an entry with `start` <= number < `stop`."""
        found: int | None = None
        for level in range(8):
            base = level << 56
            for key, _ in self._scan(base + start, base + stop - 1, 1, reverse=True):
                arrival = int.from_bytes(key[5:], "big") & records.ARRIVAL_MASK
                found = arrival if found is None else max(found, arrival)
        return found

    def _next_arrivals(
        self, levels: list[int], start: int, stop: int, count: int
    ) -> tuple[list[Stored], list[int]]:
        """Return the next entries of some levels of priority, and the levels that have any.

        The others have none up to `stop`, so nobody needs to look there again.
        """
        found: list[Stored] = []
        there: list[int] = []
        for level in levels:
            base = level << 56
            rows = self._scan(base + start, base + stop - 1, count)
            if rows:
                there.append(level)
                found = found + rows if found else rows
        if len(there) > 1:
            found.sort(key=_arrival_bytes)
        return found[:count], there

    def _scan(
        self, first: int, last: int, limit: int, *, reverse: bool = False
    ) -> list[tuple[bytes, bytes]]:
        if first > last:
            return []
        stop = (
            records.entries_end(self.id)
            if last >= records.LOOKUP_MAX
            else records.entry_key(self.id, last + 1)
        )
        return self.reader.scan(records.entry_key(self.id, first), stop, limit, reverse=reverse)


def arrival_in(key: bytes) -> int:
    """Return the arrival number in the key of an entry."""
    return int.from_bytes(key[LOOKUP_START + 1 :], "big")


def _arrival_bytes(row: Stored) -> bytes:
    return row[0][LOOKUP_START + 1 :]


def _within_bytes(rows: list[Stored], bytes_max: int) -> tuple[list[Stored], int]:
    """Return the rows up to the one that reaches the limit, and what is left of the limit."""
    for place, (_, value) in enumerate(rows, 1):
        bytes_max -= len(value)
        if bytes_max <= 0:
            return rows[:place], bytes_max
    return rows, bytes_max
