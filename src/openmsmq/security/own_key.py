"""The key pairs of a queue manager, and since when it has them.

One decrypts, another signs: who could have something decrypted must not get a signature by it.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from openmsmq.model.topology import PublicKey
from openmsmq.security.encryption.decryption import EncryptionKey
from openmsmq.security.rsa import PrivateKey


class OwnKey(EncryptionKey, frozen=True, kw_only=True):
    """A private key with which bodies are decrypted."""

    created_time_s: int
    """When it was made."""


class OwnSigningKey(msgspec.Struct, frozen=True):
    """A private key with which the queue manager signs what it sends of its own accord."""

    key: PrivateKey
    certificate: bytes
    """X.509 in DER; others believe it because the directory has it."""
    created_time_s: int

    def published(self) -> PublicKey:
        """Return the certificate, as the directory shows it. [MQDMPR 3.1.1.1]"""
        return PublicKey("", 0, self.certificate)


KeptKey: TypeAlias = OwnKey | OwnSigningKey
