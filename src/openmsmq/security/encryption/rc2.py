"""RC2 with any effective key length, in CBC mode with a zero start. [RFC 2268]

Libraries have it for effective lengths of 128 bits only; old peers use 40 (C-96). It is slow, so
what it works on is bounded.
"""

from __future__ import annotations

import struct
from typing import Final

RC2_BLOCK_BYTES: Final = 8
SLOW_RC2_MAX_BYTES: Final = 65_536
"""The most that is encrypted or decrypted here: in Python it takes a fifth of a second."""

_PI: Final = bytes.fromhex(
    "d978f9c419ddb5ed28e9fd794aa0d89dc67e37832b76538e624c6488448bfba2"
    "179a59f587b34f1361456d8d09817d32bd8f40eb86b77b0bf09521225c6b4e82"
    "54d66593ce60b21c7356c014a78cf1dc1275ca1f3bbee4d1423dd430a33cb626"
    "6fbf0eda4669075727f21d9bbc944303f811c7f690ef3ee706c3d52fc8661ed7"
    "08e8eade8052eef784aa72ac354d6a2a961ad2715a1549744b9fd05e0418a4ec"
    "c2e0416e0f51cbcc2491af50a1f47039997c3a8523b8b47afc02365b25559731"
    "2d5dfa98e38a92ae05df2910676cbac9d300e6cfe19ea82c6316013f58e289a9"
    "0d38341bab33ffb0bb480c5fb9b1cd2ec5f3db47e5a59c770aa62068fe7fc1ad"
)
_WORDS: Final = struct.Struct("<4H")
_KEY_WORDS: Final = struct.Struct("<64H")
_SHIFTS: Final = (1, 2, 3, 5)
_MASHED_AFTER: Final = (4, 10)
"""The mixing rounds, counted from 0, behind which a mashing round comes."""


def expand_key(key: bytes, effective_bits: int) -> tuple[int, ...]:
    """Make the 64 words that the rounds use. [RFC 2268 2]"""
    size = len(key)
    expanded = bytearray(key) + bytes(128 - size)
    for at in range(size, 128):
        expanded[at] = _PI[(expanded[at - 1] + expanded[at - size]) & 0xFF]
    effective = (effective_bits + 7) // 8
    mask = 0xFF >> (8 * effective - effective_bits)
    expanded[128 - effective] = _PI[expanded[128 - effective] & mask]
    for at in range(127 - effective, -1, -1):
        expanded[at] = _PI[expanded[at + 1] ^ expanded[at + effective]]
    return _KEY_WORDS.unpack(expanded)


def encrypt_block(words: tuple[int, ...], block: bytes) -> bytes:
    """Encrypt 8 bytes. [RFC 2268 3]"""
    state = list(_WORDS.unpack(block))
    for number in range(16):
        for at, shift in enumerate(_SHIFTS):
            before, second, third = state[at - 1], state[at - 2], state[at - 3]
            mixed = state[at] + words[4 * number + at] + (before & second) + (~before & third)
            mixed &= 0xFFFF
            state[at] = (mixed << shift | mixed >> (16 - shift)) & 0xFFFF
        if number in _MASHED_AFTER:
            for at in range(4):
                state[at] = state[at] + words[state[at - 1] & 63] & 0xFFFF
    return _WORDS.pack(*state)


def decrypt_block(words: tuple[int, ...], block: bytes) -> bytes:
    """Decrypt 8 bytes. [RFC 2268 4]"""
    state = list(_WORDS.unpack(block))
    for number in range(15, -1, -1):
        if number in _MASHED_AFTER:
            for at in (3, 2, 1, 0):
                state[at] = state[at] - words[state[at - 1] & 63] & 0xFFFF
        for at in (3, 2, 1, 0):
            shift = _SHIFTS[at]
            mixed = (state[at] >> shift | state[at] << (16 - shift)) & 0xFFFF
            before, second, third = state[at - 1], state[at - 2], state[at - 3]
            state[at] = (
                mixed - words[4 * number + at] - (before & second) - (~before & third) & 0xFFFF
            )
    return _WORDS.pack(*state)


def _xor(first: bytes, second: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(first, second, strict=True))


def encrypt(words: tuple[int, ...], padded: bytes) -> bytes:
    """Encrypt whole blocks."""
    blocks = []
    previous = bytes(RC2_BLOCK_BYTES)
    for start in range(0, len(padded), RC2_BLOCK_BYTES):
        previous = encrypt_block(words, _xor(padded[start : start + RC2_BLOCK_BYTES], previous))
        blocks.append(previous)
    return b"".join(blocks)


def decrypt(words: tuple[int, ...], ciphertext: bytes, first: int = 0) -> bytes:
    """Decrypt whole blocks, from the one at `first`, an offset, to the end."""
    blocks = []
    previous = ciphertext[first - RC2_BLOCK_BYTES : first] if first else bytes(RC2_BLOCK_BYTES)
    for start in range(first, len(ciphertext), RC2_BLOCK_BYTES):
        block = ciphertext[start : start + RC2_BLOCK_BYTES]
        blocks.append(_xor(decrypt_block(words, block), previous))
        previous = block
    return b"".join(blocks)
