"""What systemd, or whoever else supervises this process, wants to be told (`sd_notify`).

A datagram to the socket that `NOTIFY_SOCKET` names; without it nobody has asked. Whether anybody
listens does not matter.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Mapping
from typing import Final

from openmsmq.runtime.clocks import CallLater, Timer

FEEDINGS_PER_LIMIT: Final = 3
"""How often a watchdog is fed within the time that it has patience for."""

STATUS_MAX_CHARACTERS: Final = 200
"""The longest text that `systemctl status` is given."""


class Supervisor:
    """Tells it that we are ready, alive, how we are, and that we stop."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        self._patience_s = _patience_s(environment)
        self._timer: Timer | None = None

    def ready(self, status: str) -> None:
        """Say that everybody can connect; what waited for that may start."""
        self._tell("READY=1", _status(status))

    def status(self, text: str) -> None:
        """Say in a sentence how we are."""
        self._tell(_status(text))

    def reloading(self) -> None:
        """Say that a reload has begun; `ready` says that it is over."""
        self._tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """Say that we stop."""
        self._tell("STOPPING=1", _status("stopping"))

    def feed_watchdog(self, call_later: CallLater) -> None:
        """Say that the loop turns, now and again and again; a loop that hangs says nothing."""
        if not self._patience_s or not self._address:
            return
        # Who has begun as a standby is fed already when it begins to serve.
        self.close()
        self._tell("WATCHDOG=1")
        pause_s = self._patience_s / FEEDINGS_PER_LIMIT
        self._timer = call_later(pause_s, lambda: self.feed_watchdog(call_later))

    def close(self) -> None:
        """Feed it no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tell(self, *lines: str) -> None:
        if not self._address:
            return
        address = self._address
        # An abstract address begins with a zero, which no variable can have.
        if address.startswith("@"):
            address = "\0" + address[1:]
        with (
            contextlib.suppress(OSError),
            socket.socket(
                socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
            ) as channel,
        ):
            channel.connect(address)
            channel.send("\n".join(lines).encode())


def _patience_s(environment: Mapping[str, str]) -> float:
    """Return how long its watchdog waits for us; 0 without one, or if it is for another process."""
    limit, process = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", "")
    if not limit.isdecimal() or (process and process != str(os.getpid())):
        return 0.0
    return int(limit) / 1_000_000


def _status(text: str) -> str:
    one_line = " ".join(text.split())
    return f"STATUS={one_line[:STATUS_MAX_CHARACTERS]}"
