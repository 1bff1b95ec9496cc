"""Recorder: what a queue manager sends and receives, as a capture that other tools can read.

A queue manager sees streams and datagrams, not frames. The recorder wraps them in IP packets with
right checksums, so that any capture tool shows them as the conversation they were.
"""

from __future__ import annotations

import struct
from typing import Final

from openmsmq.capture import pcapng
from openmsmq.capture.link_layers import ACK, FIN, PSH, SYN, Endpoint, LinkType, Protocol

SEGMENT_BYTES_MAX: Final = 32_768
"""How much of a stream one recorded segment holds at most."""

_FIRST_SEQUENCE: Final = 0
_WINDOW: Final = 0xFFFF
_HOP_LIMIT: Final = 64


def ip_packet(source: Endpoint, destination: Endpoint, protocol: Protocol, payload: bytes) -> bytes:
    """Return an IP packet of the version of its addresses."""
    if len(source.address) == 16:
        head = struct.pack(">IHBB", 6 << 28, len(payload), protocol, _HOP_LIMIT)
        return head + source.address + destination.address + payload
    head = struct.pack(">BxHHHBBxx", 0x45, 20 + len(payload), 0, 0, _HOP_LIMIT, protocol)
    head += source.address + destination.address
    return head[:10] + struct.pack(">H", _checksum(head)) + head[12:] + payload


def tcp_packet(
    source: Endpoint,
    destination: Endpoint,
    sequence: int,
    flags: int,
    payload: bytes = b"",
    acknowledged: int = 0,
) -> bytes:
    """Return the IP packet of a TCP segment."""
    head = struct.pack(
        ">HHIIBBHHH",
        source.port,
        destination.port,
        sequence & 0xFFFF_FFFF,
        acknowledged & 0xFFFF_FFFF,
        5 << 4,
        flags,
        _WINDOW,
        0,
        0,
    )
    checksum = _checksum(_pseudo_header(source, destination, Protocol.TCP, head + payload))
    segment = head[:16] + struct.pack(">H", checksum) + head[18:] + payload
    return ip_packet(source, destination, Protocol.TCP, segment)


def udp_packet(source: Endpoint, destination: Endpoint, payload: bytes) -> bytes:
    """Return the IP packet of a UDP datagram."""
    head = struct.pack(">HHHxx", source.port, destination.port, 8 + len(payload))
    # Zero would say that there is no checksum.
    checksum = (
        _checksum(_pseudo_header(source, destination, Protocol.UDP, head + payload)) or 0xFFFF
    )
    datagram = head[:6] + struct.pack(">H", checksum) + payload
    return ip_packet(source, destination, Protocol.UDP, datagram)


class Recorder:
    """Turns what happens on connections into the bytes of a pcapng file, to be written in order."""

    def __init__(self) -> None:
        self._next: dict[tuple[Endpoint, Endpoint], int] = {}

    def start(self) -> bytes:
        """Return the beginning of the file."""
        return pcapng.file_start(LinkType.RAW)

    def opened(self, client: Endpoint, server: Endpoint, time_ns: int) -> bytes:
        """Record that a connection was made."""
        self._next[client, server] = self._next[server, client] = _FIRST_SEQUENCE
        return b"".join(
            (
                self._segment(client, server, SYN, b"", time_ns),
                self._segment(server, client, SYN | ACK, b"", time_ns),
                self._segment(client, server, ACK, b"", time_ns),
            )
        )

    def sent(self, source: Endpoint, destination: Endpoint, data: bytes, time_ns: int) -> bytes:
        """Record bytes that went over an open connection."""
        return b"".join(
            self._segment(
                source, destination, ACK | PSH, data[start : start + SEGMENT_BYTES_MAX], time_ns
            )
            for start in range(0, len(data), SEGMENT_BYTES_MAX)
        )

    def closed(self, source: Endpoint, destination: Endpoint, time_ns: int) -> bytes:
        """Record that a connection ended, and forget it."""
        frames = (
            self._segment(source, destination, FIN | ACK, b"", time_ns),
            self._segment(destination, source, FIN | ACK, b"", time_ns),
            self._segment(source, destination, ACK, b"", time_ns),
        )
        del self._next[source, destination], self._next[destination, source]
        return b"".join(frames)

    def datagram(self, source: Endpoint, destination: Endpoint, data: bytes, time_ns: int) -> bytes:
        """Record a datagram."""
        return pcapng.frame_block(udp_packet(source, destination, data), time_ns)

    def _segment(
        self, source: Endpoint, destination: Endpoint, flags: int, data: bytes, time_ns: int
    ) -> bytes:
        sequence = self._next[source, destination]
        acknowledged = self._next[destination, source] if flags & ACK else 0
        self._next[source, destination] = sequence + len(data) + (flags & (SYN | FIN) != 0)
        packet = tcp_packet(source, destination, sequence, flags, data, acknowledged)
        return pcapng.frame_block(packet, time_ns)


def _pseudo_header(
    source: Endpoint, destination: Endpoint, protocol: Protocol, payload: bytes
) -> bytes:
    addresses = source.address + destination.address
    return addresses + struct.pack(">II", len(payload), protocol) + payload


def _checksum(data: bytes) -> int:
    """The Internet checksum. [RFC 1071]"""
    if len(data) & 1:
        data += b"\0"
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
