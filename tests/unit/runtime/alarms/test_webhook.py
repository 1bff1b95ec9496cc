"""Webhooks, over real sockets: what they get, and what becomes of those that do not behave."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from openmsmq.runtime.alarms.lanes import NotTold
from openmsmq.runtime.alarms.webhook import post
from tests.contracts.certificates import write_certificate

Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter
SECRET = "/services/SECRET?key=SECRET"
OK = b"HTTP/1.1 204 No Content\r\n\r\n"


class Hook:
    """Answers each request with the same bytes, and remembers what it got."""

    def __init__(self, answer: bytes | None = OK, tls: ssl.SSLContext | None = None) -> None:
        self.answer = answer
        self.tls = tls
        self.got: list[bytes] = []

    async def serve(self, use: Callable[[str], Awaitable[None]]) -> None:
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0, ssl=self.tls)
        port = server.sockets[0].getsockname()[1]
        scheme = "https" if self.tls else "http"
        async with server:
            await use(f"{scheme}://127.0.0.1:{port}{SECRET}")

    async def _talk(self, reader: Reader, writer: Writer) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        self.got.append(head + await reader.readexactly(length))
        if self.answer is None:
            # Until the other side has had enough.
            await reader.read()
        else:
            writer.write(self.answer)
            await writer.drain()
        writer.close()


def told(hook: Hook, *, timeout_s: float = 10.0, trusted: ssl.SSLContext | None = None) -> None:
    async def use(address: str) -> None:
        await post(address, b'{"alarm":"disk"}', tls=trusted, timeout_s=timeout_s)

    asyncio.run(hook.serve(use))


def refused(hook: Hook, **options: float) -> NotTold:
    with pytest.raises(NotTold) as raised:
        told(hook, **options)  # type: ignore[arg-type]
    assert "SECRET" not in str(raised.value)
    return raised.value


def test_a_webhook_gets_one_post_with_json() -> None:
    hook = Hook()
    told(hook)
    (got,) = hook.got
    head, _, body = got.partition(b"\r\n\r\n")
    assert head.startswith(b"POST /services/SECRET?key=SECRET HTTP/1.1\r\n")
    assert b"Content-Type: application/json" in head
    assert b"\r\nHost: 127.0.0.1:" in head
    assert body == b'{"alarm":"disk"}'


@pytest.mark.parametrize(
    ("status", "may_try_again"),
    [(301, False), (307, False), (400, False), (404, False), (429, True), (500, True), (503, True)],
)
def test_an_answer_that_is_no_yes_is_told_and_redirects_are_not_followed(
    status: int, may_try_again: bool
) -> None:
    answer = f"HTTP/1.1 {status} X\r\nLocation: http://127.0.0.1:1/SECRET\r\n\r\n"
    hook = Hook(answer.encode())
    error = refused(hook)
    assert str(status) in str(error)
    assert error.may_try_again is may_try_again
    assert ("redirects are not followed" in str(error)) is (status < 400)
    assert len(hook.got) == 1


@pytest.mark.parametrize("answer", [b"", b"\r\n", b"SMTP ready\r\n", b"HTTP/1.1 many\r\n"])
def test_what_is_no_http_is_told(answer: bytes) -> None:
    assert "no HTTP" in str(refused(Hook(answer)))


def test_an_endless_line_is_not_read() -> None:
    assert refused(Hook(b"HTTP/1.1 200 " + b"x" * 100_000)).may_try_again


def test_a_webhook_that_does_not_answer_is_not_waited_for() -> None:
    error = refused(Hook(None), timeout_s=0.2)
    assert "within 0.2 s" in str(error)
    assert error.may_try_again


def test_nobody_there_may_be_tried_again() -> None:
    async def use() -> None:
        await post("http://127.0.0.1:1/SECRET", b"{}")

    with pytest.raises(NotTold, match="cannot be reached") as raised:
        asyncio.run(use())
    assert raised.value.may_try_again
    assert "SECRET" not in str(raised.value)


def test_a_certificate_is_verified(tmp_path: Path) -> None:
    file = write_certificate(tmp_path / "hook.pem")
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    served.load_cert_chain(file)
    hook = Hook(tls=served)
    error = refused(hook)
    assert "certificate is not to be trusted" in str(error)
    assert hook.got == []
    told(hook, trusted=ssl.create_default_context(cafile=file))
    assert len(hook.got) == 1
