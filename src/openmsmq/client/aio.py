r"""The client for asyncio: the same verbs as the blocking client, to be awaited.

    async with connect("127.0.0.2") as manager:
        orders = await manager.create_queue(r"private$\orders")
        await orders.send("order 1", label="order")
        message = await orders.receive(timeout=5)

Tasks share a connection: calls of several tasks are under way at the same time. A read that is
cancelled loses nothing: a message that comes too late for it is given to the next `receive`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager
from time import monotonic  # noqa: TID251 -- the client is no part of the core
from types import TracebackType
from typing import Any, Final, ParamSpec, Self, TypeVar, Unpack

from openmsmq.client.connections.aio_connection import AsyncConnection, open_async_connection
from openmsmq.client.connections.connection import may_be_starting, may_come_back
from openmsmq.client.connections.engine import Keeper
from openmsmq.client.connections.places import Places
from openmsmq.client.errors import ConnectionLost
from openmsmq.client.formatters import Formatter, find_formatter
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.client.settings import Settings, made_settings
from openmsmq.client.shells import (
    AnyCursor,
    AnyManager,
    AnyQueue,
    AnyTransaction,
    Awaited,
    traced_queues,
)
from openmsmq.client.steps import Steps, VerbRun
from openmsmq.client.verbs.manager import ManagerHandle, QueueOptions
from openmsmq.client.verbs.transactions import TransactionHandle
from openmsmq.model.errors import ReceiveTimeout
from openmsmq.model.queue import AccessMode, ShareMode
from openmsmq.model.transaction import TransactionState

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_FIRST_PAUSE_S: Final = 0.02
_LONGEST_PAUSE_S: Final = 1.0


class SteadyConnection:
    """Carries out the steps of verbs, over a connection that is made again when it was lost."""

    def __init__(
        self, settings: Settings, manager: ManagerHandle, context: ssl.SSLContext | None
    ) -> None:
        self.settings = settings
        self._tls = settings.tls_context() if context is None else context
        self._manager = manager
        self._places = Places(settings)
        self._opening = asyncio.Lock()
        self._closed = False
        self._connection: AsyncConnection | None = None

    async def open(self) -> None:
        """Connect for the first time."""
        await self._open(self.settings.start_wait_s, may_be_starting)

    async def run(self, make: Callable[[], Steps[Result]], keeper: Keeper) -> Result:
        """Carry out a verb, again on a new connection when that is safe."""
        run = VerbRun(make)
        while True:
            connection = await self._ready()
            try:
                step = run.start()
                while step is not None:
                    step = run.answered(await connection.perform(step, keeper))
                return run.result
            except ConnectionLost as lost:
                connection.retire()
                run.lost(lost)

    @property
    def is_closed(self) -> bool:
        """Whether it has ended for good."""
        return self._closed

    async def close(self) -> None:
        """End the connection for good."""
        self._closed = True
        if self._connection is not None:
            self._connection.close()
            await self._connection.closed()

    async def _ready(self) -> AsyncConnection:
        connection = self._connection
        if connection is not None:
            await connection.look_for_end()
            if not connection.is_lost:
                return connection
        async with self._opening:
            if self._closed:
                raise ConnectionLost("the connection was closed")
            if self._connection is not None and not self._connection.is_lost:
                return self._connection
            if self._connection is not None:
                self._places.leave()
            return await self._open(self.settings.reconnect_within_s, may_come_back)

    async def _open(
        self, within_s: float, may_pass: Callable[[ConnectionLost], bool]
    ) -> AsyncConnection:
        """Connect, again and again for a while if what is in the way may pass."""
        give_up = monotonic() + within_s
        pause = _FIRST_PAUSE_S
        self._places.begin()
        while True:
            try:
                return await self._open_connection()
            except ConnectionLost as lost:
                if not self._closed and self._places.pass_on(lost):
                    continue
                may_help = may_pass(lost) or self._places.are_several
                if self._closed or monotonic() + pause > give_up or not may_help:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    async def _open_connection(self) -> AsyncConnection:
        connection, welcome = await open_async_connection(self._places.current, self._tls)
        if self._closed:
            connection.close()
            raise ConnectionLost("the connection was closed")
        try:
            self._places.require_same(self._manager.context.manager, welcome.manager)
        except ConnectionLost:
            connection.close()
            raise
        self._connection = connection
        self._manager.context.connected(welcome)
        return connection


class Transaction(AnyTransaction, Awaited):
    """Sends and receives that take effect together."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.state is not TransactionState.ACTIVE:
            return
        if error is None:
            await self.commit()
        elif not isinstance(error, ConnectionLost):
            await self.abort()


class Cursor(AnyCursor, Awaited):
    """A place in a queue, for looking at one message after the other."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        # What was open of it has ended with the connection, if that was closed before.
        if not self.connection.is_closed:
            await self.close()


class Queue(AnyQueue, Awaited):
    """A queue to send to and to read from."""

    connection: SteadyConnection
    cursor_kind: type[Cursor] = Cursor

    def cursor(self) -> Cursor:
        """Make a cursor at the front of the queue."""
        return self.cursor_kind(self, AccessMode.RECEIVE)

    async def messages(
        self,
        timeout: float | None = None,  # noqa: ASYNC109 -- ends the loop, and not with an error
        *,
        transaction: TransactionHandle | None = None,
    ) -> AsyncIterator[ReceivedMessage]:
        """Take one message after the other, until none comes within `timeout`.

        Each message is received when it is asked for, so that leaving the loop loses none.
        """
        while True:
            try:
                message = await self.receive(timeout, transaction=transaction)
            except ReceiveTimeout:
                return
            yield message

    async def browse(self) -> AsyncIterator[ReceivedMessage]:
        """Look at the messages that are there, from first to last, and leave them."""
        async with self.cursor_kind(self, AccessMode.PEEK) as cursor:
            while True:
                try:
                    message = await cursor.next()
                except ReceiveTimeout:
                    return
                yield message

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        # What was open of it has ended with the connection, if that was closed before.
        if not self.connection.is_closed:
            await self.close()


class QueueManager(AnyManager, Awaited):
    """A queue manager that this application is connected to."""

    connection: SteadyConnection

    def __init__(self, settings: Settings, context: ssl.SSLContext | None = None) -> None:
        super().__init__(settings.ciphers)
        self._queue_kind = traced_queues(Queue) if settings.telemetry else Queue
        self.connection = SteadyConnection(settings, self, context)

    async def create_queue(
        self,
        path: str,
        *,
        formatter: str | Formatter | None = None,
        exist_ok: bool = False,
        **options: Unpack[QueueOptions],
    ) -> Queue:
        r"""Create a queue; `path` is a path name such as `private$\orders`.

        With `exist_ok`, a queue that is there already is as good, if it has the properties that
        are asked for; `QueueExists` says which differ.
        """
        created = await self._create(path, exist_ok=exist_ok, **options)
        return self.queue(created.path_name, formatter=formatter)

    def queue(self, name: str, *, formatter: str | Formatter | None = None) -> Queue:
        """Name a queue, by path name or format name; it is opened when it is first used."""
        return self._queue_kind(self.connection, self, name, find_formatter(formatter))

    async def open(
        self,
        name: str,
        access: AccessMode | None = None,
        share: ShareMode = ShareMode.DENY_NONE,
        *,
        formatter: str | Formatter | None = None,
    ) -> Queue:
        """Open a queue. With an access mode it is opened now, and for that only."""
        found = find_formatter(formatter)
        queue = self._queue_kind(self.connection, self, name, found, access, share)
        if access is not None:
            await queue.open(access)
        return queue

    async def begin(self, *, distributed: bool = False) -> Transaction:
        """Begin a transaction. A distributed one (DTC) is refused: `NoTransactionCoordinator`."""
        transaction = Transaction(self.connection, self)
        await transaction.begin(distributed=distributed)
        return transaction

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Begin a transaction; it commits at the end, and aborts on an exception."""
        async with await self.begin() as transaction:
            yield transaction

    async def close(self) -> None:
        """End the connection: waiting reads end, transactions that are not prepared abort."""
        await self.connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _Connecting(Awaitable[QueueManager]):
    """What `connect` gives: to be awaited, or entered with `async with`."""

    def __init__(self, settings: Settings, context: ssl.SSLContext | None) -> None:
        self._manager = QueueManager(settings, context)

    async def _open(self) -> QueueManager:
        await self._manager.connection.open()
        return self._manager

    def __await__(self) -> Generator[Any, None, QueueManager]:
        return self._open().__await__()

    async def __aenter__(self) -> QueueManager:
        return await self._open()

    async def __aexit__(self, *_: object) -> None:
        await self._manager.close()


def connect(
    address: str | Sequence[str] | Settings = "127.0.0.1",
    *,
    context: ssl.SSLContext | None = None,
    **settings: Any,
) -> _Connecting:
    """Connect to a queue manager: by `Settings`, or by an address and settings by name.

    A list has the addresses of one queue manager that is on several computers.

    Await it, or enter it with `async with`. `context` is for TLS with wishes of its own.
    """
    return _Connecting(made_settings(address, settings), context)
