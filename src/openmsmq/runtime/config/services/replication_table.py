"""The table `[replication]` of a configuration file: where the log is (decision 0055)."""

from __future__ import annotations

import re
import socket
from typing import Annotated, Any, Final

import msgspec

from openmsmq.protocol.replication.log import LeaseTimes
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.tables import read_table, says

LEASE_MARGIN_SHARE: Final = 6
"""A primary stops answering by one part in so many of its lease before that can have ended."""
RENEWALS_PER_LEASE: Final = 4
"""How often a primary renews its lease within it."""

LOOKS_PER_LEASE: Final = 15
"""How often a standby looks at the log within it."""

_SECRET: Final = re.compile(r"(?i)password\s*=|://[^/@]*:[^/@]*@")


class ReplicationTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an operator decides about a queue manager on several computers."""

    database: Annotated[
        str,
        says(
            "PostgreSQL that keeps the log of every turn, as a connection string: "
            "`host=db1,db2 dbname=openmsmq user=openmsmq`. Leave the password to `passfile=` or "
            "`PGPASSFILE`. Empty: this queue manager is on one computer."
        ),
    ] = ""
    member: Annotated[
        str,
        says(
            "What this computer is called in the log; another one than that of every other "
            "computer with this queue manager. Empty: the name of the host.",
            max_length=255,
        ),
    ] = ""
    lease_ms: Annotated[
        int,
        says(
            "A standby takes over when the primary has been silent for so long. While a record "
            "of more than 4 MiB is on its way, it is longer by 125 ms for each MiB.",
            ge=500,
            le=600_000,
        ),
    ] = 3000
    answer_timeout_ms: Annotated[
        int,
        says("An answer of the database is awaited for so long; then it is asked again.", ge=100),
    ] = 2000
    on_promotion: Annotated[
        str,
        says(
            "Program that is run before this computer serves as the primary, to take over an "
            "address for example; its argument is the name of the queue manager. If it fails, "
            "the computer does not serve."
        ),
    ] = ""
    single_database: Annotated[
        bool,
        says(
            "Whether a database without a synchronous standby is enough. What is acknowledged is "
            "lost with its disk then."
        ),
    ] = False
    forget_standby_h: Annotated[
        int,
        says(
            "The log keeps what a standby lacks; one that was silent for so long has to begin "
            "from a back-up.",
            ge=1,
            le=8760,
        ),
    ] = 24

    @property
    def own_name(self) -> str:
        """What this computer is called in the log."""
        return self.member or socket.gethostname()

    @property
    def times(self) -> LeaseTimes:
        """How long a lease is, and who looks how often."""
        lease_ms = self.lease_ms
        return LeaseTimes(
            lease_ms=lease_ms,
            margin_ms=lease_ms // LEASE_MARGIN_SHARE,
            renew_ms=lease_ms // RENEWALS_PER_LEASE,
            look_ms=lease_ms // LOOKS_PER_LEASE,
        )


def read_replication(table: dict[str, Any], file: str) -> ReplicationTable:
    """Read the table of a file."""
    read = read_table(table, ReplicationTable, file, "replication")
    if table and not read.database:
        raise ConfigError(
            f"{file}: [replication] has no database: say where PostgreSQL is, such as "
            "host=db1 dbname=openmsmq",
            "replication",
        )
    if not read.member.isprintable() or read.member != read.member.strip():
        raise ConfigError(
            f"{file}: [replication] member {read.member!r} is no name: leave out what cannot be "
            "printed, and spaces around it",
            "replication",
            "member",
        )
    if _SECRET.search(read.database):
        raise ConfigError(
            f"{file}: [replication] database holds a password, which everybody could read who may "
            "see the configuration: put it into a file that passfile= or PGPASSFILE names",
            "replication",
            "database",
        )
    return read
