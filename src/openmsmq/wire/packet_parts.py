"""Where the parts of a packet lie that encryption changes, and packets with other such parts.

Bodies are encrypted and decrypted for every message, so a packet is cut and joined here, and not
decoded and encoded as a whole.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

import msgspec

from openmsmq.model.limits import PACKET_MAX_BYTES
from openmsmq.wire import message_bytes
from openmsmq.wire.errors import EncodeError
from openmsmq.wire.fields.cursor import ZEROS
from openmsmq.wire.headers import base, security, user
from openmsmq.wire.outline import Outline, outline

_U32: Final = struct.Struct("<I")
_PACKET_SIZE_AT: Final = 8
_FLAGS_AT: Final = base.SIZE + 44
_SIZES: Final = struct.Struct("<IIIII")
"""Of the MessagePropertiesHeader: body size, allocated size, level, hash and cipher."""
_SIZES_AT: Final = 32
_NO_SECURITY: Final = (0, 0, 0, 0, 0, 0)


class PacketParts(msgspec.Struct, frozen=True, gc=False):
    """A user message, cut where its security begins, and at its body."""

    packet: bytes
    found: Outline
    security: tuple[int, ...]
    """Its flags, and the sizes of its five items; all 0 without a header."""
    body_size: int
    level: int
    hash_algorithm: int
    encryption_algorithm: int

    @property
    def source(self) -> bytes:
        """The queue manager that sent it."""
        return message_bytes.source(self.packet)

    @property
    def body(self) -> bytes:
        """The bytes that the body occupies."""
        return message_bytes.body(self.packet, self.found)

    @property
    def plain_body(self) -> bytes:
        """The body of a message that is not encrypted."""
        return self.body[: self.body_size]

    @property
    def encryption_key(self) -> bytes:
        """The session key; empty without one."""
        _, sender, key, *_ = self.security
        at = self.found.security_offset + security.FIXED_SIZE + (sender + 3 & ~3)
        return self.packet[at : at + key]


def cut(packet: bytes) -> PacketParts:
    """Find the parts of a user message; `DecodeError` if it is none."""
    found = outline(packet)
    secured = _NO_SECURITY
    if found.flags & user.SECURITY:
        secured = security.LAYOUT.unpack_from(packet, found.security_offset)
    body_size, _, level, hash_algorithm, cipher = _SIZES.unpack_from(
        packet, found.properties_offset + _SIZES_AT
    )
    return PacketParts(packet, found, secured, body_size, level, hash_algorithm, cipher)


class BodyPart(NamedTuple):
    """A body as it is to stand in a packet, and what the packet says of it."""

    body: bytes
    plain_size: int
    level: int
    cipher: int


def join(
    parts: PacketParts, security_flags: int, key: bytes, provider: bytes | None, wanted: BodyPart
) -> bytes:
    """Return the packet with another session key, provider and body.

    Without a provider it keeps its own. Without any item it has no SecurityHeader.
    """
    packet, found, body = parts.packet, parts.found, wanted.body
    header = _security_header(parts, security_flags, key, provider)
    flags = found.flags | user.SECURITY if header else found.flags & ~user.SECURITY
    middle = packet[found.properties_offset + _SIZES_AT + _SIZES.size : found.body_start]
    following = found.body_end + (found.properties_offset - found.body_end & 3)
    joined = [
        packet[_PACKET_SIZE_AT + 4 : _FLAGS_AT],
        _U32.pack(flags),
        packet[_FLAGS_AT + 4 : found.security_offset],
        header,
        packet[found.properties_offset : found.properties_offset + _SIZES_AT],
        _SIZES.pack(
            wanted.plain_size, len(body), wanted.level, parts.hash_algorithm, wanted.cipher
        ),
        middle,
        body,
        ZEROS[-(len(middle) + len(body)) & 3],
        packet[following : found.packet_size],
    ]
    packet_size = _PACKET_SIZE_AT + 4 + sum(map(len, joined))
    if packet_size > PACKET_MAX_BYTES:
        raise EncodeError(
            "BaseHeader",
            f"the packet has {packet_size} bytes with its security; at most {PACKET_MAX_BYTES} "
            "are allowed, so shorten the body, extension or label",
        )
    # A SessionHeader may lie behind the packet; its bytes are not counted.
    joined.append(packet[found.packet_size :])
    return b"".join((packet[:_PACKET_SIZE_AT], _U32.pack(packet_size), *joined))


def _security_header(
    parts: PacketParts, security_flags: int, key: bytes, provider: bytes | None
) -> bytes:
    """Return the header with what is new, and the other items as they are."""
    packet, found = parts.packet, parts.found
    _, sender, old_key, signature, certificate, provider_size = parts.security
    items_at = min(found.security_offset + security.FIXED_SIZE, found.properties_offset)
    sender_end = items_at + (sender + 3 & ~3)
    key_end = sender_end + (old_key + 3 & ~3)
    rest = packet[key_end : found.properties_offset]
    if provider is not None:
        rest = b"".join(
            (
                packet[key_end : key_end + (signature + 3 & ~3) + (certificate + 3 & ~3)],
                provider,
                ZEROS[-len(provider) & 3],
            )
        )
        provider_size = len(provider)
    if not (sender or key or rest):
        return b""
    return b"".join(
        (
            security.LAYOUT.pack(
                security_flags, sender, len(key), signature, certificate, provider_size
            ),
            packet[items_at:sender_end],
            key,
            ZEROS[-len(key) & 3],
            rest,
        )
    )
