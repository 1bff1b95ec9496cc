"""All queues of a queue manager: found by any kind of name, created, changed, deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.directory.copy import DirectoryCopy
from openmsmq.manager.directory.published import Published, meant_private
from openmsmq.manager.queues.effects import (
    OutgoingForgotten,
    PropertiesChanged,
    QueueCreated,
    QueuesDeleted,
)
from openmsmq.manager.queues.guests import Guest
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.registry import QueueRegistry
from openmsmq.manager.queues.return_queues import is_order_queue
from openmsmq.manager.queues.totals import Totals
from openmsmq.manager.turn.counters import Counters
from openmsmq.manager.turn.ledger import Ledger
from openmsmq.model.errors import (
    AccessDenied,
    InsufficientResources,
    QueueExists,
    QueueNotActive,
    QueueNotFound,
    RemoteMachineNotAvailable,
    UnsupportedFormatName,
)
from openmsmq.model.identity import Guid
from openmsmq.model.limits import JOURNAL_QUOTA_DEFAULT_KB
from openmsmq.model.names import (
    LOCAL_COMPUTERS,
    ConnectorFormatName,
    DirectFormatName,
    FormatName,
    LocalQueueName,
    MachineFormatName,
    MulticastFormatName,
    PathName,
    PrivateFormatName,
    PublicFormatName,
    QueueOnComputer,
    SystemQueue,
    parse_format_name,
    read_name,
    read_path,
)
from openmsmq.model.names.parts import fold
from openmsmq.model.queue import QueueKind, QueueProperties, QueueRole
from openmsmq.storage.port import StoreReader

if TYPE_CHECKING:
    import random


class QueueTable(QueueRegistry):
    """All queues, found by whatever names them. Names are compared without regard to case."""

    def __init__(
        self,
        config: ManagerConfig,
        counters: Counters,
        ledger: Ledger,
        reader: StoreReader,
        rng: random.Random,
        copy: DirectoryCopy,
    ) -> None:
        super().__init__(reader, Totals(ledger.passage), over_http=config.http.enabled)
        self._config = config
        self._counters = counters
        self._ledger = ledger
        self.published = Published(config.directory, copy, counters)
        self._rng = rng
        self._hosts = {fold(host) for host in (*LOCAL_COMPUTERS, config.name, *config.addresses)}
        self._connectors = {
            fold(host): Guid.parse(connector)
            for host, connector in config.transfer.connectors.items()
        }

    # Finding.

    def find(self, name: str, *, create: bool = False) -> LocalQueue:
        """Find a queue by path name or format name, as an application gives it.

        With `create` a subqueue comes into being that was not there.
        """
        found = read_name(name)
        if not isinstance(found, PathName):
            return self.find_format_name(found, create=create)
        self._require_local(found.computer, name)
        return self._named(found.queue, name, create=create)

    def find_format_name(self, name: FormatName, *, create: bool = False) -> LocalQueue:
        """Find the queue of this computer that a format name names."""
        match name:
            case DirectFormatName():
                self._require_local(name.host, str(name))
                return self._named(name.queue, str(name), create=create)
            case PrivateFormatName():
                self._require_me(name.queue_manager, name)
                return self._numbered(name.number, name, journal=name.journal)
            case PublicFormatName():
                return self._identified(name.queue, name)
            case MachineFormatName():
                self._require_me(name.queue_manager, name)
                return self.system(name.queue)
            case ConnectorFormatName():
                return self._connector_queue(name)
            case MulticastFormatName():
                raise UnsupportedFormatName(
                    f"{name} is a multicast address: it is sent to, alone, and read by queues "
                    "that have it"
                )
            case _:
                raise UnsupportedFormatName(f"{name} names no single queue of this computer")

    def public(self, identifier: Guid) -> LocalQueue | None:
        """Find a public queue of this computer."""
        found = self._by_identifier.get(identifier)
        return found if found is not None and found.is_public else None

    def find_here(self, name: LocalQueueName) -> LocalQueue:
        """Find a queue of this computer by the part of a name that says nothing else."""
        return self._named(name, name.path_text, create=False)

    def find_destination(self, name: str) -> LocalQueue:
        """Find where messages to a name go: into a queue of this computer, or an outgoing one."""
        found = read_name(name)
        if not isinstance(found, PathName):
            return self.destination(found)
        if fold(found.computer) in self._hosts:
            return self._named(found.queue, name, create=False)
        return self.destination(self.published.remote_name(found))

    def destination(self, name: FormatName, guest: Guest | None = None) -> LocalQueue:
        """Find where messages to a format name go; those of an application, unless for a guest."""
        match name:
            case DirectFormatName():
                foreign = self.connector_of(name.host)
                if foreign is not None:
                    if not name.openable_for_send:
                        raise UnsupportedFormatName(f"{name} takes no messages")
                    return foreign
                local = fold(name.host) in self._hosts
            case PrivateFormatName():
                local = name.queue_manager == self._counters.identifier
            case PublicFormatName():
                foreign = self.connector_to(name)
                if foreign is not None:
                    return foreign
                local = name.queue in self._by_identifier or not self.published.is_elsewhere(name)
            case _:
                local = True
        if local:
            return self.find_format_name(name)
        if guest is None and is_order_queue(name):
            raise AccessDenied(f"{name} belongs to the queue managers")
        return self.outgoing(name, guest=guest)

    def outgoing(
        self, name: FormatName, *, create: bool = True, guest: Guest | None = None
    ) -> LocalQueue:
        """Find the queue of messages that wait to leave for another computer. [MQDMPR 3.1.1.3]"""
        found = self._by_name.get(fold(str(name)))
        if found is not None:
            if guest is None and create:
                self.guests.adopt(found)
            return found
        if not create:
            raise QueueNotActive(str(name))
        self.guests.require_new(name, self.outgoing_count, guest)
        number = self._counters.take_queue()
        properties = QueueProperties(
            identifier=Guid(self._rng.randbytes(16)),
            path_name=str(name),
            manager=self._counters.identifier,
        )
        totals = self.guests.totals_for(reports=guest is not None and guest.reports)
        queue = LocalQueue(
            number, str(name), properties, self.reader, totals, role=QueueRole.OUTGOING
        )
        if guest is None:
            queue.belong_to(totals, opener=self.guests.opener)
        else:
            queue.belong_to(totals, guest=guest.who)
        self._ledger.add(QueueCreated(self, queue))
        return queue

    def connector_of(self, host: str) -> LocalQueue | None:
        """Find the queue of the connector to a foreign computer; None for any other computer.

        Transactional messages go into its twin.
        """
        connector = self._connectors.get(fold(host))
        if connector is None:
            return None
        queue = self._connector_queue(ConnectorFormatName(connector))
        twin = queue.transactional_twin
        if twin is None or twin not in self:
            twin = self._connector_queue(ConnectorFormatName(connector, transactional=True))
            queue.take_part(twin)
        return queue

    def connector_to(self, name: PublicFormatName) -> LocalQueue | None:
        """Find the queue of the connector to a foreign queue of the directory; None for others."""
        computer = self.published.foreign_computer(name)
        return self.connector_of(computer) if computer else None

    def _connector_queue(self, name: ConnectorFormatName) -> LocalQueue:
        """Find a connector queue; one that the configuration asks for comes into being."""
        found = self._by_name.get(fold(str(name)))
        if found is not None:
            return found
        if name.connector not in self._connectors.values():
            raise QueueNotFound(
                f"{name}: [connectors] in the configuration names no such connector"
            )
        properties = QueueProperties(
            identifier=Guid(self._rng.randbytes(16)),
            path_name=str(name),
            kind=QueueKind.CONNECTOR,
            transactional=name.transactional,
            manager=self._counters.identifier,
        )
        number = self._counters.take_queue()
        queue = LocalQueue(number, str(name), properties, self.reader, self.totals)
        self._ledger.add(QueueCreated(self, queue))
        return queue

    def find_outgoing(self, name: str) -> LocalQueue:
        """Find an outgoing queue as an operator names it: by the queue it leads to."""
        found = self._by_name.get(fold(name))
        if found is not None:
            return found
        wanted = read_name(name)
        if isinstance(wanted, PathName):
            wanted = self.published.remote_name(wanted)
        return self.outgoing(wanted, create=False)

    def awaiting(self, outgoing: LocalQueue) -> LocalQueue:
        """Find where messages wait that have arrived and whose end is still to be heard of."""
        found = outgoing.subqueues.get("")
        if found is None:
            found = self._child(outgoing, QueueRole.AWAITING, f"{outgoing.name};awaiting")
            self._ledger.add(QueueCreated(self, found))
        return found

    def drop_outgoing(self, queue: LocalQueue) -> None:
        """Forget an outgoing queue that is empty and that nobody has open."""
        self._ledger.add(OutgoingForgotten(self, [queue, *queue.subqueues.values()]))

    def local_path(self, name: str) -> LocalQueueName:
        """Read the path name of a queue that is to be created here."""
        path = read_path(name)
        self._require_local(path.computer, name)
        return self.published.new_name(path.queue, name)

    # Changing.

    def create(self, path: LocalQueueName, properties: QueueProperties) -> LocalQueue:
        """Create a queue and its journal."""
        self.require_new(path)
        number = self._counters.take_queue()
        properties = msgspec.structs.replace(
            properties,
            private_number=number if path.private else None,
            manager=self._counters.identifier,
        )
        queue = LocalQueue(number, path.path_text, properties, self.reader, self.totals)
        journal = self._child(queue, QueueRole.JOURNAL, f"{path.path_text};journal")
        self._ledger.add(QueueCreated(self, queue))
        self._ledger.add(QueueCreated(self, journal))
        return queue

    def require_new(self, path: LocalQueueName) -> None:
        """Refuse a name that is taken, and one queue too many."""
        if path.key in self._by_name:
            raise QueueExists(path.path_text)
        if len(self._by_id) + 2 > self._config.queues_max:
            raise InsufficientResources(f"{self._config.queues_max} queues are allowed")

    def subqueue(self, parent: LocalQueue, name: str) -> LocalQueue:
        """Find a subqueue, or create it: they come into being when they are first opened."""
        found = parent.subqueues.get(fold(name))
        if found is not None:
            return found
        if len(self._by_id) >= self._config.queues_max:
            raise InsufficientResources(f"{self._config.queues_max} queues are allowed")
        queue = self._child(parent, QueueRole.SUBQUEUE, f"{parent.name};{name}")
        self._ledger.add(QueueCreated(self, queue))
        return queue

    def change(self, queue: LocalQueue, properties: QueueProperties) -> None:
        """Give a queue other properties."""
        self._ledger.add(PropertiesChanged(self, queue, properties))

    def delete(self, queue: LocalQueue) -> list[LocalQueue]:
        """Take a queue, its journal and subqueues out of sight; give them, for their entries."""
        if not queue.can.stand_alone:
            raise AccessDenied(f"{queue.name} goes only with the queue it belongs to")
        if queue.is_connector:
            name = parse_format_name(queue.name)
            assert isinstance(name, ConnectorFormatName)
            if name.connector in self._connectors.values():
                raise AccessDenied(f"{queue.name}: first take it out of [connectors]")
        family = [queue, *queue.subqueues.values()]
        if queue.journal is not None:
            family.append(queue.journal)
        self._ledger.add(QueuesDeleted(self, family))
        return family

    # Internals.

    def _named(self, name: QueueOnComputer, shown: str, *, create: bool) -> LocalQueue:
        if isinstance(name, SystemQueue):
            return self.system(name)
        queue = self._by_name.get(name.key)
        if queue is not None:
            return queue
        if create and name.subqueue is not None and not name.journal:
            parent = self._by_name.get(LocalQueueName(name.name, name.private).key)
            if parent is not None:
                return self.subqueue(parent, name.subqueue)
        raise QueueNotFound(shown)

    def _numbered(self, number: int, name: FormatName, *, journal: bool) -> LocalQueue:
        queue = self._by_id.get(number)
        if queue is None or queue.properties.private_number != number:
            raise QueueNotFound(str(name))
        return self._journal_if(queue, journal, name)

    def _identified(self, identifier: Guid, name: PublicFormatName) -> LocalQueue:
        queue = self._by_identifier.get(identifier)
        if queue is not None:
            return self._journal_if(queue, name.journal, name)
        if self.published.is_elsewhere(name):
            raise RemoteMachineNotAvailable(f"{name} is not on this computer")
        raise self.published.missing(f"{name}: no public queue is known under it")

    def _journal_if(self, queue: LocalQueue, journal: bool, name: FormatName) -> LocalQueue:
        if not journal:
            return queue
        if queue.journal is None:
            raise QueueNotFound(str(name))
        return queue.journal

    def _require_local(self, host: str, shown: str) -> None:
        if fold(host) not in self._hosts:
            raise RemoteMachineNotAvailable(
                f"{shown} is not on this computer ({self._config.name}){meant_private(host)}"
            )

    def _require_me(self, manager: Guid, name: FormatName) -> None:
        if manager != self._counters.identifier:
            raise RemoteMachineNotAvailable(f"{name} is not on this computer")

    def _child(self, parent: LocalQueue, role: QueueRole, name: str) -> LocalQueue:
        properties = msgspec.structs.replace(
            parent.properties,
            identifier=Guid(self._rng.randbytes(16)),
            path_name=name,
            kind=QueueKind.PRIVATE,
            base_priority=0,
            private_number=None,
            journaling=False,
            quota_kb=parent.properties.journal_quota_kb
            if role is QueueRole.JOURNAL
            else parent.properties.quota_kb,
            journal_quota_kb=JOURNAL_QUOTA_DEFAULT_KB,
        )
        number = self._counters.take_queue()
        return LocalQueue(
            number, name, properties, self.reader, self.totals, role=role, parent=parent
        )
