"""Makes spans and has them exported, by a thread that nobody waits for.

The thread and its queue are those of the SDK. What is too much for it is dropped here, before a
span is made; what the collector does not take is dropped there. Both are counted, and logged now
and then: a collector that is away costs spans, and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Final

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Decision, ParentBased, TraceIdRatioBased
from opentelemetry.trace import SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from openmsmq.runtime.clocks import CallLater, Timer, elapsed_ns
from openmsmq.runtime.config.alarm_table import without_secrets
from openmsmq.runtime.config.telemetry_table import TelemetryTable
from openmsmq.runtime.limits import (
    SPAN_EXPORT_S,
    SPAN_TEXT_MAX_CHARACTERS,
    SPANS_BATCH_MAX_COUNT,
    SPANS_EXPORT_EVERY_MS,
    SPANS_LOOK_S,
    SPANS_PER_S_MAX_COUNT,
    SPANS_STOP_S,
    SPANS_WAITING_MAX_COUNT,
)
from openmsmq.runtime.logs import Event, EventLog, LimitedLog
from openmsmq.runtime.telemetry.messages import TracedMessage

_PROPAGATOR: Final = TraceContextTextMapPropagator()
_KINDS: Final = {"transfer": SpanKind.CLIENT, "arrive": SpanKind.INTERNAL}
_SECOND_NS: Final = 1_000_000_000


class CountingExporter(SpanExporter):
    """Exports, and counts what became of it. It works in the thread of the SDK."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self.taken_count = 0
        self.refused_count = 0
        """Spans that the collector has not taken."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Hand spans to the collector; those that it does not take are lost."""
        result = SpanExportResult.FAILURE
        try:
            result = self._exporter.export(spans)
        finally:
            if result is SpanExportResult.SUCCESS:
                self.taken_count += len(spans)
            else:
                self.refused_count += len(spans)
        return result

    def shutdown(self) -> None:
        """Give up what is on its way."""
        self._exporter.shutdown()


class SpanMaker:
    """Makes the spans of one queue manager, as many as can be had without harm."""

    def __init__(
        self,
        table: TelemetryTable,
        identity: tuple[str, str],
        log: EventLog,
        call_later: CallLater,
    ) -> None:
        """`identity` is the name of the queue manager and its identifier."""
        self._log = log
        self._failures = LimitedLog(log)
        self._call_later = call_later
        self._collector = without_secrets(table.endpoint)
        self._sampler = TraceIdRatioBased(table.sample_ratio)
        self._exporter = CountingExporter(
            OTLPSpanExporter(endpoint=table.traces_url, timeout=SPAN_EXPORT_S)
        )
        self._processor: SpanProcessor = BatchSpanProcessor(
            self._exporter,
            max_queue_size=SPANS_WAITING_MAX_COUNT,
            schedule_delay_millis=SPANS_EXPORT_EVERY_MS,
            max_export_batch_size=SPANS_BATCH_MAX_COUNT,
        )
        name, identifier = identity
        provider = TracerProvider(
            # Whatever a context from outside says, the ratio has the last word.
            sampler=ParentBased(ALWAYS_OFF, remote_parent_sampled=self._sampler),
            resource=Resource.create(
                {
                    "service.name": table.service_name,
                    "service.instance.id": identifier,
                    "host.name": name,
                }
            ),
            shutdown_on_exit=False,
            span_limits=SpanLimits(max_attribute_length=SPAN_TEXT_MAX_CHARACTERS),
        )
        provider.add_span_processor(self._processor)
        self._tracer = provider.get_tracer("openmsmq")
        self._second = 0
        self._in_second_count = 0
        self.made_count = 0
        self.dropped_count = 0
        """Spans that were not made because there were too many."""
        self._told = 0, 0
        self._timer: Timer = call_later(SPANS_LOOK_S, self._look)

    def make(
        self,
        operation: str,
        message: TracedMessage,
        destination: str,
        times_ns: tuple[int, int],
        *,
        peer: str = "",
    ) -> None:
        """Make a span about something that is over: when it began and ended, by the wall clock."""
        parent = _PROPAGATOR.extract(message.context.headers)
        sender = trace.get_current_span(parent).get_span_context()
        if not (sender.is_valid and self._is_chosen(sender.trace_id)):
            return
        if not self._has_room():
            self.dropped_count += 1
            return
        attributes: dict[str, str | int] = {
            "messaging.system": "msmq",
            "messaging.operation.name": operation,
            "messaging.destination.name": destination,
            "messaging.message.id": message.message_id,
            "messaging.message.body.size": message.body_bytes,
        }
        if peer:
            attributes["network.peer.address"] = peer
        began_ns, ended_ns = times_ns
        self.made_count += 1
        self._tracer.start_span(
            f"{operation} {destination}"[:SPAN_TEXT_MAX_CHARACTERS],
            context=parent,
            kind=_KINDS[operation],
            attributes=attributes,
            start_time=began_ns,
        ).end(ended_ns)

    def _is_chosen(self, trace_id: int) -> bool:
        decision = self._sampler.should_sample(None, trace_id, "").decision
        return decision is Decision.RECORD_AND_SAMPLE

    def _has_room(self) -> bool:
        """Whether one more may be made: strangers can say of any message that it is recorded."""
        second = elapsed_ns() // _SECOND_NS
        if second != self._second:
            self._second, self._in_second_count = second, 0
        self._in_second_count += 1
        exporter = self._exporter
        waiting = self.made_count - exporter.taken_count - exporter.refused_count
        return self._in_second_count <= SPANS_PER_S_MAX_COUNT and waiting < SPANS_WAITING_MAX_COUNT

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        """Keep errors of what is inside from whoever is looked at: a trace is no message."""
        try:
            yield
        except Exception as error:
            self._failures.warning(Event.SPANS_FAILED, error=repr(error))

    def _look(self) -> None:
        self._tell_of_dropped(self._exporter.refused_count)
        self._timer = self._call_later(SPANS_LOOK_S, self._look)

    def _tell_of_dropped(self, refused_count: int) -> None:
        """Log what was dropped since the last time."""
        now = refused_count, self.dropped_count
        if now != self._told:
            refused, too_many = now[0] - self._told[0], now[1] - self._told[1]
            self._told = now
            self._log.warning(
                Event.SPANS_DROPPED,
                collector=self._collector,
                not_taken=refused,
                too_many=too_many,
                total=sum(now),
            )

    def give_up(self) -> None:
        """End at once, with a start that failed."""
        self._timer.cancel()
        self._exporter.shutdown()
        self._processor.shutdown()

    async def close(self) -> None:
        """Export what waits, if that can be done soon."""
        self._timer.cancel()
        loop = asyncio.get_running_loop()
        done = asyncio.Event()

        def finish() -> None:
            self._processor.shutdown()
            with contextlib.suppress(RuntimeError):
                # The loop may be gone when a collector was too slow.
                loop.call_soon_threadsafe(done.set)

        # Not a thread of the loop's own pool: that one would be waited for.
        threading.Thread(target=finish, name="last spans", daemon=True).start()
        try:
            async with asyncio.timeout(SPANS_STOP_S):
                await done.wait()
        except TimeoutError:
            self._exporter.shutdown()
        # What is not taken by now never will be.
        self._tell_of_dropped(self.made_count - self._exporter.taken_count)
