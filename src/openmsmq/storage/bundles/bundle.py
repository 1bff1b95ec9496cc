"""One bundle: records that follow each other, as one value under the last of their keys.

LMDB takes about as long to put or to find a value of 32 KiB as one of a message, and fills its
pages with it; of records of little more than 1 KiB only two go into a page. So what is moved into
the base beside each other is kept there beside each other. The keys of a bundle have everything but
their last eight bytes in common: they are messages of one queue with the same priority.

A bundle is never changed. When some of its records are, it is replaced by one of what is left.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import msgspec

from openmsmq.storage.bundles.checksums import CRC_BYTES, is_whole, pack
from openmsmq.storage.port import KEY_NUMBER_BYTES

if TYPE_CHECKING:
    from openmsmq.storage.bundles.staying import Stay

BUNDLE_MAX_BYTES: Final = (8 << 12) - 64
"""A bundle ends before it is longer: with what stands before it, it fills eight pages of LMDB. To
take one record out of the middle of it, so much is written again."""

BUNDLE_MIN_COUNT: Final = 4
"""Fewer records are kept one by one."""

BUNDLE_MIN_BYTES: Final = 8 << 10
"""So are records that have fewer bytes together. They share pages, and are often changed."""

BUNDLE_MAX_COUNT: Final = 256
"""A bundle has no more records: whoever wants one decodes all."""

RECORD_COST_BYTES: Final = 8
"""What key and value need in a bundle beside their bytes, at most."""

Records = Sequence[tuple[bytes, bytes]]

_KEY: Final = itemgetter(0)
_LAST_NUMBER: Final = b"\xff" * KEY_NUMBER_BYTES

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(tuple[list[bytes], list[bytes]])


class Bundle:
    """Records with ascending keys. Values that stay in a file are read when they are wanted."""

    __slots__ = ("_read", "_values", "first", "keys", "last", "stay")

    def __init__(
        self,
        keys: list[bytes],
        values: list[bytes] | None = None,
        *,
        stay: Stay | None = None,
        read: Callable[[], list[bytes]] | None = None,
    ) -> None:
        self.keys = keys
        self._values = values
        self._read = read
        self.stay = stay
        """Where the values are, if not in the base."""
        self.first = keys[0]
        self.last = keys[-1]

    @property
    def values(self) -> list[bytes]:
        """The values, in the order of their keys."""
        if self._values is None:
            assert self._read is not None
            self._values = self._read()
        return self._values

    def __contains__(self, key: bytes) -> bool:
        place = bisect_left(self.keys, key)
        return place < len(self.keys) and self.keys[place] == key

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""
        place = bisect_left(self.keys, key)
        return self.values[place] if place < len(self.keys) and self.keys[place] == key else None

    def parts_beside(self, keys: Iterable[bytes]) -> list[tuple[int, int]]:
        """Return what is left between keys that are given in order: from one place to another."""
        parts: list[tuple[int, int]] = []
        start = 0
        for key in keys:
            stop = bisect_left(self.keys, key)
            if start < stop:
                parts.append((start, stop))
            start = bisect_right(self.keys, key)
        if start < len(self.keys):
            parts.append((start, len(self.keys)))
        return parts

    def keys_between(self, start: bytes, stop: bytes) -> list[bytes]:
        """Return the keys with `start` <= key < `stop`."""
        return self.keys[bisect_left(self.keys, start) : bisect_left(self.keys, stop)]

    def between(self, start: bytes, stop: bytes) -> list[tuple[bytes, bytes]]:
        """Return the records with `start` <= key < `stop`."""
        if start <= self.first and self.last < stop:
            return list(zip(self.keys, self.values, strict=True))
        part = slice(bisect_left(self.keys, start), bisect_left(self.keys, stop))
        return list(zip(self.keys[part], self.values[part], strict=True))


def encode(records: Records) -> tuple[bytes, bytes]:
    """Make the key and the value under which a bundle is kept."""
    keys = [key for key, _ in records]
    return keys[-1], pack(keys[-1], _ENCODER.encode((keys, [value for _, value in records])))


def decode(last: bytes, stored: bytes) -> Bundle | None:
    """Read a bundle; None if its checksum is wrong."""
    if not is_whole(last, stored):
        return None
    return Bundle(*_DECODER.decode(memoryview(stored)[:-CRC_BYTES]))


def is_worth_it(records: Records, cost_bytes: int) -> bool:
    """Whether records of which we know what they need are kept as a bundle, not one by one."""
    return (
        BUNDLE_MIN_COUNT <= len(records) <= BUNDLE_MAX_COUNT
        and BUNDLE_MIN_BYTES <= cost_bytes <= BUNDLE_MAX_BYTES
        and len(records[0][0]) > KEY_NUMBER_BYTES
    )


def divided(records: Records) -> list[tuple[Records, int]]:
    """Divide records in order into parts of which each may be a bundle, with what each needs.

    Not every part is one: what is too large or has no neighbours stands alone.
    """
    ends = list(
        accumulate([len(key) + len(value) + RECORD_COST_BYTES for key, value in records], initial=0)
    )
    parts: list[tuple[Records, int]] = []
    start = 0
    while start < len(records):
        most = min(start + BUNDLE_MAX_COUNT, len(records))
        stop = max(
            start + 1, bisect_right(ends, ends[start] + BUNDLE_MAX_BYTES, start, most + 1) - 1
        )
        common = records[start][0][:-KEY_NUMBER_BYTES]
        if not records[stop - 1][0].startswith(common):
            # The first key of what follows the queue.
            stop = bisect_right(records, common + _LAST_NUMBER, start + 1, stop, key=_KEY)
        parts.append((records[start:stop], ends[stop] - ends[start]))
        start = stop
    return parts
