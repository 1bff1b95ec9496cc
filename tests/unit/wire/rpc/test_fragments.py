"""A stream of fragments, cut anywhere, gives the same fragments, and long ones are never kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.limits import RPC_BIND_MAX_BYTES, RPC_FRAGMENT_MAX_BYTES
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.rpc.fragments import (
    FragmentBuffer,
    TooLong,
    read_body,
    read_header,
    read_request,
    request_head,
    response_head,
    trailer,
)
from openmsmq.wire.rpc.pdus import WHOLE, Flag, Header, PduType, Request, Response, Verifier, write

FRAGMENTS = st.lists(
    st.builds(
        lambda call, stub: write(PduType.REQUEST, call, Request(0, 0, stub)),
        st.integers(0, 9),
        st.binary(max_size=60),
    ),
    max_size=6,
)


@given(FRAGMENTS, st.integers(1, 50))
def test_however_it_is_cut_the_fragments_are_the_same(fragments: list[bytes], size: int) -> None:
    buffer = FragmentBuffer()
    data = b"".join(fragments)
    found = []
    for at in range(0, len(data), size):
        buffer.feed(data[at : at + size])
        found += [fragment for _, fragment in buffer.fragments()]
    assert found == fragments
    assert buffer.held_bytes == 0


@pytest.mark.parametrize(
    ("kind", "most"),
    [(PduType.REQUEST, RPC_FRAGMENT_MAX_BYTES), (PduType.ALTER_CONTEXT, RPC_BIND_MAX_BYTES)],
)
def test_a_length_that_is_too_long_is_refused_by_its_header(kind: PduType, most: int) -> None:
    buffer = FragmentBuffer()
    buffer.feed(Header(kind, WHOLE, most, 0, 1).encode())
    assert list(buffer.fragments()) == []
    buffer = FragmentBuffer()
    buffer.feed(Header(kind, WHOLE, most + 1, 0, 1).encode())
    with pytest.raises(TooLong) as found:
        list(buffer.fragments())
    assert found.value.header.length == most + 1


def test_a_length_that_is_too_short_is_refused() -> None:
    buffer = FragmentBuffer()
    buffer.feed(Header(PduType.REQUEST, WHOLE, 15, 0, 1).encode())
    with pytest.raises(DecodeError):
        list(buffer.fragments())


WORDS = st.integers(0, 0xFFFF)
LONGS = st.integers(0, 0xFFFF_FFFF)
OCTETS = st.integers(0, 255)


@given(OCTETS, LONGS, LONGS, WORDS, WORDS, st.binary(max_size=40))
def test_what_stands_around_a_stub_is_what_a_fragment_has_there(
    flags: int, call: int, hint: int, context: int, operation: int, stub: bytes
) -> None:
    verifier = Verifier(10, 6, 1, bytes(16), 3)
    behind = trailer(10, 6, 1, 3) + bytes(16)
    length = 24 + len(stub) + len(behind)
    asked = write(PduType.REQUEST, call, Request(context, operation, stub, hint), verifier, flags)
    assert request_head(flags, length, 16, call, hint, context, operation) + stub + behind == asked
    given_ = Response(context, stub, hint, operation & 0xFF)
    said = write(PduType.RESPONSE, call, given_, verifier, flags)
    head = response_head(flags, length, 16, call, hint, context, operation & 0xFF)
    assert head + stub + behind == said


def test_what_does_not_fit_is_not_written() -> None:
    for write_head in (request_head, response_head):
        with pytest.raises(EncodeError):
            write_head(0, 0x1_0000, 0, 1, 0, 0, 0)
    with pytest.raises(EncodeError):
        trailer(256, 0, 0, 0)


@given(st.binary(max_size=60), OCTETS, st.integers(16, 70), st.integers(0, 40))
def test_the_fields_of_a_call_are_refused_where_its_body_is(
    rest: bytes, flags: int, length: int, auth_length: int
) -> None:
    data = Header(PduType.REQUEST, flags, length, auth_length, 7).encode() + rest
    header = read_header(data)
    problem, body = "", None
    try:
        body = read_body(header, data)
    except DecodeError as error:
        problem = str(error)
    if body is None:
        with pytest.raises(DecodeError) as found:
            read_request(header, data)
        assert str(found.value) == problem
    else:
        assert isinstance(body, Request)
        assert read_request(header, data) == (body.hint, body.context, body.operation)


def test_a_call_that_ends_inside_its_object_is_refused() -> None:
    data = Header(PduType.REQUEST, WHOLE | Flag.OBJECT, 39, 0, 7).encode() + bytes(40)
    header = read_header(data)
    for read in (read_request, read_body):
        with pytest.raises(DecodeError):
            read(header, data)
