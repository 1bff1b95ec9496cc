"""Pieces never overlap; the first to claim a byte keeps it."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from openmsmq.capture.pieces import PIECE_COST_BYTES, Piece, Pieces

spans = st.lists(st.tuples(st.integers(0, 30), st.binary(min_size=1, max_size=10)), max_size=12)


@given(spans)
def test_pieces_hold_what_a_dictionary_of_first_bytes_would_hold(added):
    pieces = Pieces()
    model: dict[int, int] = {}
    for start, data in added:
        pieces.add(Piece(start, data, 0, 0))
        for at, byte in enumerate(data, start):
            model.setdefault(at, byte)
    held = {at: byte for piece in pieces for at, byte in enumerate(piece.data, piece.start)}
    assert held == model
    assert [piece.start for piece in pieces] == sorted(piece.start for piece in pieces)
    assert pieces.cost == len(model) + PIECE_COST_BYTES * len(list(pieces))


@given(spans, st.integers(0, 30))
def test_taking_gives_the_run_without_a_hole(added, offset):
    pieces = Pieces()
    for start, data in added:
        pieces.add(Piece(start, data, 0, 0))
    before = list(pieces)
    taken = pieces.take_from(offset)
    assert taken + list(pieces) == before
    assert all(a.end == b.start for a, b in itertools.pairwise(taken))
    assert not taken or taken[0].start == offset
    if taken and pieces:
        assert pieces.start != taken[-1].end


@given(spans, st.integers(0, 45))
def test_pieces_fill_what_they_cover_without_hole_or_rest(added, size):
    pieces = Pieces()
    covered: set[int] = set()
    for start, data in added:
        pieces.add(Piece(start, data, 0, 0))
        covered.update(range(start, start + len(data)))
    assert pieces.fill(size) == (size > 0 and covered == set(range(size)))


def test_pieces_one_behind_the_other_fill_their_sum():
    pieces = Pieces()
    for start in (4, 0, 2):
        pieces.add(Piece(start, b"ab", 0, 0))
    assert pieces.fill(6)
    assert not pieces.fill(5)
