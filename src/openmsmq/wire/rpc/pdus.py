"""Fragments of RPC over connections: header, body, and the trailer that protects them.

Everything is little-endian; a peer that sends otherwise is refused by whoever reads the header.
`fragments` reads headers and trailers. Reading is total. What a receiver may ignore is not kept:
nothing of this is ever passed on.
[C706 12.6, MS-RPCE 2.2.2]
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final, Self, TypeAlias

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.wire.fields.cursor import need, pack
from openmsmq.wire.rpc.syntaxes import Syntax

VERSION: Final = 5
LITTLE_ENDIAN: Final = b"\x10\0\0\0"
HEADER_BYTES: Final = 16
TRAILER_BYTES: Final = 8
AUTH_PADDING_BYTES: Final = 16
"""The stub of a protected fragment is padded to a multiple of this. [MS-RPCE 2.2.2.11]"""

_HEADER: Final = struct.Struct("<4B4sHHI")
_BIND: Final = struct.Struct("<HHIB")
_OFFERS: Final = HEADER_BYTES + 12
"""Where contexts begin; who offers none may leave the padding before them away."""
_CONTEXT: Final = struct.Struct("<HBx")
_ACK: Final = struct.Struct("<HHIH")
_RESULT: Final = struct.Struct("<HH")
_NAK: Final = struct.Struct("<H")
_REQUEST: Final = struct.Struct("<IHH")
_RESPONSE: Final = struct.Struct("<IHBx")
_FAULT: Final = struct.Struct("<IHBxI4x")
_TRAILER: Final = struct.Struct("<4BI")

REQUEST_BYTES: Final = HEADER_BYTES + _REQUEST.size
"""What stands before the stub of a request without an object, and of a response."""


class PduType(IntEnum):
    """What a fragment is. [C706 12.6.4]"""

    REQUEST = 0
    RESPONSE = 2
    FAULT = 3
    BIND = 11
    BIND_ACK = 12
    BIND_NAK = 13
    ALTER_CONTEXT = 14
    ALTER_CONTEXT_RESPONSE = 15
    AUTH3 = 16
    SHUTDOWN = 17
    CO_CANCEL = 18
    ORPHANED = 19


class Flag:
    """Bits of the header. [C706 12.6.3.1, MS-RPCE 2.2.2.3]

    Plain numbers: to combine flags of an enumeration takes longer than to read a fragment.
    """

    FIRST: Final = 0x01
    LAST: Final = 0x02
    PENDING_CANCEL: Final = 0x04
    """In a request."""
    HEADER_SIGNING: Final = 0x04
    """The same bit where contexts are negotiated."""
    CONCURRENT: Final = 0x10
    DID_NOT_EXECUTE: Final = 0x20
    MAYBE: Final = 0x40
    OBJECT: Final = 0x80


WHOLE: Final = Flag.FIRST | Flag.LAST


class NakReason(IntEnum):
    """Why a bind is refused. [C706 12.6.3.1, MS-RPCE 2.2.2.5]"""

    NOT_SPECIFIED = 0
    LOCAL_LIMIT = 2
    PROTOCOL_VERSION = 4
    AUTH_TYPE = 8
    INVALID_CHECKSUM = 9


class Status(IntEnum):
    """Why a call ends with a fault. [C706 E, MS-ERREF 2.2]"""

    ACCESS_DENIED = 0x5
    NO_CALL_ACTIVE = 0x6BD
    SECURITY_PACKAGE = 0x721
    BAD_STUB = 0x6F7
    CANCELLED = 0x1C00000D
    CONTEXT_MISMATCH = 0x1C00001A
    NO_MEMORY = 0x1C00001B
    OPERATION_RANGE = 0x1C010002
    UNKNOWN_INTERFACE = 0x1C010003
    PROTOCOL = 0x1C01000B
    TOO_BUSY = 0x1C010014


class Header(msgspec.Struct, frozen=True, gc=False):
    """What every fragment begins with. [C706 12.6.3.1]"""

    kind: int
    flags: int
    length: int
    auth_length: int
    call: int
    version: int = VERSION
    minor: int = 0
    representation: bytes = LITTLE_ENDIAN

    @property
    def is_understood(self) -> bool:
        """Whether the rest is written in a way that we can read."""
        return self.version == VERSION and self.minor <= 1 and self.representation[:1] == b"\x10"

    def encode(self) -> bytes:
        """Return its bytes."""
        return pack(
            _HEADER,
            _WHERE,
            self.version,
            self.minor,
            self.kind,
            self.flags,
            self.representation,
            self.length,
            self.auth_length,
            self.call,
        )


class Verifier(msgspec.Struct, frozen=True):
    """The trailer of a fragment: who protects it, and how. [MS-RPCE 2.2.2.11]"""

    kind: int
    level: int
    context: int
    token: bytes = b""
    padding: int = 0
    """How many bytes before it only fill up the stub."""

    @property
    def trailer(self) -> bytes:
        """Return the eight bytes before the token."""
        return pack(_TRAILER, _WHERE, self.kind, self.level, self.padding, 0, self.context)


class Offer(msgspec.Struct, frozen=True):
    """A presentation context as a client offers it: an interface, and ways to write parameters."""

    context: int
    interface: Syntax
    transfers: tuple[Syntax, ...]


class Bind(msgspec.Struct, frozen=True):
    """Opens an association; the same body alters one. [C706 12.6.4.1, 12.6.4.3]"""

    send_max: int
    receive_max: int
    group: int
    offers: tuple[Offer, ...]

    @classmethod
    def read(cls, data: bytes, end: int) -> Self:
        """Read a body up to its end."""
        need(data[:end], HEADER_BYTES, _BIND.size, _WHERE)
        send_max, receive_max, group, count = _BIND.unpack_from(data, HEADER_BYTES)
        at = _OFFERS
        offers = []
        for _ in range(count):
            need(data[:end], at, _CONTEXT.size + Syntax.SIZE, _WHERE)
            context, transfers = _CONTEXT.unpack_from(data, at)
            interface = Syntax.read(data, at + _CONTEXT.size)
            at += _CONTEXT.size + Syntax.SIZE
            need(data[:end], at, transfers * Syntax.SIZE, _WHERE)
            found = tuple(Syntax.read(data, at + each * Syntax.SIZE) for each in range(transfers))
            at += transfers * Syntax.SIZE
            offers.append(Offer(context, interface, found))
        return cls(send_max, receive_max, group, tuple(offers))

    def encode(self) -> bytes:
        """Return the body."""
        parts = [
            pack(_BIND, _WHERE, self.send_max, self.receive_max, self.group, len(self.offers)),
            bytes(3),
        ]
        for offer in self.offers:
            parts.append(pack(_CONTEXT, _WHERE, offer.context, len(offer.transfers)))
            parts.append(offer.interface.encode())
            parts.extend(syntax.encode() for syntax in offer.transfers)
        return b"".join(parts)


class Outcome(IntEnum):
    """What becomes of an offer. [C706 12.6.3.1, MS-RPCE 2.2.2.4]"""

    ACCEPTED = 0
    PROVIDER_REJECTION = 2
    NEGOTIATED = 3
    """Of features; the reason has their bits."""


class Result(msgspec.Struct, frozen=True):
    """What becomes of one presentation context."""

    outcome: int
    reason: int
    transfer: Syntax


class BindAck(msgspec.Struct, frozen=True):
    """Answers a bind; the same body answers an alteration. [C706 12.6.4.2, 12.6.4.4]"""

    send_max: int
    receive_max: int
    group: int
    address: bytes
    """The port as text, with its NUL; empty in the answer to an alteration."""
    results: tuple[Result, ...]

    @classmethod
    def read(cls, data: bytes, end: int) -> Self:
        """Read a body up to its end."""
        need(data[:end], HEADER_BYTES, _ACK.size, _WHERE)
        send_max, receive_max, group, size = _ACK.unpack_from(data, HEADER_BYTES)
        at = HEADER_BYTES + _ACK.size
        need(data[:end], at, size, _WHERE)
        address = data[at : at + size]
        at += size
        at += -at & 3
        need(data[:end], at, 4, _WHERE)
        count = data[at]
        at += 4
        need(data[:end], at, count * (_RESULT.size + Syntax.SIZE), _WHERE)
        results = []
        for _ in range(count):
            outcome, reason = _RESULT.unpack_from(data, at)
            results.append(Result(outcome, reason, Syntax.read(data, at + _RESULT.size)))
            at += _RESULT.size + Syntax.SIZE
        return cls(send_max, receive_max, group, address, tuple(results))

    def encode(self) -> bytes:
        """Return the body."""
        head = pack(_ACK, _WHERE, self.send_max, self.receive_max, self.group, len(self.address))
        head += self.address
        head += bytes(-len(head) & 3) + bytes((len(self.results), 0, 0, 0))
        return head + b"".join(
            pack(_RESULT, _WHERE, each.outcome, each.reason) + each.transfer.encode()
            for each in self.results
        )


class BindNak(msgspec.Struct, frozen=True):
    """Refuses a bind. [C706 12.6.4.5]"""

    reason: int

    @classmethod
    def read(cls, data: bytes, end: int) -> Self:
        """Read a body; the versions that it lists are not of interest."""
        need(data[:end], HEADER_BYTES, _NAK.size, _WHERE)
        return cls(*_NAK.unpack_from(data, HEADER_BYTES))

    def encode(self) -> bytes:
        """Return the body, with the one version that we speak."""
        return pack(_NAK, _WHERE, self.reason) + b"\x01\x05\0\0\0\0"


class Request(msgspec.Struct, frozen=True):
    """A part of a call. [C706 12.6.4.9]"""

    context: int
    operation: int
    stub: bytes
    hint: int = 0
    """How many bytes its sender thinks there are from here on."""
    object: Guid | None = None

    def encode(self) -> bytes:
        """Return the body."""
        fixed = pack(_REQUEST, _WHERE, self.hint, self.context, self.operation)
        return fixed + (self.object or b"") + self.stub


class Response(msgspec.Struct, frozen=True):
    """A part of the results of a call. [C706 12.6.4.10]"""

    context: int
    stub: bytes
    hint: int
    cancels: int = 0

    def encode(self) -> bytes:
        """Return the body."""
        return pack(_RESPONSE, _WHERE, self.hint, self.context, self.cancels) + self.stub


class Fault(msgspec.Struct, frozen=True):
    """Ends a call without results. [C706 12.6.4.7]"""

    context: int
    status: int
    cancels: int = 0

    @classmethod
    def read(cls, data: bytes, end: int) -> Self:
        """Read a body."""
        need(data[:end], HEADER_BYTES, _FAULT.size, _WHERE)
        _, context, cancels, status = _FAULT.unpack_from(data, HEADER_BYTES)
        return cls(context, status, cancels)

    def encode(self) -> bytes:
        """Return the body."""
        size = HEADER_BYTES + _FAULT.size
        return pack(_FAULT, _WHERE, size, self.context, self.cancels, self.status)


class Auth3(msgspec.Struct, frozen=True):
    """The last leg of an authentication that needs no answer. [MS-RPCE 2.2.2.10]"""

    def encode(self) -> bytes:
        """Return the body, which means nothing."""
        return bytes(4)


class Notice(msgspec.Struct, frozen=True):
    """A fragment that says all by its kind: cancel, orphaned, shut down. [C706 12.6.4.6]"""

    kind: PduType

    def encode(self) -> bytes:
        """Return the body, which is empty."""
        return b""


Body: TypeAlias = Bind | BindAck | BindNak | Request | Response | Fault | Auth3 | Notice

_WHERE: Final = "a fragment of RPC"


def write(
    kind: PduType, call: int, body: Body, verifier: Verifier | None = None, flags: int = WHOLE
) -> bytes:
    """Return a whole fragment; whoever protects it has padded its stub already."""
    rest = body.encode()
    tail = b"" if verifier is None else verifier.trailer + verifier.token
    auth_length = 0 if verifier is None else len(verifier.token)
    length = HEADER_BYTES + len(rest) + len(tail)
    return Header(kind, flags, length, auth_length, call).encode() + rest + tail
