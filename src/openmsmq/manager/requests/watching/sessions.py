"""What operators ask about sessions with other queue managers."""

from __future__ import annotations

from itertools import islice

from openmsmq.api import messages as api
from openmsmq.manager.access.handlers import Handlers
from openmsmq.manager.directory.copy import DirectoryCopy
from openmsmq.manager.peers.peering import Peer
from openmsmq.manager.queues.connections import Connection
from openmsmq.manager.queues.replies import Replies
from openmsmq.manager.transfer.sessions import Sessions
from openmsmq.model.clock import Instant
from openmsmq.model.identity import Guid
from openmsmq.model.limits import HANDLES_SHOWN_MAX_COUNT
from openmsmq.model.queue import SessionWait
from openmsmq.protocol.session import SessionState


class SessionRequests:
    """Shows sessions."""

    def __init__(self, sessions: Sessions, copy: DirectoryCopy, replies: Replies) -> None:
        self._sessions = sessions
        self._copy = copy
        self._replies = replies

    def serve(self, handlers: Handlers) -> None:
        """Say which requests are carried out here."""
        handlers.add(api.ListSessions, self.list_sessions)

    def list_sessions(self, state: Connection, call: int, _: api.ListSessions, __: Instant) -> None:
        """Show all sessions."""
        found = [self._shown(peer) for peer in self._sessions.peers.values()]
        self._replies.answer(state.id, call, api.OpenSessions(found))

    def _shown(self, peer: Peer) -> api.SessionStatus:
        engine = peer.engine
        facts = engine.describe()
        return api.SessionStatus(
            number=peer.number,
            manager=bytes(peer.remote),
            name=self._name_of(peer.remote),
            address=engine.address,
            is_dialled=peer.is_dialled,
            state=engine.state.value,
            waits_for=_wait_of(peer, _number(facts, "unsettled_count")).value,
            since_s=peer.since_s,
            proven=peer.proven,
            window=_number(facts, "window"),
            in_flight_count=engine.in_flight_count,
            unstored_count=_number(facts, "unstored_count"),
            unsettled_count=_number(facts, "unsettled_count"),
            sent_count=_number(facts, "sent_count"),
            sent_bytes=peer.sent_bytes,
            received_count=_number(facts, "received_count"),
            received_bytes=peer.received_bytes,
            queues=[
                outgoing.queue.name for outgoing in islice(peer.queues, HANDLES_SHOWN_MAX_COUNT)
            ],
            queue_count=len(peer.queues),
        )

    def _name_of(self, manager: Guid) -> str:
        found = self._copy.image.managers.get(manager)
        return "" if found is None else found.computer_name


def _number(facts: dict[str, object], name: str) -> int:
    found = facts[name]
    assert isinstance(found, int), name
    return found


def _wait_of(peer: Peer, unsettled_count: int) -> SessionWait:
    """Say what a session waits for; what hinders most comes first."""
    engine = peer.engine
    if engine.state is SessionState.CONNECTING:
        return SessionWait.CONNECTION
    if engine.state is not SessionState.OPEN:
        return SessionWait.HANDSHAKE
    if peer.waiting and engine.room <= 0:
        return SessionWait.WINDOW
    if engine.in_flight_count:
        return SessionWait.ACKNOWLEDGMENT
    return SessionWait.DISK if unsettled_count else SessionWait.NOTHING
