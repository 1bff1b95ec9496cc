"""Reading records in order, those in bundles and those outside of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Container, Sequence
from operator import itemgetter
from typing import Final

from openmsmq.storage.bundles.bundle import Bundle
from openmsmq.storage.bundles.hidden_runs import HiddenRuns, Run
from openmsmq.storage.bundles.seeking import Bundles

Record = tuple[bytes, bytes]
Single = Callable[[bytes, bytes, int], list[Record]]
"""Gives up to so many visible records of a range outside of bundles, in the wanted order."""

_KEY: Final = itemgetter(0)
_BEHIND: Final = b"\0"
"""Makes of a key the next one that there could be."""


class Reading:
    """One read of a range: what is found, and where it goes on."""

    def __init__(
        self,
        bundles: Bundles,
        runs: HiddenRuns,
        bounds: tuple[bytes, bytes],
        limit: int,
        hidden: Sequence[Container[bytes]],
    ) -> None:
        self._bundles = bundles
        self._runs = runs
        self._start, self._stop = bounds
        self._limit = limit
        self._hidden = hidden
        self._found: list[Record] = []
        # The hidden run that ends where the read is.
        self._run: Run | None = None

    def forwards(self, single: Single) -> list[Record]:
        """Return the first records of the range."""
        while self._start < self._stop and self._wanted:
            bundle = self._bundles.reaching(self._start)
            border = self._stop if bundle is None else min(self._stop, bundle.first)
            self._add(single(self._start, border, self._wanted))
            if bundle is None:
                break
            self._start = max(self._start, border)
            self._skip(bundle, reverse=False)
            self._take(bundle.between(self._start, self._stop))
            behind = max(bundle.last, self._run[1] if self._run else b"") + _BEHIND
            self._start = max(self._start, behind)
        return self._found

    def backwards(self, single: Single) -> list[Record]:
        """Return the last records of the range, the last one first."""
        while self._start < self._stop and self._wanted:
            bundle = self._bundles.before(self._stop)
            border = self._start
            if bundle is not None:
                border = max(self._start, bundle.last + _BEHIND)
            self._add(single(border, self._stop, self._wanted))
            if bundle is None:
                break
            self._stop = min(self._stop, border)
            self._skip(bundle, reverse=True)
            self._take(bundle.between(self._start, self._stop)[::-1])
            self._stop = min(self._stop, bundle.first, self._run[0] if self._run else bundle.first)
        return self._found

    @property
    def _wanted(self) -> int:
        return self._limit - len(self._found)

    def _add(self, visible: list[Record]) -> None:
        if visible:
            self._found += visible
            self._run = None

    def _skip(self, bundle: Bundle, *, reverse: bool) -> None:
        """Go behind the hidden run in which the next records of a bundle are."""
        inside = bundle.keys_between(self._start, self._stop) if self._runs else []
        run = self._runs.at(inside[-1 if reverse else 0]) if inside else None
        if run is None:
            return
        self._run = run
        if reverse:
            self._stop = min(self._stop, run[0])
        else:
            self._start = max(self._start, run[1] + _BEHIND)

    def _take(self, inside: list[Record]) -> None:
        """Take what is visible of a bundle, and remember what is hidden in front of it."""
        if not self._hidden:
            self._add(inside[: self._wanted])
            return
        for place in range(0, len(inside), self._limit):
            if not self._wanted:
                return
            part = visible = inside[place : place + self._limit]
            for container in self._hidden:
                visible = [record for record in visible if record[0] not in container]
            lead = part.index(visible[0]) if visible else len(part)
            if lead and not self._found:
                self._run = self._runs.remember(part[0][0], part[lead - 1][0], self._run)
            self._add(visible[: self._wanted])


def cut_to(
    page: list[tuple[bytes, bytes]], start: bytes, stop: bytes, *, reverse: bool
) -> list[tuple[bytes, bytes]]:
    """Cut a page at the end of the range."""
    if not page:
        return page
    last = page[-1][0]
    if reverse:
        return page if last >= start else [item for item in page if item[0] >= start]
    return page if last < stop else page[: bisect_left(page, stop, key=_KEY)]
