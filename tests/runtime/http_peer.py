"""Clients of HTTP for tests: the standard library's, and bytes as they are."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from openmsmq.runtime.api.tokens import create_token
from openmsmq.runtime.config.doors.http_table import HttpTable
from openmsmq.runtime.config.file import TOKENS_FILE, ServerConfig
from openmsmq.runtime.logs import EventLog
from openmsmq.security.access.callers import Scope
from tests.server_thread import ServerThread

ORDERS = "/queues/private$/orders/messages"


def make_token(data: Path, name: str = "sender", **kinds: Any) -> str:
    """Make a token to send with, or of another kind."""
    data.mkdir(mode=0o700, exist_ok=True)
    scopes = kinds.pop("scopes", (Scope.SEND,))
    text, _ = create_token(data / TOKENS_FILE, name, scopes, now_s=0, **kinds)
    return text


@contextlib.contextmanager
def serving(data: Path, lines: list[str] | None = None, **table: object) -> Iterator[ServerThread]:
    """Run a queue manager with a door of HTTP on a free port."""
    data.mkdir(mode=0o700, exist_ok=True)
    config = ServerConfig(
        data=str(data),
        name="ALPHA",
        api_port=0,
        transfer=False,
        http=HttpTable(enabled=True, **{"port": 0, **table}),  # type: ignore[arg-type]
    )
    said: list[str] = [] if lines is None else lines
    log = EventLog("text", "debug", said.append)
    with ServerThread(config, log=log) as running:
        yield running


def port_of(server: ServerThread) -> int:
    return server.server.http.endpoints[0][1]


class Answered:
    """An answer, read as a whole."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def free_port() -> int:
    """A port of 127.0.0.1 that nobody uses now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    return port


_SENDERS: list[Sender] = []


def hang_up() -> None:
    """Close what the senders of a test have open."""
    while _SENDERS:
        _SENDERS.pop().connection.close()


class Sender:
    """A program that sends by HTTP, over one connection that is kept until `hang_up`."""

    def __init__(
        self, port: int, token: str = "", *, context: ssl.SSLContext | None = None
    ) -> None:
        self._token = token
        _SENDERS.append(self)
        self.connection = (
            http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            if context is None
            else http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=context)
        )

    def ask(
        self, method: str, path: str, body: str | bytes | None = None, **headers: str
    ) -> Answered:
        """Ask; underscores in names of headers are hyphens."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if self._token:
            given.setdefault("Authorization", f"Bearer {self._token}")
        data = body.encode() if isinstance(body, str) else body
        self.connection.request(method, path, data, given)
        return Answered(self.connection.getresponse())

    def send(self, body: str | bytes = "hello", path: str = ORDERS, **headers: str) -> Answered:
        return self.ask("POST", path, body, **{"Content-Type": "text/plain", **headers})


def raw(port: int, data: bytes, *, host: str = "127.0.0.1", timeout_s: float = 20) -> bytes:
    """Send bytes, and return all that comes until the other side hangs up."""
    with socket.create_connection((host, port), timeout_s) as made:
        made.sendall(data)
        found = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := made.recv(65_536):
                found += piece
    return found


def statuses(answers: bytes) -> list[int]:
    """The statuses of all answers in some bytes."""
    return [int(found) for found in re.findall(rb"HTTP/1\.1 (\d{3}) ", answers)]
