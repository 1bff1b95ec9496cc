"""Offsets: how far a stream has come in each of its queues.

An offset is what Spark keeps in a checkpoint, as JSON: for each queue the arrival number at which
to go on. Queues go by who they are and not by how they are reached: the key has the identity of
the queue manager, and beside the number stand the identity of the queue, by which one that was
deleted and made again is noticed, and the life of the queue manager in which the number was told,
by which a store is noticed that was put back to an older state. Offsets of a stream that consumes
also have a random word for the checkpoint itself, by which the queue manager tells queries apart.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from openmsmq.api.messages import Epoch, QueueStatus
from openmsmq.model.lives import is_good_place
from openmsmq.spark.errors import DataLost

Offset: TypeAlias = dict[str, dict[str, Any]]

_CHECKPOINT: Final = "checkpoint"
"""The key beside those of the queues, none of which is without a backslash."""


class Spot(msgspec.Struct, frozen=True):
    """A place in one queue: everything below `next` has been read."""

    address: str
    """How the queue manager was reached; only for people, and for offsets of older versions."""
    queue: str
    identity: str
    next: int
    begin: int | None = None
    """Where the batch that ends here begins, if not where the one before it ended."""
    manager: str = ""
    """The identity of the queue manager; empty in offsets of older versions."""
    epoch: str = ""
    """The life of the queue manager in which this was told; empty in those, too."""
    turn: int = 0
    """How often the messages from `begin` on were planned again, because a batch left them out."""

    @property
    def key(self) -> str:
        """The name of the queue in an offset."""
        return f"{self.manager or self.address}\\{self.queue}"

    def first(self, before: Spot | None) -> int:
        """Return the first number of a batch that ends here, behind a batch that ended there."""
        # Spark asks again where a new query begins whenever it plans the first batch, and the
        # answer may have changed: what was reserved counts.
        is_same = before is not None and (before.next, before.turn) == (self.next, self.turn)
        if self.begin is not None and not is_same:
            return self.begin
        return 0 if before is None else before.next

    @property
    def name(self) -> str:
        """The name of the queue for people."""
        return f"{self.queue} at {self.address}"


class Reached(msgspec.Struct, frozen=True):
    """An offset, read."""

    spots: dict[str, Spot]
    checkpoint: str = ""
    is_new: bool = False
    """Whether it is where a new query begins, and not from a checkpoint."""

    @property
    def query(self) -> str:
        """The word for the checkpoint; of one that has none yet, always the same."""
        if self.checkpoint:
            return self.checkpoint
        known = json.dumps(sorted(map(msgspec.structs.astuple, self.spots.values())))
        return hashlib.sha256(known.encode()).hexdigest()[:32]


def to_offset(spots: Iterable[Spot], checkpoint: str = "", *, is_new: bool = False) -> Offset:
    """Write an offset."""
    offset: Offset = {spot.key: _written(spot) for spot in spots}
    if checkpoint:
        offset[_CHECKPOINT] = {"id": checkpoint} | ({"new": True} if is_new else {})
    return offset


def _written(spot: Spot) -> dict[str, Any]:
    written: dict[str, Any] = {
        "qm": spot.address,
        "queue": spot.queue,
        "identity": spot.identity,
        "next": spot.next,
    }
    if spot.begin is not None:
        written["begin"] = spot.begin
    if spot.manager:
        written |= {"manager": spot.manager, "epoch": spot.epoch}
    if spot.turn:
        written["turn"] = spot.turn
    return written


def from_offset(offset: Offset) -> Reached:
    """Read an offset, also one of an older version."""
    try:
        about = offset.get(_CHECKPOINT, {})
        spots = [
            Spot(
                str(each["qm"]),
                str(each["queue"]),
                str(each["identity"]),
                int(each["next"]),
                int(each["begin"]) if "begin" in each else None,
                str(each.get("manager", "")),
                str(each.get("epoch", "")),
                int(each.get("turn", 0)),
            )
            for key, each in offset.items()
            if key != _CHECKPOINT
        ]
        return Reached(
            {spot.key: spot for spot in spots}, str(about.get("id", "")), bool(about.get("new"))
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataLost(
            f"the checkpoint has an offset that this version cannot read ({error!r}): use the "
            "version that wrote it, or a new checkpointLocation with a new output"
        ) from None


def problem_with(spot: Spot, status: QueueStatus, epochs: Sequence[Epoch]) -> str | None:
    """Return why a stream cannot go on at a place; None if it can."""
    if spot.identity != status.identifier.hex():
        return f"queue {spot.name} was deleted and made again since"
    if spot.next > status.last_arrival_number + 1:
        return (
            f"queue {spot.name} was read up to arrival number {spot.next}, but its queue manager "
            f"has given out only {status.last_arrival_number}: its store was replaced"
        )
    lives = [(epoch.identifier, epoch.first) for epoch in epochs]
    if not is_good_place(lives, spot.epoch, spot.next):
        return (
            f"queue {spot.name} was read up to arrival number {spot.next} in a life of its queue "
            "manager that the store does not know: its store was replaced by an older copy"
        )
    return None


def data_lost(problem: str) -> DataLost:
    """Return the error for messages that are gone."""
    return DataLost(
        f"{problem}. Messages may be lost. To go on with what is there, set the option "
        "failOnDataLoss=false; to begin anew, use a new checkpointLocation and a new output, "
        "because a sink takes the batches of a new checkpoint for those that it has already"
    )
