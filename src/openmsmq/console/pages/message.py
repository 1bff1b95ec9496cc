"""One message: its properties in words, its body decoded and as bytes, and downloads of both."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from starlette.responses import Response

from openmsmq.client.messages.properties import PLAIN, PROPERTIES
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.console import limits, words
from openmsmq.console.bodies.downloads import attachment
from openmsmq.console.bodies.preview import hex_rows, preview
from openmsmq.console.visit import Page, Visit
from openmsmq.model.message import AckRequest
from openmsmq.wire.errors import DecodeError

_SHOWN_ELSEWHERE: Final = frozenset({"body", "text", "label", "arrival_number", "extension"})
_UNITS: Final = {"_s": "s"}


async def peeked(visit: Visit) -> ReceivedMessage:
    """Look at the message in the path."""
    async with visit.queue as queue:
        return await queue.peek_by_lookup_id(visit.lookup_id)


async def show_message(visit: Visit) -> Response:
    """Show a message."""
    message = await peeked(visit)
    try:
        return visit.page(
            "message.html",
            message=message,
            groups=_groups(message),
            body=preview(message),
            rows=hex_rows(message.body_bytes),
            hidden=max(0, len(message.body_bytes) - limits.HEX_SHOWN_BYTES),
            extension=hex_rows(message.extension),
        )
    except DecodeError as error:
        # Whoever sent it like this made a mistake; what is left of it can still be seen.
        return visit.page(
            "unreadable.html",
            message=message,
            problem=str(error),
            rows=hex_rows(message.packet_bytes),
        )


def _groups(message: ReceivedMessage) -> dict[str, list[tuple[str, str, str]]]:
    """Return the properties by heading: what each is called, its value, and what it means."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for key, read in PLAIN.items():
        if key in _SHOWN_ELSEWHERE:
            continue
        row = PROPERTIES[key]
        shown = _value(key, read(message)) or (row.null and f"none: {row.null}")
        name = key.removesuffix("_s").replace("_", " ")
        found.setdefault(row.group, []).append((name, shown or "none", row.meaning))
    return found


def _value(key: str, value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case datetime():
            return f"{words.moment(value)} UTC"
        case bytes():
            return value.hex(" ") if len(value) <= 64 else f"{len(value)} bytes"
        case int() if key == "acknowledge":
            asked = [flag.name or "" for flag in AckRequest if flag in AckRequest(value)]
            return ", ".join(name.lower().replace("_", " ") for name in asked)
        case int() if key.endswith("_s"):
            return words.duration(value)
        case _:
            return words.plain(str(value), 1000)


async def download_body(visit: Visit) -> Response:
    """Send the body as a file."""
    message = await peeked(visit)
    return Response(message.body_bytes, headers=attachment(f"message-{message.lookup_id}.body"))


async def download_packet(visit: Visit) -> Response:
    """Send the whole packet as a file, for `openmsmq packet decode`."""
    message = await peeked(visit)
    return Response(message.packet_bytes, headers=attachment(f"message-{message.lookup_id}.packet"))


PAGES: Final = (
    Page("/queues/{queue}/messages/{message}", show_message),
    Page("/queues/{queue}/messages/{message}/body", download_body),
    Page("/queues/{queue}/messages/{message}/packet", download_packet),
)
