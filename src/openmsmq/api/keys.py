"""Requests and replies of the application interface that are about keys and certificates."""

from __future__ import annotations

import msgspec

from openmsmq.api.base import Done, Octets, Reply, Request
from openmsmq.api.facts import ADMINISTER, KNOWN, SELF, SHOW, Facts, Repeats


class EncryptionKey(msgspec.Struct, frozen=True, array_like=True):
    """A public key as its queue manager has published it. [MQMQ 2.2.1]"""

    provider_name: str
    provider_type: int
    blob: bytes


class EncryptionKeys(Reply, frozen=True, tag="encryption-keys"):
    """The keys of a queue manager; there may be none."""

    keys: list[EncryptionKey]


class GetEncryptionKeys(Request[EncryptionKeys], frozen=True, tag="get-encryption-keys"):
    """Ask for the keys with which bodies are encrypted for a queue manager."""

    facts = Facts(SHOW, Repeats.ALWAYS)

    manager: Octets


class RenewKeys(Request[Done], frozen=True, tag="renew-keys"):
    """Make a new key pair and publish it; answered when the directory has it.

    What was encrypted for the old one can be read for as long as old keys are kept.
    """

    facts = Facts(ADMINISTER, Repeats.ALWAYS, is_audited=True)


class Certificates(Reply, frozen=True, tag="certificates"):
    """Certificates in DER, and whose they are."""

    user: bytes
    """The SID of the user."""
    certificates: list[bytes]


class RegisterCertificate(Request[Certificates], frozen=True, tag="register-certificate"):
    """Register a certificate for the user who asks, so that others know the user's signatures."""

    facts = Facts(SELF, Repeats.ALWAYS, is_audited=True)

    certificate: Octets
    """X.509 in DER."""


class RemoveCertificate(Request[Certificates], frozen=True, tag="remove-certificate"):
    """Take a certificate of the user who asks out of the directory."""

    facts = Facts(SELF, Repeats.NEVER, is_audited=True)

    digest: Octets
    """The MD5 hash of the certificate, by which directories know it."""


class ListCertificates(Request[Certificates], frozen=True, tag="list-certificates"):
    """Ask for the certificates of the user who asks."""

    facts = Facts(KNOWN, Repeats.ALWAYS)
