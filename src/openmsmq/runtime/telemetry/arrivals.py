"""Spans of arrivals: a message has come into a queue of this computer, and the store has it.

What came is read from the batch that was stored. An express message that goes straight to a reader
who waits for it is never in a queue, and has no such span; nor has one that was set aside before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Final

from openmsmq.runtime.clocks import unix_ns
from openmsmq.runtime.telemetry.messages import traced
from openmsmq.runtime.telemetry.spans import SpanMaker
from openmsmq.storage import records
from openmsmq.storage.port import Batch

if TYPE_CHECKING:
    from openmsmq.manager.queues.queue import LocalQueue

_ENTRY_KEYS: Final = records.kind_range(b"E")[0]


class ArrivalSpans:
    """Looks through what was stored for messages that have come."""

    def __init__(self, spans: SpanMaker, queues: Callable[[], Iterable[LocalQueue]]) -> None:
        self._spans = spans
        self._queues = queues
        self._names: dict[int, str] = {}
        """The queues of applications by number; empty for one of another kind."""

    def stored(self, batch: Batch, took_ns: int) -> None:
        """Tell of what came with a batch that is stored; no error of ours may reach the pump."""
        with self._spans.guard():
            self._look(batch, took_ns)

    def _look(self, batch: Batch, took_ns: int) -> None:
        ended_ns = unix_ns()
        for key, value in chain(batch.changes, batch.volatile):
            if value is None or not key.startswith(_ENTRY_KEYS):
                continue
            message = traced(value[records.FACTS_BYTES :])
            if message is None:
                continue
            facts = records.decode_facts(value)
            if facts.moved_time_s or facts.abort_count:
                # It was here before: it was moved, or a transaction gave it back.
                continue
            name = self._name(records.queue_of(key))
            if name:
                self._spans.make("arrive", message, name, (ended_ns - took_ns, ended_ns))

    def _name(self, number: int) -> str:
        """Return the name of a queue to which applications send; empty for another one."""
        if number not in self._names:
            self._names = {
                queue.id: queue.name if queue.can.take_messages else "" for queue in self._queues()
            }
        return self._names.get(number, "")
