"""Records that were taken as they had been set aside, until they are in the base.

Which of them the base need not write again is known here: those whose file has them as they are.
Values are divided into pieces when they are set aside, while the processor has them at hand. A
piece becomes a bundle as a whole, or its records are written like any others.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

import msgspec

from openmsmq.storage.bundles.bundle import BUNDLE_MAX_BYTES, BUNDLE_MAX_COUNT, Records
from openmsmq.storage.bundles.checksums import checksum_of
from openmsmq.storage.bundles.staying import Stay, ends_of
from openmsmq.storage.frames import AsideNote
from openmsmq.storage.port import KEY_NUMBER_BYTES, Taken

_FIRST: Final = attrgetter("first")


class Piece(msgspec.Struct, frozen=True):
    """Values beside each other that were set aside: as long as a bundle, or a single one."""

    place: int
    """The place of the first one among the values of their name."""
    count: int
    offset: int
    """Where they are in their file."""
    length: int
    checksum: int


def pieces_of(values: Sequence[bytes], payload: bytes, start: int) -> list[Piece]:
    """Divide values; `payload` is a list that ends with them, at `start` in their file."""
    count = len(values)
    ends = ends_of(values)
    before = len(payload) - ends[-1]
    data = memoryview(payload)[before:]
    pieces: list[Piece] = []
    place = 0
    while place < count:
        most = min(place + BUNDLE_MAX_COUNT, count)
        stop = bisect_right(ends, ends[place] + BUNDLE_MAX_BYTES, place, most + 1) - 1
        stop = max(place + 1, stop)
        part = data[ends[place] : ends[stop]]
        offset = start + before + ends[place]
        pieces.append(Piece(place, stop - place, offset, len(part), checksum_of(part)))
        place = stop
    return pieces


class _Run:
    """All values of a name, which became records with keys that follow each other."""

    __slots__ = ("first", "last", "note", "number", "pieces", "places", "prefix")

    def __init__(self, taken: Taken, last: bytes, note: AsideNote, pieces: list[Piece]) -> None:
        self.number = _number(taken.key)
        self.first = taken.key
        self.last = last
        self.note = note
        self.prefix = taken.prefix
        self.pieces = pieces
        self.places = [piece.place for piece in pieces]


class Runs:
    """What was taken since the last two generations of the memtable began."""

    def __init__(self) -> None:
        self._active: list[_Run] = []
        self._sealed: list[_Run] = []
        # Keys of runs that were put since then.
        self._rewritten: set[bytes] = set()
        self._sealed_rewritten: set[bytes] = set()
        # No key of the younger runs is before the one or behind the other.
        self._low = self._high = b""

    def __bool__(self) -> bool:
        return bool(self._sealed)

    def take(self, taken: Taken, note: AsideNote, pieces: list[Piece], count: int) -> None:
        """Know of records that a batch takes, out of `count` values of their name.

        What takes only a part of a name is not remembered: its file would stay for a part, too.
        """
        if not taken.count:
            return
        first, last = taken.key, taken.key_of(taken.count - 1)
        if self._active and first <= self._high:
            # What is taken under the same keys counts.
            self._active = [one for one in self._active if one.last < first or last < one.first]
        if taken.first or taken.count != count:
            return
        self._active.append(_Run(taken, last, note, pieces))
        self._low = min(self._low or first, first)
        self._high = max(self._high, last)

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
        self._low = self._high = b""

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
