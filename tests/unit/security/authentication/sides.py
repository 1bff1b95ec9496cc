"""Both sides of NTLM as tests make them, with everything handed in."""

from __future__ import annotations

from typing import Final

from openmsmq.security.access.callers import Caller
from openmsmq.security.access.sids import Sid, identities
from openmsmq.security.authentication.ntlm.acceptor import NtlmAcceptor
from openmsmq.security.authentication.ntlm.initiator import NtlmInitiator
from openmsmq.security.authentication.ntlm.keys import nt_hash
from openmsmq.security.authentication.ntlm.parties import Account, Chance, Credentials, Target
from openmsmq.security.authentication.ports import AuthenticationFailed, Fragment

PASSWORD: Final = "correct horse"
SERVER_CHALLENGE: Final = bytes.fromhex("0123456789abcdef")
TIME: Final = 0x01DC_0000_0000_0000
_SID: Final = Sid.of(5, 21, 1, 2, 3, 1000)
ALICE: Final = Caller("account alice", _SID, identities(_SID))
FRAGMENT: Final = Fragment(b"the header of a fragment", b"the stub".ljust(64, b"."), b"trailer.")

LOGON_INFO: Final = bytes.fromhex(
    "01100800ccccccccb001000000000000000002005e0640ee6b77dd01ffffffffffffff7fffffffffffffff7f"
    "a83469cf6b77dd01a8f4d2f93478dd01a8b4c2c46c98dd010a000a0004000200000000000800020000000000"
    "0c000200000000001000020000000000140002000000000018000200010000004e0400000102000003000000"
    "1c000200200000000000000000000000000000000000000006000800200002000c000e002400020028000200"
    "0000000000000000100000000000000000000000000000000000000000000000000000000000000001000000"
    "2c00020000000000000000000000000005000000000000000500000061006c00690063006500000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "00000000000000000000000003000000010200000700000000020000070000003c0200000700000004000000"
    "000000000300000044004300310000000700000000000000060000004d005100540045005300540004000000"
    "0104000000000005150000003d664c695048718d85c02ef00100000030000200070000000100000001010000"
    "0000001201000000"
)
"""What a domain controller of Samba 4.17 says about the user alice, 1102 of a domain of a test."""


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
