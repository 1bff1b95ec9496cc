"""Random histories of a store, told once more in simple words, and back-ups of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from openmsmq.runtime.backups.contents import store_parts
from openmsmq.storage.backups.manifest import BackupOwner
from openmsmq.storage.backups.snapshot import Snapshot
from openmsmq.storage.backups.writing import Draft
from openmsmq.storage.engine import CHECKPOINT_MIN_BYTES, JournaledStore
from openmsmq.storage.files import FileOps
from openmsmq.storage.opening import open_store
from openmsmq.storage.port import Batch, Taken

State = dict[bytes, bytes]
OWNER = BackupOwner("ALPHA", "some id")

UNREAD_COUNT = 5
"""Steps before anything is read: the thread that copies may be slow to begin."""


class Quick(FileOps):
    """Files of a computer whose power never fails."""

    def sync(self, file: int) -> None:
        pass

    def write_through(self, file: int, parts: object, offset: int) -> None:
        self.write(file, parts, offset)  # type: ignore[arg-type]


def opened(directory: Path, files: FileOps | None = None) -> JournaledStore:
    """Open a store whose journal is soon full."""
    return open_store(directory, checkpoint_bytes=CHECKPOINT_MIN_BYTES, files=files or Quick())


def content(store: JournaledStore) -> State:
    return dict(store.scan(b"", b"\xff" * 4, 100_000))


def entry(number: int) -> bytes:
    return b"E" + bytes(4) + number.to_bytes(8, "big")


class History:
    """A store, what has been committed to it, and what it must contain."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.directory = directory
        self.store = opened(directory)
        self.state: State = {}
        self.aside: dict[bytes, list[bytes]] = {}
        self._random = random.Random(seed)
        self._last = 0

    def turn(self) -> None:
        """Commit one batch."""
        make = self._random.choices(
            [self._change, self._set_aside, self._take, self._drop, self._clear, self._large],
            [12, 4, 3, 1, 1, 1],
        )[0]
        self.store.commit(make())

    def _value(self) -> bytes:
        return self._random.randbytes(self._random.randint(20, 500))

    def _change(self) -> Batch:
        changes: list[tuple[bytes, bytes | None]] = []
        for _ in range(self._random.randint(1, 4)):
            key = b"K%02d" % self._random.randrange(40)
            changes.append((key, None if self._random.random() < 0.3 else self._value()))
        for key, value in changes:
            if value is None:
                self.state.pop(key, None)
            else:
                self.state[key] = value
        return Batch(changes)

    def _set_aside(self) -> Batch:
        self._last += 1
        name = b"n%d" % self._last
        self.aside[name] = [self._value() for _ in range(3)]
        return Batch([self._noted(name)], aside=[(name, self.aside[name])])

    def _noted(self, name: bytes) -> tuple[bytes, bytes]:
        self.state[b"T" + name] = b"aside"
        return b"T" + name, b"aside"

    def _take(self) -> Batch:
        if not self.aside:
            return self._set_aside()
        name = self._random.choice(sorted(self.aside))
        values = self.aside.pop(name)
        self._last += 10
        for place, value in enumerate(values):
            self.state[entry(self._last + place)] = b"facts " + value
        del self.state[b"T" + name]
        taken = [Taken(name, 0, len(values), entry(self._last), b"facts ")]
        return Batch([(b"T" + name, None)], taken=taken, dropped=[name])

    def _drop(self) -> Batch:
        if not self.aside:
            return self._change()
        name = self._random.choice(sorted(self.aside))
        del self.aside[name], self.state[b"T" + name]
        return Batch([(b"T" + name, None)], dropped=[name])

    def _clear(self) -> Batch:
        start, stop = entry(0), entry(self._random.randrange(self._last + 2))
        for key in [key for key in self.state if start <= key < stop]:
            del self.state[key]
        return Batch(ranges=[(start, stop)])

    def _large(self) -> Batch:
        """One that needs a longer file of the journal than there is."""
        self.state[b"L"] = self._random.randbytes(CHECKPOINT_MIN_BYTES)
        return Batch([(b"L", self.state[b"L"])])

    def check(self) -> None:
        """See whether the store has what it must have, also after a crash."""
        assert content(self.store) == self.state
        self.store.abandon()
        self.store = opened(self.directory)
        assert content(self.store) == self.state


def copying(snapshot: Snapshot, draft: Draft) -> Iterator[int]:
    """Copy a snapshot step by step; the first steps are before anything is read."""
    draft.begin()
    yield from [0] * UNREAD_COUNT
    for part in store_parts(snapshot.parts()):
        yield from draft.copy(part)


def take_all(store: JournaledStore, aside: dict[bytes, list[bytes]]) -> None:
    """Take everything that was set aside, and see whether it is as it was."""
    for number, (name, values) in enumerate(sorted(aside.items())):
        key = b"Z" + bytes(3) + number.to_bytes(8, "big") + bytes(8)
        store.commit(Batch(taken=[Taken(name, 0, len(values), key)], dropped=[name]))
        assert [value for _, value in store.scan(key, key + b"\xff", 100)][:1] == values[:1]
        assert store.get(key[:-1] + b"\x02") == values[2]
