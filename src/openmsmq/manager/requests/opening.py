"""Opening queues and closing them, and cursors."""

from __future__ import annotations

from typing import Final

from openmsmq.api import messages as api
from openmsmq.manager.access.control import AccessControl
from openmsmq.manager.access.handlers import Handlers
from openmsmq.manager.queues.connections import Connection, OpenQueue
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.reads import Cursor
from openmsmq.manager.queues.replies import Replies
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.queues.targets import (
    ForeignQueue,
    MulticastTarget,
    QueueList,
    Target,
    parse_list,
    parse_multicast,
)
from openmsmq.manager.reading.elsewhere import ElsewhereRequests
from openmsmq.manager.reading.requests import ReadRequests
from openmsmq.manager.requests.admin import Administration
from openmsmq.manager.requests.effects import QueueOpened
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.access import ManagerAccess
from openmsmq.model.clock import Instant
from openmsmq.model.errors import (
    InsufficientResources,
    InvalidHandle,
    InvalidParameter,
    MsmqError,
    OperationCancelled,
    QueueNotFound,
    RemoteMachineNotAvailable,
    UnsupportedFormatName,
)
from openmsmq.model.names import ConnectorFormatName, PathName, read_name
from openmsmq.model.names.parts import fold
from openmsmq.model.queue import AccessMode
from openmsmq.security.access.callers import Caller

_ADMIN_ACCESS: Final = (AccessMode.RECEIVE_ADMIN, AccessMode.PEEK_ADMIN)


class OpenRequests:
    """Opens queues for applications, as far as those may."""

    def __init__(
        self,
        base: Foundation,
        table: QueueTable,
        admin: Administration,
        reads: ReadRequests,
        replies: Replies,
        access: AccessControl,
    ) -> None:
        self.elsewhere = ElsewhereRequests(base, replies, access)
        self._config = base.config
        self._ledger = base.ledger
        self._table = table
        self._admin = admin
        self._reads = reads
        self._replies = replies
        self._access = access

    def serve(self, handlers: Handlers) -> None:
        """Say which requests are carried out here."""
        handlers.add(api.OpenQueue, self.open)
        handlers.add(api.CloseQueue, self.close)
        handlers.add(api.CreateCursor, self.create_cursor)
        handlers.add(api.CloseCursor, self.close_cursor)

    def open(self, state: Connection, call: int, request: api.OpenQueue, _: Instant) -> None:
        """Open a queue; a subqueue comes into being when a reader opens it."""
        if len(state.queues) + len(state.elsewhere) >= self._config.open_queues_max:
            raise InsufficientResources(f"{self._config.open_queues_max} queues are open already")
        _require_openable(request)
        if not state.caller.is_unlimited:
            self._require_rights(state.caller, request)
        makes_subqueues = request.access in (AccessMode.RECEIVE, AccessMode.PEEK, AccessMode.MOVE)
        target: Target
        if request.access == AccessMode.SEND:
            has_all = self._access.administers(state.caller)
            self._table.guests.open_for("" if has_all else state.caller.owner_name)
            target = self._destination(request.name)
        elif request.access in _ADMIN_ACCESS:
            target = self._table.find_outgoing(request.name)
        else:
            try:
                target = self._table.find(request.name, create=makes_subqueues)
            except RemoteMachineNotAvailable:
                if not self.elsewhere.can_open(request):
                    raise
                self.elsewhere.open(state, call, request)
                return
        if isinstance(target, QueueList):
            self._require_members(state.caller, target)
        opened = self._admin.open(state, target, request)
        reply = self._admin.opened(opened)
        self._ledger.add(QueueOpened(self._replies, self, state, call, opened, reply))

    def _require_rights(self, caller: Caller, request: api.OpenQueue) -> None:
        """Refuse a caller before anything comes into being for it."""
        try:
            access = AccessMode(request.access)
        except ValueError as error:
            raise InvalidParameter(str(error)) from None
        if access in _ADMIN_ACCESS:
            self._access.require_manager(caller, int(ManagerAccess.SET_PROPERTIES))
            return
        if access is AccessMode.SEND and (
            parse_list(request.name) is not None or parse_multicast(request.name) is not None
        ):
            self._access.require_elsewhere(caller, request.name)
            return
        try:
            queue = self._known(request.name)
        except RemoteMachineNotAvailable:
            if access is AccessMode.SEND:
                self._access.require_elsewhere(caller, request.name)
            return
        self._access.require_open(caller, queue, access)

    def _known(self, name: str) -> LocalQueue:
        """Find a queue, or the queue whose subqueue is meant."""
        try:
            return self._table.find(name)
        except QueueNotFound:
            parent, semicolon, _ = name.rpartition(";")
            if not semicolon:
                raise
            return self._table.find(parent)

    def _require_members(self, caller: Caller, members: QueueList) -> None:
        """Refuse a list with a queue to which the caller may not send by itself."""
        for name, queue in members.targets:
            if not queue.can.lead_away:
                self._access.require_open(caller, queue, AccessMode.SEND)
            elif fold(str(name)) in members.named:
                self._access.require_elsewhere(caller, str(name))

    def _destination(self, name: str) -> Target:
        names = parse_list(name)
        address = None if names is not None else parse_multicast(name)
        if address is not None:
            return MulticastTarget(address)
        if names is None:
            queue = self._table.find_destination(name)
            if queue.is_connector:
                return ForeignQueue(self._admin.foreign_name(name), queue)
            return queue
        return QueueList(names, self._table)

    def close(self, state: Connection, call: int, request: api.CloseQueue, _: Instant) -> None:
        """Close a queue."""
        closed = OperationCancelled("the queue was closed while the read waited")
        self.close_queue(state, state.queue(request.handle), closed)
        self._replies.answer(state.id, call, api.Done())

    def close_queue(self, state: Connection, opened: OpenQueue, error: MsmqError | None) -> None:
        """Close a queue because its application asks for it, or is gone."""
        if opened.reads:
            for read in list(opened.queue.waiting):
                if read.opened is opened:
                    self._reads.end_read(read, error)
        self._reads.locks.release(state, opened)
        for number in [
            number for number, cursor in state.cursors.items() if cursor.owner is opened
        ]:
            del state.cursors[number]
        del state.queues[opened.handle]
        self._admin.close(opened)

    def create_cursor(
        self, state: Connection, call: int, request: api.CreateCursor, _: Instant
    ) -> None:
        """Make a cursor."""
        opened = state.queue(request.handle)
        self._reads.require_readable(state, opened, peek=True, transaction=0)
        if len(state.cursors) >= self._config.open_queues_max:
            raise InsufficientResources(f"{self._config.open_queues_max} cursors are in use")
        cursor = Cursor(state.take_handle(), opened)
        state.cursors[cursor.id] = cursor
        self._replies.answer(state.id, call, api.CursorCreated(cursor.id))

    def close_cursor(
        self, state: Connection, call: int, request: api.CloseCursor, _: Instant
    ) -> None:
        """Give up a cursor, and the reads that wait by it. [MQDMPR 3.1.7.1.2]"""
        cursor = state.cursors.pop(request.cursor, None)
        if cursor is None:
            raise InvalidHandle(f"there is no cursor {request.cursor}")
        closed = OperationCancelled("the cursor was closed while the read waited")
        for read in list(cursor.owner.queue.waiting):
            if read.cursor is cursor:
                self._reads.end_read(read, closed)
        self._replies.answer(state.id, call, api.Done())


def _require_openable(request: api.OpenQueue) -> None:
    """Refuse a format name of a kind that cannot be opened like this. [MQDMPR 3.1.7.1.5]"""
    name = read_name(request.name)
    if isinstance(name, PathName):
        return
    if request.access == AccessMode.SEND:
        if name.is_read_only or isinstance(name, ConnectorFormatName):
            raise UnsupportedFormatName(f"{name} takes no messages from applications")
    elif request.access not in _ADMIN_ACCESS and not name.openable_for_receive:
        raise UnsupportedFormatName(f"{name} can only be sent to")
