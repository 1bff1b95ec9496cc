"""How to reach a queue manager. Settings can be pickled, so that other processes connect alike."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from openmsmq.client.options import unknown_option
from openmsmq.security.algorithm_names import SAFE_CIPHER_NAMES, CipherName

API_PORT: Final = 1802
"""TCP port of the application interface."""

_UNIX: Final = "unix:"
_OR: Final = "|"
"""Stands between addresses of one queue manager; a comma, where there is one, between several."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Where a queue manager is, how to prove who asks, and how long to wait."""

    address: str = "127.0.0.1"
    """`host`, `host:port`, `[ipv6]:port`, or a Unix socket: `unix:path`, or a path with a slash.
    Of a queue manager on several computers, all of them with a vertical bar between."""
    token: str = ""
    """Proves who asks, within its scope; empty for who this process is to the queue manager."""
    tls: bool | str = False
    """True trusts the authorities of the system; a text names a file of certificates to trust."""
    certificate: str = ""
    """File with a certificate to show instead of a token, in PEM; needs TLS."""
    key: str = ""
    """File with its private key. Empty: it is in the certificate's file."""
    ciphers: tuple[CipherName, ...] = SAFE_CIPHER_NAMES
    """With what bodies are encrypted that are to be: the first that the destination has."""
    connect_timeout_s: float = 10.0
    """How long one attempt to connect may take."""
    call_timeout_s: float = 60.0
    """How long an answer may take, beyond the time that the call itself waits for messages."""
    start_wait_s: float = 5.0
    """How long `connect` waits for a queue manager that does not listen yet; 0 not at all."""
    reconnect_within_s: float = 15.0
    """How long a lost connection is tried again; 0 gives up at once."""
    telemetry: bool = False
    """Whether sends and reads make spans of OpenTelemetry, and messages carry the context of their
    sender; needs the extra `telemetry`."""
    slates: int = 0
    """How many answers to `fetch_packets` a queue manager behind a Unix socket may put into memory
    that it shares with this process. Their entries are good until so many further calls of it; 0
    for answers that last."""

    @property
    def places(self) -> list[Settings]:
        """The same for each address alone; they share the time of an attempt."""
        addresses = self.address.split(_OR)
        if len(addresses) == 1:
            return [self]
        within_s = self.connect_timeout_s / len(addresses)
        return [
            msgspec.structs.replace(self, address=address.strip(), connect_timeout_s=within_s)
            for address in addresses
        ]

    @property
    def unix_path(self) -> str | None:
        """The path of the Unix socket, or None for TCP; of several addresses, of the first."""
        if _OR in self.address:
            return self.places[0].unix_path
        if self.address.startswith(_UNIX):
            return self.address.removeprefix(_UNIX)
        return self.address if "/" in self.address else None

    @property
    def host_and_port(self) -> tuple[str, int]:
        """The TCP endpoint; of several addresses the first, when all are right."""
        if _OR in self.address:
            endpoints = [place.host_and_port for place in self.places if not place.unix_path]
            return endpoints[0]
        text = self.address
        if text.startswith("["):
            host, bracket, rest = text[1:].partition("]")
            if not bracket or (rest and not rest.startswith(":")):
                raise ValueError(f"{text!r} is no address: write [IPv6 address]:port")
            port = rest[1:]
        elif text.count(":") == 1:
            host, _, port = text.partition(":")
        else:
            host, port = text, ""
        if not host:
            raise ValueError(f"{text!r} is no address: the host is missing")
        try:
            host.encode("idna")
        except UnicodeError:
            # Else it is the system that is asked for it, and answers with this.
            raise ValueError(
                f"{text!r} is no address: a part of the host's name is empty or too long"
            ) from None
        return host, _port(port, text)

    def open_socket(self, within_s: float) -> socket.socket:
        """Connect to where the queue manager is; `OSError` says why that failed."""
        path = self.unix_path
        if path is None:
            return socket.create_connection(self.host_and_port, within_s)
        opened = socket.socket(socket.AF_UNIX)
        try:
            opened.settimeout(within_s)
            opened.connect(path)
        except BaseException:
            opened.close()
            raise
        return opened

    def tls_context(self) -> ssl.SSLContext | None:
        """Make what TLS needs, or None without TLS."""
        if self.tls is False:
            return None
        context = ssl.create_default_context(cafile=None if self.tls is True else self.tls)
        if self.certificate:
            context.load_cert_chain(self.certificate, self.key or None)
        return context


def made_settings(address: str | Sequence[str] | Settings, changes: dict[str, Any]) -> Settings:
    """Make settings of what `connect` was given."""
    if not changes.keys() <= _FIELDS:
        raise unknown_option("connect", changes, _FIELDS | {"context"})
    if isinstance(address, Settings):
        return msgspec.structs.replace(address, **changes)
    if not isinstance(address, str):
        address = _OR.join(address)
    return Settings(address=address, **changes)


_FIELDS: Final = frozenset(Settings.__struct_fields__)


def _port(digits: str, text: str) -> int:
    if not digits:
        return API_PORT
    if not (digits.isascii() and digits.isdecimal() and 0 < int(digits) < 65536):
        raise ValueError(f"{text!r} is no address: the port is a number from 1 to 65535")
    return int(digits)
