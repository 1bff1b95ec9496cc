"""A message changed into a new one: what stays of it, and what is different."""

from __future__ import annotations

import difflib
from typing import Final

import msgspec

from openmsmq.client.formatters import find_formatter
from openmsmq.client.formatters.base import FormatterError
from openmsmq.client.messages.outgoing import OutgoingMessage, SendOptions
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.model.errors import InvalidParameter
from openmsmq.model.message import BodyType, is_negative

BODY_DIFFERENCE_LINES_COUNT: Final = 200
"""Lines of the difference between two bodies that are shown."""

BODY_COMPARED_CHARACTERS: Final = 256 << 10
"""A longer body is told by its size instead of line by line: to compare lines takes its time."""


def like(message: ReceivedMessage) -> OutgoingMessage:
    """Return what an application would send to get such a message.

    Who signed it, and its encryption, do not stay: they are for its first sender to say.
    """
    is_foreign = message.connector_type is not None and not is_negative(message.message_class)
    debug = message.packet.debug
    return OutgoingMessage(
        body=message.body_bytes,
        body_type=message.body_type,
        label=message.label,
        priority=message.priority,
        recoverable=message.recoverable,
        correlation_id=message.correlation_id,
        response_queue=message.response_queue,
        admin_queue=message.admin_queue,
        acknowledge=message.acknowledge,
        time_to_reach_queue_s=message.time_to_reach_queue_s,
        time_to_be_received_s=message.time_to_be_received_s,
        journal_on_failure=message.journal_on_failure,
        dead_letter_queue=message.dead_letter_queue or None,
        journal_on_success=message.journal_on_success,
        application_tag=message.application_tag,
        extension=message.extension,
        # A dead letter tells its reason by its class; sent again, it is itself again.
        message_class=message.message_class if is_foreign else 0,
        connector_type=message.connector_type,
        trace_queue=debug.queue if debug is not None and message.traced else None,
    )


def edited(message: ReceivedMessage, changes: SendOptions) -> OutgoingMessage:
    """Return a message with some properties changed; raises for one that nobody can read."""
    if message.encrypted:
        raise InvalidParameter(
            f"{message.message_id}: its body is encrypted; it can be copied, and not changed"
        )
    return msgspec.structs.replace(like(message), **changes)


class Difference(msgspec.Struct, frozen=True):
    """A property that is not as it was."""

    name: str
    before: object
    after: object


def differences(before: OutgoingMessage, after: OutgoingMessage) -> list[Difference]:
    """Return what is different, in the order of the properties; a body is shown as its bytes."""
    return [
        Difference(name, old, new)
        for name in OutgoingMessage.__struct_fields__
        if (old := getattr(before, name)) != (new := getattr(after, name))
    ]


def body_difference(before: str | None, after: str | None) -> list[str]:
    """Return how two bodies differ, line by line; empty if one is no text, or too long for that."""
    if before is None or after is None:
        return []
    if len(before) + len(after) > BODY_COMPARED_CHARACTERS:
        return []
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=1)
    # The first two lines would name files.
    return list(lines)[2 : 2 + BODY_DIFFERENCE_LINES_COUNT]


def text_of(message: OutgoingMessage) -> str | None:
    """Return the body of a message as text, if it says that it is, or is UTF-8."""
    body = message.body
    if isinstance(body, str):
        return body
    if not isinstance(body, bytes):
        return None
    try:
        if message.body_type == BodyType.TEXT:
            found = find_formatter(None).read(BodyType.TEXT, body)
            return found if isinstance(found, str) else None
        text = body.decode()
    except (FormatterError, UnicodeDecodeError):
        return None
    return text if all(each.isprintable() or each in "\r\n\t" for each in text) else None
