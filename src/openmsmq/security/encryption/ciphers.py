"""Ciphers of message bodies. [MQQB 3.1.7.1.5]

A cipher has its key inside and never shows it. Every message starts afresh: block ciphers with a
zero start, RC4 at the beginning of its key stream, as the protocol has it.
"""

from __future__ import annotations

import hmac
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

from cryptography.hazmat.decrepit.ciphers.algorithms import ARC4
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC

from openmsmq.security import legacy
from openmsmq.wire.keys import SessionAlgorithm

AES_BLOCK_BYTES: Final = 16
SHORT_KEY_BYTES: Final = 5
LONG_KEY_BYTES: Final = 16
SHORT_KEY_BITS: Final = 40
LONG_KEY_BITS: Final = 128
SALT: Final = bytes(LONG_KEY_BYTES - SHORT_KEY_BYTES)
"""What old providers put behind a key of 40 bits (C-96)."""

AES_KEY_BYTES: Final = {
    SessionAlgorithm.AES_128: 16,
    SessionAlgorithm.AES_192: 24,
    SessionAlgorithm.AES_256: 32,
}
_PADDING: Final = tuple(bytes([size]) * size for size in range(AES_BLOCK_BYTES + 1))


class BodyCipher(ABC):
    """One cipher with one key."""

    __slots__ = ()

    @abstractmethod
    def encrypt(self, body: bytes) -> bytes:
        """Encrypt a whole body."""

    @abstractmethod
    def decrypt(self, ciphertext: bytes, size: int) -> bytes | None:
        """Decrypt a whole body of `size` bytes; None if it was not encrypted with this key.

        What is wrong is not said: whoever could learn it could decrypt without the key.
        """


class _BlockCipher(BodyCipher):
    """A block cipher in CBC mode, as functions of whole blocks."""

    __slots__ = ("_block_bytes", "_decrypt", "_encrypt")

    def __init__(
        self,
        encrypt: Callable[[bytes], bytes],
        decrypt: Callable[[bytes], bytes],
        block_bytes: int,
    ) -> None:
        self._encrypt = encrypt
        self._decrypt = decrypt
        self._block_bytes = block_bytes

    def encrypt(self, body: bytes) -> bytes:
        return self._encrypt(body + _PADDING[self._block_bytes - len(body) % self._block_bytes])

    def decrypt(self, ciphertext: bytes, size: int) -> bytes | None:
        added = len(ciphertext) - size
        if len(ciphertext) % self._block_bytes or not 0 < added <= self._block_bytes:
            return None
        padded = self._decrypt(ciphertext)
        if not hmac.compare_digest(padded[size:], _PADDING[added]):
            return None
        return padded[:size]


def _aes(key: bytes) -> BodyCipher:
    cipher = Cipher(AES(key), CBC(bytes(AES_BLOCK_BYTES)))
    return _BlockCipher(
        lambda blocks: cipher.encryptor().update(blocks),
        lambda blocks: cipher.decryptor().update(blocks),
        AES_BLOCK_BYTES,
    )


def _rc2(key: bytes, effective_bits: int) -> BodyCipher:
    return _BlockCipher(
        lambda blocks: legacy.rc2(key, effective_bits, blocks, encrypts=True),
        lambda blocks: legacy.rc2(key, effective_bits, blocks, encrypts=False),
        legacy.RC2_BLOCK_BYTES,
    )


class _Rc4(BodyCipher):
    """RC4, which cannot notice a wrong key."""

    __slots__ = ("_cipher",)

    def __init__(self, key: bytes) -> None:
        self._cipher: Cipher[Any] = Cipher(ARC4(key), None)

    def encrypt(self, body: bytes) -> bytes:
        return self._cipher.encryptor().update(body)

    def decrypt(self, ciphertext: bytes, size: int) -> bytes | None:
        if len(ciphertext) != size:
            return None
        return self._cipher.decryptor().update(ciphertext)


class Rc2Choice(BodyCipher):
    """RC2 of a sender that does not say which of its kinds it uses (C-96)."""

    __slots__ = ("_kinds",)

    def __init__(self, kinds: tuple[BodyCipher, ...]) -> None:
        self._kinds = kinds

    def encrypt(self, body: bytes) -> bytes:
        """Encrypt with the first kind."""
        return self._kinds[0].encrypt(body)

    def decrypt(self, ciphertext: bytes, size: int) -> bytes | None:
        """Decrypt with the first kind that fits."""
        for kind in self._kinds:
            body = kind.decrypt(ciphertext, size)
            if body is not None:
                return body
        return None


def key_size_fits(algorithm: SessionAlgorithm, size: int) -> bool:
    """Whether a session key of so many bytes can be one for that algorithm."""
    expected = AES_KEY_BYTES.get(algorithm)
    return size in (SHORT_KEY_BYTES, LONG_KEY_BYTES) if expected is None else size == expected


def body_cipher(algorithm: SessionAlgorithm, key: bytes) -> BodyCipher:
    """Make the cipher of a session key, whose size must fit."""
    if algorithm in AES_KEY_BYTES:
        return _aes(key)
    short = len(key) == SHORT_KEY_BYTES
    if algorithm is SessionAlgorithm.RC4:
        return _Rc4(key + SALT if short else key)
    if short:
        return Rc2Choice((_rc2(key + SALT, SHORT_KEY_BITS), _rc2(key, SHORT_KEY_BITS)))
    return Rc2Choice((_rc2(key, LONG_KEY_BITS), _rc2(key, SHORT_KEY_BITS)))
