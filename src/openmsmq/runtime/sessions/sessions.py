"""The connections of sessions: those that other queue managers make, and those to them.

Which packets go over them is the queue manager's business. Here are the sockets, and what keeps
one peer, or many, from taking more of the process than its share: `PeerLimits` decides who is let
in and for whom too much is held; how many bytes are read at a time, how long a peer may leave its
bytes lying, and how long a connection that is over may stay, is decided here.
"""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from typing import Final, cast

from openmsmq.model.clock import Instant
from openmsmq.model.queue import ConnectionStatus
from openmsmq.protocol.session_states import CloseReason
from openmsmq.runtime.addresses import peer_name
from openmsmq.runtime.admission.guarded_listener import Arrivals, GuardedListener, ListenerPort
from openmsmq.runtime.admission.peer_limits import PeerLimits
from openmsmq.runtime.admission.tcp_listener import listening_sockets
from openmsmq.runtime.clocks import elapsed_ns, read_clocks
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.limits import (
    SESSION_DATA_PER_TURN_BYTES,
    SESSION_LINGER_MS,
    SESSION_READ_BYTES,
    SESSION_UNREAD_MS,
    SESSION_WRITE_BUFFER_MAX_BYTES,
    SESSIONS_LOOK_MS,
    STRANGERS_READ_BYTES,
)
from openmsmq.runtime.logs import Event, EventLog, LimitedLog
from openmsmq.runtime.server import Pump
from openmsmq.runtime.sessions.attempts import ConnectFailed, connected_socket
from openmsmq.runtime.sessions.capture_file import CaptureFile, endpoint
from openmsmq.runtime.sessions.strangers import Strangers
from openmsmq.runtime.sessions.taps import MakeTap, Tap, no_tap
from openmsmq.runtime.sessions.tls import DOOR, SessionTls
from openmsmq.runtime.sessions.tls_transport import TlsFailed, TlsTransport
from openmsmq.runtime.sessions.trust import Proof
from openmsmq.runtime.start_errors import cannot_listen, os_reason
from openmsmq.wire.packet_buffer import GREETING_BYTES

_DOOR: Final = "sessions"


class SessionConnection(asyncio.BufferedProtocol):
    """The connection of one session, from the moment it is there until it is lost."""

    def __init__(
        self,
        sessions: Sessions,
        number: int,
        accepted_from: str = "",
        proof: Proof | None = None,
    ) -> None:
        """`accepted_from` is the address of a peer that has made the connection itself.

        `proof` is what it has shown over TLS.
        """
        self.pending: list[bytes] = []
        self.peer = accepted_from
        self.accepted = bool(accepted_from)
        self.proof: Final = proof
        self.is_stranger = False
        self.transport: asyncio.Transport
        self.key: Final = number
        """The number of its session, also when that is over."""
        self._sessions = sessions
        self.tap: Tap | None = None
        self._number: int | None = number
        self._linger: asyncio.TimerHandle | None = None
        self._recorded = False
        self._written_bytes = 0
        self._taken_bytes = 0
        self._taken_ms: int | None = None

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        self.transport = cast(asyncio.Transport, transport)
        if not self.accepted:
            self.peer = str(peer_name(transport)[0])
        if not self._sessions.wants(self):
            self._number = None
            self.transport.abort()
            return
        self.transport.set_write_buffer_limits(high=SESSION_WRITE_BUFFER_MAX_BYTES)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._record_opened()
        self.tap = self._sessions.make_tap(self.peer)
        self._sessions.announce(self, self.key)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - the loop's own guess
        """Lend the buffer that all sessions share; what comes in is taken out at once.

        What a stranger has brought may have to wait, so it is little.
        """
        buffer = self._sessions.buffer
        return buffer[:STRANGERS_READ_BYTES] if self.is_stranger else buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Hand on the bytes that have come; those of a session that is over go nowhere."""
        if self._number is not None:
            data = bytes(self._sessions.buffer[:nbytes])
            self._record(data, received=True)
            self._sessions.received(self, data)

    def pause_writing(self) -> None:
        """Give up a peer that takes nothing and still makes us write."""
        self._sessions.give_up(
            self, f"it has not taken {SESSION_WRITE_BUFFER_MAX_BYTES} bytes that wait for it"
        )

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        if self._linger is not None:
            self._linger.cancel()
        if self._recorded and self._sessions.capture is not None:
            self._sessions.capture.closed(*self._endpoints)
        self._sessions.lost(self, self._number, exc)

    # What the sessions call.

    def hold(self) -> None:
        """Read nothing more for now."""
        if not self.transport.is_closing():
            self.transport.pause_reading()

    def let_go(self) -> None:
        """Read again."""
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def flush(self) -> None:
        """Write what is pending."""
        pending, self.pending = self.pending, []
        if self.transport.is_closing():
            return
        for data in pending:
            self._record(data, received=False)
        self._written_bytes += sum(map(len, pending))
        self.transport.writelines(pending)

    @property
    def is_over(self) -> bool:
        """Whether its session has ended, and only the last bytes are to leave."""
        return self._number is None

    @property
    def unread_bytes(self) -> int:
        """How many bytes wait for the peer to take them."""
        return self.transport.get_write_buffer_size()

    @property
    def is_greeted(self) -> bool:
        """Whether the queue manager has opened its session."""
        return self._written_bytes > GREETING_BYTES

    def takes_nothing(self, now: Instant) -> bool:
        """Return whether bytes wait for the peer, and it has taken none for too long."""
        unread_bytes = self.unread_bytes
        taken_bytes = self._written_bytes - unread_bytes
        if isinstance(self.transport, TlsTransport):
            taken_bytes += self.transport.overhead_bytes
        if self._taken_ms is None or not unread_bytes or taken_bytes != self._taken_bytes:
            self._taken_bytes = taken_bytes
            self._taken_ms = now.ticks_ms
        return now.ticks_ms - self._taken_ms >= SESSION_UNREAD_MS

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
        there = endpoint(*peer_name(self.transport)[:2])
        self._endpoints = (here, there)
        self._recorded = True
        capture.opened(*((there, here) if self.accepted else (here, there)))

    def _record(self, data: bytes, *, received: bool) -> None:
        if self.tap is not None:
            (self.tap.received if received else self.tap.sent)(data)
        if self._recorded and self._sessions.capture is not None:
            here, there = self._endpoints
            source, destination = (there, here) if received else (here, there)
            self._sessions.capture.stream(source, destination, data)


class Sessions:
    """All connections to other queue managers, by the number of their session."""

    def __init__(
        self,
        config: ServerConfig,
        pump: Pump,
        log: EventLog,
        capture: CaptureFile | None,
        limits: PeerLimits,
        make_tap: MakeTap = no_tap,
    ) -> None:
        self.log = log
        self.capture = capture
        self.make_tap = make_tap
        self.buffer: Final = memoryview(bytearray(SESSION_READ_BYTES))
        self.endpoints: list[tuple[str, int]] = []
        """Where peers connect to."""
        self.tls_endpoints: list[tuple[str, int]] = []
        """Where they do so over TLS."""
        self._config = config
        self._pump = pump
        self._limits = limits
        self._listeners: list[GuardedListener] = []
        self._tls = SessionTls(
            config, log, lambda number, peer, proof: SessionConnection(self, number, peer, proof)
        )
        self._listening = asyncio.Event()
        self._by_number: dict[int, SessionConnection] = {}
        self._open: set[SessionConnection] = set()
        self._accepted: dict[int, SessionConnection] = {}
        self._attempts: dict[int, asyncio.Task[None]] = {}
        self._unflushed: dict[SessionConnection, None] = {}
        self._turn_bytes = 0
        self._closing = False
        self._all_gone = asyncio.Event()
        self.limited = LimitedLog(log)
        self._strangers = Strangers[SessionConnection](
            pump, take=self._take, hold=self._hold, let_go=SessionConnection.let_go
        )
        self._look_timer: asyncio.TimerHandle | None = None

    # Beginning.

    async def listen(self) -> None:
        """Let peers in, or raise `StartError` or `ConfigError`."""
        table = self._config.session_tls
        arrivals = Arrivals()
        if self._tls.open(self._cut_unproven):
            self.tls_endpoints = await self._open_listener(
                DOOR, table.port, "[session_tls] port", arrivals
            )
        if not table.required:
            self.endpoints = await self._open_listener(
                _DOOR, self._config.session_port, "MsmqIpPort", arrivals
            )
        self._listening.set()

    async def _open_listener(
        self, door: str, port: int, key: str, arrivals: Arrivals
    ) -> list[tuple[str, int]]:
        address = self._config.address
        try:
            listening = await listening_sockets(address, port)
        except OSError as error:
            raise cannot_listen(error, address, port, key=key, switch="--no-transfer") from None
        keeper = ListenerPort(
            make=lambda number, peer: SessionConnection(self, number, peer),
            cut=self._cut,
            note=lambda peer, reason: self.limited.refused(peer, door, reason),
            is_stopping=lambda: self._closing or self._pump.refusal is not None,
            why_not=(lambda _: "") if door == DOOR else self._tls.rules.why_not_plain,
            option_prefix="transfer_",
        )
        take_up = self._tls.take_up if door == DOOR else None
        opened = GuardedListener(
            listening, self._limits, keeper, arrivals=arrivals, take_up=take_up
        )
        self._listeners.append(opened)
        for host, used in opened.endpoints:
            self.log.info(Event.LISTENING, door=door, address=host, port=used)
        return opened.endpoints

    @property
    def hosts(self) -> list[str]:
        """The addresses on which peers are let in."""
        return list(dict.fromkeys(host for host, _ in (*self.endpoints, *self.tls_endpoints)))

    def _cut(self, number: int, reason: str) -> None:
        """End the connection of a peer now; it is no longer counted."""
        connection = self._accepted.get(number)
        if connection is not None:
            self.limited.refused(connection.peer, _DOOR, reason)
            connection.transport.abort()

    def reload(self) -> None:
        """Read the certificates of sessions again."""
        self._tls.reload()

    def _cut_unproven(self) -> None:
        """Cut peers whose certificate has come to its end, or is not trusted any more."""
        for connection in list(self._open):
            reason = "" if connection.proof is None else self._tls.why_not(connection.proof)
            if reason:
                self.log.warning(
                    Event.SESSION_CUT, session=connection.key, peer=connection.peer, reason=reason
                )
                connection.transport.abort()

    # What the queue manager wants.

    def connect(self, session: int, address: str) -> None:
        """Begin to make a connection; how that goes is an input."""
        loop = asyncio.get_running_loop()
        if not self._config.transfer:
            failed, status = self._pump.engine.session_failed, ConnectionStatus.TCP_NOT_ENABLED
            loop.call_soon(lambda: self._pump.put_in(failed, session, status))
        elif not self._closing:
            self._attempts[session] = loop.create_task(self._attempt(session, address))

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
                    self._weigh(connection)
        if self.capture is not None:
            self.capture.flush()

    async def _attempt(self, session: int, address: str) -> None:
        # A queue manager may want to connect while it still starts.
        await self._listening.wait()
        try:
            rules = self._tls.rules_to(address)
            if rules:
                await self._tls.dial(session, address, rules, self.hosts)
                return
            made = await connected_socket(address, self._config, self.hosts)
            await asyncio.get_running_loop().create_connection(
                lambda: SessionConnection(self, session), sock=made
            )
        except ConnectFailed as error:
            self._failed(session, address, error.status, str(error))
        except OSError as error:
            status = ConnectionStatus.SOCKET_CONNECT_FAILURE
            self._failed(session, address, status, os_reason(error))

    def _failed(self, session: int, address: str, status: ConnectionStatus, reason: str) -> None:
        if self._attempts.pop(session, None) is not None:
            self.log.debug(Event.SESSION_FAILED, session=session, peer=address, reason=reason)
            failed = self._pump.engine.session_failed
            if status is ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE:
                # What is wrong with a certificate no status can say.
                self._pump.put_in(partial(failed, reason=reason), session, status)
            else:
                self._pump.put_in(failed, session, status)

    # What connections report.

    def wants(self, connection: SessionConnection) -> bool:
        """Return whether a connection is still wanted, now that it is there."""
        if connection.accepted:
            return not self._closing
        # The queue manager may have changed its mind meanwhile.
        return self._attempts.pop(connection.key, None) is not None

    def announce(self, connection: SessionConnection, number: int) -> None:
        """Tell the queue manager of a connection that was admitted."""
        self._open.add(connection)
        self._by_number[number] = connection
        connection.is_stranger = connection.proof is None and not self._limits.is_configured(
            connection.peer
        )
        engine = self._pump.engine
        name = "" if connection.proof is None else connection.proof.rule.name
        if self._look_timer is None:
            self._look_later()
        if connection.accepted:
            self._accepted[number] = connection
            self.log.debug(Event.SESSION_ACCEPTED, session=number, peer=connection.peer, rule=name)
            accepted = partial(engine.session_accepted, peer=name)
            self._pump.put_in(accepted, number, connection.peer)
        else:
            self._limits.met(connection.peer)
            self.log.debug(Event.SESSION_CONNECTED, session=number, peer=connection.peer, rule=name)
            self._pump.put_in(partial(engine.session_connected, peer=name), number)

    def received(self, connection: SessionConnection, data: bytes) -> None:
        """Hand in bytes; when many have come, have them made durable before more come."""
        if connection.is_stranger:
            self._strangers.came(connection, data)
            return
        began_ns = elapsed_ns()
        has_room = self._take(connection, data)
        self._pump.schedule()
        self._pump.times.known_took(began_ns, elapsed_ns())
        if not has_room:
            self._pump.turn()

    def take_waiting(self) -> bool:
        """Hand in what strangers have sent, if it is their time; say whether anything was."""
        return self._strangers.take()

    def _take(self, connection: SessionConnection, data: bytes) -> bool:
        """Hand in bytes, unless the session is over; say whether the turn can take more."""
        if connection.is_over or connection.transport.is_closing():
            return True
        self._pump.hand_in(self._pump.engine.session_data, connection.key, data)
        self._weigh(connection)
        self._turn_bytes += len(data)
        return self._turn_bytes < SESSION_DATA_PER_TURN_BYTES

    def _hold(self, connection: SessionConnection) -> None:
        connection.hold()
        self._weigh(connection)

    def lost(
        self, connection: SessionConnection, number: int | None, error: Exception | None
    ) -> None:
        """Forget a connection; the queue manager hears of it unless it has ended it itself."""
        if connection not in self._open:
            return
        self._open.discard(connection)
        self._unflushed.pop(connection, None)
        self._strangers.forget(connection)
        if connection.accepted:
            del self._accepted[connection.key]
            self._limits.left(connection.key, read_clocks())
        reason = "" if error is None else str(error)
        self.log.debug(Event.SESSION_ENDED, session=number, peer=connection.peer, reason=reason)
        if number is not None and self._by_number.pop(number, None) is not None:
            lost = self._pump.engine.session_lost
            if isinstance(error, TlsFailed) and error.refused_us:
                self._tls.note_failure(number, connection.peer, self._tls.explained(error))
                self._pump.put_in(partial(lost, reason=CloseReason.CERTIFICATE_REFUSED), number)
            else:
                self._pump.put_in(lost, number)
        if not self._open:
            self._all_gone.set()

    # What keeps peers to their share.

    def _weigh(self, connection: SessionConnection) -> None:
        """Note how far a peer has come and what is held for it; cut whoever has too much."""
        if not connection.accepted:
            return
        if connection.is_greeted:
            self._limits.established(connection.key)
        size_bytes = connection.unread_bytes + self._strangers.waiting_bytes(connection)
        copies = 1 if connection.tap is None else 2
        size_bytes += copies * self._pump.engine.session_held_bytes(connection.key)
        heavy = self._limits.buffered(connection.key, size_bytes, read_clocks())
        if heavy is not None:
            self._cut(heavy, "too many bytes are held for it")

    def give_up(self, connection: SessionConnection, reason: str) -> None:
        """Cut a peer that does not do what it should."""
        self.limited.warning(
            Event.SESSION_CUT, session=connection.key, peer=connection.peer, reason=reason
        )
        connection.transport.abort()

    def _look_later(self) -> None:
        later = asyncio.get_running_loop().call_later
        self._look_timer = later(SESSIONS_LOOK_MS / 1000, self._look)

    def _look(self) -> None:
        """Give up peers that do not take their bytes."""
        now = read_clocks()
        for connection in list(self._open):
            if connection.takes_nothing(now):
                reason = f"it has taken nothing of what waits for it for {SESSION_UNREAD_MS} ms"
                self.give_up(connection, reason)
        self._look_timer = None
        if self._open:
            self._look_later()

    # End.

    def stop_listening(self) -> None:
        """Let nobody in any more."""
        self._tls.close()
        for door in self._listeners:
            door.close()

    def call_off_attempts(self) -> None:
        """Make no connection any more."""
        self._closing = True
        for attempt in self._attempts.values():
            attempt.cancel()
        self._attempts.clear()
        for door in self._listeners:
            door.call_off()

    def cut_all(self) -> None:
        """End all sessions without a word: what would still be said is for somebody else to say."""
        for connection in list(self._open):
            connection.transport.abort()

    async def close(self) -> None:
        """End all sessions in order; those that do not take their bytes in time are cut."""
        self.call_off_attempts()
        self._strangers.close()
        self._by_number.clear()
        for connection in list(self._open):
            connection.finish()
        if self._open:
            self._all_gone.clear()
            try:
                async with asyncio.timeout(self._config.stop_timeout_ms / 1000):
                    await self._all_gone.wait()
            except TimeoutError:
                self.cut_all()
        if self._look_timer is not None:
            self._look_timer.cancel()
            self._look_timer = None
