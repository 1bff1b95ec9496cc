"""How a queue manager is set up: a frozen value, handed in once."""

from __future__ import annotations

import msgspec

from openmsmq.directory.limits import DIRECTORY_POLL_S, LIST_MEMBERS_MAX_COUNT
from openmsmq.model.directory import DirectoryRole
from openmsmq.model.identity import Guid
from openmsmq.model.limits import (
    ASIDE_FROM_BYTES,
    DIRECTORY_PROBE_S,
    EXPRESS_MEMORY_DEFAULT_KB,
    KEY_LIFETIME_S,
    KEY_RETENTION_S,
    OPEN_QUEUES_MAX_COUNT,
    QUERIES_MAX_COUNT,
    QUEUES_MAX_COUNT,
    RANGE_REMOVAL_FROM_COUNT,
    STAGED_MAX_BYTES,
    STAGED_MEMORY_MAX_BYTES,
    TRANSACTION_MAX_BYTES,
    TRANSACTION_MAX_COUNT,
    TRANSACTIONS_MAX_COUNT,
    VOUCHERS_MAX_COUNT,
    WAITING_READS_MAX_COUNT,
)
from openmsmq.model.topology import ManagerRole
from openmsmq.protocol.config import TransferConfig
from openmsmq.security.policy import SecurityPolicy


class DirectoryConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How a queue manager works with a directory."""

    role: DirectoryRole = DirectoryRole.NONE
    serves_others: bool = False
    """Whether others may ask it for the directory, be it the original or a copy."""
    poll_ms: int = DIRECTORY_POLL_S * 1000
    """How often a copy is brought up to date."""
    probe_ms: int = DIRECTORY_PROBE_S * 1000
    """Pause after the directory could not be reached. [MQDMPR 3.1.2.5]"""
    list_members_max: int = LIST_MEMBERS_MAX_COUNT
    """Queues that a distribution list may stand for."""
    enterprise: str = "Enterprise"
    """What a new directory calls its enterprise."""
    site: str = ""
    """The site in which a queue manager registers itself; empty for the first there is."""
    routing_server: bool = False
    """Whether it registers itself as one that takes messages for others."""
    publishes_addresses: bool = True
    """Whether the directory has a place for the addresses of queue managers."""
    server: str = ""
    """The name of the server at which the directory is changed, if that is no queue manager."""
    qualified_name: str = ""
    """The full name of its computer, which others may ask a name server for."""


class SecurityConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How a queue manager protects messages, and its keys."""

    policy: SecurityPolicy = SecurityPolicy()
    """Which algorithms it accepts, and whom it believes."""
    key_lifetime_s: int = KEY_LIFETIME_S
    """After so long it makes a new key pair."""
    key_retention_s: int = KEY_RETENTION_S
    """How long a key pair that was replaced still decrypts."""


class HttpConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Whether messages go over HTTP, and how others reach us so."""

    enabled: bool = False
    url: str = ""
    """What stands before `/msmq` in our URLs, such as `https://host:8443`; empty for our name."""
    hosts: tuple[str, ...] = ()
    """Further hosts that others may call us by in URLs."""
    queues: tuple[str, ...] = ("*",)
    """Patterns of the queues that have URLs; the driver lets no post through to others."""


class ManagerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator decides about a queue manager."""

    name: str
    """The computer name by which others address it."""
    addresses: tuple[str, ...] = ()
    """Host names and IP addresses that are this computer, beside its name."""
    software: str = "OpenMSMQ"
    roles: tuple[ManagerRole, ...] = (ManagerRole.QUEUE_SERVER,)
    """What the doors that the driver opens make of it; what the directory does is known here."""
    quota_kb: int = 0
    """Room for the messages of all queues; 0 leaves it to the directory."""
    express_memory_kb: int = EXPRESS_MEMORY_DEFAULT_KB
    """Memory for express messages; never more than the quota."""
    journal_quota_kb: int = 0
    """Room for the journal of the queue manager; 0 leaves it to the directory."""
    queues_max: int = QUEUES_MAX_COUNT
    open_queues_max: int = OPEN_QUEUES_MAX_COUNT
    reads_elsewhere: bool = False
    """Whether applications may read queues of other computers; the driver does it."""
    waiting_reads_max: int = WAITING_READS_MAX_COUNT
    transactions_max: int = TRANSACTIONS_MAX_COUNT
    transaction_messages_max: int = TRANSACTION_MAX_COUNT
    transaction_bytes_max: int = TRANSACTION_MAX_BYTES
    queries_max: int = QUERIES_MAX_COUNT
    vouchers_max: int = VOUCHERS_MAX_COUNT
    range_removal_min: int = RANGE_REMOVAL_FROM_COUNT
    """Messages from which on a reader's completed ones are taken out as a range."""
    staged_bytes_max: int = STAGED_MAX_BYTES
    staged_memory_bytes_max: int = STAGED_MEMORY_MAX_BYTES
    aside_min_bytes: int = ASIDE_FROM_BYTES
    """Bytes from which on the messages of a prepared transaction are set aside."""
    directory: DirectoryConfig = DirectoryConfig()
    identifier: Guid | None = None
    """Who a new queue manager is, if its directory has chosen that; one with a store stays who it
    is."""
    transfer: TransferConfig = TransferConfig()
    """How it behaves towards other queue managers."""
    http: HttpConfig = HttpConfig()
    """Messages over HTTP: which of them may come in, the driver says."""
    security: SecurityConfig = SecurityConfig()
