"""What turns were about, for those who work on the queue manager: one description for each.

Nothing is described unless somebody has asked for it. A description has names, numbers and sizes:
no body, no label and no secret of anybody stands in it.
"""

from __future__ import annotations

from typing import TypeAlias

from openmsmq.manager.turn.effects import Effect
from openmsmq.model.clock import Instant
from openmsmq.storage.port import Batch

Description: TypeAlias = dict[str, object]


class TurnTrace:
    """What came in since the last turn began, and descriptions of the turns that have ended."""

    __slots__ = ("_came", "_ended", "_under_way", "is_on")

    def __init__(self) -> None:
        self.is_on = False
        """Whether turns are described. It costs time, so a driver has to ask for it."""
        self._came: list[Description] = []
        """The inputs of the turn that is open."""
        self._under_way: list[Description] = []
        """The inputs of the turn that is on its way to the disk."""
        self._ended: list[Description] = []

    def came(self, kind: str, now: Instant, about: str = "") -> None:
        """Note an input: what kind it is of, and when it came."""
        noted: Description = {"input": kind, "unix_s": now.unix_s, "ticks_ms": now.ticks_ms}
        if about:
            noted["about"] = about
        self._came.append(noted)

    def passed(self) -> None:
        """What came in was of no consequence."""
        self._came = []

    def sealed(self) -> None:
        """What comes in from now on belongs to the next turn."""
        self._under_way, self._came = self._came, []

    def settled(self, ticket: int | None, effects: list[Effect], batch: Batch) -> None:
        """Describe a turn that is durable, or that had nothing to store: then without a ticket."""
        self._describe(ticket, "settled", effects, batch)

    def revoked(self, ticket: int | None, effects: list[Effect], batch: Batch) -> None:
        """Describe a turn that the disk refused, or that fell with one: that has no ticket yet."""
        self._describe(ticket, "revoked", effects, batch)

    def _describe(
        self, ticket: int | None, outcome: str, effects: list[Effect], batch: Batch
    ) -> None:
        if ticket is None:
            inputs, self._came = self._came, []
        else:
            inputs, self._under_way = self._under_way, []
        records = [*batch.changes, *batch.volatile]
        stored_bytes = sum(len(key) + len(value or b"") for key, value in records)
        stored_bytes += sum(len(value) for _, values in batch.aside for value in values)
        moved = len(batch.aside) + sum(taken.count for taken in batch.taken) + len(batch.dropped)
        self._ended.append(
            {
                "ticket": ticket,
                "outcome": outcome,
                "inputs": inputs,
                "effects": [
                    {"effect": type(effect).__name__, **effect.describe()} for effect in effects
                ],
                "records": len(records) + len(batch.forgotten) + len(batch.ranges) + moved,
                "stored_bytes": stored_bytes,
            }
        )

    def take(self) -> list[Description]:
        """Return what was described since the last time, in the order in which turns ended."""
        ended, self._ended = self._ended, []
        return ended
