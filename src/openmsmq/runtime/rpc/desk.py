"""Who answers the calls: for each group, caller and interface somebody of its own.

Each has a connection of its own to the queue manager, with the rights of the caller, as soon as it
has something to ask: so rights, quotas and the audit log are those of every other application.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from openmsmq.api.messages import (
    REQUESTS,
    Answer,
    AnyReply,
    AnyRequest,
    CloseQueue,
    Failed,
    OpenQueue,
)
from openmsmq.remote.ports import Ask, Interface, Output, Return, Throw
from openmsmq.runtime.api.audit import AuditLog, Watch
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.limits import RPC_READS_PER_TURN_MAX_COUNT
from openmsmq.runtime.rpc.services import Service
from openmsmq.security.access.callers import Caller, Origin
from openmsmq.wire.rpc.pdus import Status

if TYPE_CHECKING:
    from openmsmq.protocol.rpc.states import CallArrived
    from openmsmq.runtime.server import Pump
    from openmsmq.wire.rpc.syntaxes import Syntax

DOOR: Final = "rpc"

_WATCHED: Final = frozenset(kind for kind in REQUESTS if kind.facts.is_audited) | {OpenQueue}
"""Requests whose ends the audit log wants to know: it tells of handles by the names of queues."""
_OUR_MISTAKE: Final = "a mistake of this queue manager in answering it"
_HEAVY: Final = frozenset(kind for kind in REQUESTS if kind.facts.is_heavy)


class Asking(Protocol):
    """A connection from which a call came."""

    @property
    def peer(self) -> str:
        """Who is at the other end, for the log."""

    def returned(self, call: int, stub: bytes) -> None:
        """Take the results of a call."""

    def threw(self, call: int, status: int) -> None:
        """Take the status of a call that has failed."""

    def cut(self, reason: str) -> None:
        """End."""

    def note_defect(self, error: Exception) -> None:
        """Log a mistake of ours."""


class Clerk:
    """Answers the calls of one caller through one interface, from all connections of a group."""

    def __init__(
        self, service: Service, caller: Caller, pump: Pump, audit: AuditLog, asking: Asking
    ) -> None:
        self._interface: Interface = service.make(caller)
        self._caller = caller
        self._pump = pump
        self._peer = asking.peer
        self._note_defect = asking.note_defect
        self._watch = Watch(audit, caller, asking.peer)
        self._askers: set[Asking] = set()
        self._number = 0
        """Its connection to the queue manager; 0 before it has asked anything."""
        self._last_call = 0
        self._calls: dict[int, tuple[Asking, int]] = {}
        self._asked: dict[int, type[AnyRequest]] = {}
        self._held: deque[Ask] = deque()
        """What is asked when the others had their turn; nothing overtakes it."""
        self._reads_left = RPC_READS_PER_TURN_MAX_COUNT
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        """When it goes off, in ticks."""
        self._is_in_turn = False
        """Whether the queue manager is in the middle of its turn."""
        self.is_over = False

    # What connections want.

    def call(self, asking: Asking, arrived: CallArrived) -> None:
        """Take a call."""
        self._last_call += 1
        number = self._last_call
        self._calls[number] = (asking, arrived.call)
        self._askers.add(asking)
        operation, stub = arrived.operation, arrived.stub
        self._guarded(lambda: self._interface.called(number, operation, stub, read_clocks()))

    def cancel(self, asking: Asking, call: int) -> None:
        """Nobody waits for a call any more."""
        for number, origin in list(self._calls.items()):
            if origin == (asking, call):
                self._cancel(number)

    def forget(self, asking: Asking) -> None:
        """A connection is gone, with whatever it has waited for."""
        self._askers.discard(asking)
        for number, origin in list(self._calls.items()):
            if origin[0] is asking:
                self._cancel(number)
                self._calls.pop(number, None)

    def _cancel(self, number: int) -> None:
        if not self.is_over:
            self._guarded(lambda: self._interface.cancelled(number, read_clocks()))

    def end(self) -> None:
        """Give everything back that was opened."""
        self.is_over = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._number:
            number, self._number = self._number, 0
            self._pump.disconnected(number)
        self._calls.clear()
        self._asked.clear()
        self._held.clear()

    # What the pump calls.

    def deliver(self, answers: list[Answer]) -> None:
        """Take answers of the queue manager, in the middle of its turn.

        They leave at once, so that who waits for them can work while the disk does. Whatever else
        comes of them waits until the turn is over.
        """
        self._is_in_turn = True
        try:
            self._take(answers)
        except Exception as error:
            self._fall(error)
        finally:
            self._is_in_turn = False

    def _take(self, answers: list[Answer]) -> None:
        self._reads_left = RPC_READS_PER_TURN_MAX_COUNT
        for answer in answers:
            if self.is_over:
                return
            kind = self._asked.pop(answer.id, None)
            if type(answer.reply) is Failed or kind in _WATCHED:
                self._watch.end(answer.id, kind, answer.reply)
            self._answer(answer.id, answer.reply)

    def _answer(self, number: int, reply: AnyReply) -> None:
        self._guarded(lambda: self._interface.answered(number, reply, read_clocks()))

    def _guarded(self, tell: Callable[[], list[Output]]) -> None:
        """Tell the interface something, and do what it wants.

        All of it goes through here: a mistake of ours in it costs the caller who has caused it.
        """
        try:
            self._carry_out(tell())
        except Exception as error:
            self._fall(error)

    def _fall(self, error: Exception) -> None:
        self._note_defect(error)
        if self._is_in_turn:
            asyncio.get_running_loop().call_soon(self.cut, _OUR_MISTAKE)
        else:
            self.cut(_OUR_MISTAKE)

    def cut(self, reason: str) -> None:
        """End the connections of a caller that may not stay."""
        for asking in list(self._askers):
            asking.cut(reason)
        self.end()

    def go_on(self) -> None:
        """Ask what had to wait."""
        self._reads_left = RPC_READS_PER_TURN_MAX_COUNT
        held, self._held = self._held, deque()
        self._guarded(lambda: list(held))

    # What the interface wants.

    def _carry_out(self, outputs: list[Output]) -> None:
        for output in outputs:
            if self.is_over:
                return
            match output:
                case Ask(number, request):
                    if self._must_wait(request):
                        self._held.append(output)
                        self._pump.defer(self)
                    else:
                        self._reads_left -= type(request) in _HEAVY
                        self._ask(number, request)
                case Return(call, stub):
                    origin = self._calls.pop(call, None)
                    if origin is not None:
                        origin[0].returned(origin[1], stub)
                case Throw(call, status):
                    origin = self._calls.pop(call, None)
                    if origin is not None:
                        origin[0].threw(origin[1], status)
        self._arm_timer()

    def _must_wait(self, request: AnyRequest) -> bool:
        if self._held or self._is_in_turn:
            return True
        return type(request) in _HEAVY and not self._reads_left

    def _ask(self, number: int, request: AnyRequest) -> None:
        refusal = self._pump.refusal
        if refusal is not None:
            self._answer(number, Failed(refusal.code, refusal.detail))
            return
        if not self._number:
            origin = Origin(self._peer, DOOR, read_clocks().unix_s)
            self._number = self._pump.connected(self, self._caller, origin)
        kind = type(request)
        self._asked[number] = kind
        if isinstance(request, CloseQueue):
            self._watch.closed(request.handle)
        elif kind in _WATCHED:
            self._watch.begin(number, request)
        connection = self._number
        self._pump.hand_in(lambda at: self._pump.request(connection, number, request, at))
        self._pump.schedule()

    def _arm_timer(self) -> None:
        """Wake in time. A timer that is early stays: to wake for nothing is harmless."""
        due_ms = self._interface.next_wake_ms
        if due_ms is None or self.is_over:
            return
        if self._timer is not None:
            if self._timer_ms <= due_ms:
                return
            self._timer.cancel()
        delay_s = max(0, due_ms - read_clocks().ticks_ms) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._wake)
        self._timer_ms = due_ms

    def _wake(self) -> None:
        self._timer = None
        self._guarded(lambda: self._interface.wake(read_clocks()))


class Desk:
    """All clerks of one door."""

    def __init__(self, services: dict[Syntax, Service], pump: Pump, audit: AuditLog) -> None:
        self._services = services
        self._pump = pump
        self._audit = audit
        self._clerks: dict[tuple[int, Caller, Syntax], Clerk] = {}

    def __len__(self) -> int:
        return len(self._clerks)

    def call(self, asking: Asking, group: int, arrived: CallArrived) -> Clerk | None:
        """Have a call answered; return by whom."""
        key = (group, arrived.caller, arrived.interface)
        clerk = self._clerks.get(key)
        if clerk is None or clerk.is_over:
            service = self._services.get(arrived.interface)
            if service is None:
                asking.threw(arrived.call, Status.UNKNOWN_INTERFACE)
                return None
            clerk = Clerk(service, arrived.caller, self._pump, self._audit, asking)
            self._clerks[key] = clerk
        clerk.call(asking, arrived)
        return clerk

    def end(self, group: int, caller: Caller) -> None:
        """Nobody is left in a group through whom a caller could call."""
        for key in [each for each in self._clerks if each[:2] == (group, caller)]:
            self._clerks.pop(key).end()

    def close(self) -> None:
        """End all."""
        for clerk in self._clerks.values():
            clerk.end()
        self._clerks.clear()
