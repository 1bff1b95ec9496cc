"""Dead letters by reason and destination, counted once: who looks again reads only what is new.

A page that looks again every few seconds would otherwise read the same letters each time, up to the
limits of a look. What was counted is kept for each session, because each may look into other
queues, and the queue manager is asked each time whether this one still may.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Hashable
from typing import Final
from urllib.parse import urlencode

import msgspec

from openmsmq.aio import Queue, QueueManager
from openmsmq.api.messages import QueueStatus
from openmsmq.client.messages.again import dead_letter_reason
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.client.operating.reasons import Reason, reason_of
from openmsmq.console import limits
from openmsmq.wire.errors import DecodeError

UNREADABLE: Final = "unreadable"
_BATCH_COUNT: Final = 500


class Group(msgspec.Struct, frozen=True):
    """Letters of one queue with one reason and one destination."""

    queue: str
    reason: str
    """The name of the reason; empty if it is not known."""
    destination: str

    @property
    def meaning(self) -> Reason:
        """What the reason means."""
        return reason_of(self.reason or None)

    @property
    def query(self) -> str:
        """The group as the end of an address."""
        return urlencode(msgspec.structs.asdict(self))

    @property
    def can_be_sent(self) -> bool:
        """Whether its letters say where they are to go."""
        return bool(self.destination) and self.reason != UNREADABLE


class Letters(msgspec.Struct, frozen=True):
    """What was found in a dead-letter queue."""

    queue: str
    total_count: int
    seen_count: int
    groups: list[tuple[Group, int]]
    problem: str = ""
    is_old: bool = False
    """Whether some have left since they were counted."""


class Walk:
    """A look at the letters of a queue, the oldest first, up to the limits; it can be continued."""

    def __init__(self) -> None:
        self.seen_count = 0
        self.seen_bytes = 0
        self.start = 0
        """The arrival number from which it goes on."""

    async def on(self, queue: Queue, stop: int) -> AsyncIterator[tuple[ReceivedMessage, Group]]:
        """Yield the letters below an arrival number that were not seen yet, with their groups."""
        while True:
            left = limits.LETTERS_MAX_COUNT - self.seen_count
            if self.seen_bytes >= limits.LETTERS_MAX_BYTES:
                left = 0
            # Asked even if nothing can come: who may not look any more is to hear so.
            end = stop if left > 0 else self.start
            wanted = max(1, min(_BATCH_COUNT, left))
            entries = await queue.fetch_range(self.start, end, wanted, limits.MESSAGES_PAGE_BYTES)
            for entry in entries:
                self.seen_count += 1
                self.seen_bytes += len(entry.packet)
                self.start = entry.arrival_number + 1
                message = ReceivedMessage(entry, queue.formatter)
                yield message, group_of(queue.name, message)
            if not entries or self.start >= stop:
                return


def group_of(name: str, message: ReceivedMessage) -> Group:
    """Return where a letter belongs."""
    try:
        return Group(name, dead_letter_reason(message) or "", str(message.destination or ""))
    except DecodeError:
        return Group(name, UNREADABLE, "")


class _Kept:
    """What was counted of one queue, and how the queue was then."""

    def __init__(self) -> None:
        self.looking = asyncio.Lock()
        """Two pages of one person do not count the same letters."""
        self.begin(0, 0.0)

    def begin(self, generation: int, now_s: float) -> None:
        """Forget what was counted."""
        self.generation = generation
        self.begun_s = now_s
        self.walk = Walk()
        self.counts: Counter[Group] = Counter()
        self.status: QueueStatus | None = None

    def is_good(self, generation: int, now: QueueStatus) -> bool:
        """Whether nothing has left the queue since: what was counted is still there."""
        before = self.status
        if before is None or generation != self.generation:
            # Behind another connection may be a queue manager that has started anew, and counts so.
            return False
        came_count = now.in_count - before.in_count
        return came_count >= 0 and now.message_count - before.message_count == came_count


class KeptLetters:
    """What was counted, for all sessions; which of them looked longest ago is forgotten first."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: dict[tuple[Hashable, str], _Kept] = {}

    async def look(
        self, session: Hashable, manager: QueueManager, name: str, *, is_person: bool
    ) -> Letters:
        """Count the letters of a queue: those that are new, or all if some have left.

        If nobody has done anything and the page only looks again, all are counted but now and then;
        in between it is said that the numbers are old. Raises what the queue manager says.
        """
        key = session, name
        # Who looked last stands last.
        kept = self._kept[key] = self._kept.pop(key) if key in self._kept else _Kept()
        # Before anything can be refused: who may not look must leave nothing behind without end.
        self._forget()
        async with kept.looking, manager.queue(name) as queue:
            status = await queue.properties()
            generation = manager.context.generation
            is_good = kept.is_good(generation, status)
            is_due = self._clock() - kept.begun_s >= limits.LETTERS_AGAIN_S
            if not is_good and (is_person or is_due or kept.status is None):
                kept.begin(generation, self._clock())
                is_good = True
            stop = status.last_arrival_number + 1 if is_good else kept.walk.start
            before, kept.status = kept.status, None
            async for _, group in kept.walk.on(queue, stop):
                kept.counts[group] += 1
            # Only now: what was counted in part, because something failed, is not good.
            kept.status = status if is_good else before
        self._forget()
        return Letters(
            name,
            status.message_count,
            kept.counts.total(),
            kept.counts.most_common(),
            is_old=not is_good,
        )

    def _forget(self) -> None:
        count = sum(len(kept.counts) for kept in self._kept.values())
        for key in list(self._kept):
            is_few = len(self._kept) <= limits.LETTER_LOOKS_KEPT_COUNT
            if is_few and count <= limits.LETTER_GROUPS_KEPT_COUNT:
                return
            count -= len(self._kept.pop(key).counts)
