"""Envelopes read: every element that is known, once, and in its namespace. [MQSRM 3.1.5.1.1]

Names are compared without regard to case (S-3). What is not known is passed over, unless the
header says that it must be understood: then the message is refused (S-15).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Final
from xml.etree.ElementTree import Element

from openmsmq.model.identity import Guid, MessageId
from openmsmq.model.limits import (
    FORMAT_NAME_MAX_CHARACTERS,
    FORMAT_NAME_MAX_COUNT,
    IDENTIFIER_BYTES,
    LABEL_MAX_CHARACTERS,
    PRIORITY_MAX_LEVEL,
)
from openmsmq.model.message import NO_CORRELATION
from openmsmq.model.names.parts import excess_position
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.srmp.dates import read_date
from openmsmq.wire.srmp.envelope import (
    NO_ID,
    CommitmentReceipt,
    DeliveryReceipt,
    Envelope,
    Msmq,
    Provider,
    Services,
    Stream,
    StreamReceipt,
)
from openmsmq.wire.srmp.xml_tree import SEPARATOR, read_tree, text_in

SOAP: Final = "http://schemas.xmlsoap.org/soap/envelope/"
ROUTING: Final = "http://schemas.xmlsoap.org/rp/"
SRMP: Final = "http://schemas.xmlsoap.org/srmp/"
MSMQ: Final = "msmq.namespace.xml"
LABEL_PREFIX: Final = "MSMQ:"

_KNOWN: Final = {
    f"{namespace}{SEPARATOR}{name}": name
    for namespace, names in (
        (ROUTING, ("path",)),
        (
            SRMP,
            (
                "properties",
                "services",
                "stream",
                "deliveryreceipt",
                "commitmentreceipt",
                "streamreceipt",
            ),
        ),
        (MSMQ, ("msmq",)),
    )
    for name in names
}
"""The children of the header that are understood, in lower case, by what the parser calls them."""
_ENVELOPE: Final = f"{SOAP}{SEPARATOR}Envelope"
_HEADER: Final = f"{SOAP}{SEPARATOR}Header"
_BODY: Final = f"{SOAP}{SEPARATOR}Body"
_VIA: Final = f"{ROUTING}{SEPARATOR}via"
_DIGITS_MAX_COUNT: Final = 20
_MUST: Final = f"{SOAP}{SEPARATOR}mustUnderstand"
_NO_CORRELATION_TEXT: Final = base64.b64encode(NO_CORRELATION).decode()
_U16: Final = 0xFFFF
_U32: Final = 0xFFFF_FFFF
_U64: Final = 0xFFFF_FFFF_FFFF_FFFF


def _refused(where: str, problem: str) -> DecodeError:
    return DecodeError(where, 0, problem)


def _name(tag: str) -> str:
    """Return the name of an element without its namespace."""
    return tag.rpartition(SEPARATOR)[2]


class _Children:
    """The children of an element that are in a namespace, found by names in lower case."""

    def __init__(self, element: Element, namespace: str) -> None:
        self._where = element.tag
        self._found: dict[str, Element] = {}
        before = namespace + SEPARATOR
        for child in element:
            tag: str = child.tag
            if not tag.startswith(before):
                continue
            name = tag[len(before) :].lower()
            if name in self._found:
                if SEPARATOR in name:
                    # It is the namespace that goes on: another one, which nobody knows.
                    continue
                raise _refused(_name(element.tag), f"two elements {_name(tag)[:40]}")
            self._found[name] = child

    def find(self, name: str) -> Element | None:
        """Return the child with a name, if it is there."""
        return self._found.get(name)

    def each(self) -> Iterable[tuple[str, Element]]:
        """Return all of them with their names, in their order."""
        return self._found.items()

    def has(self, name: str) -> bool:
        """Whether there is a child with a name."""
        return name in self._found

    def need(self, name: str) -> Element:
        """Return the child with a name, which must be there."""
        found = self._found.get(name)
        if found is None:
            raise _refused(_name(self._where), f"no element {name}")
        return found

    def text(self, name: str) -> str:
        """Return the text of a child, which must be there, without white space around it."""
        return text_in(self.need(name)).strip()

    def text_or(self, name: str, default: str = "") -> str:
        """Return the text of a child, if it is there."""
        found = self._found.get(name)
        return default if found is None else text_in(found).strip()

    def number(self, name: str, limit: int, default: int | None = None) -> int:
        """Return the number in a child, up to a limit; without a default it must be there."""
        if default is not None and name not in self._found:
            return default
        return _number(self.text(name), limit, name)

    def date(self, name: str) -> int:
        """Return the moment in a child, which must be there."""
        return read_date(self.text(name), name)

    def guid(self, name: str) -> Guid | None:
        """Return the identifier in a child, if it is there."""
        return _guid(self.text(name), name) if name in self._found else None

    def names(self, name: str) -> tuple[str, ...]:
        """Return the names of queues in a child: there are so many as a list may have."""
        if name not in self._found:
            return ()
        found = self.text(name).split()
        if len(found) > FORMAT_NAME_MAX_COUNT:
            raise _refused(name, f"{len(found)} names; at most {FORMAT_NAME_MAX_COUNT}")
        return tuple([_queue(text, name) for text in found])


def read_envelope(data: bytes) -> Envelope:
    """Read an envelope."""
    root = read_tree(data)
    if root.tag != _ENVELOPE:
        raise _refused("envelope", f"an element {_name(root.tag)[:40]}, not a SOAP envelope")
    if len(root) < 2 or root[0].tag != _HEADER or root[1].tag != _BODY:
        raise _refused("envelope", "not a header with a body behind it")
    found = _understood(root[0])
    msmq = found.get("msmq")
    path = found.get("path")
    properties = found.get("properties")
    if path is None or properties is None:
        raise _refused("Header", f"no element {'path' if path is None else 'properties'}")
    routing, times = _Children(path, ROUTING), _Children(properties, SRMP)
    # Without this part the identity says nothing. [MQSRM 2.2.4.3]
    routing.need("id")
    stream = found.get("stream")
    if stream is not None and msmq is None:
        raise _refused("stream", "no element Msmq, and nobody knows whose it is")
    rest = None if msmq is None else _msmq(msmq)
    return Envelope(
        to=_queue(routing.text("to"), "to"),
        expires_s=times.date("expiresat"),
        sent_s=times.date("sentat") if times.has("sentat") else None,
        action=_action(text_in(routing.need("action"))),
        id=NO_ID if rest is None else _own_id(routing.text("id"), rest.source),
        via=_via(routing.find("rev")),
        services=_services(found.get("services")),
        stream=None if stream is None else _stream(stream),
        delivery_receipt=_delivery_receipt(found.get("deliveryreceipt")),
        commitment_receipt=_commitment_receipt(found.get("commitmentreceipt")),
        stream_receipt=_stream_receipt(found.get("streamreceipt")),
        msmq=rest,
    )


def _understood(header: Element) -> dict[str, Element]:
    """Return the children of the header that are understood; refuse what must be and is not."""
    found: dict[str, Element] = {}
    for child in header:
        name = _KNOWN.get(child.tag)
        if name is None:
            namespace, separator, written = child.tag.rpartition(SEPARATOR)
            name = _KNOWN.get(f"{namespace}{separator}{written.lower()}")
        if name is not None:
            if name in found:
                raise _refused("Header", f"two elements {_name(child.tag)}")
            found[name] = child
        elif (child.get(_MUST) or "0").strip() in ("1", "true"):
            raise _refused("Header", f"{_name(child.tag)[:40]} must be understood, and is not")
    return found


def _number(text: str, limit: int, where: str) -> int:
    if len(text) <= _DIGITS_MAX_COUNT and text.isascii() and text.isdecimal():
        found = int(text)
        if found <= limit:
            return found
    raise _refused(where, f"{text[:30]!r} is no number from 0 to {limit}")


def _guid(text: str, where: str) -> Guid:
    try:
        return Guid.parse(text)
    except ValueError:
        raise _refused(where, f"{text[:60]!r} is no GUID") from None


def _queue(text: str, where: str) -> str:
    if excess_position(text, FORMAT_NAME_MAX_CHARACTERS) is not None:
        raise _refused(where, f"a name of {len(text)} characters")
    return text


def _action(text: str) -> str:
    """Return what is said of a message; only behind the prefix it is a label."""
    label = text.removeprefix(LABEL_PREFIX)
    if len(label) < len(text) and excess_position(label, LABEL_MAX_CHARACTERS) is not None:
        raise _refused("action", f"a label of {len(label)} characters; at most 249")
    return text


def _message_id(text: str, where: str) -> MessageId:
    number, at, source = text.removeprefix("uuid:").partition("@")
    if not at or not text.startswith("uuid:"):
        raise _refused(where, f"{text[:80]!r} is no identifier: uuid:number@guid is one")
    return MessageId(_guid(source, where), _number(number, _U32, where))


def _own_id(text: str, source: Guid) -> MessageId:
    """Return the identity of a message; whose it is, the other place says (note 7)."""
    found = _message_id(text, "id")
    return found if found == NO_ID else MessageId(source, found.number)


def _via(rev: Element | None) -> str:
    if rev is None:
        return ""
    vias = [child for child in rev if _name(child.tag) == "via"]
    if len(vias) != 1 or vias[0].tag != _VIA:
        raise _refused("rev", f"{len(vias)} elements via, not one")
    return _queue(text_in(vias[0]).strip(), "via")


def _services(element: Element | None) -> Services | None:
    if element is None:
        return None
    found = _Children(element, SRMP)
    # Where two places are named, the last one counts for all receipts (S-17).
    send_to = [
        _queue(_Children(child, SRMP).text("sendto"), "sendTo")
        for name, child in found.each()
        if name in ("deliveryreceiptrequest", "commitmentreceiptrequest")
    ]
    asked = found.find("commitmentreceiptrequest")
    wanted = None if asked is None else _Children(asked, SRMP)
    return Services(
        durable=found.has("durable"),
        delivery=found.has("deliveryreceiptrequest"),
        commitment=asked is not None,
        positive=wanted is not None and wanted.has("positiveonly"),
        negative=wanted is not None and wanted.has("negativeonly"),
        send_to=send_to[-1] if send_to else "",
    )


def _stream_id(text: str) -> tuple[Guid, int]:
    source, backslash, sequence = text.removeprefix("uid:").partition("\\")
    if not backslash or not text.startswith("uid:"):
        raise _refused("streamId", f"{text[:80]!r}: uid:guid\\number is one")
    return _guid(source, "streamId"), _number(sequence, _U64, "streamId")


def _stream(element: Element) -> Stream:
    found = _Children(element, SRMP)
    source, sequence = _stream_id(found.text("streamid"))
    start = found.find("start")
    receipts_to = ""
    if start is not None:
        receipts_to = _queue(_Children(start, SRMP).text("sendreceiptsto"), "sendReceiptsTo")
    return Stream(
        source=source,
        sequence=sequence,
        current=found.number("current", _U32),
        previous=found.number("previous", _U32) if found.has("previous") else None,
        receipts_to=receipts_to,
    )


def _delivery_receipt(element: Element | None) -> DeliveryReceipt | None:
    if element is None:
        return None
    found = _Children(element, SRMP)
    return DeliveryReceipt(found.date("receivedat"), _message_id(found.text("id"), "id"))


def _commitment_receipt(element: Element | None) -> CommitmentReceipt | None:
    if element is None:
        return None
    found = _Children(element, SRMP)
    decision = found.text("decision")
    if decision not in ("positive", "negative"):
        raise _refused("decision", f"{decision[:30]!r}, neither positive nor negative")
    id = _message_id(found.text("id"), "id")
    return CommitmentReceipt(found.date("decidedat"), decision == "positive", id)


def _stream_receipt(element: Element | None) -> StreamReceipt | None:
    if element is None:
        return None
    found = _Children(element, SRMP)
    source, sequence = _stream_id(found.text("streamid"))
    return StreamReceipt(source, sequence, found.number("lastordinal", _U32))


def _msmq(element: Element) -> Msmq:
    found = _Children(element, MSMQ)
    eod, provider = found.find("eod"), found.find("provider")
    ends = None if eod is None else _Children(eod, MSMQ)
    source = found.guid("sourceqmguid")
    if source is None:
        raise _refused("Msmq", "no element SourceQmGuid")
    return Msmq(
        message_class=found.number("class", _U16),
        priority=found.number("priority", PRIORITY_MAX_LEVEL),
        body_type=found.number("bodytype", _U32),
        source=source,
        reach_by_s=found.date("ttrq"),
        journal=found.has("journal"),
        dead_letter=found.has("deadletter"),
        correlation=_correlation(found.find("correlation")),
        trace=found.has("trace"),
        connector_type=found.guid("connectortype"),
        application_tag=found.number("app", _U32, 0),
        hash_algorithm=found.number("hashalgorithm", _U32, 0),
        first=ends is not None and ends.has("first"),
        last=ends is not None and ends.has("last"),
        connector_manager=None if ends is None else ends.guid("connectorid"),
        provider=None if provider is None else _provider(provider),
        destinations=found.names("destinationmqf"),
        administration=found.names("adminmqf"),
        responses=found.names("responsemqf"),
    )


def _provider(element: Element) -> Provider:
    found = _Children(element, MSMQ)
    return Provider(found.number("type", _U32), found.text("name"))


def _correlation(element: Element | None) -> bytes:
    if element is None:
        return NO_CORRELATION
    text = text_in(element).strip()
    if text == _NO_CORRELATION_TEXT:
        return NO_CORRELATION
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _refused("Correlation", "not base64") from None
    if len(found) != IDENTIFIER_BYTES:
        raise _refused("Correlation", f"{len(found)} bytes, not {IDENTIFIER_BYTES}")
    return found
