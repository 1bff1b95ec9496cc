"""Receipts that a stranger posts for streams of others: he has not been told their word."""

from __future__ import annotations

import random
from typing import Final

from openmsmq.model.identity import NIL_GUID, MessageId
from openmsmq.model.message import MessageClass
from openmsmq.wire.srmp.envelope import (
    CommitmentReceipt,
    Envelope,
    Msmq,
    Stream,
    StreamReceipt,
)
from openmsmq.wire.srmp.writing import write_envelope

PATH: Final = "/msmq/private$/order_queue$"
_QUERIES: Final = ("", "?", "?SenderStream=", f"?SenderStream={'0' * 32}")


def forged(stream: Stream, message: MessageId, rng: random.Random) -> tuple[str, bytes]:
    """Return the target and the body of a receipt that says more than anybody knows."""
    target = PATH + rng.choice(_QUERIES)
    receipt = StreamReceipt(stream.source, stream.sequence, stream.current + rng.randrange(3))
    kind, end = MessageClass.ORDER_ACK, None
    if rng.random() < 0.5:
        receipt = StreamReceipt(stream.source, stream.sequence, stream.current)
        kind = rng.choice((MessageClass.ACK_RECEIVE, MessageClass.NACK_QUEUE_PURGED))
        end = CommitmentReceipt(0, kind is MessageClass.ACK_RECEIVE, message)
    envelope = Envelope(
        to=f"http://anybody{PATH}",
        action="MSMQ:QM Ordering Ack",
        stream_receipt=receipt,
        commitment_receipt=end,
        msmq=Msmq(kind, 3, 0, NIL_GUID, 0),
    )
    return target, write_envelope(envelope)
