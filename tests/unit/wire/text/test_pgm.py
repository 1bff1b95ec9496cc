"""Packets of PGM are shown: what they are in a line, and every byte once."""

from __future__ import annotations

import pytest

from openmsmq.wire.pgm.options import Fragment, Options
from openmsmq.wire.pgm.packets import Body, Data, Nak, Packet, PacketType, SourceId, Spm
from openmsmq.wire.text.tree import Kind, view

SOURCE = SourceId(b"sender", 4_321)
HERE, GROUP = bytes((10, 0, 0, 1)), bytes((239, 1, 1, 1))


@pytest.mark.parametrize(
    ("body", "summary"),
    [
        (Data(7, 5, b"abc"), "ODATA of source 73656e646572.4321: number 7, 3 bytes"),
        (
            Data(8, 5, b"abc", True, Options(Fragment(7, 3, 9))),
            "RDATA of source 73656e646572.4321: number 8, 3 bytes at 3 of 9",
        ),
        (
            Spm(2, 5, 8, HERE, Options(fin=True)),
            "SPM of source 73656e646572.4321: number 2, window 5 to 8, the last",
        ),
        (
            Nak(PacketType.NAK, 6, HERE, GROUP, Options(further=(7, 8))),
            "NAK of source 73656e646572.4321: number 6 and 2 more",
        ),
        (Nak(PacketType.NCF, 6, HERE, GROUP), "NCF of source 73656e646572.4321: number 6"),
    ],
)
def test_a_packet_is_shown_in_a_line(body: Body, summary: str) -> None:
    shown = view(Packet(SOURCE, 8_001, body).encode(), Kind.PGM)
    assert (shown.name, shown.summary) == ("PgmPacket", summary)


def test_fields_are_those_of_the_standard() -> None:
    data = Packet(SOURCE, 8_001, Spm(2, 5, 8, HERE)).encode()
    shown = view(data, Kind.PGM)
    header, *said = shown.nodes
    assert [(node.name, node.offset, node.value) for node in header.children][:3] == [
        ("SourcePort", 0, 4_321),
        ("DestinationPort", 2, 8_001),
        ("Type", 4, 0),
    ]
    assert [(node.name, node.offset, node.value) for node in said] == [
        ("Number", 16, 2),
        ("Trail", 20, 5),
        ("Lead", 24, 8),
        ("AddressFamily", 28, 1),
        ("Path", 32, "10.0.0.1"),
    ]


def test_a_packet_with_a_wrong_checksum_is_malformed() -> None:
    data = bytearray(Packet(SOURCE, 8_001, Data(7, 5, b"abc")).encode())
    data[-1] ^= 1
    assert view(bytes(data), Kind.PGM).problem.endswith("a wrong checksum")
