"""What applications, and other queue managers, ask about the directory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from openmsmq.api import messages as api
from openmsmq.directory.limits import (
    DIRECTORY_PART_MAX_BYTES,
    DIRECTORY_READ_WAIT_MAX_S,
    DIRECTORY_READS_WAITING_MAX_COUNT,
)
from openmsmq.directory.rows import changes_in, row_of
from openmsmq.manager.access.handlers import Handlers
from openmsmq.manager.directory.service import DirectoryService, require_few_changes
from openmsmq.manager.queues.connections import Connection
from openmsmq.manager.queues.replies import Replies
from openmsmq.manager.turn.timers import earliest
from openmsmq.model.clock import Instant
from openmsmq.model.directory import (
    NOWHERE,
    Change,
    DirectoryRole,
    ObjectKind,
    Position,
    Removal,
)
from openmsmq.model.errors import (
    AccessDenied,
    InsufficientResources,
    InvalidParameter,
    MsmqError,
    NoDirectory,
)
from openmsmq.model.identity import GUID_BYTES, Guid
from openmsmq.model.topology import UserInfo
from openmsmq.security.access.callers import Caller

ROW_OVERHEAD_BYTES: Final = 32
"""What a row has beside its object: a removal is not for nothing."""


class DirectoryRequests:
    """Reads and changes the directory for others."""

    def __init__(self, service: DirectoryService, replies: Replies) -> None:
        self._service = service
        self._replies = replies
        self.waiting: dict[int, tuple[int, int]] = {}
        """Reads that wait for the next change, by connection: the call, and until when."""
        self.next_wake_ms: int | None = None
        """When `wake` may have something to do."""
        self._position = service.copy.position
        """Where the directory was when the present reads began to wait."""

    def serve(self, handlers: Handlers) -> None:
        """Say which requests are carried out here."""
        handlers.add(api.ReadDirectory, self.read)
        handlers.add(api.ChangeDirectory, self.change)
        handlers.add(api.RefreshDirectory, self.refresh)
        handlers.add(api.FindQueues, self.find_queues)

    def read(self, state: Connection, call: int, request: api.ReadDirectory, now: Instant) -> None:
        """Tell what has changed since a position."""
        self._require_directory()
        position = Position(_guid(request.incarnation), request.number)
        if request.wait_ms > 0 and position == self._service.copy.position != NOWHERE:
            self._wait(state, call, request.wait_ms, now)
            return
        told = self._service.copy.since(position)
        if told.position == NOWHERE:
            # Who took this for an answer would forget all that he knows.
            raise NoDirectory("this queue manager has not read the directory itself yet")
        rows, has_more = _cut(islice(told.changes, max(request.skip, 0), None))
        reply = api.DirectoryPart(
            bytes(told.position.incarnation),
            told.position.number,
            rows,
            told.is_complete,
            has_more,
        )
        self._replies.answer_when_done(state.id, call, reply)

    # Reads that wait.

    def _wait(self, state: Connection, call: int, wait_ms: int, now: Instant) -> None:
        if self.has_news:
            # The directory moves with this turn: those who wait for that must not wait on.
            self.tell_all()
        self._end(state.id)
        if len(self.waiting) >= DIRECTORY_READS_WAITING_MAX_COUNT:
            raise InsufficientResources(
                f"{DIRECTORY_READS_WAITING_MAX_COUNT} reads wait for a change of the directory "
                "already: read it from time to time"
            )
        self._position = self._service.copy.position
        due_ms = now.ticks_ms + min(wait_ms, DIRECTORY_READ_WAIT_MAX_S * 1000)
        self.waiting[state.id] = call, due_ms
        self.next_wake_ms = earliest(self.next_wake_ms, due_ms)

    @property
    def has_news(self) -> bool:
        """Whether the directory has moved on since the present reads began to wait."""
        return self._service.copy.position != self._position

    def tell_all(self) -> None:
        """Tell all who wait, without the changes: so many at once may be slow to take them."""
        for connection in list(self.waiting):
            self._end(connection)

    def _end(self, connection: int) -> None:
        """Answer a read that waits: with where the directory is, and whether it has moved on."""
        found = self.waiting.pop(connection, None)
        if found is not None:
            at = self._service.copy.position
            part = api.DirectoryPart(
                bytes(at.incarnation), at.number, [], is_complete=False, has_more=self.has_news
            )
            self._replies.answer_when_done(connection, found[0], part)

    def forget(self, connection: int) -> None:
        """A connection is gone."""
        self.waiting.pop(connection, None)

    def wake(self, now: Instant) -> None:
        """Time has passed: who has waited long enough hears whether anything has changed."""
        if self.next_wake_ms is None or now.ticks_ms < self.next_wake_ms:
            return
        for connection, (_, due_ms) in list(self.waiting.items()):
            if due_ms <= now.ticks_ms:
                self._end(connection)
        self.next_wake_ms = min((due_ms for _, due_ms in self.waiting.values()), default=None)

    def change(
        self, state: Connection, call: int, request: api.ChangeDirectory, now: Instant
    ) -> None:
        """Change the directory, or have it changed."""
        require_few_changes(len(request.rows))
        changes = changes_in(request.rows)
        _require_users_known(state.caller, changes)

        def done(changes: Sequence[Change], _: Instant) -> None:
            rows = [row_of(change) for change in changes]
            self._replies.answer_when_done(state.id, call, api.DirectoryChanged(rows))

        self._service.write(
            changes,
            done,
            lambda error, _: self._replies.fail(state.id, call, error),
            now,
        )

    def refresh(self, state: Connection, call: int, _: api.RefreshDirectory, now: Instant) -> None:
        """Bring the copy up to date."""

        def refused(error: MsmqError, _: Instant) -> None:
            self._replies.fail(state.id, call, error)

        self._service.refresh(
            lambda _changes, _now: self._replies.answer_when_done(state.id, call, api.Done()),
            refused,
            now,
        )

    def find_queues(
        self, state: Connection, call: int, request: api.FindQueues, _: Instant
    ) -> None:
        """Look for public queues."""
        self._require_directory()
        wanted = None if request.service_type is None else _guid(request.service_type)
        found = self._service.copy.image.find_queues(label=request.label, service_type=wanted)
        rows, has_more = _cut(found)
        self._replies.answer_when_done(state.id, call, api.FoundQueues(rows, has_more))

    def _require_directory(self) -> None:
        if self._service.role is DirectoryRole.NONE:
            raise NoDirectory("this queue manager has no directory: it works in workgroup mode")


def _require_users_known(caller: Caller, changes: Sequence[Change]) -> None:
    """Refuse changes of who is who by anybody who is no administrator without bounds.

    Who could write them would give his own certificate to an administrator, and be one.
    """
    if caller.is_unlimited or (caller.is_administrator and caller.may_vouch):
        return
    if any(_is_about_user(change) for change in changes):
        raise AccessDenied(
            f"{caller.name} may not change users in the directory: that is left to administrators, "
            "because the directory says whose a certificate is"
        )


def _is_about_user(change: Change) -> bool:
    if isinstance(change, Removal):
        return change.kind is ObjectKind.USER
    return isinstance(change, UserInfo)


def _cut(changes: Iterable[Change]) -> tuple[list[api.ObjectRow], bool]:
    """Return as many changes as fit into one answer, and whether there are more."""
    rows: list[api.ObjectRow] = []
    size = 0
    for change in changes:
        row = row_of(change)
        size += len(row.data) + ROW_OVERHEAD_BYTES
        if size > DIRECTORY_PART_MAX_BYTES and rows:
            return rows, True
        rows.append(row)
    return rows, False


def _guid(data: bytes) -> Guid:
    if len(data) != GUID_BYTES:
        raise InvalidParameter(f"an identifier has {GUID_BYTES} bytes, not {len(data)}")
    return Guid(data)
