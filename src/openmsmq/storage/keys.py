"""An ordered set of keys in memory, made for queues: keys arrive in order and leave from the front.

Keys are grouped by their first bytes (a kind and a queue), and each group is a list of short
sorted chunks. So the usual insertion is an append, the usual removal takes the first key of a
chunk, and no operation moves more than one chunk.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from operator import itemgetter
from typing import Final

PREFIX_BYTES: Final = 8
"""Keys that agree in so many first bytes share a group."""

CHUNK_MAX_COUNT: Final = 512
"""Keys in one chunk; a chunk that grows further is split."""

_FIRST: Final = itemgetter(0)


class KeyIndex:
    """The keys of an in-memory map in their order. A key is added once and removed once."""

    __slots__ = ("_groups", "_prefixes")

    def __init__(self) -> None:
        self._groups: dict[bytes, list[list[bytes]]] = {}
        self._prefixes: list[bytes] = []

    def add(self, key: bytes) -> None:
        """Take in a key that is not there."""
        prefix = key[:PREFIX_BYTES]
        chunks = self._groups.get(prefix)
        if chunks is None:
            self._groups[prefix] = [[key]]
            insort(self._prefixes, prefix)
            return
        last = chunks[-1]
        if key > last[-1]:
            if len(last) < CHUNK_MAX_COUNT:
                last.append(key)
            else:
                chunks.append([key])
            return
        position = max(bisect_right(chunks, key, key=_FIRST) - 1, 0)
        chunk = chunks[position]
        insort(chunk, key)
        if len(chunk) > CHUNK_MAX_COUNT:
            half = len(chunk) // 2
            chunks.insert(position + 1, chunk[half:])
            del chunk[half:]

    def add_all(self, keys: Iterable[bytes]) -> None:
        """Take in keys that are not there; one behind the other is the usual case."""
        last: list[bytes] = []
        prefix = b""
        for key in keys:
            if key[:PREFIX_BYTES] == prefix and key > last[-1] and len(last) < CHUNK_MAX_COUNT:
                last.append(key)
            else:
                self.add(key)
                prefix = key[:PREFIX_BYTES]
                last = self._groups[prefix][-1]

    def add_run(self, keys: list[bytes]) -> None:
        """Take in ascending keys, between the first and the last of which there is none yet."""
        prefix = keys[0][:PREFIX_BYTES]
        chunks = self._groups.get(prefix, [])
        if keys[-1][:PREFIX_BYTES] != prefix or (chunks and chunks[-1][-1] > keys[0]):
            self.add_all(keys)
            return
        if not chunks:
            self._groups[prefix] = chunks
            insort(self._prefixes, prefix)
        for place in range(0, len(keys), CHUNK_MAX_COUNT):
            chunks.append(keys[place : place + CHUNK_MAX_COUNT])

    def remove_all(self, keys: list[bytes]) -> None:
        """Drop keys that are there; the first ones of a group are the usual case."""
        place, count = 0, len(keys)
        while place < count:
            chunk = self._groups[keys[place][:PREFIX_BYTES]][0]
            run = min(len(chunk), count - place)
            if chunk[:run] == keys[place : place + run]:
                # The last one goes the long way, which clears an empty chunk away.
                del chunk[: run - 1]
                place += run - 1
            self.remove(keys[place])
            place += 1

    def remove(self, key: bytes) -> None:
        """Drop a key that is there."""
        prefix = key[:PREFIX_BYTES]
        chunks = self._groups[prefix]
        position = 0
        chunk = chunks[0]
        if chunk[0] == key:
            del chunk[0]
        else:
            position = bisect_right(chunks, key, key=_FIRST) - 1
            chunk = chunks[position]
            place = bisect_left(chunk, key)
            assert chunk[place] == key
            del chunk[place]
        if not chunk:
            del chunks[position]
            if not chunks:
                del self._groups[prefix]
                del self._prefixes[bisect_left(self._prefixes, prefix)]

    def between(
        self, start: bytes, stop: bytes, limit: int, *, reverse: bool = False
    ) -> list[bytes]:
        """Return up to `limit` keys with `start` <= key < `stop`; or from the end."""
        prefixes = self._prefixes
        low = bisect_left(prefixes, start[:PREFIX_BYTES])
        high = bisect_left(prefixes, stop)
        found: list[bytes] = []
        if reverse:
            for place in range(high - 1, low - 1, -1):
                if len(found) >= limit:
                    break
                self._collect_backward(self._groups[prefixes[place]], start, stop, limit, found)
        else:
            for place in range(low, high):
                if len(found) >= limit:
                    break
                self._collect_forward(self._groups[prefixes[place]], start, stop, limit, found)
        return found

    @staticmethod
    def _collect_forward(
        chunks: list[list[bytes]], start: bytes, stop: bytes, limit: int, found: list[bytes]
    ) -> None:
        first = max(bisect_right(chunks, start, key=_FIRST) - 1, 0)
        for place in range(first, len(chunks)):
            chunk = chunks[place]
            missing = limit - len(found)
            if missing <= 0 or chunk[0] >= stop:
                return
            low = bisect_left(chunk, start) if chunk[0] < start else 0
            high = len(chunk) if chunk[-1] < stop else bisect_left(chunk, stop)
            found += chunk[low : min(high, low + missing)]

    @staticmethod
    def _collect_backward(
        chunks: list[list[bytes]], start: bytes, stop: bytes, limit: int, found: list[bytes]
    ) -> None:
        last = bisect_left(chunks, stop, key=_FIRST) - 1
        for place in range(last, -1, -1):
            chunk = chunks[place]
            missing = limit - len(found)
            if missing <= 0 or chunk[-1] < start:
                return
            low = bisect_left(chunk, start) if chunk[0] < start else 0
            high = len(chunk) if chunk[-1] < stop else bisect_left(chunk, stop)
            taken = chunk[max(low, high - missing) : high]
            taken.reverse()
            found += taken
