"""Certificates of applications: what they sign their messages with, in one file.

A file has the private key and the certificate, as PEM. Whoever can read it can sign in the name of
its user, so it is made for its owner alone.
"""

from __future__ import annotations

import base64
import os
import re
import ssl
from pathlib import Path
from typing import Final, Self

import msgspec

from openmsmq.model.errors import InvalidParameter
from openmsmq.model.message import HashAlgorithm
from openmsmq.security.rsa import RSA_MIN_BITS, PrivateKey
from openmsmq.security.signatures.certificates import BadCertificate, digest, public_key

CERTIFICATE_FILE_MAX_BYTES: Final = 256 * 1024
"""Key and certificate as PEM take a hundredth of it."""

_FILE_MODE: Final = 0o600
_CERTIFICATE: Final = re.compile(
    rb"-----BEGIN CERTIFICATE-----\s+([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----"
)
_KEY: Final = re.compile(
    rb"-----BEGIN (?:RSA )?PRIVATE KEY-----.*?-----END (?:RSA )?PRIVATE KEY-----", re.DOTALL
)


class Certificate(msgspec.Struct, frozen=True):
    """A certificate and the key that belongs to it."""

    key: PrivateKey
    der: bytes
    """The certificate, X.509 in DER."""
    hash_algorithm: HashAlgorithm = HashAlgorithm.SHA512
    """The hash of signatures that are made with it."""

    @classmethod
    def load(cls, path: str | Path, hash_algorithm: HashAlgorithm = HashAlgorithm.SHA512) -> Self:
        """Read a file with a private key and its certificate; of a chain, the first is taken."""
        try:
            with Path(path).open("rb") as file:
                data = file.read(CERTIFICATE_FILE_MAX_BYTES)
        except OSError as error:
            raise InvalidParameter(f"cannot read {path}: {error.strerror}") from None
        key, found = _KEY.search(data), _CERTIFICATE.search(data)
        if key is None or found is None:
            missing = "private key" if key is None else "certificate"
            raise InvalidParameter(f"{path} has no {missing}: it needs both, as PEM")
        try:
            der = base64.b64decode(b"".join(found[1].split()), validate=True)
            public = public_key(der, RSA_MIN_BITS).public_numbers()
        except (BadCertificate, ValueError) as error:
            raise InvalidParameter(f"{path}: {error}") from None
        private = PrivateKey.from_pem(key[0])
        if (public.n, public.e) != (private.public.modulus, private.public.exponent):
            raise InvalidParameter(f"{path}: the certificate belongs to another key")
        return cls(private, der, hash_algorithm)

    def save(self, path: str | Path) -> None:
        """Write a new file that only its owner can read; one that is there stays."""
        try:
            opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE)
            try:
                with os.fdopen(opened, "wb") as file:
                    file.write(self.key.to_pem() + self.pem)
            except OSError:
                # Half a file would be in the way of the next attempt.
                os.unlink(path)
                raise
        except FileExistsError:
            raise InvalidParameter(
                f"{path} is there already: what was signed with it needs it; give another name"
            ) from None
        except OSError as error:
            raise InvalidParameter(f"cannot write {path}: {error.strerror}") from None

    @property
    def pem(self) -> bytes:
        """The certificate as PEM, without the key."""
        return ssl.DER_cert_to_PEM_cert(self.der).encode("ascii")

    @property
    def digest(self) -> bytes:
        """The name of the certificate in directories."""
        return digest(self.der)
