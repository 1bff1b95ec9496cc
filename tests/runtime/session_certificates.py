"""Certificates for sessions over TLS, made for a test, with the dates it wants."""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from openmsmq.runtime.clocks import read_clocks

NOW = datetime.datetime.fromtimestamp(read_clocks().unix_s, datetime.UTC)
"""The library reads the clock of the computer, so the dates are around it."""
DAY = datetime.timedelta(days=1)


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


class Identity:
    """A certificate with its key, issued by itself or by another."""

    def __init__(
        self,
        name: str,
        issuer: Identity | None = None,
        *,
        is_authority: bool = False,
        begin: datetime.datetime = NOW - 30 * DAY,
        end: datetime.datetime = NOW + 365 * DAY,
    ) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.issuer = issuer
        builder = (
            x509.CertificateBuilder()
            .subject_name(self.subject)
            .issuer_name(issuer.subject if issuer else self.subject)
            .public_key(self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(end)
            .add_extension(x509.SubjectAlternativeName([_alternative(name)]), critical=False)
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
        )
        self.certificate = builder.sign(issuer.key if issuer else self.key, hashes.SHA256())

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.certificate.public_bytes(Encoding.DER)).hexdigest()

    def save(self, path: Path) -> str:
        """Write certificate, chain and key into one file, as a whole; give its name."""
        chain, issuer = self.pem, self.issuer
        while issuer is not None and issuer.issuer is not None:
            chain += issuer.pem
            issuer = issuer.issuer
        key = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
        new = path.with_suffix(".new")
        new.touch(mode=0o600)
        new.write_text(chain + key)
        new.replace(path)
        return str(path)

    def context(self, path: Path, *, server_side: bool, trusts: Identity) -> ssl.SSLContext:
        """What another program would use that has this certificate and trusts another one."""
        context = ssl.SSLContext(
            ssl.PROTOCOL_TLS_SERVER if server_side else ssl.PROTOCOL_TLS_CLIENT
        )
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
        context.load_verify_locations(cadata=trusts.pem)
        context.load_cert_chain(self.save(path))
        return context
