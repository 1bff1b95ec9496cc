"""The checksum, beside the plain way to reckon it, word by word."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from openmsmq.wire.pgm.checksum import checksum, is_right


def plain(data: bytes) -> int:
    total = 0
    for at in range(0, len(data), 2):
        total += int.from_bytes(data[at : at + 2].ljust(2, b"\0"), "big")
        total = (total & 0xFFFF) + (total >> 16)
    return total


@given(st.binary(max_size=200))
def test_it_is_the_complement_of_the_sum_and_never_zero(data: bytes) -> None:
    assert checksum(data) == ((~plain(data) & 0xFFFF) or 0xFFFF)


@given(st.binary(min_size=2, max_size=200).filter(lambda data: len(data) % 2 == 0))
def test_what_is_stamped_is_right(data: bytes) -> None:
    stamped = data + checksum(data).to_bytes(2, "big")
    assert is_right(stamped)
    assert plain(stamped) == 0xFFFF


@given(st.binary(min_size=2, max_size=60), st.integers(0, 0xFFFFFF))
def test_a_bit_that_has_turned_is_noticed(data: bytes, place: int) -> None:
    data = data[: len(data) & ~1]
    stamped = bytearray(data + checksum(data).to_bytes(2, "big"))
    bit = place % (8 * len(stamped))
    stamped[bit // 8] ^= 1 << bit % 8
    assert not is_right(bytes(stamped))


def test_nothing_but_zeros_is_never_right() -> None:
    assert not is_right(bytes(20))
