"""What a store has at one moment, held for whoever copies it while the store goes on.

A snapshot is taken between two batches. A start from its parts does what a start after a crash at
that moment would do, and finds the same:

* the base as of its last transaction: LMDB keeps the pages that an open reader can reach;
* the journal up to the end of its last batch: a file is only written behind that, until it is
  begun anew, and before that the store calls `keep_journal`, which reads it;
* the files with what is set aside that such a start would read: none is used again or removed.

So nothing that is to be copied changes, however long that takes. `release` ends it.
"""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec

from openmsmq.storage.engine import JournaledStore
from openmsmq.storage.files import FileOps, disk_error
from openmsmq.storage.layout import FORMAT_NAME
from openmsmq.storage.port import StoreError


class Part(msgspec.Struct, frozen=True):
    """A file to be copied."""

    name: str
    """Its path in the copy."""
    source: Path
    size_bytes: int
    """So many bytes of it, or `head`, are copied."""
    head: bytes = b""
    """What stands at its start in the copy, whatever the source has there by now."""
    padded_bytes: int = 0
    """The copy is at least so long; behind what is copied come zeroes."""
    may_end: bool = False
    """Whether the source may have become shorter or be gone, which is no damage."""

    @property
    def length_bytes(self) -> int:
        """How long the copy is."""
        return max(self.size_bytes, self.padded_bytes)


class Snapshot:
    """A moment of a store. Made and released where the store is used; copied in any thread."""

    def __init__(self, store: JournaledStore) -> None:
        """Hold what the store has now; the snapshot before must have been released.

        Raises `StoreFull` with nothing changed, or `StoreFailed`.
        """
        store.catch_up()
        base, journal, aside = store.parts
        self._store = store
        self._journal_lock = threading.Lock()
        self._journal_data: dict[Path, bytes] = {}
        self._problem: StoreError | None = None
        self.is_released = False
        self.sequence = journal.last_sequence
        """The last batch that it has."""
        description = base.path.with_name(FORMAT_NAME)
        description_bytes = description.stat().st_size
        head, used_bytes = base.hold()
        self._journal = journal.extents()
        self._others = [
            Part(FORMAT_NAME, description, description_bytes),
            *(Part(path.name, path, size_bytes) for path, size_bytes in aside.hold()),
            Part(base.path.name, base.path, used_bytes, head),
        ]
        store.rewriting.append(self.keep_journal)

    @property
    def total_bytes(self) -> int:
        """How much there is to copy."""
        return sum(size for _, _, size in self._journal) + sum(
            part.length_bytes for part in self._others
        )

    def parts(self) -> list[Part]:
        """Return what is to be copied; the journal is read by then."""
        self.keep_journal()
        if self._problem is not None:
            raise self._problem
        journal = [
            Part(path.name, path, used, self._journal_data[path], padded_bytes=size)
            for path, used, size in self._journal
        ]
        return [*journal, *self._others]

    def keep_journal(self) -> None:
        """Read the journal, if nobody has: from now on its files may be written over.

        The store calls it in the middle of a commit, which must not fail for a copy's sake.
        """
        with self._journal_lock:
            if self.is_released or self._journal_data or self._problem is not None:
                return
            try:
                self._journal_data = {
                    path: _read(path, used_bytes) for path, used_bytes, _ in self._journal
                }
            except StoreError as error:
                self._problem = error

    def release(self) -> None:
        """Let the store use everything again."""
        with self._journal_lock:
            if self.is_released:
                return
            self.is_released = True
            self._journal_data.clear()
        base, _, aside = self._store.parts
        self._store.rewriting.remove(self.keep_journal)
        base.let_go()
        aside.let_go(base.applied)


def _read(path: Path, length: int) -> bytes:
    files = FileOps()
    try:
        file = files.open(path, write=False)
        try:
            return files.read(file, length, 0)
        finally:
            files.close(file)
    except OSError as error:
        raise disk_error(error, "read the journal", path) from error
