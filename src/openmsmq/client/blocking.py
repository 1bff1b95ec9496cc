r"""The client for ordinary programs: every verb waits for its answer.

    with connect("127.0.0.2") as manager:
        orders = manager.create_queue(r"private$\orders")
        orders.send("order 1", label="order")
        message = orders.receive(timeout=5)

Threads may share a connection and its queues: calls of several threads are under way at the same
time. A transaction and a cursor belong to one thread at a time.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from time import monotonic, sleep  # noqa: TID251 -- the client is no part of the core
from types import TracebackType
from typing import Any, Final, ParamSpec, Self, TypeVar, Unpack

from openmsmq.client.connections.connection import (
    Connection,
    may_be_starting,
    may_come_back,
    open_connection,
)
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
    Waiting,
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
        self._opening = threading.Lock()
        self._closed = False
        self._connection = self._open(settings.start_wait_s, may_be_starting)
        manager.context.connected(self._connection.welcome)

    def run(self, make: Callable[[], Steps[Result]], keeper: Keeper) -> Result:
        """Carry out a verb, again on a new connection when that is safe."""
        run = VerbRun(make)
        while True:
            connection = self._ready()
            try:
                step = run.start()
                while step is not None:
                    step = run.answered(connection.perform(step, keeper))
                return run.result
            except ConnectionLost as lost:
                connection.retire()
                run.lost(lost)

    @property
    def is_closed(self) -> bool:
        """Whether it has ended for good."""
        return self._closed

    def close(self) -> None:
        """End the connection for good."""
        self._closed = True
        self._connection.close()

    def _ready(self) -> Connection:
        if not self._connection.is_lost and not self._closed:
            return self._connection
        with self._opening:
            if self._closed:
                raise ConnectionLost("the connection was closed")
            if self._connection.is_lost:
                self._places.leave()
                made = self._open(self.settings.reconnect_within_s, may_come_back)
                # Before others see it: what they have of the old one must not go over the new one.
                self._manager.context.connected(made.welcome)
                self._connection = made
            return self._connection

    def _open(self, within_s: float, may_pass: Callable[[ConnectionLost], bool]) -> Connection:
        """Connect, again and again for a while if what is in the way may pass."""
        give_up = monotonic() + within_s
        pause = _FIRST_PAUSE_S
        self._places.begin()
        while True:
            try:
                connection = open_connection(self._places.current, self._tls)
                self._places.require_same(self._manager.context.manager, connection.welcome.manager)
                return connection
            except ConnectionLost as lost:
                if not self._closed and self._places.pass_on(lost):
                    continue
                may_help = may_pass(lost) or self._places.are_several
                if self._closed or monotonic() + pause > give_up or not may_help:
                    raise
            sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)


class Transaction(AnyTransaction, Waiting):
    """Sends and receives that take effect together; `with` commits, or aborts on an exception."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.state is not TransactionState.ACTIVE:
            return
        if error is None:
            self.commit()
        elif not isinstance(error, ConnectionLost):
            self.abort()


class Cursor(AnyCursor, Waiting):
    """A place in a queue, for looking at one message after the other."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # What was open of it has ended with the connection, if that was closed before.
        if not self.connection.is_closed:
            self.close()


class Queue(AnyQueue, Waiting):
    """A queue to send to and to read from."""

    connection: SteadyConnection
    cursor_kind: type[Cursor] = Cursor

    def cursor(self) -> Cursor:
        """Make a cursor at the front of the queue."""
        return self.cursor_kind(self, AccessMode.RECEIVE)

    def messages(
        self, timeout: float | None = None, *, transaction: TransactionHandle | None = None
    ) -> Iterator[ReceivedMessage]:
        """Take one message after the other, until none comes within `timeout`.

        Each message is received when it is asked for, so that leaving the loop loses none.
        """
        while True:
            try:
                message = self.receive(timeout, transaction=transaction)
            except ReceiveTimeout:
                return
            yield message

    def browse(self) -> Iterator[ReceivedMessage]:
        """Look at the messages that are there, from first to last, and leave them."""
        with self.cursor_kind(self, AccessMode.PEEK) as cursor:
            while True:
                try:
                    message = cursor.next()
                except ReceiveTimeout:
                    return
                yield message

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # What was open of it has ended with the connection, if that was closed before.
        if not self.connection.is_closed:
            self.close()


class QueueManager(AnyManager, Waiting):
    """A queue manager that this application is connected to."""

    connection: SteadyConnection

    def __init__(self, settings: Settings, context: ssl.SSLContext | None = None) -> None:
        super().__init__(settings.ciphers)
        self._queue_kind = traced_queues(Queue) if settings.telemetry else Queue
        self.connection = SteadyConnection(settings, self, context)

    def create_queue(
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
        created = self._create(path, exist_ok=exist_ok, **options)
        return self.queue(created.path_name, formatter=formatter)

    def queue(self, name: str, *, formatter: str | Formatter | None = None) -> Queue:
        """Name a queue, by path name or format name; it is opened when it is first used."""
        return self._queue_kind(self.connection, self, name, find_formatter(formatter))

    def open(
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
            queue.open(access)
        return queue

    def begin(self, *, distributed: bool = False) -> Transaction:
        """Begin a transaction. A distributed one (DTC) is refused: `NoTransactionCoordinator`."""
        transaction = Transaction(self.connection, self)
        transaction.begin(distributed=distributed)
        return transaction

    def transaction(self) -> Transaction:
        """Begin a transaction, for `with`: commits at the end, aborts on an exception."""
        return self.begin()

    def close(self) -> None:
        """End the connection: waiting reads end, transactions that are not prepared abort."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(
    address: str | Sequence[str] | Settings = "127.0.0.1",
    *,
    context: ssl.SSLContext | None = None,
    **settings: Any,
) -> QueueManager:
    """Connect to a queue manager: by `Settings`, or by an address and settings by name.

    A list has the addresses of one queue manager that is on several computers.

    `context` is for TLS with wishes of its own, such as a client certificate.
    """
    return QueueManager(made_settings(address, settings), context)
