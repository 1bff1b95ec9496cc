"""Creating, opening and showing queues, and the queue manager as a whole."""

from __future__ import annotations

from typing import Final

import msgspec

from openmsmq.api import messages as api
from openmsmq.manager.access.given import read_given, require_owner
from openmsmq.manager.directory.known_ways import KnownWays
from openmsmq.manager.directory.published import is_public
from openmsmq.manager.directory.service import DirectoryService
from openmsmq.manager.notices import NoticeKind
from openmsmq.manager.queues.connections import Connection, OpenQueue
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.queues.targets import ForeignQueue, Target
from openmsmq.manager.transfer.sessions import Sessions
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.errors import (
    AccessDenied,
    IllegalPropertyValue,
    InsufficientResources,
    InvalidParameter,
    MsmqError,
    NoDirectory,
    PropertyNotAllowed,
    QueueNotFound,
    RemoteMachineNotAvailable,
    UnsupportedAccessMode,
    UnsupportedFormatName,
)
from openmsmq.model.identity import GUID_BYTES, NIL_GUID, Guid
from openmsmq.model.limits import (
    JOURNAL_QUOTA_DEFAULT_KB,
    QUEUE_QUOTA_DEFAULT_KB,
)
from openmsmq.model.names import (
    DirectFormatName,
    FormatName,
    IllegalName,
    LocalQueueName,
    MachineFormatName,
    MulticastFormatName,
    PathName,
    PrivateFormatName,
    PublicFormatName,
    SystemQueue,
    parse_format_name,
    read_name,
)
from openmsmq.model.names.parts import fold
from openmsmq.model.queue import (
    AccessMode,
    QueueKind,
    QueuePrivacy,
    QueueProperties,
    ShareMode,
)
from openmsmq.model.topology import ManagerRole
from openmsmq.protocol.pgm.limits import MULTICAST_GROUPS_MAX_COUNT
from openmsmq.security.access.access import QUEUE, QUEUE_DEFAULT, queue_descriptor
from openmsmq.security.access.callers import Caller
from openmsmq.security.access.descriptors import encode, encode_given
from openmsmq.security.access.sids import ADMINISTRATORS, Sid

_ADMIN_ACCESS: Final = (AccessMode.RECEIVE_ADMIN, AccessMode.PEEK_ADMIN)
_ONLY_READERS: Final = "only readers can keep other readers out"
_CHANGEABLE: Final = (
    "label",
    "journaling",
    "quota_kb",
    "journal_quota_kb",
    "authentication_required",
    "base_priority",
)
_OWN_QUEUES: Final = frozenset({"order_queue$", "notify_queue$"})
"""Private queues over which queue managers talk to each other; applications have none such."""


class Administration:
    """What applications ask about queues, rather than about messages."""

    def __init__(
        self,
        base: Foundation,
        table: QueueTable,
        sessions: Sessions,
        directory: DirectoryService,
        ways: KnownWays,
    ) -> None:
        self._config = base.config
        self._counters = base.counters
        self._rng = base.rng
        self._notices = base.notices
        self._started_time_s = base.started.unix_s
        self._table = table
        self._sessions = sessions
        self._directory = directory
        self._ways = ways
        self.store_problem = ""
        self._store_problem_since_s = 0
        self._vitals = api.Vitals()
        self.alarms: list[api.AlarmStatus] = []
        """As the driver has told them the last time."""

    def take_alarms(self, alarms: list[api.AlarmStatus]) -> None:
        """Note which alarms there are, and which of them are raised."""
        self.alarms = alarms

    @property
    def quota_use(self) -> tuple[int, int]:
        """How many bytes count for the quota of the queue manager, and that quota in KB."""
        totals = self._table.totals
        return totals.bytes + totals.staged_bytes, totals.quota_kb

    def take_vitals(self, vitals: api.Vitals) -> None:
        """Note what the driver has measured."""
        self._vitals = vitals

    def store_took(self) -> None:
        """The store has room."""
        self.store_problem = ""

    def store_refused(self, error: MsmqError, now: Instant) -> None:
        """The store took nothing: the disk is full, or failed."""
        if not self.store_problem:
            self._store_problem_since_s = now.unix_s
        self.store_problem = error.detail or error.name

    def create(self, request: api.CreateQueue, caller: Caller, now: Instant) -> LocalQueue:
        """Create a private queue."""
        path = self._table.local_path(request.path)
        return self._table.create(path, self.new_properties(path, request, caller, now))

    def new_properties(
        self, path: LocalQueueName, request: api.CreateQueue, caller: Caller, now: Instant
    ) -> QueueProperties:
        """Return the properties of a queue that is to be created."""
        if fold(path.name) in _OWN_QUEUES:
            raise AccessDenied(f"{path.path_text} belongs to the queue managers")
        return QueueProperties(
            identifier=Guid(self._rng.randbytes(16)),
            path_name=path.path_text,
            kind=QueueKind.PRIVATE if path.private else QueueKind.PUBLIC,
            manager=self._counters.identifier,
            label=request.label,
            service_type=_guid(request.service_type),
            created_time_s=now.unix_s,
            modified_time_s=now.unix_s,
            transactional=request.transactional,
            journaling=request.journaling,
            quota_kb=_quota(request.quota_kb, QUEUE_QUOTA_DEFAULT_KB),
            journal_quota_kb=_quota(request.journal_quota_kb, JOURNAL_QUOTA_DEFAULT_KB),
            authentication_required=request.authentication_required,
            privacy=_privacy(request.privacy),
            base_priority=request.base_priority,
            multicast_address=self._address(request.multicast_address, request.transactional),
            security_descriptor=_descriptor_for(caller, request.security),
        )

    def changed_properties(
        self, queue: LocalQueue, request: api.ChangeQueue, now: Instant
    ) -> QueueProperties:
        """Return the properties that a queue is to have: all may change but those of its nature."""
        if not queue.can.stand_alone:
            raise PropertyNotAllowed(f"{queue.name} has the properties of its queue")
        if request.journaling and queue.journal is None:
            raise PropertyNotAllowed(f"{queue.name} has no journal: its connector keeps its own")
        changes = {
            name: value for name in _CHANGEABLE if (value := getattr(request, name)) is not None
        }
        if request.privacy is not None:
            changes["privacy"] = _privacy(request.privacy)
        if request.service_type is not None:
            changes["service_type"] = _guid(request.service_type)
        if request.multicast_address is not None:
            changes["multicast_address"] = self._address(
                request.multicast_address, queue.properties.transactional
            )
        return msgspec.structs.replace(queue.properties, **changes, modified_time_s=now.unix_s)

    def _address(self, text: str, transactional: bool) -> str | None:
        """Return a multicast address as it is kept; None for none. [MQMQ 2.3.1.23]"""
        if not text:
            return None
        try:
            name = parse_format_name(f"MULTICAST={text}")
        except IllegalName as error:
            raise IllegalPropertyValue(
                f"multicast address {text}: give an address from 224.0.0.0 to 239.255.255.255 and "
                f"a port, such as 234.1.1.1:8001 ({error})"
            ) from None
        assert isinstance(name, MulticastFormatName)
        if transactional:
            raise PropertyNotAllowed("no transactional message comes to a multicast address")
        known = self._table.addresses
        if name.group not in known and len(known) >= MULTICAST_GROUPS_MAX_COUNT:
            raise InsufficientResources(
                f"queues have {len(known)} multicast addresses already: use one of them again"
            )
        return name.group

    def change(self, queue: LocalQueue, properties: QueueProperties) -> None:
        """Give a queue other properties, and its journal another quota with them."""
        before = queue.properties
        self._table.change(queue, properties)
        journal = queue.journal
        if properties.journal_quota_kb != before.journal_quota_kb and journal is not None:
            self._table.change(
                journal,
                msgspec.structs.replace(journal.properties, quota_kb=properties.journal_quota_kb),
            )

    def open(self, state: Connection, target: Target, request: api.OpenQueue) -> OpenQueue:
        """Open a queue, if nobody who has it open stands in the way (C-132)."""
        try:
            access = AccessMode(request.access)
            share = ShareMode(request.share)
        except ValueError as error:
            raise InvalidParameter(str(error)) from None
        opened = OpenQueue(state.take_handle(), state.id, target, access, share)
        if isinstance(target, LocalQueue):
            self._open_queue(opened, target)
        elif share is ShareMode.DENY_RECEIVE:
            raise UnsupportedAccessMode(_ONLY_READERS)
        target.count_handles(1)
        return opened

    def _open_queue(self, opened: OpenQueue, queue: LocalQueue) -> None:
        """Note who reads a queue, unless it may not be opened like this."""
        access, share = opened.access, opened.share
        if access is AccessMode.SEND and not queue.can.be_sent_to:
            raise AccessDenied(f"{queue.name} takes no messages from applications")
        if access is AccessMode.MOVE and not queue.can.take_moved:
            raise AccessDenied(f"messages cannot be moved into {queue.name}")
        if access in _ADMIN_ACCESS and not queue.can.lead_away:
            raise UnsupportedAccessMode(f"{queue.name} is not an outgoing queue")
        if share is ShareMode.DENY_RECEIVE and not opened.reads:
            raise UnsupportedAccessMode(_ONLY_READERS)
        if opened.reads:
            queue.readership.begin(queue.name, alone=share is ShareMode.DENY_RECEIVE)

    def close(self, opened: OpenQueue) -> None:
        """Undo what `open` noted."""
        opened.target.count_handles(-1)
        if opened.reads:
            opened.queue.readership.end()

    def opened(self, opened: OpenQueue) -> api.Opened:
        """Tell an application what it has opened."""
        target = opened.target
        if isinstance(target, LocalQueue):
            name, is_here = self._format_name(target), not target.can.lead_away
            transactional, owner = target.properties.transactional, self._owner_of(target, name)
        else:
            name, is_here = parse_format_name(target.name), isinstance(target, ForeignQueue)
            transactional, owner = False, self._owner_named(name)
        return api.Opened(
            opened.handle,
            target.name,
            str(name),
            name.wire_text if isinstance(name, DirectFormatName) else "",
            transactional,
            owner,
            is_here,
        )

    def _owner_of(self, queue: LocalQueue, name: FormatName) -> bytes:
        if queue.is_public:
            return bytes(self._counters.identifier)
        return self._owner_named(name)

    def _owner_named(self, name: FormatName) -> bytes:
        if isinstance(name, PublicFormatName):
            return bytes(self._table.published.owner_of(name))
        return bytes(NIL_GUID)

    def names(self, name: str) -> api.Names:
        """Tell the names of a queue; of one elsewhere, those that need no directory."""
        try:
            queue = self._table.find(name)
        except RemoteMachineNotAvailable:
            return self._remote_names(name)
        except QueueNotFound:
            self._require_directory(name)
            raise
        if queue.is_connector:
            return api.Names(queue.name, queue.name, "")
        return api.Names(
            f"{self._config.name}\\{queue.name}",
            str(self._format_name(queue)),
            self._private_name(queue),
        )

    def _remote_names(self, name: str) -> api.Names:
        published = self._table.published
        found = read_name(name)
        if isinstance(found, PublicFormatName):
            queue = published.queue_of(found)
            path_name = "" if queue is None else queue.path_name
            return api.Names(path_name, str(found), "")
        if isinstance(found, PathName) and is_public(found.queue):
            return api.Names(str(found), str(published.name_of(found)), "")
        return _remote_names(name)

    def _require_directory(self, name: str) -> None:
        """Refuse a name under which there is nothing here, and perhaps something in a directory."""
        found = read_name(name)
        if isinstance(found, PublicFormatName) or (
            isinstance(found, PathName) and is_public(found.queue)
        ):
            detail = f"{name}: public queues are found in a directory, and there is none"
            self._table.published.require_directory(detail)

    def foreign_name(self, name: str) -> str:
        """Return the format name of a queue of a foreign computer."""
        return self._remote_names(name).format_name

    def _private_name(self, queue: LocalQueue) -> str:
        manager = self._counters.identifier
        owner = queue.parent if queue.can.hold_copies and queue.parent is not None else queue
        if queue.can.belong_to_manager:
            name = PathName.parse(queue.name).queue
            return str(MachineFormatName(manager, name)) if isinstance(name, SystemQueue) else ""
        number = owner.properties.private_number
        if number is None:
            return ""
        return str(PrivateFormatName(manager, number, journal=owner is not queue))

    def status_of(self, queue: LocalQueue) -> api.QueueStatus:
        """Show a queue."""
        properties, journal, flow = queue.properties, queue.journal, queue.flow
        return api.QueueStatus(
            path_name=queue.name,
            format_name=str(self._format_name(queue)),
            identifier=bytes(properties.identifier),
            transactional=properties.transactional,
            journaling=properties.journaling,
            quota_kb=properties.quota_kb,
            journal_quota_kb=properties.journal_quota_kb,
            label=properties.label,
            authentication_required=properties.authentication_required,
            privacy=properties.privacy,
            message_count=queue.count,
            message_bytes=queue.size,
            journal_message_count=0 if journal is None else journal.count,
            journal_message_bytes=0 if journal is None else journal.size,
            created_time_s=properties.created_time_s,
            modified_time_s=properties.modified_time_s,
            open_count=queue.open_count,
            waiting_count=len(queue.waiting),
            last_arrival_number=self._counters.last_arrival,
            reserved_for=queue.reservation.reader,
            reserved_start=queue.reservation.start,
            reserved_stop=queue.reservation.stop,
            service_type=bytes(properties.service_type),
            base_priority=properties.base_priority,
            multicast_address=properties.multicast_address or "",
            is_public=queue.is_public,
            kind=queue.role.value,
            in_count=flow.in_count,
            in_bytes=flow.in_bytes,
            out_count=flow.out_count,
            out_bytes=flow.out_bytes,
            expired_count=flow.expired_count,
            purged_count=flow.purged_count,
            moved_count=flow.moved_count,
            refused_count=flow.refused_count,
            oldest_time_s=queue.oldest_time_s if queue.count else 0,
        )

    def status(
        self, connections: int, transactions: tuple[int, int], problem: str, now: Instant
    ) -> api.Status:
        """Show the queue manager; `problem` is what is wrong with its public queues.

        Of transactions it is told how many there are, and how many of them are prepared.
        """
        totals, counts = self._table.totals, self._notices.counts
        return api.Status(
            manager_name=self._config.name,
            manager=bytes(self._counters.identifier),
            software=self._config.software,
            queue_count=sum(queue.can.stand_alone for queue in self._table),
            message_count=sum(queue.count for queue in self._table),
            message_bytes=totals.bytes,
            connection_count=connections,
            transaction_count=transactions[0],
            started_time_s=self._started_time_s,
            now_s=now.unix_s,
            online=self._sessions.online,
            outgoing_count=sum(queue.can.lead_away and queue.count > 0 for queue in self._table),
            directory=self._directory.role.value,
            directory_problem=self._directory.problem or problem,
            directory_number=self._directory.copy.position.number,
            quota_kb=totals.quota_kb,
            store_problem=self.store_problem,
            store_problem_since_s=self._store_problem_since_s,
            express_memory_kb=min(totals.express_memory_kb, totals.quota_kb),
            express_memory_bytes=totals.express_bytes,
            notices=[
                api.NoticeCount(kind.value, reason, count)
                for (kind, reason), count in sorted(counts.items(), key=_name_of_notice)
            ],
            vitals=self._vitals,
            in_doubt_count=transactions[1],
            session_count=len(self._sessions.peers),
            unreached_count=self._sessions.failed_count,
            resend_count=self._sessions.resend_count,
            staged_bytes=totals.staged_bytes,
            roles=[role.value for role in self._roles()],
        )

    def _roles(self) -> list[ManagerRole]:
        """Return what the queue manager does for others: by its doors, and by the directory.

        It routes when the directory says so: until then nobody brings it messages of others.
        """
        roles = list(self._config.roles)
        own = self._directory.copy.image.managers.get(self._counters.identifier)
        if own is not None and own.routing_server:
            roles.append(ManagerRole.ROUTING_SERVER)
            if self._ways.routes.is_site_gate:
                roles.append(ManagerRole.SITE_GATE)
        if self._config.directory.serves_others:
            roles.append(ManagerRole.DIRECTORY_SERVER)
        return roles

    def _format_name(self, queue: LocalQueue) -> FormatName:
        if queue.is_connector or queue.can.lead_away:
            return parse_format_name(queue.name)
        if queue.is_public:
            return PublicFormatName(queue.properties.identifier)
        return self._direct_name(queue)

    def _direct_name(self, queue: LocalQueue) -> DirectFormatName:
        path = PathName.parse(f"{self._config.name}\\{queue.name}")
        return DirectFormatName.from_path(path)


def _descriptor_for(caller: Caller, given: bytes) -> bytes:
    """Return the descriptor of a new queue; what an administrator makes belongs to all of them."""
    if not given:
        return b"" if caller.is_administrator else encode(queue_descriptor(caller.user))
    wanted = read_given(given, QUEUE)
    if wanted.owner:
        require_owner(caller, Sid(wanted.owner))
    else:
        owner = ADMINISTRATORS if caller.is_administrator else caller.user
        wanted = msgspec.structs.replace(wanted, owner=bytes(owner))
    made = encode_given(wanted)
    return b"" if made == QUEUE_DEFAULT else made


def _name_of_notice(counted: tuple[tuple[NoticeKind, str], int]) -> tuple[str, str]:
    (kind, reason), _ = counted
    return kind.value, reason


def _quota(given: int | None, default: int) -> int:
    return default if given is None else given


def _guid(data: bytes) -> Guid:
    if len(data) != GUID_BYTES:
        raise IllegalPropertyValue(f"service_type of {len(data)} bytes; a GUID has {GUID_BYTES}")
    return Guid(data)


def _privacy(value: int) -> QueuePrivacy:
    try:
        return QueuePrivacy(value)
    except ValueError:
        raise IllegalPropertyValue(f"privacy {value}; 0, 1 or 2") from None


def _remote_names(name: str) -> api.Names:
    """Translate a name whose computer it tells; what else there is, a directory would know."""
    found = read_name(name)
    if isinstance(found, PathName):
        found = DirectFormatName.from_path(found)
    if not isinstance(found, DirectFormatName):
        raise NoDirectory(f"{name}: only a directory knows this queue manager")
    if found.protocol.is_http:
        raise UnsupportedFormatName(f"{name}: a URL has no path name")
    return api.Names(str(PathName(found.host, found.queue)), str(found), "")
