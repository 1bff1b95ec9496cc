"""How a queue manager reaches Active Directory: what an administrator writes down."""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

REQUEST_TIMEOUT_DEFAULT_S: Final = 10.0
"""How long one answer of a server may take. [ours]"""

PAGE_DEFAULT_COUNT: Final = 500
"""Entries of one page of results; Active Directory gives at most 1000 at once. [ours]"""

PAGE_MAX_COUNT: Final = 1000
"""The most entries that Active Directory puts on one page. [MS-ADTS 3.1.1.3.4.6, MaxPageSize]"""

SERVERS_MAX_COUNT: Final = 16
"""Servers that are tried in turn. [ours]"""


class Protection(Enum):
    """What keeps others from reading and changing what is said; the values are the options."""

    LDAPS = "ldaps"
    START_TLS = "starttls"
    SASL = "sasl"
    """Kerberos itself encrypts; only with `Bind.GSSAPI`."""


class Bind(Enum):
    """How the queue manager proves who it is; the values are the options."""

    SIMPLE = "simple"
    GSSAPI = "gssapi"
    """With the Kerberos ticket that the process has, or a key table from which it gets one."""


class ActiveDirectoryConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table `[active_directory]` of a configuration file."""

    servers: tuple[str, ...]
    """Domain controllers by host name, tried in turn; `host:port` for another port."""
    base: str = ""
    """The part of the domain where computers, users and lists are; all of it when empty."""
    protection: Protection = Protection.LDAPS
    bind: Bind = Bind.SIMPLE
    user: str = ""
    r"""`user@domain`, `DOMAIN\user` or a distinguished name; for a simple bind."""
    password_file: str = ""
    """A file whose first line is the password; read at each bind, so that it can be changed."""
    ca_file: str = ""
    """The certificate of the authority that signed those of the servers, as PEM; else those that
    the operating system trusts."""
    timeout_s: float = REQUEST_TIMEOUT_DEFAULT_S
    page_count: int = PAGE_DEFAULT_COUNT
    lists_container: str = ""
    """Where new distribution lists are created; the container Users of the domain when empty."""

    def __post_init__(self) -> None:
        problem = self._problem()
        if problem:
            raise ValueError(f"active_directory: {problem}")

    def _problem(self) -> str:
        if not 1 <= len(self.servers) <= SERVERS_MAX_COUNT:
            return f"name 1 to {SERVERS_MAX_COUNT} servers"
        for server in self.servers:
            if "://" in server or not server.strip():
                return f"{server!r} is no server: write a host name, or host:port"
        if self.bind is Bind.SIMPLE and self.protection is Protection.SASL:
            return 'protection "sasl" needs bind "gssapi": a password would travel readable'
        if self.bind is Bind.GSSAPI and self.protection is not Protection.SASL:
            return 'bind "gssapi" needs protection "sasl": Kerberos encrypts by itself'
        if self.bind is Bind.SIMPLE and not (self.user and self.password_file):
            return 'bind "simple" needs user and password_file'
        if not 1 <= self.page_count <= PAGE_MAX_COUNT:
            return f"page_count must be from 1 to {PAGE_MAX_COUNT}"
        if self.timeout_s <= 0:
            return "timeout_s must be more than 0"
        return ""
