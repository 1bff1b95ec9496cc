from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import Guid
from openmsmq.security.access.descriptors import (
    ACCESS_LIST_MAX_BYTES,
    DESCRIPTOR_MAX_BYTES,
    AccessEntry,
    Ace,
    BadDescriptor,
    Descriptor,
    decode,
    decode_aces,
    encode,
    encode_aces,
)
from openmsmq.security.access.sids import EVERYONE, unix_user
from tests.strategies.descriptors import descriptors, entries

ALICE = unix_user(1000)
ONLY_ALICE = Descriptor(ALICE, b"", (AccessEntry(ALICE, 4),))


def descriptor(*aces: bytes, count: int | None = None, size: int | None = None) -> bytes:
    body = b"".join(aces)
    length = 8 + len(body) if size is None else size
    acl = struct.pack("<BBHHH", 2, 0, length, len(aces) if count is None else count, 0) + body
    return struct.pack("<BBHIIII", 1, 0, 0x8004, 0, 0, 0, 20) + acl


def ace(kind: int, mask: int, body: bytes, flags: int = 0, size: int | None = None) -> bytes:
    length = 8 + len(body) if size is None else size
    return struct.pack("<BBHI", kind, flags, length, mask) + body


@given(descriptors)
def test_a_descriptor_survives_writing_and_reading(value: Descriptor) -> None:
    assert decode(encode(value)) == value


@given(
    st.lists(st.builds(Ace, entries, st.one_of(st.none(), st.just(Guid(b"g" * 16)))), max_size=5)
)
def test_entries_about_single_properties_survive_and_count_for_nothing_else(
    aces: list[Ace],
) -> None:
    data = encode_aces(ALICE, b"", aces)
    assert decode_aces(data) == (ALICE, b"", aces)
    assert decode(data).entries == tuple(each.entry for each in aces if each.about is None)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_descriptor_or_bad(data: bytes) -> None:
    with suppress(BadDescriptor):
        found = decode(data)
        assert decode(encode(found)) == found


@given(descriptors, st.data())
def test_a_descriptor_with_one_wrong_byte_is_a_descriptor_or_bad(
    value: Descriptor, data: st.DataObject
) -> None:
    raw = bytearray(encode(value))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with suppress(BadDescriptor):
        decode(bytes(raw))


@given(st.data())
def test_a_descriptor_that_is_cut_short_is_bad(data: st.DataObject) -> None:
    raw = encode(ONLY_ALICE)
    with pytest.raises(BadDescriptor):
        decode(raw[: data.draw(st.integers(0, len(raw) - 1))])


def test_an_entry_that_cannot_be_read_is_not_passed_over() -> None:
    # The entry that denies names nobody: without it, everybody would be let in.
    lies = descriptor(ace(1, 4, b"\x01\xff" + bytes(6)), ace(0, 4, EVERYONE))
    with pytest.raises(BadDescriptor, match="names nobody"):
        decode(lies)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (descriptor(ace(0, 4, EVERYONE), count=2), "fewer entries"),
        (descriptor(ace(0, 4, EVERYONE), size=9000), "does not fit its descriptor"),
        (descriptor(ace(0, 4, EVERYONE), size=4), "does not fit its descriptor"),
        (descriptor(ace(0, 4, EVERYONE, size=300)), "does not fit its access list"),
        (descriptor(ace(0, 4, EVERYONE, size=0)), "does not fit its access list"),
        (descriptor(ace(5, 4, b"\x01")), "cut short"),
        (b"", "cut short"),
        (b"\x02" + descriptor()[1:], "revision 1"),
        (bytes(20), "revision 1"),
        (bytes(DESCRIPTOR_MAX_BYTES + 1), "at most"),
        (struct.pack("<BBHIIII", 1, 0, 0x8000, 0xFFFFFFFF, 0, 0, 0), "owner"),
        (struct.pack("<BBHIIII", 1, 0, 0x8004, 0, 0, 0, 0xFFFFFFFF), "cut short"),
    ],
)
def test_lies_of_the_bytes_are_named(data: bytes, what: str) -> None:
    with pytest.raises(BadDescriptor, match=what):
        decode(data)


def test_what_has_a_condition_denies_always_and_allows_never() -> None:
    found = decode(descriptor(ace(9, 4, EVERYONE), ace(10, 2, EVERYONE)))
    assert found.entries == (AccessEntry(EVERYONE, 2, is_denied=True),)


def test_audits_and_what_is_only_for_others_below_say_nothing() -> None:
    found = decode(descriptor(ace(2, 4, EVERYONE), ace(0, 4, EVERYONE, flags=0x08)))
    assert found.entries == ()


def test_a_list_that_is_too_long_is_not_written() -> None:
    many = tuple(AccessEntry(unix_user(number), 4) for number in range(ACCESS_LIST_MAX_BYTES // 24))
    assert decode(encode(Descriptor(b"", b"", many))).entries == many
    with pytest.raises(BadDescriptor, match="use groups"):
        encode(Descriptor(b"", b"", (*many, AccessEntry(ALICE, 1))))
