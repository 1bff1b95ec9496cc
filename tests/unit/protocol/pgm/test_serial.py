"""Numbers that go round."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openmsmq.protocol.pgm.serial import after, distance

NUMBERS = st.integers(0, 0xFFFFFFFF)


@given(NUMBERS, st.integers(-(2**31), 2**31 - 1))
def test_the_distance_is_how_far_one_went(number: int, steps: int) -> None:
    assert distance(after(number, steps), number) == steps


def test_behind_the_last_number_comes_the_first() -> None:
    assert after(0xFFFFFFFF) == 0
    assert distance(0, 0xFFFFFFFF) == 1
