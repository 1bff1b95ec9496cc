"""A connection for asyncio: one transport, its engine, and the tasks that share them.

Calls that tasks make in one turn of the loop leave in one write.
"""

from __future__ import annotations

import asyncio
import select
import ssl
from collections.abc import Callable
from typing import Any, Final, cast

from openmsmq.api.messages import AnyReply, AnyRequest, Welcome
from openmsmq.client.connections.connection import why_not_open
from openmsmq.client.connections.engine import ClientEngine, EngineState, Keeper
from openmsmq.client.connections.tls_mismatch import find_mismatch, may_be_mismatch
from openmsmq.client.errors import ConnectionLost, NotSent
from openmsmq.client.settings import Settings
from openmsmq.client.steps import Ahead, Collect, Outcome, Step, Until, patience_s
from openmsmq.model.errors import MsmqError, ServiceNotAvailable

_TURNS_COUNT: Final = 3
"""Turns of the loop that it takes from an end in the kernel to the end of a connection."""

_CLOSE_S: Final = 1.0
_CLOSED: Final = "the queue manager closed the connection"


class AsyncConnection(asyncio.Protocol):
    """One connection to a queue manager, open from its welcome until it is lost."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._engine = ClientEngine(settings.token)
        self._loop = asyncio.get_running_loop()
        self._answers: dict[int, asyncio.Future[AnyReply]] = {}
        self._late: dict[int, AnyReply] = {}
        self._requests: dict[int, AnyRequest] = {}
        self._failure: str | None = None
        self._retired = False
        self._transport: asyncio.Transport | None = None
        self._flush_due = False
        self._may_submit = asyncio.Event()
        self._news = asyncio.Event()
        self._writable = True
        self._ended = asyncio.Event()
        self.welcome: asyncio.Future[Welcome] = self._loop.create_future()

    @property
    def is_lost(self) -> bool:
        """Whether to make another connection."""
        return self._failure is not None or self._retired

    async def look_for_end(self) -> None:
        """Notice an end that the loop has not had the time to tell of."""
        for _ in range(_TURNS_COUNT):
            if self.is_lost or self._engine.calls_under_way or not self._has_news():
                return
            await asyncio.sleep(0)

    def _has_news(self) -> bool:
        if self._transport is None or not hasattr(select, "poll"):
            return False
        poller = select.poll()
        poller.register(self._transport.get_extra_info("socket"), select.POLLIN)
        return bool(poller.poll(0))

    async def perform(self, step: Step, keeper: Keeper) -> Outcome:
        """Carry out one step of a verb."""
        if isinstance(step, Collect):
            return await self._wait(step.call, keeper)
        if isinstance(step, Ahead):
            return await self._submit(step.request)
        if isinstance(step, Until):
            return await self._settle(step.condition)
        return await self._wait(await self._submit(step), keeper)

    def retire(self) -> None:
        """Begin no more calls; those under way go on until the queue manager ends it."""
        self._retired = True
        if not self._engine.calls_under_way:
            self._fail("the connection was given up")

    def close(self) -> None:
        """End the connection; whoever waits for an answer hears of it."""
        self._fail("the connection was closed")

    async def closed(self) -> None:
        """Wait a little until the transport has ended, too."""
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self._ended.wait()
        except TimeoutError:
            if self._transport is not None:
                self._transport.abort()

    # What the transport says.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport and greet the queue manager."""
        # Other loops than asyncio's have transports of their own, which are no subclasses.
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(self._engine.data_to_send())

    def data_received(self, data: bytes) -> None:
        """Take bytes and wake the tasks that they answer."""
        try:
            answered = self._engine.receive_data(data)
        except MsmqError as refusal:
            if not self.welcome.done():
                self.welcome.set_exception(refusal)
            self._fail(str(refusal))
            return
        except ConnectionLost as lost:
            self._fail(str(lost))
            return
        if not self.welcome.done() and self._engine.welcome is not None:
            self.welcome.set_result(self._engine.welcome)
        for call, reply in answered:
            waiting = self._answers[call]
            if waiting.done():
                # Its task was cancelled in this turn of the loop, and will look here.
                self._late[call] = reply
            else:
                waiting.set_result(reply)
        self._news.set()
        self._look_for_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Take the end of the transport."""
        self._ended.set()
        self._fail(_CLOSED if exc is None else f"{self._settings.address} is gone: {exc}")

    def pause_writing(self) -> None:
        """Take no more calls until the transport has sent most of what it has."""
        self._writable = False
        self._may_submit.clear()

    def resume_writing(self) -> None:
        """Take calls again."""
        self._writable = True
        self._look_for_room()

    # Internals.

    def _look_for_room(self) -> None:
        if self._failure is not None or (self._writable and not self._engine.is_full):
            self._may_submit.set()

    async def _submit(self, request: AnyRequest) -> int:
        while self._failure is None and (self._engine.is_full or not self._writable):
            self._may_submit.clear()
            await self._may_submit.wait()
        if self.is_lost:
            raise NotSent(self._failure or "the connection was given up")
        call = self._engine.submit(request)
        self._requests[call] = request
        self._answers[call] = self._loop.create_future()
        self._flush_soon()
        return call

    def _flush_soon(self) -> None:
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_due = False
        if self._failure is None and self._transport is not None:
            self._transport.write(self._engine.data_to_send())

    async def _wait(self, call: int, keeper: Keeper) -> AnyReply:
        waiting = self._answers[call]
        request = self._requests[call]
        try:
            async with asyncio.timeout(patience_s(request, self._settings.call_timeout_s)):
                return await waiting
        except TimeoutError:
            problem = f"{self._settings.address} did not answer in time"
            self._fail(problem)
            raise ConnectionLost(problem) from None
        except asyncio.CancelledError:
            reply = self._late.pop(call, None)
            if waiting.done() and not waiting.cancelled() and waiting.exception() is None:
                reply = waiting.result()
            if reply is not None:
                keeper.gave_up(request)
                keeper.keep(request, reply)
            elif self._engine.state is EngineState.OPEN:
                self._engine.give_up(call, keeper)
                self._flush_soon()
            raise
        finally:
            del self._answers[call], self._requests[call]

    async def _settle(self, condition: Callable[[], bool]) -> int:
        try:
            async with asyncio.timeout(self._settings.call_timeout_s):
                while not condition():
                    if self._failure is not None:
                        raise ConnectionLost(self._failure)
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            problem = f"{self._settings.address} did not answer in time"
            self._fail(problem)
            raise ConnectionLost(problem) from None
        return 0

    def _fail(self, problem: str) -> None:
        if self._failure is not None:
            return
        self._failure = problem
        self._engine.connection_lost()
        everybody: list[asyncio.Future[Any]] = [self.welcome, *self._answers.values()]
        for waiting in everybody:
            if not waiting.done():
                waiting.set_exception(ConnectionLost(problem))
                # Looked at once, so that asyncio does not complain when nobody waits for it.
                waiting.exception()
        self._news.set()
        self._may_submit.set()
        if self._transport is not None:
            self._transport.close()


async def open_async_connection(
    settings: Settings, context: ssl.SSLContext | None
) -> tuple[AsyncConnection, Welcome]:
    """Connect; `ConnectionLost` says why that failed, `MsmqError` that it was refused."""
    connection: AsyncConnection | None = None
    is_open = False
    try:
        async with asyncio.timeout(settings.connect_timeout_s):
            connection = await _connect(settings, context)
            welcome = await connection.welcome
        is_open = True
        return connection, welcome
    except (ServiceNotAvailable, OSError) as error:
        if may_be_mismatch(error) and (
            mismatch := await asyncio.to_thread(
                find_mismatch, settings, with_tls=context is not None
            )
        ):
            raise mismatch from error
        if isinstance(error, ConnectionLost):
            raise
        raise why_not_open(settings, error) from error
    finally:
        # Who breaks the wait off cancels what it waits for, so that says nothing.
        if connection is not None and not is_open:
            connection.close()
            await connection.closed()


async def _connect(settings: Settings, context: ssl.SSLContext | None) -> AsyncConnection:
    loop = asyncio.get_running_loop()
    path = settings.unix_path
    if path is not None:
        _, connection = await loop.create_unix_connection(lambda: AsyncConnection(settings), path)
        return connection
    host, port = settings.host_and_port
    _, connection = await loop.create_connection(
        lambda: AsyncConnection(settings), host, port, ssl=context
    )
    return connection
