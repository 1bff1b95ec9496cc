"""The store in memory, for the simulator and for tests: the same promises, no disk.

What a disk can do to a store is asked for: `crash` gives the store as it is after a loss of power,
`fail_next` lets a commit fail.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from openmsmq.storage.keys import KeyIndex
from openmsmq.storage.port import Batch, StoreFailed, StoreFull, Stretch, stretch_of

STRETCH_MAX_COUNT: Final = 7
"""Records that are given side by side: few, so that readers come to the end of many of them."""


class MemoryStore:
    """An ordered map of a durable and a volatile part; the volatile one is seen first."""

    __slots__ = ("_aside", "_closed", "_durable", "_failed", "_index", "_next_failure", "_volatile")

    def __init__(self) -> None:
        self._durable: dict[bytes, bytes] = {}
        self._volatile: dict[bytes, bytes] = {}
        self._aside: dict[bytes, list[bytes]] = {}
        self._index = KeyIndex()
        self._next_failure: tuple[type[StoreFull] | type[StoreFailed], bool] | None = None
        self._failed = False
        self._closed = False

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""
        value = self._volatile.get(key)
        return self._durable.get(key) if value is None else value

    def scan(
        self, start: bytes, stop: bytes, limit: int, *, reverse: bool = False
    ) -> list[tuple[bytes, bytes]]:
        """Return up to `limit` records with `start` <= key < `stop`, in order of their keys."""
        durable, volatile = self._durable, self._volatile
        return [
            (key, volatile[key] if key in volatile else durable[key])
            for key in self._index.between(start, stop, limit, reverse=reverse)
        ]

    def stretch(self, start: bytes, stop: bytes, count_max: int, bytes_max: int) -> Stretch | None:
        """Return the first records of a range side by side, as many as a bundle may have."""
        found: list[tuple[bytes, bytes]] = []
        for record in self.scan(start, stop, min(count_max, STRETCH_MAX_COUNT)):
            if found and len(record[0]) != len(found[0][0]):
                break
            found.append(record)
            bytes_max -= len(record[1])
            if bytes_max <= 0:
                break
        return stretch_of(found) if len(found) > 1 else None

    def commit(self, batch: Batch) -> None:
        """Apply a batch as a whole, or fail as `fail_next` asked for."""
        assert not self._closed, "a closed store was asked to commit"
        if self._failed:
            raise StoreFailed("the store in memory has failed before and accepts no commit")
        if self._next_failure is not None:
            failure, reached_disk = self._next_failure
            self._next_failure = None
            self._failed = failure is StoreFailed
            if reached_disk:
                self._apply(msgspec.structs.replace(batch, volatile=[], forgotten=[]))
            raise failure("the store in memory was told to fail")
        self._apply(batch)

    def close(self) -> None:
        """Forget the volatile part."""
        self._closed = True

    # For the simulator.

    def crash(self) -> MemoryStore:
        """Return the store as the next start finds it: only what is durable, all faults gone."""
        survivor = MemoryStore()
        survivor._apply(Batch([*self._durable.items()], aside=[*self._aside.items()]))
        return survivor

    def fail_next(
        self, failure: type[StoreFull] | type[StoreFailed], *, reached_disk: bool = False
    ) -> None:
        """Let the next commit fail; after `StoreFailed` all later ones fail too.

        A failed write may have reached the disk all the same: with `reached_disk` the durable part
        of that batch is found after `crash`.
        """
        assert failure is StoreFailed or not reached_disk, "StoreFull leaves everything unchanged"
        self._next_failure = failure, reached_disk

    def _apply(self, batch: Batch) -> None:
        durable, volatile = self._durable, self._volatile
        for start, stop in batch.ranges:
            self._delete_range(start, stop)
        self._aside.update(batch.aside)
        for taken in batch.taken:
            self._change(taken.records(self._aside[taken.name]))
        for name in batch.dropped:
            del self._aside[name]
        self._change(batch.changes)
        for key, value in batch.volatile:
            if key not in volatile and key not in durable:
                self._index.add(key)
            volatile[key] = value
        for key in batch.forgotten:
            if volatile.pop(key, None) is not None:
                self._index.remove(key)

    def _change(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        durable, volatile = self._durable, self._volatile
        for key, value in changes:
            there = (durable.pop(key, None) is not None) | (volatile.pop(key, None) is not None)
            if value is not None:
                durable[key] = value
                if not there:
                    self._index.add(key)
            elif there:
                self._index.remove(key)

    def _delete_range(self, start: bytes, stop: bytes) -> None:
        keys = self._index.between(start, stop, len(self._durable) + len(self._volatile))
        for key in keys:
            self._durable.pop(key, None)
            self._volatile.pop(key, None)
        self._index.remove_all(keys)
