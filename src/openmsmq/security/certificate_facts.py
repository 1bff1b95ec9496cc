"""What a certificate says of itself, for people to read; nothing here is checked."""

from __future__ import annotations

from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey


class CertificateFacts(msgspec.Struct, frozen=True):
    """The facts of a certificate."""

    subject: str
    valid_until: str
    """A date and time in UTC; empty if it cannot be read."""
    key_bits: int


UNREADABLE: Final = CertificateFacts("unreadable", "", 0)


def described(der: bytes) -> CertificateFacts:
    """Read a certificate, X.509 in DER."""
    try:
        found = x509.load_der_x509_certificate(der)
        key = found.public_key()
        return CertificateFacts(
            found.subject.rfc4514_string(),
            found.not_valid_after_utc.strftime("%Y-%m-%dT%H:%M:%SZ"),
            key.key_size if isinstance(key, RSAPublicKey) else 0,
        )
    except Exception:
        # Of bytes that are no certificate the library may say anything.
        return UNREADABLE
