"""Caches of keys: bounded in number and time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openmsmq.security.encryption.session_keys import FailureCounts, KeyCache


@given(
    st.integers(0, 6),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), max_size=40),
)
def test_a_cache_never_has_more_than_its_bound_nor_anything_past_its_time(
    max_count: int, puts: list[tuple[int, int]]
) -> None:
    cache: KeyCache[int, int] = KeyCache(max_count, lifetime_ms=50)
    now_ms = 0
    written: dict[int, int] = {}
    for name, pause_ms in puts:
        now_ms += pause_ms
        cache.put(name, name, now_ms)
        written[name] = now_ms
        assert len(cache) <= max_count
        assert max_count == 0 or cache.get(name, now_ms) == name
        for other, since_ms in written.items():
            assert cache.get(other, now_ms) in (None, other)
            if now_ms - since_ms >= 50:
                assert cache.get(other, now_ms) is None
    cache.forget_expired(now_ms)
    expiry_ms = cache.next_expiry_ms
    assert (expiry_ms is None) == (len(cache) == 0)
    assert expiry_ms is None or expiry_ms > now_ms
    cache.clear()
    assert len(cache) == 0


def test_a_full_cache_forgets_the_older_half() -> None:
    cache: KeyCache[int, str] = KeyCache(4, 1000)
    for name in range(4):
        cache.put(name, str(name), name)
    cache.put(0, "again", 4)
    assert len(cache) == 4
    cache.put(5, "5", 5)
    assert [name for name in range(6) if cache.get(name, 5)] == [0, 3, 5]


@given(st.lists(st.tuples(st.binary(max_size=1), st.integers(0, 30)), max_size=60))
def test_counts_of_failures_are_bounded_and_end_with_their_time(
    failures: list[tuple[bytes, int]],
) -> None:
    counts = FailureCounts(max_count=8, failures_max_count=3, lifetime_ms=50)
    now_ms = 0
    for blob, pause_ms in failures:
        now_ms += pause_ms
        counts.add(blob, now_ms)
        assert len(counts) <= 8
        assert not counts.too_many(blob, now_ms + 50)
    counts.forget_expired(now_ms + 50)
    assert len(counts) == 0


def test_a_key_fails_too_often_with_its_last_allowed_failure() -> None:
    counts = FailureCounts(max_count=8, failures_max_count=3, lifetime_ms=50)
    assert not counts.too_many(b"key", 0)
    for now_ms in (0, 40, 80):
        assert not counts.too_many(b"key", now_ms)
        counts.add(b"key", now_ms)
    assert counts.too_many(b"key", 129)
    assert not counts.too_many(b"other", 129)
    counts.add(b"key", 130)
    assert not counts.too_many(b"key", 130)
