"""What became available in queues since the manager last looked."""

from __future__ import annotations

from openmsmq.manager.queues.queue import LocalQueue


class News:
    """Queues with something new for those who look after them, in order."""

    def __init__(self) -> None:
        self.available: dict[LocalQueue, None] = {}
        """Queues with news for their readers."""
        self.ready: dict[LocalQueue, None] = {}
        """Outgoing queues with something to send."""

    def of(self, queue: LocalQueue) -> None:
        """Let whoever looks after a queue know that something became available in it."""
        if queue.can.lead_away:
            self.ready[queue] = None
        else:
            self.available[queue] = None
