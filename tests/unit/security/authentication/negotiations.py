"""Both sides of SPNEGO as tests make them."""

from __future__ import annotations

from openmsmq.security.access.callers import Caller
from openmsmq.security.authentication.ports import Fragment, Level, Step
from openmsmq.security.authentication.spnego.acceptor import SpnegoAcceptor
from openmsmq.security.authentication.spnego.initiator import SpnegoInitiator
from openmsmq.security.authentication.spnego.mechanism import Negotiation
from openmsmq.security.authentication.spnego.offer import Mechanism
from openmsmq.security.authentication.spnego.tokens import KERBEROS, NTLM
from tests.unit.security.authentication.sides import ALICE, PASSWORD, Book, acceptor, initiator


class Endless:
    """A mechanism that is never done."""

    asks_for_mic = False

    def step(self, token: bytes) -> Step:
        return Step(token + b"more", is_complete=False)

    @property
    def caller(self) -> Caller:
        return ALICE

    def signature_size(self, level: Level) -> int:
        return int(level)

    def protect(
        self, level: Level, fragment: Fragment, *, signs_header: bool
    ) -> tuple[bytes, bytes]:
        return fragment.stub, bytes((level, signs_header))

    def unprotect(
        self, level: Level, fragment: Fragment, signature: bytes, *, signs_header: bool
    ) -> bytes:
        return fragment.stub + signature + bytes((level, signs_header))

    def sign_list(self, data: bytes) -> bytes:
        return data

    def check_list(self, data: bytes, signature: bytes) -> None:
        assert data == signature

    def lists_are_signed(self) -> None:
        pass


class Quick(Endless):
    """A mechanism that is done with its first token, and does not ask for a signed list."""

    def step(self, token: bytes) -> Step:
        return Step(token, is_complete=True)


def ntlm_server(book: Book | None = None) -> SpnegoAcceptor:
    return SpnegoAcceptor((Mechanism((NTLM,), lambda: acceptor(book)),))


def ntlm_client(password: str = PASSWORD) -> SpnegoInitiator:
    return SpnegoInitiator((Mechanism((NTLM,), lambda: initiator(password=password)),))


def two_mechanisms() -> SpnegoInitiator:
    """Return a client that would like another mechanism better than NTLM."""
    return SpnegoInitiator((Mechanism((KERBEROS,), Endless), Mechanism((NTLM,), initiator)))


def agree(client: Negotiation, server: Negotiation) -> list[bytes]:
    """Let both talk until both are done; give all tokens."""
    tokens = [client.step(b"").token]
    while True:
        answer = server.step(tokens[-1])
        tokens.append(answer.token)
        step = client.step(answer.token)
        if step.is_complete:
            assert answer.is_complete
            assert not step.token
            return tokens
        tokens.append(step.token)
