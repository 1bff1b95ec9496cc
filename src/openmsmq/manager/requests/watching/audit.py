"""What operators ask of the audit log: the driver reads it, a page at a time."""

from __future__ import annotations

from typing import Final

from openmsmq.api import messages as api
from openmsmq.manager.access.handlers import Handlers
from openmsmq.manager.outputs import Output, ReadAuditLog
from openmsmq.manager.queues.connections import Connection
from openmsmq.manager.queues.replies import Replies
from openmsmq.model.clock import Instant
from openmsmq.model.errors import InvalidParameter, MsmqError

AUDIT_PAGE_MAX_COUNT: Final = 500
"""Lines of one page of the audit log."""

AUDIT_FILTER_MAX_CHARACTERS: Final = 200
"""What lines of the audit log are looked for by."""

_PLACE_MAX_CHARACTERS: Final = 60


class AuditRequests:
    """Has pages of the audit log read."""

    def __init__(self, replies: Replies, outputs: list[Output]) -> None:
        self._replies = replies
        self._outputs = outputs

    def serve(self, handlers: Handlers) -> None:
        """Say which requests are carried out here."""
        handlers.add(api.ReadAudit, self.read)

    def read(self, state: Connection, call: int, request: api.ReadAudit, _: Instant) -> None:
        """Have a page read; answered when the driver has it."""
        if not 1 <= request.count <= AUDIT_PAGE_MAX_COUNT:
            raise InvalidParameter(
                f"a page of {request.count} lines: ask for 1 to {AUDIT_PAGE_MAX_COUNT}"
            )
        if len(request.filter) > AUDIT_FILTER_MAX_CHARACTERS:
            raise InvalidParameter(
                f"a filter of {len(request.filter)} characters; at most "
                f"{AUDIT_FILTER_MAX_CHARACTERS}"
            )
        if len(request.before) > _PLACE_MAX_CHARACTERS:
            raise InvalidParameter(f"{request.before[:20]!r}... is no place in the audit log")
        self._outputs.append(
            ReadAuditLog(state.id, call, request.before, request.count, request.filter)
        )

    def told(self, asked: ReadAuditLog, found: api.AuditLines | MsmqError) -> None:
        """Answer with what the driver has read, or why it could not."""
        if isinstance(found, MsmqError):
            self._replies.fail(asked.connection, asked.call, found)
        else:
            self._replies.answer(asked.connection, asked.call, found)
