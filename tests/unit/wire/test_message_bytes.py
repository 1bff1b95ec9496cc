"""Facts read from the bytes of a message are those of the decoded one; changes change no other."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import NIL_GUID, Guid, MessageId, SequenceId
from openmsmq.wire import message_bytes
from openmsmq.wire.headers import base, security, transaction
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.security import SecurityHeader
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.outline import outline
from openmsmq.wire.packets import UserMessage, decode, encode
from tests.strategies.packets import user_messages

MESSAGES = user_messages().map(
    lambda message: msgspec.structs.replace(message, session=None, session_counted=False)
)
U32 = st.integers(0, 0xFFFFFFFF)
BEFORE = b"what an entry has before its packet"


def read(packet: bytes) -> UserMessage:
    message = decode(packet)
    assert isinstance(message, UserMessage)
    return message


@given(MESSAGES)
def test_each_fact_is_the_one_that_decoding_gives(message: UserMessage) -> None:
    packet, found = encode(message), outline(encode(message))
    header, properties = message.user, message.properties
    assert message_bytes.base_flags(packet) & ~base.STRUCTURAL == message.base.flags
    assert message_bytes.priority(packet) == message.base.priority
    assert message_bytes.is_traced(packet) == (message.base.traced and message.debug is not None)
    assert message_bytes.time_to_reach_queue_s(packet) == message.base.time_to_reach_queue_s
    assert message_bytes.time_to_be_received_s(packet) == header.time_to_be_received_s
    assert message_bytes.sent_time_s(packet) == header.sent_time_s
    assert message_bytes.is_recoverable(packet) == header.recoverable
    assert message_bytes.has_admin_queue(packet) == (header.admin_queue is not None)
    assert message_bytes.acknowledge(packet, found) == properties.acknowledge
    assert message_bytes.message_class(packet, found) == properties.message_class
    assert message_bytes.message_class(packet) == properties.message_class
    assert message_bytes.correlation_id(packet) == properties.correlation_id
    assert message_bytes.wants_privacy(packet, found) == (properties.privacy_level & 0xFF != 0)
    assert message_bytes.body(packet, found) == properties.body
    assert message_bytes.extension(packet, found) == properties.extension


@given(MESSAGES)
def test_facts_of_an_entry_are_those_of_its_packet(message: UserMessage) -> None:
    entry, at, header = BEFORE + encode(message), len(BEFORE), message.user
    assert message_bytes.source(entry, at) == header.source
    assert message_bytes.destination_manager(entry, at) == header.destination_manager
    assert message_bytes.message_number(entry, at) == header.message_number
    identifier = MessageId(header.source, header.message_number)
    assert MessageId.from_bytes(message_bytes.message_id(entry, at)) == identifier
    assert message_bytes.hop_count(entry, at) == header.hop_count
    assert message_bytes.journals_failure(entry, at) == header.journal_on_failure
    assert message_bytes.journals_success(entry, at) == header.journal_on_success
    assert message_bytes.is_transactional(entry, at) == (message.transaction is not None)


@given(MESSAGES.filter(lambda message: message.transaction is not None), U32, U32)
def test_a_place_in_a_sequence_is_read_and_written(
    message: UserMessage, number: int, previous: int
) -> None:
    packet, before = encode(message), message.transaction
    assert before is not None
    offset = message_bytes.transaction_offset(packet)
    assert offset == outline(packet).transaction_offset
    assert message_bytes.sequence_place(packet) == (
        before.sequence,
        before.number,
        before.previous_number,
    )
    assert message_bytes.wants_final_ack(packet) == before.final_ack_wanted
    mark, sequence = transaction.transaction_marks(1, 7)[0], SequenceId(3, 4)
    header = message.user
    wanted = header.journal_on_failure or header.journal_on_success or before.final_ack_wanted
    placed = msgspec.structs.replace(
        before,
        sequence=sequence,
        number=number,
        previous_number=0,
        flags=before.flags & ~transaction.MARKS | mark | (transaction.FINAL_ACK if wanted else 0),
    )
    expected = msgspec.structs.replace(
        message,
        transaction=placed,
        base=msgspec.structs.replace(message.base, flags=message.base.flags & ~base.PRIORITY),
    )
    numbered = message_bytes.numbered(packet, mark, sequence, number, offset)
    assert read(numbered) == expected
    behind = msgspec.structs.replace(placed, previous_number=previous)
    followed = message_bytes.following(numbered, previous, offset)
    assert read(followed) == msgspec.structs.replace(expected, transaction=behind)
    marked = msgspec.structs.replace(before, flags=before.flags & ~transaction.MARKS | mark)
    assert read(message_bytes.marked(packet, mark)) == msgspec.structs.replace(
        message, transaction=marked
    )


@given(MESSAGES, U32, U32)
def test_a_stamp_says_who_sends_when_and_under_which_number(
    message: UserMessage, sent_time_s: int, number: int
) -> None:
    source = Guid(bytes(range(16)))
    header = msgspec.structs.replace(
        message.user, source=source, sent_time_s=sent_time_s, message_number=number
    )
    stamped = message_bytes.stamped(encode(message), source, sent_time_s, number, BEFORE)
    assert stamped == BEFORE + encode(msgspec.structs.replace(message, user=header))


@given(MESSAGES, st.binary(min_size=16, max_size=16), U32, U32, st.integers(0, 0xFFFFF))
def test_a_stamp_for_many_messages_is_what_each_would_get(
    message: UserMessage, source: bytes, sent_time_s: int, number: int, wire_number: int
) -> None:
    packet = encode(message)
    alone = message_bytes.stamped(packet, source, sent_time_s, number)
    stamp = message_bytes.Stamp(packet, source, sent_time_s, outline(packet))
    assert stamp.put(packet, number) == alone
    if message.transaction is not None:
        mark = transaction.transaction_mark(wire_number)
        stamp = message_bytes.Stamp(packet, source, sent_time_s, outline(packet), mark)
        assert stamp.put(packet, number) == message_bytes.marked(alone, mark)


@given(MESSAGES, st.integers(0, 0xFFFF), U32)
def test_class_and_privacy_level_change_alone(message: UserMessage, value: int, level: int) -> None:
    packet = encode(message)
    changed = msgspec.structs.replace(message.properties, message_class=value)
    assert read(message_bytes.with_class(packet, value)).properties == changed
    changed = msgspec.structs.replace(message.properties, privacy_level=level)
    assert read(message_bytes.with_privacy_level(packet, level)).properties == changed


@given(MESSAGES.filter(lambda message: message.security is not None))
def test_claims_change_and_no_other_bit_of_the_security_header(message: UserMessage) -> None:
    packet, header, mask = encode(message), message.security, security.AUTHENTICATED
    assert header is not None
    for claims in (0, mask):
        claimed = message_bytes.claiming(packet, outline(packet), claims, mask)
        flags = header.flags & ~mask | claims
        wanted = msgspec.structs.replace(header, flags=flags)
        assert read(claimed) == msgspec.structs.replace(message, security=wanted)


@given(MESSAGES)
def test_a_session_header_is_put_behind_and_its_marks_taken_away(message: UserMessage) -> None:
    packet, header = encode(message), SessionHeader(1, 2, 3, 4, 5, 6).write()
    laden = message_bytes.laden(packet, header)
    assert laden.endswith(header)
    assert message_bytes.base_flags(laden) == message_bytes.base_flags(packet) | base.SESSION
    assert message_bytes.unladen(laden.removesuffix(header)) == packet


@given(MESSAGES)
def test_the_parts_around_size_and_source_join_to_the_message(message: UserMessage) -> None:
    packet, found = encode(message), outline(encode(message))
    start, middle = message_bytes.around_size(packet, found)
    size = len(packet).to_bytes(4, "little")
    assert packet.startswith(start + size + middle)
    assert len(start + size + middle) == found.properties_offset
    assert b"".join(message_bytes.parted_behind_source(packet)) == packet
    assert message_bytes.parted_behind_source(packet)[0].endswith(message.user.source)


@pytest.mark.parametrize(("count", "marks"), [(0, []), (1, [0x7C]), (3, [0x74, 0x70, 0x78])])
def test_the_first_and_the_last_message_of_a_transaction_are_marked(
    count: int, marks: list[int]
) -> None:
    assert transaction.transaction_marks(count, 7) == marks


def test_a_body_is_as_long_as_its_reader_gets_it() -> None:
    properties = MessageProperties(body=b"five\0\0\0\0", body_size=4, allocated_size=8)
    plain = UserMessage(UserHeader(NIL_GUID), properties)
    sealed = msgspec.structs.replace(plain, security=SecurityHeader(provider_info=b"any"))
    assert message_bytes.body_size(encode(plain)) == 4
    assert message_bytes.body_size(encode(sealed)) == 8
