"""What lies side by side in a bundle is what was put into it, whichever part is wanted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.storage.bundles.bundle import BUNDLE_MAX_BYTES, encode
from openmsmq.storage.bundles.stretches import first_key_of, stretch_in
from openmsmq.storage.port import stretch_of
from tests.stretches import records_in, within

SIZES = st.sampled_from([0, 1, 255, 256, 1_000, BUNDLE_MAX_BYTES])
BEHIND_ALL = b"\xff" * 20


def key(number: int, queue: bytes = b"E0001") -> bytes:
    return queue + number.to_bytes(8, "big")


numbers = st.integers(0, 60)
some = st.dictionaries(numbers.map(key), SIZES.map(bytes), min_size=1, max_size=40).map(
    lambda found: sorted(found.items())
)


@given(some, numbers, numbers, st.integers(1, 40), st.integers(1, 300_000))
def test_a_part_of_a_bundle_is_the_records_between_two_keys(
    records: list[tuple[bytes, bytes]], low: int, high: int, count_max: int, bytes_max: int
) -> None:
    _, stored = encode(records)
    start, stop = key(low), key(high)
    inside = [record for record in records if start <= record[0] < stop]
    found = stretch_in(stored, start, stop, count_max, bytes_max)
    assert (records_in(found) if found else []) == within(inside, count_max, bytes_max)
    assert first_key_of(stored) == records[0][0]


@given(some)
def test_records_that_are_put_side_by_side_are_like_those_of_a_bundle(
    records: list[tuple[bytes, bytes]],
) -> None:
    made = stretch_of(records)
    assert records_in(made) == records
    found = stretch_in(encode(records)[1], b"", BEHIND_ALL, len(records), 1 << 30)
    assert found is not None
    assert (found.keys, found.sizes, bytes(found.values), found.values_bytes) == (
        made.keys,
        made.sizes,
        bytes(made.values),
        made.values_bytes,
    )


@pytest.mark.parametrize(("length", "is_short"), [(255, True), (256, False)])
def test_a_bundle_with_longer_keys_than_entries_have_is_left_to_others(
    length: int, is_short: bool
) -> None:
    records = [(key(number, b"E" * (length - 8)), b"value") for number in range(4)]
    first = first_key_of(encode(records)[1])
    assert first == (records[0][0] if is_short else None)
