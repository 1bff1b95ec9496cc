"""Changing bytes: plainly, for the tests, and so that changed packets still get past the door.

A decoder checks version, signature and size first, so nearly every random change ends there. A
repair sets them right again, most of the time, and lets the change reach the code behind.
"""

from __future__ import annotations

import struct
from random import Random
from typing import Final

from openmsmq.wire.headers import base, session, user
from tests.fuzz.registry import Repair

_TELLING_NUMBERS: Final = (
    0,
    1,
    2,
    3,
    4,
    15,
    16,
    0x7F,
    0xFF,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0xFFFFFFFF,
)
_SIGNATURE: Final = struct.pack("<I", base.SIGNATURE)
_FLAGS_OFFSET: Final = base.SIZE + 44
_ANNOUNCING_BITS: Final = (
    user.TRANSACTION | user.RECOVERABLE,
    user.SECURITY,
    user.SOAP,
    user.MULTI_QUEUE,
    user.CONNECTOR,
    *(1 << bit for bit in range(user.DESTINATION_SHIFT, user.RESPONSE_SHIFT + 3)),
)
_MAGIC_PCAPNG: Final = b"\x0a\x0d\x0d\x0a"


def mutate(data: bytes, other: bytes, random: Random) -> bytes:
    """Change data in one to four ways; `other` lends its bytes to some of them."""
    changed = bytearray(data)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(changed) + 1)
        size = random.choice((1, 1, 2, 4, 16))
        match random.randrange(6):
            case 0:
                changed[at : at + 1] = random.randbytes(1)
            case 1:
                number = random.choice(_TELLING_NUMBERS) & (1 << 8 * min(size, 4)) - 1
                changed[at : at + size] = number.to_bytes(size, "little")
            case 2:
                del changed[at : at + size]
            case 3:
                changed[at:at] = random.randbytes(size)
            case 4:
                start = random.randrange(len(other) + 1)
                changed[at : at + size] = other[start : start + size]
            case _:
                changed = changed[: max(at, 1)] if random.randrange(4) == 0 else changed
    return bytes(changed)


def announce(packet: bytearray, random: Random) -> None:
    """Say that a header follows, or no longer say so, and end the packet where a header may."""
    if len(packet) < base.SIZE + user.FIXED_SIZE:
        return
    if random.randrange(3):
        flags = int.from_bytes(packet[_FLAGS_OFFSET : _FLAGS_OFFSET + 4], "little")
        flags ^= random.choice(_ANNOUNCING_BITS)
        packet[_FLAGS_OFFSET : _FLAGS_OFFSET + 4] = struct.pack("<I", flags | user.PROPERTIES)
    else:
        packet[2] ^= random.choice((base.DEBUG, base.SESSION))
    if random.randrange(2):
        del packet[random.randrange(_FLAGS_OFFSET + 4, len(packet) + 1, 4) :]


def repair_packet(data: bytes, random: Random) -> bytes:
    """Set version, signature and size right, in one of the ways a packet may end."""
    if len(data) < base.SIZE or random.randrange(8) == 0:
        return data
    fixed = bytearray(data)
    if random.randrange(4) == 0:
        announce(fixed, random)
    fixed[0] = base.VERSION
    fixed[4:8] = _SIGNATURE
    behind = session.SIZE if fixed[2] & base.SESSION and random.randrange(2) else 0
    fixed[8:12] = struct.pack("<I", max(len(fixed) - behind, 0))
    return bytes(fixed)


def repair_stream(data: bytes, random: Random) -> bytes:
    """Set the first packet right; let it end before the stream does, so that more follow."""
    if len(data) < 2 + base.SIZE or random.randrange(8) == 0:
        return data
    fixed = bytearray(repair_packet(data[2:], random))
    second = fixed.find(_SIGNATURE, base.SIZE) - 4
    if second > 0 and random.randrange(2):
        fixed[8:12] = struct.pack("<I", second)
    return data[:2] + bytes(fixed)


def repair_capture(data: bytes, random: Random) -> bytes:
    """Make the two sizes of each pcapng block agree."""
    if not data.startswith(_MAGIC_PCAPNG) or random.randrange(8) == 0:
        return data
    fixed = bytearray(data)
    at = 0
    while at + 12 <= len(fixed):
        size = int.from_bytes(fixed[at + 4 : at + 8], "little")
        if size < 12 or size & 3 or at + size > len(fixed):
            size = len(fixed) - at & ~3
            fixed[at + 4 : at + 8] = struct.pack("<I", size)
        fixed[at + size - 4 : at + size] = fixed[at + 4 : at + 8]
        at += size
    return bytes(fixed)


def repair_key_list(data: bytes, random: Random) -> bytes:
    """Set the size of a list of public keys right."""
    if len(data) < 8 or random.randrange(4):
        return data
    return struct.pack("<I", len(data)) + data[4:]


def repair_view(data: bytes, random: Random) -> bytes:
    """Set packets right; leave everything else that can be shown as it is."""
    return repair_packet(data, random) if data[4:8] == _SIGNATURE else data


REPAIRS: Final[dict[str, Repair]] = {
    "packets": repair_packet,
    "frames": repair_stream,
    "captures": repair_capture,
    "views": repair_view,
    "keys": repair_key_list,
}
