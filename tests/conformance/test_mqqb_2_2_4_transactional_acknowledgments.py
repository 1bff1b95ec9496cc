"""OrderAck and FinalAck packets, byte by byte. [MQQB 2.2.4, 2.2.5]"""

from __future__ import annotations

import ipaddress
import re
import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from openmsmq.model.identity import Guid, MessageId, SequenceId
from openmsmq.wire.bodies.acknowledgments import FinalAck, OrderAck
from openmsmq.wire.bodies.order_packets import acknowledgment_in, order_packet
from openmsmq.wire.errors import EncodeError
from openmsmq.wire.packets import UserMessage, encode
from tests.conformance import ours, peer
from tests.conformance.ours import decode_user_message

LABEL = peer.text("QM Ordering Ack")
NAMES = {3: struct.pack("<I", 4), 7: peer.direct_name("TCP:10.0.0.1\\PRIVATE$\\order_queue$")}
RECIPIENTS: dict[int, Guid | str] = {3: ours.TARGET, 7: "10.0.0.1"}
MANAGERS = {3: peer.TARGET, 7: bytes(16)}
LIFETIME = 0x54600
NEGATIVE_CLASSES = (
    0x8009, 0x8000, 0x8004, 0x8007, 0x800B, 0x8006, 0x8003, 0xC000, 0xC001, 0xC002,
)  # fmt: skip


def order_ack(to: Guid | str, ack: OrderAck | None = None) -> UserMessage:
    return order_packet(
        ack or OrderAck.up_to(ours.SEQUENCE, 8),
        source=ours.SOURCE,
        to=to,
        message_number=77,
        sent_time_s=0x60000000,
        time_to_reach_queue_s=LIFETIME,
    )


def final_ack(to: Guid | str, message_class: int = 0x4000) -> UserMessage:
    return order_packet(
        FinalAck(ours.SEQUENCE, 8, 6, MessageId(ours.TARGET, 12)),
        message_class,
        source=ours.SOURCE,
        to=to,
        message_number=77,
        sent_time_s=0x60000000,
        time_to_reach_queue_s=LIFETIME,
    )


ORDER_BODY = struct.pack("<IIII20x", 1, 0x5F000000, 8, 7)
FINAL_BODY = struct.pack("<IIII16sI", 1, 0x5F000000, 8, 6, peer.TARGET, 12)


def expected(form: int, delivery: int, message_class: int, body: bytes) -> bytes:
    """The packet as the specification draws it."""
    flags = peer.PROPERTIES | form << peer.DQ | delivery << 5
    user = peer.user_header(flags, NAMES[form], manager=MANAGERS[form])
    properties = peer.properties_header(
        body, LABEL, message_class=message_class, algorithms=(0, 0, 0)
    )
    size = 16 + len(user) + len(properties)
    return peer.base_header(size, 0, lifetime=LIFETIME) + user + properties


both_forms = pytest.mark.parametrize("form", [3, 7], ids=["private", "direct"])


def both(number: int, other: int) -> pytest.MarkDecorator:
    """The two packets, each with the statement about it."""
    return pytest.mark.parametrize(
        "make",
        [
            pytest.param(
                order_ack, marks=pytest.mark.spec(f"MQQB-2.2.4-{number:02}"), id="OrderAck"
            ),
            pytest.param(
                final_ack, marks=pytest.mark.spec(f"MQQB-2.2.5-{other:02}"), id="FinalAck"
            ),
        ],
    )


@both_forms
def test_an_order_ack_is_exactly_these_bytes(form: int) -> None:
    assert encode(order_ack(RECIPIENTS[form])) == expected(form, 0, 0x00FF, ORDER_BODY)


@both_forms
def test_a_final_ack_is_exactly_these_bytes(form: int) -> None:
    assert encode(final_ack(RECIPIENTS[form])) == expected(form, 1, 0x4000, FINAL_BODY)


@both(1, 1)
@both_forms
def test_the_base_flags_are_all_clear(make: Callable[..., UserMessage], form: int) -> None:
    assert encode(make(RECIPIENTS[form]))[2:4] == b"\0\0"


def user_flags(packet: UserMessage) -> int:
    return int(struct.unpack_from("<I", encode(packet), 60)[0])


@both(2, 2)
@both_forms
def test_a_message_properties_header_is_announced(
    make: Callable[..., UserMessage], form: int
) -> None:
    assert user_flags(make(RECIPIENTS[form])) >> 21 & 1 == 1


@pytest.mark.spec("MQQB-2.2.4-03")
@both_forms
def test_an_order_ack_has_no_other_flag_than_the_form_of_its_destination(form: int) -> None:
    assert user_flags(order_ack(RECIPIENTS[form])) & ~peer.PROPERTIES == form << 10


@pytest.mark.spec("MQQB-2.2.5-03", "MQQB-2.2.5-04")
@both_forms
def test_a_final_ack_is_recoverable_and_has_no_other_flag_than_its_form(form: int) -> None:
    assert user_flags(final_ack(RECIPIENTS[form])) & ~peer.PROPERTIES == form << 10 | 1 << 5


@both(4, 5)
def test_the_private_destination_is_queue_4(make: Callable[..., UserMessage]) -> None:
    data = encode(make(ours.TARGET))
    assert data[32:48] == peer.TARGET
    assert data[64:68] == b"\4\0\0\0"
    assert data[68] == 0
    assert data[69] == len(LABEL) // 2


def direct_text(packet: UserMessage) -> str:
    data = encode(packet)
    (count,) = struct.unpack_from("<H", data, 64)
    raw = data[66 : 66 + count]
    assert raw[-2:] == b"\0\0"
    return raw[:-2].decode("utf-16-le")


@both(5, 6)
@given(st.ip_addresses())
def test_the_direct_destination_is_the_order_queue_at_an_address(
    make: Callable[..., UserMessage], address: Any
) -> None:
    text = direct_text(make(str(address)))
    assert re.fullmatch(r"TCP:[0-9A-Fa-f:.]+\\PRIVATE\$\\order_queue\$", text)


@both(6, 7)
@given(st.ip_addresses())
def test_the_address_is_that_of_the_queue_manager_the_packet_goes_to(
    make: Callable[..., UserMessage], address: Any
) -> None:
    packet = make(str(address))
    written = direct_text(packet).removeprefix("TCP:").partition("\\")[0]
    assert ipaddress.ip_address(written) == address
    assert encode(packet)[32:48] == bytes(16)


def properties_of(packet: UserMessage) -> bytes:
    """The MessagePropertiesHeader: it comes right behind the destination."""
    data = encode(packet)
    form = struct.unpack_from("<I", data, 60)[0] >> 10 & 7
    return data[64 + len(NAMES[form]) :]


@both(7, 8)
@both_forms
def test_the_label_is_qm_ordering_ack(make: Callable[..., UserMessage], form: int) -> None:
    header = properties_of(make(RECIPIENTS[form]))
    assert header[1] == 16
    assert header[56 : 56 + 32] == "QM Ordering Ack\0".encode("utf-16-le")


@both(8, 9)
@both_forms
def test_the_message_size_is_36(make: Callable[..., UserMessage], form: int) -> None:
    header = properties_of(make(RECIPIENTS[form]))
    assert header[32:36] == b"\x24\0\0\0"
    assert len(header) == 56 + 32 + 36


@both(9, 10)
@both_forms
def test_no_acknowledgment_is_asked_for(make: Callable[..., UserMessage], form: int) -> None:
    assert properties_of(make(RECIPIENTS[form]))[0] == 0


@both(11, 13)
@both_forms
def test_the_body_type_is_empty(make: Callable[..., UserMessage], form: int) -> None:
    assert properties_of(make(RECIPIENTS[form]))[24:28] == b"\0\0\0\0"


@pytest.mark.spec("MQQB-2.2.4-10")
@both_forms
def test_the_class_of_an_order_ack_is_ff(form: int) -> None:
    assert properties_of(order_ack(RECIPIENTS[form]))[2:4] == b"\xff\0"


@pytest.mark.spec("MQQB-2.2.5-11")
@both_forms
def test_the_class_of_a_positive_final_ack_is_4000(form: int) -> None:
    packet = final_ack(RECIPIENTS[form], 0x4000)
    assert properties_of(packet)[2:4] == b"\0\x40"


@pytest.mark.parametrize("message_class", NEGATIVE_CLASSES, ids=hex)
def test_a_negative_final_ack_carries_its_class(message_class: int) -> None:
    packet = final_ack(ours.TARGET, message_class)
    assert encode(packet) == expected(3, 1, message_class, FINAL_BODY)
    assert acknowledgment_in(decode_user_message(encode(packet)), ours.TARGET) == FinalAck(
        ours.SEQUENCE, 8, 6, MessageId(ours.TARGET, 12)
    )


@pytest.mark.parametrize("message_class", [0x0000, 0x0001, 0x0002, 0x00FF], ids=hex)
def test_a_class_that_is_no_end_of_a_message_is_no_final_ack(message_class: int) -> None:
    with pytest.raises(EncodeError, match="class"):
        final_ack(ours.TARGET, message_class)
    packet = decode_user_message(expected(3, 1, message_class, FINAL_BODY))
    assert not isinstance(acknowledgment_in(packet, ours.TARGET), FinalAck)


@pytest.mark.parametrize(
    ("message_class", "body"), [(0x00FF, ORDER_BODY), (0x4000, FINAL_BODY)], ids=["order", "final"]
)
def test_more_bytes_set_aside_for_the_body_do_not_hide_an_acknowledgment(
    message_class: int, body: bytes
) -> None:
    packet = decode_user_message(expected(3, 1, message_class, body))
    larger = replace(packet.properties, body=body + b"\xcd" * 12, allocated_size=48)
    received = decode_user_message(encode(replace(packet, properties=larger)))
    found = acknowledgment_in(received, ours.TARGET)
    assert found is not None
    assert found == acknowledgment_in(packet, ours.TARGET)


@pytest.mark.spec("MQQB-2.2.4-12", "MQQB-2.2.4.1-01", "MQQB-2.2.4.1-02", "MQQB-2.2.4.1-03")
@given(st.integers(0, 0xFFFFFFFF), st.integers(0, 0xFFFFFFFF), st.integers(1, 0xFFFFFFFF))
def test_an_order_ack_names_sequence_and_number_and_the_number_before(
    ordinal: int, timestamp: int, number: int
) -> None:
    ack = OrderAck.up_to(SequenceId(ordinal, timestamp), number)
    data = encode(order_ack(ours.TARGET, ack))
    body = struct.pack("<IIII", ordinal, timestamp, number, number - 1) + bytes(20)
    assert data == expected(3, 0, 0x00FF, body)
    assert acknowledgment_in(decode_user_message(data), ours.TARGET) == ack


@pytest.mark.spec("MQQB-2.2.4.1-04")
@given(st.binary(min_size=20, max_size=20))
def test_the_rest_of_an_order_ack_is_zero_when_sent_and_ignored_when_received(
    reserved: bytes,
) -> None:
    assert properties_of(order_ack(ours.TARGET))[-20:] == bytes(20)
    data = expected(3, 0, 0x00FF, ORDER_BODY[:16] + reserved)
    packet = decode_user_message(data)
    found = acknowledgment_in(packet, ours.TARGET)
    assert isinstance(found, OrderAck)
    assert (found.sequence, found.number, found.previous_number) == (ours.SEQUENCE, 8, 7)
    assert found.encode() == ORDER_BODY[:16] + reserved
    assert encode(packet) == data


@pytest.mark.spec("MQQB-2.2.5-14", "MQQB-2.2.5.1-01", "MQQB-2.2.5.1-02", "MQQB-2.2.5.1-03")
@given(st.tuples(*[st.integers(0, 0xFFFFFFFF)] * 5), st.binary(min_size=16, max_size=16).map(Guid))
def test_a_final_ack_names_the_message_its_sequence_and_place(
    numbers: tuple[int, int, int, int, int], source: Guid
) -> None:
    ordinal, timestamp, number, previous, message = numbers
    ack = FinalAck(SequenceId(ordinal, timestamp), number, previous, MessageId(source, message))
    packet = order_packet(
        ack,
        0x4000,
        source=ours.SOURCE,
        to=ours.TARGET,
        message_number=77,
        sent_time_s=0x60000000,
        time_to_reach_queue_s=LIFETIME,
    )
    body = struct.pack("<IIII16sI", ordinal, timestamp, number, previous, source, message)
    assert encode(packet) == expected(3, 1, 0x4000, body)
    assert acknowledgment_in(decode_user_message(encode(packet)), ours.TARGET) == ack
