"""Packets that are missing: when to ask for which, and when to give up. [RFC 3208 6.3]

Whoever misses a packet waits a little, so that one of many asks; asks; waits to hear that the
source has heard; then waits for the packet. Each of the last two is repeated so often and no more.
"""

from __future__ import annotations

import heapq
from enum import IntEnum
from typing import Final, Protocol

from openmsmq.protocol.pgm import limits

OVERHEARD_MAX_COUNT: Final = 2
"""How often others that ask for the same keep us from asking: what they say may be a lie."""


class Dice(Protocol):
    """Where chance comes from: the driver's, so that the same seed gives the same run."""

    def randint(self, first: int, last: int, /) -> int:
        """Return a number between two, both included."""
        ...


class Waiting(IntEnum):
    """What is waited for."""

    BACK_OFF = 0
    CONFIRMATION = 1
    DATA = 2


class Gap:
    """One packet that is missing."""

    __slots__ = ("asked_count", "confirmed_count", "due_ms", "overheard_count", "waiting")

    def __init__(self, due_ms: int) -> None:
        self.waiting = Waiting.BACK_OFF
        self.due_ms = due_ms
        self.asked_count = 0
        self.confirmed_count = 0
        self.overheard_count = 0


class Gaps:
    """What is missing of one source, by number."""

    def __init__(self, random: Dice) -> None:
        self._random = random
        self._gaps: dict[int, Gap] = {}
        # Deadlines, of which those that are no more what the gap says count for nothing.
        self._due: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._gaps)

    def __contains__(self, number: int) -> bool:
        return number in self._gaps

    def add(self, number: int, now_ms: int) -> None:
        """Note that a packet is missing."""
        gap = Gap(self._after_back_off(now_ms))
        self._gaps[number] = gap
        heapq.heappush(self._due, (gap.due_ms, number))

    def remove(self, number: int) -> bool:
        """Forget a gap; return whether there was one."""
        return self._gaps.pop(number, None) is not None

    def clear(self) -> None:
        """Forget all."""
        self._gaps.clear()
        self._due.clear()

    @property
    def next_wake_ms(self) -> int | None:
        """When `due` has something to say."""
        while self._due:
            due_ms, number = self._due[0]
            gap = self._gaps.get(number)
            if gap is not None and gap.due_ms == due_ms:
                return due_ms
            heapq.heappop(self._due)
        return None

    def confirmed(self, number: int, now_ms: int) -> None:
        """The source has said that it will repair it."""
        gap = self._gaps.get(number)
        if gap is not None and gap.waiting != Waiting.DATA:
            gap.waiting = Waiting.DATA
            self._wait(number, gap, now_ms + limits.PGM_NAK_DATA_MS)

    def overheard(self, number: int, now_ms: int) -> None:
        """Another receiver has asked for it: no need to do so as well."""
        gap = self._gaps.get(number)
        if (
            gap is not None
            and gap.waiting == Waiting.BACK_OFF
            and gap.overheard_count < OVERHEARD_MAX_COUNT
        ):
            gap.overheard_count += 1
            gap.waiting = Waiting.CONFIRMATION
            self._wait(number, gap, now_ms + limits.PGM_NAK_REPEAT_MS)

    def due(self, now_ms: int, asking_max: int) -> tuple[list[int], list[int]]:
        """Return which packets to ask for now, at most so many, and which are lost for good."""
        asking: list[int] = []
        lost: list[int] = []
        while len(asking) < asking_max:
            due_ms = self.next_wake_ms
            if due_ms is None or due_ms > now_ms:
                break
            number = heapq.heappop(self._due)[1]
            gap = self._gaps[number]
            if gap.waiting == Waiting.BACK_OFF:
                asking.append(number)
                gap.asked_count += 1
                gap.waiting = Waiting.CONFIRMATION
                self._wait(number, gap, now_ms + limits.PGM_NAK_REPEAT_MS)
                continue
            if gap.waiting == Waiting.DATA:
                gap.confirmed_count += 1
                gap.asked_count = 0
            gap.waiting = Waiting.BACK_OFF
            most = limits.PGM_NAK_RETRY_MAX_COUNT
            if gap.asked_count >= most or gap.confirmed_count >= most:
                del self._gaps[number]
                lost.append(number)
            else:
                self._wait(number, gap, self._after_back_off(now_ms))
        return asking, lost

    def _wait(self, number: int, gap: Gap, due_ms: int) -> None:
        gap.due_ms = due_ms
        heapq.heappush(self._due, (due_ms, number))

    def _after_back_off(self, now_ms: int) -> int:
        return now_ms + self._random.randint(
            limits.PGM_NAK_BACK_OFF_MIN_MS, limits.PGM_NAK_BACK_OFF_MAX_MS
        )
