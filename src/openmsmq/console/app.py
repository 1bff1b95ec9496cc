"""The application: which page is where, who may see it, and what is said when something fails."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hmac
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from openmsmq.aio import QueueManager, connect
from openmsmq.client.errors import ConnectionLost, OutcomeUnknown
from openmsmq.client.formatters.base import FormatterError
from openmsmq.console import limits
from openmsmq.console.asking.history import History
from openmsmq.console.asking.letters import KeptLetters
from openmsmq.console.asking.manager_views import busiest_queues
from openmsmq.console.config import ConsoleConfig
from openmsmq.console.guard import Guard
from openmsmq.console.health import health_routes
from openmsmq.console.names import BadSegment
from openmsmq.console.pages import PAGES
from openmsmq.console.rendering import render, static_files
from openmsmq.console.sessions.attempts import Attempts, OwnerOf, source_of
from openmsmq.console.sessions.book import Full, SessionBook
from openmsmq.console.sessions.session import Over, Session
from openmsmq.console.visit import (
    LIVE_HEADER,
    BadForm,
    FormRoom,
    Handler,
    Kept,
    Page,
    Visit,
    read_form,
)
from openmsmq.model.errors import (
    AccessDenied,
    MessageNotFound,
    MsmqError,
    QueueNotActive,
    QueueNotFound,
)
from openmsmq.wire.errors import DecodeError

FORM_TOKEN: Final = "form_token"
"""The field of every form that shows that the form is ours."""

_NOT_SIGNED_IN: Final = "You are not signed in, or not any more."
_STATUSES: Final[Mapping[type[Exception], int]] = {
    AccessDenied: 403,
    QueueNotFound: 404,
    QueueNotActive: 404,
    MessageNotFound: 404,
}
_EXPECTED: Final = (MsmqError, ConnectionLost, BadSegment, BadForm, FormatterError, DecodeError)
Answer = Callable[[Request], Awaitable[Response]]


class Console:
    """The console of one process: its sessions, its history, and its pages."""

    def __init__(
        self, config: ConsoleConfig, clock: Callable[[], float], owner_of: OwnerOf
    ) -> None:
        self.config = config
        self._owner_of = owner_of
        self.clock = clock
        self.book = SessionBook(config.own, clock, asks_others=config.asks_others)
        self.history = History(clock)
        self._kept = Kept(self.history, KeptLetters(clock))
        self._attempts = Attempts(clock())
        self._form_room = FormRoom()
        pages = Starlette(
            routes=[
                *(_route(page, self) for page in PAGES),
                Route("/sign-in", self._show_sign_in, methods=["GET"]),
                Route("/sign-in", self._sign_in, methods=["POST"]),
                Route("/sign-in/{link}", self._show_link, methods=["GET"]),
                Route("/sign-out", self._sign_out, methods=["POST"]),
                Route("/static/{name}", _static, methods=["GET"]),
                *health_routes(config, clock),
            ],
            exception_handlers={HTTPException: self._failed, Exception: self._broken},
            lifespan=self._lifespan,
        )
        # Around everything, so that what is said after a defect has its headers too.
        self.app: Final[ASGIApp] = Guard(pages, hosts=config.hosts, is_tls=config.is_tls)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        sampler = asyncio.create_task(self._sample())
        try:
            yield
        finally:
            sampler.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sampler
            await self.book.close()

    async def _sample(self) -> None:
        """Feed the history as this process, while it is anybody; end old sessions."""
        asks_again_s = 0.0
        async with contextlib.AsyncExitStack() as opened:
            manager: QueueManager | None = None
            while True:
                await self.book.end_old()
                if self.clock() >= asks_again_s:
                    try:
                        if manager is None:
                            manager = await opened.enter_async_context(connect(self.config.own))
                        self.history.note(await busiest_queues(manager))
                    except ConnectionLost:
                        pass
                    except MsmqError:
                        # Who is nobody to the queue manager need not knock all the time.
                        asks_again_s = self.clock() + limits.HISTORY_REFUSED_S
                await asyncio.sleep(limits.HISTORY_STEP_S)

    # Pages.

    async def answer(self, page: Page, request: Request) -> Response:
        """Answer a request for a page, or for what its form does."""
        cookie = request.cookies.get(self.config.cookie, "")
        is_person = LIVE_HEADER not in request.headers
        session = await self.book.find(cookie, is_person=is_person)
        if session is None:
            if request.method == "POST" or not is_person:
                return self._error(request, 401, _NOT_SIGNED_IN)
            return RedirectResponse("/sign-in", 303)
        handler: Handler = page.show
        try:
            form: dict[str, str] = {}
            if request.method == "POST":
                assert page.act is not None, "pages without a form have no such route"
                handler = page.act
                form = await read_form(request, self._form_room)
                _require_ours(form, session.form_token)
            manager = await session.manager()
            return await handler(Visit(request, session, manager, self._kept, form))
        except Over:
            # Somebody has signed out while the form came, or another page was made.
            return self._error(request, 401, _NOT_SIGNED_IN)
        except _EXPECTED as error:
            return self._error(request, *_said(error), session)

    def _error(
        self, request: Request, status: int, sentence: str, session: Session | None = None
    ) -> Response:
        page = render(
            "error.html",
            visit=None if session is None else _Shown(session),
            path=request.url.path,
            news=[],
            status=status,
            sentence=sentence,
        )
        return HTMLResponse(page, status)

    async def _failed(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        sentence = "There is no such page." if error.status_code == 404 else error.detail
        return self._error(request, error.status_code, sentence)

    async def _broken(self, request: Request, _: Exception) -> Response:
        return self._error(
            request, 500, "This should not have happened; the log of the console says what did."
        )

    # Signing in and out.

    async def _show_sign_in(self, request: Request) -> Response:
        return self._sign_in_page(request)

    async def _show_link(self, request: Request) -> Response:
        link = request.path_params["link"]
        if self.book.is_link(link):
            return self._sign_in_page(request, link=link)
        problem = "This link was used already, or is too old. Sign in with a token."
        return self._sign_in_page(request, problem, 410)

    def _sign_in_page(
        self, request: Request, problem: str = "", status: int = 200, link: str = ""
    ) -> Response:
        visitor = request.cookies.get(self.config.cookie) or self.book.new_visitor()
        page = render(
            "sign_in.html",
            visit=None,
            path=request.url.path,
            news=[],
            problem=problem,
            link=link,
            form_token=self.book.visitor_token(visitor),
            address=self.config.own.address,
        )
        response = HTMLResponse(page, status)
        self._set_cookie(response, visitor)
        return response

    async def _sign_in(self, request: Request) -> Response:
        visitor = request.cookies.get(self.config.cookie, "")
        try:
            form = await read_form(request, self._form_room, limits.STRANGERS_FORM_MAX_BYTES)
            _require_ours(form, self.book.visitor_token(visitor) if visitor else "")
        except BadForm as error:
            return self._sign_in_page(request, str(error), error.status)
        # Where the kernel does not answer about one connection, a long table is read.
        source = await asyncio.to_thread(
            source_of, request.client, request.scope.get("server"), self._owner_of
        )
        wait_s = self._attempts.wait_s(source, self.clock())
        if wait_s:
            sentence = f"Too many attempts: try again in {wait_s} s."
            response = self._sign_in_page(request, sentence, 429)
            response.headers["Retry-After"] = str(wait_s)
            return response
        try:
            cookie = await self._begin_session(form)
        except (MsmqError, ConnectionLost, BadForm) as error:
            status, sentence = _said(error)
            return self._sign_in_page(request, sentence, status)
        except Full as error:
            return self._sign_in_page(request, str(error), 503)
        response = RedirectResponse("/", 303)
        # A session gets another cookie than the visitor had, which somebody may have given him.
        self._set_cookie(response, cookie)
        return response

    async def _begin_session(self, form: Mapping[str, str]) -> str:
        if form.get("link"):
            if not self.book.is_link(form["link"]):
                raise BadForm("This link was used already, or is too old.", 410)
            return await self.book.sign_in_by_link()
        token = form.get("token", "").strip()
        # Without a token the queue manager would take the caller for the user of this process.
        if not token or len(token) > limits.TOKEN_MAX_CHARACTERS:
            raise BadForm("Type a token of the queue manager: openmsmq token create makes one.")
        return await self.book.sign_in(token)

    def _set_cookie(self, response: Response, value: str) -> None:
        response.set_cookie(
            self.config.cookie,
            value,
            max_age=limits.SESSION_MAX_S,
            path="/",
            secure=self.config.is_tls,
            httponly=True,
            samesite="strict",
        )

    async def _sign_out(self, request: Request) -> Response:
        cookie = request.cookies.get(self.config.cookie, "")
        session = await self.book.find(cookie, is_person=True)
        try:
            form = await read_form(request, self._form_room, limits.STRANGERS_FORM_MAX_BYTES)
            if session is not None:
                _require_ours(form, session.form_token)
                await self.book.sign_out(cookie)
        except BadForm as error:
            return self._error(request, error.status, str(error), session)
        response = RedirectResponse("/sign-in", 303)
        response.delete_cookie(
            self.config.cookie, path="/", secure=self.config.is_tls, httponly=True
        )
        return response


class _Shown(msgspec.Struct, frozen=True):
    """What the frame of a page shows of who is signed in, where there is no visit."""

    session: Session


def _require_ours(form: Mapping[str, str], token: str) -> None:
    """Refuse a form that was not written for this session."""
    shown = form.get(FORM_TOKEN, "")
    if not token or not hmac.compare_digest(shown.encode(), token.encode()):
        raise BadForm("This form is not of your session: open the page again.", 403)


def _said(error: Exception) -> tuple[int, str]:
    """Return the status and the sentence for what went wrong."""
    match error:
        case BadForm():
            return error.status, str(error)
        case BadSegment():
            return 404, "There is no such page."
        case OutcomeUnknown():
            return 502, str(error)
        case ConnectionLost():
            return 503, f"The queue manager does not answer: {error}"
        case MsmqError():
            return _STATUSES.get(type(error), 409), str(error)
        case _:
            return 400, str(error)


def _route(page: Page, console: Console) -> Route:
    methods = ["GET"] if page.act is None else ["GET", "POST"]
    answer: Answer = functools.partial(console.answer, page)
    return Route(page.path, answer, methods=methods)


async def _static(request: Request) -> Response:
    """Answer with a file of ours, by its whole name."""
    found = static_files().get(request.path_params["name"])
    if found is None:
        raise HTTPException(404)
    kind, data = found
    return Response(data, media_type=kind, headers={"Cache-Control": "max-age=31536000, immutable"})
