"""One connection of a client of RPC: what it agrees upon, who speaks, and its calls.

Bytes and results go in; bytes, calls and news for the log come out. What a client does wrong ends
its own connection, with the status that Windows gives: Samba's tests of raw protocol are the
specification of what C706 and MS-RPCE leave open. [C706 9.3, MS-RPCE 3.3.1.5]
"""

from __future__ import annotations

from typing import Final

from openmsmq.model.limits import (
    RPC_BINDS_MAX_COUNT,
    RPC_CALL_MAX_BYTES,
    RPC_FRAGMENT_MAX_BYTES,
    RPC_FRAGMENT_MIN_BYTES,
)
from openmsmq.protocol.rpc.calls import CallBook, Incoming
from openmsmq.protocol.rpc.groups import Groups
from openmsmq.protocol.rpc.outbox import Ended, Outbox, level_name
from openmsmq.protocol.rpc.presentation import BadOffer, Presentation
from openmsmq.protocol.rpc.security_contexts import AuthRefused, Security, SecurityBook
from openmsmq.protocol.rpc.states import (
    TRANSITIONS,
    AssociationState,
    CallArrived,
    CallCancelled,
    Closed,
    Door,
    MakeContext,
    Output,
    Proved,
    Refused,
    SecurityState,
    Wanted,
    Written,
)
from openmsmq.security.access.callers import Caller
from openmsmq.security.authentication.ports import AuthenticationFailed, Level, ProviderKind
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.rpc.fragments import (
    FragmentBuffer,
    TooLong,
    body_end,
    read_body,
    read_request,
    read_verifier,
    stub_offset,
)
from openmsmq.wire.rpc.pdus import (
    HEADER_BYTES,
    WHOLE,
    Bind,
    BindAck,
    Flag,
    Header,
    NakReason,
    PduType,
    Status,
    Verifier,
)
from openmsmq.wire.rpc.syntaxes import NDR, Syntax
from openmsmq.wire.rpc.verification import Said, SaidRequest, split

_KINDS: Final = {int(kind): kind for kind in PduType}
_NO_AUTHENTICATION: Final = 0
_LEVELS: Final = tuple(level for level in Level if level is not Level.NONE)
_NOT_EXECUTED: Final = WHOLE | Flag.DID_NOT_EXECUTE
_WHAT_BINDS: Final = (PduType.ALTER_CONTEXT, PduType.AUTH3)
_WHAT_IS_ANSWERED: Final = (PduType.REQUEST, PduType.ALTER_CONTEXT, PduType.AUTH3)


class Association:
    """The server's side of one connection."""

    def __init__(
        self, door: Door, groups: Groups, key: int, stranger: Caller, make_context: MakeContext
    ) -> None:
        """`key` is the connection in the groups; `stranger` who speaks without any proof."""
        self._door = door
        self._groups = groups
        self._key = key
        self._stranger = stranger
        self._state = AssociationState.UNBOUND
        self._buffer = FragmentBuffer()
        self._presentation = Presentation(door.interfaces)
        self._security = SecurityBook(make_context)
        self._calls = CallBook()
        self._incoming: Incoming | None = None
        self._fragment_max = RPC_FRAGMENT_MIN_BYTES
        self._signs_header = False
        self._is_concurrent = False
        self._binds = 0
        self.group = 0
        """The group that it belongs to, once it is bound."""
        self._out = Outbox()

    @property
    def is_bound(self) -> bool:
        """Whether its first agreement has come about."""
        return self._state is AssociationState.BOUND

    @property
    def held_bytes(self) -> int:
        """How many bytes are kept for it."""
        incoming = 0 if self._incoming is None else self._incoming.kept_bytes
        return self._buffer.held_bytes + incoming + self._calls.held_bytes

    def is_under_way(self, call: int) -> bool:
        """Whether a call has not ended."""
        return call in self._calls

    def take_outputs(self) -> list[Output]:
        """Return what there is to do since the last call, in order."""
        return self._out.take()

    # What comes in.

    def received(self, data: bytes) -> None:
        """Take bytes of the connection."""
        if self._state is AssociationState.CLOSED:
            return
        self._buffer.feed(data)
        try:
            for header, fragment in self._buffer.fragments():
                self._take(header, fragment)
        except TooLong as too_long:
            self._too_long(too_long.header, str(too_long))
        except DecodeError as error:
            self._close(str(error))
        except Ended as ended:
            self._close(str(ended))

    def returned(self, call: int, stub: bytes) -> None:
        """Take the results of a call."""
        self._end(call, stub)

    def threw(self, call: int, status: int) -> None:
        """Take the status of a call that has failed."""
        self._end(call, status)

    def _end(self, call: int, answer: bytes | int) -> None:
        if self._state is AssociationState.CLOSED:
            return
        try:
            data = self._calls.end(call, answer, Wanted(self._fragment_max, self._signs_header))
        except AuthenticationFailed as failed:
            # What protects the answers does not work any more.
            self._close(str(failed))
            return
        if data:
            self._out.add(Written(data))

    def _take(self, header: Header, data: bytes) -> None:
        if not header.is_understood:
            if header.kind == PduType.BIND and self._state is AssociationState.UNBOUND:
                raise self._out.nak(
                    header.call, NakReason.PROTOCOL_VERSION, "it speaks another version"
                )
            raise Ended("it speaks another version")
        kind = _KINDS.get(header.kind)
        following = None if kind is None else TRANSITIONS.get((self._state, kind))
        if following is None:
            raise self._unexpected(header)
        match kind:
            case PduType.BIND:
                self._bind(header, data)
            case PduType.ALTER_CONTEXT:
                self._alter(header, data)
            case PduType.AUTH3:
                self._auth3(header, data)
            case PduType.REQUEST:
                self._request(header, data)
            case _:
                self._cancel(header, data)
        self._state = following

    def _unexpected(self, header: Header) -> Ended:
        sentence = f"a fragment of the kind {header.kind} has no place here"
        if header.kind == PduType.BIND:
            return self._out.nak(header.call, NakReason.NOT_SPECIFIED, "it binds a second time")
        if header.kind in _WHAT_IS_ANSWERED:
            return self._out.last_fault(header.call, Status.PROTOCOL, sentence, flags=_NOT_EXECUTED)
        return Ended(sentence)

    def _too_long(self, header: Header, sentence: str) -> None:
        if header.kind == PduType.REQUEST:
            self._out.last_fault(header.call, Status.PROTOCOL, sentence)
        elif header.kind == PduType.BIND:
            self._out.nak(header.call, NakReason.LOCAL_LIMIT, sentence)
        self._close(sentence)

    # Agreements.

    def _bind(self, header: Header, data: bytes) -> None:
        try:
            verifier = read_verifier(header, data)
            bind = read_body(header, data)
        except DecodeError as error:
            raise self._out.nak(header.call, NakReason.PROTOCOL_VERSION, str(error)) from None
        assert isinstance(bind, Bind)
        if verifier is not None:
            self._check_bind_auth(header, verifier)
        try:
            results = self._presentation.negotiate(bind.offers, first=True)
        except BadOffer as bad:
            raise self._out.nak(header.call, NakReason.NOT_SPECIFIED, str(bad)) from None
        token = self._first_token(header, verifier)
        group = self._groups.join(self._key, bind.group)
        if group is None:
            raise self._out.nak(
                header.call, NakReason.NOT_SPECIFIED, "its association group is unknown"
            )
        self.group = group
        self._groups.seen(self._key, self._stranger)
        self._note_proof(self._security.default)
        self._binds += 1
        smaller = min(bind.send_max, bind.receive_max)
        bounded = max(RPC_FRAGMENT_MIN_BYTES, min(RPC_FRAGMENT_MAX_BYTES, smaller))
        self._fragment_max = bounded & ~7
        self._is_concurrent = bool(header.flags & Flag.CONCURRENT)
        self._calls.in_order = not self._is_concurrent
        flags = WHOLE | (header.flags & (Flag.HEADER_SIGNING | Flag.CONCURRENT))
        self._note_header_signing(header)
        address = str(self._door.port).encode() + b"\0"
        ack = BindAck(self._fragment_max, self._fragment_max, group, address, results)
        self._out.write(PduType.BIND_ACK, header.call, ack, token, flags)

    def _check_bind_auth(self, header: Header, verifier: Verifier) -> None:
        """Refuse what is no authentication that we know."""
        if verifier.level not in _LEVELS:
            reason, sentence = NakReason.NOT_SPECIFIED, "it asks for no level of protection"
        elif verifier.kind not in set(ProviderKind):
            reason, sentence = NakReason.AUTH_TYPE, f"it wants to prove itself by {verifier.kind}"
        elif verifier.level == Level.CALL:
            reason, sentence = NakReason.INVALID_CHECKSUM, "it asks for a level that is not served"
        else:
            return
        raise self._out.nak(header.call, reason, sentence)

    def _first_token(self, header: Header, verifier: Verifier | None) -> Verifier | None:
        if verifier is None:
            return None
        try:
            begun = self._security.begin(verifier)
            if begun is None:
                raise self._out.nak(
                    header.call, NakReason.AUTH_TYPE, f"{_way(verifier)} is not offered here"
                )
            token = begun.step(verifier.token)
        except AuthRefused as refused:
            self._out.refuse(str(refused), verifier)
            raise self._out.nak(header.call, NakReason.INVALID_CHECKSUM, str(refused)) from None
        self._security.default = begun
        return Verifier(verifier.kind, verifier.level, verifier.context, token)

    def _alter(self, header: Header, data: bytes) -> None:
        call = header.call
        try:
            verifier = read_verifier(header, data)
            wanted = read_body(header, data)
        except DecodeError as error:
            raise self._out.last_fault(
                call, Status.PROTOCOL, str(error), flags=_NOT_EXECUTED
            ) from None
        assert isinstance(wanted, Bind)
        self._count_bind(header)
        if verifier is not None and (
            verifier.kind == _NO_AUTHENTICATION or verifier.level not in _LEVELS
        ):
            sentence = "it asks for no level of protection"
            raise self._out.last_fault(call, Status.ACCESS_DENIED, sentence, flags=_NOT_EXECUTED)
        try:
            results = self._presentation.negotiate(wanted.offers, first=False)
        except BadOffer as bad:
            raise self._out.last_fault(
                call, Status.PROTOCOL, str(bad), flags=_NOT_EXECUTED
            ) from None
        token = None if verifier is None else self._next_token(call, verifier)
        self._note_header_signing(header)
        flags = WHOLE | (header.flags & Flag.HEADER_SIGNING)
        ack = BindAck(self._fragment_max, self._fragment_max, self.group, b"", results)
        self._out.write(PduType.ALTER_CONTEXT_RESPONSE, call, ack, token, flags)

    def _next_token(self, call: int, verifier: Verifier) -> Verifier:
        """Take a token for a context that is begun, or for a new one."""
        try:
            security = self._security.to_go_on(verifier) or self._security.begin(verifier)
            if security is None or verifier.level == Level.CALL:
                raise AuthRefused(Status.ACCESS_DENIED, f"{_way(verifier)} is not offered here")
            token = security.step(verifier.token)
        except AuthRefused as refused:
            self._out.refuse(str(refused), verifier)
            raise self._out.last_fault(
                call, refused.status, str(refused), flags=_NOT_EXECUTED
            ) from None
        self._note_proof(security)
        return Verifier(verifier.kind, verifier.level, verifier.context, token)

    def _auth3(self, header: Header, data: bytes) -> None:
        """Take a last token, to which nobody waits for an answer."""
        try:
            verifier = read_verifier(header, data)
        except DecodeError as error:
            raise self._out.last_fault(
                header.call, Status.NO_MEMORY, str(error), flags=_NOT_EXECUTED
            ) from None
        self._count_bind(header)
        security = None
        sentence = "it has nothing to prove any more"
        if verifier is not None:
            try:
                security = self._security.to_go_on(verifier)
            except AuthRefused as refused:
                sentence = str(refused)
        if verifier is None or security is None:
            raise self._out.last_fault(header.call, Status.PROTOCOL, sentence, flags=_NOT_EXECUTED)
        try:
            security.step(verifier.token, is_last=True)
        except AuthRefused as unproved:
            # Its calls are refused; this fragment has no answer.
            self._out.refuse(str(unproved), verifier)
            return
        self._note_proof(security)

    def _count_bind(self, header: Header) -> None:
        self._binds += 1
        if self._binds > RPC_BINDS_MAX_COUNT:
            sentence = f"it has altered its contexts more than {RPC_BINDS_MAX_COUNT} times"
            raise self._out.last_fault(header.call, Status.PROTOCOL, sentence, flags=_NOT_EXECUTED)

    def _note_proof(self, security: Security | None) -> None:
        if security is not None and security.state is SecurityState.PROVED:
            self._groups.seen(self._key, security.caller)
            self._out.add(Proved(security.caller, security.kind, security.level))

    def _note_header_signing(self, header: Header) -> None:
        if header.flags & Flag.HEADER_SIGNING:
            self._signs_header = True

    # Calls.

    def _request(self, header: Header, data: bytes) -> None:
        try:
            verifier = read_verifier(header, data)
            said = read_request(header, data)
        except DecodeError as error:
            raise self._out.last_fault(header.call, Status.PROTOCOL, str(error)) from None
        incoming = self._incoming
        if incoming is None:
            self._begin(header, said, verifier, data)
            return
        if incoming.call != header.call:
            sentence = "it begins a call before the one before it is whole"
            if self._is_concurrent:
                raise self._out.last_fault(header.call, Status.PROTOCOL, sentence)
            raise self._out.last_fault(
                incoming.call, Status.PROTOCOL, sentence, context=incoming.context
            )
        stub = self._opened(incoming.security, header, data, verifier, incoming.context)
        if header.flags & Flag.FIRST:
            sentence = "it begins a call a second time"
            raise self._out.last_fault(
                incoming.call, Status.PROTOCOL, sentence, context=incoming.context
            )
        self._add(incoming, header, stub)

    def _begin(
        self, header: Header, said: tuple[int, int, int], verifier: Verifier | None, data: bytes
    ) -> None:
        """Take the first fragment of a call."""
        hint, context, operation = said
        call = header.call
        is_first = bool(header.flags & Flag.FIRST)
        if not is_first and not self._is_concurrent:
            raise self._out.last_fault(
                call, Status.PROTOCOL, "it goes on with a call that is not there"
            )
        if is_first and header.flags & Flag.PENDING_CANCEL:
            sentence = "it begins a call and cancels it"
            raise self._out.last_fault(call, Status.NO_CALL_ACTIVE, sentence, flags=_NOT_EXECUTED)
        interface = self._presentation.find(context)
        security = self._speaker(call, context, verifier, is_known=interface is not None)
        stub = self._opened(security, header, data, verifier, context)
        if interface is None:
            self._out.fault(call, Status.UNKNOWN_INTERFACE, 0, _NOT_EXECUTED)
            return
        if not is_first:
            sentence = "it goes on with a call that is not there"
            raise self._out.last_fault(call, Status.PROTOCOL, sentence, context=context)
        if self._calls.find(call) is not None:
            raise self._out.last_fault(call, Status.PROTOCOL, "it begins a call that is under way")
        incoming = Incoming(call, context, interface, operation, security)
        if not header.flags & Flag.LAST and hint > RPC_CALL_MAX_BYTES:
            sentence = f"it announces a call of {hint} bytes"
            raise self._out.last_fault(call, Status.ACCESS_DENIED, sentence, context=context)
        self._add(incoming, header, stub)

    def _speaker(
        self, call: int, context: int, verifier: Verifier | None, *, is_known: bool
    ) -> Security | None:
        try:
            return self._security.speaker(verifier)
        except AuthRefused as refused:
            if refused.status is Status.PROTOCOL:
                raise self._out.last_fault(
                    call, Status.PROTOCOL, str(refused), flags=_NOT_EXECUTED
                ) from None
            if not is_known:
                # It is told that the interface is unknown; nobody is spoken for.
                return None
            self._out.refuse(str(refused), verifier)
            raise self._out.last_fault(
                call, refused.status, str(refused), context=context
            ) from None

    def _opened(
        self,
        security: Security | None,
        header: Header,
        data: bytes,
        verifier: Verifier | None,
        context: int,
    ) -> bytes:
        """Return what a fragment of a call says."""
        start = stub_offset(header.flags)
        if security is None or verifier is None:
            if security is not None and security.protects:
                sentence = "a fragment of its call is not protected"
                raise self._out.last_fault(header.call, Status.PROTOCOL, sentence, context=context)
            return data[start : body_end(header)]
        try:
            return security.open(data, start, verifier, signs_header=self._signs_header)
        except AuthRefused as refused:
            self._out.refuse(str(refused), verifier, security.caller.name)
            raise self._out.last_fault(
                header.call, refused.status, str(refused), context=context
            ) from None

    def _add(self, incoming: Incoming, header: Header, stub: bytes) -> None:
        call, context = incoming.call, incoming.context
        if not incoming.add(stub):
            sentence = f"its call has more than {RPC_CALL_MAX_BYTES} bytes"
            raise self._out.last_fault(call, Status.ACCESS_DENIED, sentence, context=context)
        if not header.flags & Flag.LAST:
            self._incoming = incoming
            return
        self._incoming = None
        security = incoming.security
        facts = self._door.interfaces[incoming.interface]
        whole, said = split(incoming.stub)
        if said is not None and not self._is_as_said(said, header, incoming):
            sentence = "what it says of its call is not what has come"
            raise self._out.last_fault(call, Status.ACCESS_DENIED, sentence, context=context)
        if incoming.operation >= facts.operations:
            self._out.fault(call, Status.OPERATION_RANGE, context, _NOT_EXECUTED)
        elif not self._may_call(security, facts.minimum, incoming.interface):
            self._out.fault(call, Status.ACCESS_DENIED, context, _NOT_EXECUTED)
        elif self._calls.is_full:
            self._out.fault(call, Status.TOO_BUSY, context, _NOT_EXECUTED)
        else:
            number = self._calls.begin(call, context, security)
            caller = self._stranger if security is None else security.caller
            self._out.add(
                CallArrived(number, incoming.interface, incoming.operation, whole, caller)
            )

    def _is_as_said(self, said: Said, header: Header, incoming: Incoming) -> bool:
        """Whether nobody has changed on the way what a client says once more behind a call."""
        ours = incoming.interface
        sent = SaidRequest(
            PduType.REQUEST,
            header.representation,
            incoming.call,
            incoming.context,
            incoming.operation,
        )
        return (
            said.is_known
            and (self._signs_header or not said.supports_header_signing)
            and said.request in (None, sent)
            # Whoever knows an older minor version has agreed upon ours.
            and (said.interface is None or (ours.uuid, ours.major) == said.interface)
            and said.transfer in (None, NDR)
        )

    def _may_call(self, security: Security | None, minimum: Level, interface: Syntax) -> bool:
        if minimum is Level.NONE:
            return True
        if security is not None and security.level >= minimum and security.caller.is_known:
            return True
        name = self._stranger.name if security is None else security.caller.name
        level = Level.NONE if security is None else security.level
        sentence = f"calls of {interface} need a known caller and the level {minimum.name.lower()}"
        self._out.add(Refused(sentence, name, level.name.lower()))
        return False

    def _cancel(self, header: Header, data: bytes) -> None:
        """Take the wish to end a call. One that is not whole yet just goes on."""
        try:
            verifier = read_verifier(header, data)
            if verifier is not None:
                security = self._security.speaker(verifier)
                if security is not None:
                    security.open(data, HEADER_BYTES, verifier, signs_header=self._signs_header)
        except (DecodeError, AuthRefused) as error:
            raise Ended(str(error)) from None
        number = self._calls.find(header.call)
        if number is not None:
            orphaned = header.kind == PduType.ORPHANED
            if self._calls.cancel(number, orphaned=orphaned):
                self._out.add(CallCancelled(number))

    def _close(self, sentence: str) -> None:
        self._state = AssociationState.CLOSED
        self._incoming = None
        self._out.add(Closed(sentence))


def _way(verifier: Verifier) -> str:
    return f"the way {verifier.kind} to prove oneself at the level {level_name(verifier.level)}"
