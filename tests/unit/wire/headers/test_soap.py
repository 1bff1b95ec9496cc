"""Two texts that are kept as they came, padded or not."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.headers import soap
from openmsmq.wire.headers.soap import SoapHeader
from tests.strategies.wire_parts import soap_headers
from tests.unit.wire.codec_checks import (
    assert_fields_cover,
    assert_no_prefix_decodes,
    assert_refused_cheaply,
    assert_same_or_refused,
    assert_survives,
    damaged,
)

ODD = "ab\0".encode("utf-16-le")
EVEN = "a\0".encode("utf-16-le")


def read(data: bytes) -> SoapHeader:
    return soap.read(data, 0)[0]


@given(soap_headers(), st.sampled_from([b"", b"1234", bytes(16)]), st.binary(max_size=9))
def test_a_header_survives_the_wire(header: SoapHeader, before: bytes, after: bytes) -> None:
    assert_survives(soap, header, before, after)


@given(damaged(soap_headers().map(SoapHeader.write)))
def test_any_bytes_are_read_and_written_the_same_or_refused(data: bytes) -> None:
    assert_same_or_refused(soap, data)


@given(soap_headers())
def test_a_header_cut_inside_its_texts_is_refused(header: SoapHeader) -> None:
    raw = header.write()
    texts_end = len(raw) - (-len(header.body) & 3 if header.padded else 0)
    assert_no_prefix_decodes(read, raw[:texts_end])


@given(soap_headers())
def test_the_fields_show_every_byte(header: SoapHeader) -> None:
    assert_fields_cover(header.fields(), len(header.write()))


@pytest.mark.parametrize(
    ("header", "body", "padded", "size"),
    [
        (ODD, ODD, True, 32),
        (ODD, ODD, False, 28),
        (EVEN, EVEN, True, 24),
        (ODD, EVEN, False, 26),
    ],
)
def test_padded_and_unpadded_texts_are_both_read(
    header: bytes, body: bytes, padded: bool, size: int
) -> None:
    gap = b"\0\0" if padded else b""
    raw = b"".join(
        (
            struct.pack("<HHI", 0x0320, 0, len(header) // 2),
            header + (gap if header == ODD else b""),
            struct.pack("<HHI", 0x0384, 0, len(body) // 2),
            body + (gap if body == ODD else b""),
        )
    )
    found, end = soap.read(raw, 0)
    assert (found.header, found.body, found.padded, end) == (header, body, padded, size)
    assert found.write() == raw


def test_a_header_without_gap_at_the_end_of_a_packet_is_unpadded() -> None:
    raw = SoapHeader(EVEN, ODD).write()
    assert read(raw).padded
    assert not read(raw[:-2]).padded
    assert read(raw[:-2]).write() == raw[:-2]


@pytest.mark.spec("MQMQ-2.2.20.7-01", "MQMQ-2.2.20.7-04")
@given(st.integers(0, 0xFFFF), st.sampled_from([0, 12]))
def test_each_section_has_its_identifier(section: int, offset: int) -> None:
    raw = bytearray(SoapHeader(EVEN, EVEN).write())
    right = 0x0320 if offset == 0 else 0x0384
    assert raw[offset : offset + 2] == right.to_bytes(2, "little")
    struct.pack_into("<H", raw, offset, section)
    if section == right:
        assert read(bytes(raw)) == SoapHeader(EVEN, EVEN)
    else:
        with pytest.raises(DecodeError, match="section"):
            read(bytes(raw))


@pytest.mark.spec("MQMQ-2.2.20.7-02", "MQMQ-2.2.20.7-05")
@given(st.integers(0, 0xFFFF), st.integers(0, 0xFFFF))
def test_reserved_fields_are_sent_as_zero_and_ignored(first: int, second: int) -> None:
    raw = bytearray(SoapHeader(EVEN, EVEN).write())
    assert raw[2:4] == raw[14:16] == b"\0\0"
    struct.pack_into("<H", raw, 2, first)
    struct.pack_into("<H", raw, 14, second)
    found = read(bytes(raw))
    assert (found.header, found.body) == (EVEN, EVEN)


@pytest.mark.spec("MQMQ-2.2.20.7-03", "MQMQ-2.2.20.7-06")
def test_the_lengths_count_code_units_with_the_terminator() -> None:
    raw = SoapHeader(ODD, EVEN).write()
    assert struct.unpack_from("<I", raw, 4)[0] == 3
    assert struct.unpack_from("<I", raw, 20)[0] == 2
    assert (read(raw).header, read(raw).body) == (ODD, EVEN)


@pytest.mark.parametrize("offset", [4, 16])
def test_a_length_that_lies_is_refused_cheaply(offset: int) -> None:
    raw = bytearray(SoapHeader(EVEN, EVEN).write())
    struct.pack_into("<I", raw, offset, 0xFFFF_FFFF)
    assert_refused_cheaply(read, bytes(raw))


def test_half_a_code_unit_is_not_written() -> None:
    with pytest.raises(EncodeError, match="half"):
        SoapHeader(b"abc").write()
