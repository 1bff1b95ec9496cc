"""Hashes of signatures, and how RSA signatures name them. [MQMQ 2.2.19.3; RFC 8017 9.2]

MD2 and MD4 are no longer in libraries; they are written out here from RFC 1319 and RFC 1320,
for old peers that a policy may allow. They are slow, so what they hash is bounded.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from typing import Final, Protocol

from openmsmq.model.message import HashAlgorithm

OLD_HASH_MAX_BYTES: Final = 16_384
"""The most that MD2 and MD4 hash here: in Python they take up to a tenth of a second for it."""


class Hasher(Protocol):
    """What hashes piece by piece; `copy` goes on twice from one beginning."""

    def update(self, data: bytes, /) -> None:
        """Add the next piece."""

    def copy(self) -> Hasher:
        """Return another that has had the same pieces."""

    def digest(self) -> bytes:
        """The hash of all pieces."""


class TooMuchForOldHash(ValueError):
    """More bytes than MD2 or MD4 hash here."""


class _Collected:
    """Keeps the pieces and hashes them at the end."""

    def __init__(self, finish: Callable[[bytes], bytes], data: bytes = b"") -> None:
        self._finish = finish
        self._data = data

    def update(self, data: bytes, /) -> None:
        if len(self._data) + len(data) > OLD_HASH_MAX_BYTES:
            raise TooMuchForOldHash(f"MD2 and MD4 hash at most {OLD_HASH_MAX_BYTES} bytes here")
        self._data += data

    def copy(self) -> _Collected:
        return _Collected(self._finish, self._data)

    def digest(self) -> bytes:
        return self._finish(self._data)


def hasher(algorithm: HashAlgorithm) -> Hasher:
    """Start to hash."""
    match algorithm:
        case HashAlgorithm.SHA512:
            return hashlib.sha512()
        case HashAlgorithm.SHA256:
            return hashlib.sha256()
        case HashAlgorithm.SHA1:
            return hashlib.sha1(usedforsecurity=False)
        case HashAlgorithm.MD5:
            return hashlib.md5(usedforsecurity=False)
        case HashAlgorithm.MD4:
            return _Collected(md4)
        case HashAlgorithm.MD2:
            return _Collected(md2)


_DIGEST_INFO: Final = {
    HashAlgorithm.MD2: bytes.fromhex("3020300c06082a864886f70d020205000410"),
    HashAlgorithm.MD4: bytes.fromhex("3020300c06082a864886f70d020405000410"),
    HashAlgorithm.MD5: bytes.fromhex("3020300c06082a864886f70d020505000410"),
    HashAlgorithm.SHA1: bytes.fromhex("3021300906052b0e03021a05000414"),
    HashAlgorithm.SHA256: bytes.fromhex("3031300d060960864801650304020105000420"),
    HashAlgorithm.SHA512: bytes.fromhex("3051300d060960864801650304020305000440"),
}


def digest_info(algorithm: HashAlgorithm, digest: bytes) -> bytes:
    """Return what RSA signs: the digest behind the name of its algorithm. [RFC 8017 9.2]"""
    return _DIGEST_INFO[algorithm] + digest


def digest_in(algorithm: HashAlgorithm, info: bytes) -> bytes | None:
    """Take the digest out of what an RSA signature holds; None if it is not of that algorithm."""
    prefix = _DIGEST_INFO[algorithm]
    # The last byte of the prefix is the length of the digest: nothing may stand behind it.
    if info.startswith(prefix) and len(info) == len(prefix) + prefix[-1]:
        return info[len(prefix) :]
    return None


_MD2_TABLE: Final = bytes.fromhex(
    "292e43c9a2d87c013d3654a1ecf0061362a705f3c0c7738c98932bd9bc4c82ca"
    "1e9b573cfdd4e01667426f188a17e512be4ec4d6da9ede49a0fbf58ebb2fee7a"
    "a968799115b2073f94c210890b225f21807f5d9a5a903227353ecce7bff79703"
    "ff1930b348a5b5d1d75e922aac56aac64fb838d296a47db676fc6be29c7404f1"
    "459d705964718720865bcf65e62da8021b6025adaeb0b9f61c46616934407e0f"
    "5547a323dd51af3ac35cf9cebac5ea262c530d6e85288409d3dfcdf441814d52"
    "6adc37c86cc1abfa24e17b080cbdb14a7888958be363e86de9cbd5fe3b001d39"
    "f2efb70e6658d0e4a67772f8eb754b0a314450b48fed1f1adb998d339f118314"
)


def md2(data: bytes) -> bytes:
    """Hash with MD2. [RFC 1319]"""
    table = _MD2_TABLE
    padding = 16 - len(data) % 16
    padded = data + bytes([padding]) * padding
    checksum = bytearray(16)
    last = 0
    for start in range(0, len(padded), 16):
        for at in range(16):
            last = checksum[at] = checksum[at] ^ table[padded[start + at] ^ last]
    padded += checksum
    state = bytearray(48)
    for start in range(0, len(padded), 16):
        block = padded[start : start + 16]
        state[16:32] = block
        state[32:48] = bytes(ours ^ theirs for ours, theirs in zip(state, block, strict=False))
        carry = 0
        for step in range(18):
            for at in range(48):
                carry = state[at] = state[at] ^ table[carry]
            carry = (carry + step) & 0xFF
    return bytes(state[:16])


_MD4_ORDERS: Final = (
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
    (0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
    (0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15),
)
_MD4_SHIFTS: Final = ((3, 7, 11, 19), (3, 5, 9, 13), (3, 9, 11, 15))
_MD4_CONSTANTS: Final = (0, 0x5A82_7999, 0x6ED9_EBA1)
_MD4_START: Final = (0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476)
_MASK: Final = 0xFFFF_FFFF


def _md4_mix(round_number: int, x: int, y: int, z: int) -> int:
    if round_number == 0:
        return x & y | ~x & z
    if round_number == 1:
        return x & y | x & z | y & z
    return x ^ y ^ z


def md4(data: bytes) -> bytes:
    """Hash with MD4. [RFC 1320]"""
    padded = data + b"\x80" + bytes(-(len(data) + 9) % 64) + struct.pack("<Q", 8 * len(data))
    state = _MD4_START
    for start in range(0, len(padded), 64):
        words = struct.unpack_from("<16I", padded, start)
        a, b, c, d = state
        for round_number in range(3):
            shifts = _MD4_SHIFTS[round_number]
            constant = _MD4_CONSTANTS[round_number]
            for step, word in enumerate(_MD4_ORDERS[round_number]):
                mixed = (a + _md4_mix(round_number, b, c, d) + words[word] + constant) & _MASK
                shift = shifts[step & 3]
                a, b, c, d = d, (mixed << shift | mixed >> (32 - shift)) & _MASK, b, c
        a, b, c, d = (old + new & _MASK for old, new in zip(state, (a, b, c, d), strict=True))
        state = (a, b, c, d)
    return struct.pack("<4I", *state)
