"""Envelopes as text: always the same one for the same values. [MQSRM 3.1.7.2.4]

The order of elements is that of the specification, and where its examples differ, theirs: receipts
name the queue of the message before their own identifier.
"""

from __future__ import annotations

import base64
import re
from typing import Final

from openmsmq.model.identity import Guid, MessageId
from openmsmq.wire.errors import EncodeError
from openmsmq.wire.srmp.dates import write_date
from openmsmq.wire.srmp.envelope import Envelope, Msmq, Services, Stream

_MUST: Final = 'se:mustUnderstand="1"'
_HEAD: Final = (
    '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/" '
    'xmlns="http://schemas.xmlsoap.org/srmp/"><se:Header>'
)
_TAIL: Final = "</se:Header><se:Body></se:Body></se:Envelope>"
_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_ILLEGAL: Final = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\ud800-\\udfff\\ufffe\\uffff]")
"""What no text of XML can have, escaped or not."""


def write_envelope(envelope: Envelope) -> bytes:
    """Return an envelope as bytes."""
    parts = [_HEAD, *_path(envelope), *_properties(envelope)]
    if envelope.services is not None:
        parts += _services(envelope.services)
    if envelope.stream is not None:
        parts += _stream(envelope.stream)
    parts += _receipts(envelope)
    if envelope.msmq is not None:
        parts += _msmq(envelope.msmq)
    parts.append(_TAIL)
    return "".join(parts).encode()


def _element(name: str, text: str) -> str:
    return f"<{name}>{_text(text)}</{name}>"


def _text(text: str) -> str:
    """Write what may be written; for the rest there is no way."""
    return _ILLEGAL.sub("\ufffd", text).translate(_ESCAPES)


def _name(text: str) -> str:
    """Write the name of a queue, which must be what it is or nothing."""
    if _ILLEGAL.search(text):
        raise EncodeError("envelope", f"{text[:100]!r} has characters that no XML can carry")
    return text


def _id(id: MessageId) -> str:
    return f"<id>uuid:{id.number}@{id.source}</id>"


def _path(envelope: Envelope) -> list[str]:
    via = _name(envelope.via)
    rev = [f"<rev>{_element('via', via)}</rev>"] if via else []
    own = [_id(envelope.id)]
    return [
        f'<path xmlns="http://schemas.xmlsoap.org/rp/" {_MUST}>',
        _element("action", envelope.action),
        _element("to", _name(envelope.to)),
        *(rev + own if envelope.is_receipt else own + rev),
        "</path>",
    ]


def _properties(envelope: Envelope) -> list[str]:
    parts = [f"<properties {_MUST}>", _element("expiresAt", write_date(envelope.expires_s))]
    if envelope.sent_s is not None:
        parts.append(_element("sentAt", write_date(envelope.sent_s)))
    parts.append("</properties>")
    return parts


def _services(services: Services) -> list[str]:
    parts = [f"<services {_MUST}>"]
    send_to = _element("sendTo", _name(services.send_to))
    if services.durable:
        parts.append("<durable/>")
    if services.delivery:
        parts += ("<deliveryReceiptRequest>", send_to, "</deliveryReceiptRequest>")
    if services.commitment:
        parts += ("<commitmentReceiptRequest>", send_to)
        if services.positive:
            parts.append("<positiveOnly/>")
        if services.negative:
            parts.append("<negativeOnly/>")
        parts.append("</commitmentReceiptRequest>")
    parts.append("</services>")
    return parts


def _stream_id(source: Guid, sequence: int) -> str:
    return f"<streamId>uid:{source}\\{sequence}</streamId>"


def _stream(stream: Stream) -> list[str]:
    parts = [
        f"<stream {_MUST}>",
        _stream_id(stream.source, stream.sequence),
        f"<current>{stream.current}</current>",
    ]
    if stream.previous or (stream.previous == 0 and stream.current > 1):
        # Without it, the one before is meant (S-11).
        parts.append(f"<previous>{stream.previous}</previous>")
    if stream.receipts_to:
        receipts_to = _element("sendReceiptsTo", _name(stream.receipts_to))
        parts.append(f"<start>{receipts_to}</start>")
    parts.append("</stream>")
    return parts


def _receipts(envelope: Envelope) -> list[str]:
    parts: list[str] = []
    stream, delivery = envelope.stream_receipt, envelope.delivery_receipt
    commitment = envelope.commitment_receipt
    if stream is not None:
        parts += (
            "<streamReceipt>",
            _stream_id(stream.source, stream.sequence),
            f"<lastOrdinal>{stream.last}</lastOrdinal>",
            "</streamReceipt>",
        )
    if delivery is not None:
        parts += (
            "<deliveryReceipt>",
            _element("receivedAt", write_date(delivery.received_s)),
            _id(delivery.id),
            "</deliveryReceipt>",
        )
    if commitment is not None:
        parts += (
            "<commitmentReceipt>",
            _element("decidedAt", write_date(commitment.decided_s)),
            _element("decision", "positive" if commitment.positive else "negative"),
            _id(commitment.id),
            "</commitmentReceipt>",
        )
    return parts


def _msmq(msmq: Msmq) -> list[str]:
    parts = [
        '<Msmq xmlns="msmq.namespace.xml">',
        f"<Class>{msmq.message_class}</Class>",
        f"<Priority>{msmq.priority}</Priority>",
    ]
    if msmq.journal:
        parts.append("<Journal/>")
    if msmq.dead_letter:
        parts.append("<DeadLetter/>")
    parts.append(f"<Correlation>{base64.b64encode(msmq.correlation).decode()}</Correlation>")
    if msmq.trace:
        parts.append("<Trace/>")
    if msmq.connector_type is not None:
        parts.append(f"<ConnectorType>{msmq.connector_type}</ConnectorType>")
    parts += (
        f"<App>{msmq.application_tag}</App>",
        f"<BodyType>{msmq.body_type}</BodyType>",
        f"<HashAlgorithm>{msmq.hash_algorithm}</HashAlgorithm>",
    )
    parts += _eod(msmq)
    if msmq.provider is not None:
        name = _element("Name", msmq.provider.name)
        parts.append(f"<Provider><Type>{msmq.provider.type}</Type>{name}</Provider>")
    parts.append(f"<SourceQmGuid>{msmq.source}</SourceQmGuid>")
    for element, names in (
        ("DestinationMqf", msmq.destinations),
        ("AdminMqf", msmq.administration),
        ("ResponseMqf", msmq.responses),
    ):
        if names:
            parts.append(_element(element, "".join(f"{_name(name)}\n" for name in names)))
    parts += (_element("TTrq", write_date(msmq.reach_by_s)), "</Msmq>")
    return parts


def _eod(msmq: Msmq) -> list[str]:
    if not (msmq.first or msmq.last or msmq.connector_manager is not None):
        return []
    parts = ["<Eod>"]
    if msmq.first:
        parts.append("<First/>")
    if msmq.last:
        parts.append("<Last/>")
    if msmq.connector_manager is not None:
        parts.append(f"<ConnectorId>{msmq.connector_manager}</ConnectorId>")
    parts.append("</Eod>")
    return parts
