"""Who remote readers prove to be, and how a node finds out: by NTLM, alone or within SPNEGO.

The account of a reader has the address from which it calls as its name. So whoever comes in under
another name, or with a wrong password, is seen to do so.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec

from openmsmq.protocol.rpc.client_states import Protection
from openmsmq.security.access.callers import UNLIMITED, Caller
from openmsmq.security.access.sids import AUTHENTICATED
from openmsmq.security.authentication.initiators import credentials_of, negotiated
from openmsmq.security.authentication.ntlm.acceptor import NtlmAcceptor
from openmsmq.security.authentication.ntlm.initiator import NtlmInitiator
from openmsmq.security.authentication.ntlm.parties import Account, Chance, Credentials, Target
from openmsmq.security.authentication.ports import Level, ProviderKind, SecurityContext
from openmsmq.security.authentication.spnego.acceptor import SpnegoAcceptor
from openmsmq.security.authentication.spnego.offer import Mechanism
from openmsmq.security.authentication.spnego.tokens import NTLM

if TYPE_CHECKING:
    import random

    from openmsmq.sim.scenarios.remote import Proof

_CHALLENGE_BYTES: Final = 8
_KEY_BYTES: Final = 16
_NOW: Final = 133_000_000_000_000_000
"""Some moment, as NTLM counts them."""
_COMPUTER: Final = "SIMULATED"


def minimum_of(proof: Proof | None) -> Level:
    """Return how far a node wants fragments to be protected."""
    return Level.NONE if proof is None else Level[proof.level.upper()]


def protection_of(
    proof: Proof, name: str, rng: random.Random, *, is_right: bool = True
) -> Protection:
    """Return how somebody proves to be a reader, perhaps without its password."""
    password = name if is_right else "guessed"
    chance = Chance(rng.randbytes(_CHALLENGE_BYTES), rng.randbytes(_KEY_BYTES), _NOW)
    credentials = _credentials(name, password)
    if proof.kind == "spnego":
        context: SecurityContext = negotiated(credentials, chance, _COMPUTER)
    else:
        context = NtlmInitiator(credentials, chance, _COMPUTER)
    return Protection(ProviderKind[proof.kind.upper()], minimum_of(proof), context)


class Examiner:
    """Finds out who a caller is, for one connection."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def begin(self, kind: ProviderKind) -> SecurityContext | None:
        """Begin an authentication; there are no tickets here."""
        if kind is ProviderKind.SPNEGO:
            return SpnegoAcceptor((Mechanism((NTLM,), self._ntlm),))
        return self._ntlm() if kind is ProviderKind.NTLM else None

    def _ntlm(self) -> NtlmAcceptor:
        challenge = self._rng.randbytes(_CHALLENGE_BYTES)
        return NtlmAcceptor(_Readers(), Target(_COMPUTER, _COMPUTER.lower(), challenge, _NOW))


class _Readers:
    """The accounts of all readers."""

    def find(self, user: str) -> Account:
        """Return the account of a reader; each has its own name as password."""
        return Account(_credentials(user, user).nt_hash, _caller(user))

    def note(self, user: str, *, proved: bool) -> None:
        """Nobody counts attempts here."""


@cache
def _credentials(name: str, password: str) -> Credentials:
    return credentials_of(name, password)


@cache
def _caller(name: str) -> Caller:
    sids = UNLIMITED.sids | {AUTHENTICATED}
    return msgspec.structs.replace(UNLIMITED, name=name, sids=sids)
