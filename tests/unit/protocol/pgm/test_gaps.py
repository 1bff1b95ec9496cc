"""Gaps: the times of asking, repeating and giving up."""

from __future__ import annotations

import itertools
from random import Random

from openmsmq.protocol.pgm.gaps import Gaps


def times_of_asking(gaps: Gaps, number: int, until_ms: int) -> tuple[list[int], list[int]]:
    """Return when the packet was asked for, and when it was given up."""
    asked, lost = [], []
    while (due_ms := gaps.next_wake_ms) is not None and due_ms <= until_ms:
        asking, gone = gaps.due(due_ms, 63)
        asked += [due_ms] * (number in asking)
        lost += [due_ms] * (number in gone)
    return asked, lost


def test_what_nobody_confirms_is_asked_for_ten_times_and_given_up() -> None:
    gaps = Gaps(Random(1))
    gaps.add(5, 0)
    asked, lost = times_of_asking(gaps, 5, 60_000)
    assert 10 <= asked[0] <= 50
    assert len(asked) == 10
    steps = [second - first for first, second in itertools.pairwise(asked)]
    assert all(760 <= step <= 800 for step in steps)
    assert lost == [asked[-1] + 750]
    assert len(gaps) == 0


def test_what_is_confirmed_and_does_not_come_is_asked_for_again_after_two_seconds() -> None:
    gaps = Gaps(Random(1))
    gaps.add(5, 0)
    asked = []
    while (due_ms := gaps.next_wake_ms) is not None:
        asking, lost = gaps.due(due_ms, 63)
        if asking:
            asked.append(due_ms)
            gaps.confirmed(5, due_ms + 1)
        if lost:
            break
    steps = [second - first for first, second in itertools.pairwise(asked)]
    assert len(asked) == 10
    assert all(2_011 <= step <= 2_051 for step in steps)
    assert due_ms == asked[-1] + 2_001


def test_who_hears_others_ask_does_not_ask_for_a_while() -> None:
    gaps = Gaps(Random(1))
    gaps.add(5, 0)
    gaps.overheard(5, 5)
    assert gaps.next_wake_ms == 755
    asked, _ = times_of_asking(gaps, 5, 1_000)
    assert len(asked) == 1
    assert asked[0] >= 765


def test_others_who_always_ask_cannot_keep_us_from_asking() -> None:
    gaps = Gaps(Random(1))
    gaps.add(5, 0)
    asked = []
    for now_ms in range(0, 4_000, 5):
        gaps.overheard(5, now_ms)
        asked += gaps.due(now_ms, 63)[0]
    assert len(asked) >= 2


def test_no_more_is_asked_for_at_once_than_wanted() -> None:
    gaps = Gaps(Random(1))
    for number in range(100):
        gaps.add(number, 0)
    first, _ = gaps.due(50, 63)
    second, _ = gaps.due(50, 63)
    assert (len(first), len(second)) == (63, 37)
    assert sorted(first + second) == list(range(100))


def test_what_has_come_is_not_asked_for() -> None:
    gaps = Gaps(Random(1))
    gaps.add(5, 0)
    assert 5 in gaps
    assert gaps.remove(5)
    assert not gaps.remove(5)
    assert gaps.next_wake_ms is None
    gaps.confirmed(5, 1)
    gaps.overheard(5, 1)
    assert gaps.due(10_000, 63) == ([], [])
