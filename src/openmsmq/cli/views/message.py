"""A message as the command line shows it: an object for programs, facts or a row for people."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Final

from openmsmq.cli.views.output import JsonObject, print_facts, print_json, size_text
from openmsmq.model.identity import MessageId
from openmsmq.model.message import (
    NO_CORRELATION,
    BodyType,
    MessageClass,
    is_negative,
    message_class_name,
)
from openmsmq.model.names import IllegalName
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.headers.security import sid_text
from openmsmq.wire.text.bodies import body_text

if TYPE_CHECKING:
    from datetime import datetime

    from openmsmq.client.messages.received import ReceivedMessage

PREVIEW_CHARACTERS: Final = 40
BODY_CHARACTERS: Final = 400
"""What is shown of a body that stays in its queue, in as many lines as below."""
BODY_LINES_COUNT: Final = 10

COLUMNS: Final = (
    ">Lookup id",
    "Message id",
    ">Priority",
    "Arrived",
    ">Size",
    "Class",
    "Label",
    "Body",
)

MESSAGE_KEYS: Final = {
    "message_id": "The identifier: which queue manager sent it, and its number there.",
    "lookup_id": "Its place in the queue, for `--lookup-id`.",
    "arrived_time": "When it came into the queue.",
    "abort_count": "How often a transaction that received it was aborted.",
    "move_count": "How often it was moved between a queue and its subqueues.",
    "moved_time": "When it was last moved.",
    "label": "The label.",
    "body": "The body, in base64.",
    "body_type": "What the sender says the body is: a VARIANT type, 8 for UTF-16 text.",
    "text": "The body as text, when it is text.",
    "priority": "0 to 7.",
    "message_class": "0 for an application's message; otherwise a report or acknowledgment.",
    "message_class_name": "The name of the class.",
    "correlation_id": "The message that this one answers.",
    "sent_time": "When it was sent.",
    "source_qm": "The queue manager that sent it.",
    "destination": "The format name to which it was sent.",
    "response_queue": "Where answers go.",
    "admin_queue": "Where acknowledgments go.",
    "dead_letter_queue": "Where its copy goes if nobody receives it, when not to the system's.",
    "recoverable": "Whether it survives a restart.",
    "transactional": "Whether it was sent in a transaction.",
    "first_in_transaction": "Whether it is the first message of its transaction.",
    "last_in_transaction": "Whether it is the last one.",
    "transaction_id": "The transaction in which it was sent.",
    "application_tag": "A number that the sender chose.",
    "extension": "What the sender put beside the body, in base64.",
    "time_to_reach_queue_s": "How long it might travel, in seconds.",
    "time_to_be_received_s": "How long it may wait to be received, in seconds.",
    "authentication": "What its signature has proved: NONE, or the kind of signature.",
    "sender_sid": "Who its sender is, or says it is if nothing is proved.",
    "privacy": "How the body was encrypted on its way: 0 not, 1 and 3 by old ciphers, 5 by AES.",
    "encrypted": "Whether the body is encrypted.",
    "hop_count": "How many queue managers passed it on.",
}
"""The keys of `message_object`, for `docs/reference/cli.md`."""


def message_object(message: ReceivedMessage) -> JsonObject:
    """Return everything about a message under the names that programs rely on."""
    place: JsonObject = {
        "lookup_id": message.lookup_id,
        "arrived_time": _time(message.arrived_time),
        "abort_count": message.abort_count,
        "move_count": message.move_count,
        "moved_time": None if message.moved_time is None else _time(message.moved_time),
    }
    try:
        return {"message_id": str(message.id), **place, **_content(message)}
    except (DecodeError, IllegalName) as error:
        # Whoever sent it like this made a mistake; what is left of it must still come out.
        return {**place, "problem": str(error), "packet": _base64(message.packet_bytes)}


def _content(message: ReceivedMessage) -> JsonObject:
    transaction = message.transaction
    return {
        "label": message.label,
        "body": _base64(message.body_bytes),
        "body_type": message.body_type,
        "text": body_text(message.packet),
        "priority": message.priority,
        "message_class": message.message_class,
        "message_class_name": message_class_name(message.message_class),
        "correlation_id": correlation_text(message),
        "sent_time": _time(message.sent_time),
        "source_qm": str(message.source_manager),
        "destination": _name(message.destination),
        "response_queue": _name(message.response_queue),
        "admin_queue": _name(message.admin_queue),
        "dead_letter_queue": message.dead_letter_queue or None,
        "recoverable": message.recoverable,
        "transactional": transaction is not None,
        "first_in_transaction": transaction is not None and transaction.first,
        "last_in_transaction": transaction is not None and transaction.last,
        "transaction_id": None if transaction is None else str(transaction.id),
        "application_tag": message.application_tag,
        "extension": _base64(message.extension),
        "time_to_reach_queue_s": message.time_to_reach_queue_s,
        "time_to_be_received_s": message.time_to_be_received_s,
        "authentication": message.authentication.name,
        "sender_sid": sid_text(message.sender_id) or None,
        "privacy": message.privacy,
        "encrypted": message.is_encrypted,
        "hop_count": message.hop_count,
    }


def correlation_text(message: ReceivedMessage) -> str | None:
    """Return the identifier of the message that this one answers, if it answers one."""
    found = message.correlation_id
    return None if found == NO_CORRELATION else str(MessageId.from_bytes(found))


def dead_letter_reason(message: ReceivedMessage) -> str | None:
    """Return why a message is in a dead-letter queue, as far as it shows."""
    if is_negative(message.message_class):
        return message_class_name(message.message_class)
    within_s = message.time_to_be_received_s
    waited_s = (message.arrived_time - message.sent_time).total_seconds()
    if within_s is not None and waited_s >= within_s:
        return MessageClass.NACK_RECEIVE_TIMEOUT.name
    return None


def show_message(message: ReceivedMessage, *, json: bool, full: bool = True) -> None:
    """Print one message; unless `full`, only the beginning of a long body."""
    if json:
        print_json(message_object(message))
        return
    shown = message_object(message)
    problem = shown.get("problem")
    if problem is not None:
        print_facts(f"lookup id {message.lookup_id}", [("unreadable", str(problem))])
    else:
        print_facts(str(message.id), _facts(message, full=full))


def _facts(message: ReceivedMessage, *, full: bool) -> list[tuple[str, str]]:
    transaction = message.transaction
    special = message.message_class != MessageClass.NORMAL
    correlation = correlation_text(message)
    delivery = "recoverable" if message.recoverable else "express"
    if transaction is not None:
        delivery = f"transactional, {transaction.id}"
    facts = [
        ("label", message.label),
        ("class", message_class_name(message.message_class) if special else ""),
        ("sent", _time(message.sent_time)),
        ("arrived", _time(message.arrived_time)),
        ("priority", str(message.priority)),
        ("delivery", delivery),
        ("destination", _name(message.destination) or ""),
        ("response queue", _name(message.response_queue) or ""),
        ("admin queue", _name(message.admin_queue) or ""),
        ("dead-letter queue", message.dead_letter_queue),
        ("correlation id", correlation or ""),
        ("application tag", str(message.application_tag or "")),
        ("authenticated", message.authentication.name if message.is_authenticated else ""),
        ("sender", sid_text(message.sender_id)),
        ("privacy level", str(message.privacy or "")),
        ("abort count", str(message.abort_count or "")),
        ("move count", str(message.move_count or "")),
        ("lookup id", str(message.lookup_id)),
        ("body", _body_summary(message, full=full)),
    ]
    return [(name, value) for name, value in facts if value]


def _body_summary(message: ReceivedMessage, *, full: bool) -> str:
    text = body_text(message.packet)
    if text is not None:
        return (text if full else _beginning(text)) or "(empty)"
    try:
        kind = BodyType(message.body_type).name
    except ValueError:
        kind = f"type {message.body_type}"
    return f"{size_text(len(message.body_bytes))} of {kind}; --json shows them"


def _beginning(text: str) -> str:
    """Shorten a body, and say how much is left out."""
    shown = "\n".join(text[:BODY_CHARACTERS].splitlines()[:BODY_LINES_COUNT])
    if len(shown) >= len(text.rstrip("\r\n")):
        return text
    left = len(text) - len(shown)
    return f"{shown}\n... and {left} characters more: --full shows all of it, --json too"


def message_row(message: ReceivedMessage) -> list[str]:
    """Return the cells of a message for a table with `COLUMNS`."""
    place = [str(message.lookup_id)]
    try:
        text = body_text(message.packet)
        return [
            *place,
            str(message.id),
            str(message.priority),
            _time(message.arrived_time),
            size_text(len(message.body_bytes)),
            message_class_name(message.message_class),
            preview(message.label),
            "" if text is None else preview(text),
        ]
    except DecodeError as error:
        arrived = _time(message.arrived_time)
        size = size_text(len(message.packet_bytes))
        return [*place, "", "", arrived, size, "unreadable", "", preview(str(error))]


def preview(text: str) -> str:
    """Shorten a text so that it fits a table."""
    return text if len(text) <= PREVIEW_CHARACTERS else text[: PREVIEW_CHARACTERS - 3] + "..."


def _time(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def _name(name: object) -> str | None:
    return None if name is None else str(name)


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
