"""Where messages go that an application sends: into a queue, or by way of something that is none.

A list holds no messages, and a queue of a foreign computer does not either: those wait for a
connector, a program that knows that computer. A connector has two queues here, `CONNECTOR=guid`
and `CONNECTOR=guid;XACTONLY`. They come into being with the first message or when the connector
opens them. Messages keep the address that their sender gave, so that the connector knows where to
take them. [MQMQ 2.1.6]
"""

from __future__ import annotations

from typing import TypeAlias

from openmsmq.manager.queues.fan_out import QueueList
from openmsmq.manager.queues.queue import LocalQueue


class ForeignQueue:
    """A queue of a foreign computer, opened for sending."""

    def __init__(self, name: str, connector: LocalQueue) -> None:
        self.name = name
        self.connector = connector

    def count_handles(self, change: int) -> None:
        """Keep the connector's queue while this one is open."""
        self.connector.count_handles(change)


Target: TypeAlias = LocalQueue | QueueList | ForeignQueue
"""What can be opened; only a queue can be read."""


def in_its_kind(target: LocalQueue | ForeignQueue, *, transactional: bool) -> LocalQueue:
    """Return the queue that really takes messages of a kind."""
    queue = target.connector if isinstance(target, ForeignQueue) else target
    if transactional and queue.transactional_twin is not None:
        return queue.transactional_twin
    return queue
