"""Packets with and without a context, and a maker of spans before a collector, for these tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from openmsmq.client.formatters.nservicebus import write_headers
from openmsmq.model.identity import Guid
from openmsmq.runtime.config.telemetry_table import TelemetryTable
from openmsmq.runtime.logs import EventLog
from openmsmq.runtime.telemetry.spans import SpanMaker
from openmsmq.wire.headers import user
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage, encode
from tests.runtime.collector import Collector

SOURCE = Guid(bytes(range(16)))
TRACE, SPAN = 0xABC, 0xDEF


def context(trace: int = TRACE, *, flags: int = 1) -> bytes:
    """Return an extension with a context."""
    return write_headers({"traceparent": f"00-{trace:032x}-{SPAN:016x}-{flags:02x}"})


def packet(extension: bytes = b"", number: int = 7, *, recoverable: bool = True) -> bytes:
    """Return a message to a queue of another computer."""
    return encode(
        UserMessage(
            UserHeader(
                SOURCE,
                Guid(bytes(16)),
                message_number=number,
                flags=user.RECOVERABLE if recoverable else 0,
                destination=DirectName(r"TCP:10.0.0.7\private$\orders"),
            ),
            MessageProperties.of(b"tea", "order", extension=extension),
        )
    )


class Later:
    """A clock that a test turns: what is to happen later happens when it says so."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def __call__(self, _delay_s: float, call: Callable[[], None]) -> Later:
        self.waiting.append(call)
        return self

    def cancel(self) -> None:
        self.waiting.clear()

    def pass_by(self) -> None:
        """Let happen what waits now."""
        waiting, self.waiting = self.waiting, []
        for call in waiting:
            call()


class Making:
    """A maker of spans, its clock and its log."""

    def __init__(self, endpoint: str, ratio: float) -> None:
        self.later = Later()
        self.lines: list[str] = []
        table = TelemetryTable(endpoint=endpoint, sample_ratio=ratio, service_name="shop")
        log = EventLog(write=self.lines.append)
        self.spans = SpanMaker(table, ("ALPHA", "its-identifier"), log, self.later)


@contextmanager
def making(collector: Collector, ratio: float = 1.0) -> Iterator[Making]:
    """Make spans while the block lasts."""
    made = Making(collector.endpoint, ratio)
    try:
        yield made
    finally:
        collector.answer()
        made.spans.give_up()
