"""What proves the callers of this queue manager, as its configuration says."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final

from openmsmq.runtime.api.accounts import ACCOUNTS_FILE, AccountBook
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.logs import Event, EventLog
from openmsmq.runtime.rpc.authentication import (
    Authentication,
    ConnectionAuthentication,
    Surroundings,
    kerberos_by,
)
from openmsmq.runtime.rpc.domain_users import DomainUsers
from openmsmq.security.access.sids import Sid


class Proofs:
    """Accounts and keys, and who was believed because of them."""

    def __init__(self, config: ServerConfig, log: EventLog) -> None:
        """Read them, or raise `ConfigError`, too if nobody could prove who he is."""
        self._book = AccountBook(
            Path(config.data) / ACCOUNTS_FILE,
            lambda reason: log.error(Event.ACCOUNTS_UNUSABLE, reason=reason),
        )
        dns_name = config.qualified_name or config.manager_name.lower()
        table = config.rpc
        kerberos = None
        if table.keytab:
            principals = {name: Sid.parse(sid) for name, sid in table.kerberos_principals.items()}
            users = DomainUsers(principals, frozenset(map(Sid.parse, table.administrators)))
            kerberos = kerberos_by(Path(config.data) / table.keytab, users)
        self.principal: Final = f"host/{dns_name}" if table.keytab else ""
        """The name under which Kerberos knows the computer; empty without."""
        self._authentication = Authentication(
            Surroundings(config.manager_name, dns_name, read_clocks, secrets.token_bytes),
            self._book,
            kerberos,
        )
        if not self._authentication.is_possible:
            raise ConfigError(
                "[rpc] is enabled without accounts and without a keytab, so nobody could prove "
                f"who he is: add an account with openmsmq user add NAME --data {config.data}, or "
                "give keytab",
                "rpc",
            )

    def of_connection(self, address: str) -> ConnectionAuthentication:
        """Return what proves the callers of one connection, which comes from this address."""
        return self._authentication.of_connection(address)

    def look(self) -> None:
        """Read again what has changed."""
        self._book.look()
