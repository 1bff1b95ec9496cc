"""One request of somebody who is signed in, as the pages see it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from openmsmq.aio import Queue, QueueManager
from openmsmq.console import limits
from openmsmq.console.asking.history import History
from openmsmq.console.asking.letters import KeptLetters
from openmsmq.console.names import name_in, number_in, segment
from openmsmq.console.rendering import render
from openmsmq.console.sessions.session import Session

LIVE_HEADER = "x-live"
"""What the script says that looks again by itself: nobody has done anything."""


class BadForm(ValueError):
    """A form that cannot be used; the sentence says why, for the person who sent it."""

    def __init__(self, sentence: str, status: int = 400) -> None:
        super().__init__(sentence)
        self.status = status


class FormRoom:
    """The memory for forms that come, of everybody together."""

    def __init__(self) -> None:
        self.used_bytes = 0

    def take(self, size_bytes: int) -> None:
        """Take room for a part of a form; raises `BadForm` if there is none."""
        if self.used_bytes + size_bytes > limits.FORMS_MAX_BYTES:
            raise BadForm("So many large forms come now that there is no room: try again.", 503)
        self.used_bytes += size_bytes


async def read_form(
    request: Request, room: FormRoom, bytes_max: int = limits.FORM_MAX_BYTES
) -> dict[str, str]:
    """Read a form, up to the limits; of fields with the same name, the last one counts."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise BadForm("This is no form of the console.", 415)
    body = bytearray()
    taken_bytes = 0
    try:
        async with asyncio.timeout(limits.FORM_MAX_S):
            async for part in request.stream():
                room.take(len(part))
                taken_bytes += len(part)
                body += part
                if len(body) > bytes_max:
                    raise BadForm("The form is too long: send large messages by a program.", 413)
    except (TimeoutError, ClientDisconnect):
        raise BadForm("The form did not come as a whole.", 408) from None
    finally:
        room.used_bytes -= taken_bytes
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            max_num_fields=limits.FORM_MAX_FIELDS,
            errors="strict",
        )
    except ValueError:
        raise BadForm("This is no form of the console.") from None
    return dict(pairs)


class Kept(msgspec.Struct, frozen=True):
    """What the console remembers for its pages."""

    history: History
    letters: KeptLetters


class Visit:
    """A request, who makes it, and what answers it."""

    def __init__(
        self,
        request: Request,
        session: Session,
        manager: QueueManager,
        kept: Kept,
        form: dict[str, str],
    ) -> None:
        self.request = request
        self.session = session
        self.manager = manager
        self.history = kept.history
        self.letters = kept.letters
        self.form = form
        """What was sent; empty if the page is only looked at."""

    # What is asked for.

    @property
    def queue_name(self) -> str:
        """The queue in the path."""
        return name_in(self.request.path_params["queue"])

    @property
    def queue(self) -> Queue:
        """The same, to be entered with `async with`, so that no handle of it is left open."""
        return self.manager.queue(self.queue_name)

    @property
    def lookup_id(self) -> int:
        """The message in the path."""
        return number_in(self.request.path_params["message"])

    def asked(self, key: str, default: str = "", characters_max: int = 100) -> str:
        """Return what stands behind the question mark, up to a length."""
        return self.request.query_params.get(key, default)[:characters_max]

    def asked_number(self, key: str, default: int = 0) -> int:
        """Return a number behind the question mark; the default for what is none."""
        text = self.asked(key)
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else default

    # What is answered.

    @property
    def is_live(self) -> bool:
        """Whether the page looks again by itself, and nobody has done anything."""
        return LIVE_HEADER in self.request.headers

    def page(self, template: str, /, **values: Any) -> Response:
        """Return a page."""
        return HTMLResponse(
            render(
                template,
                visit=self,
                path=self.request.url.path,
                news=[] if self.is_live else self.session.take_news(),
                **values,
            )
        )

    def go(self, path: str, sentence: str = "", kind: str = "good") -> Response:
        """Return the way to another page, which tells what was done."""
        if sentence:
            self.session.tell(kind, sentence)
        return RedirectResponse(path, 303)

    def queue_path(self, name: str = "") -> str:
        """Return where the page of a queue is: the one in the path, or another."""
        return f"/queues/{segment(name or self.queue_name)}"


Handler: TypeAlias = Callable[[Visit], Awaitable[Response]]


class Page(msgspec.Struct, frozen=True):
    """A page: where it is, what shows it, and what is done when its form is sent."""

    path: str
    show: Handler
    act: Handler | None = None
