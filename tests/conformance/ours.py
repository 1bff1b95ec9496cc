"""Packets as we make them, with every field that nobody asked for left as it is by default."""

from __future__ import annotations

from typing import Final

from openmsmq.model.identity import Guid, MessageId, SequenceId
from openmsmq.wire.bodies.acknowledgments import FinalAck, OrderAck
from openmsmq.wire.bodies.order_packets import order_packet
from openmsmq.wire.headers.debug import DebugHeader
from openmsmq.wire.headers.establish import EstablishHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.multi_queue import MultiQueueFormatHeader
from openmsmq.wire.headers.parameters import ParametersHeader
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.security import SecurityHeader
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.headers.soap import SoapHeader
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import RECOVERABLE, UserHeader
from openmsmq.wire.packets import (
    ConnectionParameters,
    EstablishConnection,
    Packet,
    SessionAck,
    UserMessage,
    decode,
)
from tests.conformance import peer

SOURCE: Final = Guid(peer.SOURCE)
TARGET: Final = Guid(peer.TARGET)
QUEUE: Final = Guid(peer.QUEUE)
SEQUENCE: Final = SequenceId(1, 0x5F000000)

SESSION: Final = SessionHeader(7, 5, 0b1011, 9, 6)
PLAIN: Final = UserMessage(
    UserHeader(
        SOURCE, sent_time_s=0x60000000, message_number=77, destination=DirectName("OS:h\\q")
    ),
    MessageProperties.of(b"body"),
)
FULL: Final = UserMessage(
    UserHeader(SOURCE, flags=RECOVERABLE, destination=DirectName("OS:h\\q")),
    MessageProperties.of(b"a body", "a label", extension=b"more"),
    transaction=TransactionHeader(SEQUENCE, 3, 2),
    security=SecurityHeader(peer.sid(), flags=1),
    debug=DebugHeader(QUEUE),
    soap=SoapHeader(peer.text("abc"), peer.text("x")),
    multi_queue=MultiQueueFormatHeader(),
    session=SESSION,
)
ESTABLISH: Final = EstablishConnection(EstablishHeader(SOURCE, TARGET, 1000))
PARAMETERS: Final = ConnectionParameters(ParametersHeader(500, 20000, 64))
SESSION_ACK: Final = SessionAck(SESSION)
ORDER_ACK: Final = order_packet(
    OrderAck.up_to(SEQUENCE, 8),
    source=SOURCE,
    to=TARGET,
    message_number=77,
    sent_time_s=0x60000000,
    time_to_reach_queue_s=0x54600,
)
FINAL_ACK: Final = order_packet(
    FinalAck(SEQUENCE, 8, 6, MessageId(TARGET, 12)),
    0x4000,
    source=SOURCE,
    to=TARGET,
    message_number=77,
    sent_time_s=0x60000000,
    time_to_reach_queue_s=0x54600,
)

INTERNAL: Final[dict[str, Packet]] = {
    "EstablishConnection": ESTABLISH,
    "ConnectionParameters": PARAMETERS,
    "SessionAck": SESSION_ACK,
}
USER: Final[dict[str, UserMessage]] = {
    "UserMessage": PLAIN,
    "UserMessage with all headers": FULL,
    "OrderAck": ORDER_ACK,
    "FinalAck": FINAL_ACK,
}
ALL: Final[dict[str, Packet]] = {**INTERNAL, **USER}


def decode_user_message(data: bytes) -> UserMessage:
    """Decode what must be a user message."""
    packet = decode(data)
    assert isinstance(packet, UserMessage)
    return packet
