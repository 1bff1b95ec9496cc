"""Who answers the calls: for each group, caller and interface somebody of its own.

Each has a connection of its own to the queue manager, with the rights of the caller, as soon as it
has something to ask: so rights, quotas and the audit log are those of every other application. What
that connection is, and what time it is, a driver says: its `Counter`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from openmsmq.api.messages import REQUESTS, AnyReply, AnyRequest, Failed
from openmsmq.model.clock import Instant
from openmsmq.model.limits import RPC_READS_PER_TURN_MAX_COUNT
from openmsmq.remote.ports import Ask, Interface, Output, Return, Throw
from openmsmq.remote.services import Service
from openmsmq.security.access.callers import Caller
from openmsmq.wire.rpc.pdus import Status

if TYPE_CHECKING:
    from openmsmq.protocol.rpc.states import CallArrived
    from openmsmq.wire.rpc.syntaxes import Syntax

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


class Counter(Protocol):
    """Where a clerk asks the queue manager: what a driver does for it."""

    @property
    def now(self) -> Instant:
        """What time it is."""

    def ask(self, number: int, request: AnyRequest) -> Failed | None:
        """Hand a request in, and call `Clerk.answered` later; or say why nothing is asked now."""

    def defer(self) -> None:
        """Call `Clerk.go_on` when others had their turn."""

    def wake_at(self, due_ms: int | None) -> None:
        """Call `Clerk.wake` then, and at no moment that was named before; None for never."""

    def leave(self) -> None:
        """Lose the connection to the queue manager, and call nothing any more."""


OpenCounter: TypeAlias = "Callable[[Clerk, Caller, str], Counter]"
"""Makes the counter of a clerk, with its caller and where that one calls from."""


class Clerk:
    """Answers the calls of one caller through one interface, from all connections of a group."""

    def __init__(
        self, service: Service, caller: Caller, open_counter: OpenCounter, asking: Asking
    ) -> None:
        self.interface: Final[Interface] = service.make(caller)
        self._counter = open_counter(self, caller, asking.peer)
        self._note_defect = asking.note_defect
        self._askers: dict[Asking, None] = {}
        self._last_call = 0
        self._calls: dict[int, tuple[Asking, int]] = {}
        self._held: deque[Ask] = deque()
        """What is asked when the others had their turn; nothing overtakes it."""
        self._reads_left = RPC_READS_PER_TURN_MAX_COUNT
        self.is_over = False

    @property
    def waiting_count(self) -> int:
        """How many calls have not ended, or are held back."""
        return len(self._calls) + len(self._held)

    # What connections want.

    def call(self, asking: Asking, arrived: CallArrived) -> None:
        """Take a call."""
        self._last_call += 1
        number = self._last_call
        self._calls[number] = (asking, arrived.call)
        self._askers[asking] = None
        operation, stub = arrived.operation, arrived.stub
        self._guarded(lambda: self.interface.called(number, operation, stub, self._counter.now))

    def cancel(self, asking: Asking, call: int) -> None:
        """Nobody waits for a call any more."""
        for number, origin in list(self._calls.items()):
            if origin == (asking, call):
                self._cancel(number)

    def forget(self, asking: Asking) -> None:
        """A connection is gone, with whatever it has waited for."""
        self._askers.pop(asking, None)
        for number, origin in list(self._calls.items()):
            if origin[0] is asking:
                self._cancel(number)
                self._calls.pop(number, None)

    def _cancel(self, number: int) -> None:
        if not self.is_over:
            self._guarded(lambda: self.interface.cancelled(number, self._counter.now))

    def end(self) -> None:
        """Give everything back that was opened."""
        self.is_over = True
        self._counter.leave()
        self._calls.clear()
        self._held.clear()

    # What counters call.

    def answered(self, answers: Iterable[tuple[int, AnyReply]]) -> None:
        """Take answers of the queue manager, when its turn is over: more may be asked then."""
        self._reads_left = RPC_READS_PER_TURN_MAX_COUNT
        for number, reply in answers:
            if self.is_over:
                return
            self._answer(number, reply)

    def go_on(self) -> None:
        """Ask what had to wait."""
        self._reads_left = RPC_READS_PER_TURN_MAX_COUNT
        held, self._held = self._held, deque()
        self._guarded(lambda: list(held))

    def wake(self) -> None:
        """Do what is due."""
        self._guarded(lambda: self.interface.wake(self._counter.now))

    def cut(self, reason: str) -> None:
        """End the connections of a caller that may not stay."""
        for asking in list(self._askers):
            asking.cut(reason)
        self.end()

    # What the interface wants.

    def _answer(self, number: int, reply: AnyReply) -> None:
        self._guarded(lambda: self.interface.answered(number, reply, self._counter.now))

    def _guarded(self, tell: Callable[[], list[Output]]) -> None:
        """Tell the interface something, and do what it wants.

        All of it goes through here: a mistake of ours in it costs the caller who has caused it.
        """
        try:
            self._carry_out(tell())
        except Exception as error:
            self._note_defect(error)
            self.cut("a mistake of this queue manager in answering it")

    def _carry_out(self, outputs: list[Output]) -> None:
        for output in outputs:
            if self.is_over:
                return
            match output:
                case Ask(number, request):
                    if self._held or (type(request) in _HEAVY and not self._reads_left):
                        self._held.append(output)
                        self._counter.defer()
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
        if not self.is_over:
            self._counter.wake_at(self.interface.next_wake_ms)

    def _ask(self, number: int, request: AnyRequest) -> None:
        refused = self._counter.ask(number, request)
        if refused is not None:
            self._answer(number, refused)


class Desk:
    """All clerks of one door."""

    def __init__(self, services: dict[Syntax, Service], open_counter: OpenCounter) -> None:
        self._services = services
        self._open_counter = open_counter
        self._clerks: dict[tuple[int, Caller, Syntax], Clerk] = {}

    def __len__(self) -> int:
        return len(self._clerks)

    @property
    def clerks(self) -> list[Clerk]:
        """All that answer now."""
        return list(self._clerks.values())

    def call(self, asking: Asking, group: int, arrived: CallArrived) -> Clerk | None:
        """Have a call answered; return by whom."""
        key = (group, arrived.caller, arrived.interface)
        clerk = self._clerks.get(key)
        if clerk is None or clerk.is_over:
            service = self._services.get(arrived.interface)
            if service is None:
                asking.threw(arrived.call, Status.UNKNOWN_INTERFACE)
                return None
            clerk = Clerk(service, arrived.caller, self._open_counter, asking)
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
