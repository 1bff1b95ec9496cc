"""Tampering: whatever is changed in a signed message is noticed, but for what is listed here.

What a signature covers is the specification's choice [MQMQ 2.5], and no receiver can cover more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openmsmq.model.identity import Guid, SequenceId
from openmsmq.model.message import AuthenticationLevel, AuthenticationRequest
from openmsmq.security.policy import SecurityPolicy
from openmsmq.security.signatures.signatures import BadSignature, check_signature, sign
from openmsmq.wire import packets
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.fields.cursor import Field
from openmsmq.wire.headers import queue_names, user
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.debug import DebugHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.multi_queue import AddressList, MultiQueueFormatHeader
from openmsmq.wire.headers.queue_names import DirectName, PrivateOnSource, PublicName
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage, packet_fields
from tests.strategies.keys import (
    DESTINATION,
    ONE,
    QUEUE,
    REQUESTS,
    SOURCE,
    THREE,
    TWO,
    changed,
    signer,
    user_message,
)
from tests.strategies.packets import user_messages

# `make test-fast` asks for fewer. `make model`, which is about the other model, gets no more.
EXAMPLES = min(int(os.environ.get("OPENMSMQ_MODEL_EXAMPLES", "200")), 200)
POLICY = SecurityPolicy(signatures=frozenset({ONE, TWO, THREE}))
NOBODY = Guid(range(16))

PADDING = "says nothing, and nobody reads it"
UNSIGNED = {
    "BaseHeader.Reserved": PADDING,
    "BaseHeader.TimeToReachQueue": "lifetimes are not signed: a message can be made to expire",
    "UserHeader.QueueManagerAddress": "a message can be sent astray, where its queue is not",
    "UserHeader.TimeToBeReceived": "lifetimes are not signed: a message can be made to expire",
    "UserHeader.SentTime": "written by the queue manager, after the sender has signed",
    "UserHeader.MessageID": "written by the queue manager, after the sender has signed",
    "UserHeader.padding": PADDING,
    "TransactionHeader.Flags": "written by the queue manager, after the sender has signed",
    "TransactionHeader.TxSequenceID.Ordinal": "written by the queue manager",
    "TransactionHeader.TxSequenceID.TimeStamp": "written by the queue manager",
    "TransactionHeader.TxSequenceNumber": "written by the queue manager",
    "TransactionHeader.PreviousTxSequenceNumber": "written by the queue manager",
    "SecurityHeader.SecurityID": "the directory has to have the certificate under it",
    "SecurityHeader.SenderCert": "all but its key; the directory has to have it byte by byte",
    "SecurityHeader.padding": PADDING,
    "MessagePropertiesHeader.AllocationBodySize": "only MessageSize bytes of it are the body",
    "MessagePropertiesHeader.PrivacyLevel": "written by encryption, after signing",
    "MessagePropertiesHeader.EncryptionAlgorithm": "written by encryption, after signing",
    "MessagePropertiesHeader.padding": PADDING,
    "DebugHeader.Flags": "where reports about the way go",
    "DebugHeader.Reserved": PADDING,
    "DebugHeader.QueueIdentifier": "where reports about the way go",
}
"""What no signature covers, and why that is so."""

UNSIGNED_BITS = {
    "BaseHeader.Flags": (0xFFE0, "whether it is traced, and reserved bits"),
    "UserHeader.Flags": (0xEF00_009F, "hops, which change on the way, and reserved bits"),
    "SecurityHeader.Flags": (0xFFD0, "AU, DE, AI and AS, which a receiver does not believe"),
    "MessagePropertiesHeader.Flags": (0xF0, "reserved bits"),
}

ALSO_UNSIGNED = {
    ONE: {
        "UserHeader.SourceQueueManager": "not in MSMQ 1.0",
        "UserHeader.DestinationQueue": "not in MSMQ 1.0",
        "UserHeader.ConnectorType": "not in MSMQ 1.0",
        "MessagePropertiesHeader.MessageClass": "not in MSMQ 1.0",
        "MessagePropertiesHeader.BodyType": "not in MSMQ 1.0",
        "MessagePropertiesHeader.ExtensionData": "not in MSMQ 1.0",
    },
    TWO: {"MessagePropertiesHeader.ExtensionData": "not in MSMQ 2.0"},
    THREE: {
        "UserHeader.DestinationQueue": "in MSMQ 3.0 the list of destinations stands for it",
        "MultiQueueFormatHeader.Destination.Reserved": PADDING,
        "MultiQueueFormatHeader.Destination.padding": PADDING,
        "MultiQueueFormatHeader.Administration.Reserved": PADDING,
        "MultiQueueFormatHeader.Administration.padding": PADDING,
        "MultiQueueFormatHeader.Administration.FormatName": "which list is signed is not clear",
        "MultiQueueFormatHeader.Response.Reserved": PADDING,
        "MultiQueueFormatHeader.Response.padding": PADDING,
        "MultiQueueFormatHeader.Response.FormatName": "which list is signed is not clear",
        "MultiQueueFormatHeader.Signature.Reserved": PADDING,
    },
}
ALSO_UNSIGNED_BITS = {
    ONE: {
        "BaseHeader.Flags": (0x0007, "priority is not in MSMQ 1.0"),
        "UserHeader.Flags": (0x0000_0300, "journaling is not in MSMQ 1.0"),
        "MessagePropertiesHeader.Flags": (0x0F, "acknowledgments are not in MSMQ 1.0"),
    },
    TWO: {},
    THREE: {},
}


def rich_message(kind: AuthenticationLevel) -> bytes:
    """Return a signed packet in which every header has something to tamper with."""
    lists = MultiQueueFormatHeader(
        AddressList((DirectName(r"OS:a\queue"), PublicName(QUEUE))),
        AddressList((PublicName(NOBODY),)),
        AddressList((PublicName(SOURCE),)),
    )
    message = UserMessage(
        UserHeader(
            SOURCE,
            DESTINATION,
            flags=user.RECOVERABLE | user.JOURNAL_ON_SUCCESS,
            destination=DirectName(r"OS:host\q2"),
            admin_queue=PrivateOnSource(7),
            response_queue=DirectName(r"OS:host\r"),
            connector_type=NOBODY,
        ),
        MessageProperties.of(
            b"a body",
            "a label",
            body_type=8,
            acknowledge=0x0E,
            message_class=2,
            correlation_id=bytes(range(20)),
            application_tag=5,
            extension=b"extension",
        ),
        BaseHeader(flags=5),
        TransactionHeader(SequenceId(1, 2), 3),
        debug=DebugHeader(NOBODY),
        multi_queue=lists if kind is THREE else None,
    )
    return sign(packets.encode(message), signer(), REQUESTS[kind], SOURCE)


def is_accepted(packet: bytes) -> bool:
    """Whether somebody takes the packet for a signed message."""
    try:
        message = packets.decode(packet)
        if not isinstance(message, UserMessage):
            return False
        check_signature(message, POLICY)
    except (DecodeError, BadSignature):
        return False
    return True


def named_bytes(fields: Iterator[Field] | list[Field], before: str = "") -> Iterator[str]:
    """Name the field of each byte."""
    for field in fields:
        if isinstance(field.value, list):
            yield from named_bytes(field.value, f"{before}{field.name}.")
        else:
            yield from [before + field.name] * field.size


def accepted_changes(packet: bytes) -> dict[str, int]:
    """Change each bit alone: which fields can be changed unnoticed, and which of their bits."""
    names = list(named_bytes(packet_fields(user_message(packet))))
    assert len(names) == len(packet)
    found: dict[str, int] = {}
    for at, name in enumerate(names):
        # The long items are looked at byte by byte only: their bits are all alike.
        for bit in range(1 if name.endswith(("Cert", "Signature")) else 8):
            if is_accepted(changed(packet, at, 1 << bit)):
                found[name] = found.get(name, 0) | 1 << 8 * (at - names.index(name)) + bit
    return found


@pytest.mark.spec("MQQB-3.1.5.8.3-03")
@pytest.mark.parametrize("kind", REQUESTS)
def test_no_bit_can_be_changed_unnoticed_but_those_that_are_listed(
    kind: AuthenticationLevel,
) -> None:
    found = accepted_changes(rich_message(kind))
    expected = {name: mask for name, (mask, _) in UNSIGNED_BITS.items()}
    for name, (mask, _) in ALSO_UNSIGNED_BITS[kind].items():
        expected[name] |= mask
    bits = {name: found.pop(name) & ~expected[name] for name in expected}
    assert bits == dict.fromkeys(expected, 0)
    assert set(found) == {*UNSIGNED, *ALSO_UNSIGNED[kind]}


def covered(message: UserMessage, kind: AuthenticationLevel) -> tuple[object, ...]:
    """What a receiver may believe of a message with such a signature."""
    properties, header = message.properties, message.user
    names = [queue_names.write(name, "") for name in (header.response_queue, header.admin_queue)]
    always = (
        properties.correlation_id,
        properties.application_tag,
        properties.body[: properties.body_size],
        properties.label,
        properties.hash_algorithm,
        *names,
    )
    if kind is ONE:
        return always
    later = (
        *always,
        header.source,
        header.recoverable,
        message.base.priority,
        header.journal_on_failure,
        header.journal_on_success,
        properties.acknowledge & 0x0F,
        properties.message_class,
        properties.body_type,
        header.connector_type or bytes(16),
    )
    if kind is TWO:
        return (*later, queue_names.write(header.destination, ""))
    assert message.multi_queue is not None
    return (*later, properties.extension, message.multi_queue.destinations.elements)


@settings(max_examples=3 * EXAMPLES // 2)
@given(user_messages(), st.sampled_from(sorted(REQUESTS)), st.data())
def test_a_byte_that_is_changed_in_any_message_is_noticed_if_it_is_covered(
    message: UserMessage, kind: AuthenticationLevel, data: st.DataObject
) -> None:
    plain = msgspec.structs.replace(message, security=None)
    packet = sign(packets.encode(plain), signer(), REQUESTS[kind], message.user.source)
    before = user_message(packet)
    checked = check_signature(before, POLICY)
    at = data.draw(st.integers(0, len(packet) - 1))
    tampered = changed(packet, at, data.draw(st.integers(1, 255)))
    if is_accepted(tampered):
        after = user_message(tampered)
        assert check_signature(after, POLICY).kind is checked.kind
        assert covered(after, checked.kind) == covered(before, checked.kind)


@settings(max_examples=EXAMPLES)
@given(user_messages(), st.data())
def test_any_bytes_as_signature_and_certificate_are_accepted_or_refused_and_nothing_else(
    message: UserMessage, data: st.DataObject
) -> None:
    plain = packets.encode(msgspec.structs.replace(message, security=None))
    packet = sign(plain, signer(), AuthenticationRequest.ALWAYS, SOURCE)
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(packet) - 1))
        packet = changed(packet, at, data.draw(st.integers(1, 255)))
    is_accepted(packet)
