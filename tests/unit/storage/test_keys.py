from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from openmsmq.storage.keys import CHUNK_MAX_COUNT, KeyIndex

keys = st.binary(min_size=1, max_size=10) | st.builds(
    lambda queue, number: b"E" + queue.to_bytes(4, "big") + number.to_bytes(8, "big"),
    st.integers(0, 3),
    st.integers(0, 50),
)


@given(st.sets(keys), st.sets(keys), keys, keys, st.integers(0, 20), st.booleans())
def test_a_range_is_what_sorting_gives(
    added: set[bytes], removed: set[bytes], start: bytes, stop: bytes, limit: int, reverse: bool
) -> None:
    index = KeyIndex()
    for key in added:
        index.add(key)
    for key in removed & added:
        index.remove(key)
    inside = [key for key in added - removed if start <= key < stop]
    assert (
        index.between(start, stop, limit, reverse=reverse)
        == (sorted(inside, reverse=reverse)[:limit])
    )


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_many_keys_stay_in_order_whatever_comes_and_goes(seed: int) -> None:
    # More keys than one chunk holds, so that chunks are split, emptied and dropped.
    draw = random.Random(seed)
    index = KeyIndex()
    there: set[bytes] = set()
    for _ in range(3):
        numbers = [draw.randrange(5000) for _ in range(2 * CHUNK_MAX_COUNT)]
        for number in numbers if draw.random() < 0.5 else sorted(numbers):
            key = b"prefix.." + number.to_bytes(4, "big")
            if key not in there:
                there.add(key)
                index.add(key)
        leaving = sorted(there)[: draw.randrange(len(there))]
        if draw.random() < 0.5:
            leaving = draw.sample(sorted(there), draw.randrange(len(there)))
        for key in leaving:
            there.remove(key)
            index.remove(key)
        assert index.between(b"", b"q", 10_000) == sorted(there)
        assert index.between(b"", b"q", 10_000, reverse=True) == sorted(there, reverse=True)
        low, high = sorted(b"prefix.." + draw.randrange(5000).to_bytes(4, "big") for _ in "12")
        inside = sorted(key for key in there if low <= key < high)
        assert index.between(low, high, 700) == inside[:700]
        assert index.between(low, high, 700, reverse=True) == inside[::-1][:700]


@given(st.lists(st.lists(keys, unique=True)), st.randoms())
def test_keys_that_come_or_go_together_are_as_if_they_had_come_one_by_one(
    groups: list[list[bytes]], draw: random.Random
) -> None:
    index, there = KeyIndex(), set[bytes]()
    for group in groups:
        coming = group if draw.random() < 0.5 else sorted(group)
        index.add_all([key for key in coming if key not in there])
        there.update(coming)
        assert index.between(b"", b"\xff" * 11, 10_000) == sorted(there)
        leaving = sorted(there)[: draw.randrange(len(there) + 1)]
        if draw.random() < 0.5:
            draw.shuffle(leaving)
        index.remove_all(leaving)
        there.difference_update(leaving)
        assert index.between(b"", b"\xff" * 11, 10_000) == sorted(there)


@given(st.sets(keys), st.sets(keys, min_size=1))
def test_a_run_of_keys_is_as_if_they_had_come_one_by_one(
    before: set[bytes], coming: set[bytes]
) -> None:
    run = sorted(coming)
    there = {key for key in before if not run[0] <= key <= run[-1]}
    index = KeyIndex()
    index.add_all(there)
    index.add_run(run)
    assert index.between(b"", b"\xff" * 11, 10_000) == sorted(there | coming)
    index.remove_all(run)
    assert index.between(b"", b"\xff" * 11, 10_000) == sorted(there)


def test_many_keys_may_come_and_go_together() -> None:
    index = KeyIndex()
    run = [b"prefix.." + number.to_bytes(4, "big") for number in range(3 * CHUNK_MAX_COUNT)]
    index.add_all(run)
    assert index.between(b"", b"q", 10_000) == run
    index.remove_all(run[: CHUNK_MAX_COUNT + 7])
    assert index.between(b"", b"q", 10_000) == run[CHUNK_MAX_COUNT + 7 :]
    index.remove_all(run[CHUNK_MAX_COUNT + 7 :])
    assert index.between(b"", b"q", 10_000) == []
