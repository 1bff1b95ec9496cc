r"""OrderAck and FinalAck: the messages that close a transactional sequence. [MQQB 2.2.4, 2.2.5]

Both are ordinary user messages to the sender's `private$\order_queue$`, told apart from all others
by destination, label, body size and class, and by nothing else (C-4).
"""

from __future__ import annotations

from typing import Final, TypeAlias

from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.limits import INFINITE_S
from openmsmq.wire.bodies.acknowledgments import (
    BODY_BYTES,
    ORDER_ACK_CLASS,
    ORDER_LABEL,
    ORDER_QUEUE_NUMBER,
    FinalAck,
    OrderAck,
)
from openmsmq.wire.errors import EncodeError
from openmsmq.wire.headers import user
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.message_properties import MessageProperties, label_bytes
from openmsmq.wire.headers.queue_names import DirectName, PrivateOnDestination
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage

ORDER_QUEUE_PATH: Final = r"\PRIVATE$\order_queue$"
FINAL_ACK_CLASS_MIN: Final = 0x4000

ReturnAddress: TypeAlias = Guid | str
"""Where a message came from: its queue manager, or, when it was sent to a direct name, the IP
address it came from."""


def order_packet(
    ack: OrderAck | FinalAck,
    message_class: int = ORDER_ACK_CLASS,
    *,
    source: Guid,
    to: ReturnAddress,
    message_number: int = 0,
    sent_time_s: int = 0,
    time_to_reach_queue_s: int = INFINITE_S,
) -> UserMessage:
    """Carry an acknowledgment to the queue manager that sent the sequence. [MQQB 2.2.4, 2.2.5]

    The class of a FinalAck says what became of the message.
    """
    is_final = isinstance(ack, FinalAck)
    if is_final and message_class < FINAL_ACK_CLASS_MIN:
        raise EncodeError("FinalAck", f"class {message_class:#06x} is no end of a message")
    manager, destination = (
        (NIL_GUID, DirectName(f"TCP:{to}{ORDER_QUEUE_PATH}"))
        if isinstance(to, str)
        else (to, PrivateOnDestination(ORDER_QUEUE_NUMBER))
    )
    return UserMessage(
        UserHeader(
            source,
            manager,
            sent_time_s=sent_time_s,
            message_number=message_number,
            flags=user.RECOVERABLE if is_final else 0,
            destination=destination,
        ),
        MessageProperties(
            body=ack.encode(),
            label=label_bytes(ORDER_LABEL),
            message_class=message_class,
            body_size=BODY_BYTES,
            allocated_size=BODY_BYTES,
        ),
        BaseHeader(flags=0, time_to_reach_queue_s=time_to_reach_queue_s),
    )


def acknowledgment_in(packet: UserMessage, local: Guid) -> OrderAck | FinalAck | None:
    """Read the OrderAck or FinalAck that a packet brings to `local`, or None. [MQQB 3.1.5.1.1]"""
    properties = packet.properties
    # More may be set aside for a body than it has.
    body = properties.body[:BODY_BYTES]
    if (
        not properties.body_size == len(body) == BODY_BYTES
        or properties.label_text != ORDER_LABEL
        or not _is_order_queue(packet.user, local)
    ):
        return None
    if properties.message_class == ORDER_ACK_CLASS:
        return OrderAck.decode(body)
    if properties.message_class >= FINAL_ACK_CLASS_MIN:
        return FinalAck.decode(body)
    return None


def _is_order_queue(header: UserHeader, local: Guid) -> bool:
    match header.destination:
        case PrivateOnDestination(number):
            return number == ORDER_QUEUE_NUMBER and header.destination_manager == local
        case DirectName(text):
            return text.casefold().endswith(ORDER_QUEUE_PATH.casefold())
        case _:
            return False
