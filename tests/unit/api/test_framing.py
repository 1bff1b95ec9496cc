"""Calls and answers survive the way, however it is cut; nonsense is refused."""

from __future__ import annotations

import struct
import sys

import msgspec
import msgspec.inspect
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openmsmq.api import messages as api
from openmsmq.api.base import NUMBER_MAX, Number
from openmsmq.api.framing import (
    FRAME_MAX_BYTES,
    LARGE_FRAME_BYTES,
    PLACE_KEPT_MAX_BYTES,
    ApiError,
    FrameReader,
    encode_frame,
    encode_frames,
    encode_large_frame,
)

REQUESTS = list(api.REQUESTS)
REPLIES = list(api.REPLIES)


def one_of_each(kinds: list[type]) -> st.SearchStrategy[object]:
    """Any value of any of these kinds, drawn from their annotations."""
    return st.one_of(
        [st.builds(kind) if not kind.__struct_fields__ else _built(kind) for kind in kinds]
    )


def _built(kind: type) -> st.SearchStrategy[object]:
    fields = msgspec.structs.fields(kind)
    return st.builds(kind, **{field.name: _values(field.type) for field in fields})


def _values(annotation: object) -> st.SearchStrategy[object]:
    plain: dict[object, st.SearchStrategy[object]] = {
        int: st.integers(-(2**63), 2**64 - 1),
        Number: st.integers(-(2**63), NUMBER_MAX),
        bool: st.booleans(),
        str: st.text(st.characters(exclude_categories=["Cs"]), max_size=10),
        bytes: st.binary(max_size=20),
        type(None): st.none(),
    }
    if annotation in plain:
        return plain[annotation]
    origin = getattr(annotation, "__origin__", None)
    if origin is list:
        return st.lists(_values(annotation.__args__[0]), max_size=3)  # type: ignore[attr-defined]
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return _built(annotation)
    return st.one_of([_values(part) for part in annotation.__args__])  # type: ignore[attr-defined]


def _numbers_in(kind: msgspec.inspect.Type) -> list[msgspec.inspect.IntType]:
    """Find the numbers in a type, however deep."""
    match kind:
        case msgspec.inspect.IntType():
            return [kind]
        case msgspec.inspect.StructType(fields=fields):
            return [found for field in fields for found in _numbers_in(field.type)]
        case msgspec.inspect.UnionType(types=types):
            return [found for one in types for found in _numbers_in(one)]
        case msgspec.inspect.ListType(item_type=item):
            return _numbers_in(item)
        case _:
            return []


@pytest.mark.parametrize("kind", [api.Call, *REQUESTS], ids=lambda kind: kind.__name__)
def test_no_request_has_a_number_that_python_cannot_count_to(kind: type) -> None:
    for number in _numbers_in(msgspec.inspect.type_info(kind)):
        assert number.le is not None
        assert number.le <= sys.maxsize


def test_a_number_that_is_too_large_is_refused() -> None:
    call = api.Call(1, api.ReadDirectory(b"", 0, NUMBER_MAX))
    reader = FrameReader(api.Call)
    reader.feed(encode_frame(call))
    assert next(reader.items()) == call
    reader.feed(encode_frame(api.Call(2, api.ReadDirectory(b"", 0, NUMBER_MAX + 1))))
    with pytest.raises(ApiError, match=str(NUMBER_MAX)):
        next(reader.items())


calls = st.builds(api.Call, st.integers(0, 2**63 - 1), one_of_each(REQUESTS))
answers = st.builds(api.Answer, st.integers(0, 2**63 - 1), one_of_each(REPLIES))


large_answers = st.builds(
    api.Answer,
    st.integers(0, 99),
    st.builds(
        lambda size, octet: api.Packets(b"", b"", bytes([octet]) * size),
        st.sampled_from(
            [LARGE_FRAME_BYTES // 2, LARGE_FRAME_BYTES, 4 * LARGE_FRAME_BYTES, PLACE_KEPT_MAX_BYTES]
        ),
        st.integers(0, 255),
    ),
)


@settings(max_examples=30)
@given(
    st.lists(answers | large_answers, max_size=5),
    st.lists(
        st.tuples(st.integers(0, 6) | st.integers(1, 8 * LARGE_FRAME_BYTES), st.booleans()),
        min_size=1,
        max_size=30,
    ),
)
def test_large_answers_are_read_into_a_place_of_their_own(
    expected: list[api.Answer], reads: list[tuple[int, bool]]
) -> None:
    reader, data = FrameReader(api.Answer), memoryview(encode_frames(expected))
    got: list[api.Answer] = []
    for size, use_room in [*reads, *[(LARGE_FRAME_BYTES, True)] * 400]:
        room = reader.room() if use_room else None
        if room is None:
            reader.feed(data[:size])
        else:
            size = min(size, len(room), len(data))
            room[:size] = data[:size]
            reader.filled(size)
        data = data[size:]
        got += reader.items()
    assert len(data) == 0
    assert got == expected


@given(answers)
def test_a_large_frame_has_the_same_bytes(answer: api.Answer) -> None:
    assert encode_large_frame(answer) == encode_frame(answer)


@given(st.lists(calls, max_size=5), st.data())
def test_calls_come_out_as_they_went_in_however_the_stream_is_cut(
    sent: list[api.Call], data: st.DataObject
) -> None:
    stream = encode_frames(sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    reader = FrameReader(api.Call)
    received: list[api.Call] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        reader.feed(stream[start:end])
        received += reader.items()
    assert received == sent


@given(answers)
def test_any_answer_survives_the_way(answer: api.Answer) -> None:
    reader = FrameReader(api.Answer)
    reader.feed(memoryview(encode_frame(answer)))
    assert list(reader.items()) == [answer]


@given(st.binary(max_size=100))
def test_any_bytes_are_a_call_or_are_refused(body: bytes) -> None:
    reader = FrameReader(api.Call)
    reader.feed(struct.pack("<I", len(body)) + body)
    try:
        assert len(list(reader.items())) == 1
    except ApiError as error:
        assert "nothing we know" in str(error)  # noqa: PT017


def test_a_frame_that_is_too_long_is_refused_before_it_is_held() -> None:
    reader = FrameReader(api.Call)
    reader.feed(struct.pack("<I", FRAME_MAX_BYTES + 1))
    with pytest.raises(ApiError, match="at most"):
        list(reader.items())


def test_an_answer_that_is_too_long_is_not_sent() -> None:
    entry = api.Entry(1, 2, 3, 4, bytes(FRAME_MAX_BYTES))
    with pytest.raises(ApiError, match="send fewer"):
        encode_frame(api.Answer(1, api.Entries([entry])))


def test_deep_nesting_is_refused() -> None:
    body = b"\x92\x01" + b"\x91" * 100_000
    reader = FrameReader(api.Call)
    reader.feed(struct.pack("<I", len(body)) + body)
    with pytest.raises(ApiError):
        list(reader.items())


@given(st.integers(0, 7), st.integers(0, 2**56 - 1))
def test_the_arrival_number_is_the_lookup_identifier_without_the_priority(
    level: int, number: int
) -> None:
    assert api.Entry(level << 56 | number, 0, 0, 0, b"").arrival_number == number
