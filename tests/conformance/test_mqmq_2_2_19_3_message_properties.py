"""MessagePropertiesHeader. [MQMQ 2.2.19.3]"""

from __future__ import annotations

import struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.outline import outline
from openmsmq.wire.packets import UserMessage, encode
from tests.conformance import ours, peer
from tests.conformance.ours import decode_user_message

START = 16 + len(peer.user_header())
ENCRYPTION_ALGORITHMS = {0x6602, 0x6610, 0x660E, 0x660F, 0x6801}
label_texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0", max_codepoint=0xFFFF),
    min_size=1,
    max_size=249,
)


def sent(properties: MessageProperties) -> bytes:
    """The header as it stands in what we send."""
    return encode(UserMessage(ours.PLAIN.user, properties))[START:]


def received(header: bytes) -> bytes:
    return peer.user_message(peer.user_header(), header)


def u32_at(data: bytes, offset: int) -> int:
    return int(struct.unpack_from("<I", data, offset)[0])


def refuse(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_user_message(data)
    with pytest.raises(DecodeError):
        outline(data)


@pytest.mark.parametrize(
    "bit",
    [
        pytest.param(bit, marks=pytest.mark.spec(f"MQMQ-2.2.19.3-0{bit + 1}"), id=f"bit {bit}")
        for bit in range(4, 8)
    ],
)
def test_an_unused_bit_is_clear_when_sent_and_ignored_when_set(bit: int) -> None:
    for packet in ours.USER.values():
        data = encode(packet)
        assert data[outline(data).properties_offset] >> bit & 1 == 0
    plain = decode_user_message(received(peer.properties_header(flags=0x05)))
    data = received(peer.properties_header(flags=0x05 | 1 << bit))
    packet = decode_user_message(data)
    assert packet.properties.acknowledge & 0x0F == 0x05
    assert replace(packet.properties, acknowledge=0x05) == plain.properties
    assert replace(packet, properties=plain.properties) == plain
    assert encode(packet) == data


@pytest.mark.spec("MQMQ-2.2.19.3-09", "MQMQ-2.2.19.3-11")
@given(label_texts)
@example("x" * 249)
def test_the_label_length_counts_utf_16_units_and_the_terminator(label: str) -> None:
    data = sent(MessageProperties.of(b"body", label))
    assert data == peer.properties_header(b"body", peer.text(label))
    assert data[1] == len(label) + 1
    packet = decode_user_message(received(data))
    assert packet.properties.label_text == label


@pytest.mark.spec("MQMQ-2.2.19.3-10", "MQMQ-2.2.19.3-31")
def test_no_label_takes_no_bytes() -> None:
    data = sent(MessageProperties.of(b"body", ""))
    assert data[1] == 0
    assert data[56:] == b"body"
    packet = decode_user_message(received(peer.properties_header(b"body", b"")))
    assert packet.properties.label == b""
    assert packet.properties.body == b"body"


@pytest.mark.spec("MQMQ-2.2.19.3-29")
def test_a_label_has_at_most_500_bytes() -> None:
    longest = peer.text("x" * 249)
    data = received(peer.properties_header(b"", longest))
    assert decode_user_message(data).properties.label == longest
    assert sent(MessageProperties.of(b"", "x" * 249)) == data[START:]
    for units in range(251, 256):
        label = bytes(2 * units)
        refuse(received(peer.properties_header(b"", label)))
        with pytest.raises(EncodeError, match="label"):
            sent(MessageProperties(label=label))


@pytest.mark.spec("MQMQ-2.2.19.3-30")
@given(label_texts)
def test_a_label_has_one_nul_and_that_is_its_end(label: str) -> None:
    data = sent(MessageProperties.of(b"", label))
    units = struct.unpack_from(f"<{data[1]}H", data, 56)
    assert units.index(0) == len(units) - 1
    assert units[:-1] == tuple(map(ord, label))
    for bad in (label[:100] + "\0" + label[100:], label.ljust(250, "x")):
        with pytest.raises(EncodeError, match="label"):
            MessageProperties.of(b"", bad)


@pytest.mark.spec("MQMQ-2.2.19.3-13")
@given(st.binary(min_size=20, max_size=20))
def test_a_correlation_identifier_is_passed_on_as_it_is(correlation: bytes) -> None:
    data = received(peer.properties_header(correlation=correlation))
    packet = decode_user_message(data)
    assert packet.properties.correlation_id == correlation
    assert replace(packet.properties, correlation_id=bytes(20)) == ours.PLAIN.properties
    assert encode(packet) == data
    assert sent(MessageProperties.of(b"body", correlation_id=correlation)) == data[START:]


@pytest.mark.spec("MQMQ-2.2.19.3-16")
@given(st.integers(0, 0xFFFFFFFF))
def test_an_application_tag_is_passed_on_as_it_is(tag: int) -> None:
    data = received(peer.properties_header(tag=tag))
    packet = decode_user_message(data)
    assert packet.properties.application_tag == tag
    assert replace(packet.properties, application_tag=0) == ours.PLAIN.properties
    assert encode(packet) == data
    assert sent(MessageProperties.of(b"body", application_tag=tag)) == data[START:]


@given(st.integers(0, 0xFFFF), st.integers(0, 0xFFFFFFFF))
def test_any_class_and_body_type_are_passed_on_as_they_are(message_class: int, type_: int) -> None:
    """Applications have classes of their own (C-4), and types beside those listed."""
    data = received(peer.properties_header(message_class=message_class, body_type=type_))
    packet = decode_user_message(data)
    assert packet.properties.message_class == message_class
    assert packet.properties.body_type == type_
    assert encode(packet) == data


@pytest.mark.spec("MQMQ-2.2.19.3-17", "MQMQ-2.2.19.3-27", "MQMQ-2.2.19.3-34")
@given(st.binary(max_size=60), st.text("ab", max_size=9), st.binary(max_size=60))
def test_sizes_are_those_of_body_and_extension_and_the_header_is_padded(
    body: bytes, label: str, extension: bytes
) -> None:
    data = sent(MessageProperties.of(body, label, extension=extension))
    assert data == peer.properties_header(body, peer.text(label) if label else b"", extension)
    assert u32_at(data, 32) == len(body)
    assert u32_at(data, 52) == len(extension)
    assert len(data) % 4 == 0
    packet = decode_user_message(received(data))
    assert packet.properties.body == body
    assert packet.properties.extension == extension


@pytest.mark.spec("MQMQ-2.2.19.3-34")
@given(st.integers(1, 3), st.binary(min_size=3, max_size=3))
def test_padding_is_any_bytes(size: int, padding: bytes) -> None:
    header = peer.properties_header(bytes(8 - size))
    changed = header[: len(header) - size] + padding[:size]
    packet = decode_user_message(received(changed))
    assert packet.properties.body == bytes(8 - size)
    assert encode(packet) == received(changed)
    refuse(received(header[: len(header) - size]))


def properties_with(name: str, value: bytes) -> MessageProperties:
    if name == "body":
        return MessageProperties.of(value)
    return MessageProperties.of(extension=value)


@pytest.mark.parametrize(
    ("offset", "name"),
    [
        pytest.param(32, "body", marks=pytest.mark.spec("MQMQ-2.2.19.3-18"), id="body"),
        pytest.param(52, "extension", marks=pytest.mark.spec("MQMQ-2.2.19.3-28"), id="extension"),
    ],
)
def test_a_size_goes_from_zero_to_what_the_packet_holds(offset: int, name: str) -> None:
    empty = len(encode(UserMessage(ours.PLAIN.user, MessageProperties.of())))
    room = 0x00400000 - empty
    for size in (0, 1, room):
        data = sent(properties_with(name, bytes(size)))
        assert u32_at(data, offset) == size
        assert getattr(decode_user_message(received(data)).properties, name) == bytes(size)
    with pytest.raises(EncodeError, match="at most 4194304"):
        sent(properties_with(name, bytes(room + 1)))
    header = peer.properties_header(b"1234")
    for size in (9, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):
        refuse(received(header[:offset] + struct.pack("<I", size) + header[offset + 4 :]))


@pytest.mark.spec("MQMQ-2.2.19.3-19")
def test_the_allocated_size_is_what_the_body_takes_in_the_packet() -> None:
    ciphertext = bytes(range(32))
    header = peer.properties_header(ciphertext, body_size=20, allocated=32)
    properties = replace(MessageProperties.of(ciphertext), body_size=20)
    assert sent(properties) == header
    follows = peer.user_message(
        peer.user_header(), header, peer.debug_header(), base_flags=3 | peer.DH
    )
    packet = decode_user_message(follows)
    assert packet.properties.body == ciphertext
    assert packet.debug is not None
    assert packet.debug.queue == ours.QUEUE
    assert u32_at(sent(MessageProperties.of(b"plain")), 36) == 5


@pytest.mark.spec("MQMQ-2.2.19.3-24")
def test_the_encryption_algorithm_is_a_known_one_also_when_nothing_is_encrypted() -> None:
    assert u32_at(sent(MessageProperties.of(b"body")), 48) in ENCRYPTION_ALGORITHMS


@pytest.mark.spec("MQMQ-2.2.19.3-32")
def test_no_extension_takes_no_bytes() -> None:
    data = sent(MessageProperties.of(b"body", "x", extension=b""))
    assert data == peer.properties_header(b"body", peer.text("x"))
    assert data[60:] == b"body"
    assert decode_user_message(received(data)).properties.extension == b""


@pytest.mark.spec("MQMQ-2.2.19.3-33")
def test_no_body_takes_no_bytes() -> None:
    data = sent(MessageProperties.of(b"", "x", extension=b"1234"))
    assert data == peer.properties_header(b"", peer.text("x"), b"1234")
    assert data[56:] == b"x\0\0\0" + b"1234"
    assert decode_user_message(received(data)).properties.body == b""
