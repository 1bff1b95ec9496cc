"""The pump: everything that happened in one turn of the loop becomes one commit, then answers.

Calls of applications and bytes of other queue managers go into the queue manager as they arrive.
The first of a turn schedules the pump, which runs when all sockets that were ready have been read:
so all connections and sessions share one commit. Answers and acknowledgments leave only through
the outputs of the queue manager, which gives them after the commit.

When the disk fails, or the queue manager itself, no further input reaches the queue manager: what
it has in memory may differ from what is on disk, and the next start tells which is right.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVarTuple, Unpack, assert_never

from openmsmq.api.messages import Answer, AnyReply, AnyRequest, GetStatus
from openmsmq.manager.notices import Notice
from openmsmq.manager.outputs import (
    AskDirectory,
    AskElsewhere,
    AskProgram,
    BackUp,
    ChangeDirectory,
    Connect,
    Disconnect,
    EndConnection,
    LeaveElsewhere,
    MakeKeys,
    OpenElsewhere,
    Persist,
    ReadAuditLog,
    Resolve,
    Respond,
    SendBytes,
    SendDatagram,
    SendMulticast,
)
from openmsmq.model.clock import Instant
from openmsmq.model.errors import (
    InsufficientResources,
    MessageStorageFailed,
    MsmqError,
    ServiceNotAvailable,
)
from openmsmq.protocol.posts import OutgoingPost, PostAnswer
from openmsmq.runtime.admission.time_shares import TimeShares
from openmsmq.runtime.clocks import elapsed_ns, read_clocks
from openmsmq.runtime.limits import PERSISTS_PER_TURN_MAX_COUNT
from openmsmq.runtime.logs import Event, EventLog, LimitedLog
from openmsmq.runtime.turn_file import TurnFile
from openmsmq.runtime.vitals import VitalSigns
from openmsmq.security.access.callers import UNKNOWN_ORIGIN, Caller, Origin
from openmsmq.storage.port import Store, StoreError, StoreFull

if TYPE_CHECKING:
    from openmsmq.manager.manager import QueueManager
    from openmsmq.runtime.api.audit_pages import AuditReader
    from openmsmq.runtime.backups.keeper import BackupKeeper
    from openmsmq.runtime.directory.courier import DirectoryCourier
    from openmsmq.runtime.http.door import HttpDoor
    from openmsmq.runtime.multicast.service import MulticastService
    from openmsmq.runtime.operating.program import Program
    from openmsmq.runtime.operating_system.key_maker import KeyMaker
    from openmsmq.runtime.replication.primary import Primary
    from openmsmq.runtime.rpc.elsewhere import Elsewhere
    from openmsmq.runtime.sessions.network import TransferNetwork
    from openmsmq.runtime.telemetry.arrivals import ArrivalSpans

_OUTCOME_UNKNOWN: Final = (
    "whether the last changes were stored is known after the queue manager has started again"
)
_LAST_TURNS_COUNT: Final = 8

_Facts = TypeVarTuple("_Facts")
_Take: TypeAlias = Callable[[list[Answer]], None]


class ExitCode(IntEnum):
    """How the process ends; those above 63 have the meaning that `sysexits.h` gives them."""

    STOPPED = 0
    STORE_FAILED = 1
    NOT_STARTED = 2
    """Somebody has to put something right before it can start."""
    DEFECT = 70
    NOT_YET = 75
    """Something is in use, full or away: a supervisor should try again."""


class Answered(Protocol):
    """A connection, as far as answers go there."""

    def deliver(self, answers: list[Answer], /) -> None:
        """Take answers."""

    def cut(self, reason: str, /) -> None:
        """End."""

    def go_on(self) -> None:
        """Go on after the others had their turn."""


class Pump:
    """Moves inputs into a queue manager and its outputs out, in one thread with its loop."""

    def __init__(
        self,
        manager: QueueManager,
        store: Store,
        log: EventLog,
        failed: Callable[[ExitCode], None],
    ) -> None:
        self.refusal: MsmqError | None = None
        """Why no call is taken any more."""
        self.engine: Final = manager
        self.times: Final = TimeShares(elapsed_ns())
        self.vitals: Final = VitalSigns(manager)
        self.network: TransferNetwork
        """Must be there before the first turn."""
        self.directory: DirectoryCourier
        """Must be there before the first turn of a queue manager with a copy of a directory."""
        self.keys: KeyMaker
        """Must be there before the first turn of a queue manager with keys."""
        self.backups: BackupKeeper
        """Must be there before the first back-up."""
        self.program: Program
        """Must be there before the first connection."""
        self.elsewhere: Elsewhere
        """Must be there before the first connection."""
        self.http: HttpDoor
        """Must be there before the first turn with queues elsewhere that are reached by HTTP."""
        self.audit: AuditReader
        """Must be there before somebody asks for the audit log."""
        self.multicast: MulticastService | None = None
        """Must be there before somebody sends to a multicast address."""
        self._store = store
        self._log = log
        self._notices = LimitedLog(log)
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._connections: dict[int, Answered] = {}
        self._answers: dict[int, list[Answer]] = {}
        self._deferred: dict[Answered, None] = {}
        self._afterwards: list[tuple[_Take, list[Answer]]] | None = None
        """Who takes answers when the turn is over, as it may ask for more; None between turns."""
        self._last_connection = 0
        self._ending: set[int] = set()
        """Connections that are cut in a moment: whoever ended them was told that they are."""
        self._scheduled = False
        self._is_wanted = False
        """Whether anybody but a stranger has asked for the next turn."""
        self._broken = False
        self._store_full = False
        self._store_failure: MsmqError | None = None
        self.turn_file: TurnFile | None = None
        """Where turns are described, if somebody wants to see them."""
        self.arrivals: ArrivalSpans | None = None
        """What makes spans of messages that have come, if somebody wants them."""
        self.primary: Primary | None = None
        """Who makes turns durable, if this queue manager is on several computers."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0

    # Inputs.

    def connected(
        self, connection: Answered, caller: Caller, origin: Origin = UNKNOWN_ORIGIN
    ) -> int:
        """Let a connection in; gives its number."""
        self._last_connection += 1
        self._connections[self._last_connection] = connection
        self.engine.connected(self._last_connection, caller, origin)
        return self._last_connection

    def request(self, connection: int, call: int, request: AnyRequest, now: Instant) -> None:
        """Take a call. The caller has looked at `refusal`, and calls `schedule` when it is done."""
        if connection in self._ending:
            return
        if type(request) is GetStatus:
            self.vitals.look()
        self.engine.request(connection, call, request, now)

    def disconnected(self, connection: int) -> None:
        """A connection has ended."""
        self._ending.discard(connection)
        self._deferred.pop(self._connections.pop(connection), None)
        self._answers.pop(connection, None)
        if self._broken:
            return
        try:
            self.engine.connection_lost(connection, read_clocks())
        except Exception as error:
            self.defect(error)
        self.schedule()

    def put_in(self, take: Callable[[Unpack[_Facts], Instant], None], *facts: *_Facts) -> None:
        """Tell an input of the engine what other queue managers do."""
        if self.refusal is None and not self._broken:
            self.hand_in(take, *facts)
            self.schedule()

    def hand_in(self, take: Callable[[Unpack[_Facts], Instant], None], *facts: *_Facts) -> None:
        """Do the same where a turn follows anyway."""
        if self.refusal is not None or self._broken:
            return
        try:
            take(*facts, read_clocks())
        except Exception as error:
            self.defect(error)

    def defer(self, connection: Answered) -> None:
        """Let a connection go on after the others had their turn."""
        self._deferred[connection] = None
        self.schedule()

    def after_turn(self, take: _Take, answers: list[Answer]) -> None:
        """Hand answers to somebody when the turn is over that gives them, or soon without one."""
        if self._afterwards is None:
            self._loop.call_soon(take, answers)
        else:
            self._afterwards.append((take, answers))

    def schedule(self) -> None:
        """Have a turn as soon as what is ready now has been read."""
        self._is_wanted = True
        self.schedule_for_strangers()

    def schedule_for_strangers(self) -> None:
        """Have one that nobody else has asked for."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self.turn)

    def _wake(self) -> None:
        self._timer = None
        if self._broken:
            return
        try:
            self.engine.wake(read_clocks())
        except Exception as error:
            self.defect(error)
        self.turn()

    # The turn.

    def turn(self) -> None:
        """Make durable what is to be durable, then answer; again, until nothing is left."""
        self._scheduled = False
        if self._broken or (self.primary is not None and not self.primary.may_answer()):
            return
        is_wanted, self._is_wanted = self._is_wanted, False
        afterwards: list[tuple[_Take, list[Answer]]] = []
        self._afterwards = afterwards
        try:
            with_strangers = self.network.sessions.take_waiting()
            if self._broken:
                return
            began_ns = elapsed_ns()
            self._drain()
            if self.multicast is not None:
                self.multicast.look()
            self._arm_timer()
        except Exception as error:
            self.defect(error)
            return
        finally:
            self._afterwards = None
        if is_wanted:
            self.times.others_took(began_ns, elapsed_ns())
        elif with_strangers:
            self.times.stranger_took(began_ns, elapsed_ns())
        for take, answers in afterwards:
            take(answers)
        if self._deferred:
            self._loop.call_soon(self._let_deferred_go_on)

    def _drain(self) -> None:
        for _ in range(PERSISTS_PER_TURN_MAX_COUNT):
            outputs = self.engine.take_outputs()
            if self.turn_file is not None:
                self.turn_file.write()
            for output in outputs:
                match output:
                    case Respond(connection, call, reply):
                        self._answers.setdefault(connection, []).append(Answer(call, reply))
                    case SendBytes(session, data):
                        self.network.sessions.send(session, data)
                    case Persist():
                        # What is safe already may leave: its readers then work while we sync.
                        self._write()
                        self._persist(output)
                    case (
                        EndConnection()
                        | MakeKeys()
                        | BackUp()
                        | AskProgram()
                        | OpenElsewhere()
                        | AskElsewhere()
                        | LeaveElsewhere()
                        | ReadAuditLog()
                        | Notice()
                    ):
                        self._see_to(output)
                    case _:
                        self._reach_out(output)
            # Whoever waits for an answer has it before we look for more to do.
            self._write()
            if not outputs:
                return
        self.schedule_for_strangers()

    def _reach_out(
        self,
        output: Resolve
        | Connect
        | Disconnect
        | SendDatagram
        | SendMulticast
        | AskDirectory
        | ChangeDirectory
        | OutgoingPost
        | PostAnswer,
    ) -> None:
        """Do what the network is needed for."""
        match output:
            case Resolve(host):
                self.network.resolver.resolve(host)
            case Connect(session, address):
                self.network.sessions.connect(session, address)
            case Disconnect(session):
                self.network.sessions.disconnect(session)
            case SendDatagram(address, data, port):
                self.network.datagrams.send(address, port, data)
            case SendMulticast(group, payload):
                assert self.multicast is not None
                self.multicast.send(group, payload)
            case AskDirectory(position):
                self.directory.ask(position)
            case ChangeDirectory(ticket, changes):
                self.directory.change(ticket, changes)
            case OutgoingPost():
                self.http.post(output)
            case PostAnswer():
                self.http.answer(output)
            case _:
                assert_never(output)

    def _see_to(
        self,
        output: EndConnection
        | MakeKeys
        | BackUp
        | AskProgram
        | OpenElsewhere
        | AskElsewhere
        | LeaveElsewhere
        | ReadAuditLog
        | Notice,
    ) -> None:
        """Do what is done on this computer."""
        match output:
            case EndConnection(number, reason):
                self.end_connection(number, reason)
            case MakeKeys():
                self.keys.make()
            case BackUp(directory):
                self.backups.begin(directory)
            case AskProgram(connection, call, request):
                answer = Answer(call, self.program.answer(request))
                self._answers.setdefault(connection, []).append(answer)
            case OpenElsewhere():
                self.elsewhere.open(output)
            case AskElsewhere():
                self.elsewhere.ask(output)
            case LeaveElsewhere():
                self.elsewhere.leave(output)
            case ReadAuditLog():
                self.audit.read(output)
            case Notice():
                self._notices.warning(Event(output.kind.value), **dict(output.facts))
            case _:
                assert_never(output)

    def answer(self, connection: int, call: int, reply: AnyReply) -> None:
        """Answer a call that the queue manager has passed on, if anybody still waits for it."""
        asker = self._connections.get(connection)
        if asker is not None:
            asker.deliver([Answer(call, reply)])

    def end_connection(self, number: int, reason: str) -> None:
        """Have a connection end, if it is still there."""
        connection = self._connections.get(number)
        if connection is not None:
            # Not now: it may be the one whose call we are in the middle of. But what comes from it
            # until then, such as a commit, comes too late.
            self._ending.add(number)
            self._loop.call_soon(connection.cut, reason)

    def _persist(self, persist: Persist) -> None:
        began_ns = elapsed_ns()
        error: StoreError | None = None
        if self._store_failure is None:
            try:
                if self.primary is None:
                    self._store.commit(persist.batch)
                elif not self.primary.commit(
                    persist.batch, partial(self._replicated, persist, began_ns)
                ):
                    return
            except StoreError as refusal:
                error = refusal
        self._persisted(persist, began_ns, error)

    def _replicated(self, persist: Persist, began_ns: int, error: StoreError | None) -> None:
        """Go on with a turn that other computers have too."""
        if self._broken:
            return
        try:
            self._persisted(persist, began_ns, error)
        except Exception as defect:
            self.defect(defect)
        self.turn()

    def _persisted(self, persist: Persist, began_ns: int, error: StoreError | None) -> None:
        failure = self._store_failure
        if failure is not None:
            pass
        elif isinstance(error, StoreFull):
            self._note_room(error)
            failure = InsufficientResources(str(error))
        elif error is not None:
            failure = self._give_up_store(error)
        else:
            self._note_room(None)
            took_ns = elapsed_ns() - began_ns
            self.vitals.committed(took_ns)
            if self.arrivals is not None:
                # After the turn: nobody waits for his answer because of a span.
                self._loop.call_soon(self.arrivals.stored, persist.batch, took_ns)
        if failure is None:
            self.engine.persisted(persist.ticket, read_clocks())
        else:
            self.engine.persist_failed(persist.ticket, failure, read_clocks())

    def _note_room(self, error: StoreFull | None) -> None:
        if self._store_full != (error is not None):
            self._store_full = error is not None
            if error is not None:
                self._log.error(Event.STORE_FULL, reason=str(error))
            else:
                self._log.info(Event.STORE_HAS_ROOM)

    def _write(self) -> None:
        self.network.sessions.flush()
        if self._answers:
            answers, self._answers = self._answers, {}
            for number, items in answers.items():
                connection = self._connections.get(number)
                if connection is not None:
                    connection.deliver(items)

    def _arm_timer(self) -> None:
        """Wake in time. A timer that is early stays: waking for nothing is harmless."""
        now = read_clocks()
        due_ms = self.engine.next_wake_ms(now)
        if due_ms is None:
            return
        if self._timer is not None:
            if self._timer_ms <= due_ms:
                return
            self._timer.cancel()
        self._timer_ms = due_ms
        delay_s = max(0, due_ms - now.ticks_ms) / 1000
        self._timer = self._loop.call_later(delay_s, self._wake)

    def _let_deferred_go_on(self) -> None:
        deferred, self._deferred = self._deferred, {}
        for connection in deferred:
            connection.go_on()

    # The end.

    def _give_up_store(self, error: StoreError) -> MsmqError:
        """Refuse everything from now on: what reached the disk is not known any more."""
        self._log.error(Event.STORE_FAILED, reason=str(error), consequence=_OUTCOME_UNKNOWN)
        failure = MessageStorageFailed(f"{error}; {_OUTCOME_UNKNOWN}")
        self._store_failure = self.refusal = failure
        self._failed(ExitCode.STORE_FAILED)
        return failure

    def fall_silent(self, why: str) -> None:
        """Say nothing more to anybody, as if the computer were gone."""
        self._broken = True
        self._answers.clear()
        self.refusal = ServiceNotAvailable(why)
        for connection in list(self._connections.values()):
            connection.cut(why)

    def defect(self, error: Exception) -> None:
        """Stop at once after an error that should not be: no answer may come of a doubtful state.

        A store that cannot be read is such an error too, because a read may come in the middle
        of a change.
        """
        self._broken = True
        self._answers.clear()
        if isinstance(error, StoreError):
            self.refusal = self._give_up_store(error)
            return
        self.refusal = MsmqError("the queue manager met a defect of its own and has to start again")
        self._log.error(
            Event.DEFECT, error=repr(error), trace="".join(traceback.format_exception(error))
        )
        self._failed(ExitCode.DEFECT)

    def close(self) -> None:
        """Do what is left to do; nothing may be put in afterwards."""
        for _ in range(_LAST_TURNS_COUNT):
            self.turn()
            if not self._scheduled:
                break
        self._broken = True
        self.vitals.close()
        if self._timer is not None:
            self._timer.cancel()
