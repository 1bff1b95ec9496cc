"""What NTLM computes: the key of a password, the proof of knowing it, and the keys of a session.

[MS-NLMP 3.3.2, 3.4.5]
"""

from __future__ import annotations

import hashlib
import hmac
from enum import Enum
from typing import Any, Final

from cryptography.hazmat.decrepit.ciphers.algorithms import ARC4
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext

from openmsmq.security.authentication.ntlm.md4 import md4

KEY_BYTES: Final = 16
CHALLENGE_BYTES: Final = 8
PROOF_BYTES: Final = 16
_MD5_BLOCK_BYTES: Final = 64


class Direction(Enum):
    """Who sends; each direction has keys of its own."""

    FROM_CLIENT = b"client-to-server"
    FROM_SERVER = b"server-to-client"


def nt_hash(password: str) -> bytes:
    """Return what NTLM knows a password by: whoever has it needs no password. [MS-NLMP 3.3.1]"""
    return md4(password.encode("utf-16-le", "surrogatepass"))


def response_key(password_hash: bytes, user: str, domain: str) -> bytes:
    """Return NTOWFv2, the key of a user in a domain, both as they are sent. [MS-NLMP 3.3.2]"""
    name = upper(user) + domain
    return _hmac(password_hash, name.encode("utf-16-le", "surrogatepass"))


def upper(text: str) -> str:
    """Return a text in capital letters as Windows makes them: each letter becomes one letter."""
    return "".join(up if len(up := letter.upper()) == 1 else letter for letter in text)


def proof(key: bytes, server_challenge: bytes, blob: bytes) -> bytes:
    """Return the proof of knowing a key, over what a client says beside it. [MS-NLMP 3.3.2]"""
    return _hmac(key, server_challenge + blob)


def session_base_key(key: bytes, nt_proof: bytes) -> bytes:
    """Return the key that both sides have when the proof is right. [MS-NLMP 3.3.2]"""
    return _hmac(key, nt_proof)


def message_integrity(session_key: bytes, *messages: bytes) -> bytes:
    """Return the MIC over all three messages, its own place zeroed. [MS-NLMP 3.1.5.1.2]"""
    return _hmac(session_key, b"".join(messages))


def signing_key(session_key: bytes, direction: Direction) -> bytes:
    """Return the key of signatures. [MS-NLMP 3.4.5.2]"""
    return _derived(session_key, direction, b"signing")


def sealing_key(session_key: bytes, direction: Direction) -> bytes:
    """Return the key of sealing, of 128 bits. [MS-NLMP 3.4.5.3]"""
    return _derived(session_key, direction, b"sealing")


class Authenticator:
    """HMAC-MD5 with one key, for many messages. [RFC 2104]

    Both hashes are kept where the key has been taken in: `hmac` asks OpenSSL for everything anew,
    which takes longer than to hash a fragment of 1 KiB.
    """

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes) -> None:
        padded = key.ljust(_MD5_BLOCK_BYTES, b"\0")
        self._inner = hashlib.md5(bytes(byte ^ 0x36 for byte in padded), usedforsecurity=False)
        self._outer = hashlib.md5(bytes(byte ^ 0x5C for byte in padded), usedforsecurity=False)

    def digest(self, data: bytes) -> bytes:
        """Return the code of a message."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(data)
        outer.update(inner.digest())
        return outer.digest()


def rc4(key: bytes) -> CipherContext:
    """Start a key stream of RC4, which goes on from call to call of `update`."""
    cipher: Cipher[Any] = Cipher(ARC4(key), None)
    return cipher.encryptor()


def _derived(session_key: bytes, direction: Direction, what: bytes) -> bytes:
    magic = b"session key to %s %s key magic constant\0" % (direction.value, what)
    return hashlib.md5(session_key + magic, usedforsecurity=False).digest()


def _hmac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "md5")
