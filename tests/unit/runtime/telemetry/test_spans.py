"""Spans reach the collector, and a collector that does not take them costs spans alone."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from openmsmq.runtime.limits import (
    SPAN_TEXT_MAX_CHARACTERS,
    SPANS_PER_S_MAX_COUNT,
    SPANS_STOP_S,
    SPANS_WAITING_MAX_COUNT,
)
from openmsmq.runtime.telemetry import spans as module
from openmsmq.runtime.telemetry.messages import TracedMessage, traced
from openmsmq.runtime.telemetry.spans import SpanMaker
from tests.runtime.collector import Collector
from tests.unit.runtime.telemetry.traced_packets import SPAN, TRACE, context, making, packet

HIGH = (1 << 64) - 1


def message(trace: int = TRACE) -> TracedMessage:
    found = traced(packet(context(trace)))
    assert found is not None
    return found


def make(spans: SpanMaker, trace: int = TRACE, destination: str = "q") -> None:
    spans.make("arrive", message(trace), destination, (1_000, 2_000))


def test_a_span_is_a_child_of_the_sender() -> None:
    with Collector() as collector, making(collector) as made:
        made.spans.make("transfer", message(), "there", (1_000, 2_000), peer="10.0.0.7")
        (span,) = collector.spans(1)
        assert (span.trace_id, span.parent_id) == (f"{TRACE:032x}", f"{SPAN:016x}")
        assert (span.service, span.host, span.name) == ("shop", "ALPHA", "transfer there")
        assert (span.began_ns, span.ended_ns) == (1_000, 2_000)
        assert span.facts["network.peer.address"] == "10.0.0.7"
        assert span.facts["messaging.message.body.size"] == len(b"tea")
        assert collector.paths == {"/v1/traces"}


def test_headers_that_a_collector_wants_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret")
    with Collector() as collector, making(collector) as made:
        make(made.spans)
        collector.spans(1)
        assert collector.keys == {"secret"}


def test_a_ratio_chooses_by_the_trace_so_that_all_choose_the_same() -> None:
    with Collector() as collector, making(collector, 0.5) as made:
        for trace in (HIGH, 1, HIGH // 2 + 2, HIGH // 2 - 2):
            make(made.spans, trace)
        found = {span.trace_id for span in collector.spans(2)}
        assert found == {f"{1:032x}", f"{HIGH // 2 - 2:032x}"}
        assert (made.spans.made_count, made.spans.dropped_count) == (2, 0)
    with Collector() as collector, making(collector, 0.0) as made:
        make(made.spans, 1)
        assert (made.spans.made_count, made.spans.dropped_count) == (0, 0)


def test_texts_of_others_are_cut() -> None:
    with Collector() as collector, making(collector) as made:
        make(made.spans, destination="x" * 100_000)
        (span,) = collector.spans(1)
        assert len(span.name) == SPAN_TEXT_MAX_CHARACTERS
        assert len(str(span.facts["messaging.destination.name"])) == SPAN_TEXT_MAX_CHARACTERS


def test_in_a_second_so_many_are_made_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    now_ns = 5 * 10**9
    monkeypatch.setattr(module, "elapsed_ns", lambda: now_ns)
    with Collector() as collector, making(collector) as made:
        for _ in range(SPANS_PER_S_MAX_COUNT + 3):
            make(made.spans)
        assert made.spans.dropped_count == 3
        now_ns += 10**9
        make(made.spans)
        assert made.spans.dropped_count == 3
        assert len(collector.spans(SPANS_PER_S_MAX_COUNT + 1)) == SPANS_PER_S_MAX_COUNT + 1
        made.later.pass_by()
        (line,) = made.lines
        assert "spans-dropped" in line
        assert "not_taken=0 too_many=3 total=3" in line


def test_a_collector_that_hangs_costs_spans_and_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = itertools.count(0, 10**9)
    monkeypatch.setattr(module, "elapsed_ns", lambda: next(seconds))
    with Collector() as collector, making(collector) as made:
        collector.hang()
        for _ in range(SPANS_WAITING_MAX_COUNT + 10):
            make(made.spans)
        assert made.spans.dropped_count == 10
        made.later.pass_by()
        made.later.pass_by()
        (line,) = made.lines
        assert f"collector={collector.endpoint}/…" in line
        assert "too_many=10" in line


def test_spans_that_a_collector_refuses_are_counted() -> None:
    with Collector() as collector, making(collector) as made:
        collector.status = 400
        for _ in range(5):
            make(made.spans)
        asyncio.run(made.spans.close())
        assert "not_taken=5 too_many=0 total=5" in made.lines[-1]


def test_a_stop_waits_for_the_last_spans() -> None:
    with Collector() as collector, making(collector) as made:
        for _ in range(700):
            make(made.spans)
        asyncio.run(made.spans.close())
        assert len(collector.spans(0)) == 700
        assert made.lines == []


def test_a_stop_does_not_wait_for_a_collector_that_hangs() -> None:
    async def stopped() -> float:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        await made.spans.close()
        return loop.time() - began_s

    with Collector() as collector, making(collector) as made:
        collector.hang()
        make(made.spans)
        assert collector.asked()
        assert asyncio.run(stopped()) < SPANS_STOP_S + 2
        assert "not_taken=1 too_many=0 total=1" in made.lines[-1]
        collector.answer()


def test_an_error_of_ours_reaches_the_log_and_nobody_else() -> None:
    with Collector() as collector, making(collector) as made:
        for _ in range(100):
            with made.spans.guard():
                raise RuntimeError("a defect")
        assert 0 < len(made.lines) < 20
        assert all("spans-" in line for line in made.lines)
        assert "a defect" in made.lines[0]
