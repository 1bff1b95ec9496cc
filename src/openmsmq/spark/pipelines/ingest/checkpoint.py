"""The checkpoint of a query, as far as a table must know it: whose a batch is, and its end."""

from __future__ import annotations

import contextlib
import hashlib

import msgspec

from openmsmq.spark import checkpoint
from openmsmq.spark.errors import TableProblem


class Mark(msgspec.Struct, frozen=True):
    """A batch: the checkpoint that it belongs to, its number, and where it ends in the queues."""

    query: str
    batch: int
    offset: str
    """What the source has told Spark: only the source can read it."""
    reader: str
    """For whom its messages were reserved; empty if they were only looked at."""
    start: str = ""
    """The offset at which it begins; empty if it is the first, or was noted by an older version."""

    @property
    def end(self) -> int:
        """The offset as a number of 63 bits: equal for the same batch only."""
        return int.from_bytes(hashlib.sha256(self.offset.encode()).digest()[:8]) >> 1


class Checkpoint(checkpoint.Checkpoint):
    """The checkpoint of a query that has one source."""

    def mark(self, batch: int, reader: str) -> Mark:
        """Tell of a batch that was planned."""
        start = ""
        with contextlib.suppress(checkpoint.UnreadableCheckpoint):
            # The batch does not depend on it, and Spark deletes what is old.
            start = self.offsets(batch - 1)[-1]
        try:
            return Mark(self.query(), batch, self.offsets(batch)[-1], reader, start)
        except checkpoint.UnreadableCheckpoint as error:
            raise TableProblem(
                f"the checkpoint {self.path} does not say which batch {batch} is ({error}): it "
                "must be on a path that all computers of Spark have"
            ) from None
