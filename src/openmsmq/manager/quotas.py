"""How much a queue manager may hold. [MQDMPR 3.1.1.1, MQCN 3.2.5.2]

What its configuration says comes first, and is published. Where that says nothing, its object in
the directory has the say, from the moment at which the directory is heard of; a smaller room than
what is there already keeps new messages out and throws nothing away.
"""

from __future__ import annotations

import msgspec

from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.queue_table import QueueTable
from openmsmq.model.limits import JOURNAL_QUOTA_DEFAULT_KB, MANAGER_QUOTA_DEFAULT_KB
from openmsmq.model.names import SystemQueue
from openmsmq.model.topology import QueueManagerInfo


def take_quotas(config: ManagerConfig, table: QueueTable, known: QueueManagerInfo | None) -> None:
    """Give the queues of a queue manager, and its journals, the room that they are to have."""
    told_kb = MANAGER_QUOTA_DEFAULT_KB if known is None else known.quota_kb
    told_journal_kb = JOURNAL_QUOTA_DEFAULT_KB if known is None else known.journal_quota_kb
    table.quota_kb = config.quota_kb or told_kb
    journal_kb = config.journal_quota_kb or told_journal_kb
    for name in SystemQueue:
        queue = table.system(name)
        queue.properties = msgspec.structs.replace(queue.properties, quota_kb=journal_kb)
