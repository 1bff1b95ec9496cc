"""Texts that are converted all together are those that are converted one by one."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import Guid, MessageId
from openmsmq.spark.decode import texts
from openmsmq.wire.fields.cursor import utf16_text
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage
from openmsmq.wire.text.bodies import body_text

letters = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
usual = st.text("abc é€", max_size=8)
units = st.lists(
    st.sampled_from([0, 0x61, 0xE9, 0x20AC, 0xD7FF, 0xD83D, 0xDE00, 0xE000]), max_size=5
).map(lambda found: struct.pack(f"<{len(found)}H", *found))
wide = st.one_of(
    usual.map(lambda text: text.encode("utf-16-le")),
    usual.map(lambda text: (text + "\0").encode("utf-16-le")),
    letters.map(lambda text: text.encode("utf-16-le")),
)
narrow = st.one_of(
    usual.map(str.encode),
    letters.map(str.encode),
    st.text("ab\t\r\n\x0b\x0c\x1f\x7f\x80\xa0é", max_size=5).map(str.encode),
    st.binary(max_size=6),
    st.sampled_from([b"\xc3", b"\xa9", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80"]),
)


def narrow_text(raw: bytes) -> str | None:
    properties = MessageProperties(raw, body_size=len(raw))
    return body_text(UserMessage(UserHeader(Guid(16)), properties))


@given(st.lists(wide, max_size=6))
def test_utf16_is_read_alike(values):
    found = texts.wide_texts(pa.array(values, pa.binary()))
    found.validate(full=True)
    assert found.to_pylist() == [utf16_text(raw) for raw in values]


@given(st.lists(wide | units | st.binary(max_size=7), max_size=6))
def test_what_is_not_utf16_is_replaced_alike(values):
    found = texts.wide_texts(pa.array(values, pa.binary()))
    found.validate(full=True)
    assert found.to_pylist() == [utf16_text(raw) for raw in values]


@given(st.lists(narrow, max_size=6))
def test_bytes_that_look_like_text_are_read_alike(values):
    found = texts.narrow_texts(pa.array(values, pa.binary()))
    found.validate(full=True)
    assert found.to_pylist() == [narrow_text(raw) for raw in values]


def test_every_byte_is_text_or_not_wherever_it_stands():
    around = [
        (b"", b""),
        (b"a", b""),
        (b"", b"a"),
        (b"a\n", b""),
        (b"\xc3\xa9", b""),
        (b"\xc3", b""),
    ]
    for octet in range(256):
        values = [before + bytes([octet]) + behind for before, behind in around]
        found = texts.narrow_texts(pa.array(values, pa.binary()))
        assert found.to_pylist() == [narrow_text(raw) for raw in values]


def test_long_lists_of_texts_are_cut_without_a_trace():
    some = ["plain " * 100, "é\n" * 700, "", "😀" * 300, "a\0b", "\x01" * 900]
    values = [some[number % len(some)][number % 7 :] for number in range(1500)]
    raw = pa.array([text.encode() for text in values], pa.binary())
    assert raw.nbytes > 600_000
    assert texts.narrow_texts(raw).to_pylist() == [narrow_text(text.encode()) for text in values]
    raw = pa.array([text.encode("utf-16-le") for text in values], pa.binary())
    found = texts.wide_texts(raw).to_pylist()
    assert found == [text.partition("\0")[0] for text in values]


@given(st.lists(st.tuples(st.binary(min_size=16, max_size=16), st.integers(0, 0xFFFFFFFF))))
def test_identifiers_are_written_alike(values):
    found = values + values[:1]
    if not found:
        return
    sources = np.frombuffer(b"".join(source for source, _ in found), np.uint8).reshape(-1, 16)
    numbers = np.array([number for _, number in found], np.uint32)
    expected = [str(MessageId(Guid(source), number)) for source, number in found]
    assert texts.identifiers(sources, numbers).to_pylist() == expected
    guids = [str(Guid(source)) for source, _ in found]
    assert texts.guid_texts(sources).to_pylist() == guids
    one, number = Guid(found[0][0]), numbers[:1]
    for some in (numbers, number, np.sort(numbers)[-2:]):
        alike = [str(MessageId(one, each)) for each in some.tolist()]
        assert texts.identifiers(sources[0], some).to_pylist() == alike
