"""UserMessage Packet: which headers it has. [MQMQ 2.2.20]

The bits that announce them are part of [MQMQ 2.2.19.2].
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.debug import DebugHeader
from openmsmq.wire.headers.multi_queue import MultiQueueFormatHeader
from openmsmq.wire.headers.security import SecurityHeader
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.headers.soap import SoapHeader
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import RECOVERABLE
from openmsmq.wire.packets import Packet, UserMessage, decode, encode
from tests.conformance import ours, peer
from tests.conformance.ours import decode_user_message

PLAIN = replace(ours.PLAIN, user=replace(ours.PLAIN.user, flags=RECOVERABLE))


class Optional(NamedTuple):
    """A header that may be there: as we have it, as bytes, and the bits that announce it."""

    name: str
    value: Any
    raw: bytes
    user_bit: int = 0
    base_bit: int = 0


TRANSACTION = Optional(
    "transaction",
    TransactionHeader(ours.SEQUENCE, 3, 2),
    peer.transaction_header(),
    user_bit=peer.TRANSACTION,
)
SECURITY = Optional(
    "security",
    SecurityHeader(peer.sid(), flags=1),
    peer.security_header(),
    user_bit=peer.SECURITY,
)
DEBUG = Optional("debug", DebugHeader(ours.QUEUE), peer.debug_header(), base_bit=peer.DH)
SOAP = Optional(
    "soap",
    SoapHeader(peer.text("abc"), peer.text("x")),
    peer.soap_header(),
    user_bit=peer.SOAP,
)
MULTI_QUEUE = Optional(
    "multi_queue",
    MultiQueueFormatHeader(),
    peer.multi_queue_header(),
    user_bit=peer.MULTI_QUEUE,
)
SESSION = Optional(
    "session", SessionHeader(7, 5, 0b1011, 9, 6), peer.session_header(), base_bit=peer.SH
)
IN_ORDER = (TRANSACTION, SECURITY, DEBUG, SOAP, MULTI_QUEUE, SESSION)
BEFORE_PROPERTIES = (TRANSACTION, SECURITY)


def as_bytes(there: tuple[Optional, ...], announced: tuple[Optional, ...]) -> bytes:
    """A recoverable message with the first headers there and the second ones announced."""
    user_flags = peer.PLAIN_USER_FLAGS | peer.RECOVERABLE | sum(o.user_bit for o in announced)
    return peer.user_message(
        peer.user_header(user_flags),
        *(option.raw for option in IN_ORDER[:2] if option in there),
        peer.properties_header(),
        *(option.raw for option in IN_ORDER[2:5] if option in there),
        base_flags=3 | sum(option.base_bit for option in announced),
        session=SESSION.raw if SESSION in there else b"",
    )


def as_packet(options: tuple[Optional, ...]) -> UserMessage:
    packet: UserMessage = replace(PLAIN, **{option.name: option.value for option in options})
    return packet


@pytest.mark.parametrize(
    "option",
    [
        pytest.param(
            TRANSACTION,
            marks=pytest.mark.spec("MQMQ-2.2.20-03", "MQMQ-2.2.19.2-19"),
            id="TransactionHeader",
        ),
        pytest.param(
            SECURITY,
            marks=pytest.mark.spec("MQMQ-2.2.20-04", "MQMQ-2.2.19.2-18"),
            id="SecurityHeader",
        ),
        pytest.param(DEBUG, marks=pytest.mark.spec("MQMQ-2.2.20-06"), id="DebugHeader"),
        pytest.param(
            SOAP, marks=pytest.mark.spec("MQMQ-2.2.20-07", "MQMQ-2.2.19.2-27"), id="SoapHeader"
        ),
        pytest.param(
            MULTI_QUEUE,
            marks=pytest.mark.spec("MQMQ-2.2.20-08", "MQMQ-2.2.19.2-23"),
            id="MultiQueueFormatHeader",
        ),
        pytest.param(SESSION, marks=pytest.mark.spec("MQMQ-2.2.20-09"), id="SessionHeader"),
    ],
)
def test_an_optional_header_is_there_exactly_when_it_is_announced(option: Optional) -> None:
    neither, both = as_bytes((), ()), as_bytes((option,), (option,))
    assert encode(as_packet(())) == neither
    assert encode(as_packet((option,))) == both
    assert getattr(decode_user_message(neither), option.name) is None
    assert getattr(decode_user_message(both), option.name) == option.value
    with pytest.raises(DecodeError):
        decode(as_bytes((), (option,)))


@pytest.mark.parametrize("option", [DEBUG, SOAP, MULTI_QUEUE], ids=lambda option: option.name)
def test_bytes_of_a_header_that_is_not_announced_are_no_header(option: Optional) -> None:
    data = as_bytes((option,), ())
    packet = decode_user_message(data)
    assert getattr(packet, option.name) is None
    assert packet.tail == option.raw
    assert encode(packet) == data


@pytest.mark.parametrize("chosen", range(1 << len(IN_ORDER)))
def test_headers_follow_each_other_in_order_whichever_are_there(chosen: int) -> None:
    options = tuple(option for place, option in enumerate(IN_ORDER) if chosen >> place & 1)
    data = as_bytes(options, options)
    assert encode(as_packet(options)) == data
    assert decode(data) == as_packet(options)


@pytest.mark.spec("MQMQ-2.2.20-01", "MQMQ-2.2.20-05")
@pytest.mark.parametrize("packet", ours.USER.values(), ids=ours.USER.keys())
def test_every_user_message_has_base_user_and_message_properties_header(
    packet: UserMessage,
) -> None:
    data = encode(packet)
    base, user = data[:16], data[16:]
    (size,) = struct.unpack_from("<I", base, 8)
    (flags,) = struct.unpack_from("<I", user, 44)
    assert base == peer.base_header(
        size, struct.unpack_from("<H", base, 2)[0], lifetime=packet.base.time_to_reach_queue_s
    )
    assert user[:16] == packet.user.source
    assert flags & peer.PROPERTIES
    assert packet.properties.write() in data


@pytest.mark.spec("MQMQ-2.2.20-01", "MQMQ-2.2.20-05")
@pytest.mark.parametrize("size", range(16, len(encode(ours.PLAIN)), 4))
def test_a_user_message_in_which_one_of_them_is_missing_is_refused(size: int) -> None:
    inside = (peer.user_header() + peer.properties_header())[: size - 16]
    with pytest.raises(DecodeError):
        decode(peer.user_message(inside))


@pytest.mark.spec("MQMQ-2.2.20-02")
@pytest.mark.parametrize("packet", ours.USER.values(), ids=ours.USER.keys())
def test_no_user_message_is_internal(packet: Packet) -> None:
    data = encode(packet)
    assert struct.unpack_from("<H", data, 2)[0] & peer.IN == 0
    with pytest.raises(EncodeError):
        encode(replace(packet, base=BaseHeader(flags=peer.IN)))
    assert isinstance(decode(data), UserMessage)
