"""What a sender says is what the packet holds, and what the receiver reads."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from openmsmq.api.messages import Entry
from openmsmq.client.formatters import DEFAULT_FORMATTER, FormatterError, find_formatter
from openmsmq.client.messages.outgoing import (
    LabelledBody,
    OutgoingMessage,
    PacketBuilder,
    SendOptions,
)
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.model.errors import (
    IllegalFormatName,
    IllegalPathName,
    IllegalPropertySize,
    IllegalPropertyValue,
    LabelTooLong,
    MissingConnectorType,
    MsmqError,
    PropertiesConflict,
)
from openmsmq.model.identity import Guid, MessageId
from openmsmq.model.limits import INFINITE_S, PACKET_MAX_BYTES
from openmsmq.model.message import (
    EncryptionAlgorithm,
    HashAlgorithm,
    PrivacyLevel,
    TransactionFacts,
)
from openmsmq.model.names import PathName, parse_format_name
from openmsmq.wire import packets
from openmsmq.wire.headers.security import BODY_ENCRYPTED, SecurityHeader
from openmsmq.wire.outline import outline
from openmsmq.wire.packets import UserMessage
from tests.strategies import names

DIRECT = r"OS:ALPHA\PRIVATE$\orders"

u16 = st.integers(0, 0xFFFF)
u32 = st.integers(0, 0xFFFF_FFFF)
lifetimes = st.none() | st.integers(0, INFINITE_S - 1) | st.floats(0, 1e6)
guids = st.none() | names.guids()
queue_names = (
    st.none()
    | names.direct_format_names()
    | names.public_format_names().filter(lambda name: not name.journal)
    | names.private_format_names().filter(lambda name: not name.journal)
)
bodies = st.binary(max_size=40) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@st.composite
def outgoing_messages(draw: st.DrawFn) -> OutgoingMessage:
    connector_type = draw(guids)
    dead_letter_queue = draw(st.none() | names.path_names().filter(is_plain).map(str))
    return OutgoingMessage(
        body=draw(bodies),
        label=draw(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))),
        priority=draw(st.integers(0, 7)),
        recoverable=draw(st.booleans()),
        correlation_id=draw(st.binary(min_size=20, max_size=20)),
        response_queue=draw(queue_names),
        admin_queue=draw(queue_names),
        acknowledge=draw(st.integers(0, 15)),
        time_to_reach_queue_s=draw(lifetimes),
        time_to_be_received_s=draw(lifetimes),
        journal_on_failure=draw(st.booleans()),
        dead_letter_queue=dead_letter_queue,
        journal_on_success=draw(st.booleans()),
        application_tag=draw(u32),
        extension=draw(st.binary(max_size=9)),
        message_class=0 if connector_type is None else draw(u16),
        trace_queue=draw(guids),
        connector_type=connector_type,
    )


def is_plain(path: PathName) -> bool:
    """Whether a path name cannot be taken for a format name, and says its computer."""
    return "=" not in str(path) and not path.is_local


def builder() -> PacketBuilder:
    return PacketBuilder(DIRECT, "ALPHA")


def received(packet: bytes, formatter: str = "active_x") -> ReceivedMessage:
    return ReceivedMessage(Entry(77, 1_700_000_000, 2, 3, packet), find_formatter(formatter))


def built(message: OutgoingMessage, *, transactional: bool = False) -> ReceivedMessage:
    return received(builder().build(message, DEFAULT_FORMATTER, transactional))


def whole_seconds(lifetime: float | None) -> int | None:
    return None if lifetime is None else math.ceil(lifetime)


@pytest.mark.spec("MQMQ-2.2.19.1-04", "MQMQ-2.2.19.1-12")
@given(message=outgoing_messages(), transactional=st.booleans())
def test_every_property_arrives(message: OutgoingMessage, transactional: bool) -> None:
    found = built(message, transactional=transactional)
    assert found.body == message.body
    assert found.label == message.label
    assert found.priority == (0 if transactional else message.priority)
    assert found.recoverable == (message.recoverable or transactional)
    assert found.correlation_id == message.correlation_id
    assert found.response_queue == message.response_queue
    assert found.admin_queue == message.admin_queue
    assert found.acknowledge == message.acknowledge
    assert found.time_to_reach_queue_s == whole_seconds(message.time_to_reach_queue_s)
    assert found.time_to_be_received_s == whole_seconds(message.time_to_be_received_s)
    named = message.dead_letter_queue is not None
    assert found.journal_on_failure == (message.journal_on_failure or named)
    assert found.dead_letter_queue == (message.dead_letter_queue or "")
    assert found.journal_on_success == message.journal_on_success
    assert found.application_tag == message.application_tag
    assert found.extension == message.extension
    assert found.message_class == message.message_class
    assert found.traced == (message.trace_queue is not None)
    assert found.connector_type == message.connector_type
    assert (found.transaction is not None) == transactional
    assert found.destination == parse_format_name(f"DIRECT={DIRECT}")
    debug = found.packet.debug
    assert (None if debug is None else debug.queue) == message.trace_queue


@given(message=outgoing_messages(), transactional=st.booleans())
def test_a_packet_is_what_the_codec_writes(message: OutgoingMessage, transactional: bool) -> None:
    packet = builder().build(message, DEFAULT_FORMATTER, transactional)
    assert packets.encode(packets.decode(packet)) == packet
    assert outline(packet).packet_size == len(packet)


@given(st.lists(outgoing_messages(), min_size=2, max_size=4), st.booleans())
def test_what_a_builder_keeps_does_not_leak_into_other_messages(
    messages: list[OutgoingMessage], transactional: bool
) -> None:
    shared = builder()
    for message in [*messages, *messages]:
        fresh = builder().build(message, DEFAULT_FORMATTER, transactional)
        assert shared.build(message, DEFAULT_FORMATTER, transactional) == fresh


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "label": st.sampled_from(["", "order"]),
        "priority": st.integers(0, 7),
        "recoverable": st.booleans(),
        "extension": st.binary(max_size=3),
        "headers": st.none() | st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy")),
    },
).filter(lambda options: not (options.get("extension") and options.get("headers") is not None))


@given(st.lists(st.tuples(st.binary(max_size=2), OPTIONS, st.booleans()), max_size=8))
def test_a_packet_of_a_body_and_options_is_that_of_the_message(
    sends: list[tuple[bytes, SendOptions, bool]],
) -> None:
    shared = builder()
    for body, options, transactional in sends:
        message = OutgoingMessage(body=body, **options)
        fresh = builder().build(message, DEFAULT_FORMATTER, transactional)
        assert shared.build_with(body, options, DEFAULT_FORMATTER, transactional) == fresh


@given(
    OPTIONS,
    st.lists(st.tuples(st.binary(max_size=2), st.sampled_from(["", "a", "é", "😀", "ab"]))),
    st.booleans(),
)
def test_a_packet_of_a_labelled_body_is_that_of_the_message(
    options: SendOptions, sends: list[tuple[bytes, str]], transactional: bool
) -> None:
    build = builder().series(OutgoingMessage(**options), DEFAULT_FORMATTER, transactional)
    for body, label in sends:
        message = OutgoingMessage(body=body, **{**options, "label": label})
        fresh = builder().build(message, DEFAULT_FORMATTER, transactional)
        assert build(LabelledBody(body, label)) == fresh


def test_a_labelled_body_is_refused_as_the_message_is() -> None:
    build = builder().series(OutgoingMessage(), DEFAULT_FORMATTER, False)
    with pytest.raises(LabelTooLong, match="of 250 characters"):
        build(LabelledBody(b"", "x" * 250))


def test_headers_that_were_changed_meanwhile_are_sent_as_they_are() -> None:
    shared, headers = builder(), {"a": "first"}
    shared.build_with(b"", {"headers": headers}, DEFAULT_FORMATTER, transactional=False)
    headers["a"] = "second"
    packet = shared.build_with(b"", {"headers": headers}, DEFAULT_FORMATTER, transactional=False)
    assert received(packet).headers == {"a": "second"}


def test_bodies_are_found_in_packets_of_one_size_with_different_labels() -> None:
    one = OutgoingMessage(body=b"1" * 8, label="abcd")
    other = OutgoingMessage(body=b"2" * 12, label="ab")
    packet_sizes = {len(built(message).packet_bytes) for message in (one, other)}
    assert len(packet_sizes) == 1
    assert [built(message).body_bytes for message in (one, other, one)] == [
        b"1" * 8,
        b"2" * 12,
        b"1" * 8,
    ]


@given(st.lists(outgoing_messages(), min_size=2, max_size=4))
def test_bodies_are_found_whatever_was_looked_at_before(messages: list[OutgoingMessage]) -> None:
    for message in [*messages, *messages]:
        found = built(message)
        assert found.body_bytes == found.packet.properties.body


@pytest.mark.parametrize(
    ("queue", "wanted"),
    [
        (r"private$\answers", r"DIRECT=OS:ALPHA\PRIVATE$\answers"),
        (r"BETA\private$\answers", r"DIRECT=OS:BETA\PRIVATE$\answers"),
        (r"DIRECT=TCP:10.0.0.1\private$\a", r"DIRECT=TCP:10.0.0.1\PRIVATE$\a"),
    ],
)
def test_a_queue_can_be_named_by_path_or_format_name(queue: str, wanted: str) -> None:
    assert str(built(OutgoingMessage(response_queue=queue)).response_queue) == wanted


def test_an_open_queue_can_be_named_by_itself() -> None:
    class Answers:
        format_name = r"DIRECT=OS:ALPHA\PRIVATE$\answers"

    found = built(OutgoingMessage(admin_queue=Answers()))
    assert str(found.admin_queue) == Answers.format_name


@pytest.mark.parametrize(
    ("queue", "path"),
    [
        (r"private$\failed", r"ALPHA\private$\failed"),
        (r"DIRECT=OS:alpha\private$\failed", r"alpha\private$\failed"),
    ],
)
def test_a_dead_letter_queue_is_kept_as_a_path_name(queue: str, path: str) -> None:
    assert built(OutgoingMessage(dead_letter_queue=queue)).dead_letter_queue == path


def test_a_message_can_be_correlated_by_its_identifier() -> None:
    identifier = MessageId(Guid(bytes(range(16))), 5)
    found = built(OutgoingMessage(correlation_id=identifier))
    assert MessageId.from_bytes(found.correlation_id) == identifier


def test_headers_travel_in_the_extension() -> None:
    assert built(OutgoingMessage(headers={"NServiceBus.MessageId": "1"})).headers == {
        "NServiceBus.MessageId": "1"
    }


@pytest.mark.spec("MQDMPR-3.1.1.12-44")
def test_a_message_that_says_nothing_has_the_defaults_of_the_specification() -> None:
    found = built(OutgoingMessage())
    assert (found.priority, found.recoverable, found.message_class) == (3, False, 0)
    assert found.time_to_reach_queue_s == 4 * 24 * 60 * 60
    assert found.time_to_be_received_s is None
    assert found.acknowledge == 0
    assert not found.journal_on_failure
    assert not found.journal_on_success
    assert found.correlation_id == bytes(20)
    assert (found.label, found.extension) == ("", b"")
    properties = found.packet.properties
    assert properties.privacy_level == PrivacyLevel.NONE
    assert properties.hash_algorithm == HashAlgorithm.SHA1
    assert properties.encryption_algorithm == EncryptionAlgorithm.RC4


@pytest.mark.spec("MQDMPR-3.1.1.12-42", "MQMQ-2.4-01")
@given(st.text("\N{GRINNING FACE}a", min_size=110, max_size=260))
@example("x" * 249)
@example("\N{GRINNING FACE}" * 124 + "x")
def test_a_label_has_at_most_249_utf16_units(label: str) -> None:
    if len(label.encode("utf-16-le")) // 2 <= 249:
        assert built(OutgoingMessage(label=label)).label == label
    else:
        with pytest.raises(LabelTooLong, match=str(len(label))):
            built(OutgoingMessage(label=label))


def test_a_body_type_of_ones_own_wins() -> None:
    found = built(OutgoingMessage(body=b"\0\1", body_type=768))
    assert (found.body_type, found.body) == (768, b"\0\1")


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"priority": 8}, IllegalPropertyValue, "priority 8"),
        ({"label": "x" * 250}, LabelTooLong, "250"),
        ({"label": "a\0b"}, IllegalPropertyValue, "NUL"),
        ({"correlation_id": b"short"}, IllegalPropertySize, "20"),
        ({"application_tag": 1 << 32}, IllegalPropertyValue, "application_tag"),
        ({"application_tag": -1}, IllegalPropertyValue, "application_tag"),
        ({"message_class": 1 << 16}, IllegalPropertyValue, "message_class"),
        ({"message_class": 2}, MissingConnectorType, "connector_type"),
        ({"dead_letter_queue": "a;b;c"}, IllegalPathName, "JOURNAL"),
        ({"dead_letter_queue": "DIRECT=HTTP://a/msmq/b"}, IllegalPropertyValue, "path name"),
        ({"dead_letter_queue": f"PUBLIC={Guid(bytes(16))}"}, IllegalPropertyValue, "path name"),
        ({"time_to_be_received_s": -1}, IllegalPropertyValue, "time_to_be_received_s"),
        ({"time_to_reach_queue_s": 1e12}, IllegalPropertyValue, "time_to_reach_queue_s"),
        ({"response_queue": "a=b"}, IllegalFormatName, "DIRECT"),
        ({"response_queue": "/x"}, IllegalPathName, "separated"),
        ({"admin_queue": "DIRECT=OS:a\\q,DIRECT=OS:b\\q"}, IllegalPropertyValue, "one queue"),
        ({"headers": {}, "extension": b"x"}, PropertiesConflict, "extension"),
        ({"body": bytes(PACKET_MAX_BYTES)}, IllegalPropertySize, "shorter"),
    ],
)
def test_what_no_message_can_have_is_refused_by_name(
    wrong: dict[str, object], error: type[MsmqError], says: str
) -> None:
    with pytest.raises(error, match=says):
        builder().build(OutgoingMessage(**wrong), DEFAULT_FORMATTER, False)  # type: ignore[arg-type]


@given(st.integers(0, 200))
@example(0)
def test_the_largest_packet_is_as_large_as_allowed(less: int) -> None:
    frame = len(builder().build(OutgoingMessage(), DEFAULT_FORMATTER, False))
    body = bytes(PACKET_MAX_BYTES - frame - less)
    packet = builder().build(OutgoingMessage(body=body), DEFAULT_FORMATTER, False)
    assert len(packet) <= PACKET_MAX_BYTES
    assert len(packet) == frame + len(body) + (-len(body) & 3)


def test_a_received_message_tells_its_place_in_the_queue() -> None:
    found = built(OutgoingMessage(label="order"))
    assert (found.lookup_id, found.abort_count, found.move_count) == (77, 2, 3)
    assert found.arrived_time == datetime.fromtimestamp(1_700_000_000, UTC)
    assert found.moved_time is None
    moved = Entry(77, 1_700_000_000, 2, 3, found.packet_bytes, 1_700_000_005)
    assert ReceivedMessage(moved, DEFAULT_FORMATTER).moved_time == datetime.fromtimestamp(
        1_700_000_005, UTC
    )
    assert found.sent_time == datetime.fromtimestamp(0, UTC)
    assert found.id == MessageId(Guid(bytes(16)), 0)
    assert "order" in repr(found)


def test_transaction_facts_are_read_from_the_packet() -> None:
    facts = built(OutgoingMessage(), transactional=True).transaction
    assert isinstance(facts, TransactionFacts)
    assert (facts.first, facts.last) == (False, False)


def test_an_encrypted_body_is_ciphertext_and_no_value() -> None:
    plain = packets.decode(builder().build(OutgoingMessage(body="text"), DEFAULT_FORMATTER, False))
    assert isinstance(plain, UserMessage)
    security = SecurityHeader(encryption_key=b"key!", flags=BODY_ENCRYPTED | 0x80)
    secret = UserMessage(plain.user, plain.properties, plain.base, security=security)
    found = received(packets.encode(secret))
    assert found.encrypted
    assert found.body_bytes == "text".encode("utf-16-le")
    with pytest.raises(FormatterError, match="encrypted"):
        _ = found.body


def test_an_unreadable_packet_can_still_be_shown() -> None:
    assert "unreadable" in repr(received(b"nonsense"))
