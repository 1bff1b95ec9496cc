"""A stream of fragments, cut anywhere, gives the same fragments, and long ones are never kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.limits import RPC_BIND_MAX_BYTES, RPC_FRAGMENT_MAX_BYTES
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.rpc.fragments import FragmentBuffer, TooLong
from openmsmq.wire.rpc.pdus import WHOLE, Header, PduType, Request, write

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
