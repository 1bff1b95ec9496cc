"""Records that were taken as they had been set aside, until they are in the base.

Which of them the base need not write again is known here: those whose file has them as they are.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Final

import msgspec
from zlib_ng.zlib_ng import crc32

from openmsmq.storage.bundles.bundle import Records
from openmsmq.storage.bundles.staying import Stay
from openmsmq.storage.frames import AsideNote
from openmsmq.storage.port import KEY_NUMBER_BYTES, Taken

REMEMBERED_MAX_COUNT: Final = 1 << 21
"""Records of which we know the place in a file; beyond it the oldest runs are forgotten, and written
again like all others. Eight bytes of memory each."""

_SHORT_MAX_BYTES: Final = 0xFF
_MIDDLE_MAX_BYTES: Final = 0xFFFF
_FEW_MAX_COUNT: Final = 15
"""Up to so many values, MessagePack begins a list of them with one byte; then with three, or five."""

_ENCODER: Final = msgspec.msgpack.Encoder()
_FIRST: Final = attrgetter("first")


def _head_bytes(length: int) -> int:
    """Return how long MessagePack makes what stands before a value."""
    return 2 if length <= _SHORT_MAX_BYTES else 3 if length <= _MIDDLE_MAX_BYTES else 5


def _list_head_bytes(count: int) -> int:
    return 1 if count <= _FEW_MAX_COUNT else 3 if count <= _MIDDLE_MAX_BYTES else 5


class _Run:
    """All values of a name, which became records with keys that follow each other."""

    __slots__ = ("ends", "first", "last", "note", "prefix")

    def __init__(self, taken: Taken, note: AsideNote, ends: array[int]) -> None:
        head, number = taken.key[:-KEY_NUMBER_BYTES], _number(taken.key)
        self.first = taken.key
        self.last = head + (number + taken.count - 1).to_bytes(KEY_NUMBER_BYTES, "big")
        self.note = note
        self.prefix = taken.prefix
        self.ends = ends


class Runs:
    """What was taken since the last two generations of the memtable began."""

    def __init__(self) -> None:
        self._active: list[_Run] = []
        self._sealed: list[_Run] = []
        self._rewritten: set[bytes] = set()
        self._sealed_rewritten: set[bytes] = set()

    def take(self, taken: Taken, note: AsideNote, values: Sequence[bytes], start: int) -> None:
        """Know of values that become records; the record in their file has its payload at `start`.

        What takes only a part of a name is not remembered: its file would stay for a part, too.
        """
        if taken.first or taken.count != len(values) or not values:
            return
        name_bytes = len(taken.name) + _head_bytes(len(taken.name))
        start += _list_head_bytes(len(values) + 1) + name_bytes
        sizes = [len(value) + _head_bytes(len(value)) for value in values]
        run = _Run(taken, note, array("Q", accumulate(sizes, initial=start)))
        active = self._active
        if active and active[-1].last >= run.first:
            active[:] = [one for one in active if one.last < run.first or run.last < one.first]
        active.append(run)
        count = sum([len(one.ends) for one in active])
        while count > REMEMBERED_MAX_COUNT:
            count -= len(active.pop(0).ends)

    def changed(self, changes: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Know of records that are not as they were taken any more."""
        if not self._active:
            return
        low = min(run.first for run in self._active)
        high = max(run.last for run in self._active)
        self._rewritten.update(
            key for key, value in changes if value is not None and low <= key <= high
        )

    def seal(self) -> None:
        """Begin a new generation, as the memtable does."""
        self._sealed, self._active = sorted(self._active, key=_FIRST), []
        self._sealed_rewritten, self._rewritten = self._rewritten, set()

    def moved(self) -> None:
        """Forget the older generation: the base has it."""
        self._sealed = []
        self._sealed_rewritten = set()

    def stay_of(self, records: Records) -> tuple[Stay, int] | None:
        """Return where records of the older generation are, and how long their file is.

        None if they are not side by side in one file as they are.
        """
        first, last = records[0][0], records[-1][0]
        place = bisect_right(self._sealed, first, key=_FIRST) - 1
        if place < 0:
            return None
        run = self._sealed[place]
        if (
            first[:-KEY_NUMBER_BYTES] != run.first[:-KEY_NUMBER_BYTES]
            or last[:-KEY_NUMBER_BYTES] != run.first[:-KEY_NUMBER_BYTES]
            or last > run.last
            or _number(last) - _number(first) != len(records) - 1
            or not self._sealed_rewritten.isdisjoint([key for key, _ in records])
        ):
            return None
        skipped = len(run.prefix)
        data = _ENCODER.encode([value[skipped:] for _, value in records])
        data = data[_list_head_bytes(len(records)) :]
        start = _number(first) - _number(run.first)
        offset = run.ends[start]
        length = run.ends[start + len(records)] - offset
        assert length == len(data), "what was taken is not what was set aside"
        stay = Stay(run.note.file, offset, length, crc32(data), len(records), run.prefix)
        return stay, run.note.size_bytes


def _number(key: bytes) -> int:
    return int.from_bytes(key[-KEY_NUMBER_BYTES:], "big")
