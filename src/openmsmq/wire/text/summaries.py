"""What a packet says, in one line."""

from __future__ import annotations

from typing import Final

from openmsmq.model.message import MessageClass, message_class_name
from openmsmq.wire.bodies.acknowledgments import FinalAck, OrderAck
from openmsmq.wire.bodies.notifications import DirectoryNotification, ManagerNotification
from openmsmq.wire.datagrams import DirectoryAnswer, DirectoryQuery, PingPacket
from openmsmq.wire.headers import queue_names
from openmsmq.wire.headers.session import SessionHeader
from openmsmq.wire.packets import (
    ConnectionParameters,
    EstablishConnection,
    Packet,
    SessionAck,
    UserMessage,
)
from openmsmq.wire.text.bodies import known_body, quoted
from openmsmq.wire.text.exchanges import HttpAnswer, HttpRequest
from openmsmq.wire.text.pgm import PgmPacket
from openmsmq.wire.text.posts import Post

_REFUSED: Final = "refused, "


def name(packet: Packet) -> str:
    """Name a packet; a message between queue managers by what it carries."""
    known = known_body(packet) if isinstance(packet, UserMessage) else None
    return type(packet if known is None else known).__name__


def summary(value: object) -> str:
    """Say in one line what a packet, a datagram or a body says; nothing for other values."""
    match value:
        case UserMessage():
            return _user_message(value)
        case SessionAck(session):
            return _session(session)
        case EstablishConnection(establish, internal):
            refused = _REFUSED if internal.refused else ""
            return f"{refused}client {establish.client}, server {establish.server}"
        case ConnectionParameters(parameters, internal):
            return (
                f"{_REFUSED if internal.refused else ''}window {parameters.window}, "
                f"ack after {parameters.ack_timeout_ms} ms, "
                f"recoverable after {parameters.recoverable_ack_timeout_ms} ms"
            )
        case _:
            return _of_datagram_or_body(value)


def _of_datagram_or_body(value: object) -> str:
    match value:
        case PingPacket(source, cookie):
            return f"{_REFUSED if value.refused else ''}cookie {cookie}, from {source}"
        case DirectoryQuery():
            return f"request {value.request_id}, site {value.site}"
        case DirectoryAnswer():
            servers = ",".join(server.name for server in value.servers) or "same site"
            return f"request {value.request_id}, {servers}"
        case Post() | HttpRequest() | HttpAnswer() | PgmPacket():
            return value.summary
        case OrderAck(sequence, number):
            return f"sequence {int(sequence):#x} up to {number}"
        case FinalAck(sequence, number):
            return f"sequence {int(sequence):#x} number {number}, message {value.message}"
        case ManagerNotification(event, object_id):
            return f"{event.name} {object_id}"
        case DirectoryNotification(updates):
            return ", ".join(f"{update.command.name} {update.target}" for update in updates)
        case _:
            return ""


def _session(header: SessionHeader) -> str:
    text = f"received {header.received_count}"
    if header.stored_bits:
        text += f", stored {header.stored_base} + {header.stored_bits:#x}"
    return f"{text}, window {header.window}"


def _user_message(packet: UserMessage) -> str:
    known = known_body(packet)
    properties = packet.properties
    parts = [
        f"to {queue_names.describe(packet.user.destination)}",
        _delivery(packet),
        f"#{packet.user.message_number}",
    ]
    if properties.message_class != MessageClass.NORMAL:
        parts.append(message_class_name(properties.message_class))
    if known is not None:
        parts.append(summary(known))
    else:
        if properties.label_text:
            parts.append(quoted(properties.label_text))
        parts.append(f"body {properties.body_size} bytes")
    if packet.session is not None:
        parts.append(_session(packet.session))
    return ", ".join(parts)


def _delivery(packet: UserMessage) -> str:
    if packet.transaction is not None:
        point = packet.transaction.point
        return f"transactional {int(point.id):#x}/{point.number}"
    return "recoverable" if packet.user.recoverable else "express"
