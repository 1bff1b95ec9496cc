"""What an envelope is: a message of an application, or a receipt. [MQSRM 3.1.5.1.5]

A receipt is what it says and of the class that belongs to that. Whatever says one thing and is of
the class of another is nothing, and nobody acts on it.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from openmsmq.model.message import MessageClass, is_negative
from openmsmq.wire.bodies.acknowledgments import ORDER_LABEL
from openmsmq.wire.srmp.envelope import CommitmentReceipt, Envelope
from openmsmq.wire.srmp.reading import LABEL_PREFIX


class Kind(Enum):
    """The kinds of envelopes, by what tells them."""

    MESSAGE = "message"
    DELIVERY_RECEIPT = "delivery receipt"
    COMMITMENT_RECEIPT = "commitment receipt"
    STREAM_RECEIPT = "stream receipt"
    FINAL_STREAM_RECEIPT = "final stream receipt"


ABOUT_STREAMS: Final = frozenset({Kind.STREAM_RECEIPT, Kind.FINAL_STREAM_RECEIPT})
"""Those that are for the sender of a stream, and for no application."""
_STREAM_ACTION: Final = LABEL_PREFIX + ORDER_LABEL


def kind_of(envelope: Envelope) -> Kind | None:
    """Return what an envelope is; None if it is nothing."""
    message_class = MessageClass.NORMAL if envelope.msmq is None else envelope.msmq.message_class
    end = envelope.commitment_receipt
    if envelope.delivery_receipt is not None:
        is_one = end is None and envelope.stream_receipt is None
        found, is_right = Kind.DELIVERY_RECEIPT, message_class == MessageClass.ACK_REACH_QUEUE
        return found if is_one and is_right else None
    if envelope.stream_receipt is None:
        if end is not None:
            return Kind.COMMITMENT_RECEIPT if _decides(end, message_class) else None
        return Kind.MESSAGE if message_class == MessageClass.NORMAL else None
    if envelope.action != _STREAM_ACTION:
        return None
    if end is not None:
        return Kind.FINAL_STREAM_RECEIPT if _decides(end, message_class) else None
    return Kind.STREAM_RECEIPT if message_class == MessageClass.ORDER_ACK else None


def _decides(end: CommitmentReceipt, message_class: int) -> bool:
    """Whether a class says the same as a decision; every negative one may be meant (S-22)."""
    if end.positive:
        return message_class == MessageClass.ACK_RECEIVE
    return is_negative(message_class)
