"""From what was seen in all files to rows: who continues where another file ended.

All that two ports said to each other comes here in the order of the files, whichever file has it.
So a connection that goes on in the next file of a rotated capture is one session, and a packet
that lies in two files is whole. Segments that two files have, because they were captured at both
ends, count once, as a segment that was sent twice does; datagrams count in both. What all of it
means is for `openmsmq.analysis`; a message becomes a row when its fate is known.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any, Final

from openmsmq.analysis.events import (
    Anomaly,
    DatagramItem,
    Event,
    HttpItem,
    Moment,
    PacketItem,
    SessionSummary,
    Settled,
)
from openmsmq.analysis.kinds import AnomalyKind
from openmsmq.analysis.traffic import Traffic
from openmsmq.analysis.transports import Ports
from openmsmq.capture.tcp_streams import Connection
from openmsmq.spark.pipelines.capture.files import Seen
from openmsmq.spark.pipelines.capture.packets import datagram_row, http_row, packet_row
from openmsmq.spark.pipelines.capture.rows import Row, SessionRow, anomaly, time_us
from openmsmq.wire.packets import UserMessage

_FRAME_BITS: Final = 40
_FRAME_MASK: Final = (1 << _FRAME_BITS) - 1


def read_conversations(seen: Iterable[Seen], ports: Ports) -> Iterator[Row]:
    """Yield the rows of all conversations; each must come as a whole, in its own order."""
    for (_, protocol), group in itertools.groupby(seen, attrgetter("conversation", "protocol")):
        if not protocol:
            yield from map(_trouble_row, group)
            continue
        traffic, writer = Traffic(ports), _RowWriter()
        for one in group:
            at = Moment(writer.frame_of(one), one.time_ns)
            yield from writer.rows_of(traffic.add(one.transport, at))
        yield from writer.rows_of(traffic.finish())


def _trouble_row(seen: Seen) -> Row:
    return anomaly(
        AnomalyKind(seen.trouble),
        seen.problem,
        file=seen.file,
        frame=seen.frame or None,
        time=time_us(seen.time_ns) if seen.frame else None,
    )


class _RowWriter:
    """Turns the events of one conversation into rows."""

    def __init__(self) -> None:
        self._files: list[str] = []
        self._waiting: dict[int, Row] = {}
        """Messages whose fate is not known, by the numbers of their packets."""

    def frame_of(self, seen: Seen) -> int:
        """Return a number for a frame that grows from file to file, too."""
        if not self._files or self._files[-1] != seen.file:
            self._files.append(seen.file)
        return len(self._files) - 1 << _FRAME_BITS | seen.frame & _FRAME_MASK

    def rows_of(self, events: Iterable[Event]) -> Iterator[Row]:
        """Yield the rows that events complete."""
        for event in events:
            match event:
                case PacketItem():
                    row = packet_row(event, *self._place(event.frame), _key(event.connection))
                    if isinstance(event.packet, UserMessage):
                        self._waiting[event.number] = row
                    else:
                        yield row
                case HttpItem():
                    row = http_row(event, *self._place(event.frame), _key_of(event))
                    if event.message is not None and event.connection is not None:
                        self._waiting[event.number] = row
                    else:
                        yield row
                case DatagramItem():
                    yield datagram_row(event, *self._place(event.frame))
                case Settled():
                    yield self._settled(event)
                case Anomaly():
                    yield self._anomaly(event)
                case SessionSummary():
                    yield self._session(event)

    def _settled(self, settled: Settled[int]) -> Row:
        row = self._waiting.pop(settled.message)
        row.fate = settled.fate
        if settled.acknowledged_ns is not None:
            row.acknowledged_time = time_us(settled.acknowledged_ns)
            row.round_trip_ms = (settled.acknowledged_ns - settled.sent_ns) / 1_000_000
        return row

    def _anomaly(self, found: Anomaly) -> Row:
        file, frame = self._place(found.frame)
        whose = "" if found.source is None else f"from {found.source.host}: "
        return anomaly(
            found.kind,
            f"{whose}{found.description}",
            file=file,
            frame=frame,
            time=time_us(found.time_ns),
            session=None if found.connection is None else _key(found.connection),
            message_id=found.message_id,
        )

    def _session(self, found: SessionSummary) -> Row:
        connection = found.connection
        columns: dict[str, Any] = {}
        for who, end, side in (
            ("client", connection.client, found.client),
            ("server", connection.server, found.server),
        ):
            columns[f"{who}_address"], columns[f"{who}_port"] = end.host, end.port
            for name in ("qm", "messages", "bytes", "acks", "window"):
                columns[f"{who}_{name}"] = getattr(side, name)
        return SessionRow(
            session=_key(connection),
            file=self._place(found.first.frame)[0],
            last_file=self._place(found.last.frame)[0],
            start_time=time_us(found.first.time_ns),
            end_time=time_us(found.last.time_ns),
            duration_s=(found.last.time_ns - found.first.time_ns) / 1_000_000_000,
            handshake=found.handshake,
            ending=found.ending,
            order_acks=found.order_acks,
            final_acks=found.final_acks,
            ack_timeout_ms=found.ack_timeout_ms,
            unacknowledged_messages=found.unacknowledged,
            malformed_packets=found.malformed,
            missing_bytes=found.client.missing_bytes + found.server.missing_bytes,
            **columns,
        )

    def _place(self, frame: int) -> tuple[str, int]:
        return self._files[frame >> _FRAME_BITS], frame & _FRAME_MASK


def _key_of(item: HttpItem) -> str | None:
    return None if item.connection is None else _key(item.connection)


@functools.lru_cache(maxsize=16)
def _key(connection: Connection) -> str:
    """Return what names a session in all tables."""
    return f"{connection.client}-{connection.server}#{connection.number}"
