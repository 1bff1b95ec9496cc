"""The packets of the session itself. [MQQB 2.2.1, 2.2.2, 2.2.3, 2.2.6]"""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.headers.establish import EstablishHeader
from openmsmq.wire.headers.internal import InternalHeader
from openmsmq.wire.packets import (
    ConnectionParameters,
    EstablishConnection,
    Packet,
    SessionAck,
    decode,
    encode,
)
from tests.conformance import ours, peer

ACK_FLAGS = 3 | peer.IN | peer.SH
EXPECTED: dict[str, bytes] = {
    "EstablishConnection": peer.internal_packet(2, peer.establish_header()),
    "ConnectionParameters": peer.internal_packet(3, peer.parameters_header()),
    "SessionAck": peer.internal_packet(1, peer.session_header(), base_flags=ACK_FLAGS),
}
internal_packets = pytest.mark.parametrize(
    ("packet", "expected"),
    [(packet, EXPECTED[name]) for name, packet in ours.INTERNAL.items()],
    ids=ours.INTERNAL.keys(),
)


def u16_at(data: bytes, offset: int) -> int:
    return int(struct.unpack_from("<H", data, offset)[0])


def patched(data: bytes, offset: int, value: int) -> bytes:
    return data[:offset] + struct.pack("<H", value) + data[offset + 2 :]


@pytest.mark.spec("MQQB-2.2.1-01")
@internal_packets
@given(reserved=st.integers(0, 0xFFFF))
def test_the_reserved_field_is_zero_when_sent_and_says_nothing_when_received(
    packet: Any, expected: bytes, reserved: int
) -> None:
    assert encode(packet) == expected
    assert u16_at(expected, 16) == 0
    data = patched(expected, 16, reserved)
    received: Any = decode(data)
    assert replace(received, internal=InternalHeader()) == packet
    assert not received.internal.refused
    assert encode(received) == data


@pytest.mark.spec("MQQB-2.2.1-02")
@pytest.mark.parametrize("packet_type", range(16))
def test_the_packet_type_is_one_of_three(packet_type: int) -> None:
    names = {1: SessionAck, 2: EstablishConnection, 3: ConnectionParameters}
    header = peer.establish_header()
    flags = ACK_FLAGS if packet_type == 1 else 3 | peer.IN
    data = peer.internal_packet(packet_type, header, base_flags=flags)
    if packet_type in names:
        assert type(decode(data)) is names[packet_type]
        return
    with pytest.raises(DecodeError, match="packet type"):
        decode(data)


@pytest.mark.spec("MQQB-2.2.1-04")
def test_only_the_packets_that_open_a_session_can_refuse_it() -> None:
    refusal = InternalHeader(flags=0x10)
    assert u16_at(encode(ours.SESSION_ACK), 18) >> 4 & 1 == 0
    with pytest.raises(EncodeError):
        encode(replace(ours.SESSION_ACK, internal=refusal))
    for packet, packet_type in ((ours.ESTABLISH, 2), (ours.PARAMETERS, 3)):
        assert u16_at(encode(packet), 18) == packet_type
        data = encode(replace(packet, internal=refusal))
        assert u16_at(data, 18) == 0x10 | packet_type
        received: Any = decode(data)
        assert received.internal.refused


@pytest.mark.parametrize(
    "bit",
    [
        pytest.param(bit, marks=pytest.mark.spec(f"MQQB-2.2.1-{bit + 2:02}"), id=f"bit {bit}")
        for bit in range(5, 16)
    ],
)
def test_a_reserved_bit_is_clear_when_sent_and_ignored_when_set(bit: int) -> None:
    for name, packet in ours.INTERNAL.items():
        sent = encode(packet)
        assert u16_at(sent, 18) >> bit & 1 == 0
        data = patched(EXPECTED[name], 18, u16_at(EXPECTED[name], 18) | 1 << bit)
        received: Any = decode(data)
        assert replace(received, internal=InternalHeader()) == packet
        assert not received.internal.refused
        assert received.internal.reserved == 0
        assert encode(received) == data


@pytest.mark.spec("MQQB-2.2.2-01", "MQQB-2.2.2-02")
def test_connection_parameters_are_an_internal_packet_of_type_3() -> None:
    data = encode(ours.PARAMETERS)
    assert data == peer.base_header(32, 3 | peer.IN) + b"\0\0\3\0" + peer.parameters_header()
    assert decode(data) == ours.PARAMETERS


@pytest.mark.spec("MQQB-2.2.2.1-01")
@given(st.integers(0, 0xFFFF))
def test_the_reserved_field_of_the_parameters_is_zero_and_ignored(reserved: int) -> None:
    assert u16_at(encode(ours.PARAMETERS), 28) == 0
    data = peer.internal_packet(3, peer.parameters_header(reserved=reserved))
    packet = decode(data)
    assert isinstance(packet, ConnectionParameters)
    assert replace(packet, parameters=replace(packet.parameters, reserved=0)) == ours.PARAMETERS
    assert encode(packet) == data


@pytest.mark.spec("MQQB-2.2.3-01", "MQQB-2.2.3-02")
def test_a_connection_is_established_by_an_internal_packet_of_type_2() -> None:
    data = encode(ours.ESTABLISH)
    assert data == peer.base_header(572, 3 | peer.IN) + b"\0\0\2\0" + peer.establish_header()
    assert decode(data) == ours.ESTABLISH


def system_of(packet: Packet) -> int:
    return u16_at(encode(packet), 56)


@pytest.mark.spec("MQQB-2.2.3.1-03", "MQQB-2.2.3.1-04")
def test_the_system_field_has_its_constant_byte_and_flags_that_mean_something() -> None:
    assert system_of(ours.ESTABLISH) & 0x00FF == 0x10
    assert system_of(ours.ESTABLISH) & ~0x0710 == 0


@pytest.mark.spec("MQQB-2.2.3.1-07", "MQQB-2.2.3.1-08")
def test_we_are_of_server_class_and_promise_no_quality_of_service() -> None:
    assert system_of(ours.ESTABLISH) >> 9 & 1 == 1
    assert system_of(ours.ESTABLISH) >> 10 & 1 == 0


def changed_system(system: int) -> tuple[bytes, EstablishHeader]:
    data = peer.internal_packet(2, peer.establish_header(system=system))
    packet = decode(data)
    assert isinstance(packet, EstablishConnection)
    assert encode(packet) == data
    assert replace(packet, establish=ours.ESTABLISH.establish) == ours.ESTABLISH
    return data, packet.establish


@pytest.mark.parametrize(
    "bit",
    [
        pytest.param(bit, marks=pytest.mark.spec(f"MQQB-2.2.3.1-{bit - 2:02}"), id=f"bit {bit}")
        for bit in range(11, 16)
    ],
)
def test_an_unused_bit_of_the_system_field_is_clear_when_sent_and_ignored_when_set(
    bit: int,
) -> None:
    assert system_of(ours.ESTABLISH) >> bit & 1 == 0
    for system in (0x0310, 0x0010, 0x0710):
        _, header = changed_system(system | 1 << bit)
        assert header.system & 0x07FF == system
        assert replace(header, system=0x0310) == ours.ESTABLISH.establish


@pytest.mark.spec("MQQB-2.2.3.1-14")
@given(st.integers(0, 0xFFFF))
def test_the_reserved_field_of_the_establish_header_is_zero_and_ignored(reserved: int) -> None:
    assert u16_at(encode(ours.ESTABLISH), 58) == 0
    data = peer.internal_packet(2, peer.establish_header(reserved=reserved))
    packet = decode(data)
    assert isinstance(packet, EstablishConnection)
    assert replace(packet, establish=replace(packet.establish, reserved=0)) == ours.ESTABLISH
    assert encode(packet) == data


@pytest.mark.spec("MQQB-2.2.3.1-15")
def test_what_we_send_is_padded_with_5a() -> None:
    assert encode(ours.ESTABLISH)[60:] == b"\x5a" * 512


@given(st.binary(min_size=512, max_size=512))
def test_the_padding_of_a_request_is_any_bytes(padding: bytes) -> None:
    data = peer.internal_packet(2, peer.establish_header(padding=padding))
    packet = decode(data)
    assert isinstance(packet, EstablishConnection)
    header = replace(packet.establish, padding=ours.ESTABLISH.establish.padding)
    assert replace(packet, establish=header) == ours.ESTABLISH
    assert encode(packet) == data


@pytest.mark.spec("MQQB-2.2.6-01", "MQQB-2.2.6-02")
def test_a_session_acknowledgment_is_an_internal_packet_of_type_1_with_a_session_header() -> None:
    data = encode(ours.SESSION_ACK)
    assert data == peer.base_header(36, ACK_FLAGS) + b"\0\0\1\0" + peer.session_header()
    assert decode(data) == ours.SESSION_ACK
    with pytest.raises(DecodeError):
        decode(peer.internal_packet(1, peer.session_header(), base_flags=3 | peer.IN))
