"""Terminated text: strict, so that it is its own inverse."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.fields import utf16
from tests.effort import steps_of
from tests.strategies.wire_parts import utf16_texts


@given(utf16_texts(), st.binary(max_size=5), st.binary(max_size=5))
def test_a_text_is_found_wherever_it_stands(text: str, before: bytes, after: bytes) -> None:
    raw = utf16.write(text, "here")
    data = before + raw + after
    end = len(before) + len(raw)
    assert utf16.read(data, len(before), len(data), "here") == (text, end)
    assert utf16.read_all(data, len(before), end, "here") == text


@given(st.binary(max_size=12), st.integers(0, 12))
def test_any_bytes_are_a_text_or_refused(data: bytes, end: int) -> None:
    try:
        text, behind = utf16.read(data, 0, end, "here")
    except DecodeError:
        return
    assert behind <= end
    assert utf16.write(text, "here") == data[:behind]


def test_zeros_of_two_neighbours_do_not_end_a_text() -> None:
    assert utf16.read(b"a\0\0b\0\0", 0, 6, "here") == ("a\u6200", 6)


@pytest.mark.parametrize("units", [3, 127, 128, 129, 1_000])
def test_zeros_of_many_neighbours_do_not_end_a_text(units: int) -> None:
    raw = b"a\0\0b" * units + b"\0\0"
    assert utf16.read(raw + b"c\0\0\0", 0, len(raw) + 4, "here") == ("a\u6200" * units, len(raw))
    with pytest.raises(DecodeError, match="terminating"):
        utf16.read(raw, 0, len(raw) - 1, "here")


def test_the_effort_does_not_grow_with_the_zeros_of_neighbours() -> None:
    raw = b"a\0\0b" * 100_000 + b"\0\0"
    assert steps_of(lambda: utf16.read(raw, 0, len(raw), "here")) < 200


def test_the_terminator_must_lie_within_the_end() -> None:
    with pytest.raises(DecodeError, match="terminating"):
        utf16.read(b"a\0\0\0", 0, 3, "here")


def test_nothing_may_follow_a_text_that_fills_its_field() -> None:
    with pytest.raises(DecodeError, match="2 bytes behind"):
        utf16.read_all(b"a\0\0\0b\0", 0, 6, "here")


def test_half_a_surrogate_pair_is_refused_where_it_stands() -> None:
    with pytest.raises(DecodeError, match="not UTF-16") as caught:
        utf16.read(b"a\0\0\xd8b\0\0\0", 0, 8, "here")
    assert caught.value.offset == 2


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_what_could_not_be_read_back_is_not_written(text: str) -> None:
    with pytest.raises(EncodeError):
        utf16.write(text, "here")
