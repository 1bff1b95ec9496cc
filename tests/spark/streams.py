"""Streams without Spark: the real reader, asked for batches in the order in which Spark asks."""

from __future__ import annotations

import json
from typing import Any

import openmsmq as mq
from openmsmq.spark.source.options import read_source_options
from openmsmq.spark.source.stream_reader import StreamReader


class Stream:
    """Plans and reads batches in the order in which Spark does."""

    def __init__(self, here: mq.QueueManager, queue: str, **options: str) -> None:
        self.options = {"qm": here.settings.address, "queue": queue, "columns": "label"} | options
        self.reader = self.started()
        self.offset = self.reader.initialOffset()

    def again(self) -> StreamReader:
        """Return a reader as a driver makes it that has just started; the one before it is dead."""
        self.reader.stop()
        return self.started()

    def started(self) -> StreamReader:
        return StreamReader(read_source_options(self.options))

    def plan(self) -> Any:
        """Return the end of the next batch, as the checkpoint keeps it."""
        limit = self.reader.getDefaultReadLimit()
        return json.loads(json.dumps(self.reader.latestOffset(self.offset, limit)))

    def read(self, end: Any) -> list[str]:
        """Return the labels of a batch."""
        batches = [
            batch
            for part in self.reader.partitions(self.offset, end)
            for batch in self.reader.read(part)
        ]
        return [label for batch in batches for label in batch.column("label").to_pylist()]

    def next(self) -> list[str]:
        """Process a batch, to its end."""
        end = self.plan()
        found = self.read(end)
        self.offset = end
        self.reader.commit(end)
        return found


def send(queue: mq.Queue, *labels: str, **options: Any) -> None:
    for label in labels:
        queue.send(label, label=label, recoverable=True, **options)


def names(*paths: str) -> str:
    return ",".join(paths)
