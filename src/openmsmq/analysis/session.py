"""One session: its handshake, windows and acknowledgments, what is wrong, and its summary.

The reader takes the packets of a connection in the order in which they were seen. A capture may
begin in the middle of the session or have holes; then what depends on the count of messages is
known from the next header of their sender on. What became of a message is told when it is known,
so messages are settled in another order than they came.
"""

from __future__ import annotations

from typing import Generic

from openmsmq.analysis.events import (
    Anomaly,
    Moment,
    SessionSummary,
    Settled,
    SideSummary,
    T,
)
from openmsmq.analysis.kinds import AnomalyKind, Fate, Handshake
from openmsmq.analysis.ledger import Ledger
from openmsmq.analysis.sequences import acknowledgment
from openmsmq.capture.link_layers import Endpoint
from openmsmq.capture.tcp_streams import Connection, Ending
from openmsmq.model.identity import MessageId
from openmsmq.model.limits import ACK_WAIT_MS
from openmsmq.model.message import NO_CORRELATION, is_negative, message_class_name
from openmsmq.wire.bodies.acknowledgments import FinalAck, OrderAck
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.packets import (
    ConnectionParameters,
    EstablishConnection,
    Packet,
    SessionAck,
    UserMessage,
)


class _Side(Generic[T]):
    """What one side of a session has said."""

    def __init__(self, name: str, *, from_start: bool) -> None:
        self.name = name
        self.ledger: Ledger[T] = Ledger(from_start=from_start)
        self.summary = SideSummary()
        self.last_ns: int | None = None
        """When its last packet came."""
        self.has_settled = False
        """Whether it has said its parameters, which ends the handshake."""
        self.miscounts = False


class SessionReader(Generic[T]):
    """Takes the packets of one connection and tells what they mean.

    Who sees both sides speak, and in the right order, says so with `in_order`: then what nobody
    sent cannot be acknowledged, not even before the session is over.
    """

    def __init__(self, connection: Connection, first: Moment, *, in_order: bool = False) -> None:
        self.connection = connection
        start = connection.from_start
        self._client: _Side[T] = _Side(connection.client.host, from_start=start)
        self._server: _Side[T] = _Side(connection.server.host, from_start=start)
        self._sides = (self._client, self._server)
        self._first = first
        self._in_order = in_order
        self._events: list[Settled[T] | Anomaly | SessionSummary] = []
        self._refused = False
        self._ack_timeout_ms: int | None = None
        self._order_acks = 0
        self._final_acks = 0
        self._malformed = 0

    def take(self) -> list[Settled[T] | Anomaly | SessionSummary]:
        """Return what was found out, once."""
        events, self._events = self._events, []
        return events

    # Inputs.

    def packet(
        self, source: Endpoint, packet: Packet, size_bytes: int, at: Moment, message: T
    ) -> None:
        """Take the next packet of one side; by `message` its fate is told if it is one."""
        side, other = self._spoken(source, size_bytes, at)
        header: SessionHeader | None = None
        if isinstance(packet, UserMessage):
            self._message(packet, side, at)
            side.ledger.sent(message, at.time_ns, recoverable=packet.user.recoverable)
            self._events += side.ledger.take()
            header = packet.session
        elif isinstance(packet, SessionAck):
            header = packet.session
        else:
            self._handshake(packet, side, other, at)
        if header is not None:
            self._header(header, side, other, at)

    def malformed(self, source: Endpoint, problem: str, size_bytes: int, at: Moment) -> None:
        """Take a packet that does not decode."""
        side, _ = self._spoken(source, size_bytes, at)
        self._malformed += 1
        # It may have been a message.
        side.ledger.lose_count()
        self._note(AnomalyKind.MALFORMED_PACKET, f"a packet does not decode: {problem}", at)

    def missing(self, source: Endpoint, size_bytes: int) -> None:
        """Take note of bytes that the capture does not have."""
        side, _ = self._pair(source)
        side.summary.missing_bytes += size_bytes
        side.ledger.lose_count()

    def finish(self, ending: Ending, last: Moment, ended_by: Endpoint | None) -> None:
        """The connection is over, or the capture: say what became of it."""
        self._note_ending(ending, last)
        self._note_silence(last, ended_by)
        unacknowledged = sum(len(side.ledger) for side in self._sides)
        for side, other in (self._sides, self._sides[::-1]):
            self._check_acknowledgments(side, other, last)
            side.ledger.finish(_fate(ending, other))
            self._events += side.ledger.take()
        self._events.append(
            SessionSummary(
                self.connection,
                self._first,
                last,
                self._outcome(),
                ending,
                self._client.summary,
                self._server.summary,
                self._order_acks,
                self._final_acks,
                self._ack_timeout_ms,
                unacknowledged,
                self._malformed,
            )
        )

    # Internals.

    def _pair(self, source: Endpoint) -> tuple[_Side[T], _Side[T]]:
        if source == self.connection.client:
            return self._client, self._server
        return self._server, self._client

    def _spoken(self, source: Endpoint, size_bytes: int, at: Moment) -> tuple[_Side[T], _Side[T]]:
        side, other = self._pair(source)
        side.last_ns = at.time_ns
        side.summary.bytes += size_bytes
        return side, other

    def _message(self, packet: UserMessage, side: _Side[T], at: Moment) -> None:
        side.summary.messages += 1
        body = acknowledgment(packet)
        self._order_acks += isinstance(body, OrderAck)
        self._final_acks += isinstance(body, FinalAck)
        properties = packet.properties
        if is_negative(properties.message_class):
            about = None
            if isinstance(body, FinalAck):
                about = str(body.message)
            elif properties.correlation_id != NO_CORRELATION:
                about = str(MessageId.from_bytes(properties.correlation_id))
            self._note(
                AnomalyKind.REJECTED_MESSAGE,
                f"{side.name} says of message {about or 'of unknown identifier'}: "
                f"{message_class_name(properties.message_class)}",
                at,
                about,
            )

    def _header(self, header: SessionHeader, side: _Side[T], other: _Side[T], at: Moment) -> None:
        side.summary.acks += 1
        side.summary.window = header.window
        if not side.ledger.counted(header) and not side.miscounts:
            side.miscounts = True
            self._note(
                AnomalyKind.COUNT_MISMATCH,
                f"{side.name} says to have sent {header.sent_count} messages, "
                f"{header.recoverable_sent_count} of them recoverable (modulo 65536); the capture "
                "has another count",
                at,
            )
        other.ledger.acknowledged(header, at.time_ns)
        if self._in_order:
            self._check_acknowledgments(other, side, at)
        self._events += side.ledger.take()
        self._events += other.ledger.take()

    def _check_acknowledgments(self, side: _Side[T], other: _Side[T], at: Moment) -> None:
        # A side of which nothing was captured may have sent anything.
        if side.ledger.is_over_acknowledged and (self._in_order or side.last_ns is not None):
            self._note(
                AnomalyKind.BAD_ACKNOWLEDGMENT,
                f"{other.name} acknowledged more messages than {side.name} has sent",
                at,
            )

    def _handshake(self, packet: Packet, side: _Side[T], other: _Side[T], at: Moment) -> None:
        match packet:
            case EstablishConnection(establish):
                is_client = side is self._client
                side.summary.qm = str(establish.client if is_client else establish.server)
            case ConnectionParameters(parameters):
                side.has_settled = True
                side.summary.window = parameters.window
                self._ack_timeout_ms = parameters.ack_timeout_ms
            case _:
                return
        if packet.internal.refused and not self._refused:
            self._refused = True
            self._note(
                AnomalyKind.REFUSED_CONNECTION,
                f"{side.name} refused the session that {other.name} asked for",
                at,
            )

    def _outcome(self) -> Handshake:
        if self._refused:
            return Handshake.REFUSED
        if all(side.has_settled for side in self._sides):
            return Handshake.COMPLETE
        if all(side.last_ns is None for side in self._sides):
            return Handshake.NONE
        return Handshake.UNFINISHED if self.connection.from_start else Handshake.NOT_CAPTURED

    def _note_ending(self, ending: Ending, last: Moment) -> None:
        client, server = self.connection.client, self.connection.server
        match ending:
            case Ending.REFUSED:
                text = f"{server} refused {client} a connection"
                self._note(AnomalyKind.REFUSED_CONNECTION, text, last)
                return
            case Ending.UNANSWERED:
                text = f"{server} did not answer when {client} opened a connection"
                self._note(AnomalyKind.UNANSWERED_CONNECTION, text, last)
                return
            case Ending.RESET:
                self._note(AnomalyKind.CONNECTION_RESET, "the connection was reset", last)
            case _:
                pass
        outcome = self._outcome()
        if outcome is Handshake.NOT_CAPTURED:
            text = "the session was open before the capture began"
            self._note(AnomalyKind.HANDSHAKE_NOT_CAPTURED, text, self._first)
        elif self._was_opened_in_vain(ending, outcome):
            text = "the connection ended before a session was open"
            self._note(AnomalyKind.UNFINISHED_HANDSHAKE, text, last)

    def _was_opened_in_vain(self, ending: Ending, outcome: Handshake) -> bool:
        return (
            self.connection.from_start
            and ending is not Ending.OPEN
            and outcome in (Handshake.UNFINISHED, Handshake.NONE)
        )

    def _note_silence(self, last: Moment, ended_by: Endpoint | None) -> None:
        """Say when a side ended the session because it heard nothing any more."""
        if ended_by is None:
            return
        side, other = self._pair(ended_by)
        waiting_since_ns = side.ledger.waiting_since_ns
        if waiting_since_ns is None or other.last_ns is None:
            return
        silent_ms = (last.time_ns - max(other.last_ns, waiting_since_ns)) // 1_000_000
        if silent_ms >= (self._ack_timeout_ms or ACK_WAIT_MS):
            self._note(
                AnomalyKind.SILENT_PEER,
                f"{other.name} was silent for {silent_ms // 1000} s, so "
                f"{side.name} ended the connection; messages that waited for an "
                f"acknowledgment: {len(side.ledger)}",
                last,
            )

    def _note(
        self, kind: AnomalyKind, description: str, at: Moment, message_id: str | None = None
    ) -> None:
        self._events.append(Anomaly(kind, description, *at, self.connection, message_id))


def _fate(ending: Ending, acknowledger: _Side[T]) -> Fate:
    """Return what became of messages that were not acknowledged when their session ended."""
    if acknowledger.summary.missing_bytes or acknowledger.last_ns is None:
        return Fate.UNKNOWN
    return Fate.IN_FLIGHT if ending is Ending.OPEN else Fate.UNACKNOWLEDGED
