"""How much a queue manager may hold. [MQDMPR 3.1.1.1, MQCN 3.2.5.2]

What its configuration says comes first, and is published. Where that says nothing, its object in
the directory has the say, from the moment at which the directory is heard of; a smaller room than
what is there already keeps new messages out and throws nothing away.
"""

from __future__ import annotations

import msgspec

from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.queues.table import QueueTable
from openmsmq.model.limits import JOURNAL_QUOTA_DEFAULT_KB, MANAGER_QUOTA_DEFAULT_KB
from openmsmq.model.names import SystemQueue
from openmsmq.model.topology import QueueManagerInfo


def take_quotas(config: ManagerConfig, table: QueueTable, known: QueueManagerInfo | None) -> None:
    """Give the queues of a queue manager, and its journal, the room that they are to have.

    Dead letters have no quota of their own, so that none is lost while there is room.
    """
    told_kb, told_journal_kb = MANAGER_QUOTA_DEFAULT_KB, JOURNAL_QUOTA_DEFAULT_KB
    if known is not None:
        told_kb = _possible(known.quota_kb, told_kb)
        told_journal_kb = _possible(known.journal_quota_kb, told_journal_kb)
    table.totals.limit(config.quota_kb or told_kb, config.express_memory_kb)
    journal = table.system(SystemQueue.JOURNAL)
    journal_kb = config.journal_quota_kb or told_journal_kb
    journal.take_properties(msgspec.structs.replace(journal.properties, quota_kb=journal_kb))


def _possible(told_kb: int, default_kb: int) -> int:
    """Pass over a number that is no quota: the directory may be written by others."""
    return default_kb if told_kb >> 32 else told_kb
