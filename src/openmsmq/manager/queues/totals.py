"""How many bytes a queue manager holds, on the disk and in memory, and how many it may hold."""

from __future__ import annotations

from typing import Final

from openmsmq.manager.turn.passage import Passage
from openmsmq.model.limits import (
    EXPRESS_OVERHEAD_BYTES,
    QUOTA_PARTS_COUNT,
    STRANGERS_QUOTA_PARTS_COUNT,
    UNLIMITED_KB,
)

KILOBYTE: Final = 1024


class Totals:
    """The bytes of all messages of a queue manager, and how many it may hold."""

    __slots__ = (
        "bytes",
        "express_bytes",
        "express_memory_kb",
        "passage",
        "quota_kb",
        "staged_bytes",
    )

    def __init__(self, passage: Passage | None = None) -> None:
        self.passage = passage or Passage()
        """How many entries of all queues wait for the disk."""
        self.bytes = 0
        self.express_bytes = 0
        """What express messages take in memory, Python's own needs included."""
        self.staged_bytes = 0
        """What transactions will send; it counts like what is there."""
        self.quota_kb = UNLIMITED_KB
        """What `take_quotas` says."""
        self.express_memory_kb = UNLIMITED_KB
        """What `take_quotas` says."""

    def limit(self, quota_kb: int, express_memory_kb: int) -> None:
        """Say how much there may be from now on."""
        self.quota_kb = quota_kb
        self.express_memory_kb = express_memory_kb

    def add(self, size: int) -> None:
        """Account for bytes that come, or with less than 0 go."""
        self.bytes += size

    def stage(self, size: int) -> None:
        """Account for bytes that a transaction will send, or with less than 0 does not."""
        self.staged_bytes += size

    def add_express(self, count: int, size: int) -> None:
        """Account for express messages that come, or with less than 0 go."""
        self.express_bytes += size + count * EXPRESS_OVERHEAD_BYTES

    def room_for(self, size: int) -> bool:
        """Whether so many more bytes stay within the quota."""
        quota_kb = self.quota_kb
        used = self.bytes + self.staged_bytes
        return quota_kb == UNLIMITED_KB or used + size <= quota_kb * KILOBYTE

    def room_for_strangers(self, size: int, parts_count: int = STRANGERS_QUOTA_PARTS_COUNT) -> bool:
        """Whether so many more bytes leave to applications and known peers what is theirs."""
        quota_kb = self.quota_kb
        if quota_kb == UNLIMITED_KB:
            return True
        used = self.bytes + self.staged_bytes
        return used + size <= quota_kb * KILOBYTE // QUOTA_PARTS_COUNT * parts_count

    def memory_for(self, count: int, size: int, *, strangers: bool = False) -> bool:
        """Whether there is memory for so many express messages with so many bytes together."""
        limit_kb = min(self.express_memory_kb, self.quota_kb)
        if limit_kb == UNLIMITED_KB:
            return True
        limit = limit_kb * KILOBYTE
        if strangers:
            limit = limit // QUOTA_PARTS_COUNT * STRANGERS_QUOTA_PARTS_COUNT
        return self.express_bytes + size + count * EXPRESS_OVERHEAD_BYTES <= limit


class Share(Totals):
    """A part of the bytes of a queue manager that is counted for itself as well."""

    __slots__ = ("whole",)

    def __init__(self, whole: Totals) -> None:
        super().__init__(whole.passage)
        self.whole = whole

    def leave(self, size: int) -> None:
        """Account for bytes that stay in the whole, and are not of this share any more."""
        self.bytes -= size

    def add(self, size: int) -> None:
        """Account for bytes here and in the whole."""
        self.bytes += size
        self.whole.add(size)

    def add_express(self, count: int, size: int) -> None:
        """Account for express messages in the whole: memory has no shares of its own."""
        self.whole.add_express(count, size)
