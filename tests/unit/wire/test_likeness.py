"""A message is like another if it differs in time, number, place in sequence and body only."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import Guid, SequenceId
from openmsmq.wire import message_bytes
from openmsmq.wire.headers import transaction
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.queue_names import DirectName, PublicName
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import RECOVERABLE, UserHeader
from openmsmq.wire.likeness import Likeness, SealedLikeness
from openmsmq.wire.outline import outline
from openmsmq.wire.packet_parts import cut
from openmsmq.wire.packets import UserMessage, encode

SOURCE = Guid(bytes(range(16)))
U32 = st.integers(0, 0xFFFFFFFF)
BODY = bytes(40)
PLACE = TransactionHeader(SequenceId(1, 2), 3, 2)


def message(*, body: bytes = BODY, place: TransactionHeader | None = None) -> UserMessage:
    header = UserHeader(
        SOURCE, flags=RECOVERABLE, destination=DirectName("OS:beta\\private$\\orders")
    )
    return UserMessage(header, MessageProperties.of(body, "label"), transaction=place)


def likeness(first: UserMessage) -> Likeness:
    return Likeness(encode(first), outline(encode(first)))


@given(U32, U32, U32, st.booleans())
def test_time_number_place_and_body_may_differ(
    sent_s: int, number: int, previous: int, transactional: bool
) -> None:
    first = message(place=PLACE if transactional else None)
    like = likeness(first)
    assert like.transactional == transactional
    packet = message_bytes.stamped(encode(first), SOURCE, sent_s, number)
    if transactional:
        assert like.hole_start == message_bytes.transaction_offset(packet)
        mark = transaction.transaction_marks(1, number & 0xFFFFF)[0]
        packet = message_bytes.following(
            message_bytes.marked(packet, mark), previous, like.hole_start
        )
    assert like.fits(packet)
    assert like.fits(packet.replace(BODY, b"x" * len(BODY)))
    assert not like.fits(packet + bytes(4))


def changed(first: UserMessage, part: str, **fields: object) -> UserMessage:
    header = msgspec.structs.replace(getattr(first, part), **fields)
    return msgspec.structs.replace(first, **{part: header})


@pytest.mark.parametrize(
    ("part", "fields"),
    [
        ("base", {"flags": 4}),
        ("base", {"time_to_reach_queue_s": 9}),
        ("user", {"source": Guid(bytes(16))}),
        ("user", {"destination_manager": SOURCE}),
        ("user", {"time_to_be_received_s": 9}),
        ("user", {"flags": RECOVERABLE + 1}),
        ("user", {"destination": PublicName(SOURCE)}),
        ("transaction", {"flags": transaction.FINAL_ACK}),
        ("transaction", {"connector_manager": SOURCE}),
        ("properties", {"acknowledge": 1}),
        ("properties", {"message_class": 1}),
        ("properties", {"correlation_id": b"x" * 20}),
        ("properties", {"body_type": 8}),
        ("properties", {"privacy_level": 1}),
        ("properties", {"body": BODY + bytes(4), "body_size": 44, "allocated_size": 44}),
    ],
)
def test_what_differs_in_anything_else_needs_a_look_of_its_own(
    part: str, fields: dict[str, object]
) -> None:
    first = message(place=PLACE)
    assert likeness(first).fits(encode(first))
    assert not likeness(first).fits(encode(changed(first, part, **fields)))


def test_only_the_body_may_differ_of_what_is_sealed_alike() -> None:
    first, other = encode(message()), encode(message(body=b"y" * len(BODY)))
    sealed = encode(message(body=b"s" * 48))
    like = SealedLikeness(cut(first), sealed)
    assert like.fits(other)
    assert like.plain_body(other) == b"y" * len(BODY)
    assert like.sealed(b"t" * 48) == encode(message(body=b"t" * 48))
    assert not like.fits(message_bytes.stamped(other, SOURCE, 1, 1))
    assert not like.fits(other + bytes(4))
