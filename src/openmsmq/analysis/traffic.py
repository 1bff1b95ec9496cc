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

import msgspec

from openmsmq.analysis.comparison import Comparison
from openmsmq.analysis.events import Anomaly, DatagramItem, Event, HttpItem, Moment, PacketItem
from openmsmq.analysis.http_scanner import FoundHttp, FoundInHttp, HttpScanner
from openmsmq.analysis.http_session import HttpReader
from openmsmq.analysis.kinds import AnomalyKind
from openmsmq.analysis.multicast import FoundMessage, MulticastReader
from openmsmq.analysis.packet_scanner import Found, FoundPacket, FoundTrouble, PacketScanner
from openmsmq.analysis.session import SessionReader
from openmsmq.analysis.transports import Ports, TransportReader
from openmsmq.capture.frames import Frame
from openmsmq.capture.link_layers import (
    Endpoint,
    PgmDatagram,
    Protocol,
    TcpSegment,
    Transport,
    UdpDatagram,
)
from openmsmq.capture.source import CaptureError
from openmsmq.capture.tcp_streams import (
    Connection,
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
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.srmp.arriving import arrived_message
from openmsmq.wire.text.posts import Post
from openmsmq.wire.text.tree import Kind, guess_kind, view

HELD_BYTES_MAX: Final = 64 * 1024 * 1024
"""What unfinished packets and events held back may take together."""
DISCOVERY_PORT: Final = 1801

_NS_PER_S: Final = 1_000_000_000

_Found: TypeAlias = Found | FoundInHttp
_Ready: TypeAlias = (
    ConnectionStart
    | ConnectionEnd
    | DatagramItem
    | FoundMessage
    | Anomaly
    | tuple[StreamEvent, _Found, bool]
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
    if datagram.protocol is Protocol.PGM:
        return Kind.PGM
    ends = datagram.source.port, datagram.destination.port
    return guess_kind(datagram.data) or (Kind.DISCOVERY if DISCOVERY_PORT in ends else Kind.PING)


class Traffic:
    """Takes segments and datagrams one by one and gives what they complete."""

    def __init__(self, ports: Ports | None = None, *, held_bytes_max: int = HELD_BYTES_MAX) -> None:
        self._held_bytes_max = held_bytes_max
        self._ports = ports or Ports()
        self._streams = TcpStreams(server_ports=self._ports.tcp | self._ports.http)
        self._multicast = MulticastReader()
        self._http: dict[int, Connection] = {}
        """Connections of HTTP whose bytes are read."""
        self._scanners: dict[Stream, PacketScanner | HttpScanner] = {}
        self._sessions: dict[int, tuple[SessionReader[int] | HttpReader, set[Endpoint]]] = {}
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
            if isinstance(transport, PgmDatagram) and not transport.missing:
                self._held_bytes -= len(self._multicast)
                for found in self._multicast.take(transport, at):
                    self._put(at.frame, found)
                self._held_bytes += len(self._multicast)
        return self._due()

    def passed(self, at: Moment) -> list[Event]:
        """Take note of a frame with nothing of ours; return the events whose turn it is."""
        self._streams.advance_to(*at)
        return self._due()

    def finish(self) -> list[Event]:
        """Return the rest: the capture is over."""
        self._take(self._streams.finish(), is_over=True)
        for found in self._multicast.finish():
            self._put(found.frame, found)
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
            if isinstance(event, ConnectionStart):
                if self._ports.is_http(event.connection):
                    self._http[event.connection.number] = event.connection
                self._put(event.frame, event)
                continue
            if isinstance(event, ConnectionEnd):
                self._http.pop(event.connection, None)
                self._put(event.frame, event)
                continue
            scanner = self._scanners.get(event.stream)
            if scanner is None:
                scanner = self._scanners[event.stream] = self._scanner(event.stream)
            self._held_bytes -= len(scanner)
            found: Iterable[_Found]
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

    def _scanner(self, stream: Stream) -> PacketScanner | HttpScanner:
        http = self._http.get(stream.connection)
        if http is None:
            return PacketScanner(from_start=stream.from_start)
        is_client = stream.source == http.client
        return HttpScanner(of_client=is_client, from_start=stream.from_start)

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
                assert isinstance(session, SessionReader)
                self._give_packet(session, event, found)
            elif isinstance(found, FoundHttp):
                assert isinstance(session, HttpReader)
                self._give_http(session, event, found)
            else:
                is_first = event.stream.source not in heard and not event.stream.from_start
                self._give_trouble(session, event, found, at_edge=is_over or is_first)
            heard.add(event.stream.source)
        elif isinstance(ready, ConnectionStart):
            at, connection = Moment(ready.frame, ready.time_ns), ready.connection
            is_http = self._ports.is_http(connection)
            session = (HttpReader if is_http else SessionReader)(connection, at)
            self._sessions[connection.number] = session, set()
        elif isinstance(ready, ConnectionEnd):
            session, _ = self._sessions.pop(ready.connection)
            last = Moment(*ready.last)
            if isinstance(session, HttpReader):
                session.finish(ready.ending, last)
            else:
                session.finish(ready.ending, last, ready.ended_by)
            self._events += session.take()
        elif isinstance(ready, FoundMessage):
            self._give_multicast(ready)
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

    def _give_http(self, session: HttpReader, event: StreamEvent, found: FoundHttp) -> None:
        stream, at, data = event.stream, Moment(event.frame, event.time_ns), found.data
        item = self._http_item(at, stream.source, stream.destination, data, found.kind)
        item = msgspec.structs.replace(item, connection=session.connection, offset=found.offset)
        self._events.append(item)
        if found.kind is Kind.ANSWER:
            session.answer(len(data), found.status, at)
        else:
            number = None if item.message is None else item.number
            session.request(len(data), at, number)
        if item.problem:
            session.malformed(item.problem, at)
        self._events += session.take()

    def _give_multicast(self, found: FoundMessage) -> None:
        item = self._http_item(found.at, found.source, found.destination, found.data, Kind.POST)
        self._events.append(item)
        if item.problem:
            text = f"a message of multicast does not decode: {item.problem}"
            self._events.append(Anomaly(AnomalyKind.MALFORMED_PACKET, text, *found.at))

    def _http_item(
        self, at: Moment, source: Endpoint, destination: Endpoint, data: bytes, kind: Kind
    ) -> HttpItem:
        self._packet_count += 1
        post, message, problem = None, None, ""
        if kind is Kind.POST:
            try:
                post = Post.decode(data)
                message = arrived_message(post.envelope, post.parts, at.time_ns // _NS_PER_S)
            except (DecodeError, EncodeError) as error:
                problem = str(error)
        number = self._packet_count
        return HttpItem(*at, source, destination, data, kind, number, post, message, problem)

    def _give_trouble(
        self,
        session: SessionReader[int] | HttpReader,
        event: StreamEvent,
        found: FoundTrouble,
        *,
        at_edge: bool,
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
            if isinstance(session, HttpReader):
                session.missing(stream.source, found.size)
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
        self._events += session.take()


def _size(ready: _Ready) -> int:
    if isinstance(ready, tuple):
        return len(ready[1].data)
    return len(ready.data) if isinstance(ready, DatagramItem | FoundMessage | Anomaly) else 0


def _datagram(datagram: UdpDatagram | PgmDatagram, at: Moment) -> DatagramItem | Anomaly:
    if not datagram.missing:
        protocol = Protocol.PGM if isinstance(datagram, PgmDatagram) else Protocol.UDP
        ends = datagram.source, datagram.destination
        return DatagramItem(*at, *ends, datagram.payload, protocol)
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
    if kind is Kind.PGM:
        # Whoever puts its messages together has said so.
        return
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
