"""The door of a node for remote readers: what a process has between its sockets and its clerks.

Bytes go through the code of production, `openmsmq.remote.conversation` and what is below it. The
door plays the connections, the clocks and the turns, and loses everything when the power fails.
"""

from __future__ import annotations

import random
import traceback
from typing import TYPE_CHECKING, Any, Final

from openmsmq.api.messages import AnyReply, AnyRequest, Failed
from openmsmq.model.clock import Instant
from openmsmq.protocol.rpc.association import Association
from openmsmq.protocol.rpc.groups import Groups
from openmsmq.protocol.rpc.states import Door, InterfaceFacts, Proved, Refused
from openmsmq.remote.clerks import Clerk, Desk
from openmsmq.remote.conversation import Conversation
from openmsmq.remote.remote_read import RemoteRead
from openmsmq.remote.services import Service
from openmsmq.security.access.callers import UNLIMITED, Caller
from openmsmq.sim.remote.proofs import Examiner, minimum_of
from openmsmq.sim.violation import Violation
from openmsmq.wire.rpc import remote_read as rpc
from openmsmq.wire.rpc.syntaxes import Syntax

if TYPE_CHECKING:
    from collections.abc import Callable

    from openmsmq.sim.node import Node

PORT: Final = 2103
INTERFACE: Final = Syntax(rpc.INTERFACE, *rpc.VERSION)
_FIRST_SESSION: Final = 1 << 32
"""Sessions of the node itself have smaller numbers."""


class RemoteDoor:
    """The door of one node, from one of its starts to the next."""

    is_watched: Final = False

    def __init__(self, node: Node, rng: random.Random) -> None:
        self._node = node
        self._network = node.world.network
        self._rng = rng
        remote = node.world.scenario.remote
        self._proof = None if remote is None else remote.proof
        self.index = node.index
        self.name = f"{node.name}:{PORT}"
        self.address = address_at(node.address)
        self.clock = node.clock
        self._last_session = _FIRST_SESSION
        self._lines: dict[int, _Line] = {}
        self.groups = Groups()
        self.desk = self._new_desk()

    def _new_desk(self) -> Desk:
        service = Service(
            INTERFACE,
            InterfaceFacts(max(rpc.Operation) + 1),
            "",
            lambda _: RemoteRead(lambda: self._rng.randbytes(16), PORT),
        )
        return Desk({INTERFACE: service}, self._open_counter)

    def _open_counter(self, clerk: Clerk, caller: Caller, peer: str) -> NodeCounter:
        del caller, peer
        return NodeCounter(clerk, self._node)

    def power_lost(self) -> None:
        """Forget everything."""
        for line in self._lines.values():
            self._forgotten(line)
        self._lines.clear()
        self.groups = Groups()
        self.desk = self._new_desk()

    def kept_count(self) -> int:
        """How much is kept for readers that are connected, and have nothing open any more."""
        count = 0
        for clerk in self.desk.clerks:
            assert isinstance(clerk.interface, RemoteRead)
            count += clerk.waiting_count + clerk.interface.kept_count
        return count

    def is_idle(self) -> bool:
        """Whether nothing is kept for anybody."""
        return not (self._lines or len(self.groups) or len(self.desk))

    # As the network sees it.

    @property
    def up(self) -> bool:
        """Whether anybody answers."""
        return self._node.up

    @property
    def boot(self) -> int:
        """How often its node was started."""
        return self._node.boot

    def later(self, delay_ms: int, action: Callable[..., None], *arguments: Any) -> None:
        """Let something happen, if the node has not lost power until then."""
        self._node.later(delay_ms, action, *arguments)

    def accept(self, address: str, proven: str = "") -> int:
        """Take a connection."""
        del proven
        self._last_session += 1
        self._lines[self._last_session] = _Line(self, self._last_session, address)
        return self._last_session

    def input(self, name: str, session: int, *arguments: Any, **_: Any) -> None:
        """Hear what happens to a connection."""
        line = self._lines.get(session)
        if line is None:
            return
        if name == "session_data":
            line.conversation.received(arguments[0])
        else:
            self._lost(session)

    def datagram(self, address: str, port: int, data: bytes, *, is_answer: bool) -> None:
        """Nobody sends any here."""

    # What lines do.

    def facts(self) -> Door:
        """Return what all connections have in common."""
        facts = InterfaceFacts(max(rpc.Operation) + 1, minimum_of(self._proof))
        return Door(PORT, {INTERFACE: facts})

    def examiner(self) -> Examiner:
        """Return what finds out who calls."""
        return Examiner(self._rng)

    def write(self, session: int, data: bytes) -> None:
        """Send bytes."""
        self._network.send(self, session, data)

    def end(self, session: int) -> None:
        """Close a connection when what is written has left."""
        self.later(0, self._end, session)

    def _end(self, session: int) -> None:
        if session in self._lines:
            self._network.disconnect(self, session)
            self._lost(session)

    def _lost(self, session: int) -> None:
        line = self._lines.pop(session)
        self._forgotten(line)
        line.conversation.lost(self.groups)

    def is_doubtful(self, address: str) -> bool:
        """Whether connections from an address may be refused."""
        remote = self._node.world.books.remote
        return remote is not None and address in remote.spoilt

    def _forgotten(self, line: _Line) -> None:
        """From now on others may have what the readers of a connection had."""
        books = self._node.world.books
        assert books.remote is not None
        group = line.conversation.association.group
        books.remote.line_lost((self._node.index, self._node.boot, group))


class _Line:
    """One connection of a reader, as the door has it."""

    def __init__(self, door: RemoteDoor, session: int, peer: str) -> None:
        self.peer = peer
        self._door = door
        self._session = session
        facts, examiner = door.facts(), door.examiner()
        association = Association(facts, door.groups, session, UNLIMITED, examiner.begin)
        self.conversation = Conversation(association, session, door.desk, self)

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._door.write(self._session, data)

    def proved(self, proved: Proved) -> None:
        """Somebody comes in, who can only be the reader at this address."""
        if proved.caller.name != self.peer:
            raise Violation(f"{self.peer} has proved to be {proved.caller.name}")

    def refused(self, refused: Refused) -> None:
        """Somebody does not come in, who has said to be somebody else."""
        if not self._is_doubtful:
            raise Violation(f"{self.peer} was refused: {refused.sentence}")

    def closed(self, sentence: str) -> None:
        """End it: a reader may name a group that is gone, and does nothing else that is wrong."""
        if self.conversation.association.group and not self._is_doubtful:
            raise Violation(f"{self._door.name} ends the connection of {self.peer}: {sentence}")
        self._door.end(self._session)

    @property
    def _is_doubtful(self) -> bool:
        """Whether somebody from this address says to be somebody else, or is changed on the way."""
        return self._door.is_doubtful(self.peer)

    def cut(self, reason: str) -> None:
        """No reader here does anything for which it may not stay."""
        raise Violation(f"{self._door.name} cuts the connection of {self.peer}: {reason}")

    def settled(self) -> None:
        """Nobody counts bytes here."""

    def note_defect(self, error: Exception) -> None:
        """Tell of a mistake."""
        if isinstance(error, Violation):
            raise error
        trace = "".join(traceback.format_exception(error))
        sentence = f"{self._door.name} raised {type(error).__name__}: {error}"
        raise Violation(sentence, detail=trace) from error


class NodeCounter:
    """The connection of one clerk to the queue manager of its node."""

    def __init__(self, clerk: Clerk, node: Node) -> None:
        self._clerk = clerk
        self._node = node
        self._connection = 0
        self._answers: list[tuple[int, AnyReply]] = []
        self._is_deferred = False
        self._timer = 0
        self._due_ms: int | None = None

    # What its clerk wants.

    @property
    def now(self) -> Instant:
        """Read the clocks of the node."""
        return self._node.clock.now()

    def ask(self, number: int, request: AnyRequest) -> Failed | None:
        """Hand a request in."""
        if not self._connection:
            self._connection = self._node.connect(self)
        self._node.request(self._connection, number, request)
        return None

    def defer(self) -> None:
        """Let the clerk go on behind the next turn."""
        if not self._is_deferred:
            self._is_deferred = True
            self._node.later(self._node.habits.turn_ms + 1, self._go_on)

    def wake_at(self, due_ms: int | None) -> None:
        """Set its timer."""
        if due_ms == self._due_ms:
            return
        self._due_ms = due_ms
        self._timer += 1
        if due_ms is not None:
            self._node.later(self._node.clock.delay_ms(due_ms), self._wake, self._timer)

    def leave(self) -> None:
        """End its connection to the queue manager."""
        self._timer += 1
        if self._connection:
            self._node.disconnect(self._connection)

    # What the node calls.

    def answered(self, call: int, reply: AnyReply) -> None:
        """Take an answer, and pass it on when the turn is over."""
        self._answers.append((call, reply))
        if len(self._answers) == 1:
            self._node.later(0, self._deliver)

    def cut_off(self) -> None:
        """The node has lost power, and its door with it."""

    def _deliver(self) -> None:
        answers, self._answers = self._answers, []
        self._clerk.answered(answers)

    def _go_on(self) -> None:
        self._is_deferred = False
        if not self._clerk.is_over:
            self._clerk.go_on()

    def _wake(self, timer: int) -> None:
        if timer == self._timer:
            self._due_ms = None
            self._clerk.wake()


def address_at(address: str) -> str:
    """Return where the door of a node is found."""
    return f"{address}:{PORT}"
