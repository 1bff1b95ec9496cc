"""What is recorded is read again as the same conversation."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from openmsmq.analysis.events import DatagramItem, PacketItem
from openmsmq.capture.recorder import SEGMENT_BYTES_MAX, Recorder, ip_packet, tcp_packet, udp_packet
from openmsmq.model.identity import Guid
from openmsmq.wire import packets
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage
from tests.strategies.captures import endpoint, frames_of, said_in
from tests.strategies.packets import packets as any_packet

CLIENT, SERVER = endpoint("10.0.0.1", 50_000), endpoint("10.0.0.2", 1801)
CLIENT_6, SERVER_6 = endpoint("fd00::1", 50_000), endpoint("fd00::2", 1801)


@given(
    st.sampled_from([(CLIENT, SERVER), (CLIENT_6, SERVER_6)]),
    st.lists(st.tuples(st.booleans(), any_packet.map(packets.encode)), max_size=6),
)
def test_a_recorded_conversation_is_read_again(ends, said):
    client, server = ends
    recorder = Recorder()
    file = recorder.start() + recorder.opened(client, server, 0)
    expected = []
    for time_ns, (by_client, data) in enumerate(said):
        source, destination = (client, server) if by_client else (server, client)
        file += recorder.sent(source, destination, data, time_ns)
        expected.append((source, destination, data, time_ns))
    file += recorder.closed(client, server, len(said))
    file += recorder.datagram(client, server, b"datagram", 99)
    *heard, last = said_in(frames_of(file))
    assert all(isinstance(item, PacketItem) for item in heard)
    assert [(one.source, one.destination, one.data, one.time_ns) for one in heard] == expected
    assert isinstance(last, DatagramItem)
    assert (last.data, last.time_ns) == (b"datagram", 99)


def test_a_long_packet_is_recorded_in_several_segments():
    properties = MessageProperties.of(bytes(3 * SEGMENT_BYTES_MAX))
    data = packets.encode(UserMessage(UserHeader(Guid(16)), properties))
    recorder = Recorder()
    file = recorder.start() + recorder.opened(CLIENT, SERVER, 0)
    file += recorder.sent(CLIENT, SERVER, data, 1)
    assert len(list(frames_of(file))) == 3 + 4
    assert [item.data for item in said_in(frames_of(file))] == [data]


def ones_complement_sum(data: bytes) -> int:
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    return total % 0xFFFF


@given(st.sampled_from([(CLIENT, SERVER), (CLIENT_6, SERVER_6)]), st.binary(max_size=40))
def test_checksums_make_the_sum_come_out_as_the_rule_says(ends, payload):
    payload += bytes(len(payload) % 2)
    source, destination = ends
    addresses = source.address + destination.address
    start = 20 if len(source.address) == 4 else 40
    for packet, protocol in (
        (tcp_packet(*ends, 1, 16, payload), 6),
        (udp_packet(*ends, payload), 17),
    ):
        inner = packet[start:]
        pseudo = addresses + struct.pack(">II", len(inner), protocol)
        assert ones_complement_sum(pseudo + inner) == 0
    if start == 20:
        assert ones_complement_sum(ip_packet(*ends, 6, b"")[:20]) == 0


def test_a_checksum_of_zero_is_written_as_its_other_form():
    checksum = udp_packet(CLIENT, SERVER, b"\0\0")[26:28]
    assert udp_packet(CLIENT, SERVER, checksum)[26:28] == b"\xff\xff"
