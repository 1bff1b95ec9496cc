from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.message import (
    AckRequest,
    AuthenticationLevel,
    BodyType,
    EncryptionAlgorithm,
    HashAlgorithm,
    MessageClass,
    PrivacyLevel,
    is_about_receiving,
    is_negative,
    message_class_name,
)
from openmsmq.wire.headers.security import SenderKind


@pytest.mark.spec("MQDMPR-3.1.1.12-03")
@given(st.integers(0, 0xFFFF))
def test_a_class_of_an_application_s_own_is_shown_as_a_number(value):
    name = message_class_name(value)
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
    assert {member.name: member.value for member in SenderKind} == {
        "NONE": 0,
        "SID": 1,
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
    assert BodyType.TEXT == 8
    assert BodyType.BYTES == 0x1000 | BodyType.UINT8


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
