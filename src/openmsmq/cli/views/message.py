"""A message as the command line shows it: an object for programs, facts or a row for people."""

from __future__ import annotations

from base64 import b64encode
from datetime import datetime
from typing import TYPE_CHECKING, Final

from openmsmq.cli.views.output import JsonObject, print_facts, print_json, size_text
from openmsmq.client.messages.properties import PLAIN, PROPERTIES
from openmsmq.model.message import BodyType, MessageClass
from openmsmq.wire.errors import DecodeError

if TYPE_CHECKING:
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

MESSAGE_KEYS: Final = {key: PROPERTIES[key].meaning for key in PLAIN}
"""The keys of `message_object`, for `docs/reference/cli.md`."""


def message_object(message: ReceivedMessage) -> JsonObject:
    """Return everything about a message under the names that programs rely on."""
    shown: JsonObject = {}
    try:
        for key, read in PLAIN.items():
            shown[key] = _json(read(message))
    except DecodeError as error:
        # Whoever sent it like this made a mistake; what is left of it must still come out.
        return {**shown, "problem": str(error), "packet": _json(message.packet_bytes)}
    return shown


def _json(value: object) -> object:
    match value:
        case datetime():
            return _time(value)
        case bytes():
            return b64encode(value).decode()
        case _:
            return value


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
        print_facts(str(message.id), _facts(message, shown, full=full))


def _facts(message: ReceivedMessage, shown: JsonObject, *, full: bool) -> list[tuple[str, str]]:
    special = message.message_class != MessageClass.NORMAL
    delivery = "recoverable" if message.recoverable else "express"
    if message.transactional:
        delivery = f"transactional, {message.transaction_id}"
    facts = [
        ("label", message.label),
        ("class", message.message_class_name if special else ""),
        ("sent", _time(message.sent_time)),
        ("arrived", _time(message.arrived_time)),
        ("priority", str(message.priority)),
        ("delivery", delivery),
        ("destination", shown["destination"]),
        ("response queue", shown["response_queue"]),
        ("admin queue", shown["admin_queue"]),
        ("dead-letter queue", message.dead_letter_queue),
        ("correlation id", shown["correlation_id"]),
        ("application tag", message.application_tag),
        ("authenticated", shown["authentication"] if message.authenticated else ""),
        ("sender", message.sender_sid),
        ("privacy level", message.privacy),
        ("abort count", message.abort_count),
        ("move count", message.move_count),
        ("lookup id", message.lookup_id),
        ("body", _body_summary(message, full=full)),
    ]
    return [(name, str(value)) for name, value in facts if value]


def _body_summary(message: ReceivedMessage, *, full: bool) -> str:
    text = message.text
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
        text = message.text
        return [
            *place,
            str(message.id),
            str(message.priority),
            _time(message.arrived_time),
            size_text(len(message.body_bytes)),
            message.message_class_name,
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
