"""The tables of captures: their columns, one row of each, and rows as Arrow's batches.

Columns that messages have in queues, too, are named as in `openmsmq.spark.schema`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import msgspec
import pyarrow as pa

from openmsmq.analysis.kinds import AnomalyKind, severity
from openmsmq.spark.schema import Column

_TEXT: Final = pa.string()
_TIME: Final = pa.timestamp("us", "UTC")
_NUMBER: Final = pa.int64()
_SMALL: Final = pa.int32()
_YES_NO: Final = pa.bool_()
_FRACTION: Final = pa.float64()

PACKETS: Final = (
    # Where it was seen.
    Column("file", _TEXT, "The capture file that has its last byte."),
    Column("frame", _NUMBER, "The frame with its last byte, counted from 1 in the file."),
    Column("time", _TIME, "When that frame was captured."),
    Column(
        "protocol",
        _TEXT,
        "TCP for packets of sessions, HTTP, UDP for datagrams, or PGM for multicast.",
    ),
    Column("source_address", _TEXT, "The address that sent it."),
    Column("source_port", _SMALL, "The port there."),
    Column("destination_address", _TEXT, "The address to which it went."),
    Column("destination_port", _SMALL, "The port there."),
    Column("session", _TEXT, "Its session: client, server, and how many they had before."),
    Column("stream_offset", _NUMBER, "Where in its direction of the connection it starts."),
    # What it is.
    Column("packet", _TEXT, "Which packet, as `openmsmq packet decode` names it; or malformed."),
    Column("size_bytes", _NUMBER, "Its size."),
    Column("explanation", _TEXT, "What it says, in one line."),
    Column("problem", _TEXT, "Why it does not decode."),
    Column("refused", _YES_NO, "Whether it refuses a session."),
    # A message.
    Column("message_id", _TEXT, "The identifier of the message."),
    Column("source_qm", _TEXT, "The identity of the queue manager that sent the message first."),
    Column("message_class", _SMALL, "0 for an application's message; else a report or answer."),
    Column("message_class_name", _TEXT, "The name of the class."),
    Column("label", _TEXT, "The label."),
    Column("destination", _TEXT, "The format name to which it was sent."),
    Column("priority", _SMALL, "0 to 7."),
    Column("recoverable", _YES_NO, "Whether it survives a restart."),
    Column("transactional", _YES_NO, "Whether it was sent in a transaction."),
    Column("traced", _YES_NO, "Whether each hop reports it."),
    Column("encrypted", _YES_NO, "Whether the body is encrypted."),
    Column("hop_count", _SMALL, "How many queue managers passed it on."),
    Column("body_size_bytes", _NUMBER, "The size of the body."),
    Column("sent_time", _TIME, "When the application sent it."),
    Column("correlation_id", _TEXT, "The message that this one answers."),
    # Sequences.
    Column("sequence_id", _TEXT, "The sequence it belongs to, or that it acknowledges."),
    Column("sequence_number", _NUMBER, "Its number there, or the one that it acknowledges."),
    Column("previous_number", _NUMBER, "The number before it in the sequence."),
    Column("acknowledged_message_id", _TEXT, "The message that a final acknowledgment ends."),
    # The session's own counts.
    Column("received_count", _SMALL, "Messages its sender says to have received, modulo 65536."),
    Column("stored_base", _SMALL, "The recoverable message that bit 0 of stored_bits stands for."),
    Column("stored_bits", _NUMBER, "Which recoverable messages from there on are stored."),
    Column("sent_count", _SMALL, "Messages its sender says to have sent, modulo 65536."),
    Column("recoverable_sent_count", _SMALL, "The recoverable ones among them."),
    Column("window", _SMALL, "How many messages its sender lets be under way."),
    # What became of a message in its session.
    Column("fate", _TEXT, "acknowledged, unacknowledged, refused, in flight, or unknown."),
    Column("acknowledged_time", _TIME, "When the session acknowledged it."),
    Column("round_trip_ms", _FRACTION, "How long that took."),
)

SESSIONS: Final = (
    Column("session", _TEXT, "The session: client, server, and how many they had before."),
    Column("file", _TEXT, "The capture file with its first frame."),
    Column("last_file", _TEXT, "The capture file with its last frame."),
    Column("client_address", _TEXT, "Who opened the connection."),
    Column("client_port", _SMALL, "The port there."),
    Column("server_address", _TEXT, "Who was asked."),
    Column("server_port", _SMALL, "The port there."),
    Column("client_qm", _TEXT, "The queue manager that opened it, as it said in the handshake."),
    Column("server_qm", _TEXT, "The queue manager that answered."),
    Column("start_time", _TIME, "Its first frame."),
    Column("end_time", _TIME, "Its last frame."),
    Column("duration_s", _FRACTION, "The time between them."),
    Column("handshake", _TEXT, "complete, refused, unfinished, not captured, none, or http."),
    Column("ending", _TEXT, "closed, reset, refused, unanswered, replaced, or open."),
    Column("client_messages", _NUMBER, "Messages from the client."),
    Column("server_messages", _NUMBER, "Messages from the server."),
    Column("client_bytes", _NUMBER, "Bytes of packets from the client."),
    Column("server_bytes", _NUMBER, "Bytes of packets from the server."),
    Column("client_acks", _NUMBER, "Session acknowledgments from the client, on messages too."),
    Column("server_acks", _NUMBER, "Session acknowledgments from the server, on messages too."),
    Column("order_acks", _NUMBER, "Order acknowledgments, both ways."),
    Column("final_acks", _NUMBER, "Final acknowledgments, both ways."),
    Column("client_window", _SMALL, "The last window that the client told."),
    Column("server_window", _SMALL, "The last window that the server told."),
    Column("ack_timeout_ms", _NUMBER, "How long acknowledgments are awaited, by the handshake."),
    Column("unacknowledged_messages", _NUMBER, "Messages without acknowledgment at its end."),
    Column("malformed_packets", _NUMBER, "Packets that do not decode."),
    Column("missing_bytes", _NUMBER, "Bytes that the capture does not have."),
    Column("resent_messages", _NUMBER, "Messages that were sent before between these addresses."),
    Column("round_trip_p50_ms", _FRACTION, "Half of the messages were acknowledged within this."),
    Column("round_trip_p95_ms", _FRACTION, "95 of 100 messages were acknowledged within this."),
)
"""The last three come from comparing sessions with each other."""

ANOMALIES: Final = (
    Column("kind", _TEXT, "What is wrong: one of the table in `openmsmq.analysis.kinds`."),
    Column("severity", _TEXT, "info, warning or error."),
    Column("file", _TEXT, "The capture file."),
    Column("frame", _NUMBER, "The frame, counted from 1 in the file."),
    Column("time", _TIME, "When it was captured."),
    Column("session", _TEXT, "The session, if it is about one."),
    Column("message_id", _TEXT, "The message, if it is about one."),
    Column("description", _TEXT, "What is wrong, in one sentence."),
)

SESSION_COLUMNS_ACROSS: Final = ("resent_messages", "round_trip_p50_ms", "round_trip_p95_ms")


def _row_type(name: str, columns: Iterable[Column]) -> Any:
    """Return the class of a table's rows: its fields are the columns, and empty if not given."""
    return msgspec.defstruct(name, [(column.name, Any, None) for column in columns], kw_only=True)


# Times are microseconds since 1970.
PacketRow: Final = _row_type("PacketRow", PACKETS)
SessionRow: Final = _row_type(
    "SessionRow", [column for column in SESSIONS if column.name not in SESSION_COLUMNS_ACROSS]
)
AnomalyRow: Final = _row_type("AnomalyRow", ANOMALIES)

Row: TypeAlias = Any
"""One of the three; a row of `sessions` has not yet what only a comparison can tell."""


def anomaly(
    kind: AnomalyKind,
    description: str,
    *,
    file: str,
    frame: int | None = None,
    time: int | None = None,
    session: str | None = None,
    message_id: str | None = None,
) -> Row:
    """Make a row about something that is wrong; how bad that is follows from its kind."""
    return AnomalyRow(
        kind=kind,
        severity=severity(kind),
        file=file,
        frame=frame,
        time=time,
        session=session,
        message_id=message_id,
        description=description,
    )


def time_us(time_ns: int) -> int | None:
    """Return a time in microseconds; None when the capture does not say it."""
    return time_ns // 1_000 if time_ns > 0 else None


# Arrow. Each row of the pass over the captures is one of the three, and null for the others.

_KINDS: Final[tuple[tuple[str, Any, tuple[Column, ...]], ...]] = (
    ("packet", PacketRow, PACKETS),
    (
        "session_facts",
        SessionRow,
        tuple(column for column in SESSIONS if column.name not in SESSION_COLUMNS_ACROSS),
    ),
    ("anomaly", AnomalyRow, ANOMALIES),
)


def _schema(columns: Iterable[Column]) -> pa.Schema:
    return pa.schema([pa.field(column.name, column.type) for column in columns])


DECODED_SCHEMA: Final = pa.schema(
    [pa.field(name, pa.struct(list(_schema(columns)))) for name, _, columns in _KINDS]
)


def batches(rows: Iterable[Row], rows_max: int = 10_000) -> Iterator[pa.RecordBatch]:
    """Yield rows of all kinds as batches of `DECODED_SCHEMA`; each batch has one kind only."""
    waiting: dict[Any, list[Row]] = {kind: [] for _, kind, _ in _KINDS}
    for row in rows:
        of_kind = waiting[type(row)]
        of_kind.append(row)
        if len(of_kind) == rows_max:
            yield _batch(of_kind)
            of_kind.clear()
    for of_kind in waiting.values():
        if of_kind:
            yield _batch(of_kind)


def _batch(rows: Sequence[Row]) -> pa.RecordBatch:
    arrays = [
        _struct_array(rows, columns)
        if kind is type(rows[0])
        else pa.nulls(len(rows), DECODED_SCHEMA.field(name).type)
        for name, kind, columns in _KINDS
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=DECODED_SCHEMA)


def _struct_array(rows: Sequence[Row], columns: tuple[Column, ...]) -> pa.StructArray:
    values = zip(*map(msgspec.structs.astuple, rows), strict=True)
    return pa.StructArray.from_arrays(
        [pa.array(cells, column.type) for cells, column in zip(values, columns, strict=True)],
        fields=list(_schema(columns)),
    )
