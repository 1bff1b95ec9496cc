from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.errors import IllegalPropertySize, IllegalPropertyValue, LabelTooLong
from openmsmq.model.identity import NIL_GUID, Guid, MessageId
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import (
    NO_MESSAGE_ID,
    AckRequest,
    AuthenticationLevel,
    BodyType,
    DeliveryMode,
    EncryptionAlgorithm,
    HashAlgorithm,
    Journaling,
    Message,
    MessageClass,
    PrivacyLevel,
    SenderIdKind,
    is_about_receiving,
    is_negative,
    message_class_name,
)

u32 = st.integers(0, 0xFFFFFFFF)
SENT_S = 1_700_000_000


def utf16_units(text: str) -> int:
    return sum(2 if ord(character) > 0xFFFF else 1 for character in text)


# What a sender need not say.


@pytest.mark.spec("MQDMPR-3.1.1.12-44")
def test_a_message_that_says_nothing_has_the_defaults_of_the_specification():
    message = Message()
    assert message.priority == 3
    assert message.delivery is DeliveryMode.EXPRESS
    assert message.message_class == MessageClass.NORMAL
    assert message.reach_queue_within_s == 4 * 24 * 60 * 60
    assert message.receive_within_s == INFINITE_S
    assert message.privacy is PrivacyLevel.NONE
    assert message.hash_algorithm == HashAlgorithm.SHA1
    assert message.encryption_algorithm == EncryptionAlgorithm.RC4
    assert message.sender_id_kind is SenderIdKind.SECURITY_IDENTIFIER
    assert message.acknowledge == AckRequest.NONE
    assert message.journaling is Journaling.NONE
    assert message.correlation_id == bytes(20)
    assert message.identifier == NO_MESSAGE_ID
    assert (message.body, message.label, message.extension) == (b"", "", b"")


def test_a_message_cannot_be_changed_but_copied_with_a_change():
    message = Message(label="order")
    with pytest.raises(AttributeError):
        message.label = "other"  # type: ignore[misc]
    copy = msgspec.structs.replace(message, hop_count=1)
    assert (copy.label, copy.hop_count, message.hop_count) == ("order", 1, 0)


def test_a_copy_with_an_illegal_value_is_refused_too():
    with pytest.raises(IllegalPropertyValue):
        msgspec.structs.replace(Message(), priority=8)


# What no message can have.


@pytest.mark.spec("MQDMPR-3.1.1.12-42", "MQMQ-2.4-01")
@given(st.one_of(st.text(max_size=300), st.text("😀a", min_size=110, max_size=260)))
def test_a_label_has_at_most_249_utf16_units(label):
    if utf16_units(label) <= 249:
        assert Message(label=label).label == label
    else:
        with pytest.raises(LabelTooLong, match=f"{len(label)} characters"):
            Message(label=label)


@pytest.mark.parametrize("label", ["x" * 249, "😀" * 124 + "x"])
def test_a_label_of_exactly_249_units_is_accepted_and_one_more_is_not(label):
    assert Message(label=label).label == label
    with pytest.raises(LabelTooLong):
        Message(label=label + "x")


@given(st.one_of(st.integers(-3, 10), st.integers()))
def test_a_priority_is_from_0_to_7(priority):
    if 0 <= priority <= 7:
        assert Message(priority=priority).priority == priority
    else:
        with pytest.raises(IllegalPropertyValue, match=f"priority {priority}"):
            Message(priority=priority)


@given(st.binary(max_size=64))
def test_a_correlation_identifier_has_20_bytes(data):
    if len(data) == 20:
        assert Message(correlation_id=data).correlation_id == data
    else:
        with pytest.raises(IllegalPropertySize, match=f"{len(data)} bytes"):
            Message(correlation_id=data)


@pytest.mark.parametrize(
    "name", ["application_tag", "body_type", "reach_queue_within_s", "receive_within_s"]
)
@given(value=st.one_of(st.integers(-3, 3), st.integers(2**32 - 3, 2**32 + 3), st.integers()))
def test_numbers_of_the_application_have_32_bits(name, value):
    if 0 <= value < 2**32:
        assert getattr(Message(**{name: value}), name) == value
    else:
        with pytest.raises(IllegalPropertyValue, match=f"{name} {value}"):
            Message(**{name: value})


@given(st.one_of(st.integers(-3, 3), st.integers(2**16 - 3, 2**16 + 3), st.integers()))
def test_a_message_class_has_16_bits(value):
    if 0 <= value < 2**16:
        assert Message(message_class=value).message_class == value
    else:
        with pytest.raises(IllegalPropertyValue, match="message_class"):
            Message(message_class=value)


# Classes and enumerations.


@pytest.mark.spec("MQDMPR-3.1.1.12-03")
@given(st.integers(0, 0xFFFF))
def test_a_class_of_an_application_s_own_is_kept_and_shown_as_a_number(value):
    message = Message(message_class=value)
    name = message_class_name(message.message_class)
    if name in MessageClass.__members__:
        assert MessageClass[name] == value
    else:
        assert int(name, 16) == value
        assert value not in list(MessageClass)


def test_the_bits_of_a_class_say_how_and_when_it_ended():
    for member in MessageClass:
        assert is_negative(member) == member.name.startswith("NACK")
    receiving = {member for member in MessageClass if is_about_receiving(member)}
    assert receiving == {
        MessageClass.ACK_RECEIVE,
        MessageClass.NACK_QUEUE_DELETED,
        MessageClass.NACK_QUEUE_PURGED,
        MessageClass.NACK_RECEIVE_TIMEOUT,
        MessageClass.NACK_RECEIVE_TIMEOUT_AT_SENDER,
        MessageClass.NACK_RECEIVE_REJECTED,
    }


def test_the_classes_have_the_published_values():
    values = [
        0x0000,
        0x0001,
        0x0002,
        0x00FF,
        0x4000,
        *range(0x8000, 0x800D),
        *range(0xC000, 0xC005),
    ]
    assert [member.value for member in MessageClass] == values
    assert MessageClass.NACK_HOP_COUNT_EXCEEDED == 0x8005
    assert MessageClass.NACK_NOT_TRANSACTIONAL_MESSAGE == 0x800A
    assert MessageClass.NACK_RECEIVE_TIMEOUT == 0xC002


@pytest.mark.spec("MQDMPR-3.1.1.12-04", "MQDMPR-3.1.1.12-09", "MQDMPR-3.1.1.12-50")
def test_privacy_signature_and_sender_kinds_have_the_published_values():
    assert {member.name: member.value for member in PrivacyLevel} == {
        "NONE": 0,
        "BASE": 1,
        "ENHANCED": 3,
        "ADVANCED": 5,
    }
    assert {member.name: member.value for member in AuthenticationLevel} == {
        "NONE": 0,
        "SIGNATURE_10": 1,
        "SIGNATURE_20": 3,
        "SIGNATURE_30": 5,
        "XML_SIGNATURE": 9,
    }
    assert {member.name: member.value for member in SenderIdKind} == {
        "NONE": 0,
        "SECURITY_IDENTIFIER": 1,
        "QUEUE_MANAGER": 2,
    }


@pytest.mark.spec("MQDMPR-3.1.1.12-46")
def test_algorithms_and_body_types_have_the_published_values():
    assert [member.value for member in HashAlgorithm] == [
        0x8001, 0x8002, 0x8003, 0x8004, 0x800C, 0x800E
    ]  # fmt: skip
    assert {member.name: member.value for member in EncryptionAlgorithm} == {
        "DSS": 0x2200,
        "RSA_SIGN": 0x2400,
        "DES": 0x6601,
        "RC2": 0x6602,
        "AES128": 0x660E,
        "AES192": 0x660F,
        "AES256": 0x6610,
        "RC4": 0x6801,
        "SEAL": 0x6802,
        "RSA_KEY_EXCHANGE": 0xA400,
    }
    assert Message().encryption_algorithm == EncryptionAlgorithm.RC4
    assert BodyType.TEXT == 8
    assert BodyType.BYTES == 0x1000 | BodyType.UINT8


@given(u32, u32)
def test_unknown_algorithms_and_body_types_survive(algorithm, body_type):
    message = Message(hash_algorithm=algorithm, encryption_algorithm=algorithm, body_type=body_type)
    assert message.hash_algorithm == message.encryption_algorithm == algorithm
    assert message.body_type == body_type


# Acknowledgments and journals.


@pytest.mark.spec("MQDMPR-3.1.1.12-33")
def test_the_combinations_of_acknowledgments_have_the_published_values():
    assert {name: int(value) for name, value in AckRequest.__members__.items()} == {
        "NONE": 0x0,
        "POSITIVE_ARRIVAL": 0x1,
        "POSITIVE_RECEIVE": 0x2,
        "NEGATIVE_ARRIVAL": 0x4,
        "NEGATIVE_RECEIVE": 0x8,
        "NACK_REACH_QUEUE": 0x4,
        "FULL_REACH_QUEUE": 0x5,
        "NACK_RECEIVE": 0xC,
        "FULL_RECEIVE": 0xE,
    }


@given(st.integers(0, 0xFF))
def test_a_message_asks_for_an_outcome_if_it_has_one_of_its_bits(bits):
    message = Message(acknowledge=bits)
    for outcome in AckRequest.__members__.values():
        assert message.asks_for(outcome) == bool(bits & outcome.value)
        assert Message(acknowledge=outcome).asks_for(outcome) == (outcome != AckRequest.NONE)


@given(st.booleans(), st.booleans())
def test_the_journal_wishes_are_flags_for_applications(on_failure, on_success):
    message = Message(journal_on_failure=on_failure, journal_on_success=on_success)
    assert (Journaling.ON_FAILURE in message.journaling) == on_failure
    assert (Journaling.ON_SUCCESS in message.journaling) == on_success


# Lifetimes and order.


@given(u32, u32)
def test_a_message_travels_no_longer_than_it_may_be_received(reach_s, receive_s):
    message = Message(sent_time_s=SENT_S, reach_queue_within_s=reach_s, receive_within_s=receive_s)
    finite = [lifetime for lifetime in (reach_s, receive_s) if lifetime != INFINITE_S]
    assert message.transit_deadline_s == (SENT_S + min(finite) if finite else None)


@pytest.mark.parametrize(
    ("within_s", "deadline_s"), [(0, SENT_S), (60, SENT_S + 60), (INFINITE_S, None)]
)
def test_a_message_waits_to_be_received_as_long_as_its_sender_says(within_s, deadline_s):
    message = Message(sent_time_s=SENT_S, receive_within_s=within_s)
    assert message.receive_deadline_s == deadline_s


def test_transactional_messages_are_ordered_as_if_they_had_the_lowest_priority():
    assert Message(priority=5, delivery=DeliveryMode.TRANSACTIONAL).queue_priority == 0
    assert Message(priority=5, delivery=DeliveryMode.RECOVERABLE).queue_priority == 5


def test_the_source_of_a_message_is_in_its_identifier():
    source = Guid.parse("00112233-4455-6677-8899-aabbccddeeff")
    assert Message(identifier=MessageId(source, 7)).source_manager == source
    assert Message().source_manager == NIL_GUID
