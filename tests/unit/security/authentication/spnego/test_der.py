from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyasn1.codec.der import decoder, encoder
from pyasn1.type.univ import OctetString

from openmsmq.security.authentication.spnego.der import OCTETS, Reader, encode
from openmsmq.wire.errors import DecodeError


@pytest.mark.parametrize("size", [0, 1, 127, 128, 255, 256, 65_535, 65_536])
def test_it_agrees_with_pyasn1(size: int) -> None:
    content = bytes(size)
    element = encode(OCTETS, content)
    assert element == encoder.encode(OctetString(content))
    assert decoder.decode(element)[0].asOctets() == content
    reader = Reader(element, "test")
    assert reader.take(OCTETS) == content
    reader.finish()


@given(st.binary(max_size=50))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    reader = Reader(data, "test")
    with suppress(DecodeError):
        while not reader.is_at_end:
            reader.take(reader.tag())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x04",
        b"\x04\x01",
        b"\x04\x80",  # without an end that is known
        b"\x04\x85\0\0\0\0\0",  # the length of a length
        b"\x04\x84\xff\xff\xff\xff",
        b"\x04\x82\x01",
        b"\x05\x00",
    ],
)
def test_what_is_no_element_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        Reader(data, "test").take(OCTETS)


def test_nothing_stands_behind_the_end() -> None:
    reader = Reader(encode(OCTETS) + b"\0", "test")
    reader.take(OCTETS)
    with pytest.raises(DecodeError, match="behind the end"):
        reader.finish()
