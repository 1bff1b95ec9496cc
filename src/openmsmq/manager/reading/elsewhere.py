"""Queues of other computers that applications read through us (decision 0048).

We keep which handles of a connection stand for such queues, and nothing else: what is done with one
leaves as an output, and the driver answers the call. Nothing of it is stored.
"""

from __future__ import annotations

from openmsmq.api import messages as api
from openmsmq.manager.access.control import AccessControl
from openmsmq.manager.outputs import AskElsewhere, LeaveElsewhere, OpenElsewhere
from openmsmq.manager.queues.connections import Connection
from openmsmq.manager.queues.replies import Replies
from openmsmq.manager.turn.foundation import Foundation
from openmsmq.model.errors import InsufficientResources
from openmsmq.model.queue import AccessMode


class ElsewhereRequests:
    """Passes on what is asked of queues of other computers."""

    def __init__(self, base: Foundation, replies: Replies, access: AccessControl) -> None:
        self._config = base.config
        self._outputs = base.outputs
        self._replies = replies
        self._access = access

    def can_open(self, request: api.OpenQueue) -> bool:
        """Whether a queue that is not here can be opened like this all the same."""
        return self._config.reads_elsewhere and request.access in (
            AccessMode.RECEIVE,
            AccessMode.PEEK,
            AccessMode.MOVE,
        )

    def open(self, state: Connection, call: int, request: api.OpenQueue) -> None:
        """Have a queue opened; its handle is good at once, and forgotten if that fails."""
        self._access.require_reading_elsewhere(state.caller, request.name)
        handle = state.take_handle()
        state.elsewhere[handle] = set()
        self._outputs.append(OpenElsewhere(state.id, call, handle, request, state.caller))

    def failed(self, connection: int, handle: int) -> None:
        """Forget a handle that came to nothing; the driver has answered."""
        state = self._replies.connections.get(connection)
        if state is not None:
            state.elsewhere.pop(handle, None)

    def takes(self, state: Connection, call: int, request: api.AnyRequest) -> bool:
        """Pass a request on, if it is about such a queue."""
        if isinstance(request, api.Cancel):
            # Whether it waits here or there, nobody knows in advance; here it is answered.
            self._outputs.append(AskElsewhere(state.id, call, 0, request))
            return False
        handle = self._handle_of(state, request)
        if handle not in state.elsewhere:
            return False
        cursor = 0
        match request:
            case api.CloseQueue():
                self.leave(state, handle)
                self._replies.answer(state.id, call, api.Done())
                return True
            case api.CreateCursor():
                cursors = state.elsewhere[handle]
                if len(cursors) >= self._config.open_queues_max:
                    raise InsufficientResources(
                        f"{self._config.open_queues_max} cursors are in use"
                    )
                cursor = state.take_handle()
                cursors.add(cursor)
            case api.CloseCursor():
                state.elsewhere[handle].discard(request.cursor)
            case _:
                pass
        self._outputs.append(AskElsewhere(state.id, call, handle, request, cursor))
        return True

    def leave(self, state: Connection, handle: int) -> None:
        """Close a queue because its application asks for it, or is gone."""
        del state.elsewhere[handle]
        self._outputs.append(LeaveElsewhere(state.id, handle))

    def _handle_of(self, state: Connection, request: api.AnyRequest) -> int:
        if isinstance(request, api.CloseCursor):
            return next(
                (each for each, cursors in state.elsewhere.items() if request.cursor in cursors), 0
            )
        return getattr(request, "handle", 0)
