"""A console on a thread before a real queue manager, and people who use it by their browser."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Self

import httpx

import openmsmq
from openmsmq import Settings
from openmsmq.console.config import ConsoleConfig, own_settings
from openmsmq.console.names import segment
from openmsmq.console.server import ConsoleServer
from openmsmq.runtime.api.tokens import create_token
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.operating_system.socket_owner import owner_of
from openmsmq.security.access.callers import Scope
from openmsmq.security.access.sids import ADMINISTRATORS
from openmsmq.storage.memory import MemoryStore
from tests.server_thread import ServerThread, start_server


class Clock:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class ConsoleThread:
    """Runs a console while its `with` block lasts."""

    def __init__(self, own: Settings, **options: Any) -> None:
        self.clock = Clock()
        config = ConsoleConfig(host="127.0.0.1", port=0, own=own_settings(own), **options)
        self.server = ConsoleServer(config, self.clock, owner_of=owner_of)
        self.browsers: list[httpx.Client] = []
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self.server.run, args=(lambda _: self._ready.set(),))

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        for browser in self.browsers:
            browser.close()
        self.server.stop()
        self._thread.join()

    @property
    def address(self) -> str:
        return self.server.address.rstrip("/")


class _Forms(HTMLParser):
    """Finds the hidden fields of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden: dict[str, str] = {}
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        found = dict(attrs)
        if tag == "input" and found.get("type") == "hidden":
            self.hidden[found.get("name") or ""] = found.get("value") or ""


def forms(page: httpx.Response) -> _Forms:
    parser = _Forms()
    parser.feed(page.text)
    return parser


class Person:
    """Somebody with a browser of his own."""

    def __init__(self, console: ConsoleThread) -> None:
        self.console = console
        self.browser = httpx.Client(base_url=console.address, timeout=60, trust_env=False)
        console.browsers.append(self.browser)
        self.origin = {"Origin": console.address, "Sec-Fetch-Site": "same-origin"}

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.browser.get(path, **options)

    def send(self, path: str, fields: dict[str, str], **headers: str) -> httpx.Response:
        """Send fields, as a browser does, without looking at the form before."""
        return self.browser.post(path, data=fields, headers={**self.origin, **headers})

    def press(self, path: str, query: str = "", **fields: str) -> httpx.Response:
        """Open a page, fill in its form, and send it; gives the page that it leads to."""
        page = self.get(path + query)
        if page.status_code != 200:
            return page
        answer = self.send(path, {**forms(page).hidden, **fields})
        if answer.status_code != 303:
            return answer
        return self.get(answer.headers["location"])

    def sign_in(self, token: str) -> httpx.Response:
        return self.press("/sign-in", token=token)

    def sign_in_by_link(self) -> httpx.Response:
        link = f"/sign-in/{self.console.server.console.book.link}"
        page = self.get(link)
        answer = self.send("/sign-in", forms(page).hidden)
        return self.get(answer.headers["location"]) if answer.status_code == 303 else answer

    @property
    def form_token(self) -> str:
        return forms(self.get("/")).hidden["form_token"]


def queue_path(name: str) -> str:
    return f"/queues/{segment(name)}"


def text_of(page: httpx.Response) -> str:
    """What a page says, without its tags."""
    return " ".join(re.sub(r"<[^>]*>", " ", page.text).split())


class Place:
    """A queue manager, a console before it, and tokens."""

    def __init__(self, folder: Path, server: ServerThread, console: ConsoleThread) -> None:
        self.folder = folder
        self.server = server
        self.console = console
        self._count = 0

    @property
    def address(self) -> str:
        return f"{self.server.host}:{self.server.port}"

    def token(self, *scopes: Scope, queues: tuple[str, ...] = (), **options: Any) -> str:
        self._count += 1
        made, _ = create_token(
            self.folder / "tokens.json",
            f"token-{self._count}",
            scopes or (Scope.ADMIN,),
            now_s=read_clocks().unix_s,
            user=options.pop("user", ADMINISTRATORS),
            queues=queues,
            **options,
        )
        return made

    def person(self, token: str = "") -> Person:
        """Somebody who is signed in, by a token or as an administrator."""
        person = Person(self.console)
        page = person.sign_in(token or self.token())
        assert page.status_code == 200, page.text
        return person

    def manager(self) -> Any:
        return openmsmq.connect(self.address)


@contextlib.contextmanager
def opened_place(folder: Path, **options: Any) -> Iterator[Place]:
    made = start_server(str(folder), store=MemoryStore(), api_socket="none", **options)
    with made as server, console_before(folder, server) as place:
        yield place


@contextlib.contextmanager
def console_before(folder: Path, server: ServerThread) -> Iterator[Place]:
    """Open a console before a queue manager that runs."""
    with ConsoleThread(Settings(address=f"{server.host}:{server.port}")) as console:
        yield Place(folder, server, console)
