"""Deadlines: which messages leave their queue next, because nobody received them in time."""

from __future__ import annotations

from openmsmq.model.limits import INFINITE_S
from openmsmq.storage import records
from openmsmq.storage.port import StoreReader


class Deadlines:
    """The notes of all entries that expire, in the order in which they do.

    The notes are in the store; in memory is only from where to look on. Notes before that place
    are dealt with: their entry is on its way out, or a transaction holds it. What becomes of a
    held one is decided when it is given back (C-125), and `note` is called again.
    """

    def __init__(self, reader: StoreReader) -> None:
        self._reader = reader
        self._start, self._end = records.kind_range(b"D")
        self.next_s = self._first_from(self._start)
        """No message expires before; `INFINITE_S` when none does."""

    def note(self, deadline_s: int, queue: int, lookup_id: int) -> None:
        """Look at an entry that readers can take, when its time comes."""
        self._start = min(self._start, records.deadline_key(deadline_s, queue, lookup_id))
        self.next_s = min(self.next_s, deadline_s)

    def take_due(self, unix_s: int, limit: int) -> list[bytes]:
        """Return the next notes whose time has come, up to `limit` of them."""
        stop = records.deadline_key(min(unix_s + 1, INFINITE_S), 0, 0)
        if self._start >= stop:
            return []
        keys = [key for key, _ in self._reader.scan(self._start, stop, limit)]
        self._start = stop if len(keys) < limit else keys[-1] + b"\0"
        self.next_s = self._first_from(self._start)
        return keys

    def _first_from(self, start: bytes) -> int:
        first = self._reader.scan(start, self._end, 1)
        return records.read_deadline_key(first[0][0])[0] if first else INFINITE_S
