"""Public queues of this queue manager: in the directory first, and then here. [MQDMPR 3.1.7.1.3]

What the directory says of them counts: whoever changes one there changes it here, when this queue
manager hears of it. So a queue that was published while the power failed is here after the next
look into the directory, and one that was removed there goes here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from openmsmq.api import messages as api
from openmsmq.manager.admin import Administration
from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.connections import Connection
from openmsmq.manager.counters import Counters
from openmsmq.manager.directory_service import DirectoryService
from openmsmq.manager.queue_table import QueueTable
from openmsmq.manager.queues import LocalQueue
from openmsmq.manager.replies import Replies
from openmsmq.model.clock import Instant
from openmsmq.model.directory import Change, ObjectKind, Removal
from openmsmq.model.errors import MsmqError
from openmsmq.model.names import IllegalPathName, LocalQueueName
from openmsmq.model.names.parts import check_queue_name
from openmsmq.model.queue import QueueKind, QueueProperties

_SHARED: Final = (
    "label",
    "service_type",
    "journaling",
    "quota_kb",
    "journal_quota_kb",
    "authentication_required",
    "privacy",
    "base_priority",
    "multicast_address",
    "security_descriptor",
)
"""What an administrator may change in the directory."""


class PublicQueues:
    """Creates, changes and deletes public queues, and does what the directory says of them."""

    def __init__(
        self,
        config: ManagerConfig,
        table: QueueTable,
        counters: Counters,
        admin: Administration,
        directory: DirectoryService,
        replies: Replies,
        delete: Callable[[LocalQueue, Instant], None],
    ) -> None:
        self._config = config
        self._table = table
        self._counters = counters
        self._admin = admin
        self._directory = directory
        self._replies = replies
        self._delete = delete

    # What applications ask for.

    def create(
        self,
        state: Connection,
        call: int,
        path: LocalQueueName,
        request: api.CreateQueue,
        now: Instant,
    ) -> None:
        """Publish a queue, then create it."""
        self._table.require_new(path)
        wanted = self._published(self._admin.new_properties(path, request, now))

        def done(changes: Sequence[Change], now: Instant) -> None:
            self.take(changes, now)
            # The directory may have chosen another identifier.
            queue = self._table.find(request.path)
            reply = api.Queues([self._admin.status_of(queue)])
            self._replies.answer_when_done(state.id, call, reply)

        self._write((wanted,), state, call, done, now)

    def change(
        self,
        state: Connection,
        call: int,
        queue: LocalQueue,
        request: api.ChangeQueue,
        now: Instant,
    ) -> None:
        """Change a queue in the directory, then here."""
        wanted = self._published(self._admin.changed_properties(queue, request, now))

        def done(changes: Sequence[Change], now: Instant) -> None:
            self.take(changes, now)
            reply = api.Queues([self._admin.status_of(queue)])
            self._replies.answer_when_done(state.id, call, reply)

        self._write((wanted,), state, call, done, now)

    def delete(self, state: Connection, call: int, queue: LocalQueue, now: Instant) -> None:
        """Take a queue out of the directory, then away (C-138)."""
        removal = Removal(ObjectKind.QUEUE, queue.properties.identifier)

        def done(_: Sequence[Change], now: Instant) -> None:
            self.take((removal,), now)
            self._replies.answer_when_done(state.id, call, api.Done())

        self._write((removal,), state, call, done, now)

    def _write(
        self,
        changes: tuple[Change, ...],
        state: Connection,
        call: int,
        done: Callable[[Sequence[Change], Instant], None],
        now: Instant,
    ) -> None:
        def refused(error: MsmqError, _: Instant) -> None:
            self._replies.fail(state.id, call, error)

        def checked(changes: Sequence[Change], now: Instant) -> None:
            try:
                done(changes, now)
            except MsmqError as error:
                refused(error, now)

        self._directory.write(changes, checked, refused, now)

    def _published(self, properties: QueueProperties) -> QueueProperties:
        """Give a queue as the directory has it: named with its computer."""
        name = properties.path_name.rpartition("\\")[2]
        return msgspec.structs.replace(
            properties,
            path_name=f"{self._config.name}\\{name}",
            manager=self._counters.identifier,
            private_number=None,
        )

    # What the directory says.

    def take(self, changes: Iterable[Change], now: Instant) -> None:
        """Do what has become of our queues in the directory."""
        for change in changes:
            if isinstance(change, Removal):
                queue = self._table.public(change.identifier)
                if change.kind is ObjectKind.QUEUE and queue is not None:
                    self._delete(queue, now)
            elif isinstance(change, QueueProperties):
                self._take_queue(change)

    def _take_queue(self, published: QueueProperties) -> None:
        if published.manager != self._counters.identifier:
            return
        queue = self._table.public(published.identifier)
        if queue is not None:
            said = {name: getattr(published, name) for name in _SHARED}
            properties = msgspec.structs.replace(queue.properties, **said)
            if properties != queue.properties:
                modified = {"modified_time_s": published.modified_time_s}
                self._admin.change(queue, msgspec.structs.replace(properties, **modified))
            return
        try:
            name = published.path_name.rpartition("\\")[2]
            check_queue_name(name, IllegalPathName)
            path = LocalQueueName(name, private=False)
            self._table.create(
                path,
                msgspec.structs.replace(published, path_name=path.path_text, kind=QueueKind.PUBLIC),
            )
        except MsmqError:
            # A name that is taken here, or no room: the directory says what it says.
            return
