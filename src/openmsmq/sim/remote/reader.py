"""A reader on another computer: it takes messages in two steps, in every way that goes wrong.

It does several things at a time, with hands of which each does one after the other. Its connections
may share what they have opened. It gives calls up, speaks too late, twice or never, closes what it
reads while it reads, and dies.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Generator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from openmsmq.model.errors import (
    IllegalCursorAction,
    InsufficientResources,
    InvalidHandle,
    InvalidParameter,
    MessageAlreadyReceived,
    MessageLocked,
    MessageNotFound,
    MessageStorageFailed,
    OperationCancelled,
    ReceiveTimeout,
    TransactionUsage,
)
from openmsmq.model.identity import NIL_GUID
from openmsmq.model.names import parse_format_name
from openmsmq.model.queue import AccessMode
from openmsmq.sim.checks.remote_watch import PATIENCE_MS, Lease, Read
from openmsmq.sim.remote.host import ReaderHost
from openmsmq.sim.remote.line import ReaderLine, Ticket
from openmsmq.sim.scenarios.scenario import PLAIN, TRANSACTIONAL
from openmsmq.sim.violation import Violation
from openmsmq.wire import message_bytes
from openmsmq.wire.rpc import remote_read as rpc
from openmsmq.wire.rpc.message_packets import joined, read
from openmsmq.wire.rpc.queue_format import QueueFormat
from openmsmq.wire.rpc.remote_read import Action, Operation, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from openmsmq.sim.checks.remote_watch import Place
    from openmsmq.sim.node import Node
    from openmsmq.sim.scenarios.remote import RemoteScenario
    from openmsmq.sim.world import World

_FOREVER_MS: Final = 0xFFFF_FFFF
_WHOLE: Final = 0xFFFF_FFFF
_POLL_MS: Final = 20
_CONTEXT_MISMATCH: Final = 0x1C00_001A
_DISK_TROUBLE: Final = frozenset({InsufficientResources.code, MessageStorageFailed.code})
_ALWAYS: Final = _DISK_TROUBLE | {ReceiveTimeout.code}
_LOOKED_UP: Final = _ALWAYS | {
    MessageNotFound.code,
    MessageLocked.code,
    # Somebody else has it, and does not let others look at it.
    TransactionUsage.code,
}
_ALONG: Final = _ALWAYS | {IllegalCursorAction.code, MessageAlreadyReceived.code}
_LOOKUPS: Final = (
    Action.LOOKUP_PEEK_CURRENT,
    Action.LOOKUP_PEEK_NEXT,
    Action.LOOKUP_PEEK_PREVIOUS,
    Action.LOOKUP_RECEIVE_CURRENT,
    Action.LOOKUP_RECEIVE_NEXT,
    Action.LOOKUP_RECEIVE_PREVIOUS,
)
_TAKES: Final = frozenset(
    {
        Action.RECEIVE,
        Action.LOOKUP_RECEIVE_CURRENT,
        Action.LOOKUP_RECEIVE_NEXT,
        Action.LOOKUP_RECEIVE_PREVIOUS,
    }
)

Steps: TypeAlias = Generator[int | Ticket, None, Any]
"""Pauses in milliseconds, and calls to wait for."""


class _Handle:
    """A queue that a reader has open."""

    def __init__(self, place: Place, context: bytes, queue: str) -> None:
        self.place = place
        self.context = context
        self.queue = queue
        self.is_closing = False


class _Held(msgspec.Struct, eq=False):
    """A message of which nothing was said: by which handle and request."""

    handle: _Handle
    request: int
    lease: Lease


class _Stopped(Exception):
    """What a hand was about to do makes no sense any more."""


class RemoteReader:
    """One reader of the queues of one node."""

    def __init__(self, world: World, node: Node, number: int, scenario: RemoteScenario) -> None:
        index = len(world.trace.names)
        self.world = world
        self.node = node
        self.name = f"READER{index}"
        self.done = False
        assert world.books.remote is not None
        self._watch = world.books.remote
        self._scenario = scenario
        self._rng = random.Random(f"{number} of {node.name} in {world.scenario.seed}")
        self._host = ReaderHost(world, index, self.name, f"10.1.0.{index}")
        world.network.join(self._host)
        world.trace.names.append(self.name)
        self._left = [scenario.operation_count] * scenario.hands
        self._pause_max_ms = max(2, 2 * world.scenario.duration_ms // scenario.operation_count)
        self._is_calm = False
        self._generation = 0
        self._working = 0
        """How many hands have something left to do."""
        self._lines: list[ReaderLine] = []
        self._handles: list[_Handle] = []
        self._held: list[_Held] = []
        self._old: _Handle | None = None
        """One of an earlier life."""
        self._requests = 0
        self._lookups: list[int] = []
        """Where messages lay that it has seen."""
        self._last_group = 0
        self._connects_ms = 0

    @property
    def connected(self) -> bool:
        """Whether it has connections just now."""
        return bool(self._lines)

    # What worlds and faults do.

    def begin(self) -> None:
        """Start to read."""
        for hand in range(self._scenario.hands):
            self._start(self._hand(hand))

    def hurry(self) -> None:
        """Make no more long pauses: the faults are over."""
        self._is_calm = True
        self._pause_max_ms = _POLL_MS

    def node_is_back(self) -> None:
        """Nobody tells a reader."""

    def leave(self) -> None:
        """Be gone without a word; another one comes in its place."""
        if not self.done:
            self._note("fault", "is gone")
            self._restart(self._rng.random() < 0.5)

    def finish(self) -> None:
        """Say at last what becomes of what it has, and close what it has open."""
        self.done = False
        self._start(self._farewell())

    def go(self) -> None:
        """Leave, with nothing left to do."""
        for line in self._lines:
            line.leave()

    # Steps.

    def _start(self, steps: Steps) -> None:
        self._working += 1
        self._later(0, self._go_on, steps)

    def _go_on(self, steps: Steps) -> None:
        try:
            step = next(steps)
        except StopIteration:
            self._working -= 1
            self.done = not self._working
            return
        if isinstance(step, int):
            self._later(step, self._go_on, steps)
        elif step.is_over:
            self._later(0, self._go_on, steps)
        else:
            step.then = partial(self._resume, self._generation, steps)

    def _resume(self, generation: int, steps: Steps) -> None:
        self.world.timeline.after(0, self._if_same, generation, self._go_on, (steps,))

    def _later(self, delay_ms: int, action: Callable[..., None], *arguments: Any) -> None:
        self.world.timeline.after(delay_ms, self._if_same, self._generation, action, arguments)

    def _if_same(
        self, generation: int, action: Callable[..., None], arguments: tuple[Any, ...]
    ) -> None:
        if generation == self._generation:
            action(*arguments)

    def _restart(self, died: bool) -> None:
        """Lose everything, and begin again after a while."""
        self._generation += 1
        self._working = 0
        if died:
            self._host.die()
        for line in self._lines:
            line.leave()
        self._forget_all()
        self._later(self._rng.randrange(1, 2_000), self.begin)

    def _forget_all(self) -> None:
        if self._handles:
            self._old = self._handles[-1]
        self._lines, self._handles, self._held = [], [], []

    def _note(self, kind: str, text: str, messages: tuple[int, ...] = ()) -> None:
        self.world.trace.note(self._host.index, kind, text, messages)

    # What hands do.

    def _hand(self, hand: int) -> Steps:
        while self._left[hand] > 0:
            self._left[hand] -= 1
            yield self._rng.randrange(self._pause_max_ms)
            with contextlib.suppress(_Stopped):
                yield from self._operation(self._rng.choice(self._scenario.readings))

    def _operation(self, name: str) -> Steps:
        match name:
            case "leave" | "die":
                if self._rng.random() < 0.5:
                    self._later(0, self._restart, name == "die")
                    yield _POLL_MS
            case "stranger":
                yield from self._speak_as_a_stranger()
            case _:
                handle = yield from self._handle()
                yield from self._with_handle(name, handle)

    def _with_handle(self, name: str, handle: _Handle) -> Steps:
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
            case _:
                held = yield from self._read(handle, Action.RECEIVE, timeout_ms=self._timeout_ms())
                yield from self._decide(held, name)

    def _timeout_ms(self) -> int:
        return self._rng.choice((0, 0, 100, 5_000))

    # Connections and handles.

    def _prune(self) -> None:
        """Forget connections that are lost, and what nobody can use any more."""
        self._lines = [line for line in self._lines if not line.is_lost]
        if not self._lines and (self._handles or self._held):
            self._forget_all()

    def _connect(self) -> None:
        """Have another connection, if there may be one."""
        self._prune()
        now_ms = self.world.timeline.now_ms
        if now_ms < self._connects_ms or len(self._lines) >= self._scenario.lines_max:
            return
        group = self._lines[0].group if self._lines else 0
        if self._lines and not group:
            # The first one has not agreed yet.
            return
        if not self._lines and "stranger" in self._scenario.readings and self._rng.random() < 0.2:
            group = self._last_group
        self._connects_ms = now_ms + self._rng.choice((100, 1_000, 3_000))
        line = ReaderLine(self._host, self.node, self._scenario, self._rng, group)
        self._lines.append(line)

    def _line(self, place: Place | None = None) -> Generator[int, None, ReaderLine]:
        """Wait for a connection that is free, of a group if one is named."""
        while True:
            self._prune()
            if place is not None and not any(line.place == place for line in self._lines):
                raise _Stopped
            free = [line for line in self._lines if line.can_call and place in (None, line.place)]
            if free:
                line = self._rng.choice(free)
                self._last_group = line.group
                if self._rng.random() < 0.1:
                    self._connect()
                return line
            self._connect()
            yield _POLL_MS

    def _handle(self) -> Generator[int | Ticket, None, _Handle]:
        """Open a queue, or use one that is open."""
        self._prune()
        if self._handles and self._rng.random() < 0.85:
            return self._rng.choice(self._handles)
        line = yield from self._line()
        queue = self._rng.choice((PLAIN, TRANSACTIONAL))
        where = self._rng.choice((f"OS:{self.node.name}", f"TCP:{self.node.address}"))
        name = QueueFormat.of(parse_format_name(f"DIRECT={where}\\{queue}"))
        stub = rpc.OPEN_QUEUE.encode(
            rpc.OpenQueue(name, AccessMode.RECEIVE, 0, NIL_GUID, 1, 6, 1, 7600, 1)
        )
        place = line.place
        assert place is not None
        ticket = line.call(Operation.OPEN_QUEUE, stub)
        yield ticket
        if ticket.stub is None:
            if ticket.status not in (0, *_DISK_TROUBLE):
                raise Violation(f"{self.name} may not open {queue}: {ticket.status:#010x}")
            raise _Stopped
        handle = _Handle(place, rpc.OPENED.decode(ticket.stub).context, queue)
        self._prune()
        if any(each.place == place for each in self._lines):
            self._handles.append(handle)
            return handle
        raise _Stopped

    def _call(self, handle: _Handle, operation: int, stub: bytes) -> Generator[Any, None, bytes]:
        """Make a call about a handle; give its results."""
        line = yield from self._line(handle.place)
        ticket = line.call(operation, stub)
        yield ticket
        return self._results(handle, ticket)

    def _results(self, handle: _Handle, ticket: Ticket) -> bytes:
        if ticket.stub is not None:
            return ticket.stub
        if ticket.status and not (ticket.status == _CONTEXT_MISMATCH and handle.is_closing):
            raise Violation(f"a call of {self.name} ends with {ticket.status:#010x}")
        raise _Stopped

    def _close(self, handle: _Handle) -> Steps:
        """Close a handle, whatever is being done with it."""
        line = yield from self._line(handle.place)
        if handle.is_closing:
            return
        handle.is_closing = True
        self._watch.closes(handle.context)
        self._handles.remove(handle)
        self._held = [held for held in self._held if held.handle is not handle]
        self._note("call", "closes a handle")
        ticket = line.call(Operation.CLOSE_QUEUE, rpc.OF_QUEUE.encode(rpc.OfQueue(handle.context)))
        yield ticket
        closed = rpc.CLOSED.decode(self._results(handle, ticket))
        if closed.result or closed.context != rpc.NO_CONTEXT:
            raise Violation(f"{self.name} closes a handle and is told {closed.result:#010x}")

    # Reads.

    def _read(
        self,
        handle: _Handle,
        action: Action,
        *,
        lookup_id: int = 0,
        cursor: int = 0,
        timeout_ms: int = 0,
        then: Callable[[Ticket, int], None] | None = None,
        allowed: frozenset[int] = _ALWAYS,
    ) -> Generator[Any, None, _Held | None]:
        """Read a message; give what is to be spoken of."""
        line = yield from self._line(handle.place)
        self._requests += 1
        request = self._requests
        now_ms = self.world.timeline.now_ms
        made = Read(
            self.name, self.node, handle.queue.casefold(), handle.place, handle.context, now_ms
        )
        asked = rpc.StartReceive(
            handle.context, lookup_id, cursor, action, timeout_ms, request, _WHOLE, _WHOLE
        )
        self._watch.begins(made)
        self._note("call", f"{action.name} {request} within {timeout_ms} ms")
        ticket = line.call(Operation.START_RECEIVE, rpc.START_RECEIVE.encode(asked))
        if then is not None:
            then(ticket, request)
        yield ticket
        received = rpc.RECEIVED.decode(self._results(handle, ticket))
        self._note("answer", f"{action.name} {request}: {received.result:#x}")
        self._watch.ends(made)
        if received.result:
            self._check_refusal(handle, made, received.result, timeout_ms, allowed)
            return None
        if not cursor and action in (Action.RECEIVE, Action.PEEK_CURRENT):
            self._watch.require_first(made, _packet(received))
        return self._hear(handle, made, action, request, received)

    def _check_refusal(
        self, handle: _Handle, made: Read, code: int, timeout_ms: int, allowed: frozenset[int]
    ) -> None:
        waited_ms = self.world.timeline.now_ms - made.begun_ms
        if code == ReceiveTimeout.code and waited_ms < timeout_ms:
            raise Violation(f"{self.name} is to wait {timeout_ms} ms, and did {waited_ms} ms")
        may_be = handle.is_closing and code in (OperationCancelled.code, InvalidHandle.code)
        if code not in allowed and not may_be:
            raise Violation(f"a read of {self.name} ends with {code:#010x}")

    def _hear(
        self, handle: _Handle, made: Read, action: Action, request: int, received: rpc.Received
    ) -> _Held | None:
        packet = _packet(received)
        level = 0 if handle.queue == TRANSACTIONAL else message_bytes.priority(packet)
        self._lookups.append((7 - level) << 56 | received.sequence_id)
        if action not in _TAKES:
            self._watch.heard(made, packet)
            return None
        lease = self._watch.given(made, packet)
        lease.is_loose = lease.is_loose or handle.is_closing
        self._note("given", f"{request} has it", (lease.message.number,))
        held = _Held(handle, request, lease)
        if not handle.is_closing:
            self._held.append(held)
        return held

    def _decide(self, held: _Held | None, name: str) -> Steps:
        """Say what becomes of a message, at once, late, twice or never."""
        if held is None:
            return
        yield self._rng.choice((0, 0, 10, 1_000))
        if name == "forget" and self._rng.random() < 0.6:
            if self._rng.random() < 0.5:
                # At the end of its time, before or after.
                yield PATIENCE_MS + self._rng.randrange(-1_000, 3_000)
                yield from self._end(held, Verdict.ACK)
            return
        verdict = Verdict.ACK if self._rng.random() < 0.75 else Verdict.NACK
        if name == "repeat" and self._rng.random() < 0.5:
            yield from self._end_twice(held)
            return
        yield from self._end(held, verdict)
        if name == "repeat":
            # What is spoken of is over, whatever was said.
            other = self._rng.choice((Verdict.ACK, Verdict.NACK))
            yield from self._end_nothing(held.handle, held.request, other)

    def _end(self, held: _Held, verdict: Verdict) -> Steps:
        """Speak of a message, again as long as the disk is full."""
        while True:
            code = yield from self._speak(held, verdict)
            if code != InsufficientResources.code:
                return
            yield self._rng.choice((100, 2_000))

    def _speak(self, held: _Held, verdict: Verdict) -> Generator[Any, None, int]:
        lease, takes = held.lease, verdict is Verdict.ACK
        line = yield from self._line(held.handle.place)
        if held.handle.is_closing or held not in self._held:
            raise _Stopped
        self._watch.speaks(lease, takes=takes)
        self._note("call", f"{verdict.name} {held.request}", (lease.message.number,))
        ticket = line.call(Operation.END_RECEIVE, _ending(held, verdict))
        yield ticket
        code = self._code(held, ticket)
        self._note("answer", f"{verdict.name} {held.request}: {code:#x}", (lease.message.number,))
        if code:
            self._watch.was_refused(lease, code)
            if code == InsufficientResources.code:
                return code
        elif takes:
            self._watch.was_taken(lease)
        if held in self._held:
            self._held.remove(held)
        return code

    def _code(self, held: _Held, ticket: Ticket) -> int:
        return rpc.RESULT.decode(self._results(held.handle, ticket)).result

    def _end_twice(self, held: _Held) -> Steps:
        """Take a message twice at once: at most one of both is good."""
        lines = []
        for _ in range(2):
            lines.append((yield from self._line(held.handle.place)))
        if held.handle.is_closing or not all(line.can_call for line in lines):
            raise _Stopped
        tickets = []
        for line in lines:
            if line.can_call:
                self._watch.speaks(held.lease, takes=True)
                tickets.append(line.call(Operation.END_RECEIVE, _ending(held, Verdict.ACK)))
        codes = []
        for ticket in tickets:
            yield ticket
            with contextlib.suppress(_Stopped):
                codes.append(self._code(held, ticket))
        if codes.count(0) > 1:
            raise Violation(f"{self.name} takes {held.lease.message} twice")
        if 0 in codes:
            self._watch.was_taken(held.lease)
        if held in self._held:
            self._held.remove(held)

    def _end_nothing(self, handle: _Handle, request: int, verdict: Verdict) -> Steps:
        """Speak of a message that it does not have: that is refused, and changes nothing."""
        stub = rpc.END_RECEIVE.encode(rpc.EndReceive(handle.context, verdict, request))
        results = yield from self._call(handle, Operation.END_RECEIVE, stub)
        if not rpc.RESULT.decode(results).result:
            raise Violation(f"{self.name} speaks of a message that it does not have, and may")

    def _wait(self, handle: _Handle, name: str) -> Steps:
        """Wait for a message, and perhaps not for as long as was said."""
        timeout_ms = self._rng.choice((5_000, 60_000, _FOREVER_MS))
        gives_up = name != "wait" or timeout_ms == _FOREVER_MS

        def then(ticket: Ticket, request: int) -> None:
            if gives_up:
                pause_ms = self._rng.choice((0, 5, 1_000, 20_000))
                self._later(pause_ms, self._give_up, handle, ticket, request, name)

        allowed = _ALWAYS | {OperationCancelled.code} if gives_up else _ALWAYS
        held = yield from self._read(
            handle, Action.RECEIVE, timeout_ms=timeout_ms, then=then, allowed=allowed
        )
        yield from self._decide(held, name)

    def _give_up(self, handle: _Handle, ticket: Ticket, request: int, name: str) -> None:
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

    def _cancel(self, handle: _Handle, ticket: Ticket, request: int) -> Steps:
        """Cancel a read by another call."""
        stub = rpc.CANCEL_RECEIVE.encode(rpc.CancelReceive(handle.context, request))
        with contextlib.suppress(_Stopped):
            results = yield from self._call(handle, Operation.CANCEL_RECEIVE, stub)
            code = rpc.RESULT.decode(results).result
            if code not in (0, InvalidParameter.code, *_DISK_TROUBLE):
                raise Violation(f"{self.name} cancels a read and is told {code:#010x}")
            if code and not ticket.is_over:
                # It is over, and the answer is on its way.
                ticket.line.cancel(ticket)

    def _look_up(self, handle: _Handle) -> Steps:
        """Read a message by where it lies, or what lies beside that."""
        if not self._lookups:
            yield from self._read(handle, Action.PEEK_CURRENT)
            return
        lookup_id = self._rng.choice(self._lookups)
        action = self._rng.choice(_LOOKUPS)
        held = yield from self._read(handle, action, lookup_id=lookup_id, allowed=_LOOKED_UP)
        yield from self._decide(held, "lookup")

    def _use_cursor(self, handle: _Handle) -> Steps:
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
        if ticket.status not in (0, _CONTEXT_MISMATCH) or ticket.stub is not None:
            raise Violation(f"{self.name} uses a handle of an earlier life")

    def _farewell(self) -> Steps:
        """Speak of everything, and close everything."""
        with contextlib.suppress(_Stopped):
            for held in list(self._held):
                yield from self._speak(held, Verdict.ACK)
            for handle in list(self._handles):
                yield from self._close(handle)


def _packet(received: rpc.Received) -> bytes:
    return read(joined(received.sections))[0]


def _ending(held: _Held, verdict: Verdict) -> bytes:
    return rpc.END_RECEIVE.encode(rpc.EndReceive(held.handle.context, verdict, held.request))
