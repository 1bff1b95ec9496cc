"""Certificates of queue managers, for sessions over TLS: what they say, and how one is made.

Whether a certificate is genuine, TLS has found out; here is only read what it says of itself.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from openmsmq.security.signatures.certificates import (
    CERTIFICATE_MAX_BYTES,
    COMMON_NAME_MAX_CHARACTERS,
    BadCertificate,
    own_certificate,
)

_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"


class PeerCertificate(msgspec.Struct, frozen=True):
    """What a rule about peers may ask of a certificate."""

    fingerprint: str
    """SHA-256 of the whole certificate, in lower-case hexadecimal."""
    names: frozenset[str]
    """Its DNS names in lower case; the common name, if it has no others."""
    not_before_s: int
    not_after_s: int

    def problem(self, now_s: int) -> str:
        """Return what is wrong with its time; nothing, if that is right."""
        if now_s < self.not_before_s:
            return f"it is not valid before {_time(self.not_before_s)}"
        if now_s > self.not_after_s:
            return f"it has expired on {_time(self.not_after_s)}"
        return ""


def fingerprint(der: bytes) -> str:
    """Return the SHA-256 of a certificate as rules have it."""
    return hashlib.sha256(der).hexdigest()


def read_peer_certificate(der: bytes) -> PeerCertificate:
    """Read a certificate, X.509 in DER; raises nothing but `BadCertificate`."""
    if not 0 < len(der) <= CERTIFICATE_MAX_BYTES:
        raise BadCertificate(f"a certificate of {len(der)} bytes")
    try:
        found = x509.load_der_x509_certificate(der)
        return PeerCertificate(
            fingerprint(der),
            frozenset(name.lower() for name in _names(found)),
            int(found.not_valid_before_utc.timestamp()),
            int(found.not_valid_after_utc.timestamp()),
        )
    except Exception as error:
        # Of hostile bytes the parser may say anything.
        raise BadCertificate(f"no X.509 certificate: {error}") from None


def _names(found: x509.Certificate) -> list[str]:
    """Return the DNS names; with one, the common name counts for nothing. [RFC 6125 6.4.4]"""
    try:
        other = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        texts = [part.value for part in found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
        return [text for text in texts if isinstance(text, str)]
    return other.get_values_for_type(x509.DNSName)


def make_peer_certificate(
    key: EllipticCurvePrivateKey, name: str, not_before_s: int, not_after_s: int, serial: int
) -> bytes:
    """Make a certificate that vouches for itself and for nobody else, in DER.

    Queue managers connect and are connected to, so it is good for both ends of TLS.
    """
    if not 0 < len(name) <= COMMON_NAME_MAX_CHARACTERS or not name.isascii():
        raise ValueError(
            f"{name!r} is no name for a certificate: use 1 to {COMMON_NAME_MAX_CHARACTERS} "
            "letters, digits, hyphens and dots"
        )
    both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = (
        own_certificate(key.public_key(), name, not_before_s, not_after_s, serial)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(both), critical=False)
    )
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)


def key_pem(key: EllipticCurvePrivateKey) -> bytes:
    """Return a private key as PEM."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def certificate_pem(der: bytes) -> bytes:
    """Return a certificate as PEM."""
    return x509.load_der_x509_certificate(der).public_bytes(Encoding.PEM)


def certificate_in_pem(pem: bytes) -> bytes:
    """Return the certificate that stands in a PEM; raises nothing but `BadCertificate`."""
    try:
        return x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)
    except ValueError as error:
        raise BadCertificate(f"no X.509 certificate: {error}") from None


def _time(unix_s: int) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime(_TIME)
