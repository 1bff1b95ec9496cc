"""A computer that is primary or standby: the machines of the product, and what drives them.

Its store is a list of records, and a record is a list of operations. It does what
`openmsmq.runtime.replication` does in a process: what comes while a record is on its way goes into
the next one, and nothing is said that the tenure does not allow. It can be killed, stopped and
woken, cut off from the log, and lose its disk.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from openmsmq.protocol.replication.follower import Follower
from openmsmq.protocol.replication.log import (
    Answer,
    Append,
    Apply,
    Ask,
    Durable,
    Ended,
    LeaseTimes,
    Promoted,
    Request,
    Trim,
)
from openmsmq.protocol.replication.tenure import Tenure
from openmsmq.sim.violation import Violation

if TYPE_CHECKING:
    from openmsmq.sim.replication.world import ReplicationWorld

ANSWER_TIMEOUT_MS: Final = 1200
"""A request to the log without an answer has failed after so long."""

CATCH_UP_MAX_MS: Final = 30
"""What others were told of goes to the disk within so long."""

Operation = str
Told = Callable[[bool], None]


def encode_record(operations: list[Operation]) -> bytes:
    """Make a record of operations."""
    return ",".join(operations).encode()


def decode_record(record: bytes) -> list[Operation]:
    """Return the operations of a record."""
    return record.decode().split(",")


class Member:
    """One computer."""

    def __init__(self, world: ReplicationWorld, name: str, times: LeaseTimes) -> None:
        self.name = name
        self.times = times
        self.stored: list[bytes] = []
        self.is_up = False
        self.has_lost_disk = False
        """Whether it ever did: what it said before that it has may be believed still."""
        self.is_cut = False
        """Whether it is cut off from the log."""
        self.follower: Follower | None = None
        self.tenure: Tenure | None = None
        self._world = world
        self._rng = random.Random(world.rng.getrandbits(64))
        self._boot = 0
        self._stopped_until_ms = 0
        self._ticks_offset_ms = self._rng.randrange(1, 10_000_000)
        self._ticks_rate = 1 + self._rng.uniform(-0.005, 0.005)
        self._known: dict[Operation, int] = {}
        self._waiting: list[tuple[Operation, Told]] = []
        self._writing: list[tuple[Operation, Told]] = []
        self._record = b""
        self._ahead: tuple[int, bytes] | None = None
        """The record that others were told of, and that the disk has not yet."""
        self._ticket = 0

    # Life.

    def start(self) -> None:
        """Begin with what the disk has."""
        assert not self.is_up, f"{self.name} runs already"
        self.is_up = True
        self._boot += 1
        self.tenure = None
        self._waiting, self._writing = [], []
        self._ticket = 0
        self._learn()
        holder = f"{self.name}-{self._boot}"
        number = len(self.stored)
        self.follower = Follower("log", self.name, holder, number, self.times, self._now_ms())
        self._run()

    def _learn(self) -> None:
        self._known = {}
        for number, record in enumerate(self.stored, 1):
            for operation in decode_record(record):
                self._known[operation] = number

    def kill(self) -> None:
        """End the process at once."""
        self.is_up = False
        self._boot += 1
        self.follower = self.tenure = None
        self._ahead = None

    def stop_until(self, at_ms: int) -> None:
        """Let the process stand still; what comes for it waits."""
        self._stopped_until_ms = max(self._stopped_until_ms, at_ms)

    def lose_disk(self, copy: list[bytes]) -> None:
        """Go on, one day, with a back-up."""
        assert not self.is_up, "the disk is in use"
        self.has_lost_disk = True
        self.stored = list(copy)
        self._world.log.followers.pop(self.name, None)

    def later(self, delay_ms: int, action: Callable[..., None], *facts: Any) -> None:
        """Let something happen in this process, or when it goes on after a stop."""
        self._world.timeline.after(max(1, delay_ms), self._if_same, self._boot, action, facts)

    def _if_same(self, boot: int, action: Callable[..., None], facts: tuple[Any, ...]) -> None:
        if not self.is_up or boot != self._boot:
            return
        stopped_ms = self._stopped_until_ms - self._world.timeline.now_ms
        if stopped_ms > 0:
            self._world.timeline.after(stopped_ms, self._if_same, boot, action, facts)
            return
        action(*facts)

    def _now_ms(self) -> int:
        return int(self._world.timeline.now_ms * self._ticks_rate) + self._ticks_offset_ms

    # What clients want.

    def take(self, operation: Operation, told: Told) -> None:
        """Carry out an operation once; `told` hears when it is durable."""
        tenure = self.tenure
        if tenure is None or tenure.is_over:
            told(False)
        elif operation in self._known:
            if tenure.may_answer(self._now_ms()):
                self._acknowledge(operation, told)
        elif operation not in [each for each, _ in self._waiting + self._writing]:
            self._waiting.append((operation, told))
            self._run()

    def look(self, prefix: str, told: Callable[[int], None]) -> None:
        """Say how many operations of a client there are, if that may be said."""
        tenure = self.tenure
        if tenure is not None and tenure.may_answer(self._now_ms()):
            told(sum(1 for operation in self._known if operation.startswith(prefix)))

    def _acknowledge(self, operation: Operation, told: Told) -> None:
        self._world.check_acknowledged(operation, self.name)
        told(True)

    # The machines.

    def _run(self) -> None:
        """Do what the machines want, until they have to wait."""
        for _ in range(1000):
            if not self.is_up:
                return
            outputs = self._take_outputs()
            if not outputs and not self._begin_turn():
                break
            for output in outputs:
                self._carry_out(output)
        else:
            raise Violation(f"{self.name} never comes to rest")
        machine = self.tenure or self.follower
        due_ms = None if machine is None else machine.next_wake_ms
        if due_ms is not None:
            self._ticket += 1
            self.later(due_ms - self._now_ms() + 1, self._wake, self._ticket)

    def _begin_turn(self) -> bool:
        """Append what came meanwhile, once what was appended before is stored."""
        tenure = self.tenure
        if tenure is None or tenure.is_over or tenure.is_writing or not self._waiting:
            return False
        self._writing, self._waiting = self._waiting, []
        self._record = encode_record([operation for operation, _ in self._writing])
        tenure.append(self._record, self._now_ms())
        return True

    def _take_outputs(self) -> list[Any]:
        if self.tenure is not None:
            return list(self.tenure.take_outputs())
        return [] if self.follower is None else list(self.follower.take_outputs())

    def _wake(self, ticket: int) -> None:
        machine = self.tenure or self.follower
        if ticket == self._ticket and machine is not None:
            machine.wake(self._now_ms())
            self._run()

    def _carry_out(self, output: object) -> None:
        match output:
            case Ask(request):
                self._ask(request)
            case Apply(records):
                for number, record in records:
                    self._store(number, record)
                    self._know(number, record)
            case Promoted():
                self._begin_tenure(output)
            case Durable(number):
                written, self._writing = self._writing, []
                self._catch_up()
                self._ahead = number, self._record
                self._know(number, self._record)
                for operation, told in written:
                    self._acknowledge(operation, told)
                self.later(self._rng.randrange(1, CATCH_UP_MAX_MS), self._catch_up)
            case Ended(why, is_damage):
                self._end(why if is_damage else "")
            case _:
                raise Violation(f"{self.name} wants {output!r}")

    def _begin_tenure(self, promoted: Promoted) -> None:
        now_ms = self._now_ms()
        self.tenure = Tenure(promoted, len(self.stored), self.times, now_ms)
        self.follower = None
        self._world.promoted(self.name)
        self.tenure.wake(now_ms)

    def _store(self, number: int, record: bytes) -> None:
        self._world.check_stored(self.name, number, record, len(self.stored))
        self.stored.append(record)

    def _catch_up(self) -> None:
        """Store what others were told of."""
        if self._ahead is not None:
            ahead, self._ahead = self._ahead, None
            self._store(*ahead)

    def _know(self, number: int, record: bytes) -> None:
        for operation in decode_record(record):
            if operation in self._known:
                raise Violation(f"{self.name} has {operation} twice")
            self._known[operation] = number

    def make_back_up(self) -> None:
        """Back up what is stored."""
        if self.tenure is not None and not self.tenure.is_over:
            self._catch_up()
            # One that is primary no more, and does not know, makes an older one.
            self._world.newest_back_up = max(self._world.newest_back_up, list(self.stored), key=len)
            self.tenure.backed_up(len(self.stored))

    def _end(self, damage: str) -> None:
        self.kill()
        if damage:
            self._world.damaged(self, damage)
        else:
            self._world.timeline.after(self._rng.randrange(50, 500), self._start_again)

    def _start_again(self) -> None:
        if not self.is_up:
            self.start()

    # The way to the log.

    def _ask(self, request: Request) -> None:
        if isinstance(request, Trim):
            self._catch_up()
        asked = [False]
        longer_ms = request.longer_ms if isinstance(request, Append) else 0
        self.later(ANSWER_TIMEOUT_MS + longer_ms, self._failed, asked)
        if self.is_cut or self._world.loses():
            return
        delay_ms = self._world.delay_ms()
        self._world.timeline.after(delay_ms, self._arrives, request, self._boot, asked)

    def _arrives(self, request: Request, boot: int, asked: list[bool]) -> None:
        def reply(answer: Answer) -> None:
            if not self.is_cut and not self._world.loses():
                delay_ms = self._world.delay_ms()
                self._world.timeline.after(
                    delay_ms, self._if_same, boot, self._answered, (answer, asked)
                )

        self._world.log.ask(request, reply)

    def _answered(self, answer: Answer, asked: list[bool]) -> None:
        machine = self.tenure or self.follower
        if asked[0] or machine is None:
            return
        asked[0] = True
        machine.answered(answer, self._now_ms())
        self._run()

    def _failed(self, asked: list[bool]) -> None:
        machine = self.tenure or self.follower
        if asked[0] or machine is None:
            return
        asked[0] = True
        machine.failed(self._now_ms())
        self._run()
