"""The store port: an ordered map from bytes to bytes whose changes are atomic and durable.

The queue manager decides what is stored and under which keys; a store only promises that

* a batch is applied as a whole or not at all,
* when `commit` returns, its durable part survives a crash and a loss of power,
* what is read is what was written, or `StoreDamaged` is raised.

A key has 1 to 511 bytes and lives in one of two places: durable, or volatile (in memory only, gone
at the next start). Readers see one ordered map of both: a volatile value hides a durable one, and
a deletion removes both. Within a batch, `ranges` are deleted first, then come `changes`, then
`volatile`, and `forgotten` last: it drops keys that have a volatile value and no durable one.

Values may be set aside before it is known under which keys they will be, or whether at all. They
are durable and no reader sees them; a later batch takes them, which writes none of them again.
Within a batch this comes behind `ranges` and before `changes`: `aside`, then `taken`, then
`dropped`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

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


_ENCODER: Final = msgspec.msgpack.Encoder()

KEY_NUMBER_BYTES: Final = 8
"""The end of the first key of what is taken: a number that goes up from record to record."""


class Taken(msgspec.Struct, frozen=True):
    """Values that were set aside, one behind the other, and become records."""

    name: bytes
    first: int
    """The place of the first one among the values of this name."""
    count: int
    key: bytes
    """The key of the first one."""
    prefix: bytes = b""
    """What comes before each value."""

    def key_of(self, place: int) -> bytes:
        """Return the key of one of the records, counted from the first."""
        number = int.from_bytes(self.key[-KEY_NUMBER_BYTES:], "big") + place
        return self.key[:-KEY_NUMBER_BYTES] + number.to_bytes(KEY_NUMBER_BYTES, "big")

    def records(self, values: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
        """Return the records, given all values of the name."""
        head, prefix = self.key[:-KEY_NUMBER_BYTES], self.prefix
        number = int.from_bytes(self.key[-KEY_NUMBER_BYTES:], "big")
        return [
            (head + key_number.to_bytes(KEY_NUMBER_BYTES, "big"), prefix + value)
            for key_number, value in enumerate(values[self.first : self.first + self.count], number)
        ]


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
    aside: list[tuple[bytes, list[bytes]]] = []
    """Values to be set aside under a name that no other values have."""
    taken: list[Taken] = []
    """Values that become records; they stay aside until they are dropped."""
    dropped: list[bytes] = []
    """Names whose values nobody will take any more."""

    @property
    def moves(self) -> bool:
        """Whether values are set aside, taken or dropped."""
        return bool(self.aside or self.taken or self.dropped)

    def __bool__(self) -> bool:
        return bool(self.changes or self.volatile or self.forgotten or self.ranges or self.moves)


class Stretch(msgspec.Struct, frozen=True):
    """Records that follow each other, side by side, so that nobody has to look at each."""

    keys: bytes
    """Each key as MessagePack has bytes; all are equally long."""
    sizes: list[int]
    """How long each of the values is there."""
    values: bytes | memoryview
    """Each value as MessagePack has bytes."""
    values_bytes: int
    """How many bytes the values have, without what MessagePack puts before each."""


def stretch_of(records: Sequence[tuple[bytes, bytes]]) -> Stretch:
    """Put records side by side."""
    values = [value for _, value in records]
    lengths = list(map(len, values))
    sizes = [length + (2 if length <= 0xFF else 3 if length <= 0xFFFF else 5) for length in lengths]
    joined = _ENCODER.encode(values)
    # What stands before the elements of the list is what is left.
    begin = len(joined) - sum(sizes)
    keys = _ENCODER.encode([key for key, _ in records])
    return Stretch(keys[begin:], sizes, memoryview(joined)[begin:], sum(lengths))


def head_bytes(size: int) -> int:
    """Return how many bytes stand before a value which has so many with them."""
    return 2 if size <= 0xFF + 2 else 3 if size <= 0xFFFF + 3 else 5


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

    def stretch(self, start: bytes, stop: bytes, count_max: int, bytes_max: int) -> Stretch | None:
        """Return the first records with `start` <= key < `stop` if they lie side by side.

        They are up to `count_max`, and end at the latest with the one that reaches `bytes_max`.
        None says nothing of what is there: `scan` does.
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
