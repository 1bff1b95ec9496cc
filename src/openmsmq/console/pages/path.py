"""The path of one message across queue managers, drawn as a row of places."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from openmsmq.client.operating.tracing import Trace, trace
from openmsmq.console import limits
from openmsmq.console.visit import BadForm, Page, Visit
from openmsmq.model.identity import MessageId

_ID_MAX_CHARACTERS: Final = 80
_HEXADECIMAL_CHARACTERS: Final = 40
KINDS: Final = {
    "sent": "",
    "waits": "open",
    "left": "",
    "here": "good",
    "received": "good",
    "died": "bad",
    "told": "",
    "answered": "good",
}
"""The colour of each kind of place."""


async def show_path(visit: Visit) -> Response:
    """Show where a message has been, or ask for which one."""
    text = visit.asked("id", characters_max=_ID_MAX_CHARACTERS).strip()
    found: Trace | None = None
    if text:
        found = await trace(
            visit.manager,
            _identifier(text),
            others=visit.session.others,
            looked_max_count=limits.TRACE_LOOKED_MAX_COUNT,
        )
    return visit.page(
        "path.html",
        text=text,
        found=found,
        kinds=KINDS,
        asks_others=visit.session.others is not None,
    )


def _identifier(text: str) -> MessageId:
    try:
        if len(text) == _HEXADECIMAL_CHARACTERS and text.isalnum():
            return MessageId.from_bytes(bytes.fromhex(text))
        return MessageId.parse(text)
    except ValueError as error:
        raise BadForm(f"This is no identifier of a message: {error}.") from None


PAGES: Final = (Page("/path", show_path),)
