"""Envelopes that have come, as ordinary messages. [MQSRM 3.1.5.1.1]

Nothing that is said here is believed yet: times, sources and queues are those of the envelope.
"""

from __future__ import annotations

from openmsmq.model.identity import NIL_GUID, MessageId, SequenceId
from openmsmq.model.limits import INFINITE_S
from openmsmq.wire.bodies.acknowledgments import FinalAck, OrderAck
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.headers import base, transaction, user
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.debug import DebugHeader
from openmsmq.wire.headers.message_properties import (
    NEGATIVE_ARRIVAL,
    NEGATIVE_RECEIVE,
    POSITIVE_ARRIVAL,
    POSITIVE_RECEIVE,
    MessageProperties,
    label_bytes,
)
from openmsmq.wire.headers.multi_queue import AddressList, MultiQueueFormatHeader
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage, encode
from openmsmq.wire.srmp.compound import Compound
from openmsmq.wire.srmp.envelope import Envelope, Msmq, Services
from openmsmq.wire.srmp.reading import LABEL_PREFIX
from openmsmq.wire.srmp.urls import is_url, name_of

_PRIORITY_DEFAULT: int = BaseHeader().flags


def arrived_packet(envelope: Envelope, parts: Compound, arrived_s: int) -> bytes:
    """Return a message as a packet. One that none can carry is a `DecodeError`: its sender's."""
    try:
        return encode(arrived_message(envelope, parts, arrived_s))
    except EncodeError as error:
        raise DecodeError("envelope", 0, f"what no message can be: {error}") from None


def arrived_message(envelope: Envelope, parts: Compound, arrived_s: int) -> UserMessage:
    """Return a message of an application, or a receipt for one."""
    msmq, stream = envelope.msmq, envelope.stream
    sent_s = arrived_s if envelope.sent_s in (None, INFINITE_S) else envelope.sent_s
    assert sent_s is not None
    reach_s = _lifetime(envelope.expires_s if msmq is None else msmq.reach_by_s, sent_s)
    receive_s = INFINITE_S if msmq is None else _lifetime(envelope.expires_s, sent_s)
    source = NIL_GUID if msmq is None else msmq.source
    services = Services() if envelope.services is None else envelope.services
    acknowledge = _acknowledge(services) if is_url(services.send_to) else 0
    return UserMessage(
        UserHeader(
            source if stream is None else stream.source,
            time_to_be_received_s=receive_s,
            sent_time_s=sent_s,
            message_number=envelope.id.number,
            flags=_flags(envelope, services),
            destination=DirectName(envelope.to),
            admin_queue=DirectName(services.send_to) if acknowledge else None,
            response_queue=name_of(envelope.via),
            connector_type=None if msmq is None else msmq.connector_type,
        ),
        _properties(envelope, parts, acknowledge),
        BaseHeader(_base_flags(msmq), time_to_reach_queue_s=reach_s),
        _transaction(envelope),
        # Nobody is named who would hear of it, but its reader sees that it was to be traced.
        debug=DebugHeader() if msmq is not None and msmq.trace else None,
        multi_queue=None if msmq is None else _lists(msmq),
    )


def order_ack_in(envelope: Envelope) -> OrderAck | FinalAck | None:
    """Read which messages of a stream have arrived, or how one of them ended; None if neither."""
    receipt, end = envelope.stream_receipt, envelope.commitment_receipt
    if receipt is None or receipt.last == 0:
        return None
    sequence = SequenceId.from_int(receipt.sequence)
    if end is None:
        return OrderAck.up_to(sequence, receipt.last)
    return FinalAck(
        sequence, receipt.last, receipt.last - 1, MessageId(end.id.source, end.id.number)
    )


def final_class_in(envelope: Envelope) -> int:
    """Return the class of a final receipt, which says how the message ended."""
    assert envelope.msmq is not None, "without a class it is no receipt"
    return envelope.msmq.message_class


def _lifetime(until_s: int, sent_s: int) -> int:
    return INFINITE_S if until_s == INFINITE_S else max(until_s - sent_s, 0)


def _acknowledge(services: Services) -> int:
    wanted = POSITIVE_ARRIVAL if services.delivery else 0
    if services.positive:
        wanted |= POSITIVE_RECEIVE
    if services.negative:
        # Who wants to hear that a message was not received, also does if it never got so far.
        wanted |= NEGATIVE_RECEIVE | NEGATIVE_ARRIVAL
    return wanted


def _flags(envelope: Envelope, services: Services) -> int:
    flags = user.OVER_HTTP
    if services.durable or envelope.stream is not None:
        flags |= user.RECOVERABLE
    if envelope.msmq is not None and envelope.msmq.journal:
        flags |= user.JOURNAL_ON_SUCCESS
    if envelope.msmq is not None and envelope.msmq.dead_letter:
        flags |= user.JOURNAL_ON_FAILURE
    return flags


def _base_flags(msmq: Msmq | None) -> int:
    if msmq is None:
        return _PRIORITY_DEFAULT
    return msmq.priority | (base.TRACE if msmq.trace else 0)


def _properties(envelope: Envelope, parts: Compound, acknowledge: int) -> MessageProperties:
    msmq, label = envelope.msmq, envelope.action.removeprefix(LABEL_PREFIX)
    if not envelope.action.startswith(LABEL_PREFIX):
        label = ""
    if msmq is None:
        return MessageProperties.of(
            parts.body, label, acknowledge=acknowledge, extension=parts.extension
        )
    return MessageProperties(
        body=parts.body,
        label=label_bytes(label),
        message_class=msmq.message_class,
        correlation_id=msmq.correlation,
        body_type=msmq.body_type,
        application_tag=msmq.application_tag,
        body_size=len(parts.body),
        allocated_size=len(parts.body),
        hash_algorithm=msmq.hash_algorithm,
        extension=parts.extension,
        acknowledge=acknowledge,
    )


def _transaction(envelope: Envelope) -> TransactionHeader | None:
    stream, msmq = envelope.stream, envelope.msmq
    if stream is None or msmq is None:
        return None
    flags = transaction.FINAL_ACK if msmq.dead_letter else 0
    flags |= transaction.FIRST if msmq.first else 0
    flags |= transaction.LAST if msmq.last else 0
    previous = max(stream.current - 1, 0) if stream.previous is None else stream.previous
    sequence = SequenceId.from_int(stream.sequence)
    return TransactionHeader(sequence, stream.current, previous, flags, msmq.connector_manager)


def _lists(msmq: Msmq) -> MultiQueueFormatHeader | None:
    destinations, administration, responses = (
        AddressList(tuple(name for text in texts if (name := name_of(text)) is not None))
        for texts in (msmq.destinations, msmq.administration, msmq.responses)
    )
    if not (destinations.elements or administration.elements or responses.elements):
        return None
    return MultiQueueFormatHeader(destinations, administration, responses)
