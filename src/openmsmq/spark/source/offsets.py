"""Offsets: how far a stream has come in each of its queues.

An offset is what Spark keeps in a checkpoint, as JSON: for each queue the arrival number at which
to go on, and the identity of the queue, by which one that was deleted and made again is noticed.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from openmsmq.api.messages import QueueStatus
from openmsmq.spark.errors import DataLost

Offset: TypeAlias = dict[str, dict[str, Any]]


class Spot(msgspec.Struct, frozen=True):
    """A place in one queue: everything below `next` has been read."""

    address: str
    queue: str
    identity: str
    next: int
    begin: int | None = None
    """Where the batch that ends here begins, if not where the one before it ended."""

    @property
    def key(self) -> str:
        """The name of the queue in an offset."""
        return f"{self.address}\\{self.queue}"


def spot_of(address: str, status: QueueStatus, next_number: int, begin: int | None = None) -> Spot:
    """Give a place in a queue as it is now."""
    return Spot(address, status.path_name, status.identifier.hex(), next_number, begin)


def to_offset(spots: list[Spot]) -> Offset:
    """Write an offset."""
    return {
        spot.key: {
            "qm": spot.address,
            "queue": spot.queue,
            "identity": spot.identity,
            "next": spot.next,
        }
        | ({} if spot.begin is None else {"begin": spot.begin})
        for spot in spots
    }


def from_offset(offset: Offset) -> dict[str, Spot]:
    """Read an offset."""
    try:
        spots = [
            Spot(
                str(each["qm"]),
                str(each["queue"]),
                str(each["identity"]),
                int(each["next"]),
                int(each["begin"]) if "begin" in each else None,
            )
            for each in offset.values()
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataLost(
            f"the checkpoint has an offset that this version cannot read ({error!r}): use the "
            "version that wrote it, or a new checkpointLocation"
        ) from None
    return {spot.key: spot for spot in spots}


def problem_with(spot: Spot, status: QueueStatus) -> str | None:
    """Say why a stream cannot go on at a place; None if it can."""
    if spot.identity != status.identifier.hex():
        return f"queue {spot.key} was deleted and made again since"
    if spot.next > status.last_arrival_number + 1:
        return (
            f"queue {spot.key} was read up to arrival number {spot.next}, but its queue manager "
            f"has given out only {status.last_arrival_number}: its store was replaced"
        )
    return None


def data_lost(problem: str) -> DataLost:
    """Give the error for messages that are gone."""
    return DataLost(
        f"{problem}. Messages may be lost. To go on with what is there, set the option "
        "failOnDataLoss=false; to begin anew, use a new checkpointLocation"
    )
