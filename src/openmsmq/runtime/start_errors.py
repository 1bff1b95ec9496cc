"""Why a server cannot start, in sentences that say what to do."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from typing import Final


class StartError(Exception):
    """The server cannot start; the sentence says why and what to do."""


class NotYet(StartError):
    """It cannot start now, because something is in use or away; later it may, as it is."""


def os_reason(error: OSError) -> str:
    """Return the plain words; asyncio wraps them into more."""
    if isinstance(error, socket.gaierror):
        # Its number is none of the system's, and means nothing to people.
        return (error.strerror or str(error)).lower()
    if error.errno is None:
        return str(error)
    return os.strerror(error.errno).lower()


_TLS_REASONS: Final = {
    "KEY_VALUES_MISMATCH": "the key is that of another certificate: give the two that belong "
    "together",
    "NO_CERTIFICATE_OR_CRL_FOUND": "it has no certificate in PEM, which begins with "
    "-----BEGIN CERTIFICATE-----",
}
_NO_PEM: Final = (
    "a certificate or its private key is not there in PEM: both may be in one file, or the key in "
    "one of its own"
)


def tls_reason(error: OSError) -> str:
    """Return why files of TLS cannot be used, and what to do; OpenSSL says it in its own words."""
    if not isinstance(error, ssl.SSLError):
        return os_reason(error)
    return _TLS_REASONS.get(error.reason or "", error.reason or _NO_PEM)


def cannot_listen(error: OSError, address: str, port: int, *, key: str, switch: str) -> StartError:
    """Return why a port cannot be opened; `key` sets it and `switch` does without it."""
    kind: type[StartError] = StartError
    if error.errno == errno.EADDRINUSE:
        kind = NotYet
        advice = (
            f"another process listens there: give another {key}, or another address, as several "
            f"queue managers on one computer need; {switch} does without it"
        )
    elif error.errno == errno.EACCES:
        advice = f"ports below 1024 need a privilege; give another {key}"
    else:
        # A computer that starts may get the address later.
        kind = NotYet if error.errno == errno.EADDRNOTAVAIL else StartError
        advice = "give an address that this computer has"
    return kind(f"cannot listen on {address} port {port} ({os_reason(error)}): {advice}")
