"""Conversation: the MSMQ packets and datagrams of a capture, in the order of the capture.

Items are ordered by the frame that completed them. A stream that waits for missing bytes holds
back what other streams gave later, so that the order stays right when the hole is given up.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import msgspec

from openmsmq.capture.fragments import FragmentTable
from openmsmq.capture.frames import Frame
from openmsmq.capture.link_layers import (
    Endpoint,
    FrameError,
    TcpSegment,
    Transport,
    UdpDatagram,
    ip_bytes,
    read_ip,
    read_transport,
)
from openmsmq.capture.packet_scanner import Found, FoundPacket, PacketScanner
from openmsmq.capture.source import CaptureError
from openmsmq.capture.tcp_streams import Stream, StreamData, StreamEvent, StreamGap, TcpStreams

TCP_PORTS: Final = frozenset({1801})
UDP_PORTS: Final = frozenset({3527, 1801})
"""Ping and directory discovery."""

HELD_BYTES_MAX: Final = 64 * 1024 * 1024
"""What unfinished packets and items held back may take together."""


class PacketItem(msgspec.Struct, frozen=True, gc=False):
    """One packet of a session; whether it decodes is for the reader to see."""

    frame: int
    time_ns: int
    source: Endpoint
    destination: Endpoint
    data: bytes
    connection: int
    offset: int
    """Where in the stream the packet starts."""


class DatagramItem(msgspec.Struct, frozen=True, gc=False):
    """One UDP datagram."""

    frame: int
    time_ns: int
    source: Endpoint
    destination: Endpoint
    data: bytes


class ProblemItem(msgspec.Struct, frozen=True, gc=False):
    """Something the capture should have and has not, or has and should not."""

    frame: int
    time_ns: int
    problem: str
    source: Endpoint | None = None
    destination: Endpoint | None = None
    data: bytes = b""
    """The first of the bytes concerned, if there are any."""
    connection: int | None = None
    offset: int | None = None


Item: TypeAlias = PacketItem | DatagramItem | ProblemItem


def follow(
    frames: Iterable[Frame],
    tcp_ports: frozenset[int] = TCP_PORTS,
    udp_ports: frozenset[int] = UDP_PORTS,
) -> Iterator[Item]:
    """Yield the items of a capture; a `CaptureError` comes behind all that could be read."""
    conversation = Conversation(tcp_ports, udp_ports)
    damage = None
    try:
        for frame in frames:
            yield from conversation.add(frame)
    except CaptureError as error:
        damage = error
    yield from conversation.finish()
    if damage is not None:
        raise damage


class Conversation:
    """Takes frames one by one and gives what they complete."""

    def __init__(
        self,
        tcp_ports: frozenset[int] = TCP_PORTS,
        udp_ports: frozenset[int] = UDP_PORTS,
        *,
        held_bytes_max: int = HELD_BYTES_MAX,
    ) -> None:
        self._held_bytes_max = held_bytes_max
        self._tcp_ports = tcp_ports
        self._udp_ports = udp_ports
        self._fragments = FragmentTable()
        self._streams = TcpStreams()
        self._scanners: dict[Stream, PacketScanner] = {}
        self._ready: list[tuple[int, int, Item]] = []
        self._order = itertools.count()
        self._held_bytes = 0
        self._last = (0, 0)
        self._unreadable_count = 0
        self._unreadable_first = ""

    def add(self, frame: Frame) -> Iterator[Item]:
        """Take the next frame; give the items whose turn it is."""
        self._last = (frame.number, frame.time_ns)
        self._streams.advance_to(*self._last)
        try:
            transport = self._transport(frame)
        except FrameError as error:
            self._unreadable_count += 1
            self._unreadable_first = self._unreadable_first or f"frame {frame.number}: {error}"
            return
        if isinstance(transport, TcpSegment):
            if not self._tcp_ports.isdisjoint((transport.source.port, transport.destination.port)):
                self._take(self._streams.add(transport, frame.number, frame.time_ns))
        elif transport is not None and not self._udp_ports.isdisjoint(
            (transport.source.port, transport.destination.port)
        ):
            self._take_datagram(transport, frame)
        yield from self._release(self._streams.waiting_since_frame)
        while self._held_bytes > self._held_bytes_max:
            self._hold_less()
            yield from self._release(self._streams.waiting_since_frame)

    def finish(self) -> Iterator[Item]:
        """Yield the rest: the capture is over."""
        self._take(self._streams.finish())
        self._fragments.finish()
        if self._fragments.lost:
            self._put(
                ProblemItem(*self._last, f"{self._fragments.lost} fragmented IP packets not whole")
            )
        if self._unreadable_count:
            self._put(
                ProblemItem(
                    *self._last,
                    f"{self._unreadable_count} frames cannot be read; "
                    f"the first is {self._unreadable_first}",
                )
            )
        yield from self._release(None)

    # Internals.

    def _transport(self, frame: Frame) -> Transport | None:
        data = ip_bytes(frame.link_type, frame.data)
        packet = None if data is None else self._fragments.add(read_ip(data))
        return None if packet is None else read_transport(packet)

    def _take_datagram(self, datagram: UdpDatagram, frame: Frame) -> None:
        where = (frame.number, frame.time_ns)
        if datagram.missing:
            self._put(
                ProblemItem(
                    *where,
                    f"the capture left out the last {datagram.missing} bytes of this datagram",
                    datagram.source,
                    datagram.destination,
                    datagram.payload,
                )
            )
        else:
            self._put(DatagramItem(*where, datagram.source, datagram.destination, datagram.payload))

    def _take(self, events: list[StreamEvent]) -> None:
        for event in events:
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
                self._put(_item(event, one))
            self._held_bytes += len(scanner)

    def _put(self, item: Item) -> None:
        heapq.heappush(self._ready, (item.frame, next(self._order), item))
        self._held_bytes += len(item.data)

    def _release(self, before_frame: int | None) -> Iterator[Item]:
        while self._ready and (before_frame is None or self._ready[0][0] < before_frame):
            item = heapq.heappop(self._ready)[2]
            self._held_bytes -= len(item.data)
            yield item

    def _hold_less(self) -> None:
        if self._streams.waiting_since_frame is not None:
            self._take(self._streams.skip_oldest_hole())
        else:
            self._take(self._streams.forget_oldest())


def _item(event: StreamEvent, found: Found) -> Item:
    stream = event.stream
    if isinstance(found, FoundPacket):
        return PacketItem(
            event.frame,
            event.time_ns,
            stream.source,
            stream.destination,
            found.data,
            stream.connection,
            found.offset,
        )
    return ProblemItem(
        event.frame,
        event.time_ns,
        found.problem,
        stream.source,
        stream.destination,
        found.data,
        stream.connection,
        found.offset,
    )
