"""The table `[rpc]` of a configuration file: who may call from afar, and where (decision 0045)."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from openmsmq.model.limits import PORT_MAX_NUMBER, RPC_PORT
from openmsmq.runtime.config.tables import says
from openmsmq.security.access.sids import Sid
from openmsmq.security.authentication.ports import Level


class RpcTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an operator decides about remote procedure calls."""

    enabled: Annotated[
        bool, says("Whether queues are read and managed from other computers by RPC.")
    ] = False
    address: Annotated[
        str, says("IP address (or host name) to listen on. Empty: the one of `address`.")
    ] = ""
    port: Annotated[
        int,
        says(
            "TCP port of the interfaces; while one is taken, the one 11 further is tried.",
            ge=1,
            le=PORT_MAX_NUMBER,
        ),
    ] = RPC_PORT
    endpoint_mapper: Annotated[
        Literal["own", "off"],
        says(
            "The endpoint mapper on port 135, where clients ask for the port: `own` opens it; "
            "`off` leaves the port to another program, such as Samba."
        ),
    ] = "own"
    minimum_level: Annotated[
        Literal["connect", "packet", "integrity", "privacy"],
        says(
            "How far calls must be protected at least. Windows uses `privacy`. With `connect`, "
            "whoever passes on somebody's authentication calls as that one."
        ),
    ] = "privacy"
    keytab: Annotated[
        str,
        says(
            "Keytab for Kerberos, relative to the data directory, with `host/NAME`. Empty: no "
            "Kerberos."
        ),
    ] = ""
    kerberos_principals: Annotated[
        dict[str, str],
        says(
            "The SIDs of those whose tickets have none inside, by their names, such as "
            '`"alice@EXAMPLE.COM" = "S-1-5-21-..."`; domain controllers of Windows and Samba put '
            "them in."
        ),
    ] = {}
    administrators: Annotated[
        tuple[str, ...],
        says("SIDs of users and groups of the domain who look after this queue manager."),
    ] = ()
    remote_hosts: Annotated[
        tuple[str, ...],
        says(
            "Computers whose queues applications may read through this queue manager, as names, "
            "addresses or patterns: `*.example.com`, or `beta*`, where the star stands for no dot. "
            "Empty: none."
        ),
    ] = ()
    remote_user: Annotated[
        str,
        says(r"The account by which they are read: `name` or `DOMAIN\name`."),
    ] = ""
    remote_password_file: Annotated[
        str,
        says(
            "File with its password, for its owner alone, relative to the data directory; it is "
            "read whenever a queue is opened."
        ),
    ] = ""
    remote_callers: Annotated[
        Literal["administrators", "everybody"],
        says("Who may read other computers by that account: administrators, or every user."),
    ] = "administrators"
    remote_port: Annotated[
        int,
        says(
            "TCP port of the interfaces at those computers. 0: their endpoint mappers are asked.",
            ge=0,
            le=PORT_MAX_NUMBER,
        ),
    ] = 0
    connections_max: Annotated[int, says("Connections at a time to each port.", ge=1)] = 200
    connections_per_peer_max: Annotated[int, says("The same, from one address.", ge=1)] = 50

    def __post_init__(self) -> None:
        if self.remote_hosts and not (self.remote_user and self.remote_password_file):
            raise ValueError("remote_hosts needs remote_user and remote_password_file")
        for text in (*self.kerberos_principals.values(), *self.administrators):
            # A mistake here would let somebody in as nobody.
            Sid.parse(text)

    @property
    def level(self) -> Level:
        """The least protection as the protocol numbers it."""
        return Level[self.minimum_level.upper()]
