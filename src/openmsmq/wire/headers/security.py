"""SecurityHeader: who sent a message, its signature and the key of its body. [MQMQ 2.2.20.6]

The items are opaque here. Which of them are present is said by their sizes alone; the bit AI,
which should say so, is clear in real traffic that carries items (C-11), so it is only kept.

One rule holds for both directions: a header without any item, of an unknown kind of sender, or
with a sender but no kind, is neither read nor written. What was read can therefore be written.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator
from typing import Final, Self

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.fields import utf16
from openmsmq.wire.fields.cursor import (
    Field,
    Pads,
    bits,
    hex_field,
    keep_padding,
    need,
    pack,
    padding_size,
)

LAYOUT: Final = struct.Struct("<HHHHII")
FIXED_SIZE: Final = LAYOUT.size
_U32: Final = struct.Struct("<I")
_WHERE: Final = "SecurityHeader"

SENDER_KIND: Final = 0x000F
AUTHENTICATED: Final = 0x0010
BODY_ENCRYPTED: Final = 0x0020
DEFAULT_PROVIDER: Final = 0x0040
ITEMS_ANNOUNCED: Final = 0x0080
SIGNATURE_KIND: Final = 0x0F00
ITEM_MAX_BYTES: Final = 0xFFFF


class SenderKind(enum.IntEnum):
    """What the sender's identifier is."""

    NONE = 0
    SID = 1
    QUEUE_MANAGER = 2


class ProviderInfo(msgspec.Struct, frozen=True, gc=False):
    """The cryptographic provider that made a signature or a session key."""

    provider_type: int
    name: str

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        """Read the bytes of `SecurityHeader.provider_info`."""
        need(raw, 0, 4, "ProviderInfo")
        name = utf16.read_all(raw, 4, len(raw), "ProviderInfo")
        return cls(_U32.unpack_from(raw)[0], name)

    def encode(self) -> bytes:
        """Return the bytes for `SecurityHeader.provider_info`."""
        return pack(_U32, "ProviderInfo", self.provider_type) + utf16.write(
            self.name, "ProviderInfo"
        )

    def __str__(self) -> str:
        return f"{self.name} (type {self.provider_type})"


class SecurityHeader(msgspec.Struct, frozen=True, gc=False):
    """The security items of a message; an empty item is absent."""

    sender_id: bytes = b""
    """A SID or the identifier of a queue manager, as `sender_kind` says."""
    encryption_key: bytes = b""
    signature: bytes = b""
    sender_certificate: bytes = b""
    provider_info: bytes = b""
    flags: int = 0
    padding: bytes = b""

    @property
    def sender_kind(self) -> SenderKind:
        """What `sender_id` is."""
        return SenderKind(self.flags & SENDER_KIND)

    @property
    def body_encrypted(self) -> bool:
        """Whether the body is ciphertext."""
        return self.flags & BODY_ENCRYPTED != 0

    @property
    def items(self) -> tuple[bytes, bytes, bytes, bytes, bytes]:
        """The items in the order of the wire, empty ones included."""
        return (
            self.sender_id,
            self.encryption_key,
            self.signature,
            self.sender_certificate,
            self.provider_info,
        )

    def write(self) -> bytes:
        """Return the bytes of the header and its items."""
        sizes = tuple(map(len, self.items))
        problem = _problem(self.flags, sizes) or _too_long(sizes)
        if problem:
            raise EncodeError(_WHERE, problem)
        parts = [LAYOUT.pack(self.flags, *sizes)]
        pads = Pads(self.padding, _WHERE)
        for item in self.items:
            parts += (item, pads.take(-len(item) & 3))
        pads.finish()
        return b"".join(parts)

    def fields(self) -> Iterator[Field]:
        """Show the header, field by field."""
        yield Field("Flags", 2, self.flags)
        yield from bits(
            self.flags,
            ("ST sender kind", SENDER_KIND),
            ("AU authenticated", AUTHENTICATED),
            ("EB body encrypted", BODY_ENCRYPTED),
            ("DE default provider", DEFAULT_PROVIDER),
            ("AI items announced", ITEMS_ANNOUNCED),
            ("AS signature kind", SIGNATURE_KIND),
        )
        yield Field("SenderIdSize", 2, len(self.sender_id))
        yield Field("EncryptionKeySize", 2, len(self.encryption_key))
        yield Field("SignatureSize", 2, len(self.signature))
        yield Field("SenderCertSize", 4, len(self.sender_certificate))
        yield Field("ProviderInfoSize", 4, len(self.provider_info))
        pads = Pads(self.padding, _WHERE)
        meanings = (self._sender_meaning(), "", "", "", self._provider_meaning())
        for name, item, meaning in zip(_ITEM_NAMES, self.items, meanings, strict=True):
            if item:
                yield Field(name, len(item), item.hex(), meaning)
            yield from hex_field("padding", pads.take(padding_size(len(item))))

    def _sender_meaning(self) -> str:
        if self.sender_kind is SenderKind.SID:
            return sid_text(self.sender_id)
        if self.sender_kind is SenderKind.QUEUE_MANAGER and len(self.sender_id) == 16:
            return str(Guid(self.sender_id))
        return ""

    def _provider_meaning(self) -> str:
        try:
            return str(ProviderInfo.decode(self.provider_info))
        except DecodeError:
            return ""


_ITEM_NAMES: Final = ("SecurityID", "EncryptionKey", "Signature", "SenderCert", "ProviderInfo")


def sid_text(raw: bytes) -> str:
    """Say a SID as `S-1-...`, or nothing when the bytes are no SID. [MS-DTYP 2.4.2.2]"""
    if len(raw) < 8 or raw[0] != 1 or len(raw) != 8 + 4 * raw[1]:
        return ""
    parts = struct.unpack_from(f"<{raw[1]}I", raw, 8)
    authority = int.from_bytes(raw[2:8], "big")
    return "-".join(map(str, ("S-1", authority, *parts)))


def _problem(flags: int, sizes: tuple[int, ...]) -> str:
    """What is wrong with a header of these flags and item sizes, or nothing."""
    kind = flags & SENDER_KIND
    if kind > SenderKind.QUEUE_MANAGER:
        return f"sender kind {kind}, not 0 (none), 1 (SID) or 2 (queue manager)"
    if kind == SenderKind.NONE and sizes[0]:
        return f"a sender of {sizes[0]} bytes, but sender kind 0 (none)"
    if sizes[3] > ITEM_MAX_BYTES:
        return f"a certificate of {sizes[3]} bytes; at most {ITEM_MAX_BYTES}"
    if not any(sizes):
        return "no item: at least one size must not be 0"
    return ""


def _too_long(sizes: tuple[int, ...]) -> str:
    for name, size in zip(_ITEM_NAMES[:3], sizes, strict=False):
        if size > ITEM_MAX_BYTES:
            return f"{name} of {size} bytes; at most {ITEM_MAX_BYTES}"
    return ""


def _measure(data: bytes, offset: int) -> tuple[int, tuple[int, ...], int]:
    """Check the header at `offset`; give its flags, item sizes and the offset behind it."""
    need(data, offset, FIXED_SIZE, _WHERE)
    flags, *rest = LAYOUT.unpack_from(data, offset)
    sizes = tuple(rest)
    problem = _problem(flags, sizes)
    if problem:
        raise DecodeError(_WHERE, offset, problem)
    end = offset + FIXED_SIZE + sum(size + (-size & 3) for size in sizes)
    need(data, end, 0, _WHERE)
    return flags, sizes, end


def skip(data: bytes, offset: int) -> int:
    """Check and pass over the header at `offset`; give the offset behind it."""
    return _measure(data, offset)[2]


def read(data: bytes, offset: int) -> tuple[SecurityHeader, int]:
    """Read the header at `offset`; give it and the offset behind it."""
    flags, sizes, end = _measure(data, offset)
    start = offset + FIXED_SIZE
    items: list[bytes] = []
    padding = b""
    for size in sizes:
        items.append(data[start : start + size])
        following = start + size + (-size & 3)
        padding += data[start + size : following]
        start = following
    header = SecurityHeader(
        items[0], items[1], items[2], items[3], items[4], flags, keep_padding(padding)
    )
    return header, end
