"""One clock for many: which of them wants to be woken first."""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

Owner = TypeVar("Owner", bound=Hashable)


def earliest(*moments_ms: int | None) -> int | None:
    """Return the first of several moments; None is never. Every turn of the loop asks for it."""
    first: int | None = None
    for moment_ms in moments_ms:
        if moment_ms is not None and (first is None or moment_ms < first):
            first = moment_ms
    return first


class Timers(Generic[Owner]):
    """When each owner is due. Setting a time again is cheap: the old one is skipped later."""

    def __init__(self) -> None:
        self._due: dict[Owner, int] = {}
        self._heap: list[tuple[int, int, Owner]] = []
        self._order = 0

    def set(self, owner: Owner, due_ms: int | None) -> None:
        """Wake an owner then, and only then; None is never."""
        if self._due.get(owner) == due_ms:
            return
        if due_ms is None:
            self._due.pop(owner, None)
            return
        self._due[owner] = due_ms
        self._order += 1
        heapq.heappush(self._heap, (due_ms, self._order, owner))
        if len(self._heap) > 4 * len(self._due) + 64:
            self._heap = [entry for entry in self._heap if self._due.get(entry[2]) == entry[0]]
            heapq.heapify(self._heap)

    def take_due(self, now_ms: int) -> list[Owner]:
        """Return the owners whose time has come; each must say anew when it is due next."""
        found: list[Owner] = []
        while self._heap and self._heap[0][0] <= now_ms:
            due_ms, _, owner = heapq.heappop(self._heap)
            if self._due.get(owner) == due_ms:
                del self._due[owner]
                found.append(owner)
        return found

    @property
    def next_ms(self) -> int | None:
        """When the first owner is due."""
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None
