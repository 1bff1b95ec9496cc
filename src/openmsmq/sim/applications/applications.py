"""Applications: scripts of calls, played against a node until it answers or is gone.

A script is a generator that yields what it asks for and is given the answer. When the connection
is lost the script ends where it stands, what it had begun is noted as unknown, and the application
begins a new script once the node is back.
"""

from __future__ import annotations

import abc
import random
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import msgspec

from openmsmq.api import messages as api
from openmsmq.model.errors import MessageStorageFailed, error_for
from openmsmq.model.queue import AccessMode
from openmsmq.sim.checks.books import READING, Errand
from openmsmq.sim.checks.facts import Fate, Group, numbers_in
from openmsmq.sim.enterprise.enterprise import PUBLIC_QUEUES
from openmsmq.sim.scenarios.scenario import (
    ADMIN,
    CLOSED,
    CLOSED_TRANSACTIONAL,
    PLAIN,
    SECOND,
    SMALL,
    SMALL_QUOTA_KB,
    TRANSACTIONAL,
)
from openmsmq.sim.violation import Violation

if TYPE_CHECKING:
    from openmsmq.sim.node import Node
    from openmsmq.sim.world import World

_BACK_AFTER_MS: Final = 500
_RETRY_MS: Final = 1_000
_DRAIN_COUNT: Final = 50
_SHORT_MS: Final = 20


class Ask(msgspec.Struct, frozen=True, eq=False):
    """A call; `before` runs at the moment it is handed in."""

    request: api.AnyRequest
    before: Callable[[], None] = lambda: None


Script: TypeAlias = Generator[Ask | int, Any, None]
"""Yields calls, and pauses in milliseconds."""


class Party(Protocol):
    """Something that works during a run, beside queue managers."""

    node: Node
    name: str
    done: bool

    @property
    def connected(self) -> bool:
        """Whether it is connected just now."""

    def begin(self) -> None:
        """Start to work, if that is possible now."""

    def hurry(self) -> None:
        """Make no more long pauses: the faults are over."""

    def leave(self) -> None:
        """Be gone without a word, and come back after a while."""

    def node_is_back(self) -> None:
        """Its node has started again."""


class Application(abc.ABC):
    """Something that is connected to a node and makes one call after the other."""

    def __init__(self, world: World, node: Node, name: str = "") -> None:
        self.world = world
        self.books = world.books
        self.node = node
        self.name = f"{node.name}.{name or type(self).__name__.lower()}"
        self.done = False
        self.rng = random.Random(world.rng.getrandbits(64))
        self.group: Group | None = None
        """What it is about to make take effect."""
        self.errand: Errand | None = None
        self.handles: dict[tuple[str, int], api.Opened] = {}
        self._pause_max_ms = _SHORT_MS
        self._connection: int | None = None
        self._script: Script | None = None
        self._call = 0
        self._waiting = False
        self._generation = 0

    @property
    def connected(self) -> bool:
        """Whether it is connected just now."""
        return self._connection is not None

    @abc.abstractmethod
    def script(self) -> Script:
        """What it does; begins again after each loss of the connection."""

    def hurry(self) -> None:
        """Make no more long pauses: the faults are over."""
        self._pause_max_ms = _SHORT_MS

    # Connection.

    def begin(self) -> None:
        """Connect, if the node is there."""
        if self.node.up and not self.done and not self.connected:
            self._connection = self.node.connect(self)
            self.handles = {}
            self._script = self.script()
            self._advance(None)

    def node_is_back(self) -> None:
        """The node has started again: connect after a while."""
        self._later(self.rng.randrange(1, _BACK_AFTER_MS), self.begin)

    def leave(self) -> None:
        """Drop the connection without a word, and come back after a while."""
        connection = self._connection
        if connection is not None:
            self.world.trace.note(self.node.index, "fault", f"{self.name} is gone")
            self.cut_off()
            self.node.disconnect(connection)
            self.node_is_back()

    def cut_off(self) -> None:
        """The connection is gone; what was begun may have happened."""
        self._generation += 1
        self._connection = None
        self._waiting = False
        if self._script is not None:
            self._script.close()
            self._script = None
        if self.errand is not None:
            self.books.errand_ends(self.errand, self.node, unknown=True)
            self.errand = None
        group, self.group = self.group, None
        if group is not None:
            self.lost(group)

    def lost(self, group: Group) -> None:
        """The connection was lost while a group was being made."""
        if group.fate is Fate.STAGED:
            self.books.failed(group)
        elif group.fate is Fate.UNDER_WAY:
            self.books.unknown(group)

    # Calls.

    def answered(self, call: int, reply: api.AnyReply) -> None:
        """A call has its answer."""
        if not self._waiting or call != self._call:
            raise Violation(f"{self.node.name} answered a call of {self.name} twice")
        self._waiting = False
        trace = self.world.trace
        if trace.wanted:
            text = f"{self.name}: {_shown(reply)}"
            trace.note(self.node.index, "answer", text, _messages_in(reply))
        self._advance(reply)

    def _advance(self, value: api.AnyReply | None) -> None:
        assert self._script is not None, f"{self.name} has no script"
        try:
            step = self._script.send(value)
        except StopIteration:
            self._finish()
            return
        if isinstance(step, int):
            self._later(step, self._go_on)
        else:
            self._later(self.rng.choice((0, 0, 1, 3)), self._hand_in, step)

    def _go_on(self) -> None:
        self._advance(None)

    def _hand_in(self, ask: Ask) -> None:
        assert self._connection is not None, f"{self.name} is not connected"
        ask.before()
        self._call += 1
        self._waiting = True
        trace = self.world.trace
        if trace.wanted:
            numbers = () if self.group is None else tuple(m.number for m in self.group.messages)
            text = f"{self.name}: {_shown(ask.request)}"
            trace.note(self.node.index, "call", text, numbers)
        self.node.request(self._connection, self._call, ask.request)

    def _finish(self) -> None:
        self.done = True
        self._script = None
        connection, self._connection = self._connection, None
        self._generation += 1
        if connection is not None:
            self.world.timeline.after(0, self.node.disconnect, connection)

    def _later(self, delay_ms: int, action: Callable[..., None], *arguments: Any) -> None:
        self.world.timeline.after(delay_ms, self._if_same, self._generation, action, arguments)

    def _if_same(
        self, generation: int, action: Callable[..., None], arguments: tuple[Any, ...]
    ) -> None:
        if generation == self._generation:
            action(*arguments)

    # Common steps.

    def opened(self, name: str, access: AccessMode) -> Generator[Ask, Any, api.Opened | None]:
        """Open a queue, once for each connection; None when that is refused."""
        found = self.handles.get((name, access))
        if found is None:
            reply = yield Ask(api.OpenQueue(name, int(access)))
            if not isinstance(reply, api.Opened):
                return None
            found = self.handles[name, access] = reply
        return found

    def receive(
        self, queue: str, count: int, timeout_ms: int
    ) -> Generator[Ask, Any, list[api.Entry]]:
        """Receive messages outside of transactions."""
        opened = yield from self.opened(queue, AccessMode.RECEIVE)
        if opened is None:
            return []

        def begun() -> None:
            self.errand = self.books.errand(self.node, queue, READING)

        reply = yield Ask(api.Receive(opened.handle, count, timeout_ms), begun)
        if self.errand is not None:
            self.books.errand_ends(self.errand, self.node, unknown=outcome_unknown(reply))
            self.errand = None
        if not isinstance(reply, api.Entries):
            return []
        self.books.given(self.node, queue, reply.entries, None)
        return reply.entries


class Founder(Application):
    """Creates the queues of a node before anything else happens."""

    def script(self) -> Script:
        """Create them."""
        journaling = self.world.scenario.wishes.journaling
        requests = [
            api.CreateQueue(PLAIN, journaling=journaling),
            api.CreateQueue(TRANSACTIONAL, transactional=True, journaling=journaling),
            api.CreateQueue(ADMIN),
            api.CreateQueue(SMALL, quota_kb=SMALL_QUOTA_KB),
        ]
        if self.world.scenario.two_queues:
            requests.append(api.CreateQueue(SECOND, transactional=True, journaling=journaling))
        if self.world.adversary is not None:
            requests += [
                api.CreateQueue(CLOSED, authentication_required=True),
                api.CreateQueue(
                    CLOSED_TRANSACTIONAL, transactional=True, authentication_required=True
                ),
            ]
        for request in requests:
            reply = yield Ask(request)
            if not isinstance(reply, api.Queues):
                raise Violation(f"{self.node.name} did not create {request.path}: {reply}")


class Drain(Application):
    """Receives everything that is left, at the end."""

    def script(self) -> Script:
        """Receive until nothing comes."""
        others: tuple[str, ...] = () if self.world.enterprise is None else PUBLIC_QUEUES
        if self.world.scenario.two_queues:
            others += (SECOND,)
        for queue in (PLAIN, TRANSACTIONAL, SMALL, *others):
            while (yield from self.receive(queue, _DRAIN_COUNT, 0)):
                pass


class Sweeper(Drain):
    """Receives everything that comes, until it is told to stop."""

    def __init__(self, world: World, node: Node) -> None:
        super().__init__(world, node)
        self._goes_on = True

    def stop(self) -> None:
        """Let it come to its end."""
        self._goes_on = False

    def script(self) -> Script:
        """Receive, and wait a little."""
        while self._goes_on:
            yield from super().script()
            yield _RETRY_MS


def outcome_unknown(reply: api.AnyReply) -> bool:
    """Whether an answer says that nobody knows what happened."""
    return isinstance(reply, api.Failed) and reply.code == MessageStorageFailed.code


def _messages_in(reply: api.AnyReply) -> tuple[int, ...]:
    if not isinstance(reply, api.Entries):
        return ()
    return tuple(number for entry in reply.entries for number in numbers_in(entry.packet))


def _shown(value: object) -> str:
    match value:
        case api.Send(handle, packets, transaction):
            inside = f" in transaction {transaction}" if transaction else ""
            return f"Send {len(packets)} to handle {handle}{inside}"
        case api.Entries(entries):
            return f"Entries {len(entries)}"
        case api.Queues():
            return "Queues"
        case api.CreateQueue(path):
            return f"CreateQueue {path}"
        case api.Begun(transaction):
            return f"Begun {transaction}"
        case api.Opened(handle, path_name):
            return f"Opened {handle} {path_name}"
        case api.OpenQueue(name, access):
            return f"OpenQueue {name} for {AccessMode(access).name}"
        case api.Receive(handle, count, timeout_ms):
            inside = f" in transaction {value.transaction}" if value.transaction else ""
            return f"Receive {count} from handle {handle} within {timeout_ms} ms{inside}"
        case api.Failed(code, detail):
            return f"Failed {error_for(code).__name__}: {detail}"
        case _:
            return str(value)
