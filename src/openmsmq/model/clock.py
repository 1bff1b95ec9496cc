"""Time as the core sees it: a value that the driver reads once and hands in with each input."""

from __future__ import annotations

import msgspec


class Instant(msgspec.Struct, frozen=True, gc=False):
    """One moment on two clocks.

    `ticks_ms` is monotonic and drives timers. `unix_s` is the wall clock, in seconds since
    1970-01-01 UTC, and drives message lifetimes and the times on the wire. The two are never
    mixed: a wall clock that is set back must not delay a timer.
    """

    ticks_ms: int
    unix_s: int
