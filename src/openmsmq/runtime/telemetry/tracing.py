"""What of a server makes spans, if the configuration asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from openmsmq.runtime.clocks import CallLater
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.runtime.config.telemetry_table import TelemetryTable
from openmsmq.runtime.logs import EventLog
from openmsmq.runtime.sessions.taps import MakeTap

if TYPE_CHECKING:
    from openmsmq.manager.queues.queue import LocalQueue
    from openmsmq.runtime.telemetry.arrivals import ArrivalSpans
    from openmsmq.runtime.telemetry.spans import SpanMaker


class Tracing(NamedTuple):
    """Looks at what is stored and what sessions say, for one queue manager."""

    spans: SpanMaker
    arrivals: ArrivalSpans
    make_tap: MakeTap
    """Makes what reads a new session with a peer along."""


def open_tracing(
    table: TelemetryTable,
    identity: tuple[str, str],
    queues: Callable[[], Iterable[LocalQueue]],
    log: EventLog,
    call_later: CallLater,
) -> Tracing | None:
    """Begin to trace; None if nobody asks for it, and then OpenTelemetry is not even loaded."""
    if not table.endpoint:
        return None
    try:
        from openmsmq.runtime.telemetry.arrivals import ArrivalSpans
        from openmsmq.runtime.telemetry.spans import SpanMaker
        from openmsmq.runtime.telemetry.transfers import SessionTap
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"[telemetry] needs OpenTelemetry ({error}): install openmsmq[telemetry]"
        ) from None
    spans = SpanMaker(table, identity, log, call_later)
    return Tracing(spans, ArrivalSpans(spans, queues), partial(SessionTap, spans))
