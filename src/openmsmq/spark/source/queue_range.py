"""The work of one task."""

from __future__ import annotations

from pyspark.sql.datasource import InputPartition


class QueueRange(InputPartition):
    """Messages of one queue with `start` <= arrival number < `stop`: the work of one task."""

    def __init__(self, address: str, queue: str, start: int, stop: int) -> None:
        super().__init__((address, queue, start, stop))
        self.address = address
        self.queue = queue
        self.start = start
        self.stop = stop
