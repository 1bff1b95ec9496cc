"""MD4, for the one thing that still needs it: a password becomes the key of NTLM. [RFC 1320]

OpenSSL has it no longer. PyCryptodome has it, but comes with an extra, and whoever adds a user
should not have to install that. It hashes a password at a time, so it may be slow.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

_MASK: Final = 0xFFFF_FFFF
_BLOCK_BYTES: Final = 64
_START: Final[tuple[int, ...]] = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)

_Round = tuple[Callable[[int, int, int], int], int, tuple[int, ...], tuple[int, ...]]
_ROUNDS: Final[tuple[_Round, ...]] = (
    (lambda x, y, z: x & y | ~x & z, 0, tuple(range(16)), (3, 7, 11, 19)),
    (
        lambda x, y, z: x & y | x & z | y & z,
        0x5A827999,
        (0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
        (3, 5, 9, 13),
    ),
    (
        lambda x, y, z: x ^ y ^ z,
        0x6ED9EBA1,
        (0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15),
        (3, 9, 11, 15),
    ),
)
"""Of each round: what mixes, what is added, the order of the words, and how far they turn."""


def md4(data: bytes) -> bytes:
    """Hash something short."""
    zeros = -(len(data) + 9) % _BLOCK_BYTES
    padded = data + b"\x80" + bytes(zeros) + struct.pack("<Q", len(data) * 8)
    state = _START
    for offset in range(0, len(padded), _BLOCK_BYTES):
        state = _block(state, struct.unpack_from("<16I", padded, offset))
    return struct.pack("<4I", *state)


def _block(state: tuple[int, ...], words: tuple[int, ...]) -> tuple[int, ...]:
    a, b, c, d = state
    for mix, constant, order, turns in _ROUNDS:
        for step, index in enumerate(order):
            total = (a + (mix(b, c, d) & _MASK) + words[index] + constant) & _MASK
            turn = turns[step % 4]
            a, b, c, d = d, (total << turn | total >> 32 - turn) & _MASK, b, c
    return tuple((old + new) & _MASK for old, new in zip(state, (a, b, c, d), strict=True))
