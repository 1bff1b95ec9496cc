"""The store port: an ordered map from bytes to bytes whose changes are atomic and durable.

The queue manager decides what is stored and under which keys; a store only promises that

* a batch is applied as a whole or not at all,
* when `commit` returns, its durable part survives a crash and a loss of power,
* what is read is what was written, or `StoreDamaged` is raised.

A key has 1 to 511 bytes and lives in one of two places: durable, or volatile (in memory only, gone
at the next start). Readers see one ordered map of both: a volatile value hides a durable one, and
a deletion removes both. Within a batch, `ranges` are deleted first, then come `changes`, then
`volatile`, and `forgotten` last: it drops keys that have a volatile value and no durable one.
"""

from __future__ import annotations

from typing import Protocol

import msgspec


class StoreError(Exception):
    """The store could not do what was asked; the sentence says what, where and what to do."""


class StoreFull(StoreError):
    """No space is left. Nothing of the batch was applied; the store goes on working."""


class StoreFailed(StoreError):
    """The disk failed. What the batch left behind is unknown, so no further commit is accepted."""


class StoreDamaged(StoreError):
    """What was read is not what was written."""


class StoreTooNew(StoreError):
    """The store was written by a later version of this software."""


class StoreInUse(StoreError):
    """Another process has the store open."""


class Batch(msgspec.Struct):
    """What one turn of the queue manager changes."""

    changes: list[tuple[bytes, bytes | None]] = []
    """Durable, in order: a value to put, or None to delete the key wherever it lives."""
    volatile: list[tuple[bytes, bytes]] = []
    """To be kept in memory only; deleted like any other key through `changes`."""
    forgotten: list[bytes] = []
    """Keys that live in memory only and are dropped, last of all. It costs less than a deletion,
    which has to look for the key on the disk; a key that has a durable value must be deleted."""
    ranges: list[tuple[bytes, bytes]] = []
    """Every key with start <= key < stop is deleted, durable or not, before anything else. To say
    so takes no longer for a million keys than for one; the store clears them away later."""

    def __bool__(self) -> bool:
        return bool(self.changes or self.volatile or self.forgotten or self.ranges)


class StoreReader(Protocol):
    """What the queue manager may ask of a store. Reads see every batch committed before."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""
        ...

    def scan(
        self, start: bytes, stop: bytes, limit: int, *, reverse: bool = False
    ) -> list[tuple[bytes, bytes]]:
        """Return up to `limit` records with `start` <= key < `stop`, in order of their keys.

        With `reverse` the greatest key comes first.
        """
        ...


class Store(StoreReader, Protocol):
    """A store a driver owns: it commits what the queue manager asks for."""

    def commit(self, batch: Batch) -> None:
        """Apply a batch; on return its durable changes survive a loss of power."""
        ...

    def close(self) -> None:
        """Release everything; nothing that was committed is lost."""
        ...
