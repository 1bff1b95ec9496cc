"""What applications ask about queues, and about the queue manager itself."""

from __future__ import annotations

import msgspec

from openmsmq.api import messages as api
from openmsmq.manager.access.control import AccessControl
from openmsmq.manager.access.handlers import Handlers
from openmsmq.manager.queues.connections import Connection
from openmsmq.manager.queues.replies import Replies
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.requests.admin import Administration
from openmsmq.manager.requests.public_queues import PublicQueues
from openmsmq.manager.requests.removal import QueueRemoval
from openmsmq.manager.transactions.requests import TransactionRequests
from openmsmq.model.clock import Instant
from openmsmq.model.names.parts import fold
from openmsmq.security.access.callers import Caller


class QueueRequests:
    """Shows, creates, changes and deletes queues."""

    def __init__(
        self,
        table: QueueTable,
        admin: Administration,
        public: PublicQueues,
        removal: QueueRemoval,
        transactions: TransactionRequests,
        replies: Replies,
        access: AccessControl,
    ) -> None:
        self._table = table
        self._admin = admin
        self._public = public
        self._removal = removal
        self._transactions = transactions
        self._replies = replies
        self._access = access

    def serve(self, handlers: Handlers) -> None:
        """Say which requests are carried out here."""
        handlers.add(api.CreateQueue, self.create_queue)
        handlers.add(api.ChangeQueue, self.change_queue)
        handlers.add(api.DeleteQueue, self.delete_queue)
        handlers.add(api.GetQueue, self.get_queue)
        handlers.add(api.GetNames, self.get_names)
        handlers.add(api.ListQueues, self.list_queues)
        handlers.add(api.GetStatus, self.get_status)

    def create_queue(
        self, state: Connection, call: int, request: api.CreateQueue, now: Instant
    ) -> None:
        """Create a queue; a public one in the directory first."""
        path = self._table.local_path(request.path)
        if not path.private:
            self._public.create(state, call, path, request, now)
            return
        queue = self._admin.create(request, state.caller, now)
        self._replies.answer_when_done(state.id, call, api.Queues([self._admin.status_of(queue)]))

    def change_queue(
        self, state: Connection, call: int, request: api.ChangeQueue, now: Instant
    ) -> None:
        """Change the properties of a queue."""
        queue = self._table.find(request.name)
        if queue.is_public:
            self._public.change(state, call, queue, request, now)
            return
        self._admin.change(queue, self._admin.changed_properties(queue, request, now))
        self._replies.answer_when_done(state.id, call, api.Queues([self._admin.status_of(queue)]))

    def delete_queue(
        self, state: Connection, call: int, request: api.DeleteQueue, now: Instant
    ) -> None:
        """Delete a queue and what is in it."""
        queue = self._table.find(request.name)
        if queue.is_public and queue.can.stand_alone:
            self._public.delete(state, call, queue, now)
            return
        self._removal.delete(queue, now)
        self._replies.answer_when_done(state.id, call, api.Done())

    def get_queue(self, state: Connection, call: int, request: api.GetQueue, _: Instant) -> None:
        """Show one queue."""
        queue = self._table.find(request.name)
        self._replies.answer_when_done(state.id, call, api.Queues([self._admin.status_of(queue)]))

    def get_names(self, state: Connection, call: int, request: api.GetNames, _: Instant) -> None:
        """Tell the other names of a queue."""
        self._replies.answer_when_done(state.id, call, self._admin.names(request.name))

    def list_queues(
        self, state: Connection, call: int, request: api.ListQueues, _: Instant
    ) -> None:
        """Show all queues."""
        queues = [
            self._admin.status_of(queue)
            for queue in self._table
            if not queue.can.hold_sent
            and (request.everything or queue.can.stand_alone)
            and self._access.may_see(state.caller, queue)
        ]
        self._replies.answer_when_done(state.id, call, api.Queues(queues))

    def get_status(self, state: Connection, call: int, _: api.GetStatus, now: Instant) -> None:
        """Show the queue manager."""
        transactions = len(self._transactions), len(self._transactions.prepared())
        status = self._admin.status(
            len(self._replies.connections), transactions, self._public.problem, now
        )
        alarms = [self._shown_to(state.caller, alarm) for alarm in self._admin.alarms]
        self._replies.answer(state.id, call, msgspec.structs.replace(status, alarms=alarms))

    def _shown_to(self, caller: Caller, alarm: api.AlarmStatus) -> api.AlarmStatus:
        """Return what a caller may know of an alarm: that it is raised, and of which own queues."""
        by_name = self._table.by_name
        seen = [
            raised
            for raised in alarm.raised
            if not raised.queue
            or (
                (queue := by_name.get(fold(raised.queue))) is not None
                and self._access.may_see(caller, queue)
            )
        ]
        return msgspec.structs.replace(alarm, raised=seen)
