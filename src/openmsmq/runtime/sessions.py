"""The connections of sessions: those that other queue managers make, and those to them.

Which packets go over them is the queue manager's business. Here are the sockets, and what keeps
one peer, or many, from taking more of the process than its share: how many connections, how many
bytes at a time, and how long a connection that is over may stay.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from typing import Final, cast

from openmsmq.model.queue import ConnectionStatus
from openmsmq.runtime.addresses import Target, endpoints_of, source_for, target
from openmsmq.runtime.capture_file import CaptureFile, endpoint
from openmsmq.runtime.config_file import ServerConfig
from openmsmq.runtime.limits import (
    ACCEPT_BACKLOG_COUNT,
    SESSION_DATA_PER_TURN_BYTES,
    SESSION_LINGER_MS,
    SESSION_READ_BYTES,
    SESSION_WRITE_BUFFER_MAX_BYTES,
)
from openmsmq.runtime.logs import Event, EventLog, RefusalLog
from openmsmq.runtime.server import Pump
from openmsmq.runtime.start_errors import cannot_listen, os_reason

_EVEN: Final = 2


class ConnectFailed(Exception):
    """A connection could not be made; `status` says at which step."""

    def __init__(self, status: ConnectionStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class SessionConnection(asyncio.BufferedProtocol):
    """The connection of one session, from the moment it is there until it is lost."""

    def __init__(self, sessions: Sessions, number: int | None) -> None:
        """`number` is given by `Connect`; None is for a connection that a peer has made."""
        self.pending: list[bytes] = []
        self.peer = "?"
        self.accepted = number is None
        self.transport: asyncio.Transport
        self._sessions = sessions
        self._number = number
        self._linger: asyncio.TimerHandle | None = None
        self._recorded = False

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        self.transport = cast(asyncio.Transport, transport)
        self.peer = str(_peer_name(transport)[0])
        self._number = self._sessions.admit(self, self._number)
        if self._number is None:
            self.transport.abort()
            return
        self.transport.set_write_buffer_limits(high=SESSION_WRITE_BUFFER_MAX_BYTES)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._record_opened()
        self._sessions.announce(self, self._number)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - the loop's own guess
        """Lend the buffer that all sessions share; what comes in is taken out at once."""
        return self._sessions.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Hand on the bytes that have come; those of a session that is over go nowhere."""
        if self._number is not None:
            data = bytes(self._sessions.buffer[:nbytes])
            self._record(data, received=True)
            self._sessions.received(self._number, data)

    def pause_writing(self) -> None:
        """Give up a peer that takes nothing and still makes us write."""
        self._sessions.log.warning(
            Event.SESSION_CUT,
            session=self._number,
            peer=self.peer,
            reason=f"it has not taken {SESSION_WRITE_BUFFER_MAX_BYTES} bytes that wait for it",
        )
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        if self._linger is not None:
            self._linger.cancel()
        if self._recorded and self._sessions.capture is not None:
            self._sessions.capture.closed(*self._endpoints)
        self._sessions.lost(self, self._number, "" if exc is None else str(exc))

    # What the sessions call.

    def flush(self) -> None:
        """Write what is pending."""
        pending, self.pending = self.pending, []
        if self.transport.is_closing():
            return
        for data in pending:
            self._record(data, received=False)
        self.transport.writelines(pending)

    def finish(self) -> None:
        """End in order: what was written still leaves, and the peer hangs up, if it does so soon.

        A close would reset the connection if the peer is writing, and lose our last bytes.
        """
        if self.pending:
            self.flush()
        self._number = None
        if self._linger is not None or self.transport.is_closing():
            return
        try:
            self.transport.write_eof()
        except OSError:
            # The peer was faster.
            self.transport.abort()
            return
        self._linger = asyncio.get_running_loop().call_later(
            SESSION_LINGER_MS / 1000, self.transport.abort
        )

    # The recording.

    def _record_opened(self) -> None:
        capture = self._sessions.capture
        if capture is None:
            return
        here = endpoint(*self.transport.get_extra_info("sockname")[:2])
        there = endpoint(*_peer_name(self.transport)[:2])
        self._endpoints = (here, there)
        self._recorded = True
        capture.opened(*((there, here) if self.accepted else (here, there)))

    def _record(self, data: bytes, *, received: bool) -> None:
        if self._recorded and self._sessions.capture is not None:
            here, there = self._endpoints
            source, destination = (there, here) if received else (here, there)
            self._sessions.capture.stream(source, destination, data)


class Sessions:
    """All connections to other queue managers, by the number of their session."""

    def __init__(
        self, config: ServerConfig, pump: Pump, log: EventLog, capture: CaptureFile | None
    ) -> None:
        self.log = log
        self.capture = capture
        self.buffer: Final = memoryview(bytearray(SESSION_READ_BYTES))
        self.endpoints: list[tuple[str, int]] = []
        """Where peers connect to."""
        self._config = config
        self._pump = pump
        self._listener: asyncio.Server | None = None
        self._listening = asyncio.Event()
        self._by_number: dict[int, SessionConnection] = {}
        self._open: set[SessionConnection] = set()
        self._accepted: Counter[str] = Counter()
        self._attempts: dict[int, asyncio.Task[None]] = {}
        self._unflushed: dict[SessionConnection, None] = {}
        self._turn_bytes = 0
        self._last_accepted = 0
        self._closing = False
        self._all_gone = asyncio.Event()
        self._refusals = RefusalLog(log)

    @property
    def accepted_count(self) -> int:
        """How many connections of peers there are, those that are ending included."""
        return self._accepted.total()

    # Beginning.

    async def listen(self) -> None:
        """Let peers in, or raise `StartError`."""
        address, port = self._config.address, self._config.session_port
        try:
            self._listener = await asyncio.get_running_loop().create_server(
                lambda: SessionConnection(self, None), address, port, backlog=ACCEPT_BACKLOG_COUNT
            )
        except OSError as error:
            raise cannot_listen(
                error, address, port, key="MsmqIpPort", switch="--no-transfer"
            ) from None
        self.endpoints = endpoints_of(self._listener)
        self._listening.set()
        for host, used in self.endpoints:
            self.log.info(Event.LISTENING, door="sessions", address=host, port=used)

    # What the queue manager wants.

    def connect(self, session: int, address: str) -> None:
        """Begin to make a connection; how that goes is an input."""
        if not self._closing:
            self._attempts[session] = asyncio.get_running_loop().create_task(
                self._attempt(session, address)
            )

    def send(self, session: int, data: bytes) -> None:
        """Write at the next `flush`; a session that is over takes nothing."""
        connection = self._by_number.get(session)
        if connection is not None:
            connection.pending.append(data)
            self._unflushed[connection] = None

    def disconnect(self, session: int) -> None:
        """End a session, and forget it."""
        attempt = self._attempts.pop(session, None)
        if attempt is not None:
            attempt.cancel()
        connection = self._by_number.pop(session, None)
        if connection is not None:
            connection.finish()

    def flush(self) -> None:
        """Write what the sessions were given in this turn."""
        self._turn_bytes = 0
        if self._unflushed:
            unflushed, self._unflushed = self._unflushed, {}
            for connection in unflushed:
                if connection.pending:
                    connection.flush()
        if self.capture is not None:
            self.capture.flush()

    async def _attempt(self, session: int, address: str) -> None:
        # A queue manager may want to connect while it still starts.
        await self._listening.wait()
        loop = asyncio.get_running_loop()
        try:
            made = await self._connected_socket(address)
            await loop.create_connection(lambda: SessionConnection(self, session), sock=made)
        except ConnectFailed as error:
            self._failed(session, address, error.status, str(error))
        except OSError as error:
            status = ConnectionStatus.SOCKET_CONNECT_FAILURE
            self._failed(session, address, status, os_reason(error))

    async def _connected_socket(self, address: str) -> socket.socket:
        where = target(address, self._config.session_port)
        if where is None:
            raise ConnectFailed(
                ConnectionStatus.SOCKET_CONNECT_FAILURE, f"{address} is not an IP address"
            )
        made = _bound_socket(where, source_for((host for host, _ in self.endpoints), address))
        try:
            async with asyncio.timeout(self._config.connect_timeout_ms / 1000):
                await asyncio.get_running_loop().sock_connect(made, where.address)
        except TimeoutError:
            made.close()
            raise ConnectFailed(
                ConnectionStatus.SOCKET_CONNECT_FAILURE,
                f"no connection within {self._config.connect_timeout_ms} ms",
            ) from None
        except BaseException:
            made.close()
            raise
        return made

    def _failed(self, session: int, address: str, status: ConnectionStatus, reason: str) -> None:
        if self._attempts.pop(session, None) is not None:
            self.log.debug(Event.SESSION_FAILED, session=session, peer=address, reason=reason)
            self._pump.put_in(self._pump.engine.session_failed, session, status)

    # What connections report.

    def admit(self, connection: SessionConnection, number: int | None) -> int | None:
        """Take up a connection under its number; None when there is no place for it."""
        if number is not None:
            # The queue manager may have changed its mind meanwhile.
            return number if self._attempts.pop(number, None) is not None else None
        reason = self._reason_to_refuse(connection.peer)
        if reason is not None:
            self._refusals.note(connection.peer, "sessions", reason)
            return None
        self._last_accepted += _EVEN
        return self._last_accepted

    def announce(self, connection: SessionConnection, number: int) -> None:
        """Tell the queue manager of a connection that was admitted."""
        self._open.add(connection)
        self._by_number[number] = connection
        engine = self._pump.engine
        if connection.accepted:
            self._accepted[connection.peer] += 1
            self.log.debug(Event.SESSION_ACCEPTED, session=number, peer=connection.peer)
            self._pump.put_in(engine.session_accepted, number, connection.peer)
        else:
            self.log.debug(Event.SESSION_CONNECTED, session=number, peer=connection.peer)
            self._pump.put_in(engine.session_connected, number)

    def received(self, number: int, data: bytes) -> None:
        """Hand in bytes; when many have come, have them made durable before more come."""
        self._pump.put_in(self._pump.engine.session_data, number, data)
        self._turn_bytes += len(data)
        if self._turn_bytes >= SESSION_DATA_PER_TURN_BYTES:
            self._pump.turn()

    def lost(self, connection: SessionConnection, number: int | None, reason: str) -> None:
        """Forget a connection; the queue manager hears of it unless it has ended it itself."""
        if connection not in self._open:
            return
        self._open.discard(connection)
        self._unflushed.pop(connection, None)
        if connection.accepted:
            self._accepted[connection.peer] -= 1
            if self._accepted[connection.peer] == 0:
                del self._accepted[connection.peer]
        self.log.debug(Event.SESSION_ENDED, session=number, peer=connection.peer, reason=reason)
        if number is not None and self._by_number.pop(number, None) is not None:
            self._pump.put_in(self._pump.engine.session_lost, number)
        if not self._open:
            self._all_gone.set()

    def _reason_to_refuse(self, peer: str) -> str | None:
        config = self._config
        if self._closing or self._pump.refusal is not None:
            return "the queue manager is stopping"
        if self._accepted[peer] >= config.transfer_connections_per_peer_max:
            return (
                f"{config.transfer_connections_per_peer_max} connections from this address are "
                "open already (transfer_connections_per_peer_max)"
            )
        if self.accepted_count >= config.transfer_connections_max:
            return (
                f"{config.transfer_connections_max} connections are open already "
                "(transfer_connections_max)"
            )
        return None

    # End.

    def stop_listening(self) -> None:
        """Let nobody in any more."""
        if self._listener is not None:
            self._listener.close()

    def call_off_attempts(self) -> None:
        """Make no connection any more."""
        self._closing = True
        for attempt in self._attempts.values():
            attempt.cancel()
        self._attempts.clear()

    async def close(self) -> None:
        """End all sessions in order; those that do not take their bytes in time are cut."""
        self.call_off_attempts()
        self._by_number.clear()
        for connection in list(self._open):
            connection.finish()
        if self._open:
            self._all_gone.clear()
            try:
                async with asyncio.timeout(self._config.stop_timeout_ms / 1000):
                    await self._all_gone.wait()
            except TimeoutError:
                for connection in list(self._open):
                    connection.transport.abort()


def _bound_socket(where: Target, source: str | None) -> socket.socket:
    """Make a socket that comes from an address of this queue manager."""
    try:
        made = socket.socket(where.family, socket.SOCK_STREAM)
    except OSError as error:
        raise ConnectFailed(ConnectionStatus.SOCKET_CREATE_FAILURE, os_reason(error)) from None
    made.setblocking(False)
    if source is not None:
        try:
            made.bind((source, 0))
        except OSError as error:
            made.close()
            raise ConnectFailed(
                ConnectionStatus.SOCKET_BIND_FAILURE, f"{source}: {os_reason(error)}"
            ) from None
    return made


def _peer_name(transport: asyncio.BaseTransport) -> tuple[str, int]:
    """Give who is at the other end; nobody, if he has gone again before we looked."""
    found: tuple[str, int] | None = transport.get_extra_info("peername")
    return found or ("0.0.0.0", 0)
