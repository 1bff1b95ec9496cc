"""The checkpoint of a query, as Spark writes it: whose it is, and where its batches end.

Spark gives each checkpoint an identity when a query starts with it for the first time, and writes
down where a batch ends before the batch begins. A batch that is repeated has the same end. Another
batch of the same number has another one: then somebody has gone on with a copy of the checkpoint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from openmsmq.spark.paths import path_of

END_LENGTH: Final = 32
"""Characters by which the end of a batch is known."""

_HERE: Final = "file:///"
"""The file system of paths without a scheme. If it is another one, there is nothing at the path."""


class UnreadableCheckpoint(Exception):
    """The checkpoint is not there, or not in a form that is known."""


class Checkpoint:
    """What Spark has written into the directory of a checkpoint."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def is_new(self) -> bool:
        """Whether no batch of it was ever planned."""
        try:
            return not any(path.name.isdecimal() for path in (self.path / "offsets").iterdir())
        except FileNotFoundError:
            return True

    def query(self) -> str:
        """Return its identity, which is the id of the query; raises `UnreadableCheckpoint`."""
        try:
            return str(msgspec.json.decode((self.path / "metadata").read_bytes())["id"])
        except (OSError, msgspec.DecodeError, KeyError, TypeError) as error:
            raise UnreadableCheckpoint(repr(error)) from None

    def offsets(self, batch: int) -> list[str]:
        """Return where a batch ends in each source of the query; raises `UnreadableCheckpoint`."""
        try:
            text = (self.path / "offsets" / str(batch)).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UnreadableCheckpoint(repr(error)) from None
        return offsets_in(text, batch)


def offsets_in(text: str, batch: int) -> list[str]:
    """Return where a batch ends in each source; raises `UnreadableCheckpoint`."""
    # The version, then what Spark itself notes, then a line for each source.
    offsets = text.splitlines()[2:]
    if not offsets:
        raise UnreadableCheckpoint(f"no offsets for batch {batch}")
    return offsets


def end_in(location: str, query: str, batch: int) -> str:
    """Return a word for where a batch of a query ends; empty if that cannot be known here.

    `location` is the option of Spark, which may be on another computer. What is found there counts
    only if it is the checkpoint of this query.
    """
    path = path_of(location, _HERE) if location else None
    if path is None:
        return ""
    checkpoint = Checkpoint(path)
    try:
        if checkpoint.query() != query:
            return ""
        offsets = checkpoint.offsets(batch)
    except UnreadableCheckpoint:
        return ""
    return end_of(offsets)


def end_of(offsets: Sequence[str]) -> str:
    """Return a word for where a batch ends that ends there in its sources."""
    return hashlib.sha256("\n".join(offsets).encode()).hexdigest()[:END_LENGTH]
