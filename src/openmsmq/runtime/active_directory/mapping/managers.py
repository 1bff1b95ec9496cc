"""Queue managers as entries: `mSMQConfiguration` and the computer above it. [MQDSSM 3.1.6.11.1]

Signing keys are certificates of the computer's account (C-104): as `PublicKey` they have the
certificate as blob and no provider. What the directory knows nothing of (addresses, connected
networks, settings that stay on the computer) is neither read nor written.
"""

from __future__ import annotations

from typing import Final

from openmsmq.model.identity import Guid
from openmsmq.model.limits import JOURNAL_QUOTA_DEFAULT_KB, MANAGER_QUOTA_DEFAULT_KB
from openmsmq.model.topology import (
    DirectoryServerKind,
    OperatingSystem,
    PublicKey,
    QueueManagerInfo,
)
from openmsmq.runtime.active_directory.mapping.descriptors import (
    MANAGER_RIGHTS,
    translate_from_directory,
    translate_to_directory,
)
from openmsmq.runtime.active_directory.mapping.entries import (
    Attributes,
    Entry,
    Malformed,
    flag_value,
    guid_values,
    number_value,
    reference_values,
    text_value,
)
from openmsmq.security.signatures.certificates import digest
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.keys import (
    ProviderType,
    PublishedKey,
    PublishedKeys,
    UserCertificate,
    UserCertificates,
)

MANAGER_CLASS: Final = "mSMQConfiguration"
COMPUTER_CLASS: Final = "computer"
SETTINGS_CLASS: Final = "mSMQSettings"
MANAGER_ENTRY: Final = "msmq"
SETTINGS_ENTRY: Final = "MSMQ Settings"

ATTRIBUTES: Final = (
    "mSMQComputerTypeEx", "mSMQOSType", "mSMQServiceType", "mSMQQuota", "mSMQJournalQuota",
    "mSMQForeign", "mSMQSites", "mSMQOutRoutingServers", "mSMQInRoutingServers",
    "mSMQRoutingServices", "mSMQDsServices", "mSMQDependentClientServices", "mSMQEncryptKey",
)  # fmt: skip
COMPUTER_ATTRIBUTES: Final = (
    "dNSHostName", "operatingSystemVersion", "servicePrincipalName", "mSMQSignCertificates",
    "mSMQDigests", "objectSid", "sAMAccountName",
)  # fmt: skip

_ROUTING: Final = 0x01
_REMOTE_ACCESS: Final = 0x10
_CONTROLLERS: Final = (
    DirectoryServerKind.BACKUP_SITE_CONTROLLER,
    DirectoryServerKind.PRIMARY_SITE_CONTROLLER,
    DirectoryServerKind.PRIMARY_ENTERPRISE_CONTROLLER,
)
_CLUSTER: Final = b"MSClusterVirtualServer"


def read_manager(entry: Entry, computer: Entry) -> QueueManagerInfo:
    """Read a queue manager and its computer."""
    service = entry.number("mSMQServiceType")
    return QueueManagerInfo(
        identifier=entry.identifier,
        computer_name=computer.needed("cn").decode("utf-8", "replace"),
        qualified_computer_name=computer.text("dNSHostName"),
        version=entry.text("mSMQComputerTypeEx"),
        operating_system=_operating_system(entry.number("mSMQOSType")),
        operating_system_version=computer.text("operatingSystemVersion"),
        created_time_s=entry.time_s("whenCreated"),
        modified_time_s=entry.time_s("whenChanged"),
        quota_kb=entry.unsigned("mSMQQuota", MANAGER_QUOTA_DEFAULT_KB),
        journal_quota_kb=entry.unsigned("mSMQJournalQuota", JOURNAL_QUOTA_DEFAULT_KB),
        sites=entry.guids("mSMQSites"),
        out_routing_servers=entry.references("mSMQOutRoutingServers"),
        in_routing_servers=entry.references("mSMQInRoutingServers"),
        foreign=entry.flag("mSMQForeign"),
        routing_server=entry.flag("mSMQRoutingServices"),
        supporting_server=entry.flag("mSMQDependentClientServices"),
        remote_access_server=bool(service & _REMOTE_ACCESS),
        directory_server=_directory_server(entry.flag("mSMQDsServices"), service),
        clustered=any(_CLUSTER in name for name in computer.values("servicePrincipalName")),
        encryption_keys=_encryption_keys(entry),
        signing_keys=tuple(
            PublicKey("", 0, known.certificate) for known in read_certificates(computer)
        ),
        security_descriptor=translate_from_directory(
            entry.needed("nTSecurityDescriptor"), MANAGER_RIGHTS
        ),
        directory_name=entry.name,
    )


def manager_attributes(manager: QueueManagerInfo) -> Attributes:
    """Return the attributes of a queue manager's own entry."""
    return {
        "mSMQComputerTypeEx": text_value(manager.version),
        "mSMQOSType": number_value(manager.operating_system),
        "mSMQQuota": number_value(manager.quota_kb),
        "mSMQJournalQuota": number_value(manager.journal_quota_kb),
        "mSMQForeign": flag_value(manager.foreign),
        "mSMQSites": guid_values(manager.sites),
        "mSMQOutRoutingServers": reference_values(manager.out_routing_servers),
        "mSMQInRoutingServers": reference_values(manager.in_routing_servers),
        "mSMQEncryptKey": _encryption_key_values(manager.encryption_keys),
        "nTSecurityDescriptor": translate_to_directory(manager.security_descriptor, MANAGER_RIGHTS),
    } | service_attributes(manager)


def service_attributes(manager: QueueManagerInfo) -> dict[str, tuple[bytes, ...]]:
    """Return the attributes that say what a queue manager does for others."""
    return {
        "mSMQServiceType": number_value(service_type(manager)),
        "mSMQRoutingServices": flag_value(manager.routing_server),
        "mSMQDsServices": flag_value(manager.directory_server is not None),
        "mSMQDependentClientServices": flag_value(manager.supporting_server),
    }


def serves_others(manager: QueueManagerInfo) -> bool:
    """Return whether a queue manager has settings in its sites. [MQDSSM 3.1.6.20.1]"""
    return (
        manager.routing_server or manager.supporting_server or manager.directory_server is not None
    )


def settings_attributes(manager: QueueManagerInfo) -> Attributes:
    """Return the attributes of the settings that a server has in each of its sites."""
    services = service_attributes(manager)
    return {
        "mSMQQMID": (bytes(manager.identifier),),
        "mSMQServices": services["mSMQServiceType"],
        "mSMQRoutingService": services["mSMQRoutingServices"],
        "mSMQDsService": services["mSMQDsServices"],
        "mSMQDependentClientService": services["mSMQDependentClientServices"],
    }


SETTINGS_ATTRIBUTES: Final = (
    "mSMQQMID", "mSMQServices", "mSMQRoutingService", "mSMQDsService", "mSMQDependentClientService",
)  # fmt: skip


def service_type(manager: QueueManagerInfo) -> int:
    """Return the bits of what a queue manager does for others. [MQDSSM 3.1.6.1.1.5]"""
    found = _ROUTING if manager.routing_server else 0
    found |= _REMOTE_ACCESS if manager.remote_access_server else 0
    if manager.directory_server in _CONTROLLERS:
        found |= manager.directory_server
    return found


def _operating_system(number: int) -> OperatingSystem:
    try:
        return OperatingSystem(number)
    except ValueError:
        return OperatingSystem.OTHER


def _directory_server(is_one: bool, service: int) -> DirectoryServerKind | None:
    if not is_one:
        return None
    for kind in reversed(_CONTROLLERS):
        if service & kind:
            return kind
    return DirectoryServerKind.STANDALONE


def _encryption_keys(entry: Entry) -> tuple[PublicKey, ...]:
    data = entry.value("mSMQEncryptKey")
    if data is None:
        return ()
    try:
        published = PublishedKeys.decode(data)
    except DecodeError:
        # Its messages cannot be encrypted for it then; all else of it is of use.
        return ()
    return tuple(
        PublicKey(key.provider_name, int(key.provider_type), key.blob) for key in published.keys
    )


def _encryption_key_values(keys: tuple[PublicKey, ...]) -> tuple[bytes, ...]:
    if not keys:
        return ()
    try:
        published = tuple(
            PublishedKey(ProviderType(key.provider_type), key.provider_name, key.blob)
            for key in keys
        )
    except ValueError as error:
        raise Malformed(f"an encryption key cannot be published: {error}") from None
    return (PublishedKeys(published).encode(),)


# Certificates: on computers those of queue managers, on users their own.


def read_certificates(entry: Entry) -> tuple[UserCertificate, ...]:
    """Read the registered certificates of an account."""
    data = entry.value("mSMQSignCertificates")
    if data is None:
        return ()
    try:
        return UserCertificates.decode(data).certificates
    except DecodeError as error:
        raise Malformed(f"mSMQSignCertificates of {entry.name}: {error}") from None


def certificate_attributes(
    certificates: tuple[bytes, ...],
    digests: tuple[bytes, ...] = (),
    known: tuple[UserCertificate, ...] = (),
) -> Attributes:
    """Return certificates and digests, always both. [MQDSSM 3.1.6.7.1.8, 3.1.6.7.6.4]

    Whoever registers a certificate gives it an identifier; its digest serves as one. Those that
    are `known` stay as they were registered. [MQDSSM 3.1.6.7.1.10]
    """
    kept = {registered.certificate: registered for registered in known}
    registered = tuple(
        kept.get(certificate) or _new_certificate(certificate) for certificate in certificates
    )
    found = tuple(certificate.digest for certificate in registered)
    return {
        "mSMQSignCertificates": (UserCertificates(registered).encode(),) if registered else (),
        "mSMQDigests": tuple(dict.fromkeys(found + digests)),
    }


def _new_certificate(certificate: bytes) -> UserCertificate:
    found = digest(certificate)
    return UserCertificate(found, Guid(found), certificate)


def signing_attributes(
    manager: QueueManagerInfo, known: tuple[UserCertificate, ...] = ()
) -> Attributes:
    """Return the attributes of the computer that hold the certificates of its queue manager."""
    return certificate_attributes(tuple(key.blob for key in manager.signing_keys), known=known)
