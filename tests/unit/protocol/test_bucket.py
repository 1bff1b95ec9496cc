"""The bucket: never more than the rate and one burst, and never less than one may have."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openmsmq.protocol.bucket import Bucket


@given(st.integers(1, 10_000), st.lists(st.integers(1, 100), max_size=50))
def test_who_waits_as_told_gets_it_and_nobody_gets_more(rate: int, amounts: list[int]) -> None:
    bucket, now_ms, taken = Bucket(rate, 100, 0), 0, 0
    for amount in amounts:
        ready_ms = bucket.ready_ms(amount)
        if ready_ms is not None:
            assert not bucket.take(amount, ready_ms - 1)
            now_ms = ready_ms
        assert bucket.take(amount, now_ms)
        taken += amount
        assert taken <= 100 + now_ms * rate / 1_000


def test_what_is_drawn_is_waited_for_by_the_next() -> None:
    bucket = Bucket(1_000, 10, 0)
    bucket.draw(30, 0)
    assert bucket.ready_ms(1) == 21
    assert bucket.take(1, 21)


def test_what_is_charged_is_owed_only_up_to_what_there_can_be_at_once() -> None:
    drawn, charged = Bucket(1_000, 10, 0), Bucket(1_000, 10, 0)
    drawn.draw(100, 0)
    charged.charge(100, 0)
    assert (drawn.used_thousandths(0), charged.used_thousandths(0)) == (100_000, 20_000)
    assert not charged.has(1, 10)
    assert charged.has(1, 11)
    assert charged.used_thousandths(20) == 0


def test_without_a_rate_everything_is_there() -> None:
    bucket = Bucket(0, 0, 0)
    bucket.draw(10**9, 0)
    assert bucket.take(10**9, 0)
    assert bucket.ready_ms(10**9) is None
