"""Who answers calls: one for each group, caller and interface, before a queue manager."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from openmsmq.api import messages as api
from openmsmq.model.clock import Instant
from openmsmq.model.errors import QueueNotFound, ServiceNotAvailable
from openmsmq.model.limits import RPC_READS_PER_TURN_MAX_COUNT
from openmsmq.protocol.rpc.states import CallArrived, InterfaceFacts
from openmsmq.remote.clerks import Clerk, Desk
from openmsmq.remote.ports import Ask, Output, Return, Throw
from openmsmq.remote.services import Service
from openmsmq.runtime.api.audit import AuditLog
from openmsmq.runtime.config.file import ServerConfig
from openmsmq.runtime.logs import EventLog
from openmsmq.runtime.rpc import desk
from openmsmq.runtime.rpc.desk import PumpCounter
from openmsmq.runtime.server import Pump
from openmsmq.runtime.service import Server
from openmsmq.security.access.callers import Caller, anonymous
from openmsmq.storage.memory import MemoryStore
from openmsmq.wire.rpc.pdus import Status
from openmsmq.wire.rpc.syntaxes import MANAGEMENT, Syntax

OTHER = Syntax.of("99999999-2222-3333-4444-555555555555", 1)
ALICE, BOB = anonymous("192.0.2.1"), anonymous("192.0.2.2")


class Opener:
    """Opens the queue that a call names, and says what came of it.

    5 waits, 6 reads; 9 is a mistake of ours, 8 one when such a call is cancelled, 7 one some time
    later.
    """

    def __init__(self) -> None:
        self._calls: dict[int, int] = {}
        self.cancels: list[int] = []
        self._fails_to_cancel = False
        self._wake_ms: int | None = None

    def called(self, call: int, operation: int, stub: bytes, now: Instant) -> list[Output]:
        if operation == 9:
            raise RuntimeError("a mistake")
        if operation == 7:
            self._wake_ms = now.ticks_ms
        self._fails_to_cancel = operation == 8
        if operation in (5, 7, 8):
            return []
        self._calls[call] = call
        if operation == 6:
            return [Ask(call, api.Receive(1))]
        return [Ask(call, api.OpenQueue(stub.decode(), 1, 0))]

    def answered(self, number: int, reply: api.AnyReply, now: Instant) -> list[Output]:
        del now
        if isinstance(reply, api.Failed):
            if reply.detail == "9":
                raise RuntimeError("a mistake")
            return [Throw(self._calls[number], reply.code)]
        return [Return(self._calls[number], type(reply).__name__.encode())]

    def cancelled(self, call: int, now: Instant) -> list[Output]:
        del now
        if self._fails_to_cancel:
            raise RuntimeError("a mistake")
        self.cancels.append(call)
        return [Throw(call, Status.CANCELLED)]

    @property
    def next_wake_ms(self) -> int | None:
        return self._wake_ms

    def wake(self, now: Instant) -> list[Output]:
        del now
        raise RuntimeError("a mistake")


class Line:
    """A connection from which calls come."""

    def __init__(self) -> None:
        self.peer = "192.0.2.1:1000"
        self.answers: list[tuple[int, bytes | int]] = []
        self.cut_for = ""
        self.defects: list[Exception] = []

    def returned(self, call: int, stub: bytes) -> None:
        self.answers.append((call, stub))

    def threw(self, call: int, status: int) -> None:
        self.answers.append((call, status))

    def cut(self, reason: str) -> None:
        self.cut_for = reason

    def note_defect(self, error: Exception) -> None:
        self.defects.append(error)


class Office:
    """A desk before a queue manager in memory."""

    def __init__(self, pump: Pump, kind: type[Opener] = Opener) -> None:
        self._kind = kind
        self.made: list[tuple[Caller, Opener]] = []
        self.pump = pump
        services = {
            each: Service(each, InterfaceFacts(10), "", self._make) for each in (MANAGEMENT, OTHER)
        }
        self.counters: list[PumpCounter] = []
        self.desk = Desk(services, self._counter)

    def _counter(self, clerk: Clerk, caller: Caller, peer: str) -> PumpCounter:
        counter = PumpCounter(clerk, caller, peer, self.pump, AuditLog(None))
        self.counters.append(counter)
        return counter

    def _make(self, caller: Caller) -> Opener:
        made = self._kind()
        self.made.append((caller, made))
        return made

    def call(
        self,
        line: Line,
        group: int = 1,
        caller: Caller = ALICE,
        *,
        call: int = 1,
        interface: Syntax = MANAGEMENT,
        operation: int = 0,
        stub: bytes = rb"private$\missing",
    ) -> Clerk:
        arrived = CallArrived(call, interface, operation, stub, caller)
        clerk = self.desk.call(line, group, arrived)
        assert clerk is not None
        return clerk


def at_work(
    act: Callable[[Office], object],
    then: Callable[[Office], None] = lambda _: None,
    kind: type[Opener] = Opener,
) -> None:
    """Do something at a desk, let the queue manager answer, and look."""

    async def work() -> None:
        config = ServerConfig(
            data="nowhere", api_port=0, api_tcp=True, api_socket="none", transfer=False
        )
        server = await Server.start(config, store=MemoryStore(), log=EventLog(level="error"))
        try:
            office = Office(server._pump, kind)  # noqa: SLF001 -- a whole server has the only real one
            act(office)
            for _ in range(20):
                await asyncio.sleep(0)
            then(office)
            office.desk.close()
        finally:
            server.stop()
            await server.finished()

    asyncio.run(work())


def test_a_call_is_asked_of_the_queue_manager_and_answered() -> None:
    line = Line()
    at_work(lambda office: office.call(line))
    assert line.answers == [(1, QueueNotFound.code)]


def test_groups_callers_and_interfaces_do_not_share_a_clerk() -> None:
    line = Line()

    def act(office: Office) -> None:
        office.call(line, 1, ALICE)
        office.call(line, 1, ALICE, call=2)
        office.call(line, 2, ALICE)
        office.call(line, 1, BOB)
        office.call(line, 1, ALICE, interface=OTHER)
        assert [caller for caller, _ in office.made] == [ALICE, ALICE, BOB, ALICE]

    at_work(act, lambda office: office.desk.end(1, ALICE))
    assert len(line.answers) == 5


def test_the_end_of_a_group_ends_its_clerks_and_no_others() -> None:
    line = Line()

    def act(office: Office) -> None:
        clerk = office.call(line)
        office.desk.end(1, BOB)
        office.desk.end(2, ALICE)
        assert (len(office.desk), clerk.is_over) == (1, False)
        office.desk.end(1, ALICE)
        assert (len(office.desk), clerk.is_over) == (0, True)

    at_work(act)
    assert line.answers == []


def test_a_lost_connection_cancels_what_it_waits_for_and_hears_nothing() -> None:
    line, other = Line(), Line()

    def act(office: Office) -> None:
        office.call(line, call=7, operation=5)
        office.call(other, call=7, operation=5).forget(line)
        assert office.made[0][1].cancels == [1]

    at_work(act)
    assert other.answers == []


def test_a_queue_manager_that_stops_refuses_through_the_interface() -> None:
    line = Line()

    def act(office: Office) -> None:
        office.pump.refusal = ServiceNotAvailable("it stops")
        office.call(line)

    at_work(act)
    assert line.answers == [(1, ServiceNotAvailable.code)]


def _calls(office: Office, line: Line) -> None:
    office.call(line, operation=9)


def _is_answered(office: Office, line: Line) -> None:
    office.call(line, operation=5).answered([(1, api.Failed(1, "9"))])


def _is_refused(office: Office, line: Line) -> None:
    office.pump.refusal = ServiceNotAvailable("9")
    office.call(line)
    office.pump.refusal = None


def _cancels(office: Office, line: Line) -> None:
    office.call(line, call=3, operation=8).cancel(line, 3)


def _is_lost(office: Office, line: Line) -> None:
    gone = Line()
    office.call(line, operation=5)
    office.call(gone, operation=8).forget(gone)


def _waits(office: Office, line: Line) -> None:
    office.call(line, operation=7)


@pytest.mark.parametrize("meet", [_calls, _is_answered, _is_refused, _cancels, _is_lost, _waits])
def test_a_mistake_of_ours_costs_the_caller_who_met_it(
    meet: Callable[[Office, Line], None],
) -> None:
    line, other = Line(), Line()

    def act(office: Office) -> None:
        meet(office, line)
        office.call(other, 2, BOB)

    at_work(act)
    assert len(line.defects) == 1
    assert line.cut_for
    assert (other.cut_for, other.answers) == ("", [(1, QueueNotFound.code)])


def test_a_caller_who_reads_very_much_at_once_gets_it_turn_by_turn_and_in_order() -> None:
    line = Line()
    count = 3 * RPC_READS_PER_TURN_MAX_COUNT

    def act(office: Office) -> None:
        for number in range(count):
            office.call(line, call=number, operation=6)
        office.call(line, call=count)
        # What the queue manager was asked for and has not answered yet.
        asked = office.counters[0]._asked  # noqa: SLF001
        assert list(asked.values()) == [api.Receive] * RPC_READS_PER_TURN_MAX_COUNT

    at_work(act)
    assert [call for call, _ in line.answers] == list(range(count + 1))


def test_an_operator_ends_the_connections_of_a_clerk_and_the_next_call_finds_another() -> None:
    line = Line()

    def act(office: Office) -> None:
        clerk = office.call(line, operation=5)
        clerk.cut("an operator wants it")
        office.call(line, call=2)
        assert len(office.made) == 2

    at_work(act)
    assert line.cut_for == "an operator wants it"
    assert line.answers == [(2, QueueNotFound.code)]


def test_an_interface_that_is_not_offered_is_unknown() -> None:
    line = Line()
    strange = Syntax.of("00000000-2222-3333-4444-555555555555", 1)
    arrived = CallArrived(1, strange, 0, b"", ALICE)
    at_work(lambda office: office.desk.call(line, 1, arrived))
    assert line.answers == [(1, Status.UNKNOWN_INTERFACE)]


class Sleeper(Opener):
    """An interface that is woken."""

    def __init__(self) -> None:
        super().__init__()
        self.woken_ms: list[int] = []

    def wake(self, now: Instant) -> list[Output]:
        self.woken_ms.append(now.ticks_ms)
        return []


class Loop:
    """The timers of a loop, and a clock that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ms = 0
        self.timers: list[tuple[int, Callable[[], None]]] = []
        self.cancelled_count = 0
        monkeypatch.setattr(desk, "read_clocks", lambda: Instant(self.now_ms, 0))
        monkeypatch.setattr(asyncio, "get_running_loop", lambda: self)

    def call_later(self, delay_s: float, act: Callable[[], None]) -> Loop:
        self.timers.append((self.now_ms + round(delay_s * 1000), act))
        return self

    def cancel(self) -> None:
        self.timers.clear()
        self.cancelled_count += 1

    def go_to(self, now_ms: int) -> None:
        while self.timers and min(due for due, _ in self.timers) <= now_ms:
            timer = min(self.timers, key=lambda each: each[0])
            self.timers.remove(timer)
            self.now_ms = timer[0]
            timer[1]()
        self.now_ms = now_ms


def asleep(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[Loop, PumpCounter], None]
) -> tuple[Loop, Sleeper]:
    """Do something with the counter of a clerk, before a clock that a test sets."""
    seen: list[tuple[Loop, Sleeper]] = []

    def at_desk(office: Office) -> None:
        office.call(Line(), operation=5)
        [(_, made)] = office.made
        assert isinstance(made, Sleeper)
        with monkeypatch.context() as patch:
            loop = Loop(patch)
            act(loop, office.counters[0])
        seen.append((loop, made))

    at_work(at_desk, kind=Sleeper)
    return seen[0]


def test_a_clerk_is_woken_at_the_last_moment_that_it_has_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def act(loop: Loop, counter: PumpCounter) -> None:
        counter.wake_at(100)
        counter.wake_at(250)
        loop.go_to(1_000)
        counter.wake_at(3_000)
        counter.wake_at(2_000)
        loop.go_to(2_500)

    _, sleeper = asleep(monkeypatch, act)
    assert sleeper.woken_ms == [250, 2_000]


def test_moments_that_move_on_leave_the_timer_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def act(loop: Loop, counter: PumpCounter) -> None:
        for due_ms in range(100, 1_000):
            counter.wake_at(due_ms)
        assert (len(loop.timers), loop.cancelled_count) == (1, 0)
        counter.wake_at(None)
        loop.go_to(5_000)

    loop, sleeper = asleep(monkeypatch, act)
    assert (loop.timers, sleeper.woken_ms) == ([], [])


def test_who_leaves_is_not_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    def act(loop: Loop, counter: PumpCounter) -> None:
        counter.wake_at(100)
        counter.leave()
        loop.go_to(5_000)

    assert asleep(monkeypatch, act)[1].woken_ms == []


def test_answers_between_turns_are_taken_too() -> None:
    taken: list[api.Answer] = []
    answers = [api.Answer(1, api.Done())]
    at_work(
        lambda office: office.pump.after_turn(taken.extend, answers),
        lambda _: None,
    )
    assert taken == answers
