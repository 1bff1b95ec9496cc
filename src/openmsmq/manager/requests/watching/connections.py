"""What operators ask about applications: who is connected, with what, and the end of that."""

from __future__ import annotations

from openmsmq.api import messages as api
from openmsmq.manager.access.handlers import Handlers
from openmsmq.manager.outputs import EndConnection, Output
from openmsmq.manager.queues.connections import Connection, OpenQueue
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.replies import Replies
from openmsmq.model.clock import Instant
from openmsmq.model.errors import InvalidParameter
from openmsmq.model.limits import HANDLES_SHOWN_MAX_COUNT


class ConnectionRequests:
    """Shows the connections of applications, and lets operators end them."""

    def __init__(self, replies: Replies, outputs: list[Output]) -> None:
        self._replies = replies
        self._outputs = outputs

    def serve(self, handlers: Handlers) -> None:
        """Say which requests are carried out here."""
        handlers.add(api.ListConnections, self.list_connections)
        handlers.add(api.CloseConnection, self.close_connection)

    def list_connections(
        self, state: Connection, call: int, _: api.ListConnections, __: Instant
    ) -> None:
        """Show all connections."""
        found = [_shown(each, state) for each in self._replies.connections.values()]
        self._replies.answer(state.id, call, api.Connections(found))

    def close_connection(
        self, state: Connection, call: int, request: api.CloseConnection, _: Instant
    ) -> None:
        """Have a connection ended; what ends with it follows when it is lost."""
        ended = self._replies.connections.get(request.connection)
        if ended is None:
            raise InvalidParameter(
                f"there is no connection {request.connection}: it has ended, or never was"
            )
        self._replies.answer(state.id, call, api.Done())
        self._outputs.append(EndConnection(ended.id, f"{state.caller.name} has closed it"))


def _shown(state: Connection, asking: Connection) -> api.ConnectedApplication:
    waiting = {number: _waiting_count(opened) for number, opened in state.queues.items()}
    return api.ConnectedApplication(
        number=state.id,
        caller=state.caller.name,
        user=bytes(state.caller.user),
        peer=state.origin.peer,
        door=state.origin.door,
        since_s=state.origin.since_s,
        is_own=state is asking,
        queues=[
            api.OpenHandle(number, opened.target.name, opened.access, opened.share, waiting[number])
            for number, opened in list(state.queues.items())[:HANDLES_SHOWN_MAX_COUNT]
        ],
        queue_count=len(state.queues),
        waiting_count=sum(waiting.values()),
        transaction_count=len(state.transactions),
    )


def _waiting_count(opened: OpenQueue) -> int:
    if not isinstance(opened.target, LocalQueue):
        return 0
    return sum(read.opened is opened for read in opened.target.waiting)
