"""TcpStreams: segments become the byte streams of connections again.

A direction gives its bytes in order and once. What is missing holds back what follows until it
comes, or until waiting has lasted too long or costs too much: then the hole is reported as a gap
and the stream goes on behind it. Where two segments disagree, the first one captured is believed.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from enum import StrEnum
from typing import Final, TypeAlias

import msgspec

from openmsmq.capture.link_layers import ACK, FIN, RST, SYN, Endpoint, TcpSegment
from openmsmq.capture.pieces import Piece, Pieces

HELD_BYTES_MAX: Final = 16 * 1024 * 1024
"""What all directions together may hold behind holes; beyond it the oldest hole is given up."""
HOLE_WAIT_NS: Final = 60_000_000_000
"""How long, in the capture's time, a hole may wait for a retransmission."""
CONNECTIONS_MAX: Final = 4_096
"""How many connections are followed at once; beyond it the one silent longest is forgotten."""

_SEQUENCE_RANGE: Final = 1 << 32
_WINDOW_BYTES_MAX: Final = 1 << 30
"""No TCP window is larger: what is farther away belongs to another connection."""
_STALE_MAX: Final = 64
"""How many entries that say nothing any more are kept before they are cleared away."""
_RECORDED_SEQUENCE: Final = 0
"""With it a queue manager that records its traffic begins all connections: only time tells those
of the same ports apart."""


class Ending(StrEnum):
    """How a connection ended."""

    CLOSED = "closed"
    RESET = "reset"
    REFUSED = "refused"
    """Nobody listened there."""
    UNANSWERED = "unanswered"
    """Nobody answered at all."""
    REPLACED = "replaced"
    """Its ports were used again, and its end was not seen."""
    OPEN = "open"
    """It was still there when the capture ended."""


class Connection(msgspec.Struct, frozen=True, gc=False):
    """Which connection it is."""

    number: int
    """Counted from 1 in the order in which connections appear."""
    client: Endpoint
    server: Endpoint
    from_start: bool
    """Whether the capture saw it open."""


class Stream(msgspec.Struct, frozen=True, gc=False):
    """One direction of one connection."""

    connection: int
    """Counted from 1 in the order in which connections appear."""
    source: Endpoint
    destination: Endpoint
    from_start: bool
    """Whether the capture saw the connection open, so that offset 0 is its first byte."""


class StreamData(msgspec.Struct, frozen=True, gc=False):
    """The next bytes of a stream."""

    stream: Stream
    offset: int
    data: bytes
    frame: int
    time_ns: int


class StreamGap(msgspec.Struct, frozen=True, gc=False):
    """Bytes of a stream that the capture does not have."""

    stream: Stream
    offset: int
    size: int
    frame: int
    time_ns: int


class StreamEnd(msgspec.Struct, frozen=True, gc=False):
    """Nothing more will come on this stream."""

    stream: Stream
    offset: int
    reason: str
    frame: int
    time_ns: int


class ConnectionStart(msgspec.Struct, frozen=True, gc=False):
    """The first that was seen of a connection."""

    connection: Connection
    frame: int
    time_ns: int


class ConnectionEnd(msgspec.Struct, frozen=True, gc=False):
    """A connection is over, or is no longer followed; its streams have ended before."""

    connection: int
    ending: Ending
    ended_by: Endpoint | None
    """Who closed or reset it."""
    last: tuple[int, int]
    """Frame and time of its last segment."""
    frame: int
    time_ns: int


StreamEvent: TypeAlias = StreamData | StreamGap | StreamEnd
TcpEvent: TypeAlias = StreamEvent | ConnectionStart | ConnectionEnd


class _Direction:
    """What is known of one direction."""

    def __init__(self, stream: Stream, first_sequence: int) -> None:
        self.stream = stream
        self.first_sequence = first_sequence
        self.next = 0
        self.end: int | None = None
        self.ended = False
        self.pieces = Pieces()
        self.counted_cost = 0
        self.listed_since: tuple[int, int] | None = None
        self.last = (0, 0)
        self._arrivals: deque[tuple[tuple[int, int], int]] = deque()

    @property
    def waiting_since(self) -> tuple[int, int]:
        """When the oldest of the pieces held came; there is one."""
        return self._arrivals[0][0]

    def offset_of(self, sequence: int) -> int:
        """Where a sequence number lies in the stream: the place nearest to where we are."""
        away = (sequence - self.first_sequence - self.next) % _SEQUENCE_RANGE
        return self.next + (away if away < _SEQUENCE_RANGE // 2 else away - _SEQUENCE_RANGE)

    def add(self, piece: Piece) -> list[StreamEvent]:
        """Keep what is new of a piece, and give what it completes."""
        behind = self.next - piece.start
        if behind > 0:
            piece = Piece(self.next, piece.data[behind:], piece.frame, piece.time_ns)
        if piece.data:
            self.pieces.add(piece)
            self._arrivals.append(((piece.frame, piece.time_ns), piece.end))
        return self.advance()

    def advance(self) -> list[StreamEvent]:
        """Return what follows without a hole."""
        events: list[StreamEvent] = []
        for piece in self.pieces.take_from(self.next):
            self.last = max(self.last, (piece.frame, piece.time_ns))
            events.append(StreamData(self.stream, piece.start, piece.data, *self.last))
            self.next = piece.end
        self._forget_arrivals()
        return events

    def _forget_arrivals(self) -> None:
        """Forget when those pieces came that are no longer held.

        The last byte of a piece belongs to it or to one that came before it, so as long as that
        byte is held, something that old is.
        """
        arrivals = self._arrivals
        while arrivals and arrivals[0][1] <= self.next:
            arrivals.popleft()
        if len(arrivals) > 2 * len(self.pieces) + _STALE_MAX:
            self._arrivals = deque(entry for entry in arrivals if entry[1] > self.next)

    def skip_hole(self) -> list[StreamEvent]:
        """Skip the bytes in front of the first piece held."""
        start = self.pieces.start
        self.last = max(self.last, self.waiting_since)
        gap = StreamGap(self.stream, self.next, start - self.next, *self.last)
        self.next = start
        return [gap, *self.advance()]

    def finish(self, reason: str, now: tuple[int, int]) -> list[StreamEvent]:
        """Return all that is held, and the end."""
        if self.ended:
            return []
        self.ended = True
        events: list[StreamEvent] = []
        while self.pieces:
            events += self.skip_hole()
        self.last = max(self.last, now)
        if self.end is not None and self.end > self.next:
            events.append(StreamGap(self.stream, self.next, self.end - self.next, *self.last))
            self.next = self.end
        events.append(StreamEnd(self.stream, self.next, reason, *self.last))
        return events


class _Connection:
    """Both directions, as far as they were seen, and how it began and ended."""

    def __init__(self, number: int, first: TcpSegment, server_ports: frozenset[int]) -> None:
        source, destination = first.source, first.destination
        opens = first.flags & SYN != 0
        asks = not first.flags & ACK if opens else destination.port in server_ports
        client, server = (source, destination) if asks else (destination, source)
        self.known = Connection(number, client, server, opens)
        self.directions: dict[Endpoint, _Direction] = {}
        self.last = (0, 0)
        self._closed_by: Endpoint | None = None
        self._reset_by: Endpoint | None = None
        self._has_answered = False
        self._has_data = False

    @property
    def ended_by(self) -> Endpoint | None:
        """Who reset or closed it, if anybody did."""
        return self._reset_by or self._closed_by

    def is_another(self, segment: TcpSegment, time_ns: int) -> bool:
        """Whether the segment belongs to a later connection between the same ports."""
        direction = self.directions.get(segment.source)
        if segment.flags & SYN:
            if direction is None:
                return any(
                    other.ended or not other.stream.from_start for other in self.directions.values()
                )
            if (segment.sequence + 1 - direction.first_sequence) % _SEQUENCE_RANGE != 0:
                return True
            return (
                segment.sequence == _RECORDED_SEQUENCE
                and not segment.flags & ACK
                and self.ended_by is not None
                and time_ns > self.last[1]
            )
        if direction is None or not segment.payload:
            return False
        return abs(direction.offset_of(segment.sequence) - direction.next) > _WINDOW_BYTES_MAX

    def note(self, segment: TcpSegment, now: tuple[int, int]) -> None:
        """Take note of what a segment says about the connection."""
        # Files from both ends tell the same time twice.
        if now[1] >= self.last[1]:
            self.last = now
        self._has_data = self._has_data or bool(segment.payload)
        if segment.flags & FIN and self._closed_by is None:
            self._closed_by = segment.source
        if segment.flags & RST:
            # Who has closed may reset what still comes.
            if self.ended_by is None:
                self._reset_by = segment.source
        elif segment.source == self.known.server:
            self._has_answered = True

    def ending(self, otherwise: Ending) -> Ending:
        """Return how it ended."""
        asked = self.known.from_start and not self._has_answered
        if self._reset_by is not None:
            is_refusal = asked and self._reset_by == self.known.server
            return Ending.REFUSED if is_refusal else Ending.RESET
        if self._closed_by is not None:
            return Ending.CLOSED
        return Ending.UNANSWERED if asked and not self._has_data else otherwise

    def direction(self, segment: TcpSegment) -> _Direction:
        """The direction of a segment, opened if this is its first."""
        direction = self.directions.get(segment.source)
        if direction is None:
            opens = segment.flags & SYN != 0
            stream = Stream(self.known.number, segment.source, segment.destination, opens)
            direction = _Direction(stream, (segment.sequence + opens) % _SEQUENCE_RANGE)
            self.directions[segment.source] = direction
        return direction


class TcpStreams:
    """Takes segments in the order of the capture and gives the events of their streams."""

    def __init__(
        self,
        *,
        server_ports: frozenset[int] = frozenset(),
        held_bytes_max: int = HELD_BYTES_MAX,
        connections_max: int = CONNECTIONS_MAX,
    ) -> None:
        self._server_ports = server_ports
        self._held_bytes_max = held_bytes_max
        self._connections_max = connections_max
        self._connections: dict[frozenset[Endpoint], _Connection] = {}
        self._waiting: set[_Direction] = set()
        self._by_age: list[tuple[tuple[int, int], int, _Direction]] = []
        self._order = itertools.count()
        self._held_cost = 0
        self._count = 0
        self._now = (0, 0)

    @property
    def waiting_since_frame(self) -> int | None:
        """The oldest frame whose bytes may still be held back, if any are."""
        return self._oldest().waiting_since[0] if self._waiting else None

    def advance_to(self, frame: int, time_ns: int) -> None:
        """Take note how far the capture is read: what is given up from now on is known then."""
        self._now = (frame, time_ns)

    def add(self, segment: TcpSegment, frame: int, time_ns: int) -> list[TcpEvent]:
        """Take the next segment of the capture."""
        self.advance_to(frame, time_ns)
        events: list[TcpEvent] = []
        connection = self._connection(segment, events)
        connection.note(segment, self._now)
        events += self._take(connection.direction(segment), segment)
        if segment.flags & RST:
            events += self._end(connection, "reset")
        while self._waiting and (
            self._held_cost > self._held_bytes_max
            or time_ns - self._oldest().waiting_since[1] > HOLE_WAIT_NS
        ):
            events += self.skip_oldest_hole()
        return events

    def skip_oldest_hole(self) -> list[StreamEvent]:
        """Stop waiting for the bytes that have been missing longest."""
        oldest = self._oldest()
        return self._settle(oldest, oldest.skip_hole())

    def forget_oldest(self) -> list[TcpEvent]:
        """End the connection that has been silent longest."""
        key = next(iter(self._connections))
        return self._leave(self._connections.pop(key), "no longer followed", Ending.OPEN)

    def finish(self) -> list[TcpEvent]:
        """Return what is still held: the capture is over."""
        events: list[TcpEvent] = []
        while self._connections:
            _, connection = self._connections.popitem()
            events += self._leave(connection, "the capture ends", Ending.OPEN)
        return events

    # Internals.

    def _oldest(self) -> _Direction:
        """The direction that has waited longest; there is one."""
        while not _is_listed(self._by_age[0]):
            heapq.heappop(self._by_age)
        return self._by_age[0][2]

    def _list_by_age(self, direction: _Direction) -> None:
        since = direction.waiting_since if direction.pieces else None
        if since == direction.listed_since:
            return
        direction.listed_since = since
        if since is not None:
            heapq.heappush(self._by_age, (since, next(self._order), direction))
        if len(self._by_age) > 2 * len(self._waiting) + _STALE_MAX:
            self._by_age = list(filter(_is_listed, self._by_age))
            heapq.heapify(self._by_age)

    def _connection(self, segment: TcpSegment, events: list[TcpEvent]) -> _Connection:
        """Find the connection of a segment; a new one when its ports are used again."""
        key = frozenset((segment.source, segment.destination))
        connection = self._connections.pop(key, None)
        if connection is not None and connection.is_another(segment, self._now[1]):
            events += self._leave(connection, "its ports are used again", Ending.REPLACED)
            connection = None
        if connection is None:
            if len(self._connections) >= self._connections_max:
                events += self.forget_oldest()
            self._count += 1
            connection = _Connection(self._count, segment, self._server_ports)
            events.append(ConnectionStart(connection.known, *self._now))
        # Taken out and put back: the dictionary is ordered by when a connection last spoke.
        self._connections[key] = connection
        return connection

    def _take(self, direction: _Direction, segment: TcpSegment) -> list[StreamEvent]:
        if direction.ended:
            return []
        start = direction.offset_of(segment.sequence + (segment.flags & SYN != 0))
        if segment.flags & FIN and direction.end is None:
            direction.end = start + len(segment.payload) + segment.missing
        return self._settle(direction, direction.add(Piece(start, segment.payload, *self._now)))

    def _end(self, connection: _Connection, reason: str) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        for direction in connection.directions.values():
            events += self._settle(direction, direction.finish(reason, self._now))
        return events

    def _leave(self, connection: _Connection, reason: str, otherwise: Ending) -> list[TcpEvent]:
        """End what is left of a connection, and say how it went."""
        return [
            *self._end(connection, reason),
            ConnectionEnd(
                connection.known.number,
                connection.ending(otherwise),
                connection.ended_by,
                connection.last,
                *self._now,
            ),
        ]

    def _settle(self, direction: _Direction, events: list[StreamEvent]) -> list[StreamEvent]:
        """Count what the direction holds now, and end it when all of it was given."""
        if direction.end is not None and direction.next >= direction.end:
            events += direction.finish("closed", self._now)
        self._held_cost += direction.pieces.cost - direction.counted_cost
        direction.counted_cost = direction.pieces.cost
        if direction.pieces:
            self._waiting.add(direction)
        else:
            self._waiting.discard(direction)
        self._list_by_age(direction)
        return events


def _is_listed(entry: tuple[tuple[int, int], int, _Direction]) -> bool:
    """Whether the direction still waits since then."""
    return entry[0] == entry[2].listed_since
