"""Queues of foreign computers: messages to them wait for a connector, a program that knows them.

A connector has two queues here, `CONNECTOR=guid` and `CONNECTOR=guid;XACTONLY`. They come into
being with the first message or when the connector opens them. Messages keep the address that their
sender gave, so that the connector knows where to take them. [MQMQ 2.1.6]
"""

from __future__ import annotations

from openmsmq.manager.queues import LocalQueue
from openmsmq.manager.totals import Totals
from openmsmq.model.identity import NIL_GUID
from openmsmq.model.queue import QueueProperties
from openmsmq.storage.port import StoreReader


class ForeignQueue(LocalQueue):
    """A queue of a foreign computer, opened for sending; it holds no messages itself."""

    __slots__ = ("connector",)

    def __init__(self, name: str, connector: LocalQueue, reader: StoreReader) -> None:
        properties = QueueProperties(identifier=NIL_GUID, path_name=name)
        super().__init__(0, name, properties, reader, Totals(), role="foreign")
        self.connector = connector

    def count_handles(self, change: int) -> None:
        """Keep the connector's queue while this one is open."""
        super().count_handles(change)
        self.connector.count_handles(change)


def in_its_kind(queue: LocalQueue, *, transactional: bool) -> LocalQueue:
    """Give the queue that really takes messages of a kind."""
    if isinstance(queue, ForeignQueue):
        queue = queue.connector
    if transactional and queue.transactional_twin is not None:
        return queue.transactional_twin
    return queue
