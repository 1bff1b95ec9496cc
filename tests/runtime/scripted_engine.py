"""An engine without a mind of its own: it notes what it is told, and does what a test says."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, cast

from openmsmq.api.messages import AnyRequest
from openmsmq.manager.outputs import Output, Persist
from openmsmq.model.clock import Instant
from openmsmq.model.errors import MsmqError
from openmsmq.model.queue import ConnectionStatus
from openmsmq.protocol.session_states import CloseReason
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.logs import EventLog
from openmsmq.runtime.server import ExitCode, Pump
from openmsmq.runtime.sessions.network import TransferNetwork
from openmsmq.security.access.callers import Caller
from openmsmq.security.access.sids import Sid
from openmsmq.storage.memory import MemoryStore
from openmsmq.storage.port import Batch

if TYPE_CHECKING:
    from openmsmq.manager.manager import QueueManager

WITHIN_S = 60
"""A busy computer is not a defect: whoever waits so long waits for what never comes."""


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in an event loop of its own."""

    @functools.wraps(test)
    def run(*arguments: Any, **fixtures: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*arguments, **fixtures), 3 * WITHIN_S))

    return run


async def soon(wanted: Awaitable[Any]) -> Any:
    return await asyncio.wait_for(wanted, WITHIN_S)


def free_port(*addresses: str) -> int:
    """Find a port that is free for TCP and UDP on all addresses.

    It is not one of those that the system gives away, so it stays free until it is used.
    """
    draw = random.Random()
    while True:
        port = draw.randrange(10_000, 30_000)
        with contextlib.ExitStack() as probes, contextlib.suppress(OSError):
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                for address in addresses:
                    family = socket.AF_INET6 if ":" in address else socket.AF_INET
                    probes.enter_context(socket.socket(family, kind)).bind((address, port))
            return port


class ScriptedEngine:
    """What was heard is in `heard`, as a name and facts; what comes back is up to the test."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []
        self.outputs: list[Output] = []
        self.react: Callable[[tuple[Any, ...]], list[Output]] = lambda _: []
        self.persists_on_data = False
        self.pump: Pump
        self.news = asyncio.Event()
        self._dirty = False
        self._ticket = 0

    # For tests.

    def give(self, *outputs: Output) -> None:
        self.outputs += outputs
        self.pump.schedule()

    async def until_true(self, condition: Callable[[], object]) -> None:
        """Wait for something that comes with news."""
        while not condition():
            self.news.clear()
            await soon(self.news.wait())

    async def until(self, name: str, count: int = 1) -> tuple[Any, ...]:
        """Wait for the n-th input of a name."""
        await self.until_true(lambda: len(self.all(name)) >= count)
        return self.all(name)[count - 1]

    def all(self, name: str) -> list[tuple[Any, ...]]:
        return [facts for what, *facts in self.heard if what == name]  # type: ignore[misc]

    def data(self, session: int) -> bytes:
        return b"".join(data for number, data in self.all("data") if number == session)

    async def until_data(self, session: int, size: int) -> bytes:
        await self.until_true(lambda: len(self.data(session)) >= size)
        return self.data(session)

    def _hear(self, *facts: Any) -> None:
        self.heard.append(facts)
        self.news.set()
        self.outputs += self.react(facts)

    # The engine.

    def connected(self, _connection: int, _caller: Caller) -> None:
        raise AssertionError("no application connects here")

    def user_of(self, _certificate: bytes) -> Sid | None:
        raise AssertionError("no application connects here")

    def connection_lost(self, _connection: int, _now: Instant) -> None:
        raise AssertionError("no application connects here")

    def request(self, _connection: int, _call: int, _request: AnyRequest, _now: Instant) -> None:
        raise AssertionError("no application connects here")

    def session_accepted(self, session: int, address: str, _now: Instant, peer: str = "") -> None:
        self._hear("accepted", session, address, *([peer] if peer else []))

    def session_connected(self, session: int, _now: Instant, peer: str = "") -> None:
        self._hear("connected", session, *([peer] if peer else []))

    def session_failed(
        self, session: int, status: ConnectionStatus, _now: Instant, reason: str = ""
    ) -> None:
        self._hear("failed", session, status, *([reason] if reason else []))

    def session_data(self, session: int, data: bytes, _now: Instant) -> None:
        self._dirty = self.persists_on_data
        self._hear("data", session, data)

    def session_held_bytes(self, _session: int) -> int:
        return 0

    def session_lost(
        self, session: int, _now: Instant, reason: CloseReason = CloseReason.PEER_CLOSED
    ) -> None:
        self._hear("lost", session, *([] if reason is CloseReason.PEER_CLOSED else [reason]))

    def host_resolved(self, host: str, addresses: tuple[str, ...], _now: Instant) -> None:
        self._hear("resolved", host, addresses)

    def datagram_received(
        self, address: str, port: int, data: bytes, _now: Instant, *, is_answer: bool
    ) -> None:
        self._hear("answer" if is_answer else "datagram", address, port, data)

    def persisted(self, ticket: int, _now: Instant) -> None:
        self._hear("persisted", ticket)

    def persist_failed(self, ticket: int, _error: MsmqError, _now: Instant) -> None:
        self._hear("persist failed", ticket)

    def wake(self, _now: Instant) -> None:
        self._hear("woken")

    def take_outputs(self) -> list[Output]:
        outputs, self.outputs = self.outputs, []
        if self._dirty:
            self._dirty = False
            self._ticket += 1
            outputs.append(Persist(self._ticket, Batch([(b"x", b"y")])))
        return outputs

    def next_wake_ms(self, _now: Instant) -> int | None:
        return None


class Peer:
    """The other end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def has_been_cut(self) -> bool:
        """Whether nothing more comes, by an end or a reset."""
        with contextlib.suppress(ConnectionError):
            return bool(await soon(self.reader.read()) == b"")
        return True

    async def close(self) -> None:
        self.writer.transport.abort()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await soon(self.writer.wait_closed())


class Office:
    """An engine with its sockets, the log of what they did, and those who connect to them."""

    def __init__(self, config: ServerConfig) -> None:
        self.config = config
        self.engine = ScriptedEngine()
        self.lines: list[str] = []
        self.ended: list[ExitCode] = []
        self.peers: list[Peer] = []
        self.port = config.session_port
        log = EventLog("text", "debug", self._note)
        # It says what a queue manager would, as far as these tests go.
        engine = cast("QueueManager", self.engine)
        self.pump = Pump(engine, MemoryStore(), log, self.ended.append)
        self.engine.pump = self.pump
        self.network = self.pump.network = TransferNetwork(config, self.pump, log)

    def _note(self, line: str) -> None:
        self.lines.append(line)
        self.engine.news.set()

    def logged(self, event: str) -> list[str]:
        return [line for line in self.lines if line.split()[2] == event]

    async def until_logged(self, event: str) -> None:
        await self.engine.until_true(lambda: self.logged(event))

    async def called(self, source: str = "127.0.0.3") -> Peer:
        """Connect to this office."""
        opened = asyncio.open_connection(
            self.config.address, self.port, local_addr=(source, 0), limit=1 << 26
        )
        self.peers.append(Peer(*await soon(opened)))
        return self.peers[-1]

    @contextlib.asynccontextmanager
    async def neighbour(self, address: str = "127.0.0.3") -> AsyncIterator[asyncio.Queue[Peer]]:
        """Wait for connections of this office at another address."""
        arrivals: asyncio.Queue[Peer] = asyncio.Queue()

        def arrived(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.peers.append(Peer(reader, writer))
            arrivals.put_nowait(self.peers[-1])

        async with await asyncio.start_server(arrived, address, self.port, limit=1 << 26):
            yield arrivals

    async def close(self) -> None:
        self.network.stop_listening()
        for peer in self.peers:
            await peer.close()
        await self.network.close()
        self.pump.close()


@contextlib.asynccontextmanager
async def office(
    address: str = "127.0.0.2", *, listen: bool = True, **options: Any
) -> AsyncIterator[Office]:
    """Run an engine's sockets on an address, on ports that are free on the neighbours' too."""
    neighbours = ["::1"] if ":" in address else ["127.0.0.2", "127.0.0.3", "127.0.0.4"]
    port = free_port(*neighbours)
    options = {"session_port": port, "ping_port": port, "data": "none", **options}
    opened = Office(ServerConfig(name="ALPHA", address=address, **options))
    try:
        if listen:
            await opened.network.listen()
        yield opened
    finally:
        await opened.close()
