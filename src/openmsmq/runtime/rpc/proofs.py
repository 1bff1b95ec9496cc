"""How callers prove who they are: by NTLM with an account of this queue manager, or by Kerberos."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final

from openmsmq.runtime.api.accounts import ACCOUNTS_FILE, AccountBook, AccountDesk
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.logs import Event, EventLog
from openmsmq.security.authentication.guesses import GuessGuard
from openmsmq.security.authentication.ntlm.acceptor import NtlmAcceptor, Target
from openmsmq.security.authentication.ntlm.keys import CHALLENGE_BYTES
from openmsmq.security.authentication.ports import ProviderKind, SecurityContext
from openmsmq.security.authentication.spnego.acceptor import SpnegoAcceptor
from openmsmq.security.authentication.spnego.mechanism import Mechanism
from openmsmq.security.authentication.spnego.tokens import NTLM

_FROM_1601_TO_1970_S: Final = 11_644_473_600
_TENTHS_OF_MICROSECONDS: Final = 10_000_000
_NETBIOS_MAX_CHARACTERS: Final = 15


class Prover:
    """What proves the callers of one connection."""

    def __init__(self, desk: AccountDesk, computer: str, dns_computer: str) -> None:
        self._desk = desk
        self._computer = computer
        self._dns_computer = dns_computer

    def make(self, kind: ProviderKind) -> SecurityContext | None:
        """Begin to prove a caller; None for a way that is not offered."""
        match kind:
            case ProviderKind.NTLM:
                return self._ntlm()
            case ProviderKind.SPNEGO:
                return SpnegoAcceptor((Mechanism((NTLM,), self._ntlm),))
            case ProviderKind.KERBEROS:
                return None

    @property
    def is_still_good(self) -> bool:
        """Whether those who have proved to be somebody still are."""
        return self._desk.is_still_good

    def _ntlm(self) -> NtlmAcceptor:
        time = (read_clocks().unix_s + _FROM_1601_TO_1970_S) * _TENTHS_OF_MICROSECONDS
        challenge = secrets.token_bytes(CHALLENGE_BYTES)
        return NtlmAcceptor(self._desk, Target(self._computer, self._dns_computer, challenge, time))


class Proofs:
    """Whatever proves callers at this queue manager."""

    def __init__(self, config: ServerConfig, log: EventLog) -> None:
        """Read the accounts, or raise `ConfigError`, too if nobody could prove who he is."""
        path = Path(config.data) / ACCOUNTS_FILE
        self._book = AccountBook(
            path, lambda reason: log.error(Event.ACCOUNTS_UNUSABLE, reason=reason)
        )
        self._guard = GuessGuard()
        self._computer = config.manager_name.upper()[:_NETBIOS_MAX_CHARACTERS]
        self._dns_computer = config.qualified_name or config.manager_name.lower()
        self.principal: Final = f"host/{self._dns_computer}" if config.rpc.keytab else ""
        """The name under which Kerberos knows the computer; empty without."""
        if not len(self._book) and not config.rpc.keytab:
            raise ConfigError(
                "[rpc] is enabled without accounts and without a keytab, so nobody could prove "
                f"who he is: add an account with openmsmq user add NAME --data {config.data}, or "
                "give keytab",
                "rpc",
            )

    def prover(self, address: str) -> Prover:
        """Make what proves the callers of a connection from an address."""
        desk = AccountDesk(self._book, self._guard, address, read_clocks)
        return Prover(desk, self._computer, self._dns_computer)

    def look(self) -> bool:
        """Read again what has changed; say whether anything has."""
        return self._book.look()
