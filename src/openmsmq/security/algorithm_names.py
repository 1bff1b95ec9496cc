"""Hashes and ciphers by the names that people write in options."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from openmsmq.model.message import AuthenticationLevel, HashAlgorithm
from openmsmq.wire.keys import SessionAlgorithm

HashName: TypeAlias = Literal["sha512", "sha256", "sha1", "md5", "md4", "md2"]
CipherName: TypeAlias = Literal["aes256", "aes192", "aes128", "rc4", "rc2"]

HASHES: Final = {each.name.lower(): each for each in reversed(HashAlgorithm)}
"""Hashes of signatures, the best first."""

CIPHERS: Final[dict[str, SessionAlgorithm]] = {
    "aes256": SessionAlgorithm.AES_256,
    "aes192": SessionAlgorithm.AES_192,
    "aes128": SessionAlgorithm.AES_128,
    "rc4": SessionAlgorithm.RC4,
    "rc2": SessionAlgorithm.RC2,
}
"""Ciphers of bodies, the best first."""

SignatureName: TypeAlias = Literal["exact", "3.0", "2.0", "1.0"]

EXACT_NAME: Final = "exact"
"""The kind of signature that only our own senders make; see `security.signed_fields`."""

SIGNATURES: Final[dict[str, AuthenticationLevel]] = {
    "1.0": AuthenticationLevel.SIGNATURE_10,
    "2.0": AuthenticationLevel.SIGNATURE_20,
    "3.0": AuthenticationLevel.SIGNATURE_30,
}
"""Kinds of signatures by the version of MSMQ that has brought them."""

USUAL_SIGNATURE_NAMES: Final[tuple[SignatureName, ...]] = ("exact", "3.0", "2.0")
SAFE_HASH_NAMES: Final[tuple[HashName, ...]] = ("sha512", "sha256", "sha1")
SAFE_CIPHER_NAMES: Final[tuple[CipherName, ...]] = ("aes256", "aes192", "aes128")
