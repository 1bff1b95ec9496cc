"""Records that were taken as they had been set aside, until they are in the base.

Which of them the base need not write again is known here: those whose file has them as they are.
Values are divided into pieces when they are set aside, while the processor has them at hand. A
piece becomes a bundle as a whole, or its records are written like any others.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Final

import msgspec

from openmsmq.storage.bundles.bundle import BUNDLE_MAX_BYTES, BUNDLE_MAX_COUNT, Records, is_size
from openmsmq.storage.bundles.checksums import checksum_of
from openmsmq.storage.bundles.staying import Stay
from openmsmq.storage.frames import AsideNote
from openmsmq.storage.port import KEY_NUMBER_BYTES, Taken

PIECES_MAX_COUNT: Final = 1 << 17
"""Pieces that are remembered, some 4 GB of messages. Beyond it the oldest runs are forgotten, and
written again like all others."""

_SHORT_MAX_BYTES: Final = 0xFF
_MIDDLE_MAX_BYTES: Final = 0xFFFF
_FEW_MAX_COUNT: Final = 15
"""MessagePack begins a list of up to so many with one byte, a longer one with three or five."""

_FIRST: Final = attrgetter("first")


class Piece(msgspec.Struct, frozen=True):
    """Values beside each other that were set aside."""

    place: int
    """The place of the first one among the values of their name."""
    count: int
    offset: int
    """Where they are in their file."""
    length: int
    checksum: int


def pieces_of(name: bytes, values: Sequence[bytes], payload: bytes, start: int) -> list[Piece]:
    """Divide values; `payload` is the list of their name and them, at `start` in their file."""
    count = len(values)
    sizes = list(map(len, values))
    least = _head_bytes(min(sizes, default=0))
    if least == _head_bytes(max(sizes, default=0)):
        sizes = [size + least for size in sizes]
    else:
        sizes = [size + _head_bytes(size) for size in sizes]
    before = len(payload) - sum(sizes)
    assert before == _list_head_bytes(count + 1) + len(name) + _head_bytes(len(name))
    ends = list(accumulate(sizes, initial=before))
    data = memoryview(payload)
    pieces: list[Piece] = []
    place = 0
    while place < count:
        most = min(place + BUNDLE_MAX_COUNT, count)
        stop = max(
            place + 1, bisect_right(ends, ends[place] + BUNDLE_MAX_BYTES, place, most + 1) - 1
        )
        offset, length = ends[place], ends[stop] - ends[place]
        if is_size(stop - place, length):
            checksum = checksum_of(data[offset : offset + length])
            pieces.append(Piece(place, stop - place, start + offset, length, checksum))
        place = stop
    return pieces


def _head_bytes(length: int) -> int:
    """Return how long MessagePack makes what stands before a value."""
    return 2 if length <= _SHORT_MAX_BYTES else 3 if length <= _MIDDLE_MAX_BYTES else 5


def _list_head_bytes(count: int) -> int:
    return 1 if count <= _FEW_MAX_COUNT else 3 if count <= _MIDDLE_MAX_BYTES else 5


class _Run:
    """All values of a name, which became records with keys that follow each other."""

    __slots__ = ("first", "last", "note", "number", "pieces", "places", "prefix")

    def __init__(self, taken: Taken, note: AsideNote, pieces: list[Piece]) -> None:
        self.number = _number(taken.key)
        self.first = taken.key
        self.last = taken.key_of(taken.count - 1)
        self.note = note
        self.prefix = taken.prefix
        self.pieces = pieces
        self.places = [piece.place for piece in pieces]


class Runs:
    """What was taken since the last two generations of the memtable began."""

    def __init__(self) -> None:
        self._active: list[_Run] = []
        self._sealed: list[_Run] = []
        self._rewritten: set[bytes] = set()
        self._sealed_rewritten: set[bytes] = set()
        # Whether something was taken of which no run is remembered.
        self._others = self._sealed_others = False
        # No key of the younger runs is before the one or behind the other.
        self._low = self._high = b""
        self._remembered = 0

    def __bool__(self) -> bool:
        return bool(self._sealed)

    @property
    def know_all(self) -> bool:
        """Whether all that was taken in the older generation is known, and there is some."""
        return bool(self._sealed) and not self._sealed_others

    def take(self, taken: Taken, note: AsideNote, pieces: list[Piece], count: int) -> None:
        """Know of records that a batch takes, out of `count` values of their name.

        What takes only a part of a name is not remembered: its file would stay for a part, too.
        """
        if taken.first or taken.count != count or not pieces:
            self._others = True
            return
        run = _Run(taken, note, pieces)
        active = self._active
        if active and run.first <= self._high:
            # What is taken under the same keys counts.
            others = [one for one in active if one.last < run.first or run.last < one.first]
            if len(others) < len(active):
                active[:] = others
                self._others = True
                self._remembered = sum([len(one.pieces) for one in active])
        active.append(run)
        self._low = min(self._low or run.first, run.first)
        self._high = max(self._high, run.last)
        self._remembered += len(pieces)
        while self._remembered > PIECES_MAX_COUNT:
            self._remembered -= len(active.pop(0).pieces)
            self._others = True

    def changed(self, changes: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Know of records that are not as they were taken any more."""
        if not self._active:
            return
        low, high = self._low, self._high
        self._rewritten.update(
            [key for key, value in changes if value is not None and low <= key <= high]
        )

    def seal(self) -> None:
        """Begin a new generation, as the memtable does."""
        self._sealed, self._active = sorted(self._active, key=_FIRST), []
        self._sealed_rewritten, self._rewritten = self._rewritten, set()
        self._sealed_others, self._others = self._others, False
        self._low = self._high = b""
        self._remembered = 0

    def moved(self) -> None:
        """Forget the older generation: the base has it."""
        self._sealed = []
        self._sealed_rewritten = set()

    def divided(self, records: Records) -> list[tuple[Records, Stay | None, int]]:
        """Divide records of the older generation, in order, into those that stay and others.

        With those that stay comes where they are, and the length of their file.
        """
        parts: list[tuple[Records, Stay | None, int]] = []
        start = place = 0
        while place < len(records):
            found = self._piece_at(records, place)
            if found is None:
                place += 1
                continue
            run, piece = found
            if start < place:
                parts.append((records[start:place], None, 0))
            stop = place + piece.count
            stay = Stay(
                run.note.file, piece.offset, piece.length, piece.checksum, piece.count, run.prefix
            )
            parts.append((records[place:stop], stay, run.note.size_bytes))
            start = place = stop
        if start < place:
            parts.append((records[start:place], None, 0))
        return parts

    def _piece_at(self, records: Records, place: int) -> tuple[_Run, Piece] | None:
        """Return the piece that begins with a record and of which all records are there."""
        first = records[place][0]
        at = bisect_right(self._sealed, first, key=_FIRST) - 1
        if at < 0 or first > self._sealed[at].last:
            return None
        run = self._sealed[at]
        head = run.first[:-KEY_NUMBER_BYTES]
        if len(first) != len(run.first) or not first.startswith(head):
            return None
        wanted = _number(first) - run.number
        at = bisect_left(run.places, wanted)
        if at == len(run.places) or run.places[at] != wanted:
            return None
        piece = run.pieces[at]
        stop = place + piece.count
        # Keys ascend, and between the first and this one there are no others.
        last = head + (_number(first) + piece.count - 1).to_bytes(KEY_NUMBER_BYTES, "big")
        if stop > len(records) or records[stop - 1][0] != last:
            return None
        rewritten = self._sealed_rewritten
        if rewritten and not rewritten.isdisjoint([key for key, _ in records[place:stop]]):
            return None
        return run, piece


def _number(key: bytes) -> int:
    return int.from_bytes(key[-KEY_NUMBER_BYTES:], "big")
