"""Posts that leave, to servers that answer by the letter, late, never, or nonsense."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.protocol.posts import OutgoingPost, PostFailure
from openmsmq.runtime.config.doors.http_table import HttpTable
from openmsmq.runtime.http.sending.client import HttpClient
from openmsmq.runtime.http.sending.exchange import Answers, written
from openmsmq.runtime.http.sending.targets import BadUrl, read_url
from openmsmq.runtime.limits import HTTP_ANSWER_KNOWN_MAX_BYTES, HTTP_ANSWER_MAX_BYTES
from tests.runtime.session_certificates import Identity

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
CLOSING = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Outcomes:
    """Hears what became of posts."""

    def __init__(self) -> None:
        self.found: dict[int, int | PostFailure] = {}
        self.order: list[int] = []
        self._news = asyncio.Event()

    def post_answered(self, call: int, status: int, body: bytes) -> None:  # noqa: ARG002
        self._note(call, status)

    def post_failed(self, call: int, failure: PostFailure, reason: str) -> None:
        assert reason
        assert "Errno" not in reason, "numbers mean nothing to people"
        self._note(call, failure)

    def _note(self, call: int, outcome: int | PostFailure) -> None:
        assert call not in self.found, "one outcome for each"
        self.found[call] = outcome
        self.order.append(call)
        self._news.set()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(20):
            while len(self.found) < count:
                self._news.clear()
                await self._news.wait()


@contextlib.asynccontextmanager
async def posting(
    serve: Serve, *, context: ssl.SSLContext | None = None, data: str = "", **table: object
) -> AsyncIterator[tuple[HttpClient, Outcomes, str]]:
    outcomes = Outcomes()
    tasks: list[asyncio.Task[None]] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.append(task)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await serve(reader, writer)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    client = HttpClient(HttpTable(sends=True, **table), data, outcomes)  # type: ignore[arg-type]
    try:
        yield client, outcomes, f"{'https' if context else 'http'}://127.0.0.1:{port}/msmq/q"
    finally:
        client.close()
        server.close()
        await asyncio.gather(*tasks)
        # Transports that were aborted close in the next turns of the loop.
        for _ in range(10):
            await asyncio.sleep(0)


def numbered(call: int, url: str) -> OutgoingPost:
    return OutgoingPost(call, url, (("Content-Type", "text/xml"),), b"%d" % call)


async def request(reader: asyncio.StreamReader) -> bytes:
    """Read one request; gives its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    (length,) = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
    assert head.startswith(b"POST /msmq/q HTTP/1.1\r\n")
    assert b"proxy-accept: noninteractiveclient" in head.lower()
    return await reader.readexactly(int(length.split(b":")[1]))


def test_posts_are_pipelined_in_order() -> None:
    async def main() -> None:
        seen: list[bytes] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            # Nobody is answered before four are there.
            while True:
                seen.extend([await request(reader) for _ in range(4)])
                writer.write(OK * 4)

        async with posting(serve, send_pipelined_max=4) as (client, outcomes, url):
            for call in range(20):
                client.post(numbered(call, url))
            await outcomes.until(20)
            assert seen == [b"%d" % call for call in range(20)]
            assert outcomes.order == [*range(20)]
            assert set(outcomes.found.values()) == {200}

    asyncio.run(main())


def test_what_came_behind_the_last_answer_of_a_connection_goes_over_the_next_one() -> None:
    async def main() -> None:
        seen: list[bytes] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.append(await request(reader))
            seen.append(await request(reader))
            writer.write(OK + CLOSING)
            await writer.drain()
            writer.close()

        async with posting(serve) as (client, outcomes, url):
            for call in range(6):
                client.post(numbered(call, url))
            await outcomes.until(6)
            assert seen == [b"%d" % call for call in range(6)]
            assert set(outcomes.found.values()) == {200}

    asyncio.run(main())


def test_what_may_have_been_received_is_not_sent_again() -> None:
    async def main() -> None:
        seen: list[bytes] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.append(await request(reader))
            writer.write(OK)
            await request(reader)
            writer.close()

        async with posting(serve, send_pipelined_max=3) as (client, outcomes, url):
            for call in range(3):
                client.post(numbered(call, url))
            await outcomes.until(3)
            assert outcomes.found == {0: 200, 1: PostFailure.LOST, 2: PostFailure.LOST}
            assert seen == [b"0"]

    asyncio.run(main())


def test_who_does_not_answer_is_not_waited_for() -> None:
    async def main() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(-1)
            writer.close()

        async with posting(serve, send_timeout_s=1) as (client, outcomes, url):
            client.post(numbered(1, url))
            await outcomes.until(1)
            assert outcomes.found == {1: PostFailure.LOST}

    asyncio.run(main())


@pytest.mark.parametrize(
    "answer",
    [
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000,
        b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n" + bytes(HTTP_ANSWER_MAX_BYTES + 1),
    ],
)
def test_an_answer_has_an_end(answer: bytes) -> None:
    async def main() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await request(reader)
            writer.write(answer)
            await reader.read(-1)
            writer.close()

        async with posting(serve) as (client, outcomes, url):
            client.post(numbered(1, url))
            await outcomes.until(1)
            assert outcomes.found == {1: PostFailure.MISUNDERSTOOD}

    asyncio.run(main())


def test_whom_nobody_vouches_for_gets_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        seen: list[bytes] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.append(await reader.read(10))
            writer.close()

        authority, other = (Identity(name, is_authority=True) for name in ("Good", "Other"))
        (tmp_path / "ca.pem").write_text(authority.pem)
        for issuer, name in ((other, "127.0.0.1"), (authority, "127.0.0.2")):
            certificate = tmp_path / "server.pem"
            Identity(name, issuer).save(certificate)
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(certificate)
            async with posting(
                serve, context=context, data=str(tmp_path), send_authorities="ca.pem"
            ) as (client, outcomes, url):
                client.post(numbered(1, url))
                await outcomes.until(1)
                assert outcomes.found == {1: PostFailure.UNTRUSTED}
        assert seen == []

    asyncio.run(main())


def test_what_cannot_leave_is_said_at_once() -> None:
    async def main() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            del reader
            writer.close()

        async with posting(serve) as (client, outcomes, url):
            client.post(numbered(1, "ftp://127.0.0.1/msmq/q"))
            client.post(numbered(2, "http://127.0.0.1:1/msmq/q"))
            client.post(numbered(3, "http://nobody.invalid/msmq/q"))
            # Names that are asked for nowhere: strangers choose where receipts go.
            client.post(numbered(4, f"http://{'a' * 64}/msmq/q"))
            client.post(numbered(5, "https://a..b/msmq/q"))
            await outcomes.until(5)
            unreachable = dict.fromkeys((2, 3, 4, 5), PostFailure.UNREACHABLE)
            assert outcomes.found == {1: PostFailure.REFUSED, **unreachable}
            assert url

    asyncio.run(main())


def test_nothing_leaves_unless_the_configuration_says_so() -> None:
    async def main() -> None:
        outcomes = Outcomes()
        HttpClient(HttpTable(), "", outcomes).post(numbered(1, "http://127.0.0.1/msmq/q"))
        await outcomes.until(1)
        assert outcomes.found == {1: PostFailure.REFUSED}

    asyncio.run(main())


@pytest.mark.parametrize(
    "url", ["", "msmq/q", "http:///q", "http://a:b@c/", "http://a b/", "http://a:x/"]
)
def test_a_url_has_a_scheme_and_a_host(url: str) -> None:
    with pytest.raises(BadUrl):
        read_url(url)


def test_a_host_is_said_as_urls_have_it() -> None:
    assert read_url("HTTPS://[::1]/a?b=c")[0].authority == "[::1]"
    assert read_url("https://[::1]:8443/a?b=c")[0].authority == "[::1]:8443"
    assert read_url("http://example.com:80/a?b=c") == (
        read_url("http://example.com/a")[0],
        "/a?b=c",
    )


# Answers that come again.


OTHER = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno"


@given(
    st.lists(st.sampled_from([OK, OTHER, OK.replace(b"OK", b"Fine")]), max_size=8),
    st.lists(st.integers(0, 400), max_size=6),
)
def test_answers_are_the_same_however_they_are_cut(sent: list[bytes], cuts: list[int]) -> None:
    data, answers, found = b"".join(sent), Answers(), []
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    for start, stop in itertools.pairwise(places):
        piece, at = data[start:stop], 0
        while at < len(piece):
            end = answers.read(piece, at)
            if end is None:
                break
            at = end
            found.append((answers.status, answers.body, answers.closes))
    assert found == [(400, b"no", False) if each is OTHER else (200, b"", False) for each in sent]


def test_the_same_answer_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, data = Answers(), OK * 3
    assert answers.read(data, 0) == len(OK)

    def read_again(*_: object, **__: object) -> None:
        raise AssertionError("it is read again")

    monkeypatch.setattr(h11, "Connection", read_again)
    assert answers.read(data, len(OK)) == 2 * len(OK)
    assert answers.read(data, 2 * len(OK)) == 3 * len(OK)
    with pytest.raises(AssertionError, match="read again"):
        answers.read(OTHER, 0)


def test_the_end_of_an_answer_is_none_though_it_looks_like_one() -> None:
    # The body of the first one is what the second one is.
    answers, head = Answers(), b"HTTP/1.1 400 Bad Request\r\nContent-Length: %d\r\n\r\n" % len(OK)
    assert answers.read(head, 0) is None
    assert (answers.read(OK, 0), answers.status, answers.body) == (len(OK), 400, OK)
    assert (answers.read(OK, 0), answers.status, answers.body) == (len(OK), 200, b"")


@pytest.mark.parametrize(
    "answer",
    [
        CLOSING,
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: %b\r\n\r\n"
        % (b"y" * HTTP_ANSWER_KNOWN_MAX_BYTES),
    ],
    ids=["closes", "long"],
)
def test_not_every_answer_is_remembered(answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    connection = h11.Connection

    def new(*arguments: object, **options: object) -> h11.Connection:
        made.append(arguments)
        return connection(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(h11, "Connection", new)
    answers = Answers()
    for _ in range(2):
        assert answers.read(answer, 0) == len(answer)
        assert answers.closes is (answer == CLOSING)
    assert len(made) == 2


def test_a_post_says_how_long_it_is() -> None:
    headers = (("Content-Type", "text/xml"), ("proxy-accept", "x"))
    for body in (b"", b"ab", b"abc"):
        text = written("a:80", "/q?x=y", headers, body, proxy_accept=True)
        it = h11.Connection(h11.SERVER)
        it.receive_data(text)
        request = it.next_event()
        assert isinstance(request, h11.Request)
        assert dict(request.headers)[b"content-length"] == b"%d" % len(body)
        assert [value for name, value in request.headers if name == b"proxy-accept"] == [
            b"NonInteractiveClient"
        ]
        assert text.endswith(b"\r\n\r\n" + body)
    # What would be two headers is none.
    with pytest.raises(h11.LocalProtocolError):
        written("a", "/", (("X", "y\r\nZ: 1"),), b"", proxy_accept=False)
