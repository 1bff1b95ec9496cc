"""The counters of clerks in a process: the pump, the clocks and the audit log."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from openmsmq.api.messages import (
    REQUESTS,
    Answer,
    AnyRequest,
    CloseQueue,
    Failed,
    OpenQueue,
)
from openmsmq.model.clock import Instant
from openmsmq.remote.clerks import Clerk, Desk
from openmsmq.remote.services import Service
from openmsmq.runtime.api.audit import AuditLog, Watch
from openmsmq.runtime.clocks import read_clocks
from openmsmq.security.access.callers import Caller, Origin

if TYPE_CHECKING:
    from openmsmq.runtime.server import Pump
    from openmsmq.wire.rpc.syntaxes import Syntax

DOOR: Final = "rpc"

_WATCHED: Final = frozenset(kind for kind in REQUESTS if kind.facts.is_audited) | {OpenQueue}
"""Requests whose ends the audit log wants to know: it tells of handles by the names of queues."""


class PumpCounter:
    """The connection of one clerk to the queue manager of this process."""

    def __init__(self, clerk: Clerk, caller: Caller, peer: str, pump: Pump, audit: AuditLog):
        self._clerk = clerk
        self._caller = caller
        self._peer = peer
        self._pump = pump
        self._watch = Watch(audit, caller, peer)
        self._number = 0
        """Its connection to the queue manager; 0 before it has asked anything."""
        self._asked: dict[int, type[AnyRequest]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._due_ms: int | None = None
        """When its clerk wants to be woken; the timer may be earlier."""

    # What its clerk wants.

    @property
    def now(self) -> Instant:
        """Read the clocks."""
        return read_clocks()

    def ask(self, number: int, request: AnyRequest) -> Failed | None:
        """Hand a request in, unless the queue manager takes none any more."""
        refusal = self._pump.refusal
        if refusal is not None:
            return Failed(refusal.code, refusal.detail)
        if not self._number:
            origin = Origin(self._peer, DOOR, read_clocks().unix_s)
            self._number = self._pump.connected(self, self._caller, origin)
        kind = type(request)
        self._asked[number] = kind
        if isinstance(request, CloseQueue):
            self._watch.closed(request.handle)
        elif kind in _WATCHED:
            self._watch.begin(number, request)
        self._pump.hand_in(self._pump.request, self._number, number, request)
        self._pump.schedule()
        return None

    def defer(self) -> None:
        """Let the clerk go on in the next turn."""
        self._pump.defer(self)

    def wake_at(self, due_ms: int | None) -> None:
        """Set its timer. One that is early stays, and looks again: most are never needed."""
        self._due_ms = due_ms
        if due_ms is None:
            return
        if self._timer is not None:
            if self._timer_ms <= due_ms:
                return
            self._timer.cancel()
        self._set_timer(due_ms)

    def _set_timer(self, due_ms: int) -> None:
        self._timer_ms = due_ms
        delay_s = max(0, due_ms - read_clocks().ticks_ms) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._wake)

    def leave(self) -> None:
        """End its connection to the queue manager."""
        self._due_ms = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._number:
            number, self._number = self._number, 0
            self._pump.disconnected(number)
        self._asked.clear()

    # What the pump calls.

    def deliver(self, answers: list[Answer]) -> None:
        """Take answers, when the turn is over."""
        self._pump.after_turn(self._take, answers)

    def go_on(self) -> None:
        """Let the clerk ask what had to wait."""
        self._clerk.go_on()

    def cut(self, reason: str) -> None:
        """End the connections of a caller that may not stay."""
        self._clerk.cut(reason)

    def _take(self, answers: list[Answer]) -> None:
        if self._clerk.is_over:
            return
        for answer in answers:
            kind = self._asked.pop(answer.id, None)
            if type(answer.reply) is Failed or kind in _WATCHED:
                self._watch.end(answer.id, kind, answer.reply)
        self._clerk.answered((answer.id, answer.reply) for answer in answers)

    def _wake(self) -> None:
        self._timer = None
        if self._due_ms is None:
            return
        if self._due_ms > read_clocks().ticks_ms:
            self._set_timer(self._due_ms)
        else:
            self._clerk.wake()


def desk_of(services: dict[Syntax, Service], pump: Pump, audit: AuditLog) -> Desk:
    """Make the desk of a door."""
    return Desk(services, lambda clerk, caller, peer: PumpCounter(clerk, caller, peer, pump, audit))
