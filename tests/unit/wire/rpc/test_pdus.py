"""Fragments of RPC: what is written is read, and any bytes give a value or a `DecodeError`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import Guid
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.rpc.fragments import read_body, read_header, read_verifier
from openmsmq.wire.rpc.pdus import (
    HEADER_BYTES,
    WHOLE,
    Auth3,
    Bind,
    BindAck,
    BindNak,
    Body,
    Fault,
    Flag,
    Header,
    Notice,
    Offer,
    PduType,
    Request,
    Response,
    Result,
    Verifier,
    write,
)
from openmsmq.wire.rpc.syntaxes import Syntax

U8, U16, U32 = st.integers(0, 0xFF), st.integers(0, 0xFFFF), st.integers(0, 0xFFFFFFFF)
GUIDS = st.binary(min_size=16, max_size=16).map(Guid)
SYNTAXES = st.builds(Syntax, GUIDS, U16, U16)
OFFERS = st.builds(Offer, U16, SYNTAXES, st.lists(SYNTAXES, max_size=4).map(tuple))
RESULTS = st.builds(Result, U16, U16, SYNTAXES)
STUBS = st.binary(max_size=300)
BODIES: dict[PduType, st.SearchStrategy[Body]] = {
    PduType.BIND: st.builds(Bind, U16, U16, U32, st.lists(OFFERS, max_size=5).map(tuple)),
    PduType.ALTER_CONTEXT: st.builds(Bind, U16, U16, U32, st.lists(OFFERS, max_size=2).map(tuple)),
    PduType.BIND_ACK: st.builds(
        BindAck, U16, U16, U32, st.binary(max_size=9), st.lists(RESULTS, max_size=5).map(tuple)
    ),
    PduType.BIND_NAK: st.builds(BindNak, U16),
    PduType.REQUEST: st.builds(Request, U16, U16, STUBS, U32, st.none() | GUIDS),
    PduType.RESPONSE: st.builds(Response, U16, STUBS, U32, U8),
    PduType.FAULT: st.builds(Fault, U16, U32, U8),
    PduType.AUTH3: st.just(Auth3()),
    PduType.CO_CANCEL: st.just(Notice(PduType.CO_CANCEL)),
}
PDUS = st.sampled_from(sorted(BODIES)).flatmap(lambda kind: st.tuples(st.just(kind), BODIES[kind]))
VERIFIERS = st.none() | st.builds(Verifier, U8, U8, U32, st.binary(min_size=1, max_size=40))


@given(PDUS, U32, VERIFIERS)
def test_what_is_written_is_read(
    pdu: tuple[PduType, Body], call: int, verifier: Verifier | None
) -> None:
    kind, body = pdu
    flags = WHOLE
    if isinstance(body, Request) and body.object is not None:
        flags |= Flag.OBJECT
    data = write(kind, call, body, verifier, flags)
    header = read_header(data)
    assert (header.kind, header.call, header.length) == (kind, call, len(data))
    assert read_body(header, data) == body
    assert read_verifier(header, data) == verifier


@given(st.binary(max_size=200), st.sampled_from(sorted(PduType)), U8, U16)
def test_any_bytes_are_a_fragment_or_none(
    rest: bytes, kind: PduType, flags: int, auth_length: int
) -> None:
    size = HEADER_BYTES + len(rest)
    data = Header(kind, flags, size, auth_length % (2 * size), 1).encode() + rest
    header = read_header(data)
    for read in (read_body, read_verifier):
        try:
            read(header, data)
        except DecodeError:
            continue


@given(st.binary(max_size=20))
def test_any_bytes_are_a_header_or_none(data: bytes) -> None:
    try:
        header = read_header(data)
    except DecodeError:
        return
    assert len(data) >= HEADER_BYTES
    assert header.length >= HEADER_BYTES or not header.is_understood


def test_the_bytes_of_a_bind_are_those_of_the_specification() -> None:
    """Written down by hand after the layout. [C706 12.6.4.3]"""
    offer = Offer(
        3,
        Syntax.of("e1af8308-5d1f-11c9-91a4-08002b14a0fa", 3),
        (Syntax.of("8a885d04-1ceb-11c9-9fe8-08002b104860", 2),),
    )
    data = write(PduType.BIND, 7, Bind(5840, 5840, 0, (offer,)))
    assert data.hex() == (
        "05000b03100000004800000007000000"
        "d016d01600000000"
        "01000000"
        "03000100"
        "0883afe11f5dc91191a408002b14a0fa03000000"
        "045d888aeb1cc9119fe808002b10486002000000"
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"auth_length": 60}, "longer than its fragment"),
        ({"auth_length": 12}, "padding"),
    ],
)
def test_a_trailer_that_is_not_there_is_none(changed: dict[str, int], message: str) -> None:
    data = write(PduType.REQUEST, 1, Request(0, 0, b"\xff" * 24))
    header = Header(PduType.REQUEST, WHOLE, len(data), **changed, call=1)
    with pytest.raises(DecodeError, match=message):
        read_verifier(header, data)


def test_offers_that_are_not_there_are_none() -> None:
    data = bytearray(write(PduType.BIND, 1, Bind(1, 1, 0, ())))
    data[24] = 200
    with pytest.raises(DecodeError):
        read_body(read_header(bytes(data)), bytes(data))


def test_who_offers_nothing_may_leave_out_the_padding() -> None:
    whole = write(PduType.BIND, 1, Bind(1, 2, 3, ()))
    short = Header(PduType.BIND, WHOLE, 25, 0, 1).encode() + whole[16:25]
    assert read_body(read_header(short), short) == Bind(1, 2, 3, ())
