"""Finding the bundles of a base: no key of a record outside lies between the keys of a bundle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, NoReturn

import lmdb

from openmsmq.storage.bundles import bundle, staying
from openmsmq.storage.bundles.bundle import Bundle
from openmsmq.storage.bundles.checksums import is_whole
from openmsmq.storage.bundles.staying import Reader
from openmsmq.storage.bundles.stretches import first_key_of, stretch_in
from openmsmq.storage.port import StoreDamaged, Stretch

KEPT_MAX_COUNT: Final = 16
"""Bundles that stay decoded: what was read is asked for again when it is taken out, some hundred
messages at a time."""


class Bundles:
    """The bundles as one transaction sees them."""

    def __init__(
        self,
        transaction: lmdb.Transaction[bytes],
        database: lmdb._Database,
        damaged: Callable[[bytes], NoReturn],
        read: Reader,
    ) -> None:
        self._cursor: lmdb.Cursor[bytes] = transaction.cursor(db=database)
        self._damaged = damaged
        self.read: Final = read
        self._kept: dict[bytes, Bundle] = {}
        self._latest: Bundle | None = None

    def reaching(self, key: bytes) -> Bundle | None:
        """Return the first bundle that ends with a key or behind it."""
        return self._here() if self._cursor.set_range(key) else None

    def before(self, key: bytes) -> Bundle | None:
        """Return the last bundle that begins before a key."""
        cursor = self._cursor
        if cursor.set_range(key):
            found = self._here()
            if found.first < key:
                return found
            # To decode one does not move the cursor.
            there = cursor.prev()
        else:
            there = cursor.last()
        return self._here() if there else None

    def latest_around(self, key: bytes) -> Bundle | None:
        """Return the bundle that was wanted last, if a record with a key could only be in it."""
        latest = self._latest
        return latest if latest is not None and latest.first <= key <= latest.last else None

    def around(self, key: bytes) -> Bundle | None:
        """Return the bundle in which a record with a key would be."""
        found = self.reaching(key)
        return found if found is not None and found.first <= key else None

    def _here(self) -> Bundle:
        last = self._cursor.key()
        found = self._kept.get(last)
        if found is None:
            found = self._decoded(last)
            if found is None:
                self._damaged(last)
            while len(self._kept) >= KEPT_MAX_COUNT:
                del self._kept[next(iter(self._kept))]
            self._kept[last] = found
        self._latest = found
        return found

    def _decoded(self, last: bytes) -> Bundle | None:
        stored = self._cursor.value()
        if staying.is_stay(stored):
            return staying.decode(last, stored, self.read)
        return bundle.decode(last, stored)

    def stretch(
        self,
        bounds: tuple[bytes, bytes],
        limits: tuple[int, int],
        next_single: Callable[[bytes], bytes | None],
    ) -> Stretch | None:
        """Return the first records of a range if they lie in a bundle here; None if they do not.

        `next_single` gives the first key at or behind another that is outside of bundles.
        """
        start, stop = bounds
        if not self._cursor.set_range(start):
            return None
        last, stored = self._cursor.item()
        if staying.is_stay(stored):
            return None
        first = first_key_of(stored)
        if first is None or first >= stop:
            return None
        if start < first:
            single = next_single(start)
            if single is not None and single < first:
                return None
        if not is_whole(last, stored):
            self._damaged(last)
        return stretch_in(stored, start, stop, *limits)

    def every(self, stayed_bytes: Counter[int]) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield all records in order, and one without a value for a bundle that is damaged.

        Counts what stays in each file.
        """
        there = self._cursor.first()
        while there:
            last = self._cursor.key()
            found = self._decoded(last)
            if found is not None and found.stay is not None:
                stayed_bytes[found.stay.file] += found.stay.length
            try:
                values = None if found is None else found.values
            except StoreDamaged:
                values = None
            if found is None or values is None:
                yield last, None
            else:
                yield from zip(found.keys, values, strict=True)
            # Whoever reads on may have moved the cursor.
            there = self._cursor.set_key(last) and self._cursor.next()
