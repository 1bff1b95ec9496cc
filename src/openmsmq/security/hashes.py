"""Hashes of signatures, and how RSA signatures name them. [MQMQ 2.2.19.3; RFC 8017 9.2]

MD2 and MD4 are for old peers that a policy may allow; they come with the extra `legacy`.
"""

from __future__ import annotations

import hashlib
from typing import Final, Protocol

from openmsmq.model.message import HashAlgorithm
from openmsmq.security import legacy

MD2_MAX_BYTES: Final = 512 * 1024
"""The longest body that is signed with MD2, which is slow: a tenth of a second for so much."""


class Hasher(Protocol):
    """What hashes piece by piece; `copy` goes on twice from one beginning."""

    def update(self, data: bytes, /) -> None:
        """Add the next piece."""

    def copy(self) -> Hasher:
        """Return another that has had the same pieces."""

    def digest(self) -> bytes:
        """The hash of all pieces."""


def hasher(algorithm: HashAlgorithm) -> Hasher:
    """Start to hash."""
    if algorithm is HashAlgorithm.MD4:
        return legacy.md4()
    if algorithm is HashAlgorithm.MD2:
        return legacy.md2()
    return hashlib.new(algorithm.name.lower(), usedforsecurity=False)


def size_problem(algorithm: HashAlgorithm, size: int) -> str:
    """Return why a body of so many bytes is too long for a hash, or nothing."""
    if algorithm is HashAlgorithm.MD2 and size > MD2_MAX_BYTES:
        return f"MD2 is for bodies of at most {MD2_MAX_BYTES} bytes"
    return ""


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
