"""Lists of destinations: every layout that can arrive is read, and written as it came."""

from __future__ import annotations

import contextlib
import functools
import re
import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import Guid
from openmsmq.model.limits import FORMAT_NAME_MAX_COUNT
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.headers import multi_queue
from openmsmq.wire.headers.multi_queue import (
    AddressList,
    DistributionListName,
    ListId,
    MultiQueueFormatHeader,
    describe,
)
from openmsmq.wire.headers.queue_names import DirectName, PrivateName, PublicName
from tests.effort import steps_of
from tests.strategies.wire_parts import multi_queue_headers
from tests.unit.wire.codec_checks import (
    assert_fields_cover,
    assert_no_prefix_decodes,
    assert_refused_cheaply,
    assert_same_or_refused,
    assert_survives,
    damaged,
)

QUEUE = Guid.parse("11111111-2222-3333-4444-555555555555")
MANAGER = Guid.parse("aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee")
THREE = (DirectName(r"OS:a\q"), PublicName(QUEUE), PrivateName(MANAGER, 9))
THREE_BYTES = bytes.fromhex(
    "480000006400000003000000"
    "03004f0053003a0061005c0071000000"
    f"01000000{QUEUE.hex()}"
    f"02000000{MANAGER.hex()}09000000"
)
EMPTY_REST = bytes.fromhex(
    "0c000000c800000000000000" + "0c0000002c01000000000000" + "5e01000000000000"
)


def read(data: bytes) -> MultiQueueFormatHeader:
    return multi_queue.read(data, 0)[0]


def header_with(destinations: bytes) -> bytes:
    return destinations + EMPTY_REST


def list_bytes(elements: bytes, count: int, size: int | None = None) -> bytes:
    """A list of destinations with these bytes in it, padded as it should be."""
    size = 12 + len(elements) if size is None else size
    return struct.pack("<IHHI", size, 0x64, 0, count) + elements + bytes(-len(elements) & 3)


def direct(text: str) -> bytes:
    """The bytes of an element that is a direct name."""
    return b"\3\0" + text.encode("utf-16-le") + b"\0\0"


def fields_of(header: MultiQueueFormatHeader) -> None:
    assert_fields_cover(header.fields(), len(header.write()))


@given(multi_queue_headers(), st.sampled_from([b"", b"1234", b"1", b"12"]), st.binary(max_size=9))
def test_a_header_survives_the_wire(
    header: MultiQueueFormatHeader, before: bytes, after: bytes
) -> None:
    assert_survives(multi_queue, header, before, after)


@given(damaged(multi_queue_headers().map(MultiQueueFormatHeader.write)))
def test_any_bytes_are_read_and_written_the_same_or_refused(data: bytes) -> None:
    assert_same_or_refused(multi_queue, data)


@given(st.binary(max_size=40), st.integers(0, 6), st.integers(0, 60))
def test_any_bytes_in_a_list_are_read_and_written_the_same_or_refused(
    elements: bytes, count: int, size: int
) -> None:
    assert_same_or_refused(multi_queue, header_with(list_bytes(elements, count)))
    assert_same_or_refused(multi_queue, header_with(list_bytes(elements, count, size)))


def assert_checked_as_it_is_read(data: bytes) -> None:
    try:
        end = multi_queue.read(data, 0)[1]
    except DecodeError as error:
        with pytest.raises(DecodeError, match=re.escape(str(error))):
            multi_queue.check(data, 0)
    else:
        assert multi_queue.check(data, 0) == end


@given(damaged(multi_queue_headers().map(MultiQueueFormatHeader.write)))
def test_what_can_be_read_is_known_without_reading_it(data: bytes) -> None:
    assert_checked_as_it_is_read(data)


@given(st.binary(max_size=40), st.integers(0, 6), st.integers(0, 60))
def test_what_can_be_read_of_any_bytes_is_known_without_reading_them(
    elements: bytes, count: int, size: int
) -> None:
    assert_checked_as_it_is_read(header_with(list_bytes(elements, count)))
    assert_checked_as_it_is_read(header_with(list_bytes(elements, count, size)))


@given(multi_queue_headers())
def test_a_truncated_header_is_refused(header: MultiQueueFormatHeader) -> None:
    assert_no_prefix_decodes(read, header.write())


@given(multi_queue_headers())
def test_the_fields_show_every_byte(header: MultiQueueFormatHeader) -> None:
    fields_of(header)


@pytest.mark.spec(
    "MQMQ-2.2.18.1.4-02",
    "MQMQ-2.2.18.1.4.1-01",
    "MQMQ-2.2.18.1.7.1-01",
    "MQMQ-2.2.18.1.7.2-01",
    "MQMQ-2.2.20.2-01",
    "MQMQ-2.2.20.2-04",
    "MQMQ-2.2.20.2-05",
)
def test_the_example_of_three_names_has_72_bytes() -> None:
    assert len(THREE_BYTES) == 72
    assert AddressList(THREE).write(ListId.DESTINATION) == THREE_BYTES
    assert read(header_with(THREE_BYTES)) == MultiQueueFormatHeader(AddressList(THREE))


@pytest.mark.spec("MQMQ-2.2.18.1.4-02", "MQMQ-2.2.18.1.4.2-01")
def test_a_distribution_list_is_an_aligned_identifier() -> None:
    raw = list_bytes(b"\6\0\0\0" + QUEUE, 1)
    assert AddressList((DistributionListName(QUEUE),)).write(ListId.DESTINATION) == raw
    assert read(header_with(raw)).destinations.elements == (DistributionListName(QUEUE),)


def test_empty_parts_have_their_shortest_form() -> None:
    raw = MultiQueueFormatHeader().write()
    assert raw == bytes.fromhex("0c0000006400000000000000") + EMPTY_REST
    assert read(raw) == MultiQueueFormatHeader()


@pytest.mark.spec("MQMQ-2.2.20.2-02", "MQMQ-2.2.20.3-01")
@given(st.sampled_from([4, 16, 28, 36]), st.integers(0, 0xFFFF))
def test_each_part_has_its_identifier(offset: int, identifier: int) -> None:
    raw = bytearray(MultiQueueFormatHeader().write())
    right = {4: 0x0064, 16: 0x00C8, 28: 0x012C, 36: 0x015E}[offset]
    assert struct.unpack_from("<H", raw, offset)[0] == right
    struct.pack_into("<H", raw, offset, identifier)
    if identifier == right:
        assert read(bytes(raw)) == MultiQueueFormatHeader()
    else:
        with pytest.raises(DecodeError):
            read(bytes(raw))
        with pytest.raises(DecodeError):
            multi_queue.skip(bytes(raw), 0)


@pytest.mark.spec("MQMQ-2.2.20.2-03", "MQMQ-2.2.20.3-02")
@given(st.integers(0, 0xFFFF), st.integers(0, 0xFFFF))
def test_reserved_fields_are_sent_as_zero_and_ignored(of_list: int, of_signature: int) -> None:
    header = MultiQueueFormatHeader(AddressList(THREE), signature=b"sign")
    raw = bytearray(header.write())
    signature_at = len(raw) - 12
    assert raw[6:8] == raw[signature_at + 2 : signature_at + 4] == b"\0\0"
    struct.pack_into("<H", raw, 6, of_list)
    struct.pack_into("<H", raw, signature_at + 2, of_signature)
    found = read(bytes(raw))
    assert (found.destinations.elements, found.signature) == (THREE, b"sign")


@pytest.mark.spec("MQMQ-2.2.20.3-03", "MQMQ-2.2.20.3-04")
@given(st.binary(max_size=9))
def test_the_signature_has_the_size_it_says_and_is_padded(signature: bytes) -> None:
    raw = MultiQueueFormatHeader(signature=signature).write()[36:]
    assert struct.unpack_from("<I", raw, 4)[0] == len(signature)
    assert raw[8:] == signature + bytes(-len(signature) & 3)


@pytest.mark.spec("MQMQ-2.2.18.1.4-01")
@given(st.integers(0, 0xFFFF).filter(lambda code: code not in (1, 2, 3, 6)))
def test_an_unknown_type_of_name_is_refused(code: int) -> None:
    with pytest.raises(DecodeError, match="format type"):
        read(header_with(list_bytes(code.to_bytes(2, "little") + bytes(22), 1)))


def test_an_unaligned_public_queue_is_read_and_written_as_it_came() -> None:
    raw = header_with(list_bytes(b"\1\0" + QUEUE + direct(r"OS:a\q"), 2))
    found = read(raw)
    assert found.destinations.elements == (PublicName(QUEUE), DirectName(r"OS:a\q"))
    assert found.write() == raw
    fields_of(found)


@pytest.mark.parametrize(("code", "size"), [(2, 20), (6, 16)])
def test_other_identifiers_are_always_aligned(code: int, size: int) -> None:
    with pytest.raises(DecodeError, match="ends inside"):
        read(header_with(list_bytes(bytes([code, 0]) + bytes(size), 1)))


def test_the_padding_of_a_list_may_be_anything_and_may_be_counted_or_not() -> None:
    element = direct(r"OS:ab\q")
    for size in (30, 32):
        raw = bytearray(header_with(list_bytes(element, 1, size)))
        raw[30:32] = b"xy"
        found = read(bytes(raw))
        assert found.destinations.elements == (DirectName(r"OS:ab\q"),)
        assert found.write() == raw
        fields_of(found)


def test_we_count_the_padding_of_a_list_in_its_size() -> None:
    raw = AddressList((DirectName(r"OS:ab\q"),)).write(ListId.RESPONSE)
    assert raw == bytes.fromhex("200000002c01000001000000") + direct(r"OS:ab\q") + b"\0\0"


@pytest.mark.spec("MQMQ-2.2.20.2-06")
@pytest.mark.parametrize("count", [0, 2, 4, 0xFFFF_FFFF])
def test_a_count_that_lies_is_refused_cheaply(count: int) -> None:
    raw = bytearray(header_with(THREE_BYTES))
    struct.pack_into("<I", raw, 8, count)
    assert_refused_cheaply(read, bytes(raw))


def test_a_count_that_cannot_fit_is_seen_without_reading_the_elements() -> None:
    raw = bytearray(header_with(THREE_BYTES))
    assert multi_queue.skip(bytes(raw), 0) == len(raw)
    struct.pack_into("<I", raw, 8, 4)
    with pytest.raises(DecodeError, match="4 elements"):
        multi_queue.skip(bytes(raw), 0)


@pytest.mark.parametrize("size", [0, 11, 12, 68, 76, 0xFFFF_FFFF])
def test_a_list_size_that_lies_is_refused_cheaply(size: int) -> None:
    raw = bytearray(header_with(THREE_BYTES))
    struct.pack_into("<I", raw, 0, size)
    assert_refused_cheaply(read, bytes(raw))


def test_a_signature_size_that_lies_is_refused_cheaply() -> None:
    raw = bytearray(MultiQueueFormatHeader(signature=b"sign").write())
    struct.pack_into("<I", raw, len(raw) - 8, 0xFFFF_FFFF)
    assert_refused_cheaply(read, bytes(raw))


@pytest.mark.parametrize(
    ("element", "problem"),
    [
        (direct(""), "too short"),
        (direct("OS:a\\"), "too short"),
        (direct(r"OS:a\q")[:-2] + b"x\0", "terminating NUL"),
        (direct("OS:a\\") + b"q\0\0\0", "too short"),
        (b"\3\0" + b"\0\xd8" * 6 + b"\0\0", "not UTF-16"),
        (direct(r"OS:a\q") + b"\0\0\0\0", "behind the last element"),
    ],
)
def test_a_direct_name_is_terminated_text(element: bytes, problem: str) -> None:
    filled = element if len(element) >= 16 else element + bytes(12)
    with pytest.raises(DecodeError, match=problem):
        read(header_with(list_bytes(filled, 1)))


@pytest.mark.parametrize("text", ["", "OS:a\\", "OS:a\\q\0b", "OS:a\\\ud800"])
def test_a_name_that_cannot_be_read_back_is_not_written(text: str) -> None:
    with pytest.raises(EncodeError):
        AddressList((DirectName(text),)).write(ListId.DESTINATION)


def test_many_short_names_take_a_few_times_their_bytes() -> None:
    names = direct("OS:\u0101\\q") * FORMAT_NAME_MAX_COUNT
    raw = header_with(list_bytes(names, FORMAT_NAME_MAX_COUNT))
    tracemalloc.start()
    read(raw)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 * len(raw)


NAMES = {
    "direct": direct(r"OS:a\q"),
    "public": b"\1\0\0\0" + QUEUE,
    "private": b"\2\0\0\0" + MANAGER + bytes(4),
    "list": b"\6\0\0\0" + QUEUE,
}


@pytest.mark.parametrize("list_id", list(ListId))
@pytest.mark.parametrize("kind", NAMES)
def test_a_list_has_as_many_names_as_a_list_of_format_names(kind: str, list_id: ListId) -> None:
    empty = {one: AddressList().write(one) for one in ListId}

    def header(count: int) -> bytes:
        names = bytearray(list_bytes(NAMES[kind] * count, count))
        struct.pack_into("<H", names, 4, list_id)
        lists = {**empty, list_id: bytes(names)}
        return b"".join(lists.values()) + bytes.fromhex("5e01000000000000")

    most = header(FORMAT_NAME_MAX_COUNT)
    assert multi_queue.check(most, 0) == multi_queue.skip(most, 0) == len(most)
    assert read(most).write() == most
    for count in (FORMAT_NAME_MAX_COUNT + 1, 150_000):
        more = header(count)
        for refused in (read, skip, check):
            with pytest.raises(DecodeError, match=f"{count} names in a list; at most 1024"):
                refused(more)
        # None of them is looked at.
        assert steps_of(functools.partial(_refused, more)) < 100


def check(raw: bytes) -> int:
    return multi_queue.check(raw, 0)


def skip(raw: bytes) -> int:
    return multi_queue.skip(raw, 0)


def _refused(raw: bytes) -> None:
    with contextlib.suppress(DecodeError):
        check(raw)


def test_more_names_than_can_be_read_are_not_written() -> None:
    names = (PublicName(QUEUE),) * (FORMAT_NAME_MAX_COUNT + 1)
    with pytest.raises(EncodeError, match="1025 names in a list; at most 1024"):
        AddressList(names).write(ListId.DESTINATION)


def test_bytes_that_say_something_else_than_the_elements_are_not_written() -> None:
    unaligned = list_bytes(b"\1\0" + QUEUE + direct(r"OS:a\q"), 2)
    for elements, raw in ((THREE, unaligned), (THREE, b"no list"), (THREE, unaligned + b"1234")):
        with pytest.raises(EncodeError, match="bytes kept"):
            AddressList(elements, 0, raw).write(ListId.DESTINATION)


def test_elements_are_shown_as_format_names() -> None:
    assert [describe(element) for element in (*THREE, DistributionListName(QUEUE))] == [
        r"DIRECT=OS:a\q",
        f"PUBLIC={QUEUE}",
        rf"PRIVATE={MANAGER}\9",
        f"DL={QUEUE}",
    ]
    assert describe(DirectName(r"Direct=OS:a\q")) == r"Direct=OS:a\q"
