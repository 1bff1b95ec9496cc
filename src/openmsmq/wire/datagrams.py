"""Datagrams: is a queue manager there, and where is the directory? [MQQB 2.2.7, MQSD 2.2]

A datagram that does not decode is ignored; nobody is told.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, Self

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.fields import utf16
from openmsmq.wire.fields.cursor import Field, bits, hex_field, need, pack

PING_LAYOUT: Final = struct.Struct("<HHI16s")
PING_SIGNATURE: Final = 0x5548
NOT_SERVER_CLASS: Final = 0x0001
REFUSED: Final = 0x0002

QUERY_LAYOUT: Final = struct.Struct("<BBH16s16s16s")
ANSWER_LAYOUT: Final = struct.Struct("<BBH16sIII")
QUERY_TYPE: Final = 1
ANSWER_TYPE: Final = 2
NETWORKS_MAX_COUNT: Final = 32
_IPX_MIN_BYTES: Final = 8
_U32: Final = struct.Struct("<I")


class PingPacket(msgspec.Struct, frozen=True, gc=False):
    """Asks whether a session would be accepted, and answers that. [MQQB 2.2.7]"""

    source: Guid
    """The queue manager that made the packet."""
    cookie: int
    """Chosen by the asker; the answer repeats it."""
    flags: int = 0
    """`NOT_SERVER_CLASS`, `REFUSED`, and bits that mean nothing and need not be clear."""

    @property
    def refused(self) -> bool:
        """Whether the one who answers would refuse a session."""
        return self.flags & REFUSED != 0

    def answer(self, source: Guid, *, refuse: bool) -> PingPacket:
        """Make the answer of queue manager `source` to this packet."""
        flags = self.flags & NOT_SERVER_CLASS | (REFUSED if refuse else 0)
        return PingPacket(source, self.cookie, flags)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read a datagram."""
        if len(data) != PING_LAYOUT.size:
            raise DecodeError("Ping", 0, f"{len(data)} bytes, not {PING_LAYOUT.size}")
        flags, signature, cookie, source = PING_LAYOUT.unpack(data)
        if signature != PING_SIGNATURE:
            raise DecodeError("Ping", 2, f"signature {signature:#06x}, not {PING_SIGNATURE:#06x}")
        return cls(Guid(source), cookie, flags)

    def encode(self) -> bytes:
        """Return the 24 bytes."""
        return pack(PING_LAYOUT, "Ping", self.flags, PING_SIGNATURE, self.cookie, self.source)

    def fields(self) -> Iterator[Field]:
        """Show the packet, field by field."""
        yield Field("Flags", 2, self.flags)
        yield from bits(
            self.flags, ("RC asker is not server class", NOT_SERVER_CLASS), ("RF refused", REFUSED)
        )
        yield Field("Signature", 2, PING_SIGNATURE, '"HU"')
        yield Field("Cookie", 4, self.cookie)
        yield Field("QMGuid", 16, str(self.source))


class DirectoryQuery(msgspec.Struct, frozen=True, gc=False):
    """Asks which servers hold the directory (TopologyClientRequest). [MQSD 2.2.2]"""

    enterprise: Guid
    request_id: Guid
    """The answer repeats it."""
    site: Guid
    version: int = 0
    reserved: int = 0
    tail: bytes = b""
    """What an IPX client adds: a count and its networks. Less than 8 bytes mean nothing."""

    @property
    def ipx_networks(self) -> tuple[int, ...]:
        """The networks of an IPX client; none over IP."""
        if len(self.tail) < _IPX_MIN_BYTES:
            return ()
        return struct.unpack_from(f"<{len(self.tail) // 4 - 1}I", self.tail, 4)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read a datagram."""
        need(data, 0, QUERY_LAYOUT.size, "DirectoryQuery")
        version, kind, reserved, enterprise, request, site = QUERY_LAYOUT.unpack_from(data)
        if kind != QUERY_TYPE:
            raise DecodeError("DirectoryQuery", 1, f"packet type {kind}, not {QUERY_TYPE}")
        tail = data[QUERY_LAYOUT.size :]
        problem = _tail_problem(tail)
        if problem:
            raise DecodeError("DirectoryQuery", QUERY_LAYOUT.size, problem)
        return cls(Guid(enterprise), Guid(request), Guid(site), version, reserved, tail)

    def encode(self) -> bytes:
        """Return the bytes: 52 of them over IP."""
        problem = _tail_problem(self.tail)
        if problem:
            raise EncodeError("DirectoryQuery", problem)
        fixed = pack(
            QUERY_LAYOUT,
            "DirectoryQuery",
            self.version,
            QUERY_TYPE,
            self.reserved,
            self.enterprise,
            self.request_id,
            self.site,
        )
        return fixed + self.tail

    def fields(self) -> Iterator[Field]:
        """Show the packet, field by field."""
        yield from _header_fields(self.version, QUERY_TYPE, self.reserved)
        yield Field("EnterpriseID", 16, str(self.enterprise))
        yield Field("RequestID", 16, str(self.request_id))
        yield Field("SiteID", 16, str(self.site))
        if len(self.tail) >= _IPX_MIN_BYTES:
            yield Field("IPXNetworkCount", 4, len(self.ipx_networks))
            for network in self.ipx_networks:
                yield Field("IPXNetworkNumber", 4, network)
        else:
            yield from hex_field("unknown tail", self.tail)


class ServerEntry(msgspec.Struct, frozen=True, gc=False):
    """A directory server and the protocols it speaks, as in `10name`. [MQSD 2.2.3]"""

    name: str
    ip: bool = True
    ipx: bool = False

    def __str__(self) -> str:
        return f"{self.ip:d}{self.ipx:d}{self.name}"


class DirectoryAnswer(msgspec.Struct, frozen=True, gc=False):
    """Names the directory servers (TopologyServerReply). [MQSD 2.2.3]

    A server of the asker's own site names neither its site nor any server.
    """

    request_id: Guid
    networks: tuple[Guid, ...]
    """The connected networks of the server, 1 to 32."""
    site: Guid | None = None
    """The site of a server of another site."""
    servers: tuple[ServerEntry, ...] = ()
    network_mask: int = 0
    version: int = 0
    reserved: int = 0

    @property
    def same_site(self) -> bool:
        """Whether the answer comes from the asker's own site."""
        return self.site is None

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Read a datagram."""
        need(data, 0, ANSWER_LAYOUT.size, _ANSWER)
        version, kind, reserved, request, count, mask, size = ANSWER_LAYOUT.unpack_from(data)
        if kind != ANSWER_TYPE:
            raise DecodeError(_ANSWER, 1, f"packet type {kind}, not {ANSWER_TYPE}")
        if not 1 <= count <= NETWORKS_MAX_COUNT:
            raise DecodeError(_ANSWER, 20, f"{count} networks, not 1 to {NETWORKS_MAX_COUNT}")
        start = ANSWER_LAYOUT.size + 16 * count
        expected = start + (16 + size if size else 0)
        if len(data) != expected:
            raise DecodeError(_ANSWER, 28, f"{len(data)} bytes, but the sizes say {expected}")
        networks = tuple(Guid(data[at : at + 16]) for at in range(ANSWER_LAYOUT.size, start, 16))
        site = Guid(data[start : start + 16]) if size else None
        servers = read_servers(data, start + 16) if size else ()
        return cls(Guid(request), networks, site, servers, mask, version, reserved)

    def encode(self) -> bytes:
        """Return the bytes."""
        if not 1 <= len(self.networks) <= NETWORKS_MAX_COUNT:
            raise EncodeError(
                _ANSWER, f"{len(self.networks)} networks, not 1 to {NETWORKS_MAX_COUNT}"
            )
        if (self.site is None) != (not self.servers):
            raise EncodeError(_ANSWER, "a site and its servers are named together or not at all")
        servers = write_servers(self.servers) if self.servers else b""
        fixed = pack(
            ANSWER_LAYOUT,
            _ANSWER,
            self.version,
            ANSWER_TYPE,
            self.reserved,
            self.request_id,
            len(self.networks),
            self.network_mask,
            len(servers),
        )
        return b"".join((fixed, *self.networks, self.site or b"", servers))

    def fields(self) -> Iterator[Field]:
        """Show the packet, field by field."""
        yield from _header_fields(self.version, ANSWER_TYPE, self.reserved)
        yield Field("CorrelationID", 16, str(self.request_id))
        yield Field("ConnectedNetworkCount", 4, len(self.networks))
        yield Field("ConnectedNetworkMask", 4, self.network_mask)
        size = len(write_servers(self.servers)) if self.servers else 0
        yield Field("DirectoryServiceServerSize", 4, size)
        for network in self.networks:
            yield Field("ConnectedNetwork", 16, str(network))
        if self.site is not None:
            yield Field("RespondingSiteID", 16, str(self.site))
            yield Field("DirectoryServiceServerArray", size, ",".join(map(str, self.servers)))


_ANSWER: Final = "DirectoryAnswer"


def read_servers(data: bytes, offset: int) -> tuple[ServerEntry, ...]:
    """Read the list of servers from `offset` to the end, `10name,01other` and a NUL."""
    text = utf16.read_all(data, offset, len(data), _ANSWER)
    entries = []
    for entry in text.split(","):
        if len(entry) < 3 or entry[0] not in "01" or entry[1] not in "01":
            raise DecodeError(_ANSWER, offset, f"server {entry!r}, not two of 0 or 1 and a name")
        entries.append(ServerEntry(entry[2:], entry[0] == "1", entry[1] == "1"))
    return tuple(entries)


def write_servers(servers: tuple[ServerEntry, ...]) -> bytes:
    """Return the bytes of a list of servers, which is not empty."""
    for server in servers:
        if not server.name or "," in server.name:
            raise EncodeError(_ANSWER, f"server name {server.name!r}: no comma, not empty")
    return utf16.write(",".join(map(str, servers)), _ANSWER)


def _header_fields(version: int, kind: int, reserved: int) -> Iterator[Field]:
    yield Field("Version", 1, version)
    yield Field("Type", 1, kind)
    yield Field("Reserved", 2, reserved)


def _tail_problem(tail: bytes) -> str:
    """What is wrong with the IPX part of a query, or nothing."""
    if len(tail) < _IPX_MIN_BYTES:
        return ""
    count = _U32.unpack_from(tail)[0]
    if not 1 <= count <= NETWORKS_MAX_COUNT:
        return f"{count} IPX networks, not 1 to {NETWORKS_MAX_COUNT}"
    if len(tail) != 4 + 4 * count:
        return f"{len(tail)} bytes for {count} IPX networks, not {4 + 4 * count}"
    return ""
