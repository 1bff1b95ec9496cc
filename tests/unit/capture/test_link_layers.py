"""Frames are read down to their ports whatever they travel in."""

from __future__ import annotations

import struct

import pytest

from openmsmq.capture.link_layers import (
    ACK,
    FrameError,
    IpPacket,
    LinkType,
    Protocol,
    TcpSegment,
    UdpDatagram,
    ip_bytes,
    read_ip,
    read_transport,
    skip_extensions,
)
from openmsmq.capture.recorder import ip_packet, tcp_packet, udp_packet
from tests.strategies.captures import LINKS, endpoint, with_ip_extras

FOUR = (endpoint("10.0.0.1", 7), endpoint("10.0.0.2", 1801))
SIX = (endpoint("fd00::1", 7), endpoint("fd00::2", 1801))
ENDS = pytest.mark.parametrize("ends", [FOUR, SIX], ids=["IPv4", "IPv6"])


@ENDS
@pytest.mark.parametrize("link", sorted(LINKS))
def test_every_link_layer_is_taken_away(ends, link):
    link_type, wrap = LINKS[link]
    data = ip_bytes(link_type, wrap(tcp_packet(*ends, 5, ACK, b"hello")))
    assert data is not None
    assert read_transport(read_ip(data)) == TcpSegment(*ends, 5, ACK, b"hello")


@pytest.mark.parametrize(
    ("link_type", "ends"),
    [
        (LinkType.RAW_BSD, FOUR),
        (LinkType.RAW_OPENBSD, SIX),
        (LinkType.IPV4, FOUR),
        (LinkType.IPV6, SIX),
    ],
)
def test_frames_that_are_ip_packets_are_taken_as_they_are(link_type, ends):
    packet = udp_packet(*ends, b"hello")
    assert ip_bytes(link_type, packet) == packet


@ENDS
def test_options_and_extension_headers_are_passed_over(ends):
    packet = with_ip_extras(udp_packet(*ends, b"hello"))
    assert read_transport(read_ip(packet)) == UdpDatagram(*ends, b"hello")


def test_an_authentication_header_is_passed_over():
    packet = udp_packet(*SIX, b"hello")
    header = bytes([Protocol.UDP, 4]) + bytes(22)
    size = struct.pack(">H", len(packet) - 40 + 24)
    packet = packet[:4] + size + bytes([51]) + packet[7:40] + header + packet[40:]
    assert read_transport(read_ip(packet)) == UdpDatagram(*SIX, b"hello")


def test_a_fragment_header_of_a_whole_packet_is_passed_over():
    packet = udp_packet(*SIX, b"hello")
    header = bytes([Protocol.UDP]) + bytes(7)
    size = struct.pack(">H", len(packet) - 40 + 8)
    packet = packet[:4] + size + bytes([44]) + packet[7:40] + header + packet[40:]
    assert read_transport(read_ip(packet)) == UdpDatagram(*SIX, b"hello")


@ENDS
def test_a_length_of_zero_means_up_to_the_end(ends):
    packet = bytearray(tcp_packet(*ends, 5, ACK, b"hello"))
    at = 2 if packet[0] >> 4 == 4 else 4
    packet[at : at + 2] = b"\0\0"
    assert read_transport(read_ip(bytes(packet))) == TcpSegment(*ends, 5, ACK, b"hello")


@ENDS
def test_what_the_capture_cut_off_is_counted(ends):
    segment = read_transport(read_ip(tcp_packet(*ends, 5, ACK, b"hello")[:-2]))
    assert segment == TcpSegment(*ends, 5, ACK, b"hel", missing=2)
    datagram = read_transport(read_ip(udp_packet(*ends, b"hello")[:-2]))
    assert datagram == UdpDatagram(*ends, b"hel", missing=2)


def test_a_datagram_without_a_length_goes_up_to_the_end():
    packet = bytearray(udp_packet(*FOUR, b"hello"))
    packet[24:26] = b"\0\0"
    assert read_transport(read_ip(bytes(packet))) == UdpDatagram(*FOUR, b"hello")


def test_other_protocols_are_none_of_our_business():
    assert ip_bytes(LinkType.ETHERNET, bytes(12) + b"\x08\x06" + bytes(28)) is None
    assert ip_bytes(LinkType.NULL, b"\x07\0\0\0abc") is None
    icmp = ip_packet(*FOUR, Protocol.UDP, b"abc").replace(b"\x40\x11", b"\x40\x01")
    assert read_transport(read_ip(icmp)) is None


@pytest.mark.parametrize(
    ("packet", "problem"),
    [
        (b"", "an empty IP packet"),
        (b"\x70" + bytes(40), "IP version 7"),
        (b"\x45" + bytes(5), "an IPv4 header of 6 bytes; 20 needed"),
        (b"\x44" + bytes(30), "an IPv4 header of 16 bytes in a packet of 31"),
        (b"\x60" + bytes(5), "an IPv6 header of 6 bytes; 40 needed"),
        (b"\x60" + bytes(42), "an IPv6 extension header of 3 bytes; 8 needed"),
        (ip_packet(*FOUR, Protocol.TCP, bytes(5)), "a TCP header of 5 bytes; 20 needed"),
        (
            ip_packet(*FOUR, Protocol.TCP, bytes(12) + b"\xf0" + bytes(20)),
            "a TCP header of 60 bytes in a segment of 33",
        ),
        (ip_packet(*FOUR, Protocol.UDP, bytes(5)), "a UDP header of 5 bytes; 8 needed"),
    ],
)
def test_what_cannot_be_read_is_named(packet, problem):
    with pytest.raises(FrameError, match=problem):
        read_transport(read_ip(packet))


def test_an_unknown_link_type_is_named():
    with pytest.raises(FrameError, match="link type 147 is not one we can read"):
        ip_bytes(147, b"")


def test_an_endpoint_reads_like_an_address():
    assert [str(one) for one in (*FOUR, *SIX)] == [
        "10.0.0.1:7",
        "10.0.0.2:1801",
        "[fd00::1]:7",
        "[fd00::2]:1801",
    ]


def test_extension_headers_are_passed_over_without_copying_the_rest_each_time():
    copies = 0

    class Counted(bytes):
        def __getitem__(self, key):
            nonlocal copies
            found = super().__getitem__(key)
            if not isinstance(key, slice):
                return found
            copies += 1
            return Counted(found)

    payload = Counted(bytes([60, 0, *bytes(6)]) * 500 + bytes([Protocol.UDP, 0, *bytes(6)]) + b"x")
    packet = skip_extensions(IpPacket(bytes(16), bytes(16), 60, payload))
    assert (packet.protocol, packet.payload) == (Protocol.UDP, b"x")
    assert copies == 1
