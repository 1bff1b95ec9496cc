"""Packets of PGM: source path messages, data, repairs, and what asks for and confirms them.

Everything is big-endian, and addresses are those of IPv4. Reading is total. Polls and the packets
of repairers are read as what they are and no more: an endpoint ignores them. [RFC 3208 8]
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final, TypeAlias

import msgspec

from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.fields.cursor import need, pack
from openmsmq.wire.pgm.checksum import checksum, is_right
from openmsmq.wire.pgm.options import NO_OPTIONS, Options, read_options

IP_PROTOCOL: Final = 113
"""What the IP header says of a PGM packet."""

HEADER_BYTES: Final = 16
GSI_BYTES: Final = 6
DATA_BYTES: Final = HEADER_BYTES + 8
"""What stands before the data of a packet without options."""
FRAGMENT_BYTES: Final = 20
"""What the option that counts fragments adds to it."""

_HEADER: Final = struct.Struct(">HHBBH6sH")
_NUMBERS: Final = struct.Struct(">II")
_SPM: Final = struct.Struct(">IIIHH4s")
_NAK: Final = struct.Struct(">IHH4sHH4s")
_IPV4: Final = 1
_OPTIONS_PRESENT: Final = 0x01
_OPTIONS_FOR_ROUTERS: Final = 0x02
_PARITY: Final = 0x80
_TYPE_AT: Final = 4
_CHECKSUM_AT: Final = 6
_WHERE: Final = "a PGM packet"


class PacketType(IntEnum):
    """What a packet is. [RFC 3208 8.1]"""

    SPM = 0x00
    POLL = 0x01
    POLR = 0x02
    ODATA = 0x04
    RDATA = 0x05
    NAK = 0x08
    NNAK = 0x09
    NCF = 0x0A
    SPMR = 0x0C


class SourceId(msgspec.Struct, frozen=True, order=True, gc=False):
    """A source: the transport session identifier. [RFC 3208 3.1]"""

    gsi: bytes
    """Six bytes that are one computer's alone."""
    port: int
    """Its own choice, one for each session."""

    def __str__(self) -> str:
        return f"{self.gsi.hex()}.{self.port}"


class Spm(msgspec.Struct, frozen=True, gc=False):
    """Where the window of a source stands, and by which way one reaches it. [RFC 3208 8.1]"""

    number: int
    trail: int
    lead: int
    path: bytes
    options: Options = NO_OPTIONS


class Data(msgspec.Struct, frozen=True, gc=False):
    """A numbered part of what a source sends, for the first time or as a repair. [RFC 3208 8.2]"""

    number: int
    trail: int
    data: bytes
    is_repair: bool = False
    options: Options = NO_OPTIONS


class Nak(msgspec.Struct, frozen=True, gc=False):
    """Asks for a repair, or confirms that somebody did. [RFC 3208 8.3]"""

    kind: int
    number: int
    source: bytes
    group: bytes
    options: Options = NO_OPTIONS

    @property
    def numbers(self) -> tuple[int, ...]:
        """All numbers that it is about."""
        return (self.number, *self.options.further)


class Other(msgspec.Struct, frozen=True, gc=False):
    """A packet that endpoints of this profile ignore."""

    kind: int


Body: TypeAlias = Spm | Data | Nak | Other


class Packet(msgspec.Struct, frozen=True, gc=False):
    """A packet: whose it is, to which port of the group, and what it says."""

    source: SourceId
    port: int
    """The port of the destination, whichever side has sent the packet."""
    body: Body

    def encode(self) -> bytes:
        """Return the bytes, with their checksum."""
        body = self.body
        if len(self.source.gsi) != GSI_BYTES:
            raise EncodeError(_WHERE, f"a source of {len(self.source.gsi)} bytes")
        first, second = self.source.port, self.port
        rest, data, options = b"", b"", NO_OPTIONS
        if isinstance(body, Data):
            kind = PacketType.RDATA if body.is_repair else PacketType.ODATA
            rest = pack(_NUMBERS, _WHERE, body.number, body.trail)
            data, options = body.data, body.options
        elif isinstance(body, Spm):
            kind = PacketType.SPM
            rest = pack(_SPM, _WHERE, body.number, body.trail, body.lead, _IPV4, 0, body.path)
            options = body.options
        elif isinstance(body, Nak):
            kind = PacketType(body.kind)
            rest = pack(_NAK, _WHERE, body.number, _IPV4, 0, body.source, _IPV4, 0, body.group)
            options = body.options
            if kind != PacketType.NCF:
                first, second = second, first
        else:
            raise EncodeError(_WHERE, f"nobody here sends packets of type {body.kind:#04x}")
        tail = options.encode()
        flags = 0
        if tail:
            flags = _OPTIONS_PRESENT | (_OPTIONS_FOR_ROUTERS if options.further else 0)
        head = pack(_HEADER, _WHERE, first, second, kind, flags, 0, self.source.gsi, len(data))
        return stamped(head + rest + tail + data)


def stamped(packet: bytes) -> bytes:
    """Return a packet with its checksum, for which it has zeros."""
    return packet[:_CHECKSUM_AT] + checksum(packet).to_bytes(2, "big") + packet[_CHECKSUM_AT + 2 :]


def repaired(packet: bytes, trail: int) -> bytes:
    """Return a data packet as it is sent again, with the window as it stands now."""
    return stamped(
        packet[:4]
        + bytes((PacketType.RDATA, packet[5], 0, 0))
        + packet[8:20]
        + trail.to_bytes(4, "big")
        + packet[24:]
    )


def is_data(data: bytes) -> bool:
    """Whether a packet has data, as far as its type tells."""
    return len(data) > _TYPE_AT and data[_TYPE_AT] in (PacketType.ODATA, PacketType.RDATA)


def decode(data: bytes) -> Packet:
    """Read a packet: what stands behind the header of IP."""
    need(data, 0, HEADER_BYTES, _WHERE)
    first, second, kind, flags, said, gsi, size = _HEADER.unpack_from(data)
    is_data = kind in (PacketType.ODATA, PacketType.RDATA)
    if said and not is_right(data):
        raise DecodeError(_WHERE, _CHECKSUM_AT, "a wrong checksum")
    if not said and is_data:
        raise DecodeError(_WHERE, _CHECKSUM_AT, "data without a checksum")
    if flags & _PARITY:
        raise DecodeError(_WHERE, 5, "parity, which nobody here understands")
    if is_data:
        return Packet(SourceId(gsi, first), second, _read_data(data, kind, flags, size))
    if kind == PacketType.SPM:
        return Packet(SourceId(gsi, first), second, _read_spm(data, flags))
    if kind == PacketType.NCF:
        return Packet(SourceId(gsi, first), second, _read_nak(data, kind, flags))
    if kind in (PacketType.NAK, PacketType.NNAK):
        return Packet(SourceId(gsi, second), first, _read_nak(data, kind, flags))
    return Packet(SourceId(gsi, first), second, Other(kind))


def _read_data(data: bytes, kind: int, flags: int, size: int) -> Data:
    need(data, HEADER_BYTES, _NUMBERS.size, _WHERE)
    number, trail = _NUMBERS.unpack_from(data, HEADER_BYTES)
    options, at = NO_OPTIONS, DATA_BYTES
    if flags & _OPTIONS_PRESENT:
        options, at = read_options(data, at)
    if len(data) - at != size:
        raise DecodeError(_WHERE, 14, f"{size} bytes of data, and there are {len(data) - at}")
    part = options.fragment
    if part is not None and part.offset + size > part.length:
        raise DecodeError(_WHERE, DATA_BYTES, "a fragment that ends behind its whole")
    return Data(number, trail, data[at:], kind == PacketType.RDATA, options)


def _read_spm(data: bytes, flags: int) -> Spm:
    need(data, HEADER_BYTES, _SPM.size, _WHERE)
    number, trail, lead, family, _, path = _SPM.unpack_from(data, HEADER_BYTES)
    _need_ipv4(family, HEADER_BYTES + 12)
    return Spm(number, trail, lead, path, _behind(data, flags, HEADER_BYTES + _SPM.size))


def _read_nak(data: bytes, kind: int, flags: int) -> Nak:
    need(data, HEADER_BYTES, _NAK.size, _WHERE)
    number, family, _, source, other, _, group = _NAK.unpack_from(data, HEADER_BYTES)
    _need_ipv4(family, HEADER_BYTES + 4)
    _need_ipv4(other, HEADER_BYTES + 12)
    return Nak(kind, number, source, group, _behind(data, flags, HEADER_BYTES + _NAK.size))


def _behind(data: bytes, flags: int, at: int) -> Options:
    if not flags & _OPTIONS_PRESENT:
        return NO_OPTIONS
    return read_options(data, at)[0]


def _need_ipv4(family: int, at: int) -> None:
    if family != _IPV4:
        raise DecodeError(_WHERE, at, f"an address of family {family}, not {_IPV4}")
