"""Pieces: bytes that came before those they follow. The first to claim a place keeps it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

import msgspec

PIECE_COST_BYTES: Final = 128
"""What a piece costs beside its bytes: many tiny pieces must not pass for few bytes."""


class Piece(msgspec.Struct, frozen=True, gc=False):
    """A run of bytes, where it belongs, and the frame that brought it."""

    start: int
    data: bytes
    frame: int
    time_ns: int

    @property
    def end(self) -> int:
        """The offset behind the last byte."""
        return self.start + len(self.data)

    @property
    def cost(self) -> int:
        """What it counts against limits."""
        return len(self.data) + PIECE_COST_BYTES


class Pieces:
    """Pieces in order of their places; none overlaps another."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self.cost = 0

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def __len__(self) -> int:
        return len(self._pieces)

    def __iter__(self) -> Iterator[Piece]:
        return iter(self._pieces)

    @property
    def start(self) -> int:
        """Where the first piece starts."""
        return self._pieces[0].start

    def fill(self, size: int) -> bool:
        """Whether the pieces are the bytes from 0 to `size`, all of them and no others."""
        held = self.cost - PIECE_COST_BYTES * len(self._pieces)
        # None overlaps another, so as many bytes as there are places leave no hole.
        return held == size and held > 0 and self.start == 0 and self._pieces[-1].end == size

    def add(self, piece: Piece) -> None:
        """Keep what of the piece nobody else has claimed."""
        index = bisect_right(self._pieces, piece.start, key=_end)
        start = piece.start
        added: list[Piece] = []
        last = index
        while last < len(self._pieces) and self._pieces[last].start < piece.end:
            claimed = self._pieces[last]
            if start < claimed.start:
                added.append(_part(piece, start, claimed.start))
            start = claimed.end
            added.append(claimed)
            last += 1
        if start < piece.end:
            added.append(_part(piece, start, piece.end))
        self.cost += sum(part.cost for part in added)
        self.cost -= sum(claimed.cost for claimed in self._pieces[index:last])
        self._pieces[index:last] = added

    def take_from(self, offset: int) -> list[Piece]:
        """Take the pieces that follow each other without a hole from `offset` on."""
        count = 0
        for piece in self._pieces:
            if piece.start != offset:
                break
            offset = piece.end
            count += 1
        taken = self._pieces[:count]
        del self._pieces[:count]
        self.cost -= sum(piece.cost for piece in taken)
        return taken


def _end(piece: Piece) -> int:
    return piece.end


def _part(piece: Piece, start: int, end: int) -> Piece:
    data = piece.data[start - piece.start : end - piece.start]
    return Piece(start, data, piece.frame, piece.time_ns)
