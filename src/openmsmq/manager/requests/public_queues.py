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
from openmsmq.manager.directory.service import DirectoryService
from openmsmq.manager.queues.connections import Connection
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.replies import Replies
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.requests.admin import Administration
from openmsmq.manager.requests.removal import QueueRemoval
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.clock import Instant
from openmsmq.model.directory import Change, ObjectKind, Removal
from openmsmq.model.errors import MsmqError, QueueDeleted
from openmsmq.model.identity import Guid
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
        base: Foundation,
        table: QueueTable,
        admin: Administration,
        directory: DirectoryService,
        replies: Replies,
        removal: QueueRemoval,
    ) -> None:
        self._config = base.config
        self._counters = base.counters
        self._table = table
        self._admin = admin
        self._directory = directory
        self._replies = replies
        self._removal = removal
        self._refused: dict[Guid, str] = {}
        """Queues that the directory says are here and that could not be created, and why."""

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
        properties = self._admin.new_properties(path, request, state.caller, now)
        wanted = self._published(properties)

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
        self.write(state, call, queue, self._admin.changed_properties(queue, request, now), now)

    def write(
        self,
        state: Connection,
        call: int,
        queue: LocalQueue,
        properties: QueueProperties,
        now: Instant,
        reply: api.AnyReply | None = None,
    ) -> None:
        """Give a queue other properties in the directory, then here; answers with the queue."""
        wanted = self._published(properties)

        def done(changes: Sequence[Change], now: Instant) -> None:
            if queue not in self._table:
                raise QueueDeleted(queue.name)
            self.take(changes, now)
            shown = reply or api.Queues([self._admin.status_of(queue)])
            self._replies.answer_when_done(state.id, call, shown)

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
        """Return a queue as the directory has it: named with its computer, shortly and in full."""
        name = properties.path_name.rpartition("\\")[2]
        computer = self._config.directory.qualified_name
        return msgspec.structs.replace(
            properties,
            path_name=f"{self._config.name}\\{name}",
            qualified_path_name=f"{computer}\\{name}" if computer else "",
            manager=self._counters.identifier,
            private_number=None,
        )

    # What the directory says.

    def take(self, changes: Iterable[Change], now: Instant) -> None:
        """Do what has become of our queues in the directory.

        What is gone goes first: another may have its name.
        """
        found: list[QueueProperties] = []
        for change in changes:
            if isinstance(change, QueueProperties):
                found.append(change)
            elif isinstance(change, Removal) and change.kind is ObjectKind.QUEUE:
                self._refused.pop(change.identifier, None)
                queue = self._table.public(change.identifier)
                if queue is not None:
                    self._removal.delete(queue, now)
        for published in found:
            self._take_queue(published)

    def retry(self) -> None:
        """Create what could not be created before."""
        queues = self._directory.copy.image.queues
        for identifier in list(self._refused):
            published = queues.get(identifier)
            if published is None:
                del self._refused[identifier]
            else:
                self._take_queue(published)

    @property
    def problem(self) -> str:
        """Return where the directory and the queues here differ; empty if they do not."""
        if self._refused:
            reason = next(iter(self._refused.values()))
            return f"{len(self._refused)} public queues could not be created here: {reason}"
        if not self._directory.is_settled:
            return ""
        published = self._directory.copy.image.queues
        own = self._counters.identifier
        lost = [
            queue.name
            for queue in self._table
            if queue.is_public
            and queue.can.stand_alone
            and (
                (known := published.get(queue.properties.identifier)) is None
                or known.manager != own
            )
        ]
        if not lost:
            return ""
        return (
            f"{len(lost)} public queues of this computer, such as {lost[0]}, are not in the "
            "directory: change a property of each to publish it again, or delete it"
        )

    def _take_queue(self, published: QueueProperties) -> None:
        self._refused.pop(published.identifier, None)
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
        except MsmqError as error:
            # A name that is taken here, or no room: the directory says what it says.
            self._refused[published.identifier] = f"{published.path_name}: {error}"
