"""Structures, unions and calls of NDR: exact bytes, and nothing but a DecodeError for others."""

from __future__ import annotations

import struct
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import NIL_GUID
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.rpc import management, remote_read
from openmsmq.wire.rpc.ndr import TRAILING_MAX_BYTES, Call, Struct, Union
from openmsmq.wire.rpc.ndr_types import U8, U16, U32, U64, Array, Counted, Nothing, Pointer
from openmsmq.wire.rpc.queue_format import QueueFormat
from openmsmq.wire.rpc.variants import NULL
from tests.strategies.rpc_values import CALLS

OPEN_QUEUE = remote_read.OpenQueue(
    QueueFormat(3, 0, 0, r"OS:alpha\private$\orders"), 1, 0, NIL_GUID, 1, 6, 1, 7600, 1
)
OPEN_QUEUE_BYTES = (
    bytes.fromhex("03000000 03000000 00000200 19000000 00000000 19000000")
    + "OS:alpha\\private$\\orders\0".encode("utf-16-le")
    + bytes(2)
    + bytes.fromhex("01000000 00000000")
    + bytes(16)
    + bytes.fromhex("01000000 06 01 b01d 01000000")
)
GET_INFO = management.GetInfo(management.ManagedObject(1, 0), (2, 4), (NULL, NULL))
GET_INFO_BYTES = bytes.fromhex(
    "0100 0100 00000000 02000000 02000000 02000000 04000000 02000000 00000000"
    "0100 00 00 00000000 0100 000000000000 0100 00 00 00000000 0100"
)
"""Both as other programs send them, but for the padding, which is zeros here."""


class Pair(msgspec.Struct, frozen=True):
    first: Any
    second: Any


class Three(msgspec.Struct, frozen=True):
    first: Any
    second: Any
    third: Any


def test_opening_a_queue_has_the_bytes_that_other_programs_send() -> None:
    assert len(OPEN_QUEUE_BYTES) == 112
    assert remote_read.OPEN_QUEUE.encode(OPEN_QUEUE) == OPEN_QUEUE_BYTES
    assert remote_read.OPEN_QUEUE.decode(OPEN_QUEUE_BYTES) == OPEN_QUEUE


def test_asking_for_information_has_the_bytes_that_other_programs_send() -> None:
    assert len(GET_INFO_BYTES) == 58
    assert management.GET_INFO.encode(GET_INFO) == GET_INFO_BYTES
    assert management.GET_INFO.decode(GET_INFO_BYTES) == GET_INFO


@pytest.mark.parametrize("name", CALLS)
@given(data=st.data())
def test_what_is_written_is_read(name: str, data: st.DataObject) -> None:
    call, values = CALLS[name]
    value = data.draw(values)
    assert call.decode(call.encode(value)) == value


@pytest.mark.parametrize("name", CALLS)
@given(stub=st.binary(max_size=200))
def test_any_bytes_are_a_value_or_a_decode_error(name: str, stub: bytes) -> None:
    call, _ = CALLS[name]
    try:
        value = call.decode(stub)
    except DecodeError:
        return
    assert call.decode(call.encode(value)) == value


@pytest.mark.parametrize("name", CALLS)
@given(data=st.data())
def test_damaged_bytes_are_a_value_or_a_decode_error(name: str, data: st.DataObject) -> None:
    call, values = CALLS[name]
    stub = bytearray(call.encode(data.draw(values)))
    for _ in range(data.draw(st.integers(1, 3))):
        if stub:
            stub[data.draw(st.integers(0, len(stub) - 1))] = data.draw(st.integers(0, 255))
    try:
        value = call.decode(bytes(stub))
    except DecodeError:
        return
    assert call.decode(call.encode(value)) == value


@pytest.mark.parametrize("name", [name for name in CALLS if name not in ("NOTHING", "ACTION")])
@given(data=st.data())
def test_a_stub_that_ends_too_early_is_refused(name: str, data: st.DataObject) -> None:
    call, values = CALLS[name]
    stub = call.encode(data.draw(values))
    with pytest.raises(DecodeError):
        call.decode(stub[: data.draw(st.integers(0, len(stub) - 1))])


def test_what_pads_a_stub_is_not_looked_at_and_more_is_refused() -> None:
    call = Call(remote_read.Result, ("result", U32))
    assert call.decode(bytes(4) + b"\xff" * TRAILING_MAX_BYTES).result == 0
    with pytest.raises(DecodeError, match="behind the last parameter"):
        call.decode(bytes(4 + TRAILING_MAX_BYTES + 1))


def test_pointers_in_a_structure_lead_behind_it_in_their_order() -> None:
    inner = Struct(Pair, ("first", Pointer(U32)), ("second", U16))
    call = Call(Pair, ("first", inner), ("second", Pointer(U8)))
    value = Pair(Pair(7, 8), 9)
    stub = call.encode(value)
    assert stub == struct.pack("<IHxxIIB", 0x20000, 8, 7, 0x20004, 9)
    assert call.decode(stub) == value


def test_pointers_of_elements_lead_behind_the_whole_array() -> None:
    call = Call(Pair, ("first", Array(Pointer(U16), 3)), ("second", U8))
    stub = call.encode(Pair((1, None, 2), 3))
    assert stub == struct.pack("<IIIIHHB", 3, 0x20000, 0, 0x20004, 1, 2, 3)
    assert call.decode(stub) == Pair((1, None, 2), 3)


def test_a_field_is_aligned_by_where_the_stub_begins() -> None:
    inner = Struct(Pair, ("first", U8), ("second", U64))
    call = Call(Three, ("first", U8), ("second", inner), ("third", U16))
    stub = call.encode(Three(1, Pair(2, 3), 4))
    assert stub == struct.pack("<B7xB7xQH", 1, 2, 3, 4)
    assert call.decode(stub) == Three(1, Pair(2, 3), 4)


def test_padding_may_contain_anything() -> None:
    call = Call(Pair, ("first", U8), ("second", U32))
    assert call.decode(b"\x01\xaa\xbb\xcc\x02\0\0\0") == Pair(1, 2)


def test_an_element_is_aligned_as_its_widest_arm_although_it_has_another() -> None:
    union = Union("first", U16, {0: Nothing(), 1: U64})
    call = Call(
        Pair, ("first", U8), ("second", Struct(Pair, ("first", U16), union=("second", union)))
    )
    assert call.encode(Pair(1, Pair(0, None))) == struct.pack("<B7xHH", 1, 0, 0)
    assert call.encode(Pair(1, Pair(1, 5))) == struct.pack("<B7xHHxxxxQ", 1, 1, 1, 5)


UNION = Call(
    Pair,
    ("first", U8),
    (
        "second",
        Struct(Pair, ("first", U16), union=("second", Union("first", U16, {1: U16, 2: U32}))),
    ),
)


@pytest.mark.parametrize(
    ("stub", "problem"),
    [
        (struct.pack("<B3xHHH", 0, 1, 2, 5), "the arm 2 of a union where 1 was said"),
        (struct.pack("<B3xHHH", 0, 3, 3, 5), "without an arm 3"),
    ],
)
def test_a_union_that_contradicts_its_structure_is_refused(stub: bytes, problem: str) -> None:
    with pytest.raises(DecodeError, match=problem):
        UNION.decode(stub)


def test_a_union_without_the_arm_cannot_be_written() -> None:
    with pytest.raises(EncodeError, match="without an arm 9"):
        UNION.encode(Pair(1, Pair(9, 0)))


def test_a_value_that_does_not_fit_cannot_be_written() -> None:
    with pytest.raises(EncodeError, match="does not fit"):
        UNION.encode(Pair(1, Pair(1, 0x10000)))


def test_nothing_is_reserved_for_elements_that_are_not_there() -> None:
    call = Call(Pair, ("first", U32), ("second", Counted(Array(U64, 1_000_000))))
    stub = struct.pack("<IIII", 0, 1_000_000, 1, 1_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError, match="bytes are missing"):
            call.decode(stub)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50_000
