"""Outline: what is needed to place a message, without reading all of it.

Routing, quotas and statistics look at the destination, the flags and the sizes of every packet
that passes; a full decode of each would cost several times as much. The destination is given as
its wire bytes, which serve as a key as they are; `destination_name` reads them.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

from openmsmq.wire.errors import DecodeError
from openmsmq.wire.fields.cursor import need
from openmsmq.wire.headers import base, message_properties, queue_names, security, transaction, user
from openmsmq.wire.headers.queue_names import QueueName

_FIXED: Final = struct.Struct("<HHII4x44xI")
_NAME_OFFSET: Final = _FIXED.size
_FLAGS_OFFSET: Final = base.SIZE + 44
_VERSION_MASK: Final = 0x00FF


class Outline(msgspec.Struct, frozen=True, gc=False):
    """The facts of a user message that decide where it goes and what it costs."""

    packet_size: int
    base_flags: int
    """The whole flags word of the BaseHeader; its masks are in `headers.base`."""
    flags: int
    """The whole flags word of the UserHeader; its masks are in `headers.user`."""
    destination: bytes
    """The destination queue as encoded; `flags` says in which form."""
    transaction_offset: int
    """Where the UserHeader ends and the TransactionHeader starts, if there is one."""
    security_offset: int
    """Where the SecurityHeader starts, if there is one."""
    properties_offset: int
    """Where the MessagePropertiesHeader starts."""
    body_start: int
    body_end: int

    @property
    def destination_name(self) -> QueueName:
        """The destination queue, read."""
        form = self.flags >> user.DESTINATION_SHIFT & 7
        return queue_names.read(form, self.destination, 0, "DestinationQueue")[0]


def outline(data: bytes) -> Outline:
    """Look at a whole user message; the parts passed over are checked for their sizes only."""
    if len(data) < _NAME_OFFSET:
        need(data, 0, _NAME_OFFSET, "UserHeader")
    version, base_flags, signature, size, flags = _FIXED.unpack_from(data)
    if (
        version & _VERSION_MASK != base.VERSION
        or signature != base.SIGNATURE
        or base_flags & base.INTERNAL
    ):
        raise DecodeError("BaseHeader", 0, "not a user message")
    if size != len(data):
        # A SessionHeader behind the packet is not part of it, and no size may reach into it.
        need(data, 0, size, "packet")
        data = data[:size]
    if user.flags_problem(flags):
        raise DecodeError("UserHeader", base.SIZE + 44, user.flags_problem(flags))
    form = flags >> user.DESTINATION_SHIFT & 7
    end = _NAME_OFFSET + queue_names.size_of(form, data, _NAME_OFFSET, "UserHeader")
    offset = end + (-end & 3)
    if flags & user.OTHER_NAMES:
        offset = user.skip(data, base.SIZE)[1]
    transaction_offset = security_offset = offset
    if flags & user.TRANSACTION:
        offset = security_offset = transaction.skip(data, offset)
    if flags & user.SECURITY:
        offset = security.skip(data, offset)
    body_start, body_end, _ = message_properties.skip(data, offset)
    return Outline(
        size,
        base_flags,
        flags,
        data[_NAME_OFFSET:end],
        transaction_offset,
        security_offset,
        offset,
        body_start,
        body_end,
    )


class BodyFinder:
    """Finds bodies in packets without decoding them, at once if the one before had such headers."""

    def __init__(self) -> None:
        # One value that is replaced as a whole: several threads may look at the same time.
        self._last: tuple[bytes, int, bytes, tuple[int, int, int]] = (b"", 0, b"", (0, 0, 0))

    def find(self, packet: bytes) -> tuple[int, bytes] | None:
        """Return the type of the body and the body; None if it may be ciphertext."""
        first, end, rest, place = self._last
        if packet[: base.SIZE] == first and packet[_FLAGS_OFFSET:end] == rest:
            body_type, body_start, body_end = place
            return body_type, packet[body_start:body_end]
        found = outline(packet)
        if found.flags & user.SECURITY:
            return None
        body_type, size = message_properties.body_facts(packet, found.properties_offset)
        body_start, body_end = found.body_start, min(found.body_end, found.body_start + size)
        end = found.properties_offset + message_properties.FIXED_SIZE
        self._last = (
            packet[: base.SIZE],
            end,
            packet[_FLAGS_OFFSET:end],
            (body_type, body_start, body_end),
        )
        return body_type, packet[body_start:body_end]
