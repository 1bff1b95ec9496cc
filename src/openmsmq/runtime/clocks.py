"""The only place where clocks are read."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, TypeAlias

from openmsmq.model.clock import Instant


def read_clocks() -> Instant:
    """Return this moment."""
    return Instant(time.monotonic_ns() // 1_000_000, time.time_ns() // 1_000_000_000)


def since_boot_ms() -> int:
    """Return a moment of a clock that goes on while the computer sleeps."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def elapsed_ns() -> int:
    """Return a moment by which to measure how long something takes."""
    return time.monotonic_ns()


def unix_ns() -> int:
    """Return this moment as a capture writes it."""
    return time.time_ns()


def timestamp() -> str:
    """Return this moment as a log writes it: UTC, with milliseconds."""
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    date = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{date}.{nanoseconds // 1_000_000:03d}Z"


class Timer(Protocol):
    """Something that is to happen later, and need not."""

    def cancel(self) -> object:
        """Let it not happen."""


CallLater: TypeAlias = Callable[[float, Callable[[], None]], Timer]
"""Has something called after so many seconds, as event loops do."""
