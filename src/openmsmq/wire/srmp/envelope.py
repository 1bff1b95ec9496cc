r"""Envelopes: what a SOAP message of a queue manager says beside its body. [MQSRM 2.2]

The values here are those of the elements, with as little interpretation as possible; `messages`
makes ordinary messages of them. Texts of queues are URLs, or other format names behind `MSMQ:`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from openmsmq.model.identity import NIL_GUID, Guid, MessageId
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import NO_CORRELATION

NO_ID: Final = MessageId(NIL_GUID, 1)
"""What a message without an identity says: it is never taken for another one."""


class Services(msgspec.Struct, frozen=True):
    """What its receiver is to do. [MQSRM 2.2.5.2]"""

    durable: bool = False
    delivery: bool = False
    """Whether a receipt is wanted when it is in its queue."""
    commitment: bool = False
    """Whether receipts about its end are spoken of at all."""
    positive: bool = False
    negative: bool = False
    send_to: str = ""
    """Where all receipts go: the last place that is named (S-17)."""


class Stream(msgspec.Struct, frozen=True):
    """Its place among the messages of a stream. [MQSRM 2.2.5.3]"""

    source: Guid
    sequence: int
    current: int
    previous: int | None = None
    receipts_to: str = ""
    """Where receipts of the stream go; only at its start."""


class DeliveryReceipt(msgspec.Struct, frozen=True):
    """A message is in its queue. [MQSRM 2.2.5.4]"""

    received_s: int
    id: MessageId


class CommitmentReceipt(msgspec.Struct, frozen=True):
    """A message has left its queue. [MQSRM 2.2.5.5]"""

    decided_s: int
    positive: bool
    id: MessageId


class StreamReceipt(msgspec.Struct, frozen=True):
    """All messages of a stream up to a number have arrived. [MQSRM 2.2.5.6]"""

    source: Guid
    sequence: int
    last: int


class Provider(msgspec.Struct, frozen=True):
    """Who has signed. [MQSRM 2.2.6.12]"""

    type: int
    name: str


class Msmq(msgspec.Struct, frozen=True):
    """What only queue managers know of messages. [MQSRM 2.2.6]"""

    message_class: int
    priority: int
    body_type: int
    source: Guid
    reach_by_s: int
    """Until when it may travel; `INFINITE_S` for ever."""
    journal: bool = False
    dead_letter: bool = False
    correlation: bytes = NO_CORRELATION
    trace: bool = False
    connector_type: Guid | None = None
    application_tag: int = 0
    hash_algorithm: int = 0
    first: bool = False
    last: bool = False
    connector_manager: Guid | None = None
    provider: Provider | None = None
    destinations: tuple[str, ...] = ()
    administration: tuple[str, ...] = ()
    responses: tuple[str, ...] = ()


class Envelope(msgspec.Struct, frozen=True):
    """A whole envelope."""

    to: str
    expires_s: int = INFINITE_S
    sent_s: int | None = None
    action: str = ""
    id: MessageId = NO_ID
    via: str = ""
    """The response queue; empty for none."""
    services: Services | None = None
    stream: Stream | None = None
    delivery_receipt: DeliveryReceipt | None = None
    commitment_receipt: CommitmentReceipt | None = None
    stream_receipt: StreamReceipt | None = None
    msmq: Msmq | None = None

    @property
    def is_receipt(self) -> bool:
        """Whether it tells what became of another message."""
        return (
            self.delivery_receipt is not None
            or self.commitment_receipt is not None
            or self.stream_receipt is not None
        )
