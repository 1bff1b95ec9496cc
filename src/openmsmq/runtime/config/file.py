"""What an operator decides about a server.

`ServerConfig` is the one list of options. The flags of `openmsmq serve`, the environment
variables, the keys of the file and the reference page are all made from it. How queue managers
talk to each other is set in tables of the file only; `transfer_tables` reads them.
"""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from openmsmq.client.settings import API_PORT
from openmsmq.directory.limits import DIRECTORY_POLL_S
from openmsmq.model.directory import DirectoryRole
from openmsmq.model.limits import (
    EXPRESS_MEMORY_DEFAULT_KB,
    MANAGER_QUOTA_DEFAULT_KB,
    MSMQ_PORT,
    PING_PORT,
    PORT_MAX_NUMBER,
    UNLIMITED_KB,
)
from openmsmq.model.peers import address_of
from openmsmq.protocol.config import TransferConfig
from openmsmq.runtime.config.alarm_table import AlarmTable
from openmsmq.runtime.config.doors.http_table import HttpTable
from openmsmq.runtime.config.doors.multicast_table import MulticastTable
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.rpc_table import RpcTable
from openmsmq.runtime.config.security_table import SecurityTable
from openmsmq.runtime.config.services.replication_table import ReplicationTable
from openmsmq.runtime.config.session_tls_table import SessionTlsTable
from openmsmq.runtime.config.tables import meaning_of, says
from openmsmq.runtime.config.telemetry_table import TelemetryTable
from openmsmq.runtime.config.transfer_tables import Parameter, parameters_of
from openmsmq.runtime.logs import Format, Level

VARIABLE_PREFIX: Final = "OPENMSMQ_"
STORE_FOLDER: Final = "store"
"""The store's place below the data directory."""
TOKENS_FILE: Final = "tokens.json"
"""The usual place of the tokens below it."""
AUDIT_LOG: Final = "audit.log"
"""The usual place of the audit log below it."""

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,255}")


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an operator decides about a server."""

    name: Annotated[
        str, says("Computer name of the queue manager. Empty: the host's, upper-cased.")
    ] = ""
    data: Annotated[str, says("Directory for everything the queue manager keeps. Required.")] = ""
    address: Annotated[str, says("IP address (or host name) to listen on.")] = "127.0.0.1"
    also_known_as: Annotated[
        tuple[str, ...], says("Further host names and IP addresses by which others address it.")
    ] = ()
    api_tcp: Annotated[bool, says("Whether applications may connect by TCP.")] = True
    api_port: Annotated[
        int, says("TCP port for applications; 0 takes a free one.", ge=0, le=65535)
    ] = API_PORT
    api_socket: Annotated[
        str,
        says("Unix socket for applications, relative to the data directory; `none` for no socket."),
    ] = "api.sock"
    api_socket_group: Annotated[
        str, says("Group that may use the Unix socket beside the server's own user and root.")
    ] = ""
    token_file: Annotated[str, says("File with the token that applications must show on TCP.")] = ""
    tokens_file: Annotated[
        str,
        says("File with the tokens that `openmsmq token` makes, relative to the data directory."),
    ] = TOKENS_FILE
    allow_remote_without_token: Annotated[
        bool,
        says(
            "Whether others may connect from other computers without a token. They "
            "may do what `everyone` and `anonymous` may: by default send, and read properties."
        ),
    ] = False
    tls_cert: Annotated[str, says("Certificate chain in PEM; with it, TCP is TLS only.")] = ""
    tls_key: Annotated[str, says("Private key in PEM. Empty: it is in the certificate's file.")] = (
        ""
    )
    tls_client_ca: Annotated[
        str,
        says(
            "Authorities in PEM whose certificates applications may show instead of a "
            "token; the directory says whose a certificate is."
        ),
    ] = ""
    audit_log: Annotated[
        str, says("File for who changed what, relative to the data directory; `none` for no file.")
    ] = AUDIT_LOG
    console: Annotated[
        str,
        says(
            "Address and port of a web console, as `127.0.0.1:1880`; it is a process of its own. "
            "Beyond this computer it needs `tls_cert`. Empty: none."
        ),
    ] = ""
    console_ask_others: Annotated[
        bool,
        says(
            "Whether that console asks the other queue managers of the directory about messages "
            "and their state, as who is signed in. A token is shown to them only over TLS, or on "
            "this computer."
        ),
    ] = False
    console_others_tls: Annotated[
        str,
        says(
            "TLS to those: `system` trusts the authorities of the system, a path names a file of "
            "certificates to trust. Empty: no TLS."
        ),
    ] = ""
    transfer: Annotated[
        bool, says("Whether messages come from other queue managers and go to them.")
    ] = True
    transfer_connections_max: Annotated[
        int, says("Connections from other queue managers at a time.", ge=1)
    ] = 1000
    transfer_connections_per_peer_max: Annotated[int, says("The same, from one address.", ge=1)] = (
        100
    )
    connect_timeout_ms: Annotated[
        int, says("How long to wait for a connection to another queue manager.", ge=1)
    ] = 10_000
    capture: Annotated[
        str,
        says(
            "File in which to record what is sent to other queue managers and received "
            "from them, as pcapng. It holds the messages, and replaces the file that is there."
        ),
    ] = ""
    capture_max_bytes: Annotated[int, says("A recording ends when it is this long.", ge=4096)] = (
        1 << 30
    )
    directory_server: Annotated[
        bool,
        says(
            "Whether it keeps the directory of the enterprise, for itself and others; "
            "a read copy if `directory` says where the original is."
        ),
    ] = False
    directory: Annotated[
        tuple[str, ...],
        says(
            "Directory servers, as `host` or `host:port` of their port for "
            "applications; the first that answers is asked."
        ),
    ] = ()
    directory_discovery: Annotated[
        bool, says("Whether to look for directory servers by broadcast; none is named then.")
    ] = False
    start_without_directory: Annotated[
        bool,
        says(
            "Whether a new queue manager whose directory cannot be reached begins all the same, "
            "in workgroup mode, and registers itself later; a directory that knows its computer "
            "already as another one then does not take it."
        ),
    ] = False
    directory_token_file: Annotated[
        str, says("File with the token that directory servers want to see.")
    ] = ""
    directory_tls: Annotated[
        str,
        says(
            "TLS to directory servers: `system` trusts the authorities of the system, "
            "a path names a file of certificates to trust. Empty: no TLS."
        ),
    ] = ""
    directory_poll_s: Annotated[
        int, says("How often the copy of the directory is renewed.", ge=1, le=86_400)
    ] = DIRECTORY_POLL_S
    enterprise: Annotated[str, says("What a new directory calls the enterprise.")] = "Enterprise"
    site: Annotated[
        str,
        says(
            "Site in which it registers itself; one that is not there is waited for. "
            "Empty: the first by name."
        ),
    ] = ""
    routing_server: Annotated[bool, says("Whether it registers itself as a routing server.")] = (
        False
    )
    qualified_name: Annotated[
        str, says("Full name of the computer, which others ask a name server for.")
    ] = ""
    quota_kb: Annotated[
        int,
        says(
            "Room for the messages of all queues. 0: what the directory says, or "
            f"{MANAGER_QUOTA_DEFAULT_KB}.",
            ge=0,
            le=UNLIMITED_KB,
        ),
    ] = 0
    express_memory_kb: Annotated[
        int, says("Memory for express messages, in the quota.", ge=1, le=UNLIMITED_KB)
    ] = EXPRESS_MEMORY_DEFAULT_KB
    journal_quota_kb: Annotated[
        int,
        says(
            "Room for the journal of the queue manager. 0: what the directory says, or no limit.",
            ge=0,
            le=UNLIMITED_KB,
        ),
    ] = 0
    checkpoint_bytes: Annotated[
        int,
        says(
            "Size of a journal file of the store. Larger: faster with a backlog, "
            "more memory, longer start after a crash.",
            ge=4096,
        ),
    ] = 16 << 20
    connections_max: Annotated[int, says("Connections of applications at a time.", ge=1)] = 1000
    connections_per_peer_max: Annotated[
        int, says("The same, from one address of another computer.", ge=1)
    ] = 100
    calls_waiting_max: Annotated[
        int, says("Calls of one connection that may wait at a time.", ge=1)
    ] = 4096
    write_buffer_bytes: Annotated[
        int,
        says("Answers that may wait for a slow client before its calls are left unread.", ge=4096),
    ] = 1 << 20
    hello_timeout_ms: Annotated[
        int, says("A connection that has not introduced itself by then is closed.", ge=1)
    ] = 10_000
    stop_timeout_ms: Annotated[
        int, says("How long a stop waits for clients to take their answers.", ge=0)
    ] = 5_000
    failure_grace_ms: Annotated[
        int, says("How long a server whose disk failed tells its clients so before it ends.", ge=0)
    ] = 1_000
    event_loop: Annotated[
        Literal["auto", "asyncio", "uvloop"],
        says("Event loop; `auto` takes uvloop if it is installed."),
    ] = "auto"
    log_format: Annotated[Format, says("Form of the log lines.")] = "text"
    log_level: Annotated[Level, says("Least important level that is logged.")] = "info"
    # What follows stands in tables of the file.
    session_port: Annotated[
        int, Meta(ge=1, le=PORT_MAX_NUMBER, extra={"registry": "MsmqIpPort"})
    ] = MSMQ_PORT
    ping_port: Annotated[
        int, Meta(ge=1, le=PORT_MAX_NUMBER, extra={"registry": "MsmqIpPingPort"})
    ] = PING_PORT
    parameters: TransferConfig = TransferConfig()
    security: SecurityTable = SecurityTable()
    session_tls: SessionTlsTable = SessionTlsTable()
    alarms: AlarmTable = AlarmTable()
    telemetry: TelemetryTable = TelemetryTable()
    rpc: RpcTable = RpcTable()
    http: HttpTable = HttpTable()
    multicast: MulticastTable = MulticastTable()
    replication: ReplicationTable = ReplicationTable()
    active_directory: dict[str, Any] = {}
    """Where Active Directory is; its own package reads it."""

    def __post_init__(self) -> None:
        if not self.data:
            raise ConfigError(
                "where is the data to be kept? Give --data DIRECTORY, the variable "
                f"{VARIABLE_PREFIX}DATA, or the key data in the configuration file"
            )
        if self.name and not _NAME.fullmatch(self.name):
            raise ConfigError(
                f"name {self.name!r} is no computer name: use up to 256 letters, digits, "
                "hyphens, underscores and dots"
            )
        if self.tls_key and not self.tls_cert:
            raise ConfigError("tls_key is given but tls_cert is not: TLS needs the certificate too")
        if self.tls_client_ca and not self.tls_cert:
            raise ConfigError(
                "tls_client_ca is given but tls_cert is not: certificates are shown over TLS only"
            )
        self._check_console()
        self._check_http()
        if not self.api_tcp and self.socket_path is None:
            raise ConfigError(
                "api_tcp is false and api_socket is none: nobody could connect; allow one of them"
            )

        self._check_directory()

        own = {text.lower() for text in (self.manager_name, self.address, *self.also_known_as)}
        for host in self.parameters.connectors:
            if host in own:
                raise ConfigError(f"[connectors] {host} is this computer, not a foreign one")

    def _check_directory(self) -> None:
        sources = (bool(self.directory), self.directory_discovery, bool(self.active_directory))
        if sum(sources) > 1:
            raise ConfigError(
                "directory, directory_discovery and [active_directory] say where the directory "
                "is: use one of them"
            )
        if self.start_without_directory and self.active_directory:
            raise ConfigError(
                "start_without_directory is given, but Active Directory chooses who a new queue "
                "manager is: leave it out, and start it when a domain controller can be reached"
            )
        if self.start_without_directory and not any(sources):
            raise ConfigError(
                "start_without_directory is given, but there is no directory to come later: say "
                "where it is with directory or directory_discovery"
            )
        if self.directory_server and self.active_directory:
            raise ConfigError(
                "with [active_directory] the domain controllers are the directory servers: leave "
                "directory_server out"
            )

    def _check_console(self) -> None:
        if self.console_ask_others and not self.console:
            raise ConfigError("console_ask_others is given and console is not: say where it is")
        if self.console_others_tls and not self.console_ask_others:
            raise ConfigError(
                "console_others_tls is given and console_ask_others is not: nobody would be asked"
            )
        if not self.console:
            return
        if self.socket_path is None:
            raise ConfigError(
                "console is given and api_socket is none: the console connects by the Unix socket"
            )
        host = self.console.rpartition(":")[0].strip("[]")
        if not (self.tls_cert or is_loopback(host)):
            raise ConfigError(
                f"console = {self.console!r}: other computers may reach it, and without TLS "
                "everybody on the way could read the tokens that people type: give tls_cert, or "
                "use 127.0.0.1:1880 and a tunnel"
            )

    def _check_http(self) -> None:
        table, address = self.http, self.http.address or self.address
        if table.enabled and table.programs and not (table.tls_cert or is_loopback(address)):
            raise ConfigError(
                f"[http] is enabled on {address}: without TLS everybody on the way could read the "
                "tokens of programs: give tls_cert, use 127.0.0.1 behind a reverse proxy with TLS, "
                "or programs = false for SRMP alone"
            )

    @property
    def directory_role(self) -> DirectoryRole:
        """What it has of a directory."""
        if self.directory or self.directory_discovery or self.active_directory:
            return DirectoryRole.COPY
        return DirectoryRole.ORIGINAL if self.directory_server else DirectoryRole.NONE

    @property
    def manager_name(self) -> str:
        """The name, or what the host's name makes of it."""
        return self.name or default_name(socket.gethostname())

    @property
    def store_path(self) -> Path:
        """Where the store is."""
        return Path(self.data) / STORE_FOLDER

    @property
    def socket_path(self) -> Path | None:
        """Where the Unix socket is, or None without one."""
        if self.api_socket in ("", "none"):
            return None
        return Path(self.data) / self.api_socket

    @property
    def tokens_path(self) -> Path:
        """Where the tokens are."""
        return Path(self.data) / self.tokens_file

    @property
    def audit_path(self) -> Path | None:
        """Where the audit log is, or None without one."""
        return None if self.audit_log in ("", "none") else Path(self.data) / self.audit_log

    @property
    def needs_token(self) -> bool:
        """Whether this address may not be served without a token."""
        return (
            self.api_tcp and not self.allow_remote_without_token and not is_loopback(self.address)
        )


def default_name(host: str) -> str:
    """Make a computer name of a host name: its first label, upper-cased."""
    label = re.sub(r"[^A-Z0-9_-]", "", host.partition(".")[0].upper()).lstrip("-")
    return label or "LOCALHOST"


def is_loopback(address: str) -> bool:
    """Whether only this computer can connect to an address."""
    found = address_of(address)
    return address.lower() == "localhost" or (found is not None and found.is_loopback)


# Options and where they come from.

HINTS: Final[dict[str, Any]] = get_type_hints(ServerConfig, include_extras=True)
PARAMETERS: Final[dict[str, Parameter]] = {
    **parameters_of(ServerConfig),
    **parameters_of(TransferConfig),
}
"""Those that have a registry name, by it."""
PORTS: Final = frozenset({"session_port", "ping_port"})
CLASSES: Final = (
    "security",
    "session_tls",
    "alarms",
    "telemetry",
    "rpc",
    "http",
    "multicast",
    "replication",
    "active_directory",
)
"""Tables that are fields of their own."""
_IN_TABLES: Final = {"parameters", *CLASSES, *(each.field for each in PARAMETERS.values())}
DEFAULTS: Final[dict[str, Any]] = {
    field.name: field.default
    for field in msgspec.structs.fields(ServerConfig)
    if field.name not in _IN_TABLES
}
"""The options."""


def flag(key: str) -> str:
    """Return the flag of an option."""
    return "--" + key.replace("_", "-")


def variable(key: str) -> str:
    """Return the environment variable of an option."""
    return VARIABLE_PREFIX + key.upper()


def plain_type(key: str) -> Any:
    """Return the type of an option without its bounds."""
    hint = HINTS[key]
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def description(key: str) -> str:
    """Return the meaning of an option."""
    return meaning_of(HINTS[key])
