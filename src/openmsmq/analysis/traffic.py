"""Traffic: segments and datagrams become events, in the order in which they were seen.

Events are ordered by the frame that completed them. A stream that waits for missing bytes holds
back what other streams gave later: else messages behind a hole would come after their
acknowledgments, and the order would be wrong when the hole is given up.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from openmsmq.analysis.comparison import Comparison
from openmsmq.analysis.events import Anomaly, DatagramItem, Event, Moment, PacketItem
from openmsmq.analysis.kinds import AnomalyKind
from openmsmq.analysis.packet_scanner import Found, FoundPacket, FoundTrouble, PacketScanner
from openmsmq.analysis.session import SessionReader
from openmsmq.analysis.transports import Ports, TransportReader
from openmsmq.capture.frames import Frame
from openmsmq.capture.link_layers import Endpoint, TcpSegment, Transport, UdpDatagram
from openmsmq.capture.source import CaptureError
from openmsmq.capture.tcp_streams import (
    ConnectionEnd,
    ConnectionStart,
    Stream,
    StreamData,
    StreamEvent,
    StreamGap,
    TcpEvent,
    TcpStreams,
)
from openmsmq.wire import packets
from openmsmq.wire.datagrams import PingPacket
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.text.tree import Kind, guess_kind, view

HELD_BYTES_MAX: Final = 64 * 1024 * 1024
"""What unfinished packets and events held back may take together."""
DISCOVERY_PORT: Final = 1801

_Ready: TypeAlias = (
    ConnectionStart | ConnectionEnd | DatagramItem | Anomaly | tuple[StreamEvent, Found, bool]
)


def follow(frames: Iterable[Frame], ports: Ports | None = None) -> Iterator[Event]:
    """Yield the events of a capture; a `CaptureError` comes behind all that could be read."""
    reader = TransportReader(ports or Ports())
    traffic = Traffic(ports)
    comparison = Comparison()
    damage = None
    last = Moment(0, 0)
    try:
        for frame in frames:
            last = Moment(frame.number, frame.time_ns)
            transport = reader.take(frame)
            events = traffic.passed(last) if transport is None else traffic.add(transport, last)
            yield from comparison.with_findings(events)
    except CaptureError as error:
        damage = error
    yield from comparison.with_findings(traffic.finish())
    yield from comparison.finish()
    for kind, problem in reader.finish():
        yield Anomaly(kind, problem, *last)
    if damage is not None:
        raise damage


def datagram_kind(datagram: DatagramItem) -> Kind:
    """Return what a datagram is, or, without a signature, what it should be by its ports."""
    ends = datagram.source.port, datagram.destination.port
    return guess_kind(datagram.data) or (Kind.DISCOVERY if DISCOVERY_PORT in ends else Kind.PING)


class Traffic:
    """Takes segments and datagrams one by one and gives what they complete."""

    def __init__(self, ports: Ports | None = None, *, held_bytes_max: int = HELD_BYTES_MAX) -> None:
        self._held_bytes_max = held_bytes_max
        self._streams = TcpStreams(server_ports=(ports or Ports()).tcp)
        self._scanners: dict[Stream, PacketScanner] = {}
        self._sessions: dict[int, tuple[SessionReader[int], set[Endpoint]]] = {}
        """By connection: its reader, and of whom a packet was found, or bytes are missing."""
        self._ready: list[tuple[int, int, _Ready]] = []
        self._order = itertools.count()
        self._packet_count = 0
        self._held_bytes = 0
        self._events: list[Event] = []

    def add(self, transport: Transport, at: Moment) -> list[Event]:
        """Take the next segment or datagram; return the events whose turn it is."""
        if isinstance(transport, TcpSegment):
            self._take(self._streams.add(transport, *at))
        else:
            self._streams.advance_to(*at)
            self._put(at.frame, _datagram(transport, at))
        return self._due()

    def passed(self, at: Moment) -> list[Event]:
        """Take note of a frame with nothing of ours; return the events whose turn it is."""
        self._streams.advance_to(*at)
        return self._due()

    def finish(self) -> list[Event]:
        """Return the rest: the capture is over."""
        self._take(self._streams.finish(), is_over=True)
        self._release(None)
        return self._given()

    # Internals.

    def _due(self) -> list[Event]:
        self._release(self._streams.waiting_since_frame)
        while self._held_bytes > self._held_bytes_max:
            if self._streams.waiting_since_frame is not None:
                self._take(self._streams.skip_oldest_hole())
            else:
                self._take(self._streams.forget_oldest())
            self._release(self._streams.waiting_since_frame)
        return self._given()

    def _given(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    def _take(self, events: Iterable[TcpEvent], *, is_over: bool = False) -> None:
        for event in events:
            if isinstance(event, ConnectionStart | ConnectionEnd):
                self._put(event.frame, event)
                continue
            scanner = self._scanners.get(event.stream)
            if scanner is None:
                scanner = PacketScanner(from_start=event.stream.from_start)
                self._scanners[event.stream] = scanner
            self._held_bytes -= len(scanner)
            if isinstance(event, StreamData):
                found = scanner.feed(event.data)
            elif isinstance(event, StreamGap):
                found = scanner.gap(event.size)
            else:
                found = scanner.finish(event.reason)
                del self._scanners[event.stream]
            for one in found:
                self._put(event.frame, (event, one, is_over))
            self._held_bytes += len(scanner)

    def _put(self, frame: int, ready: _Ready) -> None:
        heapq.heappush(self._ready, (frame, next(self._order), ready))
        self._held_bytes += _size(ready)

    def _release(self, before_frame: int | None) -> None:
        while self._ready and (before_frame is None or self._ready[0][0] < before_frame):
            ready = heapq.heappop(self._ready)[2]
            self._held_bytes -= _size(ready)
            self._give(ready)

    def _give(self, ready: _Ready) -> None:
        if isinstance(ready, tuple):
            event, found, is_over = ready
            session, heard = self._sessions[event.stream.connection]
            if isinstance(found, FoundPacket):
                self._give_packet(session, event, found)
            else:
                is_first = event.stream.source not in heard and not event.stream.from_start
                self._give_trouble(session, event, found, at_edge=is_over or is_first)
            heard.add(event.stream.source)
        elif isinstance(ready, ConnectionStart):
            at = Moment(ready.frame, ready.time_ns)
            self._sessions[ready.connection.number] = SessionReader(ready.connection, at), set()
        elif isinstance(ready, ConnectionEnd):
            session, _ = self._sessions.pop(ready.connection)
            session.finish(ready.ending, Moment(*ready.last), ready.ended_by)
            self._events += session.take()
        else:
            self._events.append(ready)
            if isinstance(ready, DatagramItem):
                self._events += _datagram_anomalies(ready)

    def _give_packet(
        self, session: SessionReader[int], event: StreamEvent, found: FoundPacket
    ) -> None:
        self._packet_count += 1
        stream, at, data = event.stream, Moment(event.frame, event.time_ns), found.data
        packet, problem = None, ""
        try:
            packet = packets.decode(data)
        except DecodeError as error:
            problem = str(error)
        self._events.append(
            PacketItem(
                *at,
                stream.source,
                stream.destination,
                data,
                session.connection,
                found.offset,
                self._packet_count,
                packet,
                problem,
            )
        )
        if packet is None:
            session.malformed(stream.source, problem, len(data), at)
        else:
            session.packet(stream.source, packet, len(data), at, self._packet_count)
        self._events += session.take()

    def _give_trouble(
        self, session: SessionReader[int], event: StreamEvent, found: FoundTrouble, *, at_edge: bool
    ) -> None:
        stream = event.stream
        if not found.data:
            kind = AnomalyKind.MISSING_BYTES
            session.missing(stream.source, found.size)
        elif at_edge:
            # The capture begins or ends here: that is normal.
            kind = AnomalyKind.CUT_PACKET
        else:
            kind = AnomalyKind.STRAY_BYTES
        self._events.append(
            Anomaly(
                kind,
                found.problem,
                event.frame,
                event.time_ns,
                session.connection,
                None,
                stream.source,
                stream.destination,
                found.data,
                found.offset,
            )
        )


def _size(ready: _Ready) -> int:
    if isinstance(ready, tuple):
        return len(ready[1].data)
    return len(ready.data) if isinstance(ready, DatagramItem | Anomaly) else 0


def _datagram(datagram: UdpDatagram, at: Moment) -> DatagramItem | Anomaly:
    if not datagram.missing:
        return DatagramItem(*at, datagram.source, datagram.destination, datagram.payload)
    return Anomaly(
        AnomalyKind.MISSING_BYTES,
        f"the capture left out the last {datagram.missing} bytes of a datagram",
        *at,
        source=datagram.source,
        destination=datagram.destination,
        data=datagram.payload,
    )


def _datagram_anomalies(datagram: DatagramItem) -> Iterator[Anomaly]:
    kind = datagram_kind(datagram)
    problem = view(datagram.data, kind).problem
    at = Moment(datagram.frame, datagram.time_ns)
    if problem:
        text = f"a datagram does not decode: {problem}"
        yield Anomaly(AnomalyKind.MALFORMED_PACKET, text, *at)
    elif kind is Kind.PING and PingPacket.decode(datagram.data).refused:
        yield Anomaly(
            AnomalyKind.REFUSED_CONNECTION,
            f"{datagram.source.host} answered a ping of {datagram.destination.host}: it would "
            "refuse a session",
            *at,
        )
