"""Outgoing queues are looked through from time to time.

Deadlines that came near are noted for the clock, and queues that nobody needs are forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from openmsmq.manager.messages.placing import Placing
from openmsmq.manager.peers.outgoing import OutgoingQueue, OutgoingQueues
from openmsmq.manager.queues.queue import LocalQueue, Row
from openmsmq.model.clock import Instant
from openmsmq.model.limits import OUTGOING_IDLE_FOR_OTHERS_MS

SWEEP_MS: Final = 1_800_000
"""How often: half the time that a deadline is noted before it comes."""

SWEEP_ROWS: Final = 2000
"""How many messages are looked at in one turn."""


class OutgoingSweep:
    """Looks through all outgoing queues, a slice at a time."""

    def __init__(
        self,
        outgoing: OutgoingQueues,
        placing: Placing,
        is_awaited: Callable[[LocalQueue], bool],
        forget: Callable[[OutgoingQueue], None],
        now: Instant,
    ) -> None:
        self._outgoing = outgoing
        self._placing = placing
        self._is_awaited = is_awaited
        self._forget = forget
        self._due_ms = now.ticks_ms
        self._left: list[tuple[OutgoingQueue, int]] = []
        self._guests_due_ms = now.ticks_ms + OUTGOING_IDLE_FOR_OTHERS_MS

    def next_run_ms(self, now: Instant) -> int | None:
        """When `run` has something to do next."""
        if self._left:
            return now.ticks_ms
        if self._outgoing.has_guests:
            return min(self._due_ms, self._guests_due_ms)
        return self._due_ms if len(self._outgoing) else None

    def run(self, now: Instant) -> None:
        """Look at the next slice, if it is time."""
        if now.ticks_ms >= self._guests_due_ms:
            self._guests_due_ms = now.ticks_ms + OUTGOING_IDLE_FOR_OTHERS_MS
            self._forget_guests()
        if not self._left and now.ticks_ms >= self._due_ms:
            self._due_ms = now.ticks_ms + SWEEP_MS
            self._left = [(outgoing, -1) for outgoing in self._outgoing.all()]
        if not self._left:
            return
        outgoing, position = self._left.pop()
        if not self._outgoing.knows(outgoing):
            return
        rows: list[Row] = []
        for row in outgoing.queue.rows(position):
            rows.append(row)
            if len(rows) >= SWEEP_ROWS:
                self._left.append((outgoing, row[0]))
                break
        self._placing.note_deadlines(outgoing.queue, rows, now)
        if position == -1 and outgoing.is_unneeded and not self._is_awaited(outgoing.queue):
            self._forget(outgoing)

    def _forget_guests(self) -> None:
        """Forget empty queues of others soon: there is only so much room for them."""
        if not self._outgoing.has_guests:
            return
        for outgoing in self._outgoing.all():
            if (
                outgoing.queue.guest
                and outgoing.is_unneeded
                and not self._is_awaited(outgoing.queue)
            ):
                self._forget(outgoing)
