"""The text view of a packet: a tree of named byte ranges and what they say.

Showing never fails: a packet that does not decode is shown as far as its headers can be read,
followed by the bytes that could not be. The sizes of a node's children that have a size add up to
the node's own, so every byte of the packet is somewhere in the tree exactly once.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from openmsmq.wire import packets
from openmsmq.wire.bodies import notifications
from openmsmq.wire.bodies.acknowledgments import FinalAck, OrderAck
from openmsmq.wire.datagrams import QUERY_TYPE, DirectoryAnswer, DirectoryQuery, PingPacket
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.fields.cursor import Field, group, hex_field
from openmsmq.wire.headers import (
    base,
    debug,
    internal,
    message_properties,
    multi_queue,
    security,
    soap,
    transaction,
    user,
)
from openmsmq.wire.keys import PublishedKeys, RsaPublicKey, SessionKeyBlob, UserCertificates
from openmsmq.wire.text import exchanges, pgm, posts, summaries
from openmsmq.wire.text.bodies import refine

_PING_BYTES: Final = 24
_PING_SIGNATURE: Final = b"\x48\x55"
_SIGNATURE: Final = base.SIGNATURE.to_bytes(4, "little")
_QUERY_BYTES: Final = 52
_ANSWER_BYTES_MIN: Final = 48


class Kind(enum.StrEnum):
    """What bytes can be shown as."""

    SESSION = "session"
    PING = "ping"
    DISCOVERY = "discovery"
    NOTIFICATION = "notification"
    ORDER_ACK = "order-ack"
    FINAL_ACK = "final-ack"
    PUBLIC_KEY = "public-key"
    SESSION_KEY = "session-key"
    PUBLISHED_KEYS = "published-keys"
    CERTIFICATES = "certificates"
    POST = "post"
    REQUEST = "request"
    ANSWER = "answer"
    PGM = "pgm"


class Node(msgspec.Struct, frozen=True, omit_defaults=True):
    """A named range of bytes. A node without a size is a part of its parent's bits."""

    name: str
    offset: int
    size: int
    value: str | int | None = None
    meaning: str = ""
    children: tuple[Node, ...] = ()


class View(msgspec.Struct, frozen=True):
    """A packet, ready to be shown."""

    name: str
    """Which packet it is, such as `UserMessage`."""
    summary: str
    """What it says, in one line."""
    nodes: tuple[Node, ...]
    problem: str = ""
    """Why not all of it could be read, and where."""


def guess_kind(data: bytes) -> Kind | None:
    """Return what bytes are by their signature or, for want of one, by size and type."""
    if data[4:8] == _SIGNATURE:
        return Kind.SESSION
    if data.startswith(posts.START):
        return Kind.POST
    if len(data) == _PING_BYTES and data[2:4] == _PING_SIGNATURE:
        return Kind.PING
    is_query = data[:2] == b"\0\1" and len(data) >= _QUERY_BYTES
    is_answer = data[:2] == b"\0\2" and len(data) >= _ANSWER_BYTES_MIN
    return Kind.DISCOVERY if is_query or is_answer else None


def view(data: bytes, kind: Kind = Kind.SESSION) -> View:
    """Show the bytes of one packet."""
    if kind is Kind.SESSION:
        return _session_view(data)
    try:
        value = _DECODERS[kind](data)
        fields = list(value.fields())
    except DecodeError as error:
        return View("malformed", kind, nodes_of(_rest(data, 0)), str(error))
    return View(type(value).__name__, summaries.summary(value), nodes_of(fields))


def nodes_of(fields: Iterable[Field], offset: int = 0) -> tuple[Node, ...]:
    """Place fields behind each other; those without a size become parts of the one before."""
    nodes: list[Node] = []
    for field in fields:
        if field.size == 0 and nodes and not isinstance(field.value, list):
            last = nodes[-1]
            part = Node(field.name, last.offset, 0, field.value, field.meaning)
            nodes[-1] = msgspec.structs.replace(last, children=(*last.children, part))
            continue
        if isinstance(field.value, list):
            children = nodes_of(field.value, offset)
            nodes.append(Node(field.name, offset, field.size, None, field.meaning, children))
        else:
            nodes.append(Node(field.name, offset, field.size, field.value, field.meaning))
        offset += field.size
    return tuple(nodes)


def _read_discovery(data: bytes) -> DirectoryQuery | DirectoryAnswer:
    if data[1:2] == bytes((QUERY_TYPE,)):
        return DirectoryQuery.decode(data)
    return DirectoryAnswer.decode(data)


_DECODERS: Final[dict[Kind, Callable[[bytes], Any]]] = {
    Kind.PING: PingPacket.decode,
    Kind.DISCOVERY: _read_discovery,
    Kind.NOTIFICATION: notifications.decode,
    Kind.ORDER_ACK: OrderAck.decode,
    Kind.FINAL_ACK: FinalAck.decode,
    Kind.PUBLIC_KEY: RsaPublicKey.decode,
    Kind.SESSION_KEY: SessionKeyBlob.decode,
    Kind.PUBLISHED_KEYS: PublishedKeys.decode,
    Kind.CERTIFICATES: UserCertificates.decode,
    Kind.POST: posts.Post.decode,
    Kind.REQUEST: exchanges.HttpRequest.decode,
    Kind.ANSWER: exchanges.HttpAnswer.decode,
    Kind.PGM: pgm.PgmPacket.decode,
}


def _session_view(data: bytes) -> View:
    try:
        packet = packets.decode(data)
    except DecodeError as error:
        return _malformed_view(data, str(error))
    fields = refine(packets.packet_fields(packet), packet)
    return View(summaries.name(packet), summaries.summary(packet), nodes_of(fields))


def _malformed_view(data: bytes, problem: str) -> View:
    """Show the headers in front of the first that cannot be read, and the rest as it is."""
    fields: list[Field] = []
    try:
        fields.extend(_headers(data))
    except DecodeError as error:
        # The packet as a whole may be wrong in its size first, and in a header because of it.
        problem = problem if str(error) == problem else f"{problem}; {error}"
    fields += _rest(data, sum(field.size for field in fields))
    return View("malformed", "", nodes_of(fields), problem)


def _headers(data: bytes) -> Iterator[Field]:
    """Show header after header, up to the one that cannot be read."""
    base_header, flags, size = base.read(data)
    yield group("BaseHeader", base_header.fields(flags & base.STRUCTURAL, size))
    if flags & base.INTERNAL:
        yield from _internal_headers(data)
    else:
        yield from _user_message_headers(data[:size], flags)


def _internal_headers(data: bytes) -> Iterator[Field]:
    header, packet_type, offset = internal.read(data, base.SIZE)
    yield group("InternalHeader", header.fields(packet_type))
    own = packets.OWN_HEADERS[packet_type]
    yield group(own.name, own.read(data, offset)[0].fields())


def _user_message_headers(data: bytes, base_flags: int) -> Iterator[Field]:
    header, flags, offset = user.read(data, base.SIZE)
    yield group("UserHeader", header.fields(flags & user.HEADERS))
    following: tuple[tuple[int, str, Callable[[bytes, int], tuple[Any, int]]], ...] = (
        (flags & user.TRANSACTION, "TransactionHeader", transaction.read),
        (flags & user.SECURITY, "SecurityHeader", security.read),
        (flags & user.PROPERTIES, "MessagePropertiesHeader", message_properties.read),
        (base_flags & base.DEBUG, "DebugHeader", debug.read),
        (flags & user.SOAP, "SoapHeader", soap.read),
        (flags & user.MULTI_QUEUE, "MultiQueueFormatHeader", multi_queue.read),
    )
    for announced, name, read in following:
        if announced:
            other, offset = read(data, offset)
            yield group(name, other.fields())


def _rest(data: bytes, offset: int) -> Iterator[Field]:
    return hex_field("not decoded", data[offset:])
