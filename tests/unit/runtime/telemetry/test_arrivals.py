"""What came into a queue is read from what was stored."""

from __future__ import annotations

from typing import NamedTuple, cast

from openmsmq.manager.queues.queue import LocalQueue
from openmsmq.manager.queues.roles import CAPABILITIES, Capabilities
from openmsmq.model.queue import QueueRole
from openmsmq.runtime.telemetry.arrivals import ArrivalSpans
from openmsmq.storage import records
from openmsmq.storage.port import Batch
from openmsmq.storage.records import EntryFacts
from tests.runtime.collector import Collector
from tests.unit.runtime.telemetry.traced_packets import SPAN, context, making, packet


class Queue(NamedTuple):
    """As much of a queue as is looked at."""

    id: int
    name: str
    can: Capabilities


QUEUES = [
    Queue(1, r"private$\orders", CAPABILITIES[QueueRole.APPLICATION]),
    Queue(2, "there", CAPABILITIES[QueueRole.OUTGOING]),
    Queue(3, r"private$\orders;journal", CAPABILITIES[QueueRole.JOURNAL]),
]


def row(queue: int, data: bytes, lookup_id: int = 9, facts: EntryFacts | None = None):
    entry = records.encode_entry(facts or EntryFacts(1_000), data)
    return records.entry_key(queue, lookup_id), entry


def test_only_what_comes_new_into_a_queue_of_applications_is_told() -> None:
    batch = Batch(
        changes=[
            row(1, packet(context(), 1)),
            row(1, packet(context(), 2), facts=EntryFacts(1_000, moved_time_s=5, move_count=1)),
            row(1, packet(context(), 3), facts=EntryFacts(1_000, abort_count=1)),
            row(2, packet(context(), 4)),
            row(3, packet(context(), 5)),
            row(4, packet(context(), 6)),
            row(1, packet(b"", 7)),
            row(1, packet(context(flags=0), 8)),
            (records.entry_key(1, 9), None),
            (records.counts_key(1), records.encode_counts(1, 1)),
            row(1, b"no message"),
        ],
        volatile=[row(1, packet(context(), 9, recoverable=False))],
    )
    with Collector() as collector, making(collector) as made:
        arrivals = ArrivalSpans(made.spans, lambda: cast("list[LocalQueue]", QUEUES))
        arrivals.stored(batch, 5_000_000)
        found = collector.spans(2)
        assert made.spans.made_count == 2
        assert {str(span.facts["messaging.message.id"])[-2:] for span in found} == {"\\1", "\\9"}
        for span in found:
            assert span.name == r"arrive private$\orders"
            assert span.parent_id == f"{SPAN:016x}"
            assert span.ended_ns - span.began_ns == 5_000_000
        assert made.lines == []


def test_a_queue_that_is_new_is_found() -> None:
    queues: list[Queue] = []
    with Collector() as collector, making(collector) as made:
        arrivals = ArrivalSpans(made.spans, lambda: cast("list[LocalQueue]", queues))
        batch = Batch(changes=[row(1, packet(context()))])
        arrivals.stored(batch, 1)
        queues += QUEUES
        arrivals.stored(batch, 1)
        assert made.spans.made_count == 1


def test_a_store_full_of_nonsense_does_not_end_the_queue_manager() -> None:
    def defect() -> list[LocalQueue]:
        raise RuntimeError("a defect")

    with Collector() as collector, making(collector) as made:
        ArrivalSpans(made.spans, defect).stored(Batch(changes=[row(1, packet(context()))]), 1)
        assert "a defect" in made.lines[0]
