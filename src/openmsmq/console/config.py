"""What an operator decides about a console."""

from __future__ import annotations

import ipaddress
from typing import Final

import msgspec

from openmsmq.client.settings import Settings
from openmsmq.console import limits

CONSOLE_PORT: Final = 1880
"""TCP port of the console."""

DEFAULT_LISTEN: Final = f"127.0.0.1:{CONSOLE_PORT}"
_LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "::1")


class BadConfig(ValueError):
    """Something in the options that cannot be used; the sentence says what to do."""


class ConsoleConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Where the console listens, and whose client it is."""

    host: str
    port: int
    own: Settings
    """How this process itself reaches the queue manager."""
    tls_cert: str = ""
    tls_key: str = ""
    names: tuple[str, ...] = ()
    """Names under which browsers may reach it, beside its address."""
    metrics_token: str = ""
    """What a collector of metrics shows; empty for none."""
    metrics_on_loopback: bool = False
    """Whether everybody on this computer may read the metrics."""
    asks_others: bool = False
    """Whether the other queue managers of the directory are asked, as who is signed in."""

    @property
    def is_tls(self) -> bool:
        """Whether browsers speak TLS with it."""
        return bool(self.tls_cert)

    @property
    def hosts(self) -> frozenset[str]:
        """The names that a browser may know it by."""
        found = {self.host.lower(), *(name.lower() for name in self.names)}
        if is_loopback(self.host):
            found.update(_LOOPBACK_NAMES)
        return frozenset(found)

    def shown_host(self, host: str) -> str:
        """Return how an address of a browser names the host where the console listens."""
        if self.names and ipaddress.ip_address(host.partition("%")[0]).is_unspecified:
            # To listen everywhere is no place where a browser could go.
            host = self.names[0]
        return f"[{host}]" if ":" in host else host

    @property
    def cookie(self) -> str:
        """The name of the cookie; with TLS one that no other host can set."""
        return f"{'__Host-' if self.is_tls else ''}openmsmq-console"


def read_listen(text: str) -> tuple[str, int]:
    """Read where to listen: `ADDRESS:PORT`, `[IPv6 ADDRESS]:PORT`, or one of both."""
    host, port = text, ""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    elif text.isdecimal():
        host, port = "127.0.0.1", text
    if port and not (port.isascii() and port.isdecimal() and int(port) < 65536):
        raise BadConfig(f"{text!r} is no address to listen on: write it as {DEFAULT_LISTEN}")
    return host or "127.0.0.1", int(port) if port else CONSOLE_PORT


def is_loopback(host: str) -> bool:
    """Whether only this computer reaches an address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_listen(host: str, *, has_tls: bool, allows_plain: bool) -> None:
    """Refuse to show pages to other computers in the clear, unless somebody insists."""
    if is_loopback(host) or has_tls or allows_plain:
        return
    raise BadConfig(
        f"other computers reach {host}, and without TLS everybody on the way could read the "
        "token that somebody types, and the messages: give --tls-cert FILE, or listen on "
        "127.0.0.1 and use a tunnel (ssh -L), or insist with --without-tls"
    )


def own_settings(settings: Settings) -> Settings:
    """Return how the console connects: a page is worth waiting for seconds, not for minutes."""
    return msgspec.structs.replace(
        settings,
        call_timeout_s=limits.CALL_MAX_S,
        connect_timeout_s=limits.RECONNECT_MAX_S,
        start_wait_s=0,
        reconnect_within_s=limits.RECONNECT_MAX_S,
    )
