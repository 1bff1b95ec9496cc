"""Packets of PGM: what is written is read, and any bytes give a value or a `DecodeError`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.pgm.options import Fragment, Options
from openmsmq.wire.pgm.packets import (
    Data,
    Nak,
    Other,
    Packet,
    PacketType,
    SourceId,
    Spm,
    decode,
    repaired,
    stamped,
)
from tests.unit.wire.pgm.pgm_values import PACKETS, U32, data_packets

SOURCE = SourceId(bytes.fromhex("0a0b0c0d0e0f"), 4_711)
HOST, GROUP = bytes([10, 0, 0, 1]), bytes([239, 1, 1, 1])


@given(PACKETS)
def test_what_is_written_is_read(packet: Packet) -> None:
    assert decode(packet.encode()) == packet


@given(st.binary(max_size=80), st.integers(0, 12), st.booleans())
def test_any_bytes_are_a_packet_or_none(data: bytes, kind: int, is_stamped: bool) -> None:
    data = data[:4] + bytes((kind,)) + data[5:6] + b"\0\0" + data[8:]
    if is_stamped and len(data) > 8:
        data = stamped(data)
    try:
        found = decode(data)
    except DecodeError:
        return
    if not isinstance(found.body, Other):
        assert decode(found.encode()) == found


@given(data_packets(), U32)
def test_a_repair_is_the_same_data_with_the_window_of_today(data: Data, trail: int) -> None:
    packet = Packet(SOURCE, 8_001, Data(data.number, 5, data.data, False, data.options))
    found = decode(repaired(packet.encode(), trail))
    assert found.body == Data(data.number, trail, data.data, True, data.options)


def test_data_is_as_the_standard_has_it() -> None:
    found = Packet(SOURCE, 8_001, Data(3, 1, b"abc")).encode()
    assert found.hex(" ") == (
        "12 67 1f 41 04 00 e1 c6 0a 0b 0c 0d 0e 0f 00 03 00 00 00 03 00 00 00 01 61 62 63"
    )


def test_a_request_has_the_ports_the_other_way_round() -> None:
    asking = Packet(SOURCE, 8_001, Nak(PacketType.NAK, 9, HOST, GROUP, Options(further=(11, 12))))
    confirming = Packet(SOURCE, 8_001, Nak(PacketType.NCF, 9, HOST, GROUP))
    assert asking.encode()[:4] == bytes.fromhex("1f411267")
    assert confirming.encode()[:4] == bytes.fromhex("12671f41")
    found = decode(asking.encode()).body
    assert isinstance(found, Nak)
    assert found.numbers == (9, 11, 12)


@pytest.mark.parametrize("kind", [PacketType.POLL, PacketType.POLR, PacketType.SPMR, 0x42])
def test_packets_of_others_are_known_by_their_type(kind: int) -> None:
    data = bytes.fromhex(f"12671f41{kind:02x}000000") + SOURCE.gsi + bytes(2)
    assert decode(data) == Packet(SOURCE, 8_001, Other(kind))
    with pytest.raises(EncodeError, match="nobody here sends"):
        decode(data).encode()


def changed(packet: Packet, at: int, value: int, *, stamp: bool = True) -> bytes:
    data = bytearray(packet.encode())
    data[at] = value
    if not stamp:
        return bytes(data)
    data[6:8] = b"\0\0"
    return stamped(bytes(data))


DATA = Packet(SOURCE, 8_001, Data(3, 1, b"abcd"))
PART = Packet(SOURCE, 8_001, Data(3, 1, b"abcd", False, Options(Fragment(3, 0, 8))))
SPM = Packet(SOURCE, 8_001, Spm(1, 2, 3, HOST))
NAK = Packet(SOURCE, 8_001, Nak(PacketType.NAK, 9, HOST, GROUP))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (DATA.encode()[:15], "1 bytes are missing"),
        (DATA.encode()[:20], "a wrong checksum"),
        (stamped(DATA.encode()[:6] + b"\0\0" + DATA.encode()[8:20]), "4 bytes are missing"),
        (changed(DATA, 27, 0x7A, stamp=False), "a wrong checksum"),
        (DATA.encode()[:6] + b"\0\0" + DATA.encode()[8:], "data without a checksum"),
        (changed(DATA, 5, 0x80), "parity"),
        (changed(DATA, 15, 3), "3 bytes of data, and there are 4"),
        (changed(PART, 43, 3), "a fragment that ends behind its whole"),
        (changed(SPM, 29, 2), "an address of family 2"),
        (changed(NAK, 21, 2), "an address of family 2"),
        (changed(NAK, 29, 2), "an address of family 2"),
    ],
)
def test_packets_that_lie(data: bytes, problem: str) -> None:
    with pytest.raises(DecodeError, match=problem):
        decode(data)


def test_a_source_is_six_bytes() -> None:
    with pytest.raises(EncodeError, match="a source of 2 bytes"):
        Packet(SourceId(b"ab", 1), 2, DATA.body).encode()
