"""One connection of an application: frames in, calls to the pump, answers out.

A connection begins with `Hello`. Whatever a client does wrong costs its own connection only. A
client that does not read its answers is not read from either, and one with many calls shares each
turn with the others, so no client can make the server hold more than a bounded amount for it.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from typing import TYPE_CHECKING, Final, cast

import msgspec

from openmsmq import __version__
from openmsmq.api.framing import (
    ApiError,
    FrameReader,
    encode_frame,
    encode_frames,
    encode_in_parts,
)
from openmsmq.api.messages import (
    PROTOCOL_VERSION,
    REQUESTS,
    Answer,
    AnyRequest,
    Call,
    CloseQueue,
    Failed,
    FetchPackets,
    FetchRange,
    Hello,
    OpenQueue,
    Receive,
    Welcome,
)
from openmsmq.model.clock import Instant
from openmsmq.model.errors import (
    AccessDenied,
    InsufficientResources,
    InvalidParameter,
    MsmqError,
    ServiceNotAvailable,
    UnsupportedOperation,
)
from openmsmq.runtime.api.audit import Watch
from openmsmq.runtime.api.outflow import Outflow
from openmsmq.runtime.api.peers import (
    Door,
    caller_of,
    local_caller,
    may_enter,
    peer_of,
    socket_caller,
)
from openmsmq.runtime.api.slates import Slates
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.limits import (
    ANSWERS_PER_TURN_BYTES,
    CALLS_PER_TURN_MAX_COUNT,
    HELLO_MAX_BYTES,
    READ_ANSWER_GUESS_BYTES,
    READ_ANSWER_MAX_BYTES,
    READ_ANSWER_MAX_COUNT,
    SLATE_BYTES,
)
from openmsmq.runtime.logs import Event
from openmsmq.security.access.callers import Origin

if TYPE_CHECKING:
    import socket
    import ssl

    from openmsmq.runtime.api.server import ApiServer
    from openmsmq.runtime.api.tokens import Token
    from openmsmq.security.access.callers import Caller

SOFTWARE: Final = f"OpenMSMQ {__version__}"

RESUME_SHARE: Final = 4
"""Calls are taken again when a slow client has one part in so many left of what may wait."""

_HEAVY: Final = frozenset(kind for kind in REQUESTS if kind.facts.is_heavy)
_WAITING: Final = frozenset(kind for kind in REQUESTS if kind.facts.waits)
_ALWAYS_TAKEN: Final = frozenset(kind for kind in REQUESTS if kind.facts.ends_waits)
_AUDITED: Final = frozenset(kind for kind in REQUESTS if kind.facts.is_audited)
_WATCHED: Final = _AUDITED | {OpenQueue}
"""Requests whose ends the audit log wants to know: it tells of handles by the names of queues."""


class State(Enum):
    """How far a connection has come."""

    GREETING = "greeting"
    OPEN = "open"
    CLOSED = "closed"


class ApiConnection(asyncio.BufferedProtocol):
    """One connection, from its acceptance to its loss."""

    def __init__(self, server: ApiServer, door: Door, peer_number: int = 0) -> None:
        self._server = server
        self.peer_number: Final = peer_number
        """Its number in the limits of the door; 0 where nothing is counted."""
        self._pump = server.pump
        self._door = door
        self._state = State.GREETING
        self.peer = "?"
        """Who is at the other end, for the log."""
        self._host = ""
        self._local: Caller | None = None
        self._watch: Watch | None = None
        self.token: Token | None = None
        """The token by which it came in, if that may be revoked."""
        self._transport: asyncio.Transport
        self._outflow: Outflow
        self._reader: FrameReader[Call] = FrameReader(Call)
        self._first_bytes = b""
        self._number = 0
        self._under_way: dict[int, type] = {}
        self._held = False
        self._client_is_slow = False
        self._answer_bytes = READ_ANSWER_GUESS_BYTES
        self._hello_timer: asyncio.TimerHandle | None = None
        self._slates: Slates | None = None

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Look who it is."""
        self._transport = cast(asyncio.Transport, transport)
        self._outflow = Outflow(self._transport)
        self._outflow.begin()
        reason = self._server.reason_to_refuse() or self._identify()
        self._server.connections.add(self)
        if reason is not None:
            self._refuse(0, reason)
            return
        self._hello_timer = asyncio.get_running_loop().call_later(
            self._server.config.hello_timeout_ms / 1000, self._hello_is_late
        )

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - the loop's own guess
        """Lend the buffer that all connections share; what comes in is taken out at once."""
        return self._server.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take the bytes that have come."""
        if self._state is State.CLOSED:
            return
        data = self._server.buffer[:nbytes]
        try:
            if self._state is State.GREETING:
                self._check_size(data)
            self._reader.feed(data)
            if not self._held:
                self._take_calls()
            if self.peer_number:
                self._weigh()
        except ApiError as nonsense:
            self._break(str(nonsense))
        except Exception as error:
            self._pump.defect(error)

    def _weigh(self) -> None:
        """Let the door know what is held for this client."""
        size = self._reader.held_bytes + self.unsent_bytes
        heavy = self._server.limits.buffered(self.peer_number, size, read_clocks())
        if heavy is not None:
            self._server.cut_peer(heavy, "too many bytes are held for it")

    def pause_writing(self) -> None:
        """Let what is to leave wait: the socket has not taken all that it was given."""
        self._outflow.pause()

    def resume_writing(self) -> None:
        """Let it go on, and take calls again if the client has caught up."""
        self._outflow.resume()
        limit_bytes = self._server.config.write_buffer_bytes // RESUME_SHARE
        if self._client_is_slow and self.unsent_bytes <= limit_bytes:
            self._client_is_slow = False
            self._pump.defer(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._outflow.drop()
        if self._slates is not None:
            self._slates.close()
        self._cancel_hello_timer()
        self._server.connections.discard(self)
        self._server.limits.left(self.peer_number, read_clocks())
        self._leave()
        self._state = State.CLOSED
        self._server.log.debug(
            Event.DISCONNECTED, peer=self.peer, reason=None if exc is None else str(exc)
        )
        self._server.connection_ended()

    # What the pump calls.

    def deliver(self, answers: list[Answer]) -> None:
        """Write answers."""
        if self._state is not State.OPEN:
            return
        for answer in answers:
            kind = self._under_way.pop(answer.id, None)
            if (type(answer.reply) is Failed or kind in _WATCHED) and self._watch is not None:
                self._watch.end(answer.id, kind, answer.reply)
        size = 0
        if self._slates is not None:
            answers, size = self._slates.put(answers)
        try:
            parts = encode_in_parts(answers)
        except ApiError:
            parts = list(map(_frame_or_failure, answers))
        self._write(parts)
        typical = (size + sum(map(len, parts))) // len(answers)
        self._answer_bytes = max(typical, (self._answer_bytes + typical) // 2)

    def go_on(self) -> None:
        """Take the calls that had to wait, then new ones."""
        if self._state is State.CLOSED or self._client_is_slow or not self._held:
            return
        self._held = False
        try:
            self._take_calls()
        except ApiError as nonsense:
            self._break(str(nonsense))
        except Exception as error:
            self._pump.defect(error)
        else:
            if not self._held and not self._transport.is_closing():
                self._transport.resume_reading()

    # What the server calls.

    def finish(self) -> None:
        """End the connection in order: waiting reads fail, answers still leave."""
        if self._state is State.OPEN:
            waiting = [call for call, kind in self._under_way.items() if kind in _WAITING]
            self._leave()
            refusal = self._pump.refusal or ServiceNotAvailable("the queue manager is stopping")
            failed = Failed(refusal.code, refusal.detail)
            self._write([encode_frames(Answer(call, failed) for call in waiting)])
        self._state = State.CLOSED
        self._cancel_hello_timer()
        if self._transport.can_write_eof():
            # A close would reset the connection if the client is writing, and lose the answers.
            self._outflow.end(self._transport.write_eof)
            self._transport.resume_reading()
        else:
            self._outflow.end(self._transport.close)

    @property
    def unsent_bytes(self) -> int:
        """How many bytes that were written for the client it has yet to take."""
        return self._outflow.unsent_bytes

    def abort(self) -> None:
        """End the connection now."""
        self._transport.abort()

    # Calls.

    def _take_calls(self) -> None:
        pump = self._pump
        now = read_clocks()
        # Those under way now wait for something to happen; those taken below end with the turn.
        room = self._server.config.calls_waiting_max - len(self._under_way)
        left = min(room, CALLS_PER_TURN_MAX_COUNT)
        heavy_left = max(1, ANSWERS_PER_TURN_BYTES // (self._answer_bytes + 1))
        for call in self._reader.items():
            if self._state is not State.OPEN:
                if not self._let_in(call):
                    return
                continue
            kind = type(call.request)
            if pump.refusal is not None or (room <= 0 and kind not in _ALWAYS_TAKEN):
                self._decline(call.id)
                continue
            self._begin(call, kind, now)
            left -= 1
            heavy_left -= kind in _HEAVY
            if left == 0 or heavy_left == 0 or self._client_is_slow:
                self._hold()
                pump.defer(self)
                return
        pump.schedule()

    def _begin(self, call: Call, kind: type, now: Instant) -> None:
        if call.id in self._under_way:
            raise ApiError(f"call {call.id} is still under way: number calls differently")
        self._under_way[call.id] = kind
        if kind in _WATCHED or kind is CloseQueue:
            self._note(call)
        request = _bounded(call.request) if kind in _HEAVY else call.request
        if self._slates is not None and isinstance(request, FetchPackets):
            self._slates.name(call.id, request)
        self._pump.request(self._number, call.id, request, now)

    def _note(self, call: Call) -> None:
        """Let the audit log know of a call that begins."""
        if self._watch is not None:
            if isinstance(call.request, CloseQueue):
                self._watch.closed(call.request.handle)
            else:
                self._watch.begin(call.id, call.request)

    def _decline(self, call: int) -> None:
        refusal = self._pump.refusal or InsufficientResources(
            f"{len(self._under_way)} calls of this connection wait already: "
            "cancel some, or open another connection"
        )
        failed = Failed(refusal.code, refusal.detail)
        self._write([encode_frame(Answer(call, failed))])

    def _write(self, parts: list[bytes]) -> None:
        """Let answers leave; a client that does not take them is not read from."""
        for part in parts:
            self._outflow.write(part)
        if self.unsent_bytes > self._server.config.write_buffer_bytes:
            self._client_is_slow = True
            self._hold()

    def _hold(self) -> None:
        if not self._held and self._state is not State.CLOSED:
            self._held = True
            if not self._transport.is_closing():
                self._transport.pause_reading()

    # Beginning and end.

    def _identify(self) -> MsmqError | None:
        if self._door.kind != "unix":
            name = self._transport.get_extra_info("peername")
            own = self._transport.get_extra_info("sockname")
            self.peer = f"{name[0]}:{name[1]}" if name else "already gone"
            if name and own:
                self._host = str(name[0])
                # Now, because a socket that its process has given up is nobody's.
                self._local = local_caller((name[0], name[1]), (own[0], own[1]))
            return None
        connection = cast("socket.socket", self._transport.get_extra_info("socket"))
        peer = peer_of(connection)
        if peer is None:
            self.peer = "unix"
            self._local = socket_caller(self._door.group)
            return None
        self.peer = str(peer)
        if may_enter(peer, self._door.group):
            self._local = caller_of(peer.user, peer.group)
            return None
        return AccessDenied(f"{peer} may not use this socket")

    def _check_size(self, data: memoryview) -> None:
        """Refuse a long first frame before any of it is kept."""
        if len(self._first_bytes) < 4:
            self._first_bytes += data[: 4 - len(self._first_bytes)]
        if len(self._first_bytes) == 4:
            length = int.from_bytes(self._first_bytes, "little")
            if length > HELLO_MAX_BYTES:
                raise ApiError(f"a first frame of {length} bytes; at most {HELLO_MAX_BYTES}")

    def _let_in(self, call: Call) -> bool:
        hello = call.request
        refusal = self._pump.refusal
        if not isinstance(hello, Hello):
            refusal = InvalidParameter("the first call of a connection must be Hello")
        elif hello.version != PROTOCOL_VERSION:
            refusal = UnsupportedOperation(
                f"this queue manager speaks version {PROTOCOL_VERSION} of the application "
                f"interface, the client version {hello.version}: use the same version of OpenMSMQ"
            )
        if refusal is not None:
            self._refuse(call.id, refusal)
            return False
        assert isinstance(hello, Hello)
        try:
            caller, self.token = self._server.admit(
                self._door, self._host, self._local, self._certificate(), hello.token
            )
        except AccessDenied as denied:
            self._refuse(call.id, denied)
            return False
        self._cancel_hello_timer()
        self._server.limits.established(self.peer_number)
        self._state = State.OPEN
        self._watch = Watch(self._server.audit, caller, self.peer)
        origin = Origin(self.peer, self._door.kind, read_clocks().unix_s)
        self._number = self._pump.connected(self, caller, origin)
        self._server.log.debug(
            Event.CONNECTED, peer=self.peer, door=self._door.kind, caller=caller.name
        )
        server = self._server
        welcome = Welcome(PROTOCOL_VERSION, SOFTWARE, server.manager_name, server.manager_id)
        if not (hello.slates and self._share(call.id, hello.slates, welcome)):
            self._write([encode_frame(Answer(call.id, welcome))])
        return True

    def _share(self, call: int, count: int, welcome: Welcome) -> bool:
        """Send a welcome with slates, if this client can have them; nothing has left before it."""
        if self._door.kind != "unix":
            return False
        connection = cast("socket.socket", self._transport.get_extra_info("socket"))
        try:
            slates = Slates(count, self._server.slate_room)
        except OSError:
            return False
        if not slates:
            return False
        frame = encode_frame(
            Answer(call, msgspec.structs.replace(welcome, slate_bytes=SLATE_BYTES))
        )
        try:
            sent = slates.send(connection.fileno(), frame)
        except OSError:
            slates.close()
            return False
        self._slates = slates
        if sent < len(frame):
            self._write([frame[sent:]])
        return True

    def _certificate(self) -> bytes | None:
        """Return the certificate that the client has proved to have, if any; in DER."""
        tls = cast("ssl.SSLObject | None", self._transport.get_extra_info("ssl_object"))
        return None if tls is None else tls.getpeercert(binary_form=True)

    def cut(self, reason: str) -> None:
        """End the connection of a client that may not stay."""
        if self._state is State.OPEN:
            self._break(reason)

    def _hello_is_late(self) -> None:
        self._refuse(0, ServiceNotAvailable("no Hello came in time"))

    def _refuse(self, call: int, refusal: MsmqError) -> None:
        self._state = State.CLOSED
        self._cancel_hello_timer()
        self._server.note_refusal(self.peer, self._door.kind, refusal)
        failed = Failed(refusal.code, refusal.detail)
        self._transport.write(encode_frame(Answer(call, failed)))
        self._transport.close()

    def _break(self, reason: str) -> None:
        """End the connection of a client that says what nobody understands."""
        self._server.note_broken(self.peer, reason)
        self._leave()
        # What it was answered before still leaves.
        self._hold()
        self._state = State.CLOSED
        self._outflow.end(self._transport.close)

    def _leave(self) -> None:
        if self._state is State.OPEN:
            self._pump.disconnected(self._number)
            self._under_way.clear()

    def _cancel_hello_timer(self) -> None:
        if self._hello_timer is not None:
            self._hello_timer.cancel()
            self._hello_timer = None


def _bounded(request: AnyRequest) -> AnyRequest:
    """Ask for no more than one answer can carry; both numbers are upper bounds anyway."""
    if isinstance(request, Receive | FetchRange | FetchPackets) and (
        request.bytes_max > READ_ANSWER_MAX_BYTES or request.count > READ_ANSWER_MAX_COUNT
    ):
        return msgspec.structs.replace(
            request,
            bytes_max=min(request.bytes_max, READ_ANSWER_MAX_BYTES),
            count=min(request.count, READ_ANSWER_MAX_COUNT),
        )
    return request


def _frame_or_failure(answer: Answer) -> bytes:
    try:
        return encode_frame(answer)
    except ApiError as error:
        refused = InsufficientResources(str(error))
        return encode_frame(Answer(answer.id, Failed(refused.code, refused.detail)))
