"""Frames become the segments and datagrams of queue managers, and it is said what cannot be read.

Nothing that a frame holds raises.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from openmsmq.analysis.kinds import AnomalyKind
from openmsmq.capture.fragments import FragmentTable
from openmsmq.capture.frames import Frame
from openmsmq.capture.link_layers import (
    FrameError,
    PgmDatagram,
    TcpSegment,
    Transport,
    ip_bytes,
    read_ip,
    read_transport,
)
from openmsmq.capture.tcp_streams import Connection

TCP_PORTS: Final = frozenset({1801})
UDP_PORTS: Final = frozenset({3527, 1801})
"""Ping and directory discovery."""
HTTP_PORTS: Final = frozenset({80, 8080})
"""Of URLs without a port, and where a queue manager of ours listens."""


class Ports(msgspec.Struct, frozen=True):
    """Which ports belong to queue managers."""

    tcp: frozenset[int] = TCP_PORTS
    udp: frozenset[int] = UDP_PORTS
    http: frozenset[int] = HTTP_PORTS

    def has(self, transport: Transport) -> bool:
        """Whether a segment or datagram is one of theirs; PGM has no ports that say so."""
        if isinstance(transport, PgmDatagram):
            return True
        ports = self.tcp | self.http if isinstance(transport, TcpSegment) else self.udp
        return transport.source.port in ports or transport.destination.port in ports

    def is_http(self, connection: Connection) -> bool:
        """Whether a connection has HTTP; a port that belongs to both has sessions."""
        port = connection.server.port
        return port in self.http and port not in self.tcp


class TransportReader:
    """Takes the frames of one capture."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._fragments = FragmentTable()
        self._cut_count = 0
        self._unreadable_count = 0
        self._unreadable_first = ""

    def take(self, frame: Frame) -> Transport | None:
        """Return the segment or datagram of a queue manager that a frame has, if it has one."""
        try:
            data = ip_bytes(frame.link_type, frame.data)
            packet = None if data is None else self._fragments.add(read_ip(data))
            transport = None if packet is None else read_transport(packet)
        except FrameError as error:
            self._unreadable_count += 1
            self._unreadable_first = self._unreadable_first or f"frame {frame.number}: {error}"
            return None
        if transport is None:
            return None
        if not self._ports.has(transport):
            return None
        self._cut_count += transport.missing > 0
        return transport

    def finish(self) -> Iterator[tuple[AnomalyKind, str]]:
        """Yield what is wrong with frames all over the capture."""
        self._fragments.finish()
        if self._cut_count:
            yield (
                AnomalyKind.TRUNCATED_CAPTURE,
                f"the capture left out the ends of {self._cut_count} frames: capture whole frames "
                "(snap length 0)",
            )
        if self._fragments.lost:
            yield (
                AnomalyKind.UNREADABLE_FRAMES,
                f"{self._fragments.lost} fragmented IP packets are not whole",
            )
        if self._unreadable_count:
            yield (
                AnomalyKind.UNREADABLE_FRAMES,
                f"{self._unreadable_count} frames cannot be read; the first is "
                f"{self._unreadable_first}",
            )
