"""The checksum of PGM: that of the Internet, over the whole packet. [RFC 3208 8]"""

from __future__ import annotations

from typing import Final

_ALL_ONES: Final = 0xFFFF


def checksum(data: bytes) -> int:
    """Return the checksum of bytes whose own field for it is zero; never 0, which means none."""
    # One division of a long number adds up all its 16-bit words, with the carries.
    found = int.from_bytes(data if len(data) % 2 == 0 else data + b"\0", "big") % _ALL_ONES
    return _ALL_ONES - found


def is_right(data: bytes) -> bool:
    """Whether a packet that says its checksum has the right one."""
    found = int.from_bytes(data if len(data) % 2 == 0 else data + b"\0", "big")
    return found != 0 and found % _ALL_ONES == 0
