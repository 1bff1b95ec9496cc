"""From what was seen in all files to rows: who continues where another file ended.

All that two ports said to each other comes here in the order of the files, whichever file has it.
So a connection that goes on in the next file of a rotated capture is one session, and a packet
that lies in two files is whole. Segments that two files have, because they were captured at both
ends, count once, as a segment that was sent twice does; datagrams count in both.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Final

from openmsmq.capture.link_layers import ACK, FIN, RST, SYN, Endpoint, Protocol, TcpSegment
from openmsmq.capture.packet_scanner import Found, FoundPacket, PacketScanner
from openmsmq.capture.tcp_streams import Stream, StreamData, StreamEvent, StreamGap, TcpStreams
from openmsmq.spark.pipelines.capture.files import Ports, Seen
from openmsmq.spark.pipelines.capture.kinds import AnomalyKind, Ending
from openmsmq.spark.pipelines.capture.packets import MALFORMED, Place, Way, datagram_row
from openmsmq.spark.pipelines.capture.rows import Row, anomaly, time_us
from openmsmq.spark.pipelines.capture.session import Connection, SessionReader

HELD_BYTES_MAX: Final = 64 * 1024 * 1024
"""What a hole may hold back in one connection; beyond it the hole is given up."""
_FIRST: Final = 1
_RECORDED_SEQUENCE: Final = 0
"""With it a queue manager that records its traffic begins all connections: only time tells those
of the same ports apart."""
_FRAME_BITS: Final = 40
_FRAME_MASK: Final = (1 << _FRAME_BITS) - 1


def read_conversations(seen: Iterable[Seen], ports: Ports) -> Iterator[Row]:
    """Yield the rows of all conversations; each must come as a whole, in its own order."""
    for (_, protocol), group in itertools.groupby(seen, attrgetter("conversation", "protocol")):
        if protocol == Protocol.TCP:
            yield from _read_connections(group, ports)
        elif protocol == Protocol.UDP:
            yield from _read_datagrams(group)
        else:
            yield from map(_trouble_row, group)


def _read_connections(seen: Iterable[Seen], ports: Ports) -> Iterator[Row]:
    conversation = _TcpConversation(ports)
    for one in seen:
        conversation.add(one)
        yield from conversation.take_rows()
    conversation.finish()
    yield from conversation.take_rows()


def _read_datagrams(seen: Iterable[Seen]) -> Iterator[Row]:
    for one in seen:
        way = Way.between(*_ends(one))
        place = Place(one.file, one.frame, one.time_ns)
        if one.missing:
            yield anomaly(
                AnomalyKind.MISSING_BYTES,
                f"from {way.source_address}: the capture left out the last {one.missing} bytes of "
                "a datagram",
                file=one.file,
                frame=one.frame,
                time=place.time,
            )
            continue
        row = datagram_row(one.payload, way, place)
        yield row
        if row.packet == MALFORMED:
            yield anomaly(
                AnomalyKind.MALFORMED_PACKET,
                f"a datagram does not decode: {row.problem}",
                file=one.file,
                frame=one.frame,
                time=place.time,
            )
        elif row.refused:
            yield anomaly(
                AnomalyKind.REFUSED_CONNECTION,
                f"{way.source_address} answered a ping of {way.destination_address}: it would "
                "refuse a session",
                file=one.file,
                frame=one.frame,
                time=place.time,
            )


def _trouble_row(seen: Seen) -> Row:
    return anomaly(
        AnomalyKind(seen.trouble),
        seen.problem,
        file=seen.file,
        frame=seen.frame or None,
        time=time_us(seen.time_ns) if seen.frame else None,
    )


class _TcpConversation:
    """All connections that the same two ports had one after the other."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._files: list[str] = []
        self._count = 0
        self._current: _TcpConnection | None = None
        self._rows: list[Row] = []

    def add(self, seen: Seen) -> None:
        """Take the next segment."""
        if not self._files or self._files[-1] != seen.file:
            self._files.append(seen.file)
        if self._current is not None and self._current.is_followed_by(seen):
            self._end(Ending.REPLACED)
        if self._current is None:
            self._current = _TcpConnection(self._connection(seen), self._files, seen)
        try:
            self._current.add(seen)
        except _AnotherConnection:
            self._end(Ending.REPLACED)
            self.add(seen)

    def finish(self) -> None:
        """The captures are over."""
        self._end(Ending.OPEN)

    def take_rows(self) -> list[Row]:
        """Return the rows that are ready, once."""
        rows, self._rows = self._rows, []
        if self._current is not None:
            rows += self._current.reader.take_rows()
        return rows

    def _end(self, otherwise: Ending) -> None:
        if self._current is not None:
            self._current.finish(otherwise)
            self._rows += self._current.reader.take_rows()
            self._current = None

    def _connection(self, seen: Seen) -> Connection:
        self._count += 1
        source, destination = _ends(seen)
        opens = seen.flags & SYN != 0
        asked = source if opens and seen.flags & ACK else destination
        if not opens and destination.port not in self._ports.tcp:
            asked = source
        client = source if asked == destination else destination
        return Connection(client, asked, self._count, opens)


class _AnotherConnection(Exception):
    """The segment belongs to a later connection, which did not begin in the capture."""


class _TcpConnection:
    """One connection: its streams, and how it began and ended."""

    def __init__(self, connection: Connection, files: list[str], first: Seen) -> None:
        self.reader = SessionReader(connection, Place(first.file, first.frame, first.time_ns))
        self._files = files
        self._streams = TcpStreams()
        self._scanners: dict[Stream, PacketScanner] = {}
        self._in_order: set[Stream] = set()
        """Streams of which a packet was found, or in which bytes are missing."""
        self._ready: list[tuple[int, int, StreamEvent, Found, bool]] = []
        self._order = itertools.count()
        self._held_bytes = 0
        self._opened_with: dict[Endpoint, int] = {}
        self._closed_by: Endpoint | None = None
        self._reset_by: Endpoint | None = None
        self._has_answered = False
        self._has_data = False
        self._last = first

    def is_followed_by(self, seen: Seen) -> bool:
        """Whether a segment opens a new connection, and is no copy of the one that opened this."""
        if seen.flags & (SYN | ACK) != SYN:
            return False
        before = self._opened_with.get(_ends(seen)[0])
        if before is None:
            return True
        if before != seen.sequence:
            return True
        is_over = self._closed_by is not None or self._reset_by is not None
        return is_over and before == _RECORDED_SEQUENCE and seen.time_ns > self._last.time_ns

    def add(self, seen: Seen) -> None:
        """Take the next segment."""
        source, destination = _ends(seen)
        segment = TcpSegment(
            source, destination, seen.sequence, seen.flags, seen.payload, seen.missing
        )
        events = self._streams.add(segment, self._frame(seen), seen.time_ns)
        self._take(events, is_over=False)
        self._release(self._streams.waiting_since_frame)
        while self._held_bytes > HELD_BYTES_MAX and self._streams.waiting_since_frame is not None:
            self._take(self._streams.skip_oldest_hole(), is_over=False)
            self._release(self._streams.waiting_since_frame)
        if any(event.stream.connection != _FIRST for event in events):
            raise _AnotherConnection
        self._has_data = self._has_data or bool(seen.payload)
        self._note_flags(seen, source)
        # Files from both ends tell the same time twice.
        if seen.time_ns >= self._last.time_ns:
            self._last = seen

    def finish(self, otherwise: Ending) -> None:
        """The connection is over, or the capture."""
        self._take(self._streams.finish(), is_over=otherwise is Ending.OPEN)
        self._release(None)
        ended_by = self._reset_by or self._closed_by
        last = Place(self._last.file, self._last.frame, self._last.time_ns)
        self.reader.finish(self._ending(otherwise), last, ended_by)

    def _ending(self, otherwise: Ending) -> Ending:
        asked = self.reader.connection.from_start and not self._has_answered
        if self._reset_by is not None:
            is_refusal = asked and self._reset_by == self.reader.connection.server
            return Ending.REFUSED if is_refusal else Ending.RESET
        if self._closed_by is not None:
            return Ending.CLOSED
        return Ending.UNANSWERED if asked and not self._has_data else otherwise

    def _note_flags(self, seen: Seen, source: Endpoint) -> None:
        if seen.flags & SYN:
            self._opened_with.setdefault(source, seen.sequence)
        if seen.flags & FIN and self._closed_by is None:
            self._closed_by = source
        if seen.flags & RST:
            # Who has closed may reset what still comes.
            if self._closed_by is None and self._reset_by is None:
                self._reset_by = source
        elif source == self.reader.connection.server:
            self._has_answered = True

    def _take(self, events: list[StreamEvent], *, is_over: bool) -> None:
        for event in events:
            stream = event.stream
            if stream.connection != _FIRST:
                continue
            scanner = self._scanners.get(stream)
            if scanner is None:
                scanner = self._scanners[stream] = PacketScanner(from_start=stream.from_start)
            if isinstance(event, StreamData):
                found = scanner.feed(event.data)
            elif isinstance(event, StreamGap):
                found = scanner.gap(event.size)
            else:
                found = scanner.finish(event.reason)
            for one in found:
                heapq.heappush(self._ready, (event.frame, next(self._order), event, one, is_over))
                self._held_bytes += len(one.data)

    def _release(self, before_frame: int | None) -> None:
        """Give what was found to the reader; a hole holds back what both sides said behind it.

        Otherwise messages behind a hole would come after their acknowledgments.
        """
        while self._ready and (before_frame is None or self._ready[0][0] < before_frame):
            _, _, event, found, is_over = heapq.heappop(self._ready)
            self._held_bytes -= len(found.data)
            self._give(event, found, is_over=is_over)

    def _give(self, event: StreamEvent, found: Found, *, is_over: bool) -> None:
        stream, reader, place = event.stream, self.reader, self._place(event)
        if isinstance(found, FoundPacket):
            reader.packet(stream.source, found.data, found.offset, place)
        elif found.data:
            at_start = not stream.from_start and stream not in self._in_order
            reader.stray(stream.source, found.problem, place, at_edge=at_start or is_over)
        else:
            reader.missing(stream.source, found.size, found.problem, place)
        self._in_order.add(stream)

    def _frame(self, seen: Seen) -> int:
        """Number a frame so that numbers grow from file to file, too."""
        return len(self._files) - 1 << _FRAME_BITS | seen.frame & _FRAME_MASK

    def _place(self, event: StreamEvent) -> Place:
        file = self._files[event.frame >> _FRAME_BITS]
        return Place(file, event.frame & _FRAME_MASK, event.time_ns)


def _ends(seen: Seen) -> tuple[Endpoint, Endpoint]:
    source = Endpoint(seen.source, seen.source_port)
    return source, Endpoint(seen.destination, seen.destination_port)
