"""Formatters give back what they wrote, and no body makes them fail in an unexpected way."""

# ruff: noqa: DTZ001 - dates in message bodies have no time zone

from __future__ import annotations

import struct
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from xml.etree.ElementTree import Element

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from openmsmq.client.formatters import (
    Formatter,
    FormatterError,
    find_formatter,
    register_formatter,
)
from openmsmq.client.formatters.nservicebus import read_headers, write_headers
from openmsmq.client.formatters.xml_text import DEPTH_MAX_COUNT
from openmsmq.model.message import BodyType

ACTIVE_X, XML, JSON, BYTES = (find_formatter(n) for n in ("active_x", "xml", "json", "bytes"))
ALL = [ACTIVE_X, XML, JSON, BYTES]

texts = st.text(st.characters(exclude_categories=["Cs"]))
xml_texts = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")
    | st.sampled_from("\t\n\r<>&'\" ")
)
whole_numbers = st.integers(-(1 << 63), (1 << 64) - 1)
currency = st.integers(-(1 << 63), (1 << 63) - 1).map(lambda n: Decimal(n).scaleb(-4))
milliseconds = st.datetimes(min_value=datetime(100, 1, 1)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
)
simple = (
    texts
    | st.binary()
    | st.booleans()
    | whole_numbers
    | st.floats(allow_nan=False)
    | currency
    | milliseconds
    | st.uuids()
    | st.none()
)
xml_simple = (
    xml_texts
    | st.binary()
    | st.booleans()
    | whole_numbers
    | st.floats(allow_nan=False)
    | st.decimals(allow_nan=False, allow_infinity=False, places=6)
    | st.datetimes()
    | st.datetimes(timezones=st.just(UTC))
    | st.uuids()
)


def round_trip(formatter: Formatter, value: object) -> object:
    return formatter.read(*formatter.write(value))


@given(simple)
@example(datetime(1899, 12, 29, 18, 0))
@example(datetime(1899, 12, 30))
def test_active_x_gives_simple_values_back(value: object) -> None:
    found = round_trip(ACTIVE_X, value)
    assert found == value
    assert type(found) is type(value)


@given(xml_simple)
def test_xml_gives_simple_values_back(value: object) -> None:
    found = round_trip(XML, value)
    assert found == value
    assert type(found) is type(value)


@given(st.lists(xml_texts) | st.lists(st.integers(-100, 100)) | st.lists(st.binary()))
def test_xml_gives_lists_of_one_type_back(values: list[object]) -> None:
    assert round_trip(XML, values) == values


@given(
    st.recursive(
        texts | st.integers(-(1 << 53), 1 << 53) | st.booleans() | st.none(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
        max_leaves=8,
    )
)
def test_json_gives_values_back(value: object) -> None:
    assert round_trip(JSON, value) == value


@given(st.binary())
def test_bytes_stay_as_they_are(value: bytes) -> None:
    assert BYTES.write(value) == (0, value)
    assert BYTES.read(768, value) == value


@pytest.mark.parametrize("formatter", ALL, ids=lambda formatter: formatter.name)
@given(
    body_type=st.sampled_from(BodyType).map(int) | st.integers(0, 0xFFFF_FFFF),
    body=st.binary(max_size=24)
    | st.text(st.sampled_from('<>/?!"=aAintsrgbo0-'), max_size=24).map(str.encode),
)
def test_any_body_gives_a_value_or_the_one_error(
    formatter: Formatter, body_type: int, body: bytes
) -> None:
    with suppress(FormatterError):
        formatter.read(body_type, body)


@given(
    tag=st.sampled_from(["int", "char", "dateTime", "decimal", "guid", "double", "base64Binary"]),
    text=st.text(st.sampled_from("0123456789-+.:TZeEINFa=/ "), max_size=30),
)
@example(tag="char", text="-1")
@example(tag="decimal", text="1e9999999")
@example(tag="int", text="9" * 5000)
def test_any_text_in_a_simple_element_gives_a_value_or_the_one_error(tag: str, text: str) -> None:
    with suppress(FormatterError):
        XML.read(0, f"<{tag}>{text}</{tag}>".encode())


@pytest.mark.parametrize(
    ("value", "body_type", "body"),
    [
        ("hé", 8, b"h\0\xe9\0"),
        (b"raw", 0x1011, b"raw"),
        (True, 11, b"\xff\xff"),
        (False, 11, b"\0\0"),
        (-2, 3, b"\xfe\xff\xff\xff"),
        (1 << 31, 20, b"\0\0\0\x80\0\0\0\0"),
        ((1 << 64) - 1, 21, b"\xff" * 8),
        (1.5, 5, struct.pack("<d", 1.5)),
        (Decimal("12.3456"), 6, struct.pack("<q", 123456)),
        (datetime(1900, 1, 1, 12), 7, struct.pack("<d", 2.5)),
        (datetime(1899, 12, 29, 6), 7, struct.pack("<d", -1.25)),
        (None, 1, b""),
        (
            uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"),
            72,
            bytes.fromhex("33221100554477668899aabbccddeeff"),
        ),
    ],
    ids=repr,
)
def test_active_x_writes_the_variant_types(value: object, body_type: int, body: bytes) -> None:
    assert ACTIVE_X.write(value) == (body_type, body)


@pytest.mark.parametrize(
    ("body_type", "body", "value"),
    [
        (BodyType.WIDE_TEXT, b"h\0i\0\0\0", "hi"),
        (BodyType.NARROW_TEXT, b"hi\0", "hi"),
        (BodyType.INT16, b"\xff\xff", -1),
        (BodyType.UINT8, b"\xff", 255),
        (BodyType.FLOAT32, struct.pack("<f", 0.5), 0.5),
        (BodyType.BOOLEAN, b"\xff", True),
        (0x2011, b"array", b"array"),
        (768, b"\0\1.NET", b"\0\1.NET"),
        (0, b"untyped", b"untyped"),
    ],
)
def test_active_x_reads_what_others_write(body_type: int, body: bytes, value: object) -> None:
    assert ACTIVE_X.read(body_type, body) == value


def test_a_moment_with_a_time_zone_is_written_in_utc() -> None:
    berlin = timezone(timedelta(hours=2))
    assert ACTIVE_X.write(datetime(2026, 1, 1, 14, tzinfo=berlin)) == ACTIVE_X.write(
        datetime(2026, 1, 1, 12)
    )


@pytest.mark.parametrize(
    "value",
    [Decimal("0.00001"), Decimal("1e30"), Decimal("NaN"), 1 << 64, "\ud800", Ellipsis, [1]],
    ids=repr,
)
def test_active_x_refuses_what_it_would_change(value: object) -> None:
    with pytest.raises(FormatterError):
        ACTIVE_X.write(value)


def test_xml_is_what_xml_message_formatter_writes() -> None:
    assert XML.write("a<b") == (0, b'<?xml version="1.0"?>\r\n<string>a&lt;b</string>')
    assert XML.write(7) == (0, b'<?xml version="1.0"?>\r\n<int>7</int>')


def test_xml_with_byte_order_mark_and_seven_digits_is_read() -> None:
    body = b"\xef\xbb\xbf<?xml version='1.0'?><dateTime>2026-01-02T03:04:05.1234567Z</dateTime>"
    assert XML.read(0, body) == datetime(2026, 1, 2, 3, 4, 5, 123456, UTC)


def test_xml_of_a_class_is_a_tree() -> None:
    found = XML.read(0, b"<Order><Number>5</Number></Order>")
    assert isinstance(found, Element)
    assert found.findtext("Number") == "5"


@pytest.mark.parametrize(
    "body",
    [
        b'<!DOCTYPE x [<!ENTITY a "aaaa">]><string>&a;</string>',
        b'<!DOCTYPE string SYSTEM "file:secret"><string/>',
        b"<!DOCTYPE string><string>x</string>",
    ],
)
def test_xml_with_a_document_type_is_refused(body: bytes) -> None:
    with pytest.raises(FormatterError, match="document type"):
        XML.read(0, body)


def test_xml_is_not_nested_without_end() -> None:
    depth = DEPTH_MAX_COUNT + 1
    with pytest.raises(FormatterError, match="nested"):
        XML.read(0, b"<a>" * depth + b"</a>" * depth)


@pytest.mark.parametrize("value", ["\0", "\x1b", [1, "a"], Ellipsis, 1 << 64], ids=repr)
def test_xml_refuses_what_it_cannot_hold(value: object) -> None:
    with pytest.raises(FormatterError):
        XML.write(value)


@pytest.mark.parametrize("value", [Ellipsis, {1: {2, Ellipsis}}, "\ud800"])
def test_json_refuses_what_it_cannot_hold(value: object) -> None:
    with pytest.raises(FormatterError):
        JSON.write(value)


def test_json_in_text_is_read() -> None:
    assert JSON.read(BodyType.TEXT, '{"a":1}'.encode("utf-16-le")) == {"a": 1}


@given(st.dictionaries(xml_texts, xml_texts, max_size=5))
def test_headers_of_nservicebus_come_back(headers: dict[str, str]) -> None:
    assert read_headers(write_headers(headers)) == headers


def test_headers_are_read_with_zeros_behind_them_and_without_values() -> None:
    extension = (
        b'<?xml version="1.0"?><ArrayOfHeaderInfo><HeaderInfo><Key>a</Key></HeaderInfo>'
        b"<HeaderInfo><Key>b</Key><Value>1</Value></HeaderInfo></ArrayOfHeaderInfo>\0\0"
    )
    assert read_headers(extension) == {"a": "", "b": "1"}
    assert read_headers(b"") == {}


@pytest.mark.parametrize(
    "extension",
    [b"anything", b"<other/>", b"<ArrayOfHeaderInfo><HeaderInfo/></ArrayOfHeaderInfo>"],
)
def test_an_extension_of_something_else_is_no_list_of_headers(extension: bytes) -> None:
    with pytest.raises(FormatterError):
        read_headers(extension)


class Upside:
    name = "upside"

    def write(self, value: object) -> tuple[int, bytes]:
        return 7, str(value).encode()[::-1]

    def read(self, body_type: int, body: bytes) -> object:
        return body_type, body[::-1]


def test_a_formatter_of_ones_own_is_found_by_its_name() -> None:
    register_formatter(Upside())
    found = find_formatter("upside")
    assert round_trip(found, "abc") == (7, b"abc")
    assert find_formatter(found) is found


def test_an_unknown_formatter_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="active_x"):
        find_formatter("yaml")
