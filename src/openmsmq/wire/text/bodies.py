"""What the body of a message says, for the text view: acknowledgments, notifications and text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from openmsmq.model.identity import MessageId
from openmsmq.model.message import NO_CORRELATION, BodyType
from openmsmq.wire.bodies import notifications
from openmsmq.wire.bodies.acknowledgments import FinalAck, OrderAck
from openmsmq.wire.bodies.notifications import ChangeNotification
from openmsmq.wire.bodies.order_packets import acknowledgment_in
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.fields.cursor import Field, hex_field, utf16_text
from openmsmq.wire.headers.queue_names import DirectName, PrivateOnDestination
from openmsmq.wire.packets import Packet, UserMessage

NOTIFICATION_QUEUE_PATH: Final = r"\private$\notify_queue$"
_WIDE: Final = frozenset({BodyType.TEXT, BodyType.WIDE_TEXT})
_MAY_BE_TEXT: Final = frozenset({BodyType.UNSPECIFIED, BodyType.NARROW_TEXT, BodyType.BYTES})


def refine(fields: Iterable[Field], packet: Packet) -> Iterator[Field]:
    """Add to the fields of a packet what follows from several of them together."""
    for field in fields:
        if (
            isinstance(packet, UserMessage)
            and field.name == "MessagePropertiesHeader"
            and isinstance(field.value, list)
        ):
            yield Field(field.name, field.size, [_refined(part, packet) for part in field.value])
        else:
            yield field


def known_body(packet: UserMessage) -> OrderAck | FinalAck | ChangeNotification | None:
    """Read a body that queue managers send each other; None when it is an application's."""
    acknowledgment = acknowledgment_in(packet, packet.user.destination_manager)
    if acknowledgment is not None or not _is_for_notifications(packet):
        return acknowledgment
    try:
        return notifications.decode(packet.properties.body[: packet.properties.body_size])
    except DecodeError:
        return None


def body_text(packet: UserMessage) -> str | None:
    """Read a body that is text by its type, or by the look of it."""
    properties = packet.properties
    if packet.security is not None and packet.security.body_encrypted:
        return None
    body = properties.body[: properties.body_size]
    if properties.body_type in _WIDE:
        return utf16_text(body)
    if properties.body_type not in _MAY_BE_TEXT:
        return None
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    looks_readable = all(letter.isprintable() or letter in "\t\r\n" for letter in text)
    return text if looks_readable else None


def quoted(text: str) -> str:
    """Put text in quotes, with everything that is no letter escaped."""
    return msgspec.json.encode(text).decode()


def _is_for_notifications(packet: UserMessage) -> bool:
    match packet.user.destination:
        case PrivateOnDestination(number):
            return number == notifications.NOTIFY_QUEUE_NUMBER
        case DirectName(text):
            return text.casefold().endswith(NOTIFICATION_QUEUE_PATH)
        case _:
            return False


def _refined(field: Field, packet: UserMessage) -> Field:
    change = _REFINEMENTS.get(field.name)
    return field if change is None else change(field, packet)


def _refined_body(field: Field, packet: UserMessage) -> Field:
    known = known_body(packet)
    if known is not None:
        parts = list(known.fields())
        parts += hex_field("unused", packet.properties.body[sum(part.size for part in parts) :])
        return Field(field.name, field.size, parts, type(known).__name__)
    text = body_text(packet)
    return field if text is None else Field(field.name, field.size, field.value, quoted(text))


def _refined_type(field: Field, packet: UserMessage) -> Field:
    try:
        meaning = BodyType(packet.properties.body_type).name
    except ValueError:
        return field
    return Field(field.name, field.size, field.value, meaning)


def _refined_correlation(field: Field, packet: UserMessage) -> Field:
    correlation_id = packet.properties.correlation_id
    if correlation_id == NO_CORRELATION:
        return field
    meaning = str(MessageId.from_bytes(correlation_id))
    return Field(field.name, field.size, field.value, meaning)


_REFINEMENTS: Final[dict[str, Callable[[Field, UserMessage], Field]]] = {
    "MessageBody": _refined_body,
    "BodyType": _refined_type,
    "CorrelationID": _refined_correlation,
}
