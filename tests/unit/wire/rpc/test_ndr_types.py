"""Numbers, texts, pointers and arrays of NDR: what is refused, and why."""

from __future__ import annotations

import struct

import msgspec
import pytest

from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.rpc.ndr import Call
from openmsmq.wire.rpc.ndr_types import (
    U16,
    U32,
    Array,
    ByteArray,
    Counted,
    Number,
    Octets,
    Pointer,
    Sized,
    Type,
    WideString,
)


class One(msgspec.Struct, frozen=True):
    value: object


def call(of: Type) -> Call[One]:
    return Call(One, ("value", of))


def text(room: int, offset: int, count: int, units: str) -> bytes:
    return struct.pack("<III", room, offset, count) + units.encode("utf-16-le", "surrogatepass")


@pytest.mark.parametrize(
    ("stub", "problem"),
    [
        (text(3, 1, 2, "ab\0"), "from 1"),
        (text(2, 0, 3, "ab\0"), "a text of 3 of 2"),
        (text(3, 0, 0, "ab\0"), "a text of 0"),
        (text(9, 0, 9, "abcdefgh\0"), "a text of 8 characters; at most 5"),
        (text(3, 0, 3, "ab"), "2 bytes are missing"),
        (text(3, 0, 3, "abc"), "only NUL"),
        (text(3, 0, 3, "a\0\0"), "only NUL"),
        (text(2, 0, 2, "\ud800\0"), "not UTF-16"),
        (b"\3\0\0\0", "8 bytes are missing"),
    ],
)
def test_a_text_that_lies_is_refused(stub: bytes, problem: str) -> None:
    with pytest.raises(DecodeError, match=problem):
        call(WideString(5)).decode(stub)


def test_a_text_may_have_more_room_than_it_needs() -> None:
    assert call(WideString(5)).decode(text(100, 0, 3, "ab\0")) == One("ab")


@pytest.mark.parametrize(
    ("value", "problem"),
    [("a\0b", "NUL inside"), ("abcdef", "6 characters; at most 5"), ("\ud800", "UTF-16")],
)
def test_a_text_that_cannot_be_sent_is_refused(value: str, problem: str) -> None:
    with pytest.raises(EncodeError, match=problem):
        call(WideString(5)).encode(One(value))


@pytest.mark.parametrize("value", [0, 3])
def test_a_number_out_of_its_range_is_refused(value: int) -> None:
    bounded = call(Number("I", 1, 2))
    with pytest.raises(DecodeError, match=f"{value} is not from 1 to 2"):
        bounded.decode(struct.pack("<I", value))
    with pytest.raises(EncodeError, match=f"{value} is not from 1 to 2"):
        bounded.encode(One(value))
    assert bounded.decode(struct.pack("<I", 2)) == One(2)


@pytest.mark.spec("MQRR-3.1.4-02", "MQMR-3.1.4-02")
def test_a_null_pointer_has_no_elements_behind_it() -> None:
    counted = call(Counted(Array(U16, 5)))
    with pytest.raises(DecodeError, match="2 elements behind a NULL pointer"):
        counted.decode(struct.pack("<II", 2, 0))
    assert counted.decode(struct.pack("<II", 0, 0)) == One(())
    assert counted.decode(struct.pack("<III", 0, 1, 0)) == One(())


@pytest.mark.parametrize("found", [1, 3])
@pytest.mark.parametrize("of", [Counted(Array(U16, 5)), Counted(ByteArray(5))])
def test_an_array_has_as_many_elements_as_its_structure_says(of: Counted, found: int) -> None:
    with pytest.raises(DecodeError, match=f"an array of {found} where 2 were said"):
        call(of).decode(struct.pack("<III", 2, 1, found) + bytes(10))


@pytest.mark.parametrize("of", [Array(U16, 5), ByteArray(5)])
def test_an_array_with_too_many_elements_is_refused(of: Array | ByteArray) -> None:
    with pytest.raises(DecodeError, match=r"6 (elements|bytes); at most 5"):
        call(of).decode(struct.pack("<I", 6) + bytes(100))
    with pytest.raises(EncodeError, match=r"6 (elements|bytes); at most 5"):
        call(of).encode(One(bytes(6)))


def test_an_array_has_as_many_elements_as_the_parameter_before_it_says() -> None:
    sized = call(Sized(Number("I", 1, 4), Array(U32, 4)))
    assert sized.encode(One((7,))) == struct.pack("<III", 1, 1, 7)
    with pytest.raises(DecodeError, match="an array of 2 where 1 were said"):
        sized.decode(struct.pack("<IIII", 1, 2, 7, 8))
    with pytest.raises(DecodeError, match="0 is not from 1 to 4"):
        sized.decode(struct.pack("<II", 0, 0))


def test_bytes_of_another_length_are_not_filled_up_silently() -> None:
    with pytest.raises(EncodeError, match="15 bytes where there are 16"):
        call(Octets(16, 4)).encode(One(bytes(15)))


def test_a_pointer_to_nothing_is_none() -> None:
    pointer = call(Pointer(U32))
    assert pointer.encode(One(None)) == bytes(4)
    assert pointer.decode(bytes(4)) == One(None)
    assert pointer.decode(struct.pack("<II", 77, 5)) == One(5)
