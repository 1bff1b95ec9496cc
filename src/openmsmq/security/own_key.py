"""A key pair of a queue manager, and since when it has it."""

from __future__ import annotations

from openmsmq.security.encryption.decryption import EncryptionKey


class OwnKey(EncryptionKey, frozen=True, kw_only=True):
    """A private key with which bodies are decrypted."""

    created_time_s: int
