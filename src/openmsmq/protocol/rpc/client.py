"""The side of RPC that calls: it agrees with a server, proves who it is, and makes calls.

Calls and bytes go in; bytes and results come out. Nothing that a server does costs more than the
calls of its own connection: what it sends is bounded before it is kept, and what cannot be read, or
is not protected as agreed, ends the connection with a value. [C706 9.3, MS-RPCE 3.3.1.5]
"""

from __future__ import annotations

from typing import Final

from openmsmq.model.limits import (
    RPC_AUTH_LEGS_MAX_COUNT,
    RPC_CALLS_MAX_COUNT,
    RPC_FRAGMENT_MAX_BYTES,
    RPC_FRAGMENT_MIN_BYTES,
    RPC_REQUEST_MAX_BYTES,
    RPC_RESULTS_MAX_BYTES,
)
from openmsmq.protocol.rpc.client_states import (
    Bound,
    ClientOutput,
    ClientState,
    Failed,
    FailureKind,
    Protection,
    Returned,
    Threw,
)
from openmsmq.protocol.rpc.states import Written
from openmsmq.security.authentication.ports import (
    AuthenticationFailed,
    Fragment,
    Level,
)
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.rpc.fragments import (
    FragmentBuffer,
    TooLong,
    read_body,
    read_verifier,
    request_head,
    trailer,
)
from openmsmq.wire.rpc.pdus import (
    AUTH_PADDING_BYTES,
    HEADER_BYTES,
    REQUEST_BYTES,
    TRAILER_BYTES,
    WHOLE,
    Auth3,
    Bind,
    BindAck,
    BindNak,
    Fault,
    Flag,
    Header,
    NakReason,
    Notice,
    Offer,
    Outcome,
    PduType,
    Request,
    Response,
    Status,
    Verifier,
    write,
)
from openmsmq.wire.rpc.syntaxes import NDR, Syntax

_CONTEXT: Final = 0
"""The number of the one presentation context that a connection of ours has."""
_SECURITY: Final = 1
"""The number of its one security context."""
_FIRST_CALL: Final = 1
_CALL_MASK: Final = 0xFFFF_FFFF
_FAULT_BYTES: Final = HEADER_BYTES + 16
_NOT_PROVED: Final = (NakReason.AUTH_TYPE, NakReason.INVALID_CHECKSUM)


class _Broken(Exception):
    """Why nothing more is read."""

    def __init__(self, kind: FailureKind, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind


class ClientAssociation:
    """Our side of one connection to a server."""

    def __init__(
        self, interface: Syntax, protection: Protection | None = None, group: int = 0
    ) -> None:
        """`group` is that of an earlier connection to the same server, or 0."""
        self._interface = interface
        self._protection = protection
        self._group = group
        self._state = ClientState.NEW
        self._buffer = FragmentBuffer()
        self._last_call = _FIRST_CALL - 1
        self._legs = 0
        self._is_proved = protection is None
        self._signs_header = False
        self._is_concurrent = False
        self._fragment_max = RPC_FRAGMENT_MIN_BYTES
        self._calls: dict[int, bytearray | None] = {}
        """What has come of the results of calls that are under way; None before the first part."""
        self._held_bytes = 0
        self._outputs: list[ClientOutput] = []

    @property
    def can_call(self) -> bool:
        """Whether a call can be made now."""
        if self._state is not ClientState.BOUND:
            return False
        return len(self._calls) < (RPC_CALLS_MAX_COUNT if self._is_concurrent else 1)

    @property
    def held_bytes(self) -> int:
        """How many bytes of the server are kept."""
        return self._buffer.held_bytes + self._held_bytes

    @property
    def state(self) -> ClientState:
        """How far it has come."""
        return self._state

    def take_outputs(self) -> list[ClientOutput]:
        """Return what there is to do since the last call, in order."""
        outputs, self._outputs = self._outputs, []
        return outputs

    # What goes out.

    def connected(self) -> None:
        """Begin, as soon as there is a connection."""
        assert self._state is ClientState.NEW
        self._state = ClientState.BINDING
        try:
            token = self._step(b"")
        except _Broken as broken:
            self._end(broken.kind, str(broken))
            return
        flags = WHOLE | Flag.CONCURRENT
        if self._protection is not None:
            flags |= Flag.HEADER_SIGNING
        self._agree(PduType.BIND, token, flags)

    def call(self, operation: int, stub: bytes) -> int:
        """Make a call; gives its number. Only while `can_call`."""
        assert self.can_call, "the connection takes no call now"
        if len(stub) > RPC_REQUEST_MAX_BYTES:
            raise ValueError(f"a call of {len(stub)} bytes; at most {RPC_REQUEST_MAX_BYTES}")
        number = self._next_call()
        self._calls[number] = None
        room = self._stub_room()
        for at in range(0, max(1, len(stub)), room):
            part = stub[at : at + room]
            flags = WHOLE
            if at:
                flags &= ~Flag.FIRST
            if at + room < len(stub):
                flags &= ~Flag.LAST
            request = Request(_CONTEXT, operation, part, len(stub) - at)
            self._outputs.append(Written(self._sealed(number, request, flags)))
        return number

    def cancel(self, call: int) -> None:
        """Ask the server to end a call; it still ends once, in one way or the other."""
        if call in self._calls and self._state is ClientState.BOUND:
            kind = PduType.CO_CANCEL
            self._outputs.append(Written(write(kind, call, Notice(kind))))

    def lost(self, sentence: str) -> None:
        """The connection is gone, or given up."""
        self._end(FailureKind.LOST, sentence)

    def _next_call(self) -> int:
        self._last_call = (self._last_call + 1) & _CALL_MASK
        return self._last_call

    def _agree(self, kind: PduType, token: bytes | None, flags: int) -> None:
        """Write a bind, or the alteration that only carries a token."""
        size = RPC_FRAGMENT_MAX_BYTES
        body = Bind(size, size, self._group, (Offer(_CONTEXT, self._interface, (NDR,)),))
        verifier = None if token is None else self._verifier(token)
        written = write(kind, self._next_call(), body, verifier, flags)
        self._outputs.append(Written(written))

    def _verifier(self, token: bytes, padding: int = 0) -> Verifier:
        protection = self._protection
        assert protection is not None
        return Verifier(protection.kind, protection.level, _SECURITY, token, padding)

    def _stub_room(self) -> int:
        room = self._fragment_max - REQUEST_BYTES
        protection = self._protection
        if protection is None or protection.level < Level.PACKET:
            return room
        room -= TRAILER_BYTES + protection.context.signature_size(protection.level)
        return room // AUTH_PADDING_BYTES * AUTH_PADDING_BYTES

    def _sealed(self, call: int, request: Request, flags: int) -> bytes:
        protection = self._protection
        if protection is None or protection.level < Level.PACKET:
            return write(PduType.REQUEST, call, request, flags=flags)
        padding = -len(request.stub) % AUTH_PADDING_BYTES
        stub = request.stub + bytes(padding)
        size = protection.context.signature_size(protection.level)
        length = REQUEST_BYTES + len(stub) + TRAILER_BYTES + size
        before = request_head(
            flags, length, size, call, request.hint, request.context, request.operation
        )
        behind = trailer(protection.kind, protection.level, _SECURITY, padding)
        sent, signature = protection.context.protect(
            protection.level, Fragment(before, stub, behind), signs_header=self._signs_header
        )
        return b"".join((before, sent, behind, signature))

    # What comes in.

    def received(self, data: bytes) -> None:
        """Take bytes of the connection."""
        if self._state is ClientState.ENDED:
            return
        self._buffer.feed(data)
        try:
            for header, fragment in self._buffer.fragments():
                self._take(header, fragment)
        except (DecodeError, TooLong) as error:
            self._end(FailureKind.BROKEN, f"the server sends {error}")
        except AuthenticationFailed as failed:
            self._end(FailureKind.NOT_AUTHENTICATED, str(failed))
        except _Broken as broken:
            self._end(broken.kind, str(broken))

    def _take(self, header: Header, data: bytes) -> None:
        if not header.is_understood:
            raise _Broken(FailureKind.BROKEN, "the server speaks another version of RPC")
        body = read_body(header, data)
        is_binding = self._state is ClientState.BINDING
        match body:
            case BindAck() if is_binding and header.call == self._last_call:
                self._agreed(header, data, body)
            case BindNak() if is_binding:
                raise _refused(body.reason)
            case Fault() if is_binding:
                raise _Broken(*_why_not(body.status))
            case Response() if header.call in self._calls:
                self._take_results(header, data)
            case Fault() if header.call in self._calls:
                self._take_fault(header, data, body)
            case Notice(PduType.SHUTDOWN):
                raise _Broken(FailureKind.LOST, "the server ends the connection")
            case _:
                sentence = f"the server sends a fragment of the kind {header.kind} out of place"
                raise _Broken(FailureKind.BROKEN, sentence)

    # Agreements.

    def _agreed(self, header: Header, data: bytes, ack: BindAck) -> None:
        if len(ack.results) != 1 or ack.results[0].outcome != Outcome.ACCEPTED:
            sentence = f"the interface {self._interface} is not offered there"
            raise _Broken(FailureKind.NO_INTERFACE, sentence)
        if header.kind == PduType.BIND_ACK:
            self._group = ack.group
            bounded = min(RPC_FRAGMENT_MAX_BYTES, ack.receive_max)
            self._fragment_max = max(RPC_FRAGMENT_MIN_BYTES, bounded) & ~7
            self._is_concurrent = bool(header.flags & Flag.CONCURRENT)
            self._signs_header = bool(header.flags & Flag.HEADER_SIGNING)
        if not self._is_proved:
            verifier = read_verifier(header, data)
            if verifier is None:
                sentence = "the server does not want to know who we are"
                raise _Broken(FailureKind.NOT_AUTHENTICATED, sentence)
            token = self._step(verifier.token)
            if not self._is_proved:
                self._agree(PduType.ALTER_CONTEXT, token, WHOLE)
                return
            if token:
                last = write(PduType.AUTH3, header.call, Auth3(), self._verifier(token))
                self._outputs.append(Written(last))
            self._check_level()
        self._state = ClientState.BOUND
        self._outputs.append(Bound(self._group, self._is_concurrent))

    def _step(self, token: bytes) -> bytes | None:
        """Take a token of the server; return ours, or None if nothing is to be proved."""
        if self._protection is None:
            return None
        self._legs += 1
        if self._legs > RPC_AUTH_LEGS_MAX_COUNT:
            sentence = f"the server wants more than {RPC_AUTH_LEGS_MAX_COUNT} tokens"
            raise _Broken(FailureKind.NOT_AUTHENTICATED, sentence)
        try:
            step = self._protection.context.step(token)
        except AuthenticationFailed as failed:
            raise _Broken(FailureKind.NOT_AUTHENTICATED, str(failed)) from None
        self._is_proved = step.is_complete
        return step.token

    def _check_level(self) -> None:
        """See whether what was agreed on can protect fragments as far as we want."""
        assert self._protection is not None
        self._protection.context.signature_size(self._protection.level)

    # Results.

    def _take_results(self, header: Header, data: bytes) -> None:
        stub = self._opened(header, data, REQUEST_BYTES)
        call = header.call
        before = self._calls[call]
        if (before is None) != bool(header.flags & Flag.FIRST):
            raise _Broken(FailureKind.BROKEN, "the server sends results in the wrong order")
        whole = bytearray() if before is None else before
        self._held_bytes += len(stub)
        if self._held_bytes > RPC_RESULTS_MAX_BYTES:
            sentence = f"the server sends results of more than {RPC_RESULTS_MAX_BYTES} bytes"
            raise _Broken(FailureKind.BROKEN, sentence)
        whole += stub
        if not header.flags & Flag.LAST:
            self._calls[call] = whole
            return
        del self._calls[call]
        self._held_bytes -= len(whole)
        self._outputs.append(Returned(call, bytes(whole)))

    def _take_fault(self, header: Header, data: bytes, fault: Fault) -> None:
        """Take a fault. Servers may leave it unprotected: it ends a call and says nothing else."""
        if header.auth_length:
            self._opened(header, data, _FAULT_BYTES)
        partial = self._calls.pop(header.call)
        self._held_bytes -= len(partial or b"")
        is_executed = not header.flags & Flag.DID_NOT_EXECUTE
        self._outputs.append(Threw(header.call, fault.status, is_executed))

    def _opened(self, header: Header, data: bytes, start: int) -> bytes:
        """Return what a fragment says from an offset on."""
        verifier = read_verifier(header, data)
        protection = self._protection
        if protection is None or protection.level < Level.PACKET:
            end = header.length
            if verifier is not None:
                end -= header.auth_length + TRAILER_BYTES + verifier.padding
            return data[start:end]
        if verifier is None or (verifier.kind, verifier.level, verifier.context) != (
            protection.kind,
            protection.level,
            _SECURITY,
        ):
            sentence = "the server does not protect its results as agreed"
            raise _Broken(FailureKind.NOT_AUTHENTICATED, sentence)
        at = header.length - header.auth_length - TRAILER_BYTES
        fragment = Fragment(data[:start], data[start:at], data[at : at + TRAILER_BYTES])
        stub = protection.context.unprotect(
            protection.level, fragment, verifier.token, signs_header=self._signs_header
        )
        return stub[: len(stub) - verifier.padding]

    def _end(self, kind: FailureKind, sentence: str) -> None:
        if self._state is ClientState.ENDED:
            return
        self._state = ClientState.ENDED
        calls = tuple(self._calls)
        self._calls.clear()
        self._buffer = FragmentBuffer()
        self._held_bytes = 0
        self._outputs.append(Failed(kind, sentence, calls))


def _refused(reason: int) -> _Broken:
    if reason in _NOT_PROVED:
        return _Broken(FailureKind.NOT_AUTHENTICATED, "the server does not accept who we are")
    if reason == NakReason.LOCAL_LIMIT:
        return _Broken(FailureKind.REFUSED, "the server has no room for another connection")
    return _Broken(FailureKind.REFUSED, f"the server refuses the connection (reason {reason})")


def _why_not(status: int) -> tuple[FailureKind, str]:
    if status in (Status.ACCESS_DENIED, Status.SECURITY_PACKAGE):
        return FailureKind.NOT_AUTHENTICATED, "the server does not accept who we are"
    return FailureKind.REFUSED, f"the server refuses the connection (status {status:#x})"
