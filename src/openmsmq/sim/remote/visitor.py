"""Somebody on another computer with connections to a node, and queues that are open there."""

from __future__ import annotations

import abc
import random
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final

from openmsmq.model.errors import InsufficientResources, MessageStorageFailed
from openmsmq.model.identity import NIL_GUID
from openmsmq.model.names import parse_format_name
from openmsmq.model.queue import AccessMode
from openmsmq.sim.remote.host import ReaderHost
from openmsmq.sim.remote.line import ReaderLine, Ticket
from openmsmq.sim.remote.proofs import protection_of
from openmsmq.sim.remote.steps import Stepper, Steps, Stopped
from openmsmq.sim.scenarios.scenario import PLAIN, TRANSACTIONAL
from openmsmq.sim.violation import Violation
from openmsmq.wire.rpc import remote_read as rpc
from openmsmq.wire.rpc.queue_format import QueueFormat
from openmsmq.wire.rpc.remote_read import Operation

if TYPE_CHECKING:
    from openmsmq.sim.checks.remote_watch import Place
    from openmsmq.sim.node import Node
    from openmsmq.sim.scenarios.remote import RemoteScenario
    from openmsmq.sim.world import World

POLL_MS: Final = 20
_AWAY_MS: Final = 150
"""How often a hand looks for a connection while there is none."""
CONTEXT_MISMATCH: Final = 0x1C00_001A
DISK_TROUBLE: Final = frozenset({InsufficientResources.code, MessageStorageFailed.code})


class Handle:
    """A queue that a reader has open."""

    def __init__(self, place: Place, context: bytes, queue: str, access: AccessMode) -> None:
        self.place = place
        self.context = context
        self.queue = queue
        self.only_looks = access is AccessMode.PEEK
        self.is_closing = False


class Visitor(Stepper, abc.ABC):
    """One reader of the queues of one node, as far as what it reads does not matter."""

    def __init__(self, world: World, node: Node, number: int, scenario: RemoteScenario) -> None:
        index = len(world.trace.names)
        super().__init__(world)
        self.node = node
        self.name = f"READER{index}"
        assert world.books.remote is not None
        self._watch = world.books.remote
        self._scenario = scenario
        self._rng = random.Random(f"{number} of {node.name} in {world.scenario.seed}")
        self._host = ReaderHost(world, index, self.name, f"10.1.0.{index}")
        world.network.join(self._host)
        world.trace.names.append(self.name)
        self._left = [scenario.operation_count] * scenario.hands
        self._pause_max_ms = max(2, 2 * world.scenario.duration_ms // scenario.operation_count)
        self._lines: list[ReaderLine] = []
        self._guises: list[ReaderLine] = []
        """Connections of somebody who says to be somebody else."""
        self._handles: list[Handle] = []
        self._old: Handle | None = None
        """One of an earlier life."""
        self._last_group = 0
        self._connects_ms = 0

    @property
    def address(self) -> str:
        """From where it calls; its account has that name."""
        return self._host.address

    @property
    def last_group(self) -> int:
        """The last group of connections that it has used; 0 for none."""
        return self._last_group

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
        self._pause_max_ms = POLL_MS

    def node_is_back(self) -> None:
        """Nobody tells a reader."""

    def leave(self) -> None:
        """Be gone without a word; another one comes in its place."""
        if not self.done:
            self._note("fault", "is gone")
            self._restart(self._rng.random() < 0.5)

    def go(self) -> None:
        """Leave, with nothing left to do."""
        for line in self._lines + self._guises:
            line.leave()

    @abc.abstractmethod
    def _hand(self, hand: int) -> Steps:
        """Do one thing after the other."""

    @abc.abstractmethod
    def _let_go(self, handle: Handle | None) -> None:
        """Forget what was read through a handle, or through all."""

    # Life.

    def _restart(self, died: bool) -> None:
        """Lose everything, and begin again after a while."""
        self._stop_all()
        if died:
            self._host.die()
        for line in self._lines + self._guises:
            line.leave()
        self._guises.clear()
        self._forget_all()
        self._later(self._rng.randrange(1, 2_000), self.begin)

    def _forget_all(self) -> None:
        if self._handles:
            self._old = self._handles[-1]
        self._lines, self._handles = [], []
        self._let_go(None)

    def _note(self, kind: str, text: str, messages: tuple[int, ...] = ()) -> None:
        self.world.trace.note(self._host.index, kind, text, messages)

    # Connections and handles.

    def _prune(self) -> None:
        """Forget connections that are lost, and what nobody can use any more."""
        self._lines = [line for line in self._lines if not line.is_lost]
        if not self._lines and self._handles:
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
        proof, name = self._scenario.proof, self._host.address
        protection = None if proof is None else protection_of(proof, name, self._rng)
        line = ReaderLine(self._host, self.node, self._scenario, self._rng, group, protection)
        self._lines.append(line)

    def _line(self, place: Place | None = None) -> Generator[int, None, ReaderLine]:
        """Wait for a connection that is free, of a group if one is named."""
        while True:
            self._prune()
            if place is not None and not any(line.place == place for line in self._lines):
                raise Stopped
            free = [line for line in self._lines if line.can_call and place in (None, line.place)]
            if free:
                line = self._rng.choice(free)
                self._last_group = line.group
                if self._rng.random() < 0.1:
                    self._connect()
                return line
            self._connect()
            yield POLL_MS if any(line.place for line in self._lines) else _AWAY_MS

    def _handle(self) -> Generator[int | Ticket, None, Handle]:
        """Open a queue, or use one that is open."""
        self._prune()
        ready = [handle for handle in self._handles if not handle.only_looks]
        if ready and self._rng.random() < 0.85:
            return self._rng.choice(ready)
        return (yield from self._open(AccessMode.RECEIVE))

    def _open(self, access: AccessMode) -> Generator[int | Ticket, None, Handle]:
        """Open a queue."""
        line = yield from self._line()
        queue = self._rng.choice((PLAIN, TRANSACTIONAL))
        where = self._rng.choice((f"OS:{self.node.name}", f"TCP:{self.node.address}"))
        name = QueueFormat.of(parse_format_name(f"DIRECT={where}\\{queue}"))
        stub = rpc.OPEN_QUEUE.encode(rpc.OpenQueue(name, access, 0, NIL_GUID, 1, 6, 1, 7600, 1))
        place = line.place
        assert place is not None
        ticket = line.call(Operation.OPEN_QUEUE, stub)
        yield ticket
        if ticket.stub is None:
            if ticket.status not in (0, *DISK_TROUBLE) and not line.is_spoilt:
                raise Violation(f"{self.name} may not open {queue}: {ticket.status:#010x}")
            raise Stopped
        handle = Handle(place, rpc.OPENED.decode(ticket.stub).context, queue, access)
        self._prune()
        if any(each.place == place for each in self._lines):
            self._handles.append(handle)
            return handle
        raise Stopped

    def _call(self, handle: Handle, operation: int, stub: bytes) -> Generator[Any, None, bytes]:
        """Make a call about a handle; give its results."""
        line = yield from self._line(handle.place)
        ticket = line.call(operation, stub)
        yield ticket
        return self._results(handle, ticket)

    def _results(self, handle: Handle, ticket: Ticket) -> bytes:
        if ticket.stub is not None:
            return ticket.stub
        may_be = ticket.status == CONTEXT_MISMATCH and (
            handle.is_closing or self._may_be_forgotten(handle)
        )
        if ticket.status and not (may_be or ticket.line.is_spoilt):
            raise Violation(f"a call of {self.name} ends with {ticket.status:#010x}")
        raise Stopped

    def _may_be_forgotten(self, handle: Handle) -> bool:
        """Whether the node may have given back what was opened through a handle.

        Connections share what is opened only when the node knows who calls through them: the last
        one that it knew may have been lost before.
        """
        return self._scenario.proof is not None and self._watch.has_lost(handle.place)

    def _close(self, handle: Handle) -> Steps:
        """Close a handle, whatever is being done with it."""
        line = yield from self._line(handle.place)
        if handle.is_closing:
            return
        handle.is_closing = True
        self._watch.closes(handle.context)
        self._handles.remove(handle)
        self._let_go(handle)
        self._note("call", "closes a handle")
        ticket = line.call(Operation.CLOSE_QUEUE, rpc.OF_QUEUE.encode(rpc.OfQueue(handle.context)))
        yield ticket
        closed = rpc.CLOSED.decode(self._results(handle, ticket))
        if closed.result or closed.context != rpc.NO_CONTEXT:
            raise Violation(f"{self.name} closes a handle and is told {closed.result:#010x}")
