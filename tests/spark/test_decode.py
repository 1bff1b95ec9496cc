"""Decoding all messages together gives what decoding them one by one gives."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openmsmq.api.messages import Packets
from openmsmq.client.formatters import DEFAULT_FORMATTER
from openmsmq.client.formatters.nservicebus import read_headers, write_headers
from openmsmq.client.messages.outgoing import OutgoingMessage, PacketBuilder
from openmsmq.model.identity import Guid, SequenceId
from openmsmq.model.limits import PACKET_MAX_BYTES
from openmsmq.spark.decode.alike import KEPT_MAX_BYTES, KEPT_MAX_ROWS, constant
from openmsmq.spark.decode.headers import (
    HEADERS_MAX_BYTES,
    HEADERS_MAX_COUNT,
    headers_of,
    usual_headers,
)
from openmsmq.spark.decode.layouts import lay_out
from openmsmq.spark.decode.packed import Packed
from openmsmq.spark.decode.queue_texts import read_queue_texts
from openmsmq.spark.decode.record_batches import decode
from openmsmq.spark.decode.rows import entries_in, row_of
from openmsmq.spark.errors import QueueProblem
from openmsmq.spark.schema import ALL_NAMES, arrow_schema
from openmsmq.wire.extensions import dead_letter_extension
from openmsmq.wire.headers import user
from openmsmq.wire.headers.base import SIZE as BASE_BYTES
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.message_properties import MessageProperties, label_bytes
from openmsmq.wire.headers.queue_names import (
    DirectName,
    PrivateName,
    PrivateOnAdminHost,
    PrivateOnDestination,
    PrivateOnSource,
    PublicName,
    QueueName,
    SameAsAdmin,
)
from openmsmq.wire.headers.security import BODY_ENCRYPTED, ITEM_MAX_BYTES, SecurityHeader
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage, encode
from tests.fuzz import seeds
from tests.fuzz.mutation import mutate, repair_packet
from tests.spark.packing import pack
from tests.strategies.packets import internal_packets, transaction_headers, user_messages
from tests.strategies.wire_parts import security_headers

EXTREMES = [
    encode(
        UserMessage(
            UserHeader(Guid(16), flags=user.RECOVERABLE),
            properties,
            transaction=TransactionHeader(SequenceId(1, 2), 3, connector_manager=Guid(16)),
            security=security,
            tail=bytes(12),
        )
    )
    for properties, security in [
        (MessageProperties(label=bytes(500)), None),
        (
            MessageProperties(b"ciphertext", body_size=4, allocated_size=10),
            SecurityHeader(sender_certificate=b"c", flags=BODY_ENCRYPTED),
        ),
        (
            MessageProperties(b"text", body_size=4, allocated_size=100),
            SecurityHeader(b"id", flags=1),
        ),
    ]
]
"""The longest label, ciphertext, and a body for which more was set aside than is there."""
WHERE = {"queue_manager": "alpha", "queue": r"alpha\private$\orders"}

guids = st.sampled_from([Guid(bytes([number]) * 16) for number in range(3)])
numbers = st.sampled_from([0, 1, 0xFFFFFFFF]) | st.integers(0, 0xFFFFFFFF)
texts = st.text(st.sampled_from("ab 1\t\r\n\0\x0b\x7f\x80é€\u200b\ud7ff\ue000\uffff😀"), max_size=8)
texts_of_xml = st.text(st.sampled_from('ab<&>"é€😀 \n'), max_size=5)
bodies = st.one_of(
    texts.map(str.encode),
    texts.map(lambda text: text.encode("utf-16-le")),
    st.text("abc", max_size=20).map(str.encode),
    st.binary(max_size=12),
    # Surrogates alone, and pairs that only seem to be some because two messages meet.
    st.lists(st.sampled_from([0xD83D, 0xDE00, 0x61, 0]), max_size=4).map(
        lambda units: struct.pack(f"<{len(units)}H", *units)
    ),
)
labels = texts.map(lambda text: label_bytes(text.replace("\0", ""))) | bodies.map(
    lambda raw: raw[: len(raw) & ~1]
)
direct_names = st.sampled_from(
    [r"OS:beta\private$\in", "OS:beta\\private$\\é", "TCP:10.0.0.1\\q", "no name", "os:Beta\\Q"]
).map(DirectName)
destinations: st.SearchStrategy[QueueName] = st.one_of(
    direct_names, guids.map(PublicName), st.integers(1, 3).map(PrivateOnDestination), st.none()
)
admin_queues: st.SearchStrategy[QueueName] = st.one_of(
    destinations,
    st.integers(1, 3).map(PrivateOnSource),
    st.builds(PrivateName, guids, st.integers(1, 3)),
)
response_queues: st.SearchStrategy[QueueName] = st.one_of(
    admin_queues, st.just(SameAsAdmin()), st.integers(1, 3).map(PrivateOnAdminHost)
)
body_types = st.sampled_from([0, 1, 8, 8, 30, 31, 0x1011, 0x1011]) | numbers
tails = st.sampled_from(
    [b"", b"", b"tail", dead_letter_extension(r"a\private$\d"), dead_letter_extension("é")]
)


ENTITIES = (
    b'<!DOCTYPE a [<!ENTITY e "ha">]>'
    b"<ArrayOfHeaderInfo><HeaderInfo><Key>&e;</Key></HeaderInfo></ArrayOfHeaderInfo>"
)
extensions = st.one_of(
    st.binary(max_size=3),
    st.dictionaries(texts_of_xml, texts_of_xml, max_size=3).map(write_headers),
    st.dictionaries(texts_of_xml, texts_of_xml, max_size=3)
    .map(write_headers)
    .map(lambda document: document + bytes(7)),
    st.sampled_from([bytes(4), b"<a/>", ENTITIES, b"<ArrayOfHeaderInfo/>"]),
)
"""What senders put beside the body: often nothing, sometimes headers, and what only looks so."""


@st.composite
def usual_messages(draw: st.DrawFn) -> bytes:
    """Draw a message with the headers that are decoded all together."""
    transaction = draw(st.none() | transaction_headers)
    flags = draw(st.integers(0, 31)) | draw(st.sampled_from([0, 0x100, 0x200]))
    if transaction is not None or draw(st.booleans()):
        flags |= user.RECOVERABLE
    body = draw(bodies)
    header = UserHeader(
        draw(guids),
        draw(guids),
        draw(numbers),
        draw(numbers),
        draw(numbers),
        flags,
        draw(destinations),
        draw(admin_queues),
        draw(response_queues),
        draw(st.none() | guids),
    )
    properties = MessageProperties(
        body,
        draw(labels),
        draw(st.sampled_from([0, 1, 2, 0x8001, 0xC000, 0x1234])),
        draw(st.sampled_from([bytes(20), bytes(19) + b"\1", bytes(range(20))])),
        draw(body_types),
        draw(numbers),
        len(body),
        draw(st.sampled_from([0, len(body)])),
        extension=draw(extensions),
        acknowledge=draw(st.integers(0, 255)),
    )
    return encode(
        UserMessage(
            header,
            properties,
            BaseHeader(draw(st.integers(0, 7)), draw(numbers)),
            transaction,
            draw(st.none() | security_headers()),
            tail=draw(tails),
        )
    )


@st.composite
def changed(draw: st.DrawFn) -> bytes:
    """Draw a packet with a few bytes changed, left out or made up."""
    random = Random(draw(st.integers(0, 1 << 32)))
    some = usual_messages() | st.sampled_from([encode(message) for message in seeds.messages()])
    packet = mutate(draw(some), draw(some), random)
    return repair_packet(packet, random) if random.randrange(4) else packet


any_packets = st.one_of(
    usual_messages(),
    usual_messages(),
    changed(),
    changed(),
    user_messages().map(encode),
    internal_packets.map(encode),
    st.binary(max_size=100),
)
places = st.tuples(numbers, numbers, st.integers(0, 0xFFFF), st.integers(0, 0xFF))
lookup_ids = st.builds(
    lambda level, number: level << 56 | number, st.integers(0, 7), st.integers(0, (1 << 56) - 1)
)


@st.composite
def answers(draw: st.DrawFn, packets: st.SearchStrategy[bytes]) -> Packets:
    """Draw what a queue manager answers, with some messages again and again."""
    some = draw(st.lists(packets, min_size=1, max_size=8))
    chosen = draw(st.lists(st.sampled_from(some), max_size=12)) or some
    count = len(chosen)
    exactly = {"min_size": count, "max_size": count}
    return pack(chosen, draw(st.lists(places, **exactly)), draw(st.lists(lookup_ids, **exactly)))


def agree(raw: Packets) -> None:
    rows = [row_of(entry, **WHERE) for entry in entries_in(raw)]
    decoded = decode(raw, **WHERE, columns=ALL_NAMES)
    decoded.batch.validate(full=True)
    assert decoded.batch.schema == arrow_schema(ALL_NAMES)
    assert decoded.batch.to_pylist() == rows
    failed = [number for number, row in enumerate(rows) if row["error"] is not None]
    assert [failure.row for failure in decoded.failures] == failed
    for failure in decoded.failures:
        row = rows[failure.row]
        found = failure.lookup_id, failure.error, failure.packet
        assert found == (row["lookup_id"], row["error"], row["body"])
    assert decoded.readable.to_pylist() == [row for row in rows if row["error"] is None]


@given(answers(usual_messages()))
def test_usual_messages_are_decoded_together_as_the_scalar_codec_has_them(raw):
    packed = Packed(raw)
    layout = lay_out(packed, np.arange(packed.count))
    assert layout.good.all()
    assert read_queue_texts(packed, layout).good.all()
    agree(raw)


@settings(max_examples=150)
@given(answers(any_packets))
def test_any_bytes_are_rows_as_the_scalar_codec_has_them(raw):
    agree(raw)


def test_every_form_of_header_and_every_golden_packet_is_a_row_as_the_scalar_codec_has_it():
    agree(pack([encode(message) for message in seeds.messages()] + seeds.golden_packets()))


each_form = pytest.mark.parametrize(
    "packet", [encode(message) for message in seeds.messages()][::6] + EXTREMES
)


@each_form
def test_a_packet_with_any_bit_changed_is_a_row_as_the_scalar_codec_has_it(packet):
    changed_packets = []
    for bit in range(8 * min(len(packet), 300)):
        changed_packet = bytearray(packet)
        changed_packet[bit >> 3] ^= 1 << (bit & 7)
        changed_packets.append(bytes(changed_packet))
    agree(pack(changed_packets))


@settings(max_examples=60)
@given(usual_messages(), usual_messages(), st.integers(1, 5), st.data())
def test_messages_alike_but_for_one_are_as_the_scalar_codec_has_them(common, other, count, data):
    packets = [common] * count
    agree(pack(packets))
    place, bit = data.draw(st.integers(0, count)), data.draw(st.integers(0, 8 * len(common) - 1))
    agree(pack([*packets[:place], other, *packets[place:]]))
    changed_packet = bytearray(common)
    changed_packet[bit >> 3] ^= 1 << (bit & 7)
    agree(pack([*packets[:place], bytes(changed_packet), *packets[place:]]))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_byte_that_one_of_three_has_otherwise_is_in_its_row_only(place):
    message = OutgoingMessage(body="x", label="a label", extension=b"more")
    builder = PacketBuilder(r"OS:alpha\private$\orders", "alpha")
    packet = builder.build(message, DEFAULT_FORMATTER, transactional=False)
    for at in range(len(packet)):
        changed_packet = bytearray(packet)
        changed_packet[at] ^= 0x11
        packets = [packet] * 3
        packets[place] = bytes(changed_packet)
        agree(pack(packets))


@each_form
def test_a_packet_that_ends_anywhere_is_a_row_as_the_scalar_codec_has_it(packet):
    cut = [packet[:size] for size in range(len(packet))]
    honest = [piece[:8] + struct.pack("<I", len(piece)) + piece[12:] for piece in cut[12:]]
    agree(pack(cut + honest))


def test_the_largest_packet_and_a_larger_one_are_rows_as_the_scalar_codec_has_them():
    whole = encode(UserMessage(UserHeader(Guid(16)), MessageProperties()))
    packets = []
    for size in (PACKET_MAX_BYTES, PACKET_MAX_BYTES + 4):
        packet = bytearray(whole.ljust(size, b"\0"))
        packet[8:12] = struct.pack("<I", size)
        packets.append(bytes(packet))
    agree(pack(packets))


def test_the_longest_certificate_and_a_longer_one_are_rows_as_the_scalar_codec_has_them():
    header = SecurityHeader(sender_certificate=b"c" * ITEM_MAX_BYTES)
    packet = encode(UserMessage(UserHeader(Guid(16)), MessageProperties(), security=header))
    at = BASE_BYTES + user.FIXED_SIZE + 8
    assert packet[at : at + 4] == struct.pack("<I", ITEM_MAX_BYTES)
    agree(pack([packet, packet[:at] + struct.pack("<I", ITEM_MAX_BYTES + 1) + packet[at + 4 :]]))


@settings(max_examples=30)
@given(answers(any_packets), st.lists(st.sampled_from(ALL_NAMES), unique=True, min_size=1))
def test_only_the_columns_asked_for_are_given_in_their_order(raw, columns):
    whole = decode(raw, **WHERE, columns=ALL_NAMES)
    part = decode(raw, **WHERE, columns=columns)
    assert part.batch.to_pylist() == whole.batch.select(columns).to_pylist()
    assert part.batch.schema == arrow_schema(columns)
    assert part.failures == whole.failures


@pytest.mark.parametrize(
    ("starts", "ends"),
    [
        ([0, 2], [3, 5]),
        ([0, 30], [4, 36]),
        ([-1, 4], [3, 8]),
        ([4, 0], [8, 4]),
        ([4, 8], [0, 4]),
        ([0, 4], [2, 35]),
        ([0, 2], [3, 4]),
    ],
)
def test_parts_outside_their_messages_are_not_gathered(starts, ends):
    packed = Packed(Packets(bytes(8), b"\x22\0\0\0", bytes(34)))
    with pytest.raises(AssertionError, match="outside"):
        packed.gather(np.array(starts), np.array(ends), pa.binary())


@pytest.mark.parametrize("sizes", [[0, 0], [3, 3], [3, 0, 4], [5]])
def test_parts_of_any_sizes_are_gathered(sizes):
    data = bytes(range(34))
    packed = Packed(Packets(bytes(8), b"\x22\0\0\0", data))
    starts = np.arange(len(sizes)) * 8
    ends = starts + sizes
    found = packed.gather(starts, ends, pa.binary())
    found.validate(full=True)
    assert found.to_pylist() == [data[a:b] for a, b in zip(starts, ends, strict=True)]


def test_columns_of_one_value_have_the_length_and_value_that_is_asked_for():
    long = "x" * (KEPT_MAX_BYTES + 1)
    for count in (1, 5, 3, KEPT_MAX_ROWS, KEPT_MAX_ROWS + 1, 2):
        for value in ("a", "b", "", None, long):
            found = constant("label", value, count)
            found.validate(full=True)
            assert found.to_pylist() == [value] * count
        assert constant("priority", 0, count).to_pylist() == [0] * count
        assert constant("traced", False, count).to_pylist() == [False] * count
        assert constant("body", b"", count).to_pylist() == [b""] * count


@pytest.mark.parametrize("count", [0, 1, 3])
def test_without_columns_the_messages_are_counted(count):
    packet = encode(seeds.messages()[0])
    assert decode(pack([packet] * count), **WHERE, columns=()).batch.num_rows == count


def test_no_messages_are_no_rows():
    decoded = decode(Packets(b"", b"", b""), **WHERE)
    assert decoded.batch.num_rows == 0
    assert decoded.batch.schema == arrow_schema()
    assert decoded.failures == ()


def test_a_message_is_readable_in_every_column():
    builder = PacketBuilder(r"OS:alpha\private$\orders", "alpha")
    message = OutgoingMessage(
        body="hällo",
        label="order 1",
        response_queue=r"DIRECT=OS:beta\private$\answers",
        time_to_reach_queue_s=60,
        dead_letter_queue=r".\private$\lost",
        application_tag=7,
    )
    packet = builder.build(message, DEFAULT_FORMATTER, transactional=True)
    row = decode(pack([packet], [(1_790_000_000, 0, 2, 0)], [5]), **WHERE).batch.to_pylist()[0]
    expected = {
        "queue_manager": "alpha",
        "queue": r"alpha\private$\orders",
        "arrival_number": 5,
        "arrived_time": datetime.fromtimestamp(1_790_000_000, UTC),
        "abort_count": 2,
        "moved_time": None,
        "message_id": r"{00000000-0000-0000-0000-000000000000}\0",
        "label": "order 1",
        "body": "hällo".encode("utf-16-le"),
        "text": "hällo",
        "application_tag": 7,
        "correlation_id": None,
        "message_class_name": "NORMAL",
        "transactional": True,
        "transaction_id": r"{00000000-0000-0000-0000-000000000000}\0",
        "destination": r"DIRECT=OS:alpha\PRIVATE$\orders",
        "response_queue": r"DIRECT=OS:beta\PRIVATE$\answers",
        "admin_queue": None,
        "dead_letter_queue": r"alpha\private$\lost",
        "time_to_reach_queue_s": 60,
        "time_to_be_received_s": None,
        "error": None,
    }
    assert {name: row[name] for name in expected} == expected


SENT_BY_NSERVICEBUS = b"""<?xml version="1.0"?>
<ArrayOfHeaderInfo xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
  <HeaderInfo>
    <Key>NServiceBus.EnclosedMessageTypes</Key>
    <Value>Shop.Orders.PlaceOrder, Shop</Value>
  </HeaderInfo>
  <HeaderInfo><Key>NServiceBus.RelatedTo</Key><Value /></HeaderInfo>
</ArrayOfHeaderInfo>"""


def test_the_headers_of_nservicebus_are_pairs_and_other_extensions_null():
    builder = PacketBuilder(r"OS:alpha\private$\orders", "alpha")
    packets = [
        builder.build(
            OutgoingMessage(body="x", extension=sent), DEFAULT_FORMATTER, transactional=False
        )
        for sent in (SENT_BY_NSERVICEBUS, b"", b"something else", SENT_BY_NSERVICEBUS)
    ]
    pairs = [
        ("NServiceBus.EnclosedMessageTypes", "Shop.Orders.PlaceOrder, Shop"),
        ("NServiceBus.RelatedTo", ""),
    ]
    found = decode(pack(packets), **WHERE, columns=["headers"]).batch.column("headers")
    assert found.to_pylist() == [pairs, None, None, pairs]


@given(
    st.dictionaries(texts_of_xml, texts_of_xml, max_size=4).map(write_headers)
    | st.just(SENT_BY_NSERVICEBUS),
    st.integers(0, 1 << 32),
)
def test_headers_are_the_same_with_and_without_a_parser(document, seed):
    # Changed at random places, most documents are none any more.
    for changed_document in (document, mutate(document, document, Random(seed))):
        read = usual_headers(changed_document)
        assert read is None or read == read_headers(changed_document)


def test_usual_headers_need_no_parser():
    usual = {"NServiceBus.MessageId": "17", "empty": "", "$.time": "2026-01-31 08:00:00:000000 Z"}
    assert usual_headers(write_headers(usual)) == usual
    for strange in ("é", "a&b", "]]>", "line\nbreak"):
        assert usual_headers(write_headers({"key": strange})) is None
        assert headers_of(write_headers({"key": strange})) == [("key", strange)]


def test_headers_are_bounded_in_bytes_and_number_and_have_no_entities():
    most = {f"key {number}": "" for number in range(HEADERS_MAX_COUNT)}
    assert headers_of(write_headers(most)) == list(most.items())
    assert headers_of(write_headers(most | {"one more": ""})) is None
    document = write_headers({"key": "value"})
    padding = bytes(HEADERS_MAX_BYTES - len(document))
    assert headers_of(document + padding) == [("key", "value")]
    assert headers_of(document + padding + b"\0") is None
    assert headers_of(ENTITIES) is None


def test_nobody_pays_for_headers_that_were_not_asked_for():
    packet = PacketBuilder(r"OS:alpha\private$\orders", "alpha").build(
        OutgoingMessage(body="x", extension=SENT_BY_NSERVICEBUS),
        DEFAULT_FORMATTER,
        transactional=False,
    )
    [entry] = entries_in(pack([packet]))
    assert row_of(entry, **WHERE, columns=["label"])["headers"] is None
    assert "headers" not in decode(pack([packet]), **WHERE).batch.schema.names


def test_a_message_that_cannot_be_decoded_has_its_place_its_packet_and_the_reason():
    good = encode(seeds.messages()[0])
    raw = pack([good, b"no packet", good], lookup_ids=[7, 8, 9])
    decoded = decode(raw, **WHERE, columns=["lookup_id", "body", "error", "label"])
    assert decoded.batch.to_pylist()[1] == {
        "lookup_id": 8,
        "body": b"no packet",
        "error": "BaseHeader at offset 0: 7 bytes are missing",
        "label": None,
    }
    assert decoded.readable["lookup_id"].to_pylist() == [7, 9]


def test_a_queue_name_that_is_none_is_shown_as_it_came():
    header = UserHeader(
        Guid(16),
        destination=DirectName("no name"),
        admin_queue=DirectName(r"nor:this\one"),
        response_queue=SameAsAdmin(),
    )
    packet = encode(UserMessage(header, MessageProperties()))
    row = decode(pack([packet]), **WHERE).batch.to_pylist()[0]
    assert row["destination"] == "DIRECT=no name"
    assert row["response_queue"] == row["admin_queue"] == r"DIRECT=nor:this\one"


@pytest.mark.parametrize(
    "raw",
    [
        Packets(b"", b"", b"more"),
        Packets(bytes(8), b"\x11\0\0\0", bytes(17)),
        Packets(bytes(8), b"\x22\0\0\0", bytes(33)),
        Packets(bytes(8), b"\x22\0\0", bytes(34)),
        Packets(bytes(7), b"\x22\0\0\0", bytes(34)),
        Packets(b"\xff" + bytes(7), b"\x22\0\0\0", bytes(34)),
        Packets(bytes(16), b"\xff\xff\xff\xff\x23\0\0\0", bytes(34)),
    ],
)
def test_an_answer_that_makes_no_sense_is_refused(raw):
    with pytest.raises(QueueProblem, match="same version"):
        decode(raw, **WHERE)
    with pytest.raises(QueueProblem, match="same version"):
        list(entries_in(raw))
