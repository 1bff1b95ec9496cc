"""The work of one task."""

from __future__ import annotations

from pyspark.sql.datasource import InputPartition


class QueueRange(InputPartition):
    """Messages of one queue with `start` <= arrival number < `stop`: the work of one task."""

    def __init__(
        self,
        address: str,
        queue: str,
        start: int,
        stop: int,
        manager: str = "",
        reader: str = "",
        checkpoint: str = "",
    ) -> None:
        super().__init__((address, queue, start, stop))
        self.address = address
        self.queue = queue
        self.start = start
        self.stop = stop
        self.manager = manager
        """The identity of the queue manager, however it is addressed."""
        self.reader = reader
        self.checkpoint = checkpoint
        """The query for which the messages are reserved; empty if they are only looked at."""

    def part(self, start: int, stop: int) -> QueueRange:
        """Give a part of it."""
        return QueueRange(
            self.address, self.queue, start, stop, self.manager, self.reader, self.checkpoint
        )
