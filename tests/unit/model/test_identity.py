from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import NIL_GUID, Guid, MessageId, SequenceId, TransactionId

guids = st.binary(min_size=16, max_size=16).map(Guid)
u32 = st.integers(0, 0xFFFFFFFF)
message_ids = st.builds(MessageId, guids, u32)


@given(guids)
def test_a_guid_is_read_back_from_its_text_with_and_without_braces(guid):
    assert Guid.parse(str(guid)) == guid
    assert Guid.parse(f"{{{guid}}}") == guid
    assert Guid.parse(str(guid).upper()) == guid


@given(st.uuids())
def test_the_text_of_a_guid_is_that_of_other_libraries(identifier):
    assert str(Guid(identifier.bytes_le)) == str(identifier)


def test_the_first_three_parts_of_a_guid_are_little_endian_on_the_wire():
    guid = Guid.parse("00112233-4455-6677-8899-aabbccddeeff")
    assert guid.hex() == "33221100554477668899aabbccddeeff"
    assert repr(guid) == "Guid('00112233-4455-6677-8899-aabbccddeeff')"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00112233-4455-6677-8899-aabbccddeef",
        "00112233-4455-6677-8899-aabbccddeeff0",
        "{00112233-4455-6677-8899-aabbccddeeff",
        "00112233-4455-6677-8899-aabbccddeeff}",
        "00112233445566778899aabbccddeeff",
        "g0112233-4455-6677-8899-aabbccddeeff",
        "00112233-4455-6677-8899-aabbccddeeff\n",
    ],
)
def test_what_is_not_a_guid_is_refused_with_the_reason(text):
    with pytest.raises(ValueError, match="8-4-4-4-12"):
        Guid.parse(text)


def test_the_nil_guid_is_all_zeros():
    assert str(NIL_GUID) == str(uuid.UUID(int=0))


@given(message_ids)
def test_a_message_identifier_is_read_back_from_bytes_and_text(identifier):
    assert len(identifier.to_bytes()) == 20
    assert MessageId.from_bytes(identifier.to_bytes()) == identifier
    assert MessageId.parse(str(identifier)) == identifier


@given(message_ids)
def test_what_people_write_is_a_message_identifier_as_text_or_in_hexadecimal(identifier):
    assert MessageId.read(str(identifier)) == identifier
    assert MessageId.read(identifier.to_bytes().hex()) == identifier
    assert MessageId.read(identifier.to_bytes().hex().upper()) == identifier


@given(st.binary(max_size=40).filter(lambda data: len(data) != 20))
def test_a_message_identifier_has_exactly_20_bytes(data):
    with pytest.raises(ValueError, match=f"20 bytes, not {len(data)}"):
        MessageId.from_bytes(data)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{{{NIL_GUID}}}", "number needed"),
        (f"{{{NIL_GUID}}}\\", "number needed"),
        (f"{{{NIL_GUID}}}\\-1", "number needed"),
        (f"{{{NIL_GUID}}}\\٣", "number needed"),
        (f"{{{NIL_GUID}}}\\4294967296", "exceeds 32 bits"),
        ("{no guid}\\1", "not a GUID"),
    ],
)
def test_what_is_not_a_message_identifier_is_refused_with_the_reason(text, reason):
    with pytest.raises(ValueError, match=reason):
        MessageId.parse(text)


@given(st.tuples(u32, u32), st.tuples(u32, u32))
def test_sequences_are_ordered_by_timestamp_and_then_by_ordinal(one, other):
    first, second = (SequenceId(ordinal, timestamp) for timestamp, ordinal in (one, other))
    assert (first < second) == (one < other)
    assert (first <= second) == (one <= other)
    assert (first > second) == (one > other)
    assert (first >= second) == (one >= other)
    assert (first == second) == (one == other)


@given(st.integers(0, 2**64 - 1))
def test_a_sequence_identifier_is_one_64_bit_number(value):
    assert int(SequenceId.from_int(value)) == value


@given(guids, st.integers(0, 2**20 - 1))
def test_a_transaction_identifier_is_shown_like_a_message_identifier(source, number):
    assert str(TransactionId(source, number)) == str(MessageId(source, number))
