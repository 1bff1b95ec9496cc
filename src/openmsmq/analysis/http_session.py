"""One connection of HTTP: which answer belongs to which message, and its summary.

HTTP has no numbers: answers come in the order of requests. So once bytes are missing, or when the
capture began in the middle, nobody can tell what became of the messages that follow.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from openmsmq.analysis.events import Anomaly, Moment, SessionSummary, Settled, SideSummary
from openmsmq.analysis.kinds import AnomalyKind, Fate, Handshake
from openmsmq.capture.link_layers import Endpoint
from openmsmq.capture.tcp_streams import Connection, Ending

WAITING_MAX_COUNT: Final = 4_096
"""Requests without an answer; beyond it nobody can tell any more what belongs together."""
_ACCEPTED: Final = range(200, 300)


class HttpReader:
    """Takes the requests and answers of one connection and tells what became of messages."""

    def __init__(self, connection: Connection, first: Moment) -> None:
        self.connection = connection
        self._first = first
        self._client = SideSummary()
        self._server = SideSummary()
        self._waiting: deque[tuple[int | None, Moment]] = deque()
        """The number of each message that waits, None for other requests."""
        self._is_paired = connection.from_start
        self._malformed = 0
        self._events: list[Settled[int] | Anomaly | SessionSummary] = []

    def take(self) -> list[Settled[int] | Anomaly | SessionSummary]:
        """Return what was found out, once."""
        events, self._events = self._events, []
        return events

    def request(self, size_bytes: int, at: Moment, message: int | None) -> None:
        """Take a request; by `message` its fate is told if it is one."""
        self._client.bytes += size_bytes
        self._client.messages += message is not None
        if len(self._waiting) >= WAITING_MAX_COUNT:
            self._lose_pairs()
        if self._is_paired:
            self._waiting.append((message, at))
        elif message is not None:
            self._events.append(Settled(message, Fate.UNKNOWN, at.time_ns))

    def answer(self, size_bytes: int, status: int, at: Moment) -> None:
        """Take an answer: it is for the request that has waited longest."""
        self._server.bytes += size_bytes
        if not self._waiting:
            return
        message, sent = self._waiting.popleft()
        if message is None:
            return
        self._server.acks += 1
        is_accepted = status in _ACCEPTED
        fate = Fate.ACKNOWLEDGED if is_accepted else Fate.REFUSED
        told_ns = at.time_ns if is_accepted else None
        self._events.append(Settled(message, fate, sent.time_ns, told_ns))
        if not is_accepted:
            server = self.connection.server.host
            text = f"{server} answered {status} to a message over HTTP: it did not take it"
            self._note(AnomalyKind.REFUSED_POST, text, at)

    def malformed(self, problem: str, at: Moment) -> None:
        """Take note of a message that does not decode."""
        self._malformed += 1
        text = f"a message over HTTP does not decode: {problem}"
        self._note(AnomalyKind.MALFORMED_PACKET, text, at)

    def missing(self, source: Endpoint, size_bytes: int) -> None:
        """Take note of bytes that the capture does not have, or that are no HTTP."""
        side = self._client if source == self.connection.client else self._server
        side.missing_bytes += size_bytes
        self._lose_pairs()

    def finish(self, ending: Ending, last: Moment) -> None:
        """The connection is over, or the capture: say what became of it."""
        client, server = self.connection.client, self.connection.server
        if ending is Ending.REFUSED:
            text = f"{server} refused {client} a connection"
            self._note(AnomalyKind.REFUSED_CONNECTION, text, last)
        elif ending is Ending.UNANSWERED:
            text = f"{server} did not answer when {client} opened a connection"
            self._note(AnomalyKind.UNANSWERED_CONNECTION, text, last)
        elif ending is Ending.RESET:
            self._note(AnomalyKind.CONNECTION_RESET, "the connection was reset", last)
        waiting = [(message, at) for message, at in self._waiting if message is not None]
        fate = Fate.IN_FLIGHT if ending is Ending.OPEN else Fate.UNACKNOWLEDGED
        for message, at in waiting:
            self._events.append(Settled(message, fate, at.time_ns))
        self._events.append(
            SessionSummary(
                self.connection,
                self._first,
                last,
                Handshake.HTTP,
                ending,
                self._client,
                self._server,
                0,
                0,
                None,
                len(waiting),
                self._malformed,
            )
        )

    def _lose_pairs(self) -> None:
        self._is_paired = False
        for message, at in self._waiting:
            if message is not None:
                self._events.append(Settled(message, Fate.UNKNOWN, at.time_ns))
        self._waiting.clear()

    def _note(self, kind: AnomalyKind, description: str, at: Moment) -> None:
        self._events.append(Anomaly(kind, description, *at, self.connection))
