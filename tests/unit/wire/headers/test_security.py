"""The security items of a message: present by size, padded, opaque."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import Guid
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.headers import security
from openmsmq.wire.headers.security import ProviderInfo, SecurityHeader, SenderKind, sid_text
from tests.strategies.wire_parts import security_headers, utf16_texts
from tests.unit.wire.codec_checks import (
    assert_fields_cover,
    assert_no_prefix_decodes,
    assert_refused_cheaply,
    assert_same_or_refused,
    assert_survives,
    damaged,
)

SID = bytes.fromhex("010500000000000515000000010000000200000003000000e8030000")


def read(data: bytes) -> SecurityHeader:
    return security.read(data, 0)[0]


def patched(header: SecurityHeader, offset: int, layout: str, value: int) -> bytes:
    raw = bytearray(header.write())
    struct.pack_into(layout, raw, offset, value)
    return bytes(raw)


@given(security_headers(), st.binary(max_size=9), st.binary(max_size=9))
def test_a_header_survives_the_wire(header: SecurityHeader, before: bytes, after: bytes) -> None:
    assert_survives(security, header, before, after)


@given(damaged(security_headers().map(SecurityHeader.write)))
def test_any_bytes_are_read_and_written_the_same_or_refused(data: bytes) -> None:
    assert_same_or_refused(security, data)


@given(security_headers())
def test_a_truncated_header_is_refused(header: SecurityHeader) -> None:
    assert_no_prefix_decodes(read, header.write())


@given(security_headers())
def test_the_fields_show_every_byte(header: SecurityHeader) -> None:
    assert_fields_cover(header.fields(), len(header.write()))


@pytest.mark.spec(
    "MQMQ-2.2.20.6-14",
    "MQMQ-2.2.20.6-15",
    "MQMQ-2.2.20.6-16",
    "MQMQ-2.2.20.6-17",
    "MQMQ-2.2.20.6-18",
    "MQMQ-2.2.20.6-21",
)
@given(security_headers())
def test_each_size_counts_its_item_and_each_item_is_padded_to_a_multiple_of_4(
    header: SecurityHeader,
) -> None:
    raw = header.write()
    assert struct.unpack_from("<HHHII", raw, 2) == tuple(map(len, header.items))
    at = 16
    for item in header.items:
        assert at % 4 == 0
        assert raw[at : at + len(item)] == item
        at += (len(item) + 3) // 4 * 4
    assert at == len(raw)


def test_items_stand_in_their_order_and_absent_ones_take_no_space() -> None:
    header = SecurityHeader(SID, signature=b"sig", provider_info=b"info", flags=1)
    assert header.write().hex() == (
        "01001c00000003000000000004000000" + SID.hex() + b"sig\0info".hex()
    )


def test_items_are_there_when_their_sizes_say_so_and_not_when_a_bit_does() -> None:
    with_bit = SecurityHeader(SID, flags=1 | security.ITEMS_ANNOUNCED)
    assert read(with_bit.write()).sender_id == read(SecurityHeader(SID, flags=1).write()).sender_id


@pytest.mark.spec("MQMQ-2.2.20.6-19")
def test_a_header_without_items_is_neither_written_nor_read() -> None:
    with pytest.raises(EncodeError, match="at least one"):
        SecurityHeader().write()
    with pytest.raises(DecodeError, match="at least one"):
        read(bytes(16))


@pytest.mark.spec("MQMQ-2.2.20.6-01")
@pytest.mark.parametrize("kind", range(3, 16))
def test_an_unknown_kind_of_sender_is_neither_written_nor_read(kind: int) -> None:
    with pytest.raises(EncodeError, match="sender kind"):
        SecurityHeader(SID, flags=kind).write()
    with pytest.raises(DecodeError, match="sender kind"):
        read(patched(SecurityHeader(SID, flags=1), 0, "<H", kind))


@pytest.mark.spec("MQMQ-2.2.20.6-02")
def test_a_sender_without_kind_is_neither_written_nor_read() -> None:
    with pytest.raises(EncodeError, match="sender kind 0"):
        SecurityHeader(SID).write()
    with pytest.raises(DecodeError, match="sender kind 0"):
        read(patched(SecurityHeader(SID, flags=1), 0, "<H", 0))


@pytest.mark.spec("MQMQ-2.2.20.6-10", "MQMQ-2.2.20.6-11", "MQMQ-2.2.20.6-12", "MQMQ-2.2.20.6-13")
@given(st.integers(0, 15), st.integers(0, 0xFFF))
def test_unused_bits_change_nothing_that_is_read_and_are_not_sent(unused: int, flags: int) -> None:
    flags &= ~security.SENDER_KIND
    plain = SecurityHeader(signature=b"signature", flags=flags)
    with_bits = read(patched(plain, 0, "<H", flags | unused << 12))
    assert with_bits.items == plain.items
    assert with_bits.sender_kind is plain.sender_kind
    assert with_bits.body_encrypted == plain.body_encrypted
    kept = security.DEFAULT_PROVIDER
    assert with_bits.flags & kept == plain.flags & kept
    assert SecurityHeader(signature=b"signature").write()[:2] == b"\0\0"


def test_a_certificate_longer_than_its_range_is_neither_written_nor_read() -> None:
    certificate = bytes(0x10000)
    with pytest.raises(EncodeError, match="certificate of 65536 bytes"):
        SecurityHeader(sender_certificate=certificate).write()
    lie = struct.pack("<HHHHII", 0, 0, 0, 0, 0x10000, 0) + certificate
    with pytest.raises(DecodeError, match="certificate of 65536 bytes"):
        read(lie)


@pytest.mark.parametrize("item", ["sender_id", "encryption_key", "signature"])
def test_an_item_too_long_for_its_size_field_is_not_written(item: str) -> None:
    with pytest.raises(EncodeError, match="65536 bytes"):
        SecurityHeader(**{item: bytes(0x10000)}, flags=1).write()


def test_a_size_that_lies_is_refused_cheaply() -> None:
    header = SecurityHeader(provider_info=b"info")
    assert_refused_cheaply(read, patched(header, 12, "<I", 0xFFFF_FFFF))


def test_padding_that_does_not_fit_is_not_written() -> None:
    with pytest.raises(EncodeError, match="shorter"):
        SecurityHeader(signature=b"s", padding=b"p").write()
    with pytest.raises(EncodeError, match="longer"):
        SecurityHeader(signature=b"s", padding=b"padding").write()


def test_a_sender_is_shown_for_people() -> None:
    def sender(header: SecurityHeader) -> str:
        return next(field.meaning for field in header.fields() if field.name == "SecurityID")

    manager = Guid.parse("11111111-2222-3333-4444-555555555555")
    assert sender(SecurityHeader(SID, flags=1)) == "S-1-5-21-1-2-3-1000"
    assert sender(SecurityHeader(manager, flags=2)) == str(manager)
    assert sender(SecurityHeader(manager[:15], flags=2)) == ""
    assert SecurityHeader(manager, flags=2).sender_kind is SenderKind.QUEUE_MANAGER


@pytest.mark.parametrize("raw", [b"", SID[:-1], b"\2" + SID[1:], SID + b"\0\0\0\0"])
def test_what_is_no_sid_has_no_text(raw: bytes) -> None:
    assert sid_text(raw) == ""


@given(st.builds(ProviderInfo, st.integers(0, 0xFFFF_FFFF), utf16_texts()))
def test_a_provider_survives_the_wire(info: ProviderInfo) -> None:
    assert ProviderInfo.decode(info.encode()) == info


@given(damaged(st.builds(ProviderInfo, st.integers(0, 99), utf16_texts()).map(ProviderInfo.encode)))
def test_any_bytes_are_a_provider_or_refused(raw: bytes) -> None:
    try:
        info = ProviderInfo.decode(raw)
    except DecodeError:
        return
    assert info.encode() == raw


def test_a_provider_is_shown_with_its_type() -> None:
    raw = b"\x18\0\0\0" + "AES".encode("utf-16-le") + b"\0\0"
    fields = list(SecurityHeader(provider_info=raw).fields())
    assert "AES (type 24)" in [field.meaning for field in fields]
