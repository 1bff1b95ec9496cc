"""Ordinary messages that leave over HTTP, as envelopes. [MQSRM 3.1.7.2.4]

What the queue manager itself sends becomes a receipt: reports by their class, acknowledgments of
streams by the queue that they go to.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from openmsmq.model.identity import Guid, MessageId
from openmsmq.model.limits import INFINITE_S
from openmsmq.model.message import MessageClass, is_negative
from openmsmq.wire.bodies.acknowledgments import BODY_BYTES, FinalAck, OrderAck
from openmsmq.wire.errors import EncodeError
from openmsmq.wire.headers import user
from openmsmq.wire.headers.message_properties import (
    NEGATIVE_RECEIVE,
    POSITIVE_ARRIVAL,
    POSITIVE_RECEIVE,
    MessageProperties,
)
from openmsmq.wire.headers.multi_queue import AddressList
from openmsmq.wire.headers.queue_names import DirectName, PrivateName, PublicName
from openmsmq.wire.packets import UserMessage
from openmsmq.wire.srmp.compound import ENVELOPE_TYPE, Compound, write_compound
from openmsmq.wire.srmp.envelope import (
    CommitmentReceipt,
    DeliveryReceipt,
    Envelope,
    Msmq,
    Services,
    Stream,
    StreamReceipt,
)
from openmsmq.wire.srmp.reading import LABEL_PREFIX
from openmsmq.wire.srmp.urls import names_order_queue, sent_url, text_of, url_of
from openmsmq.wire.srmp.writing import write_envelope

SOAP_ACTION: Final = '"MSMQMessage"'
_HEADERS: Final = (("SOAPAction", SOAP_ACTION), ("Proxy-Accept", "NonInteractiveClient"))
_BOUNDARIES: Final = 100_000


class Departing(NamedTuple):
    """A message as a request: where it goes, and what it says."""

    url: str
    headers: tuple[tuple[str, str], ...]
    content: bytes


def departing(message: UserMessage, receipts_to: str) -> Departing:
    """Return the request that brings a message to its queue.

    `receipts_to` is the URL for receipts of its stream, if it is the first of one.
    """
    envelope = envelope_of(message, receipts_to)
    return request_of(message, envelope, write_envelope(envelope))


def request_of(message: UserMessage, envelope: Envelope, text: bytes) -> Departing:
    """Return the request with an envelope that is written."""
    url = sent_url(envelope.to)
    if envelope.is_receipt:
        return Departing(url, _headers(ENVELOPE_TYPE), text)
    properties = message.properties
    parts = Compound(text, _body(properties), properties.extension)
    return put_together(parts, url, message.user.source)


def put_together(parts: Compound, url: str, source: Guid) -> Departing:
    """Return the request with the parts of a message."""
    # All messages of a queue manager have one boundary, if none of them has it in it: so all their
    # requests have the same headers.
    number = int.from_bytes(source[:4], "little") % _BOUNDARIES
    kind, content = write_compound(parts, source, number)
    return Departing(url, _headers(kind), content)


@lru_cache(maxsize=64)
def _headers(kind: str) -> tuple[tuple[str, str], ...]:
    return ("Content-Type", kind), *_HEADERS


def envelope_of(message: UserMessage, receipts_to: str) -> Envelope:
    """Return the envelope of a message; one that goes nowhere by HTTP has an empty queue."""
    header, properties = message.user, message.properties
    to = url_of(header.destination)
    sent_s = header.sent_time_s
    envelope = Envelope(
        to=to,
        expires_s=_moment(sent_s, header.time_to_be_received_s),
        sent_s=sent_s,
        action=LABEL_PREFIX + properties.label_text,
        id=MessageId(header.source, header.message_number),
        via=text_of(header.response_queue, header.source),
        msmq=_msmq(message),
    )
    if names_order_queue(to):
        return _stream_receipt(envelope, message)
    told_of = MessageId.from_bytes(properties.correlation_id)
    kind = properties.message_class
    services = Services(durable=True) if header.recoverable else None
    if kind == MessageClass.ACK_REACH_QUEUE:
        receipt = DeliveryReceipt(sent_s, told_of)
        return msgspec.structs.replace(envelope, services=services, delivery_receipt=receipt)
    if kind == MessageClass.ACK_RECEIVE or is_negative(kind):
        decision = CommitmentReceipt(sent_s, not is_negative(kind), told_of)
        return msgspec.structs.replace(envelope, services=services, commitment_receipt=decision)
    return msgspec.structs.replace(
        envelope, services=_services(message), stream=_stream(message, receipts_to)
    )


def _moment(sent_s: int, within_s: int) -> int:
    return INFINITE_S if within_s == INFINITE_S else min(sent_s + within_s, INFINITE_S)


def _body(properties: MessageProperties) -> bytes:
    """Return the body; more may be set aside for it than it has."""
    return properties.body[: properties.body_size]


def _stream_receipt(envelope: Envelope, message: UserMessage) -> Envelope:
    """Say how far a stream has come, or how a message of it ended."""
    body, source = _body(message.properties), message.user.destination_manager
    if len(body) != BODY_BYTES:
        raise EncodeError("envelope", "something else than a receipt for a queue of receipts")
    kind = message.properties.message_class
    if kind == MessageClass.ORDER_ACK:
        ack = OrderAck.decode(body)
        receipt = StreamReceipt(source, int(ack.sequence), ack.number)
        return msgspec.structs.replace(envelope, stream_receipt=receipt)
    final = FinalAck.decode(body)
    return msgspec.structs.replace(
        envelope,
        services=Services(durable=True),
        stream_receipt=StreamReceipt(source, int(final.sequence), final.number),
        commitment_receipt=CommitmentReceipt(
            message.user.sent_time_s, not is_negative(kind), final.message
        ),
    )


def _services(message: UserMessage) -> Services | None:
    header, wanted = message.user, message.properties.acknowledge
    send_to = url_of(header.admin_queue)
    if not send_to:
        wanted = 0
    commitment = bool(wanted & (POSITIVE_RECEIVE | NEGATIVE_RECEIVE))
    # Whatever its flags say, a message of a stream is durable.
    durable = header.recoverable or message.transaction is not None
    if not (durable or commitment or wanted & POSITIVE_ARRIVAL):
        return None
    return Services(
        durable=durable,
        delivery=bool(wanted & POSITIVE_ARRIVAL),
        commitment=commitment,
        positive=bool(wanted & POSITIVE_RECEIVE),
        negative=bool(wanted & NEGATIVE_RECEIVE),
        send_to=send_to,
    )


def _stream(message: UserMessage, receipts_to: str) -> Stream | None:
    header = message.transaction
    if header is None:
        return None
    return Stream(
        source=message.user.source,
        sequence=int(header.sequence),
        current=header.number,
        previous=header.previous_number,
        receipts_to=receipts_to,
    )


def _msmq(message: UserMessage) -> Msmq:
    header, properties, place = message.user, message.properties, message.transaction
    lists = message.multi_queue
    return Msmq(
        message_class=properties.message_class,
        priority=message.base.priority,
        body_type=properties.body_type,
        source=header.source,
        reach_by_s=_moment(header.sent_time_s, message.base.time_to_reach_queue_s),
        journal=bool(header.flags & user.JOURNAL_ON_SUCCESS),
        dead_letter=bool(header.flags & user.JOURNAL_ON_FAILURE),
        correlation=properties.correlation_id,
        trace=message.base.traced,
        connector_type=header.connector_type,
        application_tag=properties.application_tag,
        hash_algorithm=properties.hash_algorithm,
        first=place is not None and place.first_in_transaction,
        last=place is not None and place.last_in_transaction,
        connector_manager=None if place is None else place.connector_manager,
        destinations=() if lists is None else _names(lists.destinations, message),
        administration=() if lists is None else _names(lists.administration, message),
        responses=() if lists is None else _names(lists.responses, message),
    )


def _names(listed: AddressList, message: UserMessage) -> tuple[str, ...]:
    """Return the names of a list that envelopes can have: one with white space would be two."""
    texts = [
        text_of(element, message.user.source)
        for element in listed.elements
        if isinstance(element, DirectName | PublicName | PrivateName)
    ]
    return tuple(text for text in texts if text and not any(map(str.isspace, text)))
