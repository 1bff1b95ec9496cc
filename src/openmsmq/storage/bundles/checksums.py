"""The checksum behind everything that the base keeps: the crc32 of a key and what it stands for."""

from __future__ import annotations

from typing import Final

from zlib_ng.zlib_ng import crc32

CRC_BYTES: Final = 4

RESIDUE: Final = 0x2144DF1C
"""The crc32 of anything that is followed by its own crc32, the lowest byte first."""


def pack(key: bytes, value: bytes) -> bytes:
    """Put the checksum of a key and its value behind the value."""
    return value + crc32(value, crc32(key)).to_bytes(CRC_BYTES, "little")


def unpack(key: bytes, stored: bytes) -> bytes | None:
    """Take the checksum off; None if it is wrong."""
    return stored[:-CRC_BYTES] if is_whole(key, stored) else None


def is_whole(key: bytes, stored: bytes) -> bool:
    """Whether what is stored has the right checksum."""
    return crc32(stored, crc32(key)) == RESIDUE


def checksum_of(data: bytes | memoryview) -> int:
    """Return the checksum of bytes that stay elsewhere."""
    return crc32(data)
