"""The codec as a whole: inverse, total, frugal."""

from __future__ import annotations

import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import Guid
from openmsmq.model.limits import HOP_MAX_COUNT, PACKET_MAX_BYTES
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.fields.cursor import Field
from openmsmq.wire.headers import base, user
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.message_bytes import hop_counted
from openmsmq.wire.outline import outline
from openmsmq.wire.packets import (
    Packet,
    UserMessage,
    check,
    decode,
    encode,
    headers_end,
    packet_fields,
)
from tests.strategies.packets import packets, u32, user_messages

SOURCE = Guid(range(16))
PLAIN = UserMessage(
    UserHeader(SOURCE, destination=DirectName(r"OS:host\private$\orders")),
    MessageProperties.of(b"x" * 100, "label"),
)


def decodes_to_the_same_bytes(data: bytes) -> bool:
    """Whether `data` decodes; when it does, encoding must give it back."""
    try:
        packet = decode(data)
    except DecodeError:
        return False
    assert encode(packet) == data
    return True


@given(packets)
def test_any_packet_survives_the_wire(packet: Packet) -> None:
    assert decode(encode(packet)) == packet


@given(packets, st.data())
def test_a_changed_byte_decodes_to_itself_or_is_refused(
    packet: Packet, data: st.DataObject
) -> None:
    raw = bytearray(encode(packet))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(raw) - 1))
        raw[place] = data.draw(st.integers(0, 255))
    decodes_to_the_same_bytes(bytes(raw))


@given(packets, st.data())
def test_what_decodes_is_known_without_decoding_it(packet: Packet, data: st.DataObject) -> None:
    raw = bytearray(encode(packet))
    check(bytes(raw))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode(bytes(raw))
    except DecodeError as error:
        with pytest.raises(DecodeError, match=re.escape(str(error))):
            check(bytes(raw))
    else:
        check(bytes(raw))


@given(st.binary(max_size=300))
def test_any_bytes_decode_or_are_refused(data: bytes) -> None:
    decodes_to_the_same_bytes(data)


@given(st.binary(max_size=300), st.sampled_from([0x000B, 0x001B, 0x0003, 0x0033, 0x0120]))
def test_any_bytes_behind_a_good_base_header_decode_or_are_refused(rest: bytes, flags: int) -> None:
    size = max(len(rest) + base.SIZE, base.PACKET_MIN_BYTES)
    head = base.LAYOUT.pack(base.VERSION, 0, flags, base.SIGNATURE, size, 0)
    decodes_to_the_same_bytes(head + rest)


@given(packets, st.data())
def test_a_truncated_packet_is_refused(packet: Packet, data: st.DataObject) -> None:
    raw = encode(packet)
    with pytest.raises(DecodeError):
        decode(raw[: data.draw(st.integers(0, len(raw) - 1))])


@given(packets, st.integers(0, 0x0050_0000))
def test_a_packet_whose_size_lies_is_refused_or_its_own_encoding(packet: Packet, size: int) -> None:
    raw = bytearray(encode(packet))
    raw[8:12] = size.to_bytes(4, "little")
    decodes_to_the_same_bytes(bytes(raw))


@given(user_messages())
def test_the_headers_end_where_session_and_tail_begin(packet: UserMessage) -> None:
    raw = encode(packet)
    session = 0 if packet.session is None else 16
    assert headers_end(raw) == len(raw) - session - len(packet.tail)


@given(user_messages())
def test_the_outline_says_what_the_full_decode_says(packet: UserMessage) -> None:
    raw = encode(packet)
    found = outline(raw)
    assert found.packet_size == int.from_bytes(raw[8:12], "little")
    assert found.base_flags & ~base.STRUCTURAL == packet.base.flags
    assert found.flags & ~user.STRUCTURAL == packet.user.flags
    assert found.destination_name == packet.user.destination
    assert raw[found.body_start : found.body_end] == packet.properties.body
    assert raw[found.properties_offset] == packet.properties.acknowledge


@given(user_messages(), st.data())
def test_the_outline_of_changed_bytes_stays_within_them_or_is_refused(
    packet: UserMessage, data: st.DataObject
) -> None:
    raw = bytearray(encode(packet))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(12, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = outline(bytes(raw))
    except DecodeError:
        return
    # A session header of 16 bytes may stand behind a packet.
    assert found.packet_size in (len(raw), len(raw) - 16)
    end = found.packet_size
    assert 56 <= found.properties_offset < found.body_start <= found.body_end <= end
    assert found.destination in raw[56 : found.properties_offset]


def leaves(shown: list[Field]) -> int:
    """The bytes of all fields, inner ones in place of the groups that hold them."""
    return sum(
        leaves(field.value) if isinstance(field.value, list) else field.size for field in shown
    )


@given(packets)
def test_the_fields_shown_cover_the_packet(packet: Packet) -> None:
    shown = list(packet_fields(packet))
    size = len(encode(packet))
    assert sum(field.size for field in shown) == size
    assert leaves(shown) == size


@given(user_messages())
def test_forwarding_changes_the_hop_count_and_nothing_else(packet: UserMessage) -> None:
    raw = encode(packet)
    if packet.user.hop_count >= HOP_MAX_COUNT:
        with pytest.raises(EncodeError, match="no further"):
            hop_counted(raw)
        return
    forwarded = hop_counted(raw)
    assert decode(forwarded).user.hop_count == packet.user.hop_count + 1
    assert bytes((forwarded[60] - 1,)) + forwarded[61:] == raw[60:]
    assert forwarded[:60] == raw[:60]


def test_decoding_takes_little_more_memory_than_the_packet() -> None:
    raw = encode(UserMessage(PLAIN.user, MessageProperties.of(bytes(1_000_000), "big")))
    tracemalloc.start()
    decode(raw)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * len(raw)


@given(u32)
def test_announced_sizes_alone_reserve_no_memory(size: int) -> None:
    raw = bytearray(encode(PLAIN))
    offset = outline(bytes(raw)).properties_offset
    raw[offset + 52 : offset + 56] = size.to_bytes(4, "little")
    tracemalloc.start()
    decodes_to_the_same_bytes(bytes(raw))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


def patched(packet: UserMessage, offset: int, new: bytes) -> bytes:
    """The packet's bytes with some of them replaced."""
    raw = encode(packet)
    return raw[:offset] + new + raw[offset + len(new) :]


def flags_with(packet: UserMessage, bits: int) -> bytes:
    """The packet with more bits set in its UserHeader flags."""
    flags = int.from_bytes(encode(packet)[60:64], "little") | bits
    return patched(packet, 60, flags.to_bytes(4, "little"))


@pytest.mark.parametrize(
    "bit",
    [user.TRANSACTION | user.RECOVERABLE, user.SECURITY, user.SOAP, user.MULTI_QUEUE],
    ids=["transaction", "security", "soap", "multi-queue"],
)
def test_a_header_announced_but_missing_is_refused(bit: int) -> None:
    short = UserMessage(PLAIN.user, MessageProperties.of(b""))
    with pytest.raises(DecodeError):
        decode(flags_with(short, bit))


def test_a_debug_header_announced_but_missing_is_refused() -> None:
    with pytest.raises(DecodeError, match="DebugHeader"):
        decode(patched(PLAIN, 2, (3 | base.DEBUG).to_bytes(2, "little")))


def test_a_session_header_announced_but_missing_is_refused() -> None:
    with pytest.raises(DecodeError, match="SessionHeader"):
        decode(patched(PLAIN, 2, (3 | base.SESSION).to_bytes(2, "little")))


def test_a_message_without_properties_is_refused() -> None:
    raw = bytearray(encode(PLAIN))
    raw[62] &= ~0x20
    with pytest.raises(DecodeError, match="MP"):
        decode(bytes(raw))


def test_a_direct_name_that_is_not_utf16_is_refused() -> None:
    with pytest.raises(DecodeError, match="not UTF-16"):
        decode(patched(PLAIN, 66, b"\x00\xd8"))


def test_a_label_that_is_not_utf16_is_kept_and_shown_with_replacements() -> None:
    raw = patched(PLAIN, encode(PLAIN).index("label".encode("utf-16-le")), b"\x00\xd8")
    packet = decode(raw)
    assert isinstance(packet, UserMessage)
    assert packet.properties.label_text == "\N{REPLACEMENT CHARACTER}abel"
    assert encode(packet) == raw


def test_a_body_longer_than_the_packet_is_refused() -> None:
    offset = outline(encode(PLAIN)).properties_offset
    raw = patched(PLAIN, offset + 32, (0x7FFFFFFF).to_bytes(4, "little"))
    with pytest.raises(DecodeError, match="missing"):
        decode(raw)


def test_lengths_that_overlap_are_refused() -> None:
    """Label, extension and body each fit the packet, but not all together."""
    offset = outline(encode(PLAIN)).properties_offset
    raw = patched(PLAIN, offset + 52, (60).to_bytes(4, "little"))
    with pytest.raises(DecodeError, match="missing"):
        decode(raw)


def test_a_body_whose_allocation_does_not_fit_is_read_by_its_own_size() -> None:
    offset = outline(encode(PLAIN)).properties_offset
    raw = patched(PLAIN, offset + 36, (5000).to_bytes(4, "little"))
    packet = decode(raw)
    assert isinstance(packet, UserMessage)
    assert packet.properties.body == b"x" * 100
    assert encode(packet) == raw


@pytest.mark.parametrize("name", ["A\0B", "\ud800"], ids=["NUL inside", "lone surrogate"])
def test_a_name_no_peer_could_read_is_not_sent(name: str) -> None:
    with pytest.raises(EncodeError):
        encode(UserMessage(UserHeader(SOURCE, destination=DirectName(name)), PLAIN.properties))


def test_a_label_of_250_characters_is_not_sent() -> None:
    assert len(MessageProperties.of(label="x" * 249).label) == 500
    with pytest.raises(EncodeError, match="250 UTF-16 units; at most 249"):
        MessageProperties.of(label="x" * 250)


def test_a_packet_over_four_mebibytes_is_not_sent() -> None:
    overhead = len(encode(UserMessage(PLAIN.user, MessageProperties.of(b""))))
    fits = MessageProperties.of(bytes(PACKET_MAX_BYTES - overhead))
    assert len(encode(UserMessage(PLAIN.user, fits))) == PACKET_MAX_BYTES
    with pytest.raises(EncodeError, match="shorten the body"):
        encode(UserMessage(PLAIN.user, MessageProperties.of(fits.body + b"1234")))


def test_values_too_large_for_their_fields_are_not_sent() -> None:
    with pytest.raises(EncodeError, match="does not fit"):
        encode(UserMessage(UserHeader(SOURCE, message_number=1 << 32), PLAIN.properties))


def test_a_guid_of_the_wrong_length_is_not_sent() -> None:
    with pytest.raises(EncodeError, match="16 bytes"):
        encode(UserMessage(UserHeader(Guid(b"short")), PLAIN.properties))


def test_an_unknown_tail_is_never_sent_where_a_session_header_is_expected() -> None:
    packet = UserMessage(PLAIN.user, PLAIN.properties, session=SessionHeader(), tail=bytes(16))
    with pytest.raises(EncodeError, match="tail"):
        encode(packet)


def test_only_the_packet_sets_the_bits_that_announce_headers() -> None:
    with pytest.raises(EncodeError, match="BaseHeader"):
        encode(UserMessage(PLAIN.user, PLAIN.properties, BaseHeader(flags=base.DEBUG)))
    with pytest.raises(EncodeError, match="UserHeader"):
        encode(UserMessage(UserHeader(SOURCE, flags=user.SECURITY), PLAIN.properties))
