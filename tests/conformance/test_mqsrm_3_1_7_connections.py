"""Connections over which messages leave: when they are made, and what ends them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from openmsmq.protocol.posts import PostFailure
from openmsmq.runtime.http.sending.client import HttpClient
from tests.conformance.marks import shows
from tests.runtime.http_peer import free_port
from tests.runtime.raw_client import wait_until
from tests.runtime.test_srmp_processes import application, manager
from tests.unit.runtime.http.sending.test_lane import OK, Outcomes, numbered, posting, request

IDLE_S = 30
TIMEOUT_S = 60


def status(number: int) -> bytes:
    return b"HTTP/1.1 %d Told\r\nContent-Length: 0\r\n\r\n" % number


class Clock(asyncio.SelectorEventLoop):
    """A loop whose time goes on when it is told to."""

    passed_s = 0.0

    def time(self) -> float:
        return super().time() + self.passed_s

    async def passes(self, seconds: float) -> None:
        """Let time pass, and everything happen that is due then."""
        self.passed_s += seconds
        for _ in range(10):
            await asyncio.sleep(0)


class Peer:
    """The other side: it sees connections and what comes over each, and answers when told to."""

    def __init__(self) -> None:
        self.connections: list[list[bytes]] = []
        self.ended: list[int] = []
        self._writers: list[asyncio.StreamWriter] = []
        self._news = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(self.connections)
        self.connections.append([])
        self._writers.append(writer)
        try:
            while True:
                self.connections[number].append(await request(reader))
                self._news.set()
        finally:
            self.ended.append(number)
            self._news.set()

    def answer(self, answer: bytes, connection: int = -1) -> None:
        self._writers[connection].write(answer)

    async def until(self, is_so: Callable[[], bool]) -> None:
        # Shorter than any pause by which a connection ends of itself.
        async with asyncio.timeout(10):
            while not is_so():
                self._news.clear()
                await self._news.wait()


class Exchange:
    """A sender, and the peer that it sends to."""

    def __init__(self, client: HttpClient, outcomes: Outcomes, url: str, peer: Peer) -> None:
        self.client = client
        self.outcomes = outcomes
        self.peer = peer
        self._url = url
        self._last = 0
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Clock)
        self.clock = loop

    def post(self) -> int:
        """Send something; gives its number."""
        self._last += 1
        self.client.post(numbered(self._last, self._url))
        return self._last

    async def arrived(self, count: int) -> None:
        """Wait until so many have come."""
        await self.peer.until(lambda: sum(map(len, self.peer.connections)) == count)

    async def answered(self, answer: bytes, connection: int = -1) -> None:
        """Let one be answered."""
        count = len(self.outcomes.found)
        self.peer.answer(answer, connection)
        await self.outcomes.until(count + 1)


@asynccontextmanager
async def exchanging() -> AsyncIterator[Exchange]:
    peer = Peer()
    sending = posting(peer.serve, send_timeout_s=TIMEOUT_S, send_idle_s=IDLE_S)
    async with sending as (client, outcomes, url):
        yield Exchange(client, outcomes, url, peer)


def run(work: Callable[[Exchange], Awaitable[None]]) -> None:
    """Do something in virtual time."""

    async def main() -> None:
        async with exchanging() as exchange:
            await work(exchange)

    with asyncio.Runner(loop_factory=Clock) as runner:
        runner.run(main())


@shows("MQSRM-3.1.7.2.5", 2)
def test_an_answer_is_waited_for_as_long_as_may_be() -> None:
    async def work(exchange: Exchange) -> None:
        one = exchange.post()
        await exchange.arrived(1)
        await exchange.clock.passes(TIMEOUT_S - 1)
        assert exchange.outcomes.found == {}
        await exchange.answered(OK)
        assert exchange.outcomes.found == {one: 200}

    run(work)


@shows("MQSRM-3.1.7.2.5", 2, 11)
def test_who_does_not_answer_in_time_loses_the_connection() -> None:
    async def work(exchange: Exchange) -> None:
        one = exchange.post()
        await exchange.arrived(1)
        await exchange.clock.passes(TIMEOUT_S + 1)
        assert exchange.outcomes.found == {one: PostFailure.LOST}
        await exchange.peer.until(lambda: exchange.peer.ended == [0])

    run(work)


@pytest.mark.parametrize("number", [500, 502, 503])
@shows("MQSRM-3.1.7.2.5", 11)
def test_a_connection_over_which_a_server_fails_is_closed(number: int) -> None:
    async def work(exchange: Exchange) -> None:
        one = exchange.post()
        await exchange.arrived(1)
        await exchange.answered(status(number))
        assert exchange.outcomes.found == {one: number}
        await exchange.peer.until(lambda: exchange.peer.ended == [0])
        exchange.post()
        await exchange.arrived(2)
        assert exchange.peer.connections == [[b"1"], [b"2"]]

    run(work)


def test_those_under_way_beside_a_failure_are_answered_first() -> None:
    async def work(exchange: Exchange) -> None:
        one, two = exchange.post(), exchange.post()
        await exchange.arrived(2)
        await exchange.answered(status(500))
        three = exchange.post()
        await exchange.clock.passes(1)
        # Nothing more goes over a connection that is given up.
        assert exchange.peer.connections == [[b"1", b"2"]]
        await exchange.answered(OK)
        await exchange.arrived(3)
        assert exchange.peer.connections == [[b"1", b"2"], [b"3"]]
        await exchange.answered(OK)
        assert exchange.outcomes.found == {one: 500, two: 200, three: 200}
        assert exchange.peer.ended == [0]

    run(work)


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(200, marks=shows("MQSRM-3.1.7.2.5", 5)),
        pytest.param(400, marks=shows("MQSRM-3.1.7.2.5", 8)),
    ],
)
def test_a_session_is_idle_from_its_last_answer_on(number: int) -> None:
    async def work(exchange: Exchange) -> None:
        for count in (1, 2, 3):
            exchange.post()
            await exchange.arrived(count)
            await exchange.answered(status(number))
            await exchange.clock.passes(IDLE_S - 1)
        # Each answer has begun the pause again.
        assert exchange.peer.connections == [[b"1", b"2", b"3"]]
        assert exchange.peer.ended == []
        await exchange.clock.passes(2)
        await exchange.peer.until(lambda: exchange.peer.ended == [0])
        exchange.post()
        await exchange.arrived(4)
        assert exchange.peer.connections == [[b"1", b"2", b"3"], [b"4"]]

    run(work)


@shows("MQSRM-3.1.7.7", 2)
@shows("MQSRM-3.1.7.9", 1, 2, 6, 7)
@shows("MQSRM-3.1.6.4", 1)
def test_a_queue_manager_connects_to_the_host_of_the_queue(tmp_path: Path) -> None:
    with (
        socket.create_server(("127.52.0.9", 0)) as one,
        socket.create_server(("127.52.0.8", 0)) as other,
        manager(tmp_path / "alpha", "ALPHA", free_port(), [], send_idle_s=1) as alpha,
        application(alpha) as here,
    ):
        for server in (one, other):
            host, port = server.getsockname()

            def states(port: int = port) -> list[str]:
                return [each.state for each in here.outgoing() if f":{port}/" in each.format_name]

            server.settimeout(20)
            name = f"DIRECT=HTTP://{host}:{port}/msmq/private$/orders"
            queue = here.queue(name)
            queue.send("hello")
            connection, _ = server.accept()
            with connection, connection.makefile("rb") as reading:
                connection.settimeout(20)
                head = b"".join(iter(reading.readline, b"\r\n")).lower()
                assert head.startswith(b"post /msmq/private$/orders http/1.1\r\n")
                assert f"\r\nhost: {host}:{port}\r\n".encode() in head
                assert states() == ["CONNECTED"]
                length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
                assert len(reading.read(length)) == length
                connection.sendall(OK)
                # Nothing more comes, and the sender hangs up.
                assert reading.read() == b""
            wait_until(lambda: states() == ["DISCONNECTED"], 20)
