"""A message becomes a packet, and a packet a message. [MQDMPR 3.1.7.1.30-3.1.7.1.32]

What stands in a packet is read here from its bytes, by the offsets that [MQMQ 2.2.19, 2.2.20] give.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.api import messages as api
from openmsmq.api.messages import Entry
from openmsmq.client.formatters import DEFAULT_FORMATTER
from openmsmq.client.messages.outgoing import OutgoingMessage, PacketBuilder
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.model.identity import NIL_GUID, Guid, MessageId, SequenceId
from openmsmq.model.message import AuthenticationLevel, AuthenticationRequest
from openmsmq.model.names import PrivateFormatName
from openmsmq.model.queue import AccessMode
from openmsmq.security.signatures.signatures import sign
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.debug import DebugHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.queue_names import DirectName, PrivateName, PublicName
from openmsmq.wire.headers.security import SecurityHeader
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage, decode, encode
from tests.conformance.marks import shows
from tests.strategies.keys import SID, SOURCE, certificate, letter, signer
from tests.strategies.messages import Draft
from tests.unit.manager.office import ORDERS, Office

CONSTRUCT, READ, WRITE = (f"MQDMPR-3.1.7.1.{number}" for number in (30, 31, 32))
TRACES: Final = Guid(b"where traces go!")
OTHER: Final = Guid(b"some other host!")

SECURITY, TRANSACTION, PROPERTIES, MULTI_QUEUE = 1 << 19, 1 << 20, 1 << 21, 1 << 23
"""Bits of UserHeader.Flags."""
DEBUG, TRACED = 1 << 5, 1 << 8
"""Bits of BaseHeader.Flags."""


def built(transactional: bool = False, **said: Any) -> bytes:
    builder = PacketBuilder(r"OS:ALPHA\private$\orders", "ALPHA")
    return builder.build(OutgoingMessage(**said), DEFAULT_FORMATTER, transactional)


def base_flags(packet: bytes) -> int:
    found: int = struct.unpack_from("<H", packet, 2)[0]
    return found


def user_flags(packet: bytes) -> int:
    found: int = struct.unpack_from("<I", packet, 60)[0]
    return found


def headers(packet: bytes) -> set[str]:
    names = {"TH": TRANSACTION, "SH": SECURITY, "MP": PROPERTIES, "MQ": MULTI_QUEUE}
    found = {name for name, bit in names.items() if user_flags(packet) & bit}
    return found | ({"DH"} if base_flags(packet) & DEBUG else set())


def user_message(packet: bytes) -> UserMessage:
    found = decode(packet)
    assert isinstance(found, UserMessage)
    return found


# Construct a UserMessage Packet.


@shows(CONSTRUCT, 1, 2, 3, 5, 6)
@given(
    st.booleans(),
    st.fixed_dictionaries(
        {},
        optional={
            "body": st.binary(max_size=20),
            "label": st.sampled_from(["", "a label"]),
            "extension": st.binary(max_size=5),
            "correlation_id": st.binary(min_size=20, max_size=20),
            "application_tag": st.integers(0, 9),
            "body_type": st.integers(0, 9),
            "trace_queue": st.just(TRACES),
        },
    ),
)
def test_a_packet_has_the_headers_that_its_message_needs(
    transactional: bool, said: dict[str, Any]
) -> None:
    packet = built(transactional, **said)
    wanted = {"MP"} | ({"TH"} if transactional else set())
    wanted |= {"DH"} if "trace_queue" in said else set()
    assert headers(packet) == wanted
    message = user_message(packet)
    assert (message.transaction is not None) is transactional
    assert (message.debug is not None) is ("trace_queue" in said)
    assert message.security is None
    assert message.multi_queue is None


@shows(CONSTRUCT, 4)
def test_a_signed_message_has_a_security_header() -> None:
    plain = encode(letter())
    assert headers(plain) == {"MP"}
    for request in (AuthenticationRequest.SIGNATURE_10, AuthenticationRequest.SIGNATURE_20):
        packet = sign(plain, signer(), request, SOURCE)
        assert headers(packet) == {"MP", "SH"}
        assert user_message(packet).security is not None


@shows(CONSTRUCT, 7)
def test_a_message_to_several_queues_has_a_header_that_lists_them() -> None:
    office = Office()
    office.ok(api.CreateQueue(r"private$\more"))
    several = rf"DIRECT=OS:.\{ORDERS},DIRECT=OS:.\private$\more"
    office.ok(api.Send(office.open(several, AccessMode.SEND), [Draft(body=b"both").packet()]))
    office.ok(api.Send(office.open(ORDERS, AccessMode.SEND), [Draft(body=b"one").packet()]))
    both, one = office.ok(api.Receive(office.open(), 2)).entries
    assert headers(both.packet) == {"MP", "MQ"}
    assert headers(one.packet) == {"MP"}


# Serialize Message to Buffer.


@shows(WRITE, 1, 4, 5)
@given(st.integers(0, 7), st.booleans(), st.binary(max_size=200))
def test_a_packet_says_its_priority_and_its_size(
    priority: int, transactional: bool, body: bytes
) -> None:
    packet = built(transactional, priority=priority, body=body)
    assert base_flags(packet) & 7 == (0 if transactional else priority)
    assert struct.unpack_from("<I", packet, 8)[0] == len(packet)


FIRST: Final = struct.Struct("<BBH20sIIIIIIII")
"""MessagePropertiesHeader up to ExtensionSize. [MQMQ 2.2.19.3]"""


@shows(WRITE, 2, 3, 6, 7)
@given(
    body=st.binary(max_size=100),
    extension=st.binary(max_size=50),
    label=st.text("aé😀", max_size=20),
    tag=st.integers(0, 0xFFFF_FFFF),
    correlation=st.binary(min_size=20, max_size=20),
    acknowledge=st.integers(0, 15),
)
def test_the_fields_of_a_packet_are_the_attributes_of_its_message(
    body: bytes, extension: bytes, label: str, tag: int, correlation: bytes, acknowledge: int
) -> None:
    packet = built(
        body=body,
        extension=extension,
        label=label,
        application_tag=tag,
        correlation_id=correlation,
        acknowledge=acknowledge,
        time_to_reach_queue_s=1234,
        time_to_be_received_s=5678,
        journal_on_failure=True,
        journal_on_success=True,
        recoverable=True,
        body_type=0x1011,
    )
    assert struct.unpack_from("<I", packet, 12)[0] == 1234
    assert struct.unpack_from("<I", packet, 48)[0] == 5678
    assert user_flags(packet) >> 5 & 3 == 1
    assert user_flags(packet) >> 8 & 3 == 3
    assert user_flags(packet) >> 10 & 0x1FF == 7, "a direct name, and no queue for answers"
    # Behind the fixed part of the UserHeader stands the direct name: its size and its text.
    name_size = struct.unpack_from("<H", packet, 64)[0]
    at = 64 + 2 + name_size
    at += -at & 3
    wide = f"{label}\0".encode("utf-16-le") if label else b""
    fields = FIRST.unpack_from(packet, at)
    assert fields[0] == acknowledge
    assert fields[1] == len(wide) // 2
    assert fields[2] == 0, "the class of applications' messages"
    assert fields[3] == correlation
    assert fields[4] == 0x1011
    assert fields[5] == tag
    assert fields[6] == fields[7] == len(body)
    assert fields[8] == 0, "not encrypted"
    assert fields[9:11] == (0x8004, 0x6801), "SHA1 and RC4, as is said of what has neither"
    assert fields[11] == len(extension)
    behind = packet[at + FIRST.size :]
    assert behind.startswith(wide + extension + body)


@shows(WRITE, 3)
def test_a_packet_carries_its_place_in_a_transaction_and_its_source() -> None:
    sequence = SequenceId(0x0102, 0x0304)
    packet = encode(
        UserMessage(
            UserHeader(
                SOURCE,
                OTHER,
                sent_time_s=99,
                message_number=7,
                flags=1 << 5,
                destination=PublicName(TRACES),
                admin_queue=PrivateName(OTHER, 5),
                response_queue=DirectName(r"OS:A\q"),
                connector_type=OTHER,
            ),
            MessageProperties.of(b"body"),
            BaseHeader(0, 60),
            TransactionHeader(sequence, 12, 11, flags=0x02 | 0x04 | 0x08),
        )
    )
    assert packet[16:32] == SOURCE
    assert packet[32:48] == OTHER
    assert struct.unpack_from("<II", packet, 52) == (99, 7)
    assert user_flags(packet) >> 10 & 7 == 5
    assert user_flags(packet) >> 13 & 7 == 6
    assert user_flags(packet) >> 16 & 7 == 7
    assert packet[64:80] == TRACES
    assert packet[80:100] == OTHER + struct.pack("<I", 5)
    assert struct.pack("<IIII", 0x0102, 0x0304, 12, 11) in packet
    assert b"\x0e\0\0\0" + struct.pack("<I", 0x0102) in packet, "FA, FM and LM stand before it"


@shows(WRITE, 8, 9, 10, 11, 13)
@pytest.mark.parametrize(
    "request_", [AuthenticationRequest.SIGNATURE_10, AuthenticationRequest.SIGNATURE_20]
)
def test_a_signed_packet_leaves_it_to_its_receiver_to_say_that_it_is_authentic(
    request_: AuthenticationRequest,
) -> None:
    packet = sign(encode(letter()), signer(), request_, SOURCE)
    header = user_message(packet).security
    assert header is not None
    raw = header.write()
    flags, sender, key, signature, certificate_size, provider = struct.unpack_from("<HHHHII", raw)
    assert raw in packet
    assert flags >> 4 & 1 == 0, "AU"
    assert flags >> 8 & 15 == 0, "AS"
    assert flags >> 6 & 1 == 1, "DE: the provider is that of message queuing"
    assert flags >> 5 & 1 == 0, "EB"
    assert flags & 15 == 1, "ST: a SID"
    assert (sender, key, provider) == (len(SID), 0, 0)
    assert signature == 1024 // 8
    assert certificate_size == len(certificate())


@shows(WRITE, 12, 14)
@pytest.mark.parametrize("name", ["", "A", "A provider of ours"])
def test_a_packet_of_an_alternative_provider_says_so(name: str) -> None:
    provider = struct.pack("<I", 77) + f"{name}\0".encode("utf-16-le")
    office = Office()
    plain = user_message(Draft().packet())
    packet = encode(
        UserMessage(
            UserHeader(NIL_GUID, destination=plain.user.destination, connector_type=OTHER),
            plain.properties,
            plain.base,
            security=SecurityHeader(SID, provider_info=provider, flags=1),
        )
    )
    office.ok(api.Send(office.open(ORDERS, AccessMode.SEND), [packet]))
    [entry] = office.ok(api.Receive(office.open())).entries
    header = user_message(entry.packet).security
    assert header is not None
    raw = header.write()
    assert raw in entry.packet
    flags, *_, size = struct.unpack_from("<HHHHII", raw)
    assert size == 2 * (len(name) + 1) + 4
    assert flags >> 6 & 1 == 0, "DE"


@shows(WRITE, 15)
@pytest.mark.parametrize("queue", [None, TRACES])
def test_a_debug_header_says_whether_it_has_a_queue(queue: Guid | None) -> None:
    raw = DebugHeader(queue).write()
    assert struct.unpack_from("<H", raw)[0] & 3 == (0 if queue is None else 1)
    assert raw[4:] == (b"" if queue is None else queue)
    packet = built(trace_queue=TRACES)
    assert base_flags(packet) & (DEBUG | TRACED) == DEBUG | TRACED
    assert packet.endswith(DebugHeader(TRACES).write())
    assert base_flags(built()) & (DEBUG | TRACED) == 0


# Deserialize Message From Buffer.


def received(packet: bytes) -> ReceivedMessage:
    return ReceivedMessage(Entry(77, 1_700_000_000, 2, 3, packet), DEFAULT_FORMATTER)


@shows(READ, 1, 2)
def test_each_attribute_is_read_from_its_field() -> None:
    packet = encode(
        UserMessage(
            UserHeader(
                SOURCE,
                OTHER,
                time_to_be_received_s=5678,
                sent_time_s=99,
                message_number=7,
                flags=1 << 5 | 3 << 8,
                destination=PublicName(TRACES),
                admin_queue=PrivateName(OTHER, 5),
                response_queue=DirectName(r"OS:A\PRIVATE$\q"),
                connector_type=OTHER,
            ),
            MessageProperties.of(
                b"what it says",
                label="a label",
                extension=b"beside it",
                correlation_id=bytes(range(20)),
                body_type=0x1011,
                application_tag=42,
                acknowledge=0xE,
                message_class=0x8002,
            ),
            BaseHeader(6 | TRACED, 1234),
            TransactionHeader(SequenceId(1, 2), 12, 11, flags=0x02 | 0x04 | 0x08),
            SecurityHeader(SID, sender_certificate=certificate(), flags=1),
            DebugHeader(TRACES),
        )
    )
    found = received(packet)
    assert found.priority == 6
    assert found.traced
    assert found.time_to_reach_queue_s == 1234
    assert found.body_type == 0x1011
    assert found.application_tag == 42
    assert found.correlation_id == bytes(range(20))
    assert found.acknowledge == 0xE
    assert (found.message_class, found.message_class_name) == (0x8002, "NACK_REACH_QUEUE_TIMEOUT")
    assert (found.label, found.extension) == ("a label", b"beside it")
    assert found.body_bytes == b"what it says"
    assert (found.privacy, found.encrypted) == (0, False)
    assert (found.sender_id, found.sender_certificate) == (SID, certificate())
    assert found.transactional
    assert found.first_in_transaction
    assert found.last_in_transaction
    assert found.sent_time.timestamp() == 99
    assert found.time_to_be_received_s == 5678
    assert found.id == MessageId(SOURCE, 7)
    assert found.source_qm == SOURCE
    assert str(found.destination) == f"PUBLIC={TRACES}"
    assert found.admin_queue == PrivateFormatName(OTHER, 5)
    assert str(found.response_queue) == r"DIRECT=OS:A\PRIVATE$\q"
    assert found.recoverable
    assert found.journal_on_failure
    assert found.journal_on_success
    assert found.connector_type == OTHER


@shows(READ, 3)
def test_what_a_packet_does_not_have_its_message_does_not_say() -> None:
    found = received(built())
    assert not found.transactional
    assert not found.first_in_transaction
    assert not found.last_in_transaction
    assert found.transaction_id is None
    assert (found.sender_id, found.sender_certificate) == (b"", b"")
    assert not found.authenticated
    assert not found.traced
    assert found.admin_queue is None
    assert found.response_queue is None
    assert found.connector_type is None


@shows(READ, 4)
@pytest.mark.parametrize(
    ("kind", "level"),
    [
        (0x0, AuthenticationLevel.NONE),
        (0x1, AuthenticationLevel.SIGNATURE_10),
        (0x3, AuthenticationLevel.SIGNATURE_20),
        (0x5, AuthenticationLevel.SIGNATURE_30),
    ],
)
def test_the_kind_of_a_signature_is_read_from_four_bits(
    kind: int, level: AuthenticationLevel
) -> None:
    """They are called AS where the packet is described; AU beside them has one bit only."""
    plain = user_message(built())
    flags = 1 | kind << 8 | (1 << 4 if kind else 0)
    packet = UserMessage(
        plain.user, plain.properties, plain.base, security=SecurityHeader(SID, flags=flags)
    )
    found = received(encode(packet))
    assert found.authentication is level
    assert found.authenticated is (kind != 0)
