"""Which queues there are, by number, name and identifier, and how they come back at a start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from openmsmq.manager.queues.guests import Guests
from openmsmq.manager.queues.queue import SYSTEM_QUEUES, LocalQueue
from openmsmq.manager.queues.totals import Totals
from openmsmq.model.identity import Guid
from openmsmq.model.names import SystemQueue
from openmsmq.model.names.parts import fold
from openmsmq.model.queue import QueueKind, QueueProperties, QueueRole
from openmsmq.storage import records
from openmsmq.storage.port import StoreReader
from openmsmq.storage.records import QueueRecord


class QueueRegistry:
    """The queues that can be found, and how much all of them hold."""

    def __init__(self, reader: StoreReader, totals: Totals, *, over_http: bool = False) -> None:
        self.reader = reader
        self.totals = totals
        self.guests = Guests(totals, over_http=over_http)
        self.outgoing_count = 0
        self._by_id: dict[int, LocalQueue] = {}
        self._by_name: dict[str, LocalQueue] = {}
        self._by_identifier: dict[Guid, LocalQueue] = {}
        self._by_address: dict[str, dict[int, LocalQueue]] = {}
        self.addresses: frozenset[str] = frozenset()
        """The multicast addresses that queues have; another object after each change."""
        for name, number in SYSTEM_QUEUES.items():
            self._add_system_queue(name, number)

    def __iter__(self) -> Iterator[LocalQueue]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, queue: LocalQueue) -> bool:
        return self._by_id.get(queue.id) is queue

    @property
    def by_name(self) -> Mapping[str, LocalQueue]:
        """All queues by their names, as these are compared. Others only look here."""
        return self._by_name

    def by_id(self, number: int) -> LocalQueue | None:
        """Find a queue by its number."""
        return self._by_id.get(number)

    def system(self, name: SystemQueue) -> LocalQueue:
        """Find a system queue."""
        return self._by_id[SYSTEM_QUEUES[name]]

    def insert(self, queue: LocalQueue) -> None:
        """Let a queue be found; one that is found already stays as it is."""
        if queue.can.lead_away and queue.id not in self._by_id:
            self.outgoing_count += 1
            self.guests.came(queue)
        self._by_id[queue.id] = queue
        self._by_name[fold(queue.name)] = queue
        if queue.can.stand_alone:
            self._by_identifier[queue.properties.identifier] = queue
        self.listen(queue, queue.properties.multicast_address)

    def remove(self, queue: LocalQueue) -> None:
        """Let a queue not be found any more."""
        if self._by_id.pop(queue.id, None) is not None and queue.can.lead_away:
            self.outgoing_count -= 1
            self.guests.left(queue)
        self._by_name.pop(fold(queue.name), None)
        if queue.can.stand_alone:
            self._by_identifier.pop(queue.properties.identifier, None)
        self.listen(queue, None)

    def listen(self, queue: LocalQueue, address: str | None) -> None:
        """Let a queue get what is sent to a multicast address, and to no other one."""
        before = queue.properties.multicast_address
        if before is not None:
            others = self._by_address.get(before, {})
            others.pop(queue.id, None)
            if not others:
                self._by_address.pop(before, None)
        if address is not None:
            self._by_address.setdefault(address, {})[queue.id] = queue
        if before is not None or address is not None:
            self.addresses = frozenset(self._by_address)

    def with_address(self, address: str) -> list[LocalQueue]:
        """Return the queues that get what is sent to a multicast address."""
        return list(self._by_address.get(address, {}).values())

    # What the store has of them.

    def record_of(self, queue: LocalQueue) -> bytes:
        """Return what is stored of a queue beside its counts."""
        parent = 0 if queue.parent is None else queue.parent.id
        reports = queue.totals is self.guests.reports
        return records.encode_record(
            QueueRecord(queue.properties, queue.role, parent, queue.guest, reports)
        )

    def restore(self, number: int, record: QueueRecord, count: int, size: int) -> None:
        """Take in a queue as the store has it; parents come before their children."""
        parent = self._by_id.get(record.parent) if record.parent else None
        queue = LocalQueue(
            number,
            record.properties.path_name,
            record.properties,
            self.reader,
            self.guests.totals_for(reports=record.reports),
            role=record.role,
            parent=parent,
        )
        queue.belong_to(queue.totals, guest=record.guest)
        queue.count_range(count, size)
        if parent is not None:
            parent.take_part(queue)
        self.insert(queue)

    def restore_counts(self, number: int, count: int, size: int) -> None:
        """Take in the counts of a system queue."""
        self._by_id[number].count_range(count, size)

    def _add_system_queue(self, name: SystemQueue, number: int) -> None:
        properties = QueueProperties(
            identifier=Guid(bytes(15) + bytes((number,))),
            path_name=name.path_text,
            kind=QueueKind.SYSTEM,
            transactional=name is SystemQueue.TRANSACTIONAL_DEAD_LETTER,
        )
        self.insert(
            LocalQueue(
                number, name.path_text, properties, self.reader, self.totals, role=QueueRole.SYSTEM
            )
        )
