"""Options: what is written is read, and lists that lie are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.pgm.options import NO_OPTIONS, Fragment, Options, read_options
from tests.unit.wire.pgm.pgm_values import OPTIONS


@given(OPTIONS, st.binary(max_size=8), st.binary(max_size=8))
def test_what_is_written_is_read(options: Options, before: bytes, behind: bytes) -> None:
    data = options.encode()
    if options == NO_OPTIONS:
        assert data == b""
        return
    found, end = read_options(before + data + behind, len(before))
    assert found == options
    assert end == len(before) + len(data)


@given(st.binary(max_size=60))
def test_any_bytes_are_options_or_none(data: bytes) -> None:
    for each in (data, b"\0\x04" + len(data).to_bytes(2, "big") + data):
        try:
            _, end = read_options(each, 0)
        except DecodeError:
            continue
        assert end <= len(each)


def test_a_fragment_is_as_the_standard_has_it() -> None:
    data = Options(Fragment(7, 1_432, 3_000)).encode()
    assert data.hex(" ") == ("00 04 00 14 81 10 00 00 00 00 00 07 00 00 05 98 00 00 0b b8")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("0d040000", "does not come first"),
        ("00050004", "does not come first"),
        ("00040008 0d040000", "no option says that it is the last"),
        ("00040008 8d030000", "an option of 3 bytes"),
        ("00040008 8d080000", "an option of 8 bytes"),
        ("0004000c 8d040000 00000000", "4 bytes behind the last option"),
        ("0004000c 81080000 00000000", "an option of 8 bytes, not 16"),
        ("00040008 82040000", "a list of 4 bytes"),
        ("0004000a 82060000 0000", "a list of 6 bytes"),
        ("00040008 83040000", "an option of 4 bytes, not 8"),
        ("00040008 f0040200", "option 0x70, without which"),
        ("00040020 8d040000", "bytes are missing"),
    ],
)
def test_lists_that_lie(data: str, problem: str) -> None:
    with pytest.raises(DecodeError, match=problem):
        read_options(bytes.fromhex(data), 0)


def test_an_unknown_option_is_passed_over() -> None:
    assert read_options(bytes.fromhex("0004000c 70040000 8e040000"), 0)[0] == Options(fin=True)


def test_more_numbers_than_fit_are_not_written() -> None:
    with pytest.raises(EncodeError, match="63 numbers"):
        Options(further=tuple(range(63))).encode()
