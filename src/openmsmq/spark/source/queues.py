"""Which queues the option `queue` means."""

from __future__ import annotations

from openmsmq.api.messages import QueueStatus
from openmsmq.client.blocking import QueueManager
from openmsmq.spark.source.options import EVERY_JOURNAL, EVERY_QUEUE


def find_queues(manager: QueueManager, name: str) -> list[QueueStatus]:
    """Give the queues that a name in the option means, as they are now."""
    if name == EVERY_QUEUE:
        return manager.queues()
    if name == EVERY_JOURNAL:
        journals = {f"{queue.path_name};journal" for queue in manager.queues()}
        return [queue for queue in manager.queues(everything=True) if queue.path_name in journals]
    return [manager.queue(name).properties()]
