"""Identifiers: who sent it, which message, which sequence. [MQMQ 2.2.8, 2.2.18.1]

A GUID is its 16 wire bytes. Keeping the bytes (and not a `uuid.UUID`) makes decoding a packet
cheap, and equality, hashing and dictionary look-ups run at C speed; the text form is made only
when a person wants to read it.
"""

from __future__ import annotations

import re
import struct
import uuid
from functools import lru_cache
from typing import Final, NewType, Self

import msgspec

_GUID_TEXT: Final = re.compile(
    r"\{?([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})\}?"
)
_HEXADECIMAL: Final = re.compile(r"[0-9A-Fa-f]{40}")


class Guid(bytes):
    """A GUID in wire order: Data1..Data3 little-endian, Data4 as is. [MS-DTYP 2.3.4.2]

    `Guid(sixteen_bytes)` takes the bytes as they stand on the wire; `Guid.parse(text)` reads the
    usual text, with or without braces.
    """

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`, with or without braces around it."""
        return cls(_bytes_of(text))

    def __str__(self) -> str:
        return _text_of(bytes(self))

    def __repr__(self) -> str:
        return f"Guid({str(self)!r})"


# Those of queue managers come again with every message.


@lru_cache(maxsize=1_024)
def _bytes_of(text: str) -> bytes:
    match = _GUID_TEXT.fullmatch(text)
    if match is None or text.startswith("{") != text.endswith("}"):
        raise ValueError(f"{text!r} is not a GUID: 32 hexadecimal digits as 8-4-4-4-12 needed")
    return uuid.UUID(match[1]).bytes_le


@lru_cache(maxsize=1_024)
def _text_of(data: bytes) -> str:
    return str(uuid.UUID(bytes_le=data))


GUID_BYTES: Final = 16
NIL_GUID: Final = Guid(GUID_BYTES)

LookupId = NewType("LookupId", int)
"""The position of a message in its queue: priority in the high byte, so never a stream offset."""

_MESSAGE_ID: Final = struct.Struct("<16sI")


class MessageId(msgspec.Struct, frozen=True, order=True, gc=False):
    """The 20-byte message identifier: which queue manager sent it, and its number there.

    [MQMQ 2.2.8, 2.2.18.1.3]
    """

    source: Guid
    number: int

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the 20 bytes in which correlation identifiers and acknowledgments carry it."""
        if len(data) != _MESSAGE_ID.size:
            raise ValueError(f"a message identifier has 20 bytes, not {len(data)}")
        source, number = _MESSAGE_ID.unpack(data)
        return cls(Guid(source), number)

    def to_bytes(self) -> bytes:
        """Return the 20 wire bytes."""
        return _MESSAGE_ID.pack(self.source, self.number)

    @classmethod
    def parse(cls, text: str) -> Self:
        r"""Read the text applications use, `{guid}\number`."""
        guid, backslash, number = text.rpartition("\\")
        if not backslash or not number.isascii() or not number.isdecimal():
            raise ValueError(f"{text!r} is not a message identifier: {{guid}}\\number needed")
        if int(number) > 0xFFFFFFFF:
            raise ValueError(f"{text!r} is not a message identifier: the number exceeds 32 bits")
        return cls(Guid.parse(guid), int(number))

    @classmethod
    def read(cls, text: str) -> Self:
        r"""Read what people write: `{guid}\number`, or the 20 bytes in hexadecimal."""
        is_hexadecimal = _HEXADECIMAL.fullmatch(text)
        return cls.from_bytes(bytes.fromhex(text)) if is_hexadecimal else cls.parse(text)

    def __str__(self) -> str:
        return f"{{{self.source}}}\\{self.number}"


class SequenceId(msgspec.Struct, frozen=True, gc=False):
    """The identity of a transactional sequence; younger ones compare greater. [MQMQ 2.2.18.1.2]"""

    ordinal: int
    timestamp: int

    def __int__(self) -> int:
        return self.timestamp << 32 | self.ordinal

    @classmethod
    def from_int(cls, value: int) -> Self:
        """Split the 64-bit form in which sequences are compared."""
        return cls(value & 0xFFFFFFFF, value >> 32)

    def __lt__(self, other: SequenceId) -> bool:
        return int(self) < int(other)

    def __le__(self, other: SequenceId) -> bool:
        return int(self) <= int(other)

    def __gt__(self, other: SequenceId) -> bool:
        return int(self) > int(other)

    def __ge__(self, other: SequenceId) -> bool:
        return int(self) >= int(other)


class SequencePoint(msgspec.Struct, frozen=True, gc=False):
    """A message's place in a transactional sequence (SEQUENCE_INFO). [MQMQ 2.2.5]"""

    id: SequenceId
    number: int
    previous: int


class TransactionId(msgspec.Struct, frozen=True, order=True, gc=False):
    """A transaction as receivers see it: the sender and its 20-bit transaction number (C-77f)."""

    source: Guid
    number: int

    def __str__(self) -> str:
        return f"{{{self.source}}}\\{self.number}"
