"""How a queue manager is set up: a frozen value, handed in once."""

from __future__ import annotations

import msgspec

from openmsmq.model.limits import (
    JOURNAL_QUOTA_DEFAULT_KB,
    MANAGER_QUOTA_DEFAULT_KB,
    OPEN_QUEUES_MAX_COUNT,
    QUERIES_MAX_COUNT,
    QUEUES_MAX_COUNT,
    STAGED_MAX_BYTES,
    TRANSACTION_MAX_BYTES,
    TRANSACTION_MAX_COUNT,
    TRANSACTIONS_MAX_COUNT,
    WAITING_READS_MAX_COUNT,
)
from openmsmq.protocol.config import TransferConfig


class ManagerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator decides about a queue manager."""

    name: str
    """The computer name by which others address it."""
    addresses: tuple[str, ...] = ()
    """Host names and IP addresses that are this computer, beside its name."""
    software: str = "OpenMSMQ"
    quota_kb: int = MANAGER_QUOTA_DEFAULT_KB
    journal_quota_kb: int = JOURNAL_QUOTA_DEFAULT_KB
    queues_max: int = QUEUES_MAX_COUNT
    open_queues_max: int = OPEN_QUEUES_MAX_COUNT
    waiting_reads_max: int = WAITING_READS_MAX_COUNT
    transactions_max: int = TRANSACTIONS_MAX_COUNT
    transaction_messages_max: int = TRANSACTION_MAX_COUNT
    transaction_bytes_max: int = TRANSACTION_MAX_BYTES
    queries_max: int = QUERIES_MAX_COUNT
    staged_bytes_max: int = STAGED_MAX_BYTES
    transfer: TransferConfig = TransferConfig()
    """How it behaves towards other queue managers."""
