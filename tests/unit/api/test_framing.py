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
from openmsmq.api.base import (
    NAME_MAX_CHARACTERS,
    NUMBER_MAX,
    OCTETS_MAX_BYTES,
    SEVERAL_MAX_COUNT,
    TEXT_MAX_CHARACTERS,
    Number,
)
from openmsmq.api.framing import (
    FRAME_MAX_BYTES,
    LARGE_FRAME_BYTES,
    PLACE_KEPT_MAX_BYTES,
    ApiError,
    FrameReader,
    encode_frame,
    encode_frames,
    encode_in_parts,
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
        memoryview: st.binary(max_size=20),
        type(None): st.none(),
    }
    if annotation in plain:
        return plain[annotation]
    origin = getattr(annotation, "__origin__", None)
    if hasattr(annotation, "__metadata__"):
        # A text, bytes or a list, shorter by far than they may be.
        return _values(origin)
    if origin is list:
        return st.lists(_values(annotation.__args__[0]), max_size=3)  # type: ignore[attr-defined]
    if origin is dict:
        key, value = annotation.__args__  # type: ignore[attr-defined]
        return st.dictionaries(_values(key), _values(value), max_size=3)
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


WITHOUT_BOUND = {("Send", "packets[]"), ("SendOnce", "packet"), ("ChangeDirectory", "rows[].data")}
"""Messages, and objects of the directory: they may be as long as a frame."""


def _unbounded_in(kind: msgspec.inspect.Type, place: str = "") -> set[str]:
    """Find the texts, bytes and lists in a type that may be of any length, however deep."""
    match kind:
        case (
            msgspec.inspect.StrType(max_length=None)
            | msgspec.inspect.BytesType(max_length=None)
            | msgspec.inspect.ListType(max_length=None)
        ):
            return {place}
        case msgspec.inspect.StructType(fields=fields):
            found = [_unbounded_in(field.type, f"{place}.{field.name}") for field in fields]
            return {each.lstrip(".") for one in found for each in one}
        case msgspec.inspect.UnionType(types=types):
            return {each for one in types for each in _unbounded_in(one, place)}
        case msgspec.inspect.ListType(item_type=item):
            return _unbounded_in(item, f"{place}[]")
        case (
            msgspec.inspect.StrType()
            | msgspec.inspect.BytesType()
            | msgspec.inspect.IntType()
            | msgspec.inspect.BoolType()
            | msgspec.inspect.NoneType()
        ):
            return set()
        case _:
            raise AssertionError(f"{kind} at {place}: say here how long it may be")


def test_every_text_and_list_of_a_request_has_a_bound_but_for_what_messages_contain() -> None:
    found = {
        (kind.__name__, place)
        for kind in REQUESTS
        for place in _unbounded_in(msgspec.inspect.type_info(kind))
    }
    assert found == WITHOUT_BOUND


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (api.GetNames("a" * NAME_MAX_CHARACTERS), api.GetNames("a" * (NAME_MAX_CHARACTERS + 1))),
        (
            api.GetBatch("a" * TEXT_MAX_CHARACTERS),
            api.GetBatch("a" * (TEXT_MAX_CHARACTERS + 1)),
        ),
        (
            api.RegisterCertificate(bytes(OCTETS_MAX_BYTES)),
            api.RegisterCertificate(bytes(OCTETS_MAX_BYTES + 1)),
        ),
        (api.Send(1, [b""] * SEVERAL_MAX_COUNT), api.Send(1, [b""] * (SEVERAL_MAX_COUNT + 1))),
    ],
    ids=["name", "text", "octets", "several"],
)
def test_what_is_too_long_is_refused_with_the_frame(
    good: api.AnyRequest, bad: api.AnyRequest
) -> None:
    reader = FrameReader(api.Call)
    reader.feed(encode_frame(api.Call(1, good)))
    assert next(reader.items()).request == good
    reader.feed(encode_frame(api.Call(2, bad)))
    with pytest.raises(ApiError, match="length <= "):
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


long_answers = st.builds(
    api.Answer,
    st.integers(0, 2**64 - 1),
    st.builds(
        api.Packets,
        st.sampled_from([0, 8, 31, 32, 255, 256, 65_535, 65_536]).map(bytes),
        st.binary(max_size=40),
        st.sampled_from([0, 20, 65_535, 65_536, 65_537, 200_000]).map(lambda size: b"e" * size),
        st.integers(-(2**63), 2**64 - 1),
    ),
)


@given(st.lists(st.one_of(answers, long_answers), max_size=5))
def test_frames_in_parts_have_the_same_bytes(items: list[api.Answer]) -> None:
    parts = encode_in_parts(items)
    assert b"".join(parts) == encode_frames(items)
    entries = [item.reply.entries for item in items if isinstance(item.reply, api.Packets)]
    for long in entries:
        if len(long) >= 1 << 16:
            assert any(part is long for part in parts), "what is long is not copied"


def test_a_frame_that_is_too_long_is_refused_in_parts_too() -> None:
    most = api.Packets(b"", b"", bytes(FRAME_MAX_BYTES - 100), 0)
    assert len(encode_in_parts([api.Answer(1, most)])) == 3
    with pytest.raises(ApiError, match="send fewer at once"):
        encode_in_parts([api.Answer(1, api.Packets(b"", b"", bytes(FRAME_MAX_BYTES), 0))])


def test_the_place_of_an_answer_is_used_again_when_nobody_has_the_answer_any_more() -> None:
    reader = FrameReader(api.Answer)

    def read(octet: int) -> api.Packets:
        frame = encode_frame(
            api.Answer(octet, api.Packets(b"", b"", bytes([octet]) * 2 * LARGE_FRAME_BYTES))
        )
        reader.feed(frame[:100])
        room = reader.room()
        assert room is not None
        room[:] = frame[100:]
        reader.filled(len(room))
        (answer,) = reader.items()
        assert isinstance(answer.reply, api.Packets)
        return answer.reply

    def place(reply: api.Packets) -> int:
        assert isinstance(reply.entries, memoryview)
        return id(reply.entries.obj)

    held = [read(octet) for octet in range(5)]
    assert len(set(map(place, held))) == 5
    assert [set(reply.entries) for reply in held] == [{octet} for octet in range(5)]
    places = set(map(place, held))
    held.clear()
    for octet in range(9):
        assert place(read(octet)) in places


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
