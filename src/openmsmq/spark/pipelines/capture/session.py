"""One session as a capture shows it: its packets as rows, what is wrong with it, and its summary.

The reader takes what was found in the two streams of a connection, in the order of the capture.
A message becomes a row when its fate is known, so rows leave in another order than they came.
"""

from __future__ import annotations

import msgspec

from openmsmq.capture.link_layers import Endpoint
from openmsmq.model.limits import ACK_WAIT_MS
from openmsmq.model.message import is_negative
from openmsmq.spark.pipelines.capture.acks import Ledger
from openmsmq.spark.pipelines.capture.kinds import AnomalyKind, Ending, Fate, Handshake
from openmsmq.spark.pipelines.capture.packets import (
    Place,
    Way,
    address_text,
    malformed_row,
    packet_row,
)
from openmsmq.spark.pipelines.capture.rows import PacketRow, Row, SessionRow, anomaly
from openmsmq.wire import packets
from openmsmq.wire.bodies.acknowledgments import FinalAck, OrderAck
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.packets import (
    ConnectionParameters,
    EstablishConnection,
    Packet,
    SessionAck,
    UserMessage,
)


class _Side:
    """What one side of a session has said."""

    def __init__(self, own: Endpoint, other: Endpoint, *, from_start: bool) -> None:
        self.way = Way.between(own, other)
        self.from_start = from_start
        self.ledger = Ledger(from_start=from_start)
        self.manager: str | None = None
        self.window: int | None = None
        self.messages = 0
        self.bytes = 0
        self.acks = 0
        self.missing_bytes = 0
        self.last_ns: int | None = None
        """When its last packet came."""
        self.has_settled = False
        """Whether it has said its parameters, which ends the handshake."""
        self.miscounts = False


class Connection(msgspec.Struct, frozen=True):
    """Which connection it is."""

    client: Endpoint
    server: Endpoint
    number: int
    """How many connections of the same two ports there are, this one included."""
    from_start: bool
    """Whether the capture saw it open."""

    @property
    def key(self) -> str:
        """What names its session in all tables."""
        return f"{self.client}-{self.server}#{self.number}"


class SessionReader:
    """Takes the packets of one connection and gives rows."""

    def __init__(self, connection: Connection, first: Place) -> None:
        self.connection = connection
        self._key = connection.key
        client, server = connection.client, connection.server
        start = connection.from_start
        self._sides = {
            client: _Side(client, server, from_start=start),
            server: _Side(server, client, from_start=start),
        }
        self._first = first
        self._rows: list[Row] = []
        self._refused = False
        self._ack_timeout_ms: int | None = None
        self._order_acks = 0
        self._final_acks = 0
        self._malformed = 0

    def take_rows(self) -> list[Row]:
        """Return the rows that are ready, once."""
        rows, self._rows = self._rows, []
        return rows

    # Inputs.

    def packet(self, source: Endpoint, data: bytes, offset: int, place: Place) -> None:
        """Take the next packet of one side."""
        side, other = self._pair(source)
        side.last_ns = place.time_ns
        side.bytes += len(data)
        try:
            packet = packets.decode(data)
        except DecodeError as error:
            self._malformed += 1
            # It may have been a message.
            side.ledger.lose_count()
            row = malformed_row(str(error), len(data), side.way, place, self._key, offset)
            self._rows.append(row)
            self._note(AnomalyKind.MALFORMED_PACKET, f"a packet does not decode: {error}", place)
            return
        row = packet_row(packet, len(data), side.way, place, self._key, offset)
        if isinstance(packet, UserMessage):
            self._message(packet, row, side, place)
        else:
            self._rows.append(row)
        header = packet.session if isinstance(packet, UserMessage | SessionAck) else None
        if header is not None:
            self._header(header, side, other, place)
        else:
            self._handshake(packet, row, side, place)

    def missing(self, source: Endpoint, size: int, problem: str, place: Place) -> None:
        """Take note of bytes that the capture does not have."""
        side, _ = self._pair(source)
        side.missing_bytes += size
        side.ledger.lose_count()
        self._note(AnomalyKind.MISSING_BYTES, f"{_from(side)}{problem}", place)

    def stray(self, source: Endpoint, problem: str, place: Place, *, at_edge: bool) -> None:
        """Take note of bytes that are no packet; at an edge of the capture that is normal."""
        side, _ = self._pair(source)
        kind = AnomalyKind.CUT_PACKET if at_edge else AnomalyKind.STRAY_BYTES
        self._note(kind, f"{_from(side)}{problem}", place)

    def finish(self, ending: Ending, last: Place, ended_by: Endpoint | None) -> None:
        """The connection is over, or the capture: say what became of it."""
        self._note_ending(ending, last)
        self._note_silence(last, ended_by)
        unacknowledged = sum(len(side.ledger) for side in self._sides.values())
        for source, side in self._sides.items():
            other = self._pair(source)[1]
            # A side of which nothing was captured may have sent anything.
            if side.last_ns is not None and side.ledger.is_over_acknowledged:
                self._note(
                    AnomalyKind.BAD_ACKNOWLEDGMENT,
                    f"{other.way.source_address} acknowledged more messages than "
                    f"{side.way.source_address} has sent",
                    last,
                )
            side.ledger.finish(_fate(ending, other))
            self._rows += side.ledger.take()
        self._rows.append(self._summary(ending, last, unacknowledged))

    # Internals.

    def _pair(self, source: Endpoint) -> tuple[_Side, _Side]:
        client, server = self.connection.client, self.connection.server
        other = server if source == client else client
        return self._sides[source], self._sides[other]

    def _message(self, packet: UserMessage, row: PacketRow, side: _Side, place: Place) -> None:
        side.messages += 1
        self._order_acks += row.packet == OrderAck.__name__
        self._final_acks += row.packet == FinalAck.__name__
        if is_negative(packet.properties.message_class):
            about = row.acknowledged_message_id or row.correlation_id
            self._note(
                AnomalyKind.REJECTED_MESSAGE,
                f"{row.source_address} says of message {about or 'of unknown identifier'}: "
                f"{row.message_class_name}",
                place,
                about,
            )
        side.ledger.sent(row, place.time_ns)
        self._rows += side.ledger.take()

    def _header(self, header: SessionHeader, side: _Side, other: _Side, place: Place) -> None:
        side.acks += 1
        side.window = header.window
        if not side.ledger.counted(header) and not side.miscounts:
            side.miscounts = True
            self._note(
                AnomalyKind.COUNT_MISMATCH,
                f"{side.way.source_address} says to have sent {header.sent_count} messages, "
                f"{header.recoverable_sent_count} of them recoverable (modulo 65536); the capture "
                "has another count",
                place,
            )
        other.ledger.acknowledged(header, place.time_ns)
        self._rows += side.ledger.take()
        self._rows += other.ledger.take()

    def _handshake(self, packet: Packet, row: PacketRow, side: _Side, place: Place) -> None:
        match packet:
            case EstablishConnection(establish):
                is_client = side is self._sides[self.connection.client]
                side.manager = str(establish.client if is_client else establish.server)
            case ConnectionParameters(parameters):
                side.has_settled = True
                side.window = parameters.window
                self._ack_timeout_ms = parameters.ack_timeout_ms
            case _:
                return
        if row.refused and not self._refused:
            self._refused = True
            self._note(
                AnomalyKind.REFUSED_CONNECTION,
                f"{side.way.source_address} refused the session that "
                f"{side.way.destination_address} asked for",
                place,
            )

    def _outcome(self) -> Handshake:
        sides = self._sides.values()
        if self._refused:
            return Handshake.REFUSED
        if all(side.has_settled for side in sides):
            return Handshake.COMPLETE
        if all(side.last_ns is None for side in sides):
            return Handshake.NONE
        return Handshake.UNFINISHED if self.connection.from_start else Handshake.NOT_CAPTURED

    def _note_ending(self, ending: Ending, last: Place) -> None:
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

    def _note_silence(self, last: Place, ended_by: Endpoint | None) -> None:
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
                f"{other.way.source_address} was silent for {silent_ms // 1000} s, so "
                f"{side.way.source_address} ended the connection; messages that waited for an "
                f"acknowledgment: {len(side.ledger)}",
                last,
            )

    def _note(
        self, kind: AnomalyKind, description: str, place: Place, message_id: str | None = None
    ) -> None:
        self._rows.append(
            anomaly(
                kind,
                description,
                file=place.file,
                frame=place.frame,
                time=place.time,
                session=self._key,
                message_id=message_id,
            )
        )

    def _summary(self, ending: Ending, last: Place, unacknowledged: int) -> SessionRow:
        connection = self.connection
        client, server = (self._sides[end] for end in (connection.client, connection.server))
        return SessionRow(
            session=self._key,
            file=self._first.file,
            last_file=last.file,
            client_address=address_text(connection.client.address),
            client_port=connection.client.port,
            server_address=address_text(connection.server.address),
            server_port=connection.server.port,
            client_qm=client.manager,
            server_qm=server.manager,
            start_time=self._first.time,
            end_time=last.time,
            duration_s=(last.time_ns - self._first.time_ns) / 1_000_000_000,
            handshake=self._outcome(),
            ending=ending,
            client_messages=client.messages,
            server_messages=server.messages,
            client_bytes=client.bytes,
            server_bytes=server.bytes,
            client_acks=client.acks,
            server_acks=server.acks,
            order_acks=self._order_acks,
            final_acks=self._final_acks,
            client_window=client.window,
            server_window=server.window,
            ack_timeout_ms=self._ack_timeout_ms,
            unacknowledged_messages=unacknowledged,
            malformed_packets=self._malformed,
            missing_bytes=client.missing_bytes + server.missing_bytes,
        )


def _from(side: _Side) -> str:
    return f"from {side.way.source_address}: "


def _fate(ending: Ending, acknowledger: _Side) -> Fate:
    """What became of messages that were not acknowledged when their session ended."""
    if acknowledger.missing_bytes or acknowledger.last_ns is None:
        return Fate.UNKNOWN
    return Fate.IN_FLIGHT if ending is Ending.OPEN else Fate.UNACKNOWLEDGED
