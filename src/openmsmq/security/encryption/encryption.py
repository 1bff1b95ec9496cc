"""Encrypting bodies for their destination. [MQQB 3.1.7.1.5]

Only the queue manager that keeps the destination queue can decrypt: its keys are used, not those
of the next hop (C-93), and the privacy level says which of them (C-92).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from openmsmq.model.errors import (
    EncryptionNotSupported,
    EncryptionProviderNotSupported,
    PublicKeyNotFound,
    UnsupportedFormatName,
)
from openmsmq.model.identity import Guid
from openmsmq.model.message import PrivacyLevel
from openmsmq.model.topology import PublicKey
from openmsmq.security import rsa
from openmsmq.security.encryption.ciphers import (
    AES_KEY_BYTES,
    LONG_KEY_BYTES,
    SALT,
    SHORT_KEY_BYTES,
    body_cipher,
)
from openmsmq.security.encryption.session_keys import KeyCache, SessionKey
from openmsmq.security.policy import SecurityPolicy
from openmsmq.security.providers import ADVANCED, BASE, ENHANCED, Provider, published_key
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.headers import user
from openmsmq.wire.headers.security import BODY_ENCRYPTED, DEFAULT_PROVIDER, ProviderInfo
from openmsmq.wire.keys import RsaPublicKey, SessionAlgorithm, SessionKeyBlob
from openmsmq.wire.likeness import SealedLikeness
from openmsmq.wire.packet_parts import BodyPart, PacketParts, cut, join

_ENCRYPTABLE: Final = frozenset({3, 5})
"""Forms of destinations, private and public: those that name the queue manager they are on."""

_CacheName = tuple[Guid, bytes, SessionAlgorithm]


_Wish = tuple[Guid, Sequence[PublicKey], PrivacyLevel]


class _Sealer:
    """Encrypts packets that differ from one before in nothing but their bodies."""

    __slots__ = ("_likeness", "_wish", "key", "name")

    def __init__(
        self, parts: PacketParts, sealed: bytes, wish: _Wish, name: _CacheName, key: SessionKey
    ) -> None:
        self._likeness = SealedLikeness(parts, sealed)
        self._wish = wish
        self.name = name
        self.key = key

    def fits(self, packet: bytes, wish: _Wish) -> bool:
        """Whether a packet is like the first one, and the same is wanted for it."""
        return wish == self._wish and self._likeness.fits(packet)

    def seal(self, packet: bytes) -> bytes:
        """Return a packet that fits with its body encrypted."""
        body = self.key.cipher.encrypt(self._likeness.plain_body(packet))
        return self._likeness.sealed(body)


class SendKeys:
    """Encrypts, and remembers the session keys it made."""

    def __init__(self, policy: SecurityPolicy) -> None:
        self._policy = policy
        self.cache: Final[KeyCache[_CacheName, SessionKey]] = KeyCache(
            policy.send_key_cache_max_count, policy.key_cache_ms
        )
        self._last: _Sealer | None = None

    def encrypt(
        self,
        packet: bytes,
        destination: Guid,
        keys: Sequence[PublicKey],
        level: PrivacyLevel,
        now_ms: int,
        random_bytes: Callable[[int], bytes],
    ) -> bytes:
        """Return the packet with its body encrypted for a queue manager.

        `keys` are those that `destination` has published. `level` is the least that is wanted: the
        best that both sides have is used.
        """
        last = self._last
        if (
            last is not None
            and last.fits(packet, (destination, keys, level))
            and self.cache.get(last.name, now_ms) is last.key
        ):
            return last.seal(packet)
        parts = cut(packet)
        if parts.found.flags >> user.DESTINATION_SHIFT & 7 not in _ENCRYPTABLE:
            raise UnsupportedFormatName(
                "a body can be encrypted for a public or private format name only"
            )
        provider, published, algorithm = self._choose(keys, level)
        name = (destination, published.blob, algorithm)
        key = self.cache.get(name, now_ms)
        if key is None:
            key = self._new_key(provider, published, algorithm, random_bytes)
            self.cache.put(name, key, now_ms)
        sealed = _encrypted(parts, key, provider.level, algorithm)
        # One value that is replaced as a whole: several threads may encrypt at the same time.
        self._last = _Sealer(parts, sealed, (destination, keys, level), name, key)
        return sealed

    def forget_expired(self, now_ms: int) -> None:
        """Forget the keys whose time is over. [MQQB 3.1.6.11]"""
        self.cache.forget_expired(now_ms)
        last = self._last
        if last is not None and self.cache.get(last.name, now_ms) is not last.key:
            self._last = None

    def _choose(
        self, keys: Sequence[PublicKey], level: PrivacyLevel
    ) -> tuple[Provider, PublicKey, SessionAlgorithm]:
        """Choose whose key to use and for which cipher. [MQQB 3.1.7.1.5]"""
        if not keys:
            raise PublicKeyNotFound("the destination has published no encryption keys")
        for provider in (ADVANCED, ENHANCED, BASE):
            if provider.level < level:
                break
            published = published_key(keys, provider)
            algorithm = (
                self._policy.advanced_cipher()
                if provider is ADVANCED
                else self._policy.old_cipher()
            )
            if published is not None and algorithm is not None:
                return provider, published, algorithm
        named = ", ".join(key.provider_name for key in keys)
        raise EncryptionProviderNotSupported(
            f"privacy level {level.name} and the ciphers of the security policy fit none of the "
            f"keys that the destination has published ({named})"
        )

    def _new_key(
        self,
        provider: Provider,
        published: PublicKey,
        algorithm: SessionAlgorithm,
        random_bytes: Callable[[int], bytes],
    ) -> SessionKey:
        try:
            public = RsaPublicKey.decode(published.blob)
        except DecodeError as error:
            raise EncryptionNotSupported(f"the published key cannot be read: {error}") from None
        problem = rsa.key_problem(public.modulus, public.exponent, self._policy.smallest_key_bits)
        if problem:
            raise EncryptionNotSupported(f"the published key has {problem}")
        secret = self._new_secret(provider, algorithm, random_bytes)
        blob = SessionKeyBlob(algorithm, rsa.encrypt(public, secret, random_bytes)).encode()
        info = ProviderInfo(provider.provider_type, provider.name).encode()
        return SessionKey(body_cipher(algorithm, secret), blob, info)

    def _new_secret(
        self,
        provider: Provider,
        algorithm: SessionAlgorithm,
        random_bytes: Callable[[int], bytes],
    ) -> bytes:
        size = AES_KEY_BYTES.get(algorithm)
        if size is not None:
            return random_bytes(size)
        if provider is BASE:
            return random_bytes(SHORT_KEY_BYTES)
        if algorithm is SessionAlgorithm.RC2 and self._policy.send_rc2_40_bit:
            return random_bytes(SHORT_KEY_BYTES) + SALT
        return random_bytes(LONG_KEY_BYTES)

    def __repr__(self) -> str:
        return f"SendKeys({self.cache!r})"


def _encrypted(
    parts: PacketParts, key: SessionKey, level: PrivacyLevel, algorithm: SessionAlgorithm
) -> bytes:
    body = parts.plain_body
    return join(
        parts,
        parts.security[0] & ~DEFAULT_PROVIDER | BODY_ENCRYPTED,
        key.blob,
        key.provider_info,
        BodyPart(key.cipher.encrypt(body), len(body), level, algorithm),
    )
