"""How a call from here is proved and protected."""

from __future__ import annotations

import secrets
import time
from typing import Final

from openmsmq.protocol.rpc.client_states import Protection
from openmsmq.security.authentication.initiators import negotiated
from openmsmq.security.authentication.ntlm.keys import CHALLENGE_BYTES, KEY_BYTES
from openmsmq.security.authentication.ntlm.parties import Chance, Credentials
from openmsmq.security.authentication.ports import Level, ProviderKind

_FROM_1601_TO_1970_S: Final = 11_644_473_600
_TENTHS_OF_MICROSECONDS: Final = 10_000_000


def protection(credentials: Credentials, host: str) -> Protection:
    """Return what proves one connection to a computer and seals its calls."""
    # The client is no part of the deterministic core; most servers say the time themselves.
    now_s = int(time.time())  # noqa: TID251
    chance = Chance(
        secrets.token_bytes(CHALLENGE_BYTES),
        secrets.token_bytes(KEY_BYTES),
        (now_s + _FROM_1601_TO_1970_S) * _TENTHS_OF_MICROSECONDS,
    )
    context = negotiated(credentials, chance, f"host/{host}")
    return Protection(ProviderKind.SPNEGO, Level.PRIVACY, context)
