"""A packet of PGM as fields: its header, what it says, and what it carries. [RFC 3208 8]"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address
from typing import Final, Self

import msgspec

from openmsmq.wire.fields.cursor import Field, group, hex_field
from openmsmq.wire.pgm import packets
from openmsmq.wire.pgm.options import Options
from openmsmq.wire.pgm.packets import Data, Nak, Packet, PacketType, Spm

_NAMES: Final = {int(kind): kind.name for kind in PacketType}
_BODY_BYTES: Final = {Spm: 20, Data: 8, Nak: 20}


class PgmPacket(msgspec.Struct, frozen=True):
    """A packet with the bytes that it came in."""

    data: bytes
    packet: Packet

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read what stands behind the header of IP."""
        return cls(data, packets.decode(data))

    @property
    def name(self) -> str:
        """What the packet is, as the standard names it."""
        kind = self.data[4]
        return _NAMES.get(kind, f"type {kind:#04x}")

    @property
    def summary(self) -> str:
        """What it says, in one line."""
        said = f"{self.name} of source {self.packet.source}"
        match self.packet.body:
            case Data(number, _, data, _, options):
                part = options.fragment
                of = "" if part is None else f" at {part.offset} of {part.length}"
                return f"{said}: number {number}, {len(data)} bytes{of}"
            case Spm(number, trail, lead, _, options):
                return f"{said}: number {number}, window {trail} to {lead}{_ending(options)}"
            case Nak() as nak:
                rest = f" and {len(nak.numbers) - 1} more" if nak.numbers[1:] else ""
                return f"{said}: number {nak.number}{rest}"
            case _:
                return said

    def fields(self) -> Iterator[Field]:
        """Show the header, what the packet says, its options, and what it carries."""
        data, body = self.data, self.packet.body
        yield group(
            "PgmHeader",
            [
                _number("SourcePort", data[0:2]),
                _number("DestinationPort", data[2:4]),
                Field("Type", 1, data[4], self.name),
                Field("Options", 1, data[5]),
                _number("Checksum", data[6:8]),
                *hex_field("GlobalSourceId", data[8:14]),
                _number("TsduLength", data[14:16]),
            ],
        )
        at = packets.HEADER_BYTES
        if isinstance(body, Data):
            yield _number("Number", data[16:20])
            yield _number("Trail", data[20:24])
        elif isinstance(body, Spm):
            for place, name in ((16, "Number"), (20, "Trail"), (24, "Lead")):
                yield _number(name, data[place : place + 4])
            yield _family(data[28:32])
            yield Field("Path", 4, str(IPv4Address(body.path)))
        elif isinstance(body, Nak):
            yield _number("Number", data[16:20])
            yield _family(data[20:24])
            yield Field("Source", 4, str(IPv4Address(body.source)))
            yield _family(data[28:32])
            yield Field("Group", 4, str(IPv4Address(body.group)))
        at += 0 if isinstance(body, packets.Other) else _BODY_BYTES[type(body)]
        carried = len(body.data) if isinstance(body, Data) else 0
        options = data[at : len(data) - carried]
        if isinstance(body, packets.Other):
            yield from hex_field("Rest", options)
        elif options:
            yield from hex_field("Options", options)
            yield from _options(body.options)
        if carried:
            yield from hex_field("Data", data[len(data) - carried :])


def _number(name: str, data: bytes) -> Field:
    return Field(name, len(data), int.from_bytes(data, "big"))


def _family(data: bytes) -> Field:
    return Field("AddressFamily", len(data), int.from_bytes(data[:2], "big"))


def _ending(options: Options) -> str:
    if options.reset:
        return ", broken off"
    return ", the last" if options.fin else ""


def _options(options: Options) -> Iterator[Field]:
    if options.fragment is not None:
        part = options.fragment
        yield Field("first of the parts", 0, part.first)
        yield Field("offset of the part", 0, part.offset)
        yield Field("bytes of all parts", 0, part.length)
    if options.further:
        yield Field("further numbers", 0, ", ".join(map(str, options.further)))
    if options.joinable is not None:
        yield Field("joinable from", 0, options.joinable)
    for name, is_set in (("SYN", options.syn), ("FIN", options.fin), ("RST", options.reset)):
        if is_set:
            yield Field(name, 0, 1)
