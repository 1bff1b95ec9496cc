"""A queue and the order in which its messages are taken.

The entries themselves are in the store. In memory a queue knows only how many there are, which of
them somebody holds, and a floor: below it there is nothing to take. So a queue with a million
messages costs no more memory than an empty one, and finding its front is one look into the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from openmsmq.manager.queues.counts import FetchedCounts, Flow, Readership
from openmsmq.manager.queues.entries import Entries
from openmsmq.manager.queues.roles import CAPABILITIES
from openmsmq.manager.queues.totals import KILOBYTE, Totals
from openmsmq.model.limits import UNLIMITED_KB
from openmsmq.model.names import SystemQueue
from openmsmq.model.names.parts import fold
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

NO_RESERVATION: Final = ReservationRecord("", 0, 0)
"""What is kept where nothing is kept for a reader."""

_LOOKUP_ID: Final = itemgetter(0)

Row = tuple[int, bytes]
"""A lookup identifier and the value stored under it: facts, then the packet."""


class LocalQueue:
    """One queue of this queue manager: an application's, a journal, a subqueue, a system queue."""

    __slots__ = (
        "can",
        "entries",
        "express_bytes",
        "express_ids",
        "fetched",
        "floor",
        "flow",
        "guest",
        "id",
        "journal",
        "name",
        "open_count",
        "opener",
        "parent",
        "properties",
        "reader",
        "readers",
        "readership",
        "reservation",
        "role",
        "staged_bytes",
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
        """By name; under the empty one the messages of an outgoing queue whose end is awaited."""
        self.transactional_twin: LocalQueue | None = None
        """Where the transactional messages go of a connector queue that takes the others."""
        self.stored_count = 0
        self.staged_bytes = 0
        """What transactions will put here; it counts for the quota."""
        self.stored_bytes = 0
        self.express_bytes = 0
        self.express_ids: set[int] = set()
        self.flow = Flow()
        self.floor = 0
        self.entries = Entries(name, totals.passage)
        self.reservation = NO_RESERVATION
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
        self.readership = Readership()

    @property
    def count(self) -> int:
        """How many messages the queue has, those that transactions hold included."""
        return self.stored_count + len(self.express_ids)

    @property
    def size(self) -> int:
        """How many bytes the messages of the queue have."""
        return self.stored_bytes + self.express_bytes

    @property
    def oldest_time_s(self) -> int:
        """When the oldest message came, those that somebody holds included; 0 without any."""
        if self.flow.oldest_s >= 0:
            return self.flow.oldest_s
        first, start = 0, 0
        # The first entry of each level of priority that has any.
        while rows := self.scan(start, records.LOOKUP_MAX, 1):
            key, value = rows[0]
            arrived_s = records.place_of(value)[0]
            first = min(first, arrived_s) if first else arrived_s
            start = (records.lookup_of(key) | records.ARRIVAL_MASK) + 1
        return self.flow.found_oldest(first)

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

    def take_properties(self, properties: QueueProperties) -> None:
        """Have other properties from now on."""
        self.properties = properties

    def take_readers(self, readers: dict[str, ReaderRecord]) -> None:
        """Be read by others by arrival numbers from now on."""
        self.readers = readers

    def belong_to(self, totals: Totals, *, guest: str = "", opener: str = "") -> None:
        """Be there for a guest or an application, and count what it holds where theirs counts."""
        self.totals = totals
        self.guest = guest
        self.opener = opener

    @property
    def whole(self) -> LocalQueue:
        """The queue that it is a part of, or itself."""
        return self.parent if self.can.be_part and self.parent is not None else self

    def take_part(self, part: LocalQueue) -> None:
        """Let a journal belong to it, a subqueue, or a queue of messages whose end is awaited.

        A connector queue gets another one, for its transactional messages.
        """
        if part.role is QueueRole.JOURNAL:
            self.journal = part
        elif part.is_connector:
            self.transactional_twin = part
        else:
            self.subqueues[_part_key(part)] = part

    def lose_part(self, part: LocalQueue) -> None:
        """Let it belong here no more."""
        if part is self.journal:
            self.journal = None
        else:
            self.subqueues.pop(_part_key(part), None)

    def room_for(self, size: int) -> bool:
        """Whether so many more bytes stay within the quota; subqueues share their parent's."""
        owner = self.whole
        quota_kb = owner.properties.quota_kb
        if quota_kb == UNLIMITED_KB:
            return True
        used = owner.size + sum(sub.size for sub in owner.subqueues.values())
        return used + owner.staged_bytes + size <= quota_kb * KILOBYTE

    def stage(self, size: int) -> None:
        """Account for bytes that a transaction will put here, or with less than 0 does not."""
        self.staged_bytes += size

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
        """Account for durable entries that are found or come back, or with less than 0 go."""
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

    def became_available(self, lookup_id: int) -> None:
        """Take notice of an entry that readers can now take."""
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
            rows = self.scan(start, records.LOOKUP_MAX, wanted)
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

    def rows(self, lookup_id: int, *, backwards: bool = False) -> Iterator[Row]:
        """Walk over the entries behind `lookup_id`, or before it, held ones included.

        What is reserved is jumped over, however much it is.
        """
        start, stop = max(lookup_id + 1, 0), records.LOOKUP_MAX + 1
        if backwards:
            start, stop = 0, min(lookup_id, stop)
        while start < stop:
            rows = self.scan(start, stop - 1, SCAN_ROWS, reverse=backwards)
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

    def scan(
        self, first: int, last: int, limit: int, *, reverse: bool = False
    ) -> list[tuple[bytes, bytes]]:
        """Return entries with `first` <= lookup identifier <= `last`, as the store has them."""
        if first > last:
            return []
        stop = (
            records.entries_end(self.id)
            if last >= records.LOOKUP_MAX
            else records.entry_key(self.id, last + 1)
        )
        return self.reader.scan(records.entry_key(self.id, first), stop, limit, reverse=reverse)


def _part_key(part: LocalQueue) -> str:
    return "" if part.role is QueueRole.AWAITING else fold(part.name.rpartition(";")[2])
