"""Why a server cannot start, in sentences that say what to do."""

from __future__ import annotations

import errno
import os
import socket


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


def cannot_listen(error: OSError, address: str, port: int, *, key: str, switch: str) -> StartError:
    """Return why a port cannot be opened; `key` sets it and `switch` does without it."""
    kind: type[StartError] = StartError
    if error.errno == errno.EADDRINUSE:
        kind = NotYet
        advice = (
            "another process listens there; several queue managers need different addresses, "
            f"and {switch} does without it"
        )
    elif error.errno == errno.EACCES:
        advice = f"ports below 1024 need a privilege; give another {key}"
    else:
        # A computer that starts may get the address later.
        kind = NotYet if error.errno == errno.EADDRNOTAVAIL else StartError
        advice = "give an address that this computer has"
    return kind(f"cannot listen on {address} port {port} ({os_reason(error)}): {advice}")
