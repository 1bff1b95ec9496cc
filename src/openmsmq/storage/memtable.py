"""What is in the journal but not yet in the base, and what is volatile.

Changes belong to one of two generations, like the journal files they stand in: `active` takes new
ones, `sealed` is being moved into the base. A value of None there marks a key that the base still
has but that is deleted. A younger change of a key removes the older one, so that a message that
comes and goes between two checkpoints never reaches the base.

Whole ranges of keys that are deleted stand in `gone` until the base has cleared them away. Nothing
is moved into the base before: what is there of a gone range is older than the range.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Final, Protocol

from openmsmq.storage.keys import KeyIndex

CHANGE_COST_BYTES: Final = 256
"""What moving a change into the base costs beside its value, counted as bytes."""


_START: Final = itemgetter(0)
_STOP: Final = itemgetter(1)


class BaseRecords(Protocol):
    """How the base is read."""

    def __call__(
        self,
        start: bytes,
        stop: bytes,
        limit: int,
        hidden: Sequence[Container[bytes]],
        *,
        reverse: bool,
    ) -> list[tuple[bytes, bytes]]:
        """Return up to `limit` records whose keys are in none of the `hidden` containers."""
        ...


class Memtable:
    """The younger part of an ordered map, over a base that may have older values."""

    def __init__(self, in_base: Callable[[bytes], bool]) -> None:
        self.active: dict[bytes, bytes | None] = {}
        self.sealed: dict[bytes, bytes | None] = {}
        self.volatile: dict[bytes, bytes] = {}
        self.gone: list[tuple[bytes, bytes]] = []
        """Ranges whose records in the base are deleted: in order, and none touches another."""
        self._in_base = in_base
        self._active_deletes = False
        self._sealed_deletes = False
        # The keys that have a value here; deleted ones are not in it, so that reading from the
        # front of a queue never has to step over what was received before.
        self._index = KeyIndex()
        self._queue: list[bytes] = []
        self._moved_count = 0

    def apply(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Take over the durable part of a batch."""
        active, sealed, volatile, index = self.active, self.sealed, self.volatile, self._index
        for key, value in changes:
            there = active.pop(key, None) is not None
            if sealed and sealed.pop(key, None) is not None:
                there = True
            if volatile and volatile.pop(key, None) is not None:
                there = True
            if value is not None:
                active[key] = value
                if not there:
                    index.add(key)
            else:
                if there:
                    index.remove(key)
                if self._in_base(key):
                    active[key] = None
                    self._active_deletes = True

    def apply_run(self, records: list[tuple[bytes, bytes]]) -> None:
        """Take over records with ascending keys, of which most often none was ever here."""
        if not records:
            return
        keys = [key for key, _ in records]
        # The index has no deletions: those stand under their keys.
        if (
            self._index.between(keys[0], keys[-1] + b"\0", 1)
            or (self._active_deletes and not self.active.keys().isdisjoint(keys))
            or (self._sealed_deletes and not self.sealed.keys().isdisjoint(keys))
        ):
            self.apply(records)
            return
        self.active.update(records)
        self._index.add_run(keys)

    def delete_range(self, start: bytes, stop: bytes) -> None:
        """Delete all keys with `start` <= key < `stop`, wherever they are."""
        if start >= stop:
            return
        count = len(self.active) + len(self.sealed) + len(self.volatile)
        keys = self._index.between(start, stop, count)
        for key in keys:
            self.active.pop(key, None)
            self.sealed.pop(key, None)
            self.volatile.pop(key, None)
        self._index.remove_all(keys)
        gone = self.gone
        first = bisect_left(gone, start, key=_STOP)
        last = bisect_right(gone, stop, key=_START)
        if last > first:
            start, stop = min(start, gone[first][0]), max(stop, gone[last - 1][1])
        gone[first:last] = [(start, stop)]

    def is_gone(self, key: bytes) -> bool:
        """Whether what the base has of a key is deleted with a range."""
        place = bisect_right(self.gone, key, key=_START) - 1
        return place >= 0 and key < self.gone[place][1]

    def is_untouched(self, first: bytes, last: bytes) -> bool:
        """Whether nothing here speaks of any key from the first to the last."""
        stop = last + b"\0"
        if self._index.between(first, stop, 1) or self.outside_gone(first, stop) != [(first, stop)]:
            return False
        # The index has no deletions.
        parts = ((self._active_deletes, self.active), (self._sealed_deletes, self.sealed))
        return not any(has and any(first <= key <= last for key in part) for has, part in parts)

    def outside_gone(self, start: bytes, stop: bytes) -> list[tuple[bytes, bytes]]:
        """Return the parts of a range in which records of the base count, in order."""
        parts: list[tuple[bytes, bytes]] = []
        for low, high in self.gone[bisect_right(self.gone, start, key=_STOP) :]:
            if low >= stop:
                break
            if start < low:
                parts.append((start, low))
            start = high
        if start < stop:
            parts.append((start, stop))
        return parts

    def cleared(self, rest: bytes) -> None:
        """Forget the first gone range, but for the rest that begins with a key."""
        stop = self.gone[0][1]
        self.gone[:1] = [(rest, stop)] if rest < stop else []

    def apply_volatile(self, records: Iterable[tuple[bytes, bytes]]) -> None:
        """Take over the volatile part of a batch; it hides durable values of the same keys."""
        latest = dict(records)
        volatile, active, sealed = self.volatile, self.active, self.sealed
        self._index.add_all(
            key
            for key in latest
            if key not in volatile and active.get(key) is None and sealed.get(key) is None
        )
        volatile.update(latest)

    def forget(self, keys: Iterable[bytes]) -> None:
        """Drop volatile values of keys that have no durable one."""
        pop = self.volatile.pop
        self._index.remove_all([key for key in keys if pop(key, None) is not None])

    def changed(self, key: bytes) -> bool:
        """Whether a durable change of the key is here."""
        return key in self.active or key in self.sealed

    def hiding(self, *, has_young: bool) -> list[Mapping[bytes, bytes | None]]:
        """Return the parts whose keys hide records of the base in a range.

        `has_young` says whether any key of the range has a value here. Where none has, only
        deletions hide something, and most often there are none.
        """
        if not has_young and not self._active_deletes and not self._sealed_deletes:
            return []
        parts: tuple[Mapping[bytes, bytes | None], ...] = (self.active, self.sealed, self.volatile)
        return [part for part in parts if part]

    def records(
        self, start: bytes, stop: bytes, limit: int, *, reverse: bool
    ) -> list[tuple[bytes, bytes]]:
        """Return the values that are here."""
        found: list[tuple[bytes, bytes]] = []
        for key in self._index.between(start, stop, limit, reverse=reverse):
            value = self.volatile.get(key)
            if value is None:
                value = self.active.get(key)
                if value is None:
                    value = self.sealed[key]
                    assert value is not None
            found.append((key, value))
        return found

    def scan(
        self, base: BaseRecords, start: bytes, stop: bytes, limit: int, *, reverse: bool
    ) -> list[tuple[bytes, bytes]]:
        """Return up to `limit` records, from here or the base, in order of their keys."""
        first = self._index.between(start, stop, 1)
        if not first:
            return self._old(base, start, stop, limit, reverse=reverse, has_young=False)
        if reverse:
            return self._merged(base, start, stop, limit, reverse=True)
        # In front of the first young record only deletions hide something, and a reader of a long
        # backlog is there for most of the time.
        border = first[0]
        found = self._old(base, start, border, limit, reverse=False, has_young=False)
        if len(found) == limit:
            return found
        return found + self._merged(base, border, stop, limit - len(found), reverse=False)

    def untouched(self, start: bytes, stop: bytes) -> bytes:
        """Return up to where in a range the records of the base are all there is."""
        may_hide = self._active_deletes or (self._sealed_deletes and self.sealed)
        if may_hide or self.is_gone(start):
            return start
        young = self._index.between(start, stop, 1)
        if young:
            stop = young[0]
        place = bisect_right(self.gone, start, key=_START)
        return min(stop, self.gone[place][0]) if place < len(self.gone) else stop

    def _merged(
        self, base: BaseRecords, start: bytes, stop: bytes, limit: int, *, reverse: bool
    ) -> list[tuple[bytes, bytes]]:
        """Return the same of a range in which both may have some."""
        young = self.records(start, stop, limit, reverse=reverse)
        if len(young) == limit:
            # Behind the last of these no record of the base can be wanted.
            if reverse:
                start = young[-1][0]
            else:
                stop = young[-1][0]
        old = self._old(base, start, stop, limit, reverse=reverse, has_young=bool(young))
        if not old or not young:
            return old or young
        return sorted(old + young, reverse=reverse)[:limit]

    def _old(
        self,
        base: BaseRecords,
        start: bytes,
        stop: bytes,
        limit: int,
        *,
        reverse: bool,
        has_young: bool,
    ) -> list[tuple[bytes, bytes]]:
        """Return what counts of the base."""
        hidden = self.hiding(has_young=has_young)
        if not self.gone:
            return base(start, stop, limit, hidden, reverse=reverse)
        parts = self.outside_gone(start, stop)
        old: list[tuple[bytes, bytes]] = []
        for low, high in reversed(parts) if reverse else parts:
            old += base(low, high, limit - len(old), hidden, reverse=reverse)
            if len(old) >= limit:
                break
        return old

    # The way into the base.

    def seal(self) -> None:
        """Begin a new generation; the one before must have been moved."""
        assert not self.sealed
        self.sealed, self.active = self.active, {}
        self._sealed_deletes, self._active_deletes = self._active_deletes, False
        self._queue = sorted(self.sealed)
        self._moved_count = 0

    @property
    def moved_share(self) -> float:
        """How much of the sealed generation was moved, from 0 to 1."""
        return self._moved_count / len(self._queue) if self._queue else 1.0

    def next_slice(self, cost_bytes: int) -> tuple[list[tuple[bytes, bytes | None]], int]:
        """Return the next changes to move, in order of keys, and how far the queue is then."""
        changes: list[tuple[bytes, bytes | None]] = []
        queue, sealed = self._queue, self.sealed
        for place in range(self._moved_count, len(queue)):
            if cost_bytes <= 0:
                return changes, place
            key = queue[place]
            value = sealed.get(key)
            if value is not None:
                changes.append((key, value))
                cost_bytes -= CHANGE_COST_BYTES + len(value)
            elif key in sealed:
                changes.append((key, None))
                cost_bytes -= CHANGE_COST_BYTES
        return changes, len(queue)

    def is_last(self, place: int) -> bool:
        """Whether nothing is left to move behind this place of the queue."""
        return place >= len(self._queue)

    def moved(self, changes: list[tuple[bytes, bytes | None]], place: int) -> None:
        """Forget what is in the base now; the changes are those that `next_slice` gave."""
        sealed, volatile = self.sealed, self.volatile
        for key, _ in changes:
            del sealed[key]
        self._index.remove_all(
            [key for key, value in changes if value is not None and key not in volatile]
        )
        self._moved_count = place
        if self.is_last(place):
            self._queue = []
            self._moved_count = 0

    def deletions(self, limit: int) -> list[tuple[bytes, None]]:
        """Return deletions of both generations: moving them first makes room in the base."""
        keys = [key for part in (self.sealed, self.active) for key in part if part[key] is None]
        keys.sort()
        return [(key, None) for key in keys[:limit]]

    def moved_deletions(self, changes: Iterable[tuple[bytes, None]]) -> None:
        """Forget deletions that the base has made."""
        for key, _ in changes:
            self.sealed.pop(key, None)
            self.active.pop(key, None)
