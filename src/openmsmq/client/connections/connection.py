"""A connection: one socket, its engine, and the threads that share them.

Whoever waits for an answer while nobody reads the socket reads it, for everybody: there is no
thread in the background. Writing has its own lock, so that a large send, which a busy queue
manager may hold up, keeps nobody from reading.
"""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import ssl
import threading
from collections.abc import Callable
from time import monotonic  # noqa: TID251 -- the client is no part of the deterministic core
from typing import Final

from openmsmq.api.messages import AnyReply, AnyRequest, FetchPackets, Packets, Welcome
from openmsmq.client.connections.engine import ClientEngine, EngineState, Keeper
from openmsmq.client.connections.slates import Slates
from openmsmq.client.connections.tls import TlsChannel
from openmsmq.client.connections.tls_mismatch import find_mismatch, may_be_mismatch
from openmsmq.client.errors import ConnectionLost, NotSent, TlsMismatch
from openmsmq.client.settings import Settings
from openmsmq.client.steps import Ahead, Collect, Outcome, Step, Until, patience_s
from openmsmq.model.errors import ServiceNotAvailable

_READ_BYTES: Final = 1 << 18
_READ_STEP_S: Final = 1.0
"""How long one read of the socket lasts at most; nearly all have the same limit, set once."""
_CLOSED: Final = "the queue manager closed the connection"


class Connection:
    """One connection to a queue manager, open from its construction until it is lost."""

    def __init__(self, settings: Settings, context: ssl.SSLContext | None) -> None:
        self._settings = settings
        wanted_count = settings.slates if settings.unix_path is not None else 0
        self._engine = ClientEngine(settings.token, slates=wanted_count)
        self._slates = Slates() if wanted_count else None
        self._writing = threading.Lock()
        self._changed = threading.Condition()
        self._reading = False
        self._retired = False
        self._answers: dict[int, AnyReply] = {}
        self._requests: dict[int, AnyRequest] = {}
        self._failure: str | None = None
        self._tls: TlsChannel | None = None
        self._writer = settings.open_socket(settings.connect_timeout_s)
        if settings.unix_path is None:
            self._writer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._writer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # Both ends have time limits of their own: reading and writing go on at the same time.
        self._reader = self._writer.dup()
        self._read_step_s = 0.0
        self._glance = select.poll()
        self._glance.register(self._reader, select.POLLIN)
        try:
            self.welcome = self._greet(context)
        except BaseException:
            self._close_sockets()
            raise

    @property
    def is_lost(self) -> bool:
        """Whether to make another one; looks for an end that came while nobody was reading."""
        with self._changed:
            if self._failure is None and not self._reading and not self._engine.calls_under_way:
                self._look_for_end()
            return self._failure is not None or self._retired

    def perform(self, step: Step, keeper: Keeper) -> Outcome:
        """Carry out one step of a verb."""
        if isinstance(step, Collect):
            return self._wait(step.call, keeper)
        if isinstance(step, Ahead):
            return self._submit(step.request)
        if isinstance(step, Until):
            return self._settle(step.condition)
        return self._wait(self._submit(step), keeper)

    def retire(self) -> None:
        """Begin no more calls; those under way go on until the queue manager ends it."""
        with self._changed:
            self._retired = True
            if not self._engine.calls_under_way:
                self._fail("the connection was given up")

    def close(self) -> None:
        """End the connection; whoever waits for an answer hears of it."""
        with self._changed:
            self._fail("the connection was closed")

    # Writing.

    def _submit(self, request: AnyRequest) -> int:
        with self._writing:
            with self._changed:
                while self._engine.is_full and self._failure is None:
                    self._read_or_wait(None)
                if self._failure is not None or self._retired:
                    raise NotSent(self._failure or "the connection was given up")
                if self._slates is not None and isinstance(request, FetchPackets):
                    request = self._slates.named(request)
                call = self._engine.submit(request)
                self._requests[call] = request
                data = self._output()
            self._write(data)
        return call

    def _output(self) -> bytes:
        data = self._engine.data_to_send()
        return data if self._tls is None else self._tls.encrypt(data)

    def _write(self, data: bytes) -> None:
        try:
            self._writer.sendall(data)
        except OSError as error:
            problem = f"writing to {self._settings.address} failed: {error}"
            with self._changed:
                self._fail(problem)
            # The kernel did not take all of it, so the queue manager has no whole call.
            raise NotSent(problem) from error

    # Reading.

    def _wait(self, call: int, keeper: Keeper) -> AnyReply:
        try:
            with self._changed:
                return self._await(call)
        except ConnectionLost:
            raise
        except BaseException:
            # Most likely an interrupt from the keyboard: the read must not go on unseen.
            self._give_up(call, keeper)
            raise

    def _await(self, call: int) -> AnyReply:
        patience = patience_s(self._requests[call], self._settings.call_timeout_s)
        deadline = None if patience is None else monotonic() + patience
        while call not in self._answers:
            if self._failure is not None:
                raise ConnectionLost(self._failure)
            self._read_or_wait(deadline)
        del self._requests[call]
        reply = self._answers.pop(call)
        if self._slates is not None and isinstance(reply, Packets):
            try:
                return self._slates.shown(reply)
            except ValueError as nonsense:
                self._fail(f"the queue manager put {nonsense}")
                raise ConnectionLost(f"the queue manager put {nonsense}") from None
        return reply

    def _settle(self, condition: Callable[[], bool]) -> int:
        deadline = monotonic() + self._settings.call_timeout_s
        with self._changed:
            while not condition():
                if self._failure is not None:
                    raise ConnectionLost(self._failure)
                self._read_or_wait(deadline)
        return 0

    def _give_up(self, call: int, keeper: Keeper) -> None:
        with contextlib.suppress(ConnectionLost), self._writing:
            with self._changed:
                request = self._requests.pop(call, None)
                reply = self._answers.pop(call, None)
                if request is not None and reply is not None:
                    keeper.gave_up(request)
                    keeper.keep(request, reply)
                    return
                if self._failure is not None:
                    return
                self._engine.give_up(call, keeper)
                data = self._output()
            self._write(data)

    def _read_or_wait(self, deadline: float | None) -> None:
        """Read once, or wait until the one who reads has news. Holds the lock before and after."""
        step_s = _READ_STEP_S
        if deadline is not None:
            remaining = deadline - monotonic()
            if remaining <= 0:
                self._fail(f"{self._settings.address} did not answer in time")
                return
            step_s = min(step_s, remaining)
        if self._reading:
            self._changed.wait(step_s)
            return
        data: bytes | int | None = None
        problem = _CLOSED
        room = None if self._tls is not None else self._engine.room()
        self._reading = True
        self._changed.release()
        try:
            if step_s != self._read_step_s:
                self._reader.settimeout(step_s)
                self._read_step_s = step_s
            receive = self._reader
            data = receive.recv(_READ_BYTES) if room is None else receive.recv_into(room)
        except TimeoutError:
            return
        except OSError as error:
            problem = f"reading from {self._settings.address} failed: {error}"
        finally:
            self._changed.acquire()
            self._reading = False
            self._changed.notify_all()
        self._take(data, problem)

    def _take(self, data: bytes | int | None, problem: str) -> None:
        """Take bytes, or how many of them are in the room of the engine."""
        if not data:
            self._fail(problem)
            return
        try:
            if isinstance(data, int):
                self._answers.update(self._engine.room_filled(data))
                return
            plain = data if self._tls is None else self._tls.decrypt(data)
            self._answers.update(self._engine.receive_data(plain))
        except ssl.SSLError as error:
            self._fail(f"TLS with {self._settings.address} failed: {error}")
        except ConnectionLost as error:
            self._fail(str(error))

    def _look_for_end(self) -> None:
        try:
            if self._glance.poll(0):
                self._take(self._reader.recv(_READ_BYTES), _CLOSED)
        except OSError as error:
            self._fail(f"{self._settings.address} is gone: {error}")

    def _fail(self, problem: str) -> None:
        if self._failure is None:
            self._failure = problem
            self._engine.connection_lost()
            self._close_sockets()
            self._changed.notify_all()

    def _close_sockets(self) -> None:
        # A shutdown wakes a thread that is reading; closing alone would not.
        with contextlib.suppress(OSError):
            self._writer.shutdown(socket.SHUT_RDWR)
        self._writer.close()
        self._reader.close()
        if self._slates is not None:
            self._slates.close()

    # Opening.

    def _greet(self, context: ssl.SSLContext | None) -> Welcome:
        deadline = monotonic() + self._settings.connect_timeout_s
        if context is not None:
            self._tls = TlsChannel(context, self._settings.host_and_port[0])
            self._writer.sendall(self._tls.greet())
            while not self._tls.is_open:
                self._writer.sendall(self._tls.greet(self._read_greeting(deadline)))
        self._writer.sendall(self._output())
        while self._engine.state is EngineState.GREETING:
            data = self._read_greeting(deadline)
            self._engine.receive_data(data if self._tls is None else self._tls.decrypt(data))
        self._writer.settimeout(max(self._settings.call_timeout_s, 0.001))
        welcome = self._engine.welcome
        assert welcome is not None
        if self._slates is not None:
            self._slates.open(welcome.slate_bytes)
        return welcome

    def _read_greeting(self, deadline: float) -> bytes:
        remaining = deadline - monotonic()
        if remaining <= 0:
            raise TimeoutError("no welcome in time")
        self._reader.settimeout(remaining)
        if self._slates is None:
            data = self._reader.recv(_READ_BYTES)
        else:
            data = self._slates.receive(self._reader, _READ_BYTES)
        if not data:
            raise ConnectionResetError("the connection was closed before the welcome")
        return data


def open_connection(settings: Settings, context: ssl.SSLContext | None) -> Connection:
    """Connect; `ConnectionLost` says why that failed, `MsmqError` that it was refused."""
    try:
        return Connection(settings, context)
    except (ServiceNotAvailable, OSError) as error:
        if may_be_mismatch(error) and (
            mismatch := find_mismatch(settings, with_tls=context is not None)
        ):
            raise mismatch from error
        if isinstance(error, ConnectionLost):
            raise
        raise why_not_open(settings, error) from error


def why_not_open(settings: Settings, error: Exception) -> ConnectionLost:
    """Return why no connection came about."""
    if isinstance(error, ServiceNotAvailable):
        return ConnectionLost(str(error))
    if isinstance(error, ssl.SSLError):
        return ConnectionLost(f"TLS with {settings.address} failed: {error}")
    reason = str(error) or "no answer in time"
    return ConnectionLost(
        f"no queue manager answers at {settings.address}: {reason}. Is it running?"
    )


def may_come_back(lost: ConnectionLost) -> bool:
    """Whether it may help to try again later."""
    return not isinstance(lost, TlsMismatch)


def may_be_starting(lost: ConnectionLost) -> bool:
    """Whether nobody listens there: a queue manager that starts is not there for a moment."""
    reason = lost.__cause__
    if isinstance(reason, ConnectionRefusedError | FileNotFoundError):
        return True
    # asyncio has tried several addresses, and tells of them in one text.
    return type(reason) is OSError and f"[Errno {errno.ECONNREFUSED}]" in str(reason)
