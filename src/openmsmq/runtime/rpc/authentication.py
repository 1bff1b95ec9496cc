"""How callers of RPC can prove who they are at this queue manager."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from openmsmq.model.clock import Instant
from openmsmq.runtime.admission.peer_limits import peer_key
from openmsmq.runtime.api.accounts import AccountBook, AccountDesk
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.rpc.domain_users import DomainUsers
from openmsmq.security.authentication.guesses import GuessGuard
from openmsmq.security.authentication.ntlm.acceptor import NtlmAcceptor
from openmsmq.security.authentication.ntlm.keys import CHALLENGE_BYTES
from openmsmq.security.authentication.ntlm.parties import Target
from openmsmq.security.authentication.ports import ProviderKind, SecurityContext
from openmsmq.security.authentication.spnego.acceptor import SpnegoAcceptor
from openmsmq.security.authentication.spnego.offer import Mechanism, MechanismContext
from openmsmq.security.authentication.spnego.tokens import (
    KERBEROS,
    KERBEROS_OF_WINDOWS,
    NTLM,
)

_FILETIME_OF_1970_S: Final = 11_644_473_600
_TICKS_PER_S: Final = 10_000_000
_NETBIOS_NAME_MAX_CHARACTERS: Final = 15

BeginKerberos = Callable[[], MechanismContext]


class Surroundings(msgspec.Struct, frozen=True):
    """What a driver hands in."""

    computer: str
    """As the queue manager is called."""
    dns_name: str
    clock: Callable[[], Instant]
    random_bytes: Callable[[int], bytes]


def kerberos_by(keytab: Path, users: DomainUsers) -> BeginKerberos:
    """Return what begins an authentication by Kerberos, or raise `ConfigError`."""
    try:
        from openmsmq.runtime.rpc.kerberos import KerberosAcceptor, open_keytab
    except ImportError as error:
        # Where the library of the system is missing, it says so in its own words.
        raise ConfigError(
            f"Kerberos needs the package gssapi: pip install 'openmsmq[kerberos]' ({error})"
        ) from None
    keys = open_keytab(keytab)
    return lambda: KerberosAcceptor(keys, users)


class Authentication:
    """What all connections share: accounts, wrong passwords, and the keys of this computer."""

    def __init__(
        self,
        surroundings: Surroundings,
        accounts: AccountBook | None,
        kerberos: BeginKerberos | None,
    ) -> None:
        self._surroundings = surroundings
        self._accounts = accounts
        self._kerberos = kerberos
        self._guard = GuessGuard()

    @property
    def is_possible(self) -> bool:
        """Whether anybody at all could prove anything."""
        return bool(self._accounts) or self._kerberos is not None

    def of_connection(self, address: str) -> ConnectionAuthentication:
        """Return the providers of one connection, which comes from this address."""
        desk = None
        if self._accounts is not None:
            clock = self._surroundings.clock
            desk = AccountDesk(self._accounts, self._guard, peer_key(address), clock)
        return ConnectionAuthentication(self._surroundings, desk, self._kerberos)


class ConnectionAuthentication:
    """The providers of one connection."""

    def __init__(
        self,
        surroundings: Surroundings,
        desk: AccountDesk | None,
        kerberos: BeginKerberos | None,
    ) -> None:
        self._surroundings = surroundings
        self._desk = desk
        self._kerberos = kerberos

    def begin(self, kind: ProviderKind) -> SecurityContext | None:
        """Begin an authentication; None if this kind is not offered here."""
        if kind is ProviderKind.NTLM:
            return None if self._desk is None else self._ntlm(self._desk)
        if kind is ProviderKind.KERBEROS:
            return None if self._kerberos is None else self._kerberos()
        mechanisms = self._mechanisms()
        return SpnegoAcceptor(mechanisms) if mechanisms else None

    @property
    def is_still_good(self) -> bool:
        """Whether the account that was proved is as it was: whoever asks ends the connection else.

        Tickets of Kerberos are believed for as long as the connection is there.
        """
        return self._desk is None or self._desk.is_still_good

    def _mechanisms(self) -> tuple[Mechanism, ...]:
        found: list[Mechanism] = []
        if self._kerberos is not None:
            found.append(Mechanism((KERBEROS_OF_WINDOWS, KERBEROS), self._kerberos))
        desk = self._desk
        if desk is not None:
            found.append(Mechanism((NTLM,), lambda: self._ntlm(desk)))
        return tuple(found)

    def _ntlm(self, desk: AccountDesk) -> NtlmAcceptor:
        around = self._surroundings
        target = Target(
            around.computer[:_NETBIOS_NAME_MAX_CHARACTERS].upper(),
            around.dns_name,
            around.random_bytes(CHALLENGE_BYTES),
            (around.clock().unix_s + _FILETIME_OF_1970_S) * _TICKS_PER_S,
        )
        return NtlmAcceptor(desk, target)
