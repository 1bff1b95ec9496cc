"""The event loop of the process, and how it spares the collector of garbage."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.limits import GARBAGE_MIN_COUNT


def loop_factory(kind: str) -> Callable[[], asyncio.AbstractEventLoop]:
    """Find the event loop: uvloop is faster, and optional."""
    if kind != "asyncio":
        try:
            import uvloop  # type: ignore[import-not-found, unused-ignore]
        except ImportError:
            if kind == "uvloop":
                raise ConfigError(
                    "event_loop is uvloop, which is not installed: install openmsmq[fast]"
                ) from None
        else:
            return uvloop.new_event_loop  # type: ignore[no-any-return, unused-ignore]
    return asyncio.new_event_loop


def spare_the_collector() -> None:
    """Look for garbage in cycles less often: messages are bytes and tuples, which make none."""
    gc.freeze()
    gc.set_threshold(GARBAGE_MIN_COUNT, *gc.get_threshold()[1:])
