"""From a frame to its segment or datagram: Ethernet and its like, IPv4 and IPv6; TCP, UDP, PGM.

Checksums are not looked at: network cards fill them in behind the capture's back. For the same
reason a length of 0 in an IP header means "up to the end of the frame".
"""

from __future__ import annotations

import enum
import functools
import ipaddress
import struct
from typing import Final, TypeAlias

import msgspec


class LinkType(enum.IntEnum):
    """How frames begin. [draft-ietf-opsawg-pcaplinktype]"""

    NULL = 0
    ETHERNET = 1
    RAW_BSD = 12
    RAW_OPENBSD = 14
    RAW = 101
    LOOP = 108
    LINUX_SLL = 113
    IPV4 = 228
    IPV6 = 229
    LINUX_SLL2 = 276


class Protocol(enum.IntEnum):
    """The protocols inside IP that we follow."""

    TCP = 6
    UDP = 17
    PGM = 113
    """Multicast messages. [RFC 3208]"""


class FrameError(ValueError):
    """A frame that cannot be read as far as its ports."""


@functools.lru_cache(maxsize=1024)
def _host(address: bytes) -> str:
    return str(ipaddress.ip_address(address))


class Endpoint(msgspec.Struct, frozen=True, order=True, gc=False):
    """An address and port."""

    address: bytes
    port: int

    @property
    def host(self) -> str:
        """The address as people write it."""
        return _host(self.address)

    def __str__(self) -> str:
        host = self.host
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


class Fragment(msgspec.Struct, frozen=True, gc=False):
    """Which part of an IP packet a fragment is."""

    id: int
    offset: int
    more: bool


class IpPacket(msgspec.Struct, frozen=True, gc=False):
    """What an IP header says, and what follows it."""

    source: bytes
    destination: bytes
    protocol: int
    payload: bytes
    missing: int = 0
    """Bytes at the end of the payload that the capture left out."""
    fragment: Fragment | None = None


class TcpSegment(msgspec.Struct, frozen=True, gc=False):
    """A piece of one direction of a TCP connection."""

    source: Endpoint
    destination: Endpoint
    sequence: int
    flags: int
    payload: bytes
    missing: int = 0


class UdpDatagram(msgspec.Struct, frozen=True, gc=False):
    """A whole UDP datagram, or what the capture kept of it."""

    source: Endpoint
    destination: Endpoint
    payload: bytes
    missing: int = 0


class PgmDatagram(msgspec.Struct, frozen=True, gc=False):
    """A packet of PGM, or what the capture kept of it: its header begins with two ports."""

    source: Endpoint
    destination: Endpoint
    payload: bytes
    missing: int = 0


Transport: TypeAlias = TcpSegment | UdpDatagram | PgmDatagram

FIN: Final = 0x01
SYN: Final = 0x02
RST: Final = 0x04
PSH: Final = 0x08
ACK: Final = 0x10

_ETHERTYPE_IP: Final = frozenset({0x0800, 0x86DD})
_ETHERTYPE_VLAN: Final = frozenset({0x8100, 0x88A8, 0x9100})
_FAMILIES_IP: Final = frozenset({2, 10, 23, 24, 28, 30})
"""AF_INET, and AF_INET6 of Linux, Windows and the BSDs."""
_RAW: Final = frozenset(
    {LinkType.RAW, LinkType.RAW_BSD, LinkType.RAW_OPENBSD, LinkType.IPV4, LinkType.IPV6}
)
_IPV6_FRAGMENT: Final = 44
_IPV6_AUTHENTICATION: Final = 51
_IPV6_OPTIONS: Final = frozenset({0, 43, 60, 135, 139, 140})
"""Extension headers with their length in their second byte."""


def ip_bytes(link_type: int, frame: bytes) -> bytes | None:
    """Take the link layer away; None when the frame holds something other than IP."""
    if link_type in _RAW:
        return frame
    if link_type == LinkType.ETHERNET:
        return _behind_type(frame, 12, 14)
    if link_type in (LinkType.NULL, LinkType.LOOP):
        # The family is in the byte order of the machine that captured, which no file tells.
        families = {int.from_bytes(frame[:4], "big"), int.from_bytes(frame[:4], "little")}
        return frame[4:] if families & _FAMILIES_IP else None
    if link_type == LinkType.LINUX_SLL:
        return _behind_type(frame, 14, 16)
    if link_type == LinkType.LINUX_SLL2:
        return _behind_type(frame, 0, 20)
    raise FrameError(f"link type {link_type} is not one we can read")


def _behind_type(frame: bytes, type_offset: int, end: int) -> bytes | None:
    """Return what is behind `end` when the type at `type_offset` is IP, behind any VLAN tags."""
    ethertype = int.from_bytes(frame[type_offset : type_offset + 2], "big")
    while ethertype in _ETHERTYPE_VLAN:
        ethertype = int.from_bytes(frame[end + 2 : end + 4], "big")
        end += 4
    return frame[end:] if ethertype in _ETHERTYPE_IP else None


def read_ip(data: bytes) -> IpPacket:
    """Read an IP packet of either version."""
    version = data[0] >> 4 if data else 0
    if version == 4:
        return _read_ipv4(data)
    if version == 6:
        return _read_ipv6(data)
    raise FrameError(f"IP version {version}" if data else "an empty IP packet")


def _read_ipv4(data: bytes) -> IpPacket:
    if len(data) < 20:
        raise FrameError(f"an IPv4 header of {len(data)} bytes; 20 needed")
    size, identity, place, protocol = struct.unpack_from(">2xHHHxB", data)
    header_size = (data[0] & 15) * 4
    size = size or len(data)
    if not 20 <= header_size <= min(size, len(data)):
        raise FrameError(f"an IPv4 header of {header_size} bytes in a packet of {size}")
    more, offset = place & 0x2000 != 0, (place & 0x1FFF) * 8
    return IpPacket(
        data[12:16],
        data[16:20],
        protocol,
        data[header_size:size],
        max(0, size - len(data)),
        Fragment(identity, offset, more) if more or offset else None,
    )


def _read_ipv6(data: bytes) -> IpPacket:
    if len(data) < 40:
        raise FrameError(f"an IPv6 header of {len(data)} bytes; 40 needed")
    size, protocol = struct.unpack_from(">4xHB", data)
    size = 40 + size if size else len(data)
    packet = IpPacket(data[8:24], data[24:40], protocol, data[40:size], max(0, size - len(data)))
    return skip_extensions(packet)


def skip_extensions(packet: IpPacket) -> IpPacket:
    """Pass over IPv6 extension headers up to a fragment or to what the packet carries."""
    protocol, payload, at = packet.protocol, packet.payload, 0
    while protocol in _IPV6_OPTIONS or protocol in (_IPV6_FRAGMENT, _IPV6_AUTHENTICATION):
        left = max(0, len(payload) - at)
        if left < 8:
            raise FrameError(f"an IPv6 extension header of {left} bytes; 8 needed")
        following = payload[at]
        if protocol == _IPV6_FRAGMENT:
            place, identity = struct.unpack_from(">HI", payload, at + 2)
            fragment = Fragment(identity, place & 0xFFF8, place & 1 != 0)
            if fragment.more or fragment.offset:
                return IpPacket(
                    packet.source,
                    packet.destination,
                    following,
                    payload[at + 8 :],
                    packet.missing,
                    fragment,
                )
            size = 8
        elif protocol == _IPV6_AUTHENTICATION:
            size = (payload[at + 1] + 2) * 4
        else:
            size = (payload[at + 1] + 1) * 8
        protocol, at = following, at + size
    return IpPacket(packet.source, packet.destination, protocol, payload[at:], packet.missing)


def read_transport(packet: IpPacket) -> Transport | None:
    """Read what a whole IP packet carries; None when it is nothing that we follow."""
    if packet.protocol == Protocol.TCP:
        return _read_tcp(packet)
    if packet.protocol == Protocol.UDP:
        return _read_udp(packet)
    if packet.protocol == Protocol.PGM:
        return _read_pgm(packet)
    return None


def _read_tcp(packet: IpPacket) -> TcpSegment:
    data = packet.payload
    if len(data) < 20:
        raise FrameError(f"a TCP header of {len(data)} bytes; 20 needed")
    source, destination, sequence, header_words, flags = struct.unpack_from(">HHI4xBB", data)
    header_size = (header_words >> 4) * 4
    if not 20 <= header_size <= len(data):
        raise FrameError(f"a TCP header of {header_size} bytes in a segment of {len(data)}")
    return TcpSegment(
        Endpoint(packet.source, source),
        Endpoint(packet.destination, destination),
        sequence,
        flags,
        data[header_size:],
        packet.missing,
    )


def _read_udp(packet: IpPacket) -> UdpDatagram:
    data = packet.payload
    if len(data) < 8:
        raise FrameError(f"a UDP header of {len(data)} bytes; 8 needed")
    source, destination, size = struct.unpack_from(">HHH", data)
    size = size if size >= 8 else len(data)
    return UdpDatagram(
        Endpoint(packet.source, source),
        Endpoint(packet.destination, destination),
        data[8:size],
        max(0, size - len(data)),
    )


def _read_pgm(packet: IpPacket) -> PgmDatagram:
    data = packet.payload
    if len(data) < 4:
        raise FrameError(f"a PGM packet of {len(data)} bytes; its ports are 4")
    source, destination = struct.unpack_from(">HH", data)
    return PgmDatagram(
        Endpoint(packet.source, source),
        Endpoint(packet.destination, destination),
        data,
        packet.missing,
    )
