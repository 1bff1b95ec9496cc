"""Certificates of senders: X.509 in DER, self-signed, or from an authority. [MQMQ 2.2.20.6, 2.2.22]

A certificate only carries a public key here. Who its owner is the directory says, which compares
it byte by byte; MSMQ asks neither for its dates nor for its issuer.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from openmsmq.security.policy import KEY_MIN_BITS
from openmsmq.security.rsa import PrivateKey, key_problem

CERTIFICATE_MAX_BYTES: Final = 0xFFFF
"""The longest that a SecurityHeader carries. [MQMQ 2.2.20.6]"""

COMMON_NAME_MAX_CHARACTERS: Final = 64
"""As X.520 has it."""

SERIAL_MAX_BITS: Final = 159
"""The longest serial number. [RFC 5280 4.1.2.2]"""


class BadCertificate(ValueError):
    """Bytes that are no certificate with an RSA key that we accept."""


def public_key(der: bytes, smallest_bits: int = KEY_MIN_BITS) -> RSAPublicKey:
    """Read the public key of a certificate; raises nothing but `BadCertificate`."""
    if not 0 < len(der) <= CERTIFICATE_MAX_BYTES:
        raise BadCertificate(
            f"a certificate of {len(der)} bytes; 1 to {CERTIFICATE_MAX_BYTES} are possible"
        )
    try:
        key = x509.load_der_x509_certificate(der).public_key()
    except Exception as error:
        # Of hostile bytes the parser may say anything.
        raise BadCertificate(f"no X.509 certificate: {error}") from None
    if not isinstance(key, RSAPublicKey):
        raise BadCertificate("a certificate whose key is not of RSA")
    numbers = key.public_numbers()
    problem = key_problem(numbers.n, numbers.e, smallest_bits)
    if problem:
        raise BadCertificate(f"a certificate whose key has {problem}")
    return key


def digest(der: bytes) -> bytes:
    """The name of a certificate in directories: its MD5 hash. [MQMQ 2.2.22]"""
    return hashlib.md5(der, usedforsecurity=False).digest()


def make_certificate(
    key: PrivateKey, common_name: str, not_before_s: int, not_after_s: int, serial: int
) -> bytes:
    """Make an internal certificate, signed with its own key, in DER.

    `serial` is a random number, at least 1.
    """
    if not 0 < len(common_name) <= COMMON_NAME_MAX_CHARACTERS:
        raise ValueError(
            f"a common name of {len(common_name)} characters; "
            f"1 to {COMMON_NAME_MAX_CHARACTERS} are possible"
        )
    if serial < 1 or serial.bit_length() > SERIAL_MAX_BITS:
        raise ValueError(f"a serial number of {serial.bit_length()} bits; 1 to {SERIAL_MAX_BITS}")
    public = key.library_key.public_key()
    builder = own_certificate(public, common_name, not_before_s, not_after_s, serial)
    return builder.sign(key.library_key, hashes.SHA256()).public_bytes(Encoding.DER)


def own_certificate(
    key: CertificatePublicKeyTypes, name: str, not_before_s: int, not_after_s: int, serial: int
) -> x509.CertificateBuilder:
    """Begin a certificate that names nobody but its owner; it is to be signed with its own key."""
    common_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    return x509.CertificateBuilder(
        issuer_name=common_name,
        subject_name=common_name,
        public_key=key,
        serial_number=serial,
        not_valid_before=datetime.fromtimestamp(not_before_s, UTC).replace(tzinfo=None),
        not_valid_after=datetime.fromtimestamp(not_after_s, UTC).replace(tzinfo=None),
    )
