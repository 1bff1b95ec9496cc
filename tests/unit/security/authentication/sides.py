"""Both sides of NTLM as tests make them, with everything handed in."""

from __future__ import annotations

from typing import Final

from openmsmq.security.access.callers import Caller
from openmsmq.security.access.sids import Sid, identities
from openmsmq.security.authentication.ntlm.acceptor import Account, NtlmAcceptor, Target
from openmsmq.security.authentication.ntlm.initiator import Chance, Credentials, NtlmInitiator
from openmsmq.security.authentication.ntlm.keys import nt_hash
from openmsmq.security.authentication.ports import AuthenticationFailed, Fragment

PASSWORD: Final = "correct horse"
SERVER_CHALLENGE: Final = bytes.fromhex("0123456789abcdef")
TIME: Final = 0x01DC_0000_0000_0000
_SID: Final = Sid.of(5, 21, 1, 2, 3, 1000)
ALICE: Final = Caller("account alice", _SID, identities(_SID))
FRAGMENT: Final = Fragment(b"the header of a fragment", b"the stub".ljust(64, b"."), b"trailer.")


class Book:
    """One account, and what becomes of attempts for it."""

    def __init__(self, user: str = "alice", password: str = PASSWORD) -> None:
        self._user = user
        self._hash = nt_hash(password)
        self.attempts: list[tuple[str, bool]] = []
        self.is_closed = False

    def find(self, user: str) -> Account | None:
        if self.is_closed:
            raise AuthenticationFailed("too early")
        return Account(self._hash, ALICE) if user.lower() == self._user else None

    def note(self, user: str, *, proved: bool) -> None:
        self.attempts.append((user, proved))


def acceptor(book: Book | None = None) -> NtlmAcceptor:
    target = Target("ALPHA", "alpha.example", SERVER_CHALLENGE, TIME)
    return NtlmAcceptor(book or Book(), target)


def initiator(
    user: str = "alice", password: str = PASSWORD, domain: str = "WORKGROUP"
) -> NtlmInitiator:
    chance = Chance(b"\xaa" * 8, b"\x55" * 16, TIME)
    return NtlmInitiator(
        Credentials(user, domain, nt_hash(password), "BETA"), chance, "host/alpha.example"
    )


def conversation(client: NtlmInitiator, server: NtlmAcceptor) -> tuple[bytes, bytes, bytes]:
    """Let both talk to the end; give the three messages."""
    negotiate = client.step(b"").token
    challenge = server.step(negotiate).token
    authenticate = client.step(challenge).token
    assert server.step(authenticate).is_complete
    return negotiate, challenge, authenticate
