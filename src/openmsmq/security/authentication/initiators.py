"""How somebody who calls begins to prove who he is."""

from __future__ import annotations

from openmsmq.security.authentication.ntlm.initiator import NtlmInitiator
from openmsmq.security.authentication.ntlm.keys import nt_hash
from openmsmq.security.authentication.ntlm.parties import Chance, Credentials
from openmsmq.security.authentication.spnego.initiator import SpnegoInitiator
from openmsmq.security.authentication.spnego.offer import Mechanism
from openmsmq.security.authentication.spnego.tokens import NTLM


def credentials_of(user: str, password: str, workstation: str = "") -> Credentials:
    r"""Return credentials for `user`, `DOMAIN\user` or `user@domain`."""
    domain, backslash, name = user.partition("\\")
    if not backslash:
        domain, name = "", user
    return Credentials(name, domain, nt_hash(password), workstation)


def negotiated(credentials: Credentials, chance: Chance, target: str) -> SpnegoInitiator:
    """Return what proves it by the mechanisms that we have; `target` is the server's name."""
    return SpnegoInitiator(
        (Mechanism((NTLM,), lambda: NtlmInitiator(credentials, chance, target)),)
    )
