"""Taking queues away, with all that belongs to them."""

from __future__ import annotations

from openmsmq.manager.messages.housekeeping import Housekeeping
from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.table import QueueTable
from openmsmq.manager.reading.requests import ReadRequests
from openmsmq.manager.requests.effects import DeletedQueuesLeft
from openmsmq.manager.turn.ledger import Ledger
from openmsmq.model.clock import Instant
from openmsmq.model.errors import QueueDeleted


class QueueRemoval:
    """Takes queues away because an application or the directory says so."""

    def __init__(
        self, ledger: Ledger, table: QueueTable, reads: ReadRequests, housekeeping: Housekeeping
    ) -> None:
        self._ledger = ledger
        self._table = table
        self._reads = reads
        self._housekeeping = housekeeping

    def delete(self, queue: LocalQueue, now: Instant) -> None:
        """Take a queue away, with its journal and subqueues; who waits there is told."""
        family = self._table.delete(queue)
        self._ledger.add_waiting(DeletedQueuesLeft(self, family))
        self._housekeeping.run(now)

    def clear(self, queue: LocalQueue) -> None:
        """Send away who waits at a queue that is deleted, and let its entries go."""
        for read in list(queue.waiting):
            self._reads.end_read(read, QueueDeleted(queue.name))
        self._housekeeping.delete(queue)
