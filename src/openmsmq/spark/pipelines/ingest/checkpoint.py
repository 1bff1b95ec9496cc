"""The checkpoint of a query, as far as a table must know it: whose batch it is, and where it ends.

Spark gives each checkpoint an identity when a query starts with it for the first time, and writes
down where a batch ends before the batch begins. A batch that is repeated has the same end. Another
batch of the same number has another one: then somebody has gone on with a copy of the checkpoint.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from openmsmq.spark.errors import TableProblem


class Mark(msgspec.Struct, frozen=True):
    """A batch: the checkpoint that it belongs to, its number, and where it ends in the queues."""

    query: str
    batch: int
    offset: str
    """What the source has told Spark: only the source can read it."""
    reader: str
    """For whom its messages were reserved; empty if they were only looked at."""

    @property
    def end(self) -> int:
        """The offset as a number of 63 bits: equal for the same batch only."""
        return int.from_bytes(hashlib.sha256(self.offset.encode()).digest()[:8]) >> 1


class Checkpoint:
    """What Spark has written into the directory of a checkpoint."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def is_new(self) -> bool:
        """Whether no batch of it was ever planned."""
        try:
            return not any(path.name.isdecimal() for path in (self.path / "offsets").iterdir())
        except FileNotFoundError:
            return True

    def mark(self, batch: int, reader: str) -> Mark:
        """Tell of a batch that was planned."""
        try:
            query = msgspec.json.decode((self.path / "metadata").read_bytes())["id"]
            lines = (self.path / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()
        except (OSError, msgspec.DecodeError, KeyError, TypeError) as error:
            raise TableProblem(
                f"the checkpoint {self.path} does not say which batch {batch} is ({error!r}): it "
                "must be on a path that all computers of Spark have"
            ) from None
        # The version, then what Spark itself notes, then a line for each source.
        return Mark(str(query), batch, lines[-1], reader)
