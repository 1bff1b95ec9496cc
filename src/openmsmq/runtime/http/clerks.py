"""Who asks the queue manager for programs: for each caller somebody, with a connection of its own.

So rights, quotas and the audit log are those of every other application. A queue that was opened
stays open for a moment: rights that are taken away count after `HTTP_CLERK_MS` at the latest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from openmsmq.api.messages import REQUESTS, Answer, AnyReply, AnyRequest, Failed, OpenQueue
from openmsmq.client.errors import ConnectionLost
from openmsmq.client.formatters.base import FormatterError
from openmsmq.client.steps import Steps
from openmsmq.model.errors import MsmqError
from openmsmq.runtime.api.audit import AuditLog, Watch
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.limits import HTTP_CLERK_MS
from openmsmq.security.access.callers import Caller, Origin

if TYPE_CHECKING:
    from openmsmq.runtime.server import Pump

DOOR: Final = "http"

_WATCHED: Final = frozenset(kind for kind in REQUESTS if kind.facts.is_audited) | {OpenQueue}

Outcome = Callable[[Any], None]
"""Hears the result of steps, or the exception with which they ended."""


class _Job(NamedTuple):
    """Steps that are under way, and who hears how they end."""

    steps: Steps[Any]
    done: Outcome


class Clerk:
    """Carries out steps for one caller."""

    def __init__(self, pump: Pump, audit: AuditLog, caller: Caller, peer: str) -> None:
        self._pump = pump
        self._watch = Watch(audit, caller, peer)
        self._began_ms = read_clocks().ticks_ms
        self._jobs: dict[int, tuple[_Job, type[AnyRequest]]] = {}
        self._last_call = 0
        self.opened: Final[dict[str, Any]] = {}
        """Queues that are open, by their names; whoever writes steps knows what is in it."""
        self._number = pump.connected(self, caller, Origin(peer, DOOR, read_clocks().unix_s))
        self.is_over = False

    @property
    def is_fresh(self) -> bool:
        """Whether it may take further jobs."""
        return not self.is_over and read_clocks().ticks_ms - self._began_ms < HTTP_CLERK_MS

    @property
    def is_idle(self) -> bool:
        """Whether it waits for nothing."""
        return not self._jobs

    def run(self, steps: Steps[Any], done: Outcome) -> _Job:
        """Carry steps out; `done` hears how they ended."""
        job = _Job(steps, done)
        self._advance(job, None)
        return job

    def end(self) -> None:
        """Give everything back that was opened."""
        if not self.is_over:
            self.is_over = True
            self._pump.disconnected(self._number)
            jobs, self._jobs = self._jobs, {}
            for job, _ in jobs.values():
                job.done(ConnectionLost("the queue manager is stopping"))

    # What the pump calls.

    def deliver(self, answers: list[Answer]) -> None:
        """Take answers, when the turn is over: more may be asked then."""
        asyncio.get_running_loop().call_soon(self._take, answers)

    def cut(self, reason: str) -> None:
        """End what is under way, because somebody wants the connection closed."""
        jobs, self._jobs = self._jobs, {}
        self.end()
        for job, _ in jobs.values():
            job.done(ConnectionLost(reason))

    def go_on(self) -> None:
        """Nothing was put off."""

    def _take(self, answers: list[Answer]) -> None:
        for answer in answers:
            found = self._jobs.pop(answer.id, None)
            if found is None:
                continue
            job, kind = found
            if type(answer.reply) is Failed or kind in _WATCHED:
                self._watch.end(answer.id, kind, answer.reply)
            self._advance(job, answer.reply)

    def _advance(self, job: _Job, reply: AnyReply | None) -> None:
        try:
            request = job.steps.send(reply)
        except StopIteration as end:
            job.done(end.value)
        except (MsmqError, ConnectionLost, FormatterError) as error:
            job.done(error)
        else:
            assert not isinstance(request, int)
            self._ask(job, request)

    def _ask(self, job: _Job, request: Any) -> None:
        refusal = self._pump.refusal
        if refusal is not None or self.is_over:
            code = refusal or ConnectionLost("the connection is closed")
            job.done(code)
            return
        self._last_call += 1
        call, number = self._last_call, self._number
        kind = type(request)
        self._jobs[call] = job, kind
        if kind in _WATCHED:
            self._watch.begin(call, request)
        self._pump.hand_in(lambda now: self._pump.request(number, call, request, now))
        self._pump.schedule()


class Clerks:
    """All of them."""

    def __init__(self, pump: Pump, audit: AuditLog) -> None:
        self._pump = pump
        self._audit = audit
        self._clerks: dict[Caller, Clerk] = {}
        self._leaving: list[Clerk] = []
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._clerks) + len(self._leaving)

    def of(self, caller: Caller, peer: str) -> Clerk:
        """Return who asks for a caller."""
        clerk = self._clerks.get(caller)
        if clerk is None or not clerk.is_fresh:
            if clerk is not None:
                self._leaving.append(clerk)
            clerk = self._clerks[caller] = Clerk(self._pump, self._audit, caller, peer)
            self._look_later()
        return clerk

    def _look_later(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(HTTP_CLERK_MS / 1000, self._look)

    def _look(self) -> None:
        """Let those go who are done."""
        self._timer = None
        for caller, clerk in list(self._clerks.items()):
            if not clerk.is_fresh:
                self._leaving.append(self._clerks.pop(caller))
        staying: list[Clerk] = []
        for clerk in self._leaving:
            if clerk.is_idle:
                clerk.end()
            else:
                staying.append(clerk)
        self._leaving = staying
        if self._clerks or self._leaving:
            self._look_later()

    def close(self) -> None:
        """End all."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for clerk in (*self._clerks.values(), *self._leaving):
            clerk.end()
        self._clerks.clear()
        self._leaving.clear()
