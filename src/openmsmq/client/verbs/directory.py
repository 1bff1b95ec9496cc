"""What an application can ask of the directory that a queue manager has, as steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from openmsmq.api import messages as api
from openmsmq.client.steps import Steps, ask
from openmsmq.client.verbs.manager import ManagerHandle
from openmsmq.directory.image import DirectoryImage
from openmsmq.directory.rows import changes_in, row_of
from openmsmq.model.directory import NOWHERE, Change, DirectoryChanges, Position
from openmsmq.model.errors import InsufficientResources
from openmsmq.model.identity import Guid
from openmsmq.model.queue import QueueProperties

READINGS_MAX_COUNT: Final = 5
"""So often a long answer is begun again because the directory has changed meanwhile. [ours]"""


def directory_changes(
    manager: ManagerHandle,
    position: Position = NOWHERE,
) -> Steps[DirectoryChanges]:
    """Ask what has changed in the directory since a position; everything, if none is given."""
    for _ in range(READINGS_MAX_COUNT):
        rows: list[api.ObjectRow] = []
        before: Position | None = None
        while True:
            request = api.ReadDirectory(bytes(position.incarnation), position.number, len(rows))
            part = yield from ask(request)
            now = Position(Guid(part.incarnation), part.number)
            if before not in (None, now):
                # The rows that came first may be others by now.
                break
            before = now
            rows += part.rows
            if not part.has_more:
                return DirectoryChanges(now, changes_in(rows), part.is_complete)
    raise InsufficientResources("the directory changes faster than it can be read: try again")


def wait_for_directory(manager: ManagerHandle, position: Position, timeout: float) -> Steps[bool]:
    """Wait until the directory is no longer at a position, or `timeout` has passed; says which."""
    request = api.ReadDirectory(
        bytes(position.incarnation), position.number, wait_ms=max(1, round(timeout * 1000))
    )
    part = yield from ask(request)
    return part.has_more or Position(Guid(part.incarnation), part.number) != position


def read_directory(manager: ManagerHandle) -> Steps[DirectoryImage]:
    """Ask for the whole directory."""
    told = yield from directory_changes(manager)
    return DirectoryImage().changed(told.changes)


def write_directory(manager: ManagerHandle, changes: Sequence[Change]) -> Steps[tuple[Change, ...]]:
    """Change the directory, all or nothing; gives the objects as they are there now."""
    request = api.ChangeDirectory([row_of(change) for change in changes])
    return changes_in((yield from ask(request)).rows)


def refresh_directory(manager: ManagerHandle) -> Steps[None]:
    """Let the queue manager bring its copy of the directory up to date, and wait for it."""
    yield from ask(api.RefreshDirectory())


def find_queues(
    manager: ManagerHandle,
    *,
    label: str | None = None,
    service_type: Guid | None = None,
) -> Steps[list[QueueProperties]]:
    """Look for public queues by label and service type (MQLocateBegin)."""
    wanted = None if service_type is None else bytes(service_type)
    reply = yield from ask(api.FindQueues(label, wanted))
    return [queue for queue in changes_in(reply.rows) if isinstance(queue, QueueProperties)]
