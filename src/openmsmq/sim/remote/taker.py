"""Reads, and what is said of the messages that they bring: at once, late, twice or never."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from openmsmq.model.errors import (
    InsufficientResources,
    InvalidHandle,
    OperationCancelled,
    ReceiveTimeout,
)
from openmsmq.sim.checks.remote_watch import PATIENCE_MS, Lease, Read
from openmsmq.sim.remote.line import Ticket
from openmsmq.sim.remote.steps import Steps, Stopped
from openmsmq.sim.remote.visitor import DISK_TROUBLE, Handle, Visitor
from openmsmq.sim.scenarios.scenario import TRANSACTIONAL
from openmsmq.sim.violation import Violation
from openmsmq.wire import message_bytes
from openmsmq.wire.rpc import remote_read as rpc
from openmsmq.wire.rpc.message_packets import joined, read
from openmsmq.wire.rpc.remote_read import Action, Operation, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from openmsmq.sim.node import Node
    from openmsmq.sim.scenarios.remote import RemoteScenario
    from openmsmq.sim.world import World

ALWAYS: Final = DISK_TROUBLE | {ReceiveTimeout.code}
"""With what any read may end."""
_WHOLE: Final = 0xFFFF_FFFF
TAKES: Final = frozenset(
    {
        Action.RECEIVE,
        Action.LOOKUP_RECEIVE_CURRENT,
        Action.LOOKUP_RECEIVE_NEXT,
        Action.LOOKUP_RECEIVE_PREVIOUS,
    }
)


class Held(msgspec.Struct, eq=False):
    """A message of which nothing was said: by which handle and request."""

    handle: Handle
    request: int
    lease: Lease


class Taker(Visitor):
    """Takes messages in two steps."""

    def __init__(self, world: World, node: Node, number: int, scenario: RemoteScenario) -> None:
        super().__init__(world, node, number, scenario)
        self._held: list[Held] = []
        """Messages of which nothing was said."""
        self._requests = 0
        self._lookups: list[int] = []
        """Where messages lay that it has seen."""

    def finish(self) -> None:
        """Say at last what becomes of what it has, and close what it has open."""
        self.done = False
        self._start(self._farewell())

    def _let_go(self, handle: Handle | None) -> None:
        """Forget what was read through a handle, or through all."""
        self._held = [held for held in self._held if handle not in (None, held.handle)]

    def _read(
        self,
        handle: Handle,
        action: Action,
        *,
        lookup_id: int = 0,
        cursor: int = 0,
        timeout_ms: int = 0,
        then: Callable[[Ticket, int], None] | None = None,
        allowed: frozenset[int] = ALWAYS,
    ) -> Generator[Any, None, Held | None]:
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
        self, handle: Handle, made: Read, code: int, timeout_ms: int, allowed: frozenset[int]
    ) -> None:
        waited_ms = self.world.timeline.now_ms - made.begun_ms
        if code == ReceiveTimeout.code and waited_ms < timeout_ms:
            raise Violation(f"{self.name} is to wait {timeout_ms} ms, and did {waited_ms} ms")
        may_be = handle.is_closing and code in (OperationCancelled.code, InvalidHandle.code)
        if code not in allowed and not may_be:
            raise Violation(f"a read of {self.name} ends with {code:#010x}")

    def _hear(
        self, handle: Handle, made: Read, action: Action, request: int, received: rpc.Received
    ) -> Held | None:
        packet = _packet(received)
        level = 0 if handle.queue == TRANSACTIONAL else message_bytes.priority(packet)
        self._lookups.append((7 - level) << 56 | received.sequence_id)
        if action not in TAKES:
            self._watch.heard(made, packet)
            return None
        lease = self._watch.given(made, packet)
        lease.is_loose = lease.is_loose or handle.is_closing
        self._note("given", f"{request} has it", (lease.message.number,))
        held = Held(handle, request, lease)
        if not handle.is_closing:
            self._held.append(held)
        return held

    # What is said of messages.

    def _decide(self, held: Held | None, name: str) -> Steps:
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

    def _end(self, held: Held, verdict: Verdict) -> Steps:
        """Speak of a message, again as long as the disk is full."""
        while True:
            code = yield from self._speak(held, verdict)
            if code != InsufficientResources.code:
                return
            yield self._rng.choice((100, 2_000))

    def _speak(self, held: Held, verdict: Verdict) -> Generator[Any, None, int]:
        lease, takes = held.lease, verdict is Verdict.ACK
        line = yield from self._line(held.handle.place)
        if held.handle.is_closing or held not in self._held:
            raise Stopped
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

    def _code(self, held: Held, ticket: Ticket) -> int:
        return rpc.RESULT.decode(self._results(held.handle, ticket)).result

    def _end_twice(self, held: Held) -> Steps:
        """Take a message twice at once: at most one of both is good."""
        one = yield from self._line(held.handle.place)
        other = yield from self._line(held.handle.place)
        if held.handle.is_closing or held not in self._held:
            raise Stopped
        tickets = []
        for line in (one, other):
            if line.can_call:
                self._watch.speaks(held.lease, takes=True)
                tickets.append(line.call(Operation.END_RECEIVE, _ending(held, Verdict.ACK)))
        codes = []
        for ticket in tickets:
            yield ticket
            with contextlib.suppress(Stopped):
                codes.append(self._code(held, ticket))
        if codes.count(0) > 1:
            raise Violation(f"{self.name} takes {held.lease.message} twice")
        if 0 in codes:
            self._watch.was_taken(held.lease)
        if held in self._held:
            self._held.remove(held)

    def _end_nothing(self, handle: Handle, request: int, verdict: Verdict) -> Steps:
        """Speak of a message that it does not have: that is refused, and changes nothing."""
        stub = rpc.END_RECEIVE.encode(rpc.EndReceive(handle.context, verdict, request))
        results = yield from self._call(handle, Operation.END_RECEIVE, stub)
        if not rpc.RESULT.decode(results).result:
            raise Violation(f"{self.name} speaks of a message that it does not have, and may")

    def _farewell(self) -> Steps:
        """Speak of everything, and close everything."""
        with contextlib.suppress(Stopped):
            for held in list(self._held):
                yield from self._speak(held, Verdict.ACK)
            for handle in list(self._handles):
                yield from self._close(handle)


def _packet(received: rpc.Received) -> bytes:
    return read(joined(received.sections))[0]


def _ending(held: Held, verdict: Verdict) -> bytes:
    return rpc.END_RECEIVE.encode(rpc.EndReceive(held.handle.context, verdict, held.request))
