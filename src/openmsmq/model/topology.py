"""The enterprise as the directory describes it. [MQDMPR 3.1.1.1, 3.1.1.6-3.1.1.9, 3.1.1.15]

Objects name each other by identifier. Collections of references, which the specification keeps
beside the identifiers, are looked up in a directory snapshot instead of being stored twice.
"""

from __future__ import annotations

from enum import Enum, IntEnum

import msgspec

from openmsmq.model.errors import IllegalPropertyValue
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.limits import (
    CERTIFICATE_DIGEST_BYTES,
    INITIALIZATION_RETRY_S,
    JOURNAL_QUOTA_DEFAULT_KB,
    LINK_COST_MAX_UNITS,
    LINK_COST_MIN_UNITS,
    MANAGER_QUOTA_DEFAULT_KB,
    REACH_QUEUE_DEFAULT_S,
)


class ManagerRole(Enum):
    """What a queue manager does for others; the values are the words of `status`. [MQOD 2.1.4]"""

    QUEUE_SERVER = "queue server"
    """Programs of its computer have queues there, send and receive. [MQOD 2.1.4.2.1]"""
    MANAGEMENT_SERVER = "management server"
    """Programs of other computers look after it, and read its queues. [MQOD 2.1.4.2.1]"""
    SUPPORTING_SERVER = "supporting server"
    """Programs of computers without a queue manager use it. [MQOD 2.1.4.2.1]"""
    MESSAGE_TRANSFER = "message transfer"
    """It exchanges messages with other queue managers. [MQOD 2.1.4.2.2]"""
    ROUTING_SERVER = "routing server"
    """It passes messages on for others. [MQOD 2.1.4.2.2]"""
    SITE_GATE = "site gate"
    """It does so between sites. [MQOD 2.1.4.2.2]"""
    DIRECTORY_SERVER = "directory server"
    """Others ask it for the directory. [MQOD 2.1.4.3]"""


class OperatingSystem(IntEnum):
    """On what a queue manager runs; we are `FOREIGN`. [MQMQ 2.3.2.19]"""

    OTHER = 0x000
    FOREIGN = 0x100
    WINDOWS_95 = 0x200
    WINDOWS_CLIENT = 0x300
    WINDOWS_SERVER = 0x400
    WINDOWS_ENTERPRISE = 0x500


class DirectoryServerKind(IntEnum):
    """What a directory server is to its site and enterprise. [MQDMPR 3.1.1.1, MQMQ 2.3.8.2]"""

    STANDALONE = 1
    BACKUP_SITE_CONTROLLER = 2
    PRIMARY_SITE_CONTROLLER = 4
    PRIMARY_ENTERPRISE_CONTROLLER = 8


class PublicKey(msgspec.Struct, frozen=True):
    """A published key and the cryptographic provider it belongs to. [MQMQ 2.2.1]"""

    provider_name: str
    provider_type: int
    blob: bytes


class EnterpriseInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The enterprise: everything that shares one directory. [MQDMPR 3.1.1.6]"""

    identifier: Guid
    name: str = ""
    reach_queue_default_s: int = REACH_QUEUE_DEFAULT_S
    weakened_security: bool = False
    notify_old_managers: bool = False
    old_directory: bool = False
    security_descriptor: bytes = b""


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """Queue managers that reach each other directly and cheaply. [MQDMPR 3.1.1.7]"""

    identifier: Guid
    name: str
    foreign: bool = False
    primary_controller: str = ""
    replicate_within_site_s: int = 0
    replicate_between_sites_s: int = 0
    directory_name: str = ""
    signing_keys: tuple[PublicKey, ...] = ()
    migrated: bool = False
    security_descriptor: bytes = b""


class RoutingLink(msgspec.Struct, frozen=True, kw_only=True):
    """A way between two sites, its cost, and the site gates that serve it. [MQDMPR 3.1.1.8]

    The directory is written by others, so a link may come with an impossible cost; routing passes
    over links that are not `usable`.
    """

    identifier: Guid
    site1: Guid
    site2: Guid
    cost: int
    site_gates: tuple[Guid, ...] = ()
    description: str = ""
    directory_name: str = ""

    @property
    def usable(self) -> bool:
        """Whether the cost is one that a link can have."""
        return LINK_COST_MIN_UNITS <= self.cost <= LINK_COST_MAX_UNITS


class ConnectedNetwork(msgspec.Struct, frozen=True, kw_only=True):
    """A network in which all computers reach each other; MSMQ 1.0 and 2.0. [MQDMPR 3.1.1.9]"""

    identifier: Guid
    name: str = ""
    security_descriptor: bytes = b""


class QueueManagerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A queue manager, as it is configured and published. [MQDMPR 3.1.1.1]

    What a running queue manager is doing (its state, queues, transactions) is not part of it.
    """

    identifier: Guid
    computer_name: str
    qualified_computer_name: str = ""
    addresses: tuple[str, ...] = ()
    """Where it listens, by its own word; without one a name server is asked. [MQMQ 2.3.2.5]"""
    version: str = ""
    operating_system: OperatingSystem = OperatingSystem.FOREIGN
    operating_system_version: str = ""
    created_time_s: int = 0
    modified_time_s: int = 0
    quota_kb: int = MANAGER_QUOTA_DEFAULT_KB
    journal_quota_kb: int = JOURNAL_QUOTA_DEFAULT_KB
    sites: tuple[Guid, ...] = ()
    connected_networks: tuple[Guid, ...] = ()
    out_routing_servers: tuple[Guid, ...] = ()
    in_routing_servers: tuple[Guid, ...] = ()
    foreign: bool = False
    routing_server: bool = False
    supporting_server: bool = False
    remote_access_server: bool = False
    directory_server: DirectoryServerKind | None = None
    clustered: bool = False
    encryption_keys: tuple[PublicKey, ...] = ()
    signing_keys: tuple[PublicKey, ...] = ()
    security_descriptor: bytes = b""
    directory_name: str = ""

    # Settings that stay on the computer.
    domain: Guid = NIL_GUID
    last_domain: Guid = NIL_GUID
    directory_servers: tuple[str, ...] = ()
    directory_integrated: bool = False
    http_transfer: bool = False
    multicast_transfer: bool = False
    hardened: bool = False
    initialization_retry_s: int = INITIALIZATION_RETRY_S


class DistributionList(msgspec.Struct, frozen=True, kw_only=True):
    """Queues, aliases and other lists under one name; an alias is a list of one. [MQMQ 2.1.5]"""

    identifier: Guid
    name: str = ""
    members: tuple[str, ...] = ()
    """Format names; those of lists begin with `DL=`."""
    directory_name: str = ""


class UserInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A user and the certificates that prove the user's messages. [MQDMPR 3.1.1.15]"""

    identifier: Guid
    security_identifier: bytes
    certificates: tuple[bytes, ...] = ()
    certificate_digests: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        for digest in self.certificate_digests:
            if len(digest) != CERTIFICATE_DIGEST_BYTES:
                raise IllegalPropertyValue(
                    f"certificate digest of {len(digest)} bytes, where 16 are needed"
                )
