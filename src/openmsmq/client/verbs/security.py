"""What an application can do with keys and certificates, as steps."""

from __future__ import annotations

from openmsmq.api import messages as api
from openmsmq.client.steps import Steps, ask
from openmsmq.client.verbs.manager import ManagerHandle
from openmsmq.model.identity import Guid


def encryption_keys(manager: ManagerHandle, identifier: Guid) -> Steps[list[api.EncryptionKey]]:
    """Ask for the keys that a queue manager has published."""
    request = api.GetEncryptionKeys(bytes(identifier))
    return (yield from ask(request)).keys


def renew_keys(manager: ManagerHandle) -> Steps[None]:
    """Have the queue manager make a new key pair and publish it.

    What was encrypted for the old one can be read for as long as old keys are kept.
    """
    yield from ask(api.RenewKeys())


def register_certificate(manager: ManagerHandle, certificate: bytes) -> Steps[api.Certificates]:
    """Register a certificate, X.509 in DER, for the user who is connected."""
    return (yield from ask(api.RegisterCertificate(certificate)))


def remove_certificate(manager: ManagerHandle, digest: bytes) -> Steps[api.Certificates]:
    """Take a certificate of the user who is connected out of the directory, by its MD5 hash."""
    return (yield from ask(api.RemoveCertificate(digest)))


def certificates(manager: ManagerHandle) -> Steps[api.Certificates]:
    """Ask for the certificates of the user who is connected."""
    return (yield from ask(api.ListCertificates()))
