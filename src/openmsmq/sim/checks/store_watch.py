"""Reading along with a disk: which messages lie in which queue, batch by batch."""

from __future__ import annotations

from typing import Final

import msgspec

from openmsmq.model.identity import NIL_GUID
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.queue import QueueRole
from openmsmq.sim.checks.facts import number_in
from openmsmq.storage import records
from openmsmq.storage.port import Batch
from openmsmq.storage.records import MachineRecord
from openmsmq.wire import message_bytes
from openmsmq.wire.outline import outline

"""The role of a queue that has entries and no record: a restart would not find them."""
FIRST_QUEUE: Final = MachineRecord(NIL_GUID, "").next_queue
JOURNAL: Final = 1
DEAD_LETTERS: Final = frozenset({2, 3})
_ENTRY_KIND: Final = ord("E")
_QUEUE_END: Final = len(records.counts_key(0))
"""Where in the key of an entry its queue ends."""
_QUEUE_KIND: Final = ord("Q")
_SEQUENCE_KIND: Final = ord("I")
_TRANSACTION_KIND: Final = ord("T")


class Shelf(msgspec.Struct, frozen=True):
    """A queue as its record shows it."""

    number: int
    path: str
    role: QueueRole | None
    """None for a queue of which there is no record."""


class Lying(msgspec.Struct, frozen=True):
    """An entry of a queue."""

    shelf: Shelf
    lookup_id: int
    message: int | None
    """The simulated message it is; None for acknowledgments and the like."""
    message_class: int
    packet: bytes
    durable: bool
    deadline_s: int = INFINITE_S
    """When it expires, by the clock of its node."""


class Change(msgspec.Struct, frozen=True):
    """An entry that came or went with a batch."""

    entry: Lying
    came: bool


class StoreWatch:
    """The entries of one store, followed from the first batch on."""

    def __init__(self) -> None:
        self.entries: dict[bytes, Lying] = {}
        self.shelves: dict[int, Shelf] = {}
        self.by_path: dict[str, Shelf] = {}
        self.aside: dict[bytes, list[bytes]] = {}
        """What is set aside for transactions that are prepared."""
        self.prepared: set[bytes] = set()
        """The keys of transactions that are prepared."""
        self.leaving: set[int] = set()
        """The numbers of all outgoing queues."""
        self.outgoing_count = 0
        """Entries that still have to leave."""
        self.awaiting_count = 0
        """Entries that have arrived, and whose end is still to be heard of."""
        self.size_bytes = 0
        """The bytes of all packets, in whichever queue."""
        self.sequences: dict[bytes, int] = {}
        """The sizes of all records of sequences that others send."""
        self.directory_number = 0
        """The change of the directory up to which the copy on the disk has come."""

    def apply(self, batch: Batch) -> list[Change]:
        """Take a batch in; give the entries that came and went, in order.

        An entry that is only rewritten in its place neither came nor went.
        """
        changes: list[Change] = []
        for start, stop in batch.ranges:
            self._range(start, stop, changes)
        for key, value in self._with_taken(batch):
            if key[0] == _ENTRY_KIND:
                self._entry(key, value, True, changes)
            else:
                self._record(key, value)
        for key, value in batch.volatile:
            if key[0] == _ENTRY_KIND:
                self._entry(key, value, False, changes)
        for key in batch.forgotten:
            if key[0] == _ENTRY_KIND and not self.entries[key].durable:
                self._entry(key, None, False, changes)
        return changes

    def _with_taken(self, batch: Batch) -> list[tuple[bytes, bytes | None]]:
        """Return the changes of a batch, and what it takes of what was set aside.

        Readers see the entries of a batch at once, in the order of their keys.
        """
        self.aside.update(batch.aside)
        taken = [record for each in batch.taken for record in each.records(self.aside[each.name])]
        for name in batch.dropped:
            del self.aside[name]
        queues = {key[:_QUEUE_END] for key, _ in taken}
        came = [
            (key, value)
            for key, value in batch.changes
            if value is not None and key[:_QUEUE_END] in queues
        ]
        later = (
            [change for change in batch.changes if change not in came] if came else batch.changes
        )
        return [*sorted([*taken, *came]), *later]

    def lose_power(self) -> list[Lying]:
        """Forget what was only in memory, and give it."""
        lost = [entry for entry in self.entries.values() if not entry.durable]
        self.entries = {key: entry for key, entry in self.entries.items() if entry.durable}
        for entry in lost:
            self._count(entry, -1)
        return lost

    def holds(self, path: str, lookup_id: int) -> bool:
        """Whether an entry of a queue is still there."""
        shelf = self.by_path.get(path)
        return shelf is not None and records.entry_key(shelf.number, lookup_id) in self.entries

    def shelf(self, number: int) -> Shelf:
        """Find a queue by its number; system queues have no records."""
        found = self.shelves.get(number)
        if found is None:
            is_system = number < FIRST_QUEUE
            name = f"{'system' if is_system else 'unknown'} queue {number}"
            found = Shelf(number, name, QueueRole.SYSTEM if is_system else None)
        return found

    def _range(self, start: bytes, stop: bytes, changes: list[Change]) -> None:
        for key in sorted(key for key in self.entries if start <= key < stop):
            self._entry(key, None, True, changes)

    def _entry(self, key: bytes, value: bytes | None, durable: bool, changes: list[Change]) -> None:
        before = self.entries.get(key)
        if value is None:
            if before is not None:
                del self.entries[key]
                self._count(before, -1)
                changes.append(Change(before, False))
            return
        if before is not None:
            return
        packet = value[records.FACTS_BYTES :]
        found = outline(packet)
        entry = Lying(
            self.shelf(records.queue_of(key)),
            records.lookup_of(key),
            number_in(message_bytes.body(packet, found)),
            message_bytes.message_class(packet, found),
            packet,
            durable,
            records.decode_facts(value).deadline_s,
        )
        self.entries[key] = entry
        self._count(entry, 1)
        changes.append(Change(entry, True))

    def _count(self, entry: Lying, step: int) -> None:
        self.size_bytes += step * len(entry.packet)
        if entry.shelf.role is QueueRole.OUTGOING:
            self.outgoing_count += step
        elif entry.shelf.role is QueueRole.AWAITING:
            self.awaiting_count += step

    def _record(self, key: bytes, value: bytes | None) -> None:
        """Read a record that is no entry of a queue."""
        if key[0] == _QUEUE_KIND:
            self._queue(key, value)
        elif key[0] == _SEQUENCE_KIND:
            if value is None:
                self.sequences.pop(key, None)
            else:
                self.sequences[key] = len(key) + len(value)
        elif key[0] == _TRANSACTION_KIND:
            if value is None:
                self.prepared.discard(key)
            else:
                self.prepared.add(key)
        elif key == records.POSITION_KEY and value is not None:
            self.directory_number = records.decode_record(value, records.PositionRecord).number

    def _queue(self, key: bytes, value: bytes | None) -> None:
        number = records.queue_of(key)
        if value is None:
            # What was in it may still be heard of: a name stays known.
            self.leaving.discard(number)
            return
        record = records.decode_record(value, records.QueueRecord)
        shelf = Shelf(number, record.properties.path_name.casefold(), record.role)
        self.shelves[number] = shelf
        self.by_path[shelf.path] = shelf
        if record.role is QueueRole.OUTGOING:
            self.leaving.add(number)
