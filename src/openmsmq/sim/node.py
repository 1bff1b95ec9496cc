"""A node: one queue manager, its disk, its clocks, and the driver that carries out its outputs.

It does what `openmsmq.runtime.server` does in a process: inputs of the same moment share a turn,
a turn is carried out until nothing is left, and a timer is set. Unlike a process it can lose power
between any two outputs.
"""

from __future__ import annotations

import contextlib
import random
import traceback
from typing import TYPE_CHECKING, Any, Final, Protocol

from openmsmq.api.messages import AnyReply, AnyRequest
from openmsmq.manager.config import ManagerConfig
from openmsmq.manager.manager import QueueManager
from openmsmq.manager.notices import Notice
from openmsmq.manager.outputs import (
    AskDirectory,
    ChangeDirectory,
    Connect,
    Disconnect,
    EndConnection,
    Output,
    Persist,
    Resolve,
    Respond,
    SendBytes,
    SendDatagram,
)
from openmsmq.model.directory import NOWHERE, Change, Position
from openmsmq.model.errors import (
    InsufficientResources,
    MessageStorageFailed,
    MsmqError,
    NoDirectory,
)
from openmsmq.model.identity import Guid
from openmsmq.protocol.posts import OutgoingPost, PostAnswer
from openmsmq.sim.checks import entry_watch
from openmsmq.sim.clock import Clock
from openmsmq.sim.disk import Disk
from openmsmq.sim.violation import Violation
from openmsmq.storage import records
from openmsmq.storage.port import Batch
from openmsmq.storage.records import MachineRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from openmsmq.sim.remote.door import RemoteDoor
    from openmsmq.sim.scenarios.scenario import NodeHabits
    from openmsmq.sim.world import World

ROUNDS_MAX_COUNT: Final = 200
"""More rounds than any turn needs: who wants more is running in circles."""

WAKES_PER_SECOND_MAX_COUNT: Final = 1000
"""More wakes than any second needs."""


class Asker(Protocol):
    """What has a connection to a queue manager."""

    def answered(self, call: int, reply: AnyReply) -> None:
        """A call has its answer."""

    def cut_off(self) -> None:
        """The connection is gone."""


class Node:
    """One computer with a queue manager."""

    is_watched: Final = True
    """Whether what it sends must be what MSMQ allows."""

    def __init__(
        self,
        world: World,
        index: int,
        config: ManagerConfig,
        identifier: Guid,
        address: str,
        habits: NodeHabits,
    ) -> None:
        self.world = world
        self.index = index
        self.name = config.name
        self.address = address
        self.config = config
        self.habits = habits
        self.disk = Disk()
        # Others have to know it by its identifier before it starts for the first time.
        machine = records.encode_record(MachineRecord(identifier, config.name))
        self.disk.store.commit(Batch([(records.MACHINE_KEY, machine)]))
        self.clock = Clock(world.timeline, habits.wall_error_s)
        self.identifier = identifier
        self.boot = 0
        """How often it was started; what was meant for an earlier start is dropped."""
        self.manager: QueueManager | None = None
        self.power_left: int | None = None
        """After so many outputs the power fails."""
        self.knows_directory = False
        """Whether it has ever been told what is in the directory."""
        self.told_number = 0
        """The change of the directory of which it was told last."""
        self._rng = random.Random(world.rng.getrandbits(64))
        self.door: RemoteDoor | None = None
        """Where readers on other computers come in, if there are any."""
        self._callers: dict[int, Asker] = {}
        self._last_connection = 0
        self._last_session = 0
        self._turn_due = False
        self._timer_ms: int | None = None
        self._wakes = (0, 0)

    @property
    def up(self) -> bool:
        """Whether its queue manager runs."""
        return self.manager is not None

    # Life.

    def start(self) -> None:
        """Begin with what the disk has."""
        assert self.manager is None, f"{self.name} runs already"
        self.boot += 1
        self.clock.restart(self._rng.randrange(1, 10_000_000))
        self.power_left = None
        self._last_session = 0
        self._turn_due = False
        self._timer_ms = None
        self.world.trace.note(self.index, "start", f"start {self.boot}")
        rng = random.Random(self._rng.getrandbits(64))
        with self._answerable():
            self.manager = QueueManager(self.config, rng, self.disk.store, self.clock.now())
        self._turn()

    def crash(self, *, reached: bool) -> None:
        """Lose power; with `reached` the batch just being written is found at the next start."""
        if self.manager is None:
            return
        self.manager = None
        world = self.world
        late = self.disk.lose_power(reached=reached)
        if late is not None:
            world.books.disks.stored(self, late)
        world.trace.note(
            self.index, "crash", "power lost" + (", last batch kept" if late is not None else "")
        )
        world.books.disks.crashed(self)
        world.network.node_gone(self)
        if self.door is not None:
            self.door.power_lost()
        world.posts.node_gone(self)
        callers, self._callers = self._callers, {}
        for caller in callers.values():
            caller.cut_off()

    def later(self, delay_ms: int, action: Callable[..., None], *arguments: Any) -> None:
        """Let something happen on this node, if it has not lost power until then."""
        self.world.timeline.after(delay_ms, self._if_same, self.boot, action, arguments)

    def _if_same(self, boot: int, action: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        if self.manager is not None and self.boot == boot:
            action(*arguments)

    # Inputs.

    def connect(self, caller: Asker) -> int:
        """Let an application in."""
        assert self.manager is not None, f"{self.name} is down"
        self._last_connection += 1
        self._callers[self._last_connection] = caller
        self.manager.connected(self._last_connection)
        return self._last_connection

    def disconnect(self, connection: int) -> None:
        """An application has gone."""
        if self._callers.pop(connection, None) is not None:
            self.input("connection_lost", connection, self.clock.now())

    def request(self, connection: int, call: int, request: AnyRequest) -> None:
        """Hand a request in."""
        self.input("request", connection, call, request, self.clock.now())

    def accept(self, address: str, proven: str = "") -> int:
        """Take a connection of another node; gives its session number, always an even one.

        `proven` is the rule of which that one has shown the certificate.
        """
        self._last_session += 2
        session = self._last_session
        self.input("session_accepted", session, address, self.clock.now(), peer=proven)
        return session

    def datagram(self, address: str, port: int, data: bytes, *, is_answer: bool) -> None:
        """Hand a datagram in, with the port that it came from."""
        now = self.clock.now()
        self.input("datagram_received", address, port, data, now, is_answer=is_answer)

    def input(self, name: str, *arguments: Any, **options: Any) -> None:
        """Hand something to the queue manager; its turn comes after what is due now."""
        with self._answerable():
            getattr(self.manager, name)(*arguments, **options)
        if not self._turn_due:
            self._turn_due = True
            self.later(self.habits.turn_ms, self._turn)

    def _wake(self, at_ms: int) -> None:
        if at_ms != self._timer_ms:
            return
        self._timer_ms = None
        second, count = self._wakes
        this_second = self.world.timeline.now_ms // 1000
        self._wakes = (this_second, count + 1 if second == this_second else 1)
        if self._wakes[1] > WAKES_PER_SECOND_MAX_COUNT:
            raise Violation(f"{self.name} asks to be woken again and again within one second")
        assert self.manager is not None, f"{self.name} is down"
        with self._answerable():
            self.manager.wake(self.clock.now())
        self._turn()

    # The turn.

    def _turn(self) -> None:
        self._turn_due = False
        manager = self.manager
        for _ in range(ROUNDS_MAX_COUNT):
            if manager is None or self.manager is not manager:
                return
            with self._answerable():
                outputs = manager.take_outputs()
            if not outputs:
                self._arm_timer(manager)
                return
            for output in outputs:
                if self.power_left is not None:
                    if self.power_left == 0:
                        self.world.power_fails(self)
                        return
                    self.power_left -= 1
                self._carry_out(output)
                if self.manager is not manager:
                    return
        raise Violation(f"{self.name} never comes to rest")

    def _carry_out(self, output: Output) -> None:
        network = self.world.network
        match output:
            case Respond(connection, call, reply):
                self._respond(connection, call, reply)
            case Persist(ticket, batch):
                self._persist(ticket, batch)
            case SendBytes(session, data):
                network.send(self, session, data)
            case Connect(session, address):
                network.connect(self, session, address)
            case Disconnect(session):
                network.disconnect(self, session)
            case Resolve(host):
                network.resolve(self, host)
            case SendDatagram(address, data, port):
                network.send_datagram(self, address, data, port)
            case _:
                self._carry_out_rarer(output)

    def _carry_out_rarer(self, output: Output) -> None:
        match output:
            case OutgoingPost():
                self.world.posts.post(self, output)
            case PostAnswer():
                self.world.posts.answer(self, output)
            case Notice():
                self.world.books.told(self, output)
            case EndConnection(connection):
                self.later(0, self.disconnect, connection)
            case ChangeDirectory(ticket, changes):
                self._change_directory(ticket, changes)
            case AskDirectory(position):
                self.later(self.world.network.delay_ms(), self._directory_answers, position)
            case _:
                what = type(output).__name__
                raise Violation(f"{self.name} wants a {what}, and nobody had asked for it")

    def _directory_answers(self, position: Position) -> None:
        """Tell what the directory has; it may be away, but not when a copy has nothing yet."""
        enterprise, now = self.world.enterprise, self.clock.now()
        assert enterprise is not None, "there is no directory"
        away = position != NOWHERE and not self.world.calm and self._rng.random() < 0.3
        if away:
            self.input("directory_failed", NoDirectory("the simulated directory is away"), now)
        else:
            self.knows_directory = True
            self.told_number = enterprise.number
            self.input("directory_told", enterprise.told(position), now)

    def _change_directory(self, ticket: int, changes: Sequence[Change]) -> None:
        """Change the directory, if it is not away; the answer takes its time."""
        enterprise = self.world.enterprise
        if enterprise is None or not enterprise.is_administered:
            raise Violation(f"{self.name} changes the directory, and nobody had asked for it")
        enterprise.is_administered = False
        error: MsmqError | None = None
        if not self.world.calm and self._rng.random() < 0.3:
            error = NoDirectory("the simulated directory is away")
        else:
            with self._answerable():
                enterprise.change(changes)
        self.later(self.world.network.delay_ms(), self._directory_changed, ticket, changes, error)

    def _directory_changed(
        self, ticket: int, changes: Sequence[Change], error: MsmqError | None
    ) -> None:
        now = self.clock.now()
        if error is None:
            self.input("directory_changed", ticket, changes, now)
        else:
            self.input("directory_refused", ticket, error, now)

    def _respond(self, connection: int, call: int, reply: AnyReply) -> None:
        caller = self._callers.get(connection)
        if caller is not None:
            caller.answered(call, reply)

    def _persist(self, ticket: int, batch: Batch) -> None:
        assert self.disk.writing is None, "two batches on their way to the disk"
        self._check_entries()
        self.disk.writing = batch
        delay_ms = self._flush_ms()
        trace = self.world.trace
        if trace.wanted:
            trace.persist(self.index, ticket, batch, delay_ms)
        if delay_ms:
            self.later(delay_ms, self._flushed_later, ticket)
        else:
            self._flushed(ticket)

    def _flush_ms(self) -> int:
        habits = self.habits
        if self.disk.slow_until_ms > self.world.timeline.now_ms:
            return self._rng.randrange(200, 3000)
        if habits.flush_max_ms == 0:
            return 0
        return self._rng.randrange(0, habits.flush_max_ms + 1)

    def _flushed_later(self, ticket: int) -> None:
        self._flushed(ticket)
        if self.manager is not None:
            self._turn()

    def _flushed(self, ticket: int) -> None:
        disk, world, manager = self.disk, self.world, self.manager
        assert manager is not None, f"{self.name} is down"
        now = self.clock.now()
        with self._answerable():
            if disk.fails_next:
                self._disk_fails(manager, ticket)
            elif disk.full_until_ms > world.timeline.now_ms:
                disk.refuse()
                world.books.disks.refused(self)
                world.trace.note(self.index, "full", f"batch {ticket} refused, the disk is full")
                error = InsufficientResources("the simulated disk is full")
                manager.persist_failed(ticket, error, now)
            else:
                world.books.disks.stored(self, disk.write())
                manager.persisted(ticket, now)
            self._check_entries()

    def _disk_fails(self, manager: QueueManager, ticket: int) -> None:
        """Fail as a disk does: answers that are due say so, then the process ends.

        The batch may be on the disk all the same. Only the next start sees it: a store shows a
        running process nothing of a batch that it has refused.
        """
        reached = self._rng.random() < 0.5
        world = self.world
        world.trace.note(self.index, "full", f"batch {ticket}: the disk fails")
        error = MessageStorageFailed("the simulated disk has failed")
        manager.persist_failed(ticket, error, self.clock.now())
        for output in manager.take_outputs():
            if isinstance(output, Respond):
                self._respond(output.connection, output.call, output.reply)
        if reached:
            world.books.disks.stored(self, self.disk.write())
        else:
            self.disk.refuse()
        world.power_fails(self)

    def _check_entries(self) -> None:
        """Compare what the queue manager believes of its entries with what the store has."""
        if self.manager is not None:
            entry_watch.check(self.name, self.manager.queues, self.disk.store)

    def _arm_timer(self, manager: QueueManager) -> None:
        """Wake in time. A timer that is early stays: waking for nothing is harmless."""
        due_ms = manager.next_wake_ms(self.clock.now())
        if due_ms is None:
            return
        delay_ms = self.clock.delay_ms(due_ms)
        at_ms = self.world.timeline.now_ms + delay_ms
        if self._timer_ms is None or at_ms < self._timer_ms:
            self._timer_ms = at_ms
            self.later(delay_ms, self._wake, at_ms)

    @contextlib.contextmanager
    def _answerable(self) -> Iterator[None]:
        """Make what a queue manager raises a violation: it must never raise anything."""
        try:
            yield
        except Violation:
            raise
        except Exception as error:
            trace = "".join(traceback.format_exception(error))
            raise Violation(
                f"{self.name} raised {type(error).__name__}: {error}", detail=trace
            ) from error
