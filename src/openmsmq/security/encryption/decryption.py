"""Decrypting bodies at their destination. [MQQB 3.1.5.8.3]

Whoever sends a message learns from its acknowledgment whether it could be decrypted, and nothing
else: all that is wrong with a key or a body ends alike and takes the same work, and a session key
with which several messages could not be decrypted is not used any more.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import Final

import msgspec

from openmsmq.model.message import MessageClass, PrivacyLevel
from openmsmq.model.topology import PublicKey
from openmsmq.security.encryption.ciphers import (
    AES_KEY_BYTES,
    LONG_KEY_BYTES,
    SALT,
    BodyCipher,
    body_cipher,
    key_size_fits,
)
from openmsmq.security.encryption.opener import Opener
from openmsmq.security.encryption.session_keys import FailureCounts, KeyCache
from openmsmq.security.policy import SecurityPolicy
from openmsmq.security.providers import ADVANCED, BY_LEVEL, Provider
from openmsmq.security.rsa import PrivateKey
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.headers import user
from openmsmq.wire.headers.security import BODY_ENCRYPTED, DEFAULT_PROVIDER
from openmsmq.wire.keys import SESSION_KEY_LAYOUT, SessionAlgorithm, SessionKeyBlob
from openmsmq.wire.outline import outline
from openmsmq.wire.packet_parts import BodyPart, PacketParts, cut, join

PRIVATE_KEYS_MAX_COUNT: Final = 24
"""Key pairs that are kept, old ones included: each may be tried for a message."""

BAD_KEYS_MAX_COUNT: Final = 1024
"""Session keys of which it is remembered how often they failed."""


class BadEncryption(Exception):
    """A message that could not be decrypted; `message_class` says it to its sender."""

    def __init__(self, message_class: MessageClass, reason: str) -> None:
        super().__init__(f"{reason} ({message_class.name})")
        self.message_class = message_class
        self.reason = reason


class EncryptionKey(msgspec.Struct, frozen=True):
    """A key pair of this queue manager and the provider it stands for."""

    provider: Provider
    key: PrivateKey

    def published(self) -> PublicKey:
        """The public half, as the directory shows it. [MQMQ 2.2.1]"""
        return PublicKey(
            self.provider.name, int(self.provider.provider_type), self.key.public.encode()
        )


_CacheName = tuple[bytes, int, int, bytes]


class ReceiveKeys:
    """Decrypts with the key pairs of this queue manager, and remembers the session keys."""

    def __init__(self, policy: SecurityPolicy, keys: Sequence[EncryptionKey] = ()) -> None:
        self._policy = policy
        self._keys: tuple[EncryptionKey, ...] = ()
        self.cache: Final[KeyCache[_CacheName, BodyCipher]] = KeyCache(
            policy.receive_key_cache_max_count, policy.key_cache_ms
        )
        self._failures = FailureCounts(
            BAD_KEYS_MAX_COUNT, policy.bad_messages_per_key_max_count, policy.key_cache_ms
        )
        self.use(keys)

    def use(self, keys: Sequence[EncryptionKey]) -> None:
        """Use these key pairs from now on, the newest first; old ones for what is under way."""
        if len(keys) > PRIVATE_KEYS_MAX_COUNT:
            raise ValueError(f"{len(keys)} encryption keys; at most {PRIVATE_KEYS_MAX_COUNT}")
        smallest = self._policy.smallest_key_bits
        self._keys = tuple(key for key in keys if key.key.public.modulus.bit_length() >= smallest)
        self.cache.clear()

    def decrypt(self, packet: bytes, now_ms: int) -> bytes:
        """Return the packet with its body decrypted; one that is not encrypted comes back as it is.

        Level and cipher stay, so that applications see how it came. `BadEncryption` says with
        which class the message is refused.
        """
        parts = cut(packet)
        if not parts.security[0] & BODY_ENCRYPTED:
            return packet
        blob = parts.encryption_key
        name = (parts.source, parts.level, parts.encryption_algorithm, blob)
        # The key itself counts, not what is said of it in front.
        encrypted = blob[SESSION_KEY_LAYOUT.size :]
        if self._failures.too_many(encrypted, now_ms):
            raise _bad("too many messages with this session key could not be decrypted")
        cipher = self.cache.get(name, now_ms)
        if cipher is not None:
            body = cipher.decrypt(parts.body, parts.body_size)
        else:
            cipher, body = self._open(parts, *self._check(parts))
            if body is not None:
                # Only now it is known that the key is one, and not what a guess has given.
                self.cache.put(name, cipher, now_ms)
        if body is None:
            self._failures.add(encrypted, now_ms)
            raise _bad("the session key or the body is not what it should be")
        return _opened(parts, body)

    def opener(self, packet: bytes, now_ms: int) -> Opener | None:
        """Return what opens packets like one that was just decrypted.

        None if its session key is not remembered, or if more than the encryption has to be looked
        at.
        """
        parts = cut(packet)
        name = (parts.source, parts.level, parts.encryption_algorithm, parts.encryption_key)
        cipher = self.cache.get(name, now_ms)
        if (
            cipher is None
            or not parts.security[0] & BODY_ENCRYPTED
            or parts.found.packet_size != len(packet)
            or self._failures.too_many(name[-1][SESSION_KEY_LAYOUT.size :], now_ms)
        ):
            return None
        body = cipher.decrypt(parts.body, parts.body_size)
        opened = None if body is None else _opened(parts, body)
        if opened is None or outline(opened).flags & user.SECURITY:
            return None
        return Opener(parts, opened, cipher)

    def forget_expired(self, now_ms: int) -> None:
        """Forget session keys whose time is over. [MQQB 3.1.6.10]"""
        self.cache.forget_expired(now_ms)
        self._failures.forget_expired(now_ms)

    def _check(self, parts: PacketParts) -> tuple[SessionKeyBlob, list[PrivateKey]]:
        """Check what anybody can see; give the session key and the key pairs that may open it."""
        provider = BY_LEVEL.get(parts.level)
        if provider is None:
            raise _bad(f"privacy level {parts.level}, not 1, 3 or 5")
        # AES on a lower level is what a sender writes that follows MQQB to the letter (C-92).
        advanced = parts.encryption_algorithm in AES_KEY_BYTES
        needed = ADVANCED if advanced else provider
        if not any(key.provider is needed for key in self._keys):
            raise BadEncryption(
                MessageClass.NACK_UNSUPPORTED_CRYPTO_PROVIDER, f"no key for {needed.name!r}"
            )
        if parts.encryption_algorithm not in self._policy.ciphers:
            raise _bad(f"cipher {parts.encryption_algorithm:#x} is not allowed by the policy")
        if provider is ADVANCED and not advanced:
            raise _bad(f"cipher {parts.encryption_algorithm:#x} with a provider of AES")
        try:
            blob = SessionKeyBlob.decode(parts.encryption_key)
        except DecodeError as error:
            raise _bad(str(error)) from None
        if blob.algorithm != parts.encryption_algorithm:
            raise _bad("the session key is for another cipher than the body")
        candidates = self._candidates(needed, 8 * len(blob.encrypted_key))
        if not candidates:
            raise _bad(f"a session key of {len(blob.encrypted_key)} bytes, which fits no key here")
        return blob, candidates

    def _open(
        self, parts: PacketParts, blob: SessionKeyBlob, candidates: list[PrivateKey]
    ) -> tuple[BodyCipher, bytes | None]:
        """Decrypt the session key and with it the body, with whichever key pair can.

        A key pair that cannot costs as much as one that can: a substitute goes through the same
        steps, and what it decrypts is thrown away.
        """
        substitute = bytes(AES_KEY_BYTES.get(blob.algorithm, LONG_KEY_BYTES))
        cipher = body_cipher(blob.algorithm, substitute)
        for private in candidates:
            secret = private.decrypt(blob.encrypted_key)
            usable = (
                secret is not None
                and key_size_fits(blob.algorithm, len(secret))
                and not self._too_weak(parts.level, blob.algorithm, secret)
            )
            cipher = body_cipher(blob.algorithm, secret if usable and secret else substitute)
            body = cipher.decrypt(parts.body, parts.body_size)
            if usable and body is not None:
                return cipher, body
        return cipher, None

    def _candidates(self, provider: Provider, bits: int) -> list[PrivateKey]:
        """Return the key pairs of that length, those of the provider first (C-92)."""
        fitting = [each for each in self._keys if each.key.public.bit_length == bits]
        fitting.sort(key=lambda each: each.provider is not provider)
        return [each.key for each in fitting]

    def _too_weak(self, level: int, algorithm: SessionAlgorithm, secret: bytes) -> bool:
        return (
            self._policy.reject_rc2_40_bit
            and level == PrivacyLevel.ENHANCED
            and algorithm is SessionAlgorithm.RC2
            and hmac.compare_digest(secret[-len(SALT) :], SALT)
        )

    def __repr__(self) -> str:
        return f"ReceiveKeys({len(self._keys)} keys, {self.cache!r})"


def _opened(parts: PacketParts, body: bytes) -> bytes:
    """Return the packet with the plain body, without what only served to decrypt it."""
    return join(
        parts,
        parts.security[0] & ~BODY_ENCRYPTED | DEFAULT_PROVIDER,
        b"",
        b"",
        BodyPart(body, len(body), parts.level, parts.encryption_algorithm),
    )


def _bad(reason: str) -> BadEncryption:
    return BadEncryption(MessageClass.NACK_BAD_ENCRYPTION, reason)
