"""A reader on another computer: it takes messages in two steps, in every way that goes wrong.

It does several things at a time, with hands of which each does one after the other. Its connections
may share what they have opened. It gives calls up, speaks too late, twice or never, closes what it
reads while it reads, and dies.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from openmsmq.model.errors import (
    AccessDenied,
    IllegalCursorAction,
    InvalidParameter,
    MessageAlreadyReceived,
    MessageLocked,
    MessageNotFound,
    OperationCancelled,
    TransactionUsage,
)
from openmsmq.model.queue import AccessMode
from openmsmq.remote.faults import ACCESS_DENIED
from openmsmq.sim.checks.books import PURGING, Errand
from openmsmq.sim.remote.line import ReaderLine, Ticket
from openmsmq.sim.remote.proofs import protection_of
from openmsmq.sim.remote.steps import Steps, Stopped
from openmsmq.sim.remote.taker import ALWAYS, Taker
from openmsmq.sim.remote.visitor import CONTEXT_MISMATCH, DISK_TROUBLE, POLL_MS, Handle
from openmsmq.sim.violation import Violation
from openmsmq.wire.rpc import remote_read as rpc
from openmsmq.wire.rpc.remote_read import Action, Operation, Verdict

if TYPE_CHECKING:
    from openmsmq.sim.node import Node
    from openmsmq.sim.scenarios.remote import RemoteScenario
    from openmsmq.sim.world import World

_FOREVER_MS: Final = 0xFFFF_FFFF
_PURGES: Final = 0.3
"""How often somebody who might purge a queue does: much would be left of no run."""
_LOOKED_UP: Final = ALWAYS | {
    MessageNotFound.code,
    MessageLocked.code,
    # Somebody else has it, and does not let others look at it.
    TransactionUsage.code,
}
_ALONG: Final = ALWAYS | {IllegalCursorAction.code, MessageAlreadyReceived.code}
_LOOKUPS: Final = (
    Action.LOOKUP_PEEK_CURRENT,
    Action.LOOKUP_PEEK_NEXT,
    Action.LOOKUP_PEEK_PREVIOUS,
    Action.LOOKUP_RECEIVE_CURRENT,
    Action.LOOKUP_RECEIVE_NEXT,
    Action.LOOKUP_RECEIVE_PREVIOUS,
)


class RemoteReader(Taker):
    """One reader of the queues of one node."""

    def __init__(self, world: World, node: Node, number: int, scenario: RemoteScenario) -> None:
        super().__init__(world, node, number, scenario)
        self._purges: list[Errand] = []
        """Purges that are not answered yet."""

    def _let_go(self, handle: Handle | None) -> None:
        super()._let_go(handle)
        if handle is None:
            # The answers of what is still asked will come to nobody.
            for errand in self._purges:
                self.world.books.errand_ends(errand, self.node, unknown=True)
            self._purges.clear()

    def _hand(self, hand: int) -> Steps:
        while self._left[hand] > 0:
            self._left[hand] -= 1
            yield self._rng.randrange(self._pause_max_ms)
            with contextlib.suppress(Stopped):
                yield from self._operation(self._rng.choice(self._scenario.readings))

    def _operation(self, name: str) -> Steps:
        match name:
            case "leave" | "die":
                if self._rng.random() < 0.5:
                    self._later(0, self._restart, name == "die")
                    yield POLL_MS
            case "stranger":
                yield from self._speak_as_a_stranger()
            case "impostor":
                yield from self._call_as_somebody_else()
            case "spoil":
                # Somebody on the way does that to whatever it says.
                pass
            case _:
                handle = yield from self._handle()
                yield from self._with_handle(name, handle)

    def _with_handle(self, name: str, handle: Handle) -> Steps:
        match name:
            case "close":
                yield from self._close(handle)
            case "peek":
                yield from self._read(handle, Action.PEEK_CURRENT, timeout_ms=self._timeout_ms())
            case "cursor":
                yield from self._use_cursor(handle)
            case "cancel" | "orphan" | "wait":
                yield from self._wait(handle, name)
            case "lookup":
                yield from self._look_up(handle)
            case "purge":
                if self._rng.random() < _PURGES:
                    yield from self._purge(handle)
                else:
                    yield from self._purge_in_vain()
            case _:
                held = yield from self._read(handle, Action.RECEIVE, timeout_ms=self._timeout_ms())
                yield from self._decide(held, name)

    def _timeout_ms(self) -> int:
        return self._rng.choice((0, 0, 100, 5_000))

    def _wait(self, handle: Handle, name: str) -> Steps:
        """Wait for a message, and perhaps not for as long as was said."""
        timeout_ms = self._rng.choice((5_000, 60_000, _FOREVER_MS))
        gives_up = name != "wait" or timeout_ms == _FOREVER_MS

        def then(ticket: Ticket, request: int) -> None:
            if gives_up:
                pause_ms = self._rng.choice((0, 5, 1_000, 20_000))
                self._later(pause_ms, self._give_up, handle, ticket, request, name)

        allowed = ALWAYS | {OperationCancelled.code} if gives_up else ALWAYS
        held = yield from self._read(
            handle, Action.RECEIVE, timeout_ms=timeout_ms, then=then, allowed=allowed
        )
        yield from self._decide(held, name)

    def _give_up(self, handle: Handle, ticket: Ticket, request: int, name: str) -> None:
        if ticket.is_over:
            return
        self._note("call", f"gives {request} up by {name}")
        if name == "orphan":
            ticket.line.orphan(ticket)
            # There will be no answer.
            self._later(self._rng.choice((100, 5_000)), self._give_up_hope, ticket)
        elif self._rng.random() < 0.5 or not self._scenario.concurrent:
            ticket.line.cancel(ticket)
        else:
            self._start(self._cancel(handle, ticket, request))

    def _give_up_hope(self, ticket: Ticket) -> None:
        if not ticket.is_over:
            ticket.ends()
            if not self._scenario.concurrent:
                # It would stand in the way of every other call.
                ticket.line.leave()

    def _cancel(self, handle: Handle, ticket: Ticket, request: int) -> Steps:
        """Cancel a read by another call."""
        stub = rpc.CANCEL_RECEIVE.encode(rpc.CancelReceive(handle.context, request))
        is_cancelled = False
        with contextlib.suppress(Stopped):
            results = yield from self._call(handle, Operation.CANCEL_RECEIVE, stub)
            code = rpc.RESULT.decode(results).result
            if code not in (0, InvalidParameter.code, *DISK_TROUBLE):
                raise Violation(f"{self.name} cancels a read and is told {code:#010x}")
            is_cancelled = not code
        if not (is_cancelled or ticket.is_over):
            # That connection was lost, or the read came behind its own end on another one.
            ticket.line.cancel(ticket)

    def _look_up(self, handle: Handle) -> Steps:
        """Read a message by where it lies, or what lies beside that."""
        if not self._lookups:
            yield from self._read(handle, Action.PEEK_CURRENT)
            return
        lookup_id = self._rng.choice(self._lookups)
        action = self._rng.choice(_LOOKUPS)
        held = yield from self._read(handle, action, lookup_id=lookup_id, allowed=_LOOKED_UP)
        yield from self._decide(held, "lookup")

    def _use_cursor(self, handle: Handle) -> Steps:
        """Walk along a queue, and perhaps take what is found there."""
        stub = rpc.OF_QUEUE.encode(rpc.OfQueue(handle.context))
        results = yield from self._call(handle, Operation.CREATE_CURSOR, stub)
        made = rpc.CURSOR_MADE.decode(results)
        if made.result:
            raise Violation(f"{self.name} gets no cursor: {made.result:#010x}")
        action = Action.PEEK_CURRENT
        for _ in range(self._rng.randrange(1, 5)):
            yield from self._read(handle, action, cursor=made.cursor, allowed=_ALONG)
            action = Action.PEEK_NEXT
            yield self._rng.choice((0, 10, 500))
        if self._rng.random() < 0.5:
            held = yield from self._read(handle, Action.RECEIVE, cursor=made.cursor, allowed=_ALONG)
            yield from self._decide(held, "cursor")
        stub = rpc.CLOSE_CURSOR.encode(rpc.CloseCursor(handle.context, made.cursor))
        results = yield from self._call(handle, Operation.CLOSE_CURSOR, stub)
        if rpc.RESULT.decode(results).result:
            raise Violation(f"{self.name} cannot close its cursor")

    def _purge(self, handle: Handle) -> Steps:
        """Remove all messages of a queue; what others have goes when they give it back."""
        line = yield from self._line(handle.place)
        if handle.is_closing:
            return
        books, queue = self.world.books, handle.queue.casefold()
        errand = books.errand(self.node, queue, PURGING)
        self._purges.append(errand)
        self._note("call", f"purges {queue}")
        ticket = line.call(Operation.PURGE_QUEUE, rpc.OF_QUEUE.encode(rpc.OfQueue(handle.context)))
        yield ticket
        code = None
        with contextlib.suppress(Stopped):
            code = rpc.RESULT.decode(self._results(handle, ticket)).result
        self._note("answer", f"purges {queue}: {code}")
        if errand in self._purges:
            self._purges.remove(errand)
            books.errand_ends(errand, self.node, unknown=code != 0)
        if code not in (None, 0, *DISK_TROUBLE) and not handle.is_closing:
            raise Violation(f"{self.name} may not purge {queue}: {code:#010x}")
        if code == 0:
            self._watch.purged(errand, self.node, queue)

    def _purge_in_vain(self) -> Steps:
        """Try to purge a queue, and to take from it, through a handle that is only for looking."""
        handle = yield from self._open(AccessMode.PEEK)
        stub = rpc.OF_QUEUE.encode(rpc.OfQueue(handle.context))
        results = yield from self._call(handle, Operation.PURGE_QUEUE, stub)
        code = rpc.RESULT.decode(results).result
        if code not in (ACCESS_DENIED, *DISK_TROUBLE):
            raise Violation(f"{self.name} may only look, purges, and is told {code:#010x}")
        allowed = frozenset({AccessDenied.code, *DISK_TROUBLE})
        held = yield from self._read(handle, Action.RECEIVE, allowed=allowed)
        if held is not None:
            raise Violation(f"{self.name} may only look, and takes {held.lease.message}")
        yield from self._close(handle)

    def _speak_as_a_stranger(self) -> Steps:
        """Use a handle of an earlier life: it is of no use."""
        old = self._old
        if old is None:
            return
        line = yield from self._line()
        if line.place == old.place:
            return
        stub = rpc.END_RECEIVE.encode(rpc.EndReceive(old.context, Verdict.ACK, self._requests))
        ticket = line.call(Operation.END_RECEIVE, stub)
        yield ticket
        is_refused = ticket.status in (0, CONTEXT_MISMATCH) or line.is_spoilt
        if not is_refused or ticket.stub is not None:
            raise Violation(f"{self.name} uses a handle of an earlier life")

    def _call_as_somebody_else(self) -> Steps:
        """Say to be another reader, or nobody, and name its group: nobody may come in so."""
        scenario, watch = self._scenario, self._watch
        if scenario.proof is None:
            return
        others = [each for each in self.world.readers if each is not self]
        other = self._rng.choice(others or [self])
        protection = None
        if self._rng.random() < 0.7:
            name = other.address
            protection = protection_of(scenario.proof, name, self._rng, is_right=False)
        watch.spoilt.add(self.address)
        group = other.last_group
        line = ReaderLine(self._host, self.node, scenario, self._rng, group, protection)
        self._guises.append(line)
        yield 2_000
        if line.can_call:
            ticket = line.call(Operation.GET_SERVER_PORT, rpc.NOTHING.encode(rpc.Nothing()))
            yield ticket
            if ticket.stub is not None:
                raise Violation(f"{self.name} has said to be {other.name}, and is answered")
        self._guises.remove(line)
        line.leave()
