"""Captures of MSMQ traffic as networks and tools really make them: cut, shuffled, wrapped."""

from __future__ import annotations

import io
import ipaddress
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from hypothesis import strategies as st

from openmsmq.analysis.events import DatagramItem, PacketItem
from openmsmq.analysis.traffic import follow
from openmsmq.analysis.transports import Ports
from openmsmq.capture.frames import Frame, read_frames
from openmsmq.capture.link_layers import ACK, FIN, SYN, Endpoint, LinkType
from openmsmq.capture.recorder import tcp_packet, udp_packet
from openmsmq.wire import packets
from tests.strategies.packets import packets as any_packet

SERVER_PORT = 1801
START_NS = 1_700_000_000_000_000_000


def endpoint(address: str, port: int) -> Endpoint:
    return Endpoint(ipaddress.ip_address(address).packed, port)


def frames_of(data: bytes) -> Iterator[Frame]:
    """Return the frames of a capture that is in memory."""
    return read_frames(io.BytesIO(data).read)


def said_in(frames: Iterable[Frame], *ports: int) -> list[PacketItem | DatagramItem]:
    """Return the packets and datagrams of a capture, and nothing that is said about them."""
    followed = Ports(frozenset(ports), frozenset(ports)) if ports else Ports()
    events = follow(frames, followed)
    return [event for event in events if isinstance(event, PacketItem | DatagramItem)]


# Link layers: from an IP packet to a frame.

Wrap = Callable[[bytes], bytes]


def _ethertype(packet: bytes) -> bytes:
    return b"\x08\x00" if packet[0] >> 4 == 4 else b"\x86\xdd"


def _family(packet: bytes) -> int:
    return 2 if packet[0] >> 4 == 4 else 30


def ethernet(packet: bytes) -> bytes:
    # Short frames are padded, and the padding must not be taken for data.
    return (bytes(12) + _ethertype(packet) + packet).ljust(60, b"\xee")


LINKS: dict[str, tuple[int, Wrap]] = {
    "ethernet": (LinkType.ETHERNET, ethernet),
    "vlan": (
        LinkType.ETHERNET,
        lambda packet: bytes(12) + b"\x81\x00\x00\x07" + _ethertype(packet) + packet,
    ),
    "two vlans": (
        LinkType.ETHERNET,
        lambda packet: (
            bytes(12) + b"\x88\xa8\x00\x07\x81\x00\x00\x08" + _ethertype(packet) + packet
        ),
    ),
    "raw": (LinkType.RAW, lambda packet: packet),
    "null, little-endian": (
        LinkType.NULL,
        lambda packet: struct.pack("<I", _family(packet)) + packet,
    ),
    "null, big-endian": (
        LinkType.NULL,
        lambda packet: struct.pack(">I", _family(packet)) + packet,
    ),
    "loop": (LinkType.LOOP, lambda packet: struct.pack(">I", _family(packet)) + packet),
    "sll": (LinkType.LINUX_SLL, lambda packet: bytes(14) + _ethertype(packet) + packet),
    "sll2": (LinkType.LINUX_SLL2, lambda packet: _ethertype(packet) + bytes(18) + packet),
}


# Variants of IP: the same packet with options, extension headers, or in fragments.


def with_ip_extras(packet: bytes) -> bytes:
    """Add options to an IPv4 header, two extension headers to an IPv6 one."""
    if packet[0] >> 4 == 4:
        size = len(packet) + 8
        return struct.pack(">BBH", 0x47, 0, size) + packet[4:20] + b"\x01" * 8 + packet[20:]
    extras = bytes([60, 0]) + bytes(6) + bytes([packet[6], 1]) + bytes(14)
    size = len(packet) - 40 + len(extras)
    return packet[:4] + struct.pack(">HB", size, 0) + packet[7:40] + extras + packet[40:]


def fragments(packet: bytes, identity: int, size: int) -> list[bytes]:
    """Cut an IP packet without extras into fragments of `size` bytes, a multiple of 8."""
    header_size = 20 if packet[0] >> 4 == 4 else 40
    payload = packet[header_size:]
    parts = []
    for start in range(0, len(payload), size):
        part = payload[start : start + size]
        more = start + size < len(payload)
        if header_size == 20:
            head = packet[:2] + struct.pack(
                ">HHH", 20 + len(part), identity & 0xFFFF, start // 8 | more << 13
            )
            parts.append(head + packet[8:20] + part)
        else:
            head = packet[:4] + struct.pack(">HB", 8 + len(part), 44) + packet[7:40]
            place = struct.pack(">BBHI", packet[6], 0, start | more, identity)
            parts.append(head + place + part)
    return parts


# File formats, written independently of the package's own writer.


class TimedFrame(NamedTuple):
    link_type: int
    time_ns: int
    data: bytes


def pcapng_file(order: str, frames: list[TimedFrame], resolution: int = 9) -> bytes:
    """Write all block kinds a reader must know, and some it must pass over."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) & 3)
        size = struct.pack(order + "I", len(body) + 12)
        return struct.pack(order + "I", kind) + size + body + size

    links = sorted({frame.link_type for frame in frames})
    out = [block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))]
    out += [
        block(
            1,
            struct.pack(order + "HHI", link, 0, 0)
            + struct.pack(order + "HH", 2, 3)
            + b"any\0"
            + struct.pack(order + "HHBxxx", 9, 1, resolution)
            + bytes(4),
        )
        for link in links
    ]
    out.append(block(5, bytes(12)))
    for index, (link, time_ns, data) in enumerate(frames):
        ticks = time_ns // 10 ** (9 - resolution)
        head = (ticks >> 32, ticks & 0xFFFF_FFFF, len(data), len(data))
        if index % 3 == 2:
            body = struct.pack(order + "HHIIII", links.index(link), 0, *head)
            out.append(block(2, body + data))
        else:
            out.append(block(6, struct.pack(order + "IIIII", links.index(link), *head) + data))
    out.append(block(0xBAD, b"a custom block"))
    return b"".join(out)


def pcap_file(order: str, frames: list[TimedFrame], nanoseconds: bool = False) -> bytes:
    magic, tick_ns = (0xA1B23C4D, 1) if nanoseconds else (0xA1B2C3D4, 1_000)
    link = frames[0].link_type if frames else LinkType.RAW
    out = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262_144, link)]
    for _, time_ns, data in frames:
        seconds, rest = divmod(time_ns, 1_000_000_000)
        out.append(struct.pack(order + "IIII", seconds, rest // tick_ns, len(data), len(data)))
        out.append(data)
    return b"".join(out)


FILES: dict[str, Callable[[list[TimedFrame]], bytes]] = {
    "pcapng": lambda frames: pcapng_file("<", frames),
    "pcapng, big-endian, microseconds": lambda frames: pcapng_file(">", frames, 6),
    "pcapng, two sections": lambda frames: (
        pcapng_file("<", frames[: len(frames) // 2]) + pcapng_file(">", frames[len(frames) // 2 :])
    ),
    "pcap": lambda frames: pcap_file("<", frames),
    "pcap, big-endian": lambda frames: pcap_file(">", frames),
    "pcap, nanoseconds": lambda frames: pcap_file("<", frames, nanoseconds=True),
    "pcap, big-endian, nanoseconds": lambda frames: pcap_file(">", frames, nanoseconds=True),
}


# Conversations.


class Said(NamedTuple):
    """What one side of a connection sent, packet by packet."""

    source: Endpoint
    destination: Endpoint
    packets: list[bytes]


class Recording(NamedTuple):
    """A capture file, and what it must be read as."""

    file: bytes
    said: list[Said]
    datagrams: list[tuple[Endpoint, Endpoint, bytes]]


def segments_of(
    draw: st.DrawFn, said: Said, first_sequence: int, *, resent: bool = True
) -> list[bytes]:
    """Cut a stream into segments at any places; some are sent again, cut elsewhere."""
    stream = b"".join(said.packets)
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(stream))), max_size=6)) | {len(stream)})
    spans = list(zip([0, *cuts], cuts, strict=False))
    if resent and stream:
        start = draw(st.integers(0, len(stream) - 1))
        spans.append((start, draw(st.integers(start, len(stream)))))
    return [
        tcp_packet(said.source, said.destination, first_sequence + start, ACK, stream[start:end])
        for start, end in spans
    ]


@st.composite
def ip_variants(draw: st.DrawFn, packet: bytes, identity: int) -> list[bytes]:
    """Draw how a packet travels: as it is, with extras, or in fragments."""
    how = draw(st.sampled_from(["plain", "plain", "extras", "fragments"]))
    if how == "extras":
        return [with_ip_extras(packet)]
    if how == "fragments":
        size = 8 * draw(st.integers(1, 40))
        if len(packet) // size < 12:
            return fragments(packet, identity, size)
    return [packet]


@st.composite
def recordings(draw: st.DrawFn) -> Recording:
    """Draw a capture whose connections open before they speak, and are otherwise in any order."""
    opening: list[bytes] = []
    talking: list[bytes] = []
    said: list[Said] = []
    packet_lists = st.lists(any_packet.map(packets.encode), max_size=3)
    for number in range(draw(st.integers(1, 2))):
        six = draw(st.booleans())
        client = endpoint("fd00::1" if six else "10.0.0.1", 50_000 + number)
        server = endpoint("fd00::2" if six else "10.0.0.2", SERVER_PORT)
        for source, destination, flags in ((client, server, SYN), (server, client, SYN | ACK)):
            # Sequence numbers that wrap around within the stream are drawn often.
            first = draw(st.integers(0, 0xFFFF_FFFF) | st.integers(0xFFFF_FF00, 0xFFFF_FFFF))
            one = Said(source, destination, draw(packet_lists))
            said.append(one)
            opening.append(tcp_packet(source, destination, first, flags))
            talking += segments_of(draw, one, first + 1)
            if draw(st.booleans()):
                size = sum(map(len, one.packets))
                talking.append(tcp_packet(source, destination, first + 1 + size, FIN | ACK))
    datagrams = [
        (endpoint("10.0.0.1", 60_000), endpoint("10.0.0.255", port), data)
        for port, data in draw(
            st.lists(st.tuples(st.sampled_from([3527, 1801]), st.binary(max_size=60)), max_size=2)
        )
    ]
    noise = [udp_packet(endpoint("10.0.0.9", 53), endpoint("10.0.0.1", 5353), b"noise")]
    talking = draw(st.permutations(talking)) if len(talking) < 12 else talking
    travelled = list(opening)
    for identity, packet in enumerate(talking):
        travelled += draw(ip_variants(packet, identity))
    # Datagrams keep their order, which is theirs in the items too.
    travelled += [udp_packet(*datagram) for datagram in datagrams] + noise
    name = draw(st.sampled_from(sorted(FILES)))
    several_links = name.startswith("pcapng")
    link = draw(st.sampled_from(sorted(LINKS)))
    frames = []
    for index, packet in enumerate(travelled):
        if several_links:
            link = draw(st.sampled_from(sorted(LINKS)))
        link_type, wrap = LINKS[link]
        frames.append(
            TimedFrame(link_type, 1_700_000_000_000_000_000 + index * 1_000, wrap(packet))
        )
    return Recording(FILES[name](frames), said, datagrams)
