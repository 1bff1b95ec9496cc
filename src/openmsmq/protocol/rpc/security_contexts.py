"""Security contexts: who speaks through a connection, as what it has proved, and how protected.

A connection may have several, by the numbers that its client gives them. The one that came with the
bind speaks for fragments without a trailer. [MS-RPCE 3.3.1.5.2, 3.3.3.4]
"""

from __future__ import annotations

from openmsmq.model.limits import RPC_AUTH_LEGS_MAX_COUNT, RPC_CONTEXTS_MAX_COUNT
from openmsmq.protocol.rpc.states import (
    SECURITY_TRANSITIONS,
    Leg,
    MakeContext,
    SecurityState,
)
from openmsmq.security.access.callers import Caller
from openmsmq.security.authentication.ports import (
    AuthenticationFailed,
    Fragment,
    Level,
    ProviderKind,
    SecurityContext,
)
from openmsmq.wire.rpc.fragments import response_head, trailer
from openmsmq.wire.rpc.pdus import (
    AUTH_PADDING_BYTES,
    REQUEST_BYTES,
    TRAILER_BYTES,
    PduType,
    Response,
    Status,
    Verifier,
    write,
)


class AuthRefused(Exception):
    """A token or a trailer is refused: with which status, and a sentence for the log."""

    def __init__(self, status: Status, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Security:
    """One security context, from its first token on."""

    def __init__(
        self, context: SecurityContext, kind: ProviderKind, level: Level, number: int
    ) -> None:
        self._context = context
        self.kind = kind
        self.level = level
        self.number = number
        self.state = SecurityState.PENDING
        self._legs = 0
        self._signature_bytes = -1
        """How long its signatures are, once somebody has asked: that does not change any more."""

    @property
    def caller(self) -> Caller:
        """Who it is; only when it is proved."""
        return self._context.caller

    @property
    def protects(self) -> bool:
        """Whether fragments carry signatures."""
        return self.level >= Level.PACKET

    def step(self, token: bytes, *, is_last: bool = False) -> bytes:
        """Take a token; return the one to send back. Raise `AuthRefused`."""
        self._legs += 1
        if self._legs > RPC_AUTH_LEGS_MAX_COUNT:
            self.state = SecurityState.BROKEN
            raise AuthRefused(
                Status.ACCESS_DENIED, f"it needs more than {RPC_AUTH_LEGS_MAX_COUNT} tokens"
            )
        try:
            step = self._context.step(token)
        except AuthenticationFailed as failed:
            self.state = SecurityState.BROKEN
            raise AuthRefused(Status.ACCESS_DENIED, str(failed)) from None
        if is_last and (step.token or not step.is_complete):
            # Nobody waits for a token of ours that would be the last one.
            leg = Leg.GIVEN_UP
        else:
            leg = Leg.DONE if step.is_complete else Leg.MORE
        self.state = SECURITY_TRANSITIONS[self.state, leg]
        if leg is Leg.GIVEN_UP:
            raise AuthRefused(Status.ACCESS_DENIED, "its last token was not enough")
        if leg is Leg.DONE and self.level is Level.PRIVACY:
            self._check_level()
        return step.token

    def _check_level(self) -> None:
        """See whether what was agreed on can seal at all."""
        try:
            self._context.signature_size(self.level)
        except AuthenticationFailed as failed:
            self.state = SecurityState.BROKEN
            raise AuthRefused(Status.SECURITY_PACKAGE, str(failed)) from None

    def open(self, data: bytes, start: int, verifier: Verifier, *, signs_header: bool) -> bytes:
        """Return the stub of a fragment that begins at an offset, or raise `AuthRefused`."""
        at = len(data) - len(verifier.token) - TRAILER_BYTES
        stub = data[start:at]
        if self.protects:
            fragment = Fragment(data[:start], stub, data[at : at + TRAILER_BYTES])
            try:
                stub = self._context.unprotect(
                    self.level, fragment, verifier.token, signs_header=signs_header
                )
            except AuthenticationFailed as failed:
                raise AuthRefused(Status.SECURITY_PACKAGE, str(failed)) from None
        return stub[: len(stub) - verifier.padding]

    def stub_room(self, fragment_max: int) -> int:
        """Return how many bytes of a stub fit into a fragment."""
        room = fragment_max - REQUEST_BYTES
        if not self.protects:
            return room
        room -= TRAILER_BYTES + self._signature_size()
        return room // AUTH_PADDING_BYTES * AUTH_PADDING_BYTES

    def seal(self, call: int, response: Response, flags: int, *, signs_header: bool) -> bytes:
        """Return a fragment of results as it is sent."""
        if not self.protects:
            return write(PduType.RESPONSE, call, response, flags=flags)
        stub = response.stub
        padding = -len(stub) % AUTH_PADDING_BYTES
        if padding:
            stub += bytes(padding)
        size = self._signature_size()
        length = REQUEST_BYTES + len(stub) + TRAILER_BYTES + size
        before = response_head(
            flags, length, size, call, response.hint, response.context, response.cancels
        )
        behind = trailer(self.kind, self.level, self.number, padding)
        sent, signature = self._context.protect(
            self.level, Fragment(before, stub, behind), signs_header=signs_header
        )
        return b"".join((before, sent, behind, signature))

    def _signature_size(self) -> int:
        if self._signature_bytes < 0:
            self._signature_bytes = self._context.signature_size(self.level)
        return self._signature_bytes


class SecurityBook:
    """The security contexts of one connection."""

    def __init__(self, make_context: MakeContext) -> None:
        self._make = make_context
        self._contexts: dict[int, Security] = {}
        self.default: Security | None = None
        """The one that speaks for fragments without a trailer."""

    def begin(self, verifier: Verifier) -> Security | None:
        """Begin one with its first token; None for a way to prove that is not offered."""
        if len(self._contexts) >= RPC_CONTEXTS_MAX_COUNT:
            raise AuthRefused(
                Status.PROTOCOL,
                f"it has {RPC_CONTEXTS_MAX_COUNT} security contexts already",
            )
        if verifier.kind not in set(ProviderKind):
            return None
        kind = ProviderKind(verifier.kind)
        made = self._make(kind)
        if made is None:
            return None
        security = Security(made, kind, Level(verifier.level), verifier.context)
        self._contexts[verifier.context] = security
        return security

    def to_go_on(self, verifier: Verifier) -> Security | None:
        """Return the one that a further token is for; None for a new one. Raise `AuthRefused`."""
        found = self._contexts.get(verifier.context)
        if found is None:
            return None
        if found.state is not SecurityState.PENDING:
            raise AuthRefused(Status.ACCESS_DENIED, "its security context is settled already")
        if found.kind != verifier.kind:
            raise AuthRefused(Status.SECURITY_PACKAGE, "it changes its way to prove itself")
        if found.level != verifier.level:
            raise AuthRefused(Status.ACCESS_DENIED, "it changes its level of protection")
        return found

    def speaker(self, verifier: Verifier | None) -> Security | None:
        """Return who speaks in a first fragment; None for a stranger. Raise `AuthRefused`."""
        found = self.default if verifier is None else self._contexts.get(verifier.context)
        if found is None:
            if verifier is None:
                return None
            raise AuthRefused(Status.ACCESS_DENIED, "its security context is unknown")
        if found.state is SecurityState.PENDING:
            raise AuthRefused(Status.PROTOCOL, "it calls before it has proved who it is")
        if found.state is SecurityState.BROKEN:
            raise AuthRefused(Status.ACCESS_DENIED, "it has not proved who it is")
        if verifier is None:
            if found.protects:
                raise AuthRefused(Status.ACCESS_DENIED, "its call is not protected")
        elif (found.kind, found.level) != (verifier.kind, verifier.level):
            raise AuthRefused(Status.ACCESS_DENIED, "it changes its level of protection")
        return found
