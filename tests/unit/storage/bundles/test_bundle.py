"""How records are divided into bundles, and what a bundle has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.storage.bundles.bundle import (
    BUNDLE_MAX_BYTES,
    BUNDLE_MAX_COUNT,
    RECORD_COST_BYTES,
    Records,
    decode,
    divided,
    encode,
    is_worth_it,
)

_SIZES = st.sampled_from([0, 100, 1_000, 3_000, BUNDLE_MAX_BYTES])


def cost_of(records: Records) -> int:
    return sum(len(key) + len(value) + RECORD_COST_BYTES for key, value in records)


@given(st.lists(st.tuples(st.sampled_from(b"EFG"), st.integers(0, 900), _SIZES), max_size=300))
def test_parts_are_all_records_in_order_and_each_is_of_one_queue(
    drawn: list[tuple[int, int, int]],
) -> None:
    records = sorted(
        {(bytes([queue]) + n.to_bytes(8, "big"), bytes(size)) for queue, n, size in drawn}
    )
    parts = divided(records)
    assert [record for part, _ in parts for record in part] == records
    for part, cost_bytes in parts:
        assert len({key[:1] for key, _ in part}) == 1
        assert cost_bytes == cost_of(part)
        if len(part) > 1:
            assert len(encode(part)[1]) <= BUNDLE_MAX_BYTES
            assert len(part) <= BUNDLE_MAX_COUNT


def test_a_part_ends_only_where_it_must() -> None:
    records = [(b"E" + n.to_bytes(8, "big"), bytes(1_000)) for n in range(100)]
    assert [len(part) for part, _ in divided(records)] == [32, 32, 32, 4]
    short = [(b"E" + n.to_bytes(8, "big"), bytes(50)) for n in range(600)]
    assert [len(part) for part, _ in divided(short)] == [256, 256, 88]


@given(
    st.binary(min_size=9, max_size=20), st.lists(st.binary(max_size=4_000), min_size=4, max_size=8)
)
def test_a_bundle_gives_what_was_put_into_it(queue: bytes, values: list[bytes]) -> None:
    records = [(queue + n.to_bytes(8, "big"), value) for n, value in enumerate(values)]
    if is_worth_it(records, cost_of(records)):
        last, stored = encode(records)
        bundle = decode(last, stored)
        assert bundle is not None
        assert (bundle.first, bundle.last) == (records[0][0], records[-1][0])
        assert bundle.between(b"", b"\xff" * 30) == records
        assert bundle.between(records[1][0], records[3][0]) == records[1:3]
        assert [bundle.get(key) for key, _ in records] == values
        assert bundle.get(records[0][0] + b"\0") is None


@pytest.mark.parametrize("place", [0, 1, 500, -1])
def test_a_flipped_bit_in_a_bundle_is_noticed(place: int) -> None:
    last, stored = encode([(b"E%08d" % n, b"value" * 500) for n in range(8)])
    changed = bytearray(stored)
    changed[place] ^= 4
    assert decode(last, stored) is not None
    assert decode(last, bytes(changed)) is None
    assert decode(last + b"x", stored) is None
