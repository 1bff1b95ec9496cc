"""How many entries are on their way to the disk and from it, in numbers that only grow.

A turn that is sealed takes along all that began before it. When it is settled, or revoked, all of
that has ended and nothing of the next turn has: so two numbers tell whether an entry was forgotten
on its way, or counted as stored too early.
"""

from __future__ import annotations

from openmsmq.manager.turn.defects import Defect


class Passage:
    """Entries of all queues that wait for the disk."""

    __slots__ = ("arrived", "gone", "placed", "removed", "sealed_placed", "sealed_removed")

    def __init__(self) -> None:
        self.placed = 0
        """Entries that were ever placed in a queue."""
        self.arrived = 0
        """Those of them of which the disk has said whether it has them."""
        self.removed = 0
        """Entries, and ranges of them, whose removal ever began."""
        self.gone = 0
        """Those of them of which the disk has said whether it removed them."""
        self.sealed_placed = 0
        self.sealed_removed = 0

    def seal(self) -> None:
        """Let the turn that ends now take along all that waits; nothing waits from before it."""
        self.settled("before a turn is sealed")
        self.take_along()

    def take_along(self) -> None:
        """Note that all that waits now has one fate."""
        self.sealed_placed, self.sealed_removed = self.placed, self.removed

    def settled(self, when: str) -> None:
        """Raise `Defect` unless exactly what was taken along has ended."""
        if self.arrived != self.sealed_placed or self.gone != self.sealed_removed:
            raise Defect(
                f"{when}: of {self.placed} entries that were placed {self.sealed_placed} were "
                f"sealed and {self.arrived} have arrived; of {self.removed} removals "
                f"{self.sealed_removed} were sealed and {self.gone} are done"
            )
