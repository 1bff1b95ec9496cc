"""A disk: what is durable, what is on its way, and what it refuses.

Between the moment a batch is handed over and the moment it is durable a crash may come; then the
whole batch is found at the next start, or nothing of it. That is what the store promises, and all
it promises.
"""

from __future__ import annotations

from openmsmq.storage.memory import MemoryStore
from openmsmq.storage.port import Batch


class Disk:
    """The store of one node, and how slow and how full it is."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.full_until_ms = 0
        self.slow_until_ms = 0
        self.fails_next = False
        """Whether the next write ends the store: nobody knows then what reached the disk."""
        self.writing: Batch | None = None
        """Handed over, not durable yet."""

    def write(self) -> Batch:
        """Make what is being written durable, and give it."""
        batch = self.writing
        assert batch is not None, "nothing is being written"
        self.writing = None
        self.store.commit(batch)
        return batch

    def refuse(self) -> None:
        """Forget what is being written: there is no room for it."""
        self.writing = None

    def lose_power(self, *, reached: bool) -> Batch | None:
        """Keep only what is durable; with `reached` that includes what was just being written.

        Gives the batch that became durable so late that nobody heard of it.
        """
        batch = self.writing if reached else None
        self.writing = None
        if batch is not None:
            self.store.commit(batch)
        self.store = self.store.crash()
        self.fails_next = False
        return batch
