"""Packets: which headers follow each other, in which order. [MQQB 2.2, MQMQ 2.2.20]

`decode` takes the bytes of exactly one packet, as `take_packets` cuts them from a stream, and
`encode` is its inverse: what was decoded and not changed becomes the same bytes again.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias, assert_never

import msgspec

from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.fields.cursor import Field, group, hex_field
from openmsmq.wire.headers import (
    base,
    debug,
    establish,
    internal,
    message_properties,
    multi_queue,
    parameters,
    security,
    session,
    soap,
    transaction,
    user,
)
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.debug import DebugHeader
from openmsmq.wire.headers.establish import EstablishHeader
from openmsmq.wire.headers.internal import InternalHeader, InternalType
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.multi_queue import MultiQueueFormatHeader
from openmsmq.wire.headers.parameters import ParametersHeader
from openmsmq.wire.headers.security import SecurityHeader
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.headers.soap import SoapHeader
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import UserHeader


class EstablishConnection(msgspec.Struct, frozen=True, gc=False):
    """Opens a session, and answers the one who opened it. [MQQB 2.2.3]"""

    establish: EstablishHeader
    internal: InternalHeader = InternalHeader()
    base: BaseHeader = BaseHeader()
    tail: bytes = b""


class ConnectionParameters(msgspec.Struct, frozen=True, gc=False):
    """Settles the timeouts and window of a session. [MQQB 2.2.2]"""

    parameters: ParametersHeader
    internal: InternalHeader = InternalHeader()
    base: BaseHeader = BaseHeader()
    tail: bytes = b""


class SessionAck(msgspec.Struct, frozen=True, gc=False):
    """Acknowledges on its own what a user message would carry on its back. [MQQB 2.2.6]"""

    session: SessionHeader
    internal: InternalHeader = InternalHeader()
    base: BaseHeader = BaseHeader()
    tail: bytes = b""


class UserMessage(msgspec.Struct, frozen=True, gc=False):
    """A message of an application, or one queue managers send each other. [MQMQ 2.2.20]"""

    user: UserHeader
    properties: MessageProperties
    base: BaseHeader = BaseHeader()
    transaction: TransactionHeader | None = None
    security: SecurityHeader | None = None
    debug: DebugHeader | None = None
    soap: SoapHeader | None = None
    multi_queue: MultiQueueFormatHeader | None = None
    session: SessionHeader | None = None
    tail: bytes = b""
    """Bytes inside the packet that belong to no header we know; passed on as they came."""
    session_counted: bool = False
    """Whether the packet's size counts its SessionHeader, as some peers do (C-1)."""


InternalPacket: TypeAlias = EstablishConnection | ConnectionParameters | SessionAck
Packet: TypeAlias = InternalPacket | UserMessage


def decode(data: bytes) -> Packet:
    """Read one whole packet."""
    base_header, flags, size = base.read(data)
    if flags & base.INTERNAL:
        return _decode_internal(data, base_header, flags, size)
    return _decode_user_message(data, base_header, flags, size, multi_queue.read)


def check(data: bytes) -> None:
    """Refuse what `decode` would refuse, and make no object of any name in a list.

    Whoever passes a message on has to know that others can read it, and no more than that.
    """
    base_header, flags, size = base.read(data)
    if flags & base.INTERNAL:
        _decode_internal(data, base_header, flags, size)
    else:
        _decode_user_message(data, base_header, flags, size, _checked_lists)


def _checked_lists(data: bytes, offset: int) -> tuple[None, int]:
    return None, multi_queue.check(data, offset)


def encode(packet: Packet, lists: bytes | None = None) -> bytes:
    """Return the bytes of one whole packet.

    `lists` is its MultiQueueFormatHeader, if that is written already: for many copies, once.
    """
    try:
        return _encode(packet, lists)
    except struct.error as error:
        raise EncodeError(
            type(packet).__name__, f"a value does not fit its field: {error}"
        ) from None


def _encode(packet: Packet, lists: bytes | None) -> bytes:
    if isinstance(packet, UserMessage):
        return _encode_user_message(packet, lists)
    packet_type, header = _own_header(packet)
    if packet_type is InternalType.SESSION_ACK and packet.internal.refused:
        raise EncodeError("InternalHeader", "a session acknowledgment refuses no connection")
    data = header.write()
    size = base.SIZE + internal.SIZE + len(data) + len(packet.tail)
    first = packet.base.write(_internal_bits(packet_type), size)
    return b"".join((first, packet.internal.write(packet_type), data, packet.tail))


def _own_header(
    packet: InternalPacket,
) -> tuple[InternalType, EstablishHeader | ParametersHeader | SessionHeader]:
    """Return what kind of packet it is, and the header that no other kind has."""
    match packet:
        case EstablishConnection():
            return InternalType.ESTABLISH_CONNECTION, packet.establish
        case ConnectionParameters():
            return InternalType.CONNECTION_PARAMETERS, packet.parameters
        case SessionAck():
            return InternalType.SESSION_ACK, packet.session
        case _:
            assert_never(packet)


def headers_end(data: bytes) -> int:
    """Where the last header of a user message ends, its SessionHeader apart."""
    return measure(data)[1]


def measure(data: bytes) -> tuple[int, int]:
    """Where the MessagePropertiesHeader of a user message starts, and where its last one ends."""
    properties_offset, offset, flags = _before_lists(data)
    if flags & user.MULTI_QUEUE:
        offset = multi_queue.skip(data, offset)
    return properties_offset, offset


def count_listed(data: bytes) -> int:
    """Return how many names the lists of a user message have."""
    _, offset, flags = _before_lists(data)
    return multi_queue.count_names(data, offset) if flags & user.MULTI_QUEUE else 0


def has_signed_lists(data: bytes) -> bool:
    """Whether a user message has lists with a signature."""
    _, offset, flags = _before_lists(data)
    return bool(flags & user.MULTI_QUEUE) and multi_queue.has_signature(data, offset)


def _before_lists(data: bytes) -> tuple[int, int, int]:
    """Where the MessagePropertiesHeader starts, where the lists would, and the flags."""
    flags, offset = user.skip(data, base.SIZE)
    if flags & user.TRANSACTION:
        offset = transaction.skip(data, offset)
    if flags & user.SECURITY:
        offset = security.skip(data, offset)
    properties_offset = offset
    offset = message_properties.skip(data, offset)[2]
    if data[2] & base.DEBUG:
        offset = debug.skip(data, offset)
    if flags & user.SOAP:
        offset = soap.skip(data, offset)
    return properties_offset, offset, flags


class OwnHeader(NamedTuple):
    """The header that only one kind of packet has."""

    name: str
    read: Callable[[bytes, int], tuple[Any, int]]
    packet: type[InternalPacket]


OWN_HEADERS: Final = {
    InternalType.ESTABLISH_CONNECTION: OwnHeader(
        "EstablishConnectionHeader", establish.read, EstablishConnection
    ),
    InternalType.CONNECTION_PARAMETERS: OwnHeader(
        "ConnectionParametersHeader", parameters.read, ConnectionParameters
    ),
    InternalType.SESSION_ACK: OwnHeader("SessionHeader", session.read, SessionAck),
}

_SHOWN_HEADERS: Final = {
    "transaction": "TransactionHeader",
    "security": "SecurityHeader",
    "properties": "MessagePropertiesHeader",
    "debug": "DebugHeader",
    "soap": "SoapHeader",
    "multi_queue": "MultiQueueFormatHeader",
}
"""The headers behind the UserHeader, in their order."""


def packet_fields(packet: Packet) -> Iterator[Field]:
    """Show a packet as one field per header; the sizes add up to the packet's bytes."""
    if isinstance(packet, UserMessage):
        yield from _user_message_fields(packet)
        return
    packet_type, header = _own_header(packet)
    size = len(encode(packet))
    yield group("BaseHeader", packet.base.fields(_internal_bits(packet_type), size))
    yield group("InternalHeader", packet.internal.fields(packet_type))
    yield group(OWN_HEADERS[packet_type].name, header.fields())
    yield from hex_field("unknown tail", packet.tail)


def _internal_bits(packet_type: InternalType) -> int:
    if packet_type is InternalType.SESSION_ACK:
        return base.INTERNAL | base.SESSION
    return base.INTERNAL


def _decode_internal(data: bytes, base_header: BaseHeader, flags: int, size: int) -> InternalPacket:
    if size != len(data):
        raise DecodeError("BaseHeader", 8, f"packet size {size}, but {len(data)} bytes")
    internal_header, packet_type, offset = internal.read(data, base.SIZE)
    expected = _internal_bits(packet_type)
    if flags & base.STRUCTURAL != expected:
        raise DecodeError(
            "BaseHeader",
            2,
            f"header bits {flags & base.STRUCTURAL:#06x} in a {packet_type.name} packet, "
            f"not {expected:#06x}",
        )
    if packet_type is InternalType.SESSION_ACK and internal_header.refused:
        raise DecodeError("InternalHeader", 18, "a session acknowledgment that refuses (CS)")
    own = OWN_HEADERS[packet_type]
    header, end = own.read(data, offset)
    return own.packet(header, internal_header, base_header, data[end:])


def _decode_user_message(
    data: bytes,
    base_header: BaseHeader,
    base_flags: int,
    size: int,
    read_lists: Callable[[bytes, int], tuple[MultiQueueFormatHeader | None, int]],
) -> UserMessage:
    inside = _without_session(data, base_flags, size)
    user_header, flags, offset = user.read(inside, base.SIZE)
    transaction_header = security_header = debug_header = soap_header = multi_queue_header = None
    if flags & user.TRANSACTION:
        transaction_header, offset = transaction.read(inside, offset)
    if flags & user.SECURITY:
        security_header, offset = security.read(inside, offset)
    properties, offset = message_properties.read(inside, offset)
    if base_flags & base.DEBUG:
        debug_header, offset = debug.read(inside, offset)
    if flags & user.SOAP:
        soap_header, offset = soap.read(inside, offset)
    if flags & user.MULTI_QUEUE:
        multi_queue_header, offset = read_lists(inside, offset)
    session_header, counted = _session(data, base_flags, size, offset)
    if counted:
        offset += session.SIZE
    return UserMessage(
        user_header,
        properties,
        base_header,
        transaction_header,
        security_header,
        debug_header,
        soap_header,
        multi_queue_header,
        session_header,
        inside[offset:],
        counted,
    )


def _without_session(data: bytes, base_flags: int, size: int) -> bytes:
    """Return the bytes that the packet's size counts; a SessionHeader may lie behind them."""
    if base_flags & base.TRACE and not base_flags & base.DEBUG:
        raise DecodeError("BaseHeader", 2, "traced (TR), but no debug header announced (DH)")
    appended = len(data) - size
    if not appended:
        return data
    if appended != session.SIZE or not base_flags & base.SESSION:
        raise DecodeError("BaseHeader", 8, f"packet size {size}, but {len(data)} bytes")
    return data[:size]


def _session(
    data: bytes, base_flags: int, size: int, offset: int
) -> tuple[SessionHeader | None, bool]:
    """Read the SessionHeader, and say whether the packet's size counts it."""
    if not base_flags & base.SESSION:
        return None, False
    counted = size - offset >= session.SIZE
    if counted and len(data) > size:
        raise DecodeError("SessionHeader", offset, "one inside the packet and one behind it")
    return session.read(data, offset if counted else size)[0], counted


def _header_bits(packet: UserMessage) -> int:
    return (
        user.PROPERTIES
        | (0 if packet.transaction is None else user.TRANSACTION)
        | (0 if packet.security is None else user.SECURITY)
        | (0 if packet.soap is None else user.SOAP)
        | (0 if packet.multi_queue is None else user.MULTI_QUEUE)
    )


def _base_bits(packet: UserMessage) -> int:
    return (0 if packet.debug is None else base.DEBUG) | (
        0 if packet.session is None else base.SESSION
    )


def _encode_user_message(packet: UserMessage, lists: bytes | None) -> bytes:
    if packet.base.traced and packet.debug is None:
        raise EncodeError("BaseHeader", "a traced message needs a debug header")
    parts = [packet.user.write(_header_bits(packet))]
    if packet.transaction is not None:
        parts.append(packet.transaction.write())
    if packet.security is not None:
        parts.append(packet.security.write())
    parts.append(packet.properties.write())
    if packet.debug is not None:
        parts.append(packet.debug.write())
    if packet.soap is not None:
        parts.append(packet.soap.write())
    if packet.multi_queue is not None:
        parts.append(packet.multi_queue.write() if lists is None else lists)
    if packet.session is not None and packet.session_counted:
        parts.append(packet.session.write())
    parts.append(packet.tail)
    size = base.SIZE + sum(map(len, parts))
    if packet.session is not None and not packet.session_counted:
        if len(packet.tail) >= session.SIZE:
            raise EncodeError(
                "UserMessage", "a reader would take the unknown tail for the SessionHeader"
            )
        parts.append(packet.session.write())
    return packet.base.write(_base_bits(packet), size) + b"".join(parts)


def _user_message_fields(packet: UserMessage) -> Iterator[Field]:
    behind = 0 if packet.session is None or packet.session_counted else session.SIZE
    size = len(encode(packet)) - behind
    yield group("BaseHeader", packet.base.fields(_base_bits(packet), size))
    yield group("UserHeader", packet.user.fields(_header_bits(packet)))
    for attribute, name in _SHOWN_HEADERS.items():
        header = getattr(packet, attribute)
        if header is not None:
            yield group(name, header.fields())
    tail = list(hex_field("unknown tail", packet.tail))
    ending = []
    if packet.session is not None:
        ending.append(group("SessionHeader", packet.session.fields()))
    yield from ending + tail if packet.session_counted else tail + ending
