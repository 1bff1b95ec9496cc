"""A queue of another computer that an application of ours reads. [MQRR 3.2]

Requests of the application interface become calls, and results become replies. A message is
received in two steps: R_StartReceive locks it there and gives it to us; then the application has
it, and R_EndReceive takes it out there. It has the message whatever becomes of the second step, so
it does not wait for that, and may ask for its next message meanwhile: if nobody knows whether the
other side has heard it, the message may come twice, and is never lost on our way (R-12). What waits
when the connection breaks is given back there at once, or after five minutes at the latest.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from openmsmq.api import messages as api
from openmsmq.api.exchange import ARRIVAL_MASK
from openmsmq.model.errors import (
    AccessDenied,
    BufferOverflow,
    InsufficientResources,
    InvalidHandle,
    InvalidParameter,
    MessageNotFound,
    MsmqError,
    NoTransactionCoordinator,
    OperationCancelled,
    QueueNotAvailable,
    ReceiveTimeout,
    StaleHandle,
    UnsupportedOperation,
)
from openmsmq.model.identity import Guid
from openmsmq.model.limits import ELSEWHERE_READS_MAX_COUNT
from openmsmq.model.names import DirectFormatName, FormatName
from openmsmq.model.queue import AccessMode, RemoteReadState, SeekAction
from openmsmq.remote.elsewhere_ports import Invoke, Output, Over, Tell
from openmsmq.wire.errors import DecodeError, EncodeError
from openmsmq.wire.message_bytes import body_size, is_transactional, priority
from openmsmq.wire.rpc import remote_read as rpc
from openmsmq.wire.rpc.message_packets import joined, read
from openmsmq.wire.rpc.queue_format import QueueFormat
from openmsmq.wire.rpc.remote_read import Action, Operation, Verdict

_DENIED: Final = (0x5, 0xC000_0022)
_MSMQ_FACILITY: Final = 0xC00E
_INFINITE_MS: Final = 0xFFFF_FFFF
_LONGEST_MS: Final = 0xFFFF_FFFE
_WHOLE_BODY: Final = 0xFFFF_FFFF
_BEHIND_ALL: Final = 0xFFFF_FFFF_FFFF_FFFF
_REQUEST_MASK: Final = 0xFFFF_FFFF
_NO_TRANSACTION: Final = bytes(16)
_LOOKUPS: Final = {
    SeekAction.CURRENT: (Action.LOOKUP_PEEK_CURRENT, Action.LOOKUP_RECEIVE_CURRENT),
    SeekAction.NEXT: (Action.LOOKUP_PEEK_NEXT, Action.LOOKUP_RECEIVE_NEXT),
    SeekAction.PREVIOUS: (Action.LOOKUP_PEEK_PREVIOUS, Action.LOOKUP_RECEIVE_PREVIOUS),
    SeekAction.LAST: (Action.LOOKUP_PEEK_PREVIOUS, Action.LOOKUP_RECEIVE_PREVIOUS),
}
"""To look, and to take. The last message is the one before what is behind all."""


_Then: TypeAlias = Callable[[bytes], list[Output]]
_Fallen: TypeAlias = Callable[[MsmqError], list[Output]]


class _Reading:
    """A read of which the application waits for the end."""

    def __init__(self, call: int, request: api.Receive | api.Seek, number: int) -> None:
        self.call = call
        self.request = request
        self.number = number
        self.is_unwanted = False


class QueueElsewhere:
    """One open queue, from the wish to open it until it is left or lost."""

    def __init__(self, name: FormatName, handle: int, request: api.OpenQueue, client: Guid) -> None:
        """`client` is who we are to the other computer; raise `UnsupportedName`."""
        self._name = name
        self._handle = handle
        self._request = request
        self._format = QueueFormat.of(name)
        self._client = client
        self._context = rpc.NO_CONTEXT
        self._number = 0
        self._calls: dict[int, tuple[_Then, _Fallen]] = {}
        """For each call under way, what follows its results, and what follows if there are none."""
        self._waiting: dict[int, _Reading] = {}
        """Reads before their first step is over, by the number of the request."""
        self._locked: dict[int, int] = {}
        """Requests of messages that the application has locked, by lookup identifier."""
        self._cursors: dict[int, int] = {}
        self._problem: MsmqError | None = None
        self._is_left = False

    # What drivers call.

    def open(self, call: int) -> list[Output]:
        """Begin; the connection is there."""
        return self._invoke(
            Operation.OPEN_QUEUE_FOR_MOVE if self.is_target else Operation.OPEN_QUEUE,
            self.opening(),
            partial(self._opened, call),
            partial(self._not_opened, call),
        )

    def asked(
        self, call: int, request: api.AnyRequest, cursor: int, target: QueueElsewhere | None = None
    ) -> list[Output]:
        """Take a request of the application; `target` is where a message is to be moved."""
        try:
            if self._problem is not None:
                raise self._problem
            if self.state is not RemoteReadState.READY_FOR_READ:
                raise InvalidHandle(f"{self._name} is not open yet")
            if isinstance(request, api.Move):
                return self._move(call, request, target)
            return self._do(call, request, cursor)
        except EncodeError as misfit:
            # A number that no call has room for, such as a negative one.
            return [failed(call, InvalidParameter(str(misfit)))]
        except MsmqError as error:
            return [failed(call, error)]

    def cancel(self, call: int) -> list[Output]:
        """End a read that waits, if there is one; its call still ends once."""
        for reading in self._waiting.values():
            if reading.call == call and not reading.is_unwanted:
                return self._cancel(reading)
        return []

    def leave(self) -> list[Output]:
        """Close the queue: what waits ends, and what is about to be taken is still taken."""
        self._is_left = True
        if self._problem is not None:
            return [Over()]
        outputs: list[Output] = []
        for reading in list(self._waiting.values()):
            if not reading.is_unwanted:
                outputs += self._cancel(reading)
        return outputs + self._close_when_done()

    def returned(self, number: int, stub: bytes) -> list[Output]:
        """Take the results of a call."""
        then, fallen = self._calls.pop(number)
        try:
            outputs = then(stub)
        except DecodeError as nonsense:
            outputs = fallen(QueueNotAvailable(f"{self._name} answers {nonsense}"))
        except MsmqError as error:
            outputs = fallen(error)
        return outputs + self._close_when_done()

    def threw(self, number: int, status: int) -> list[Output]:
        """Take the status of a call that has failed."""
        _, fallen = self._calls.pop(number)
        return fallen(error_of(status, str(self._name))) + self._close_when_done()

    def lost(self, error: MsmqError) -> list[Output]:
        """The connection is gone, or was never there."""
        if self._problem is not None:
            return []
        self._problem = error
        calls, self._calls = self._calls, {}
        outputs: list[Output] = []
        for _, fallen in calls.values():
            outputs += fallen(error)
        return [*outputs, Over()]

    # Requests.

    def _do(self, call: int, request: api.AnyRequest, cursor: int) -> list[Output]:
        if getattr(request, "transaction", 0):
            raise self._no_transaction()
        match request:
            case api.Receive() | api.Seek():
                return self._read(call, request)
            case api.EndReceive():
                return self._end(call, request)
            case api.CreateCursor():
                then = partial(self._cursor_made, call, cursor)
                return self._of_queue(Operation.CREATE_CURSOR, call, then)
            case api.CloseCursor():
                return self._close_cursor(call, request.cursor)
            case api.Purge():
                then = partial(self._done, call, api.Removed(0))
                return self._of_queue(Operation.PURGE_QUEUE, call, then)
            case _:
                raise UnsupportedOperation(
                    f"{self._name} is on another computer, and cannot be asked for this"
                )

    def _no_transaction(self) -> MsmqError:
        return NoTransactionCoordinator(
            f"{self._name} is on another computer: receive from it without a transaction"
        )

    def _of_queue(self, operation: int, call: int, then: _Then) -> list[Output]:
        stub = rpc.OF_QUEUE.encode(rpc.OfQueue(self._context))
        return self._invoke(operation, stub, then, partial(_fails, call))

    def _read(self, call: int, request: api.Receive | api.Seek) -> list[Output]:
        if len(self._waiting) + len(self._locked) >= ELSEWHERE_READS_MAX_COUNT:
            raise InsufficientResources(f"{ELSEWHERE_READS_MAX_COUNT} reads of it are under way")
        action, lookup_id, timeout_ms, cursor = self._way(request)
        self._number += 1
        number = self._number & _REQUEST_MASK
        asked = rpc.StartReceive(
            self._context,
            lookup_id,
            cursor,
            action,
            timeout_ms,
            number,
            _WHOLE_BODY,
            _WHOLE_BODY,
        )
        # Before anything waits for it: what cannot be written is not asked.
        stub = rpc.START_RECEIVE.encode(asked)
        reading = _Reading(call, request, number)
        self._waiting[number] = reading
        return self._invoke(
            Operation.START_RECEIVE,
            stub,
            partial(self._started, reading),
            partial(self._not_started, reading),
            None if timeout_ms == _INFINITE_MS else timeout_ms,
        )

    def _way(self, request: api.Receive | api.Seek) -> tuple[int, int, int, int]:
        """Return what is asked for: action, lookup identifier, time-out and cursor."""
        if isinstance(request, api.Seek):
            try:
                action = SeekAction(request.action)
            except ValueError:
                raise InvalidParameter(f"{request.action!r} is no seek action") from None
            if action is SeekAction.FIRST:
                return (Action.PEEK_CURRENT if request.peek else Action.RECEIVE), 0, 0, 0
            peek, take = _LOOKUPS[action]
            lookup_id = _BEHIND_ALL if action is SeekAction.LAST else request.lookup_id
            return (peek if request.peek else take), lookup_id, 0, 0
        cursor = 0
        if request.cursor:
            found = self._cursors.get(request.cursor)
            if found is None:
                raise InvalidHandle(f"the queue has no cursor {request.cursor}")
            cursor = found
        timeout_ms = (
            _INFINITE_MS if request.timeout_ms is None else min(request.timeout_ms, _LONGEST_MS)
        )
        if not request.peek:
            if request.next:
                raise UnsupportedOperation("a cursor moves on by peeking, then takes where it is")
            return Action.RECEIVE, 0, timeout_ms, cursor
        return (Action.PEEK_NEXT if request.next else Action.PEEK_CURRENT), 0, timeout_ms, cursor

    def _cancel(self, reading: _Reading) -> list[Output]:
        reading.is_unwanted = True
        stub = rpc.CANCEL_RECEIVE.encode(rpc.CancelReceive(self._context, reading.number))
        # How that went is said by the end of the read itself.
        return self._invoke(Operation.CANCEL_RECEIVE, stub, lambda _: [], lambda _: [])

    def _end(self, call: int, request: api.EndReceive) -> list[Output]:
        number = self._locked.pop(request.lookup_id, None)
        if number is None:
            raise InvalidHandle(f"no message {request.lookup_id} is locked through this handle")
        verdict = Verdict.ACK if request.remove else Verdict.NACK
        then = partial(self._done, call, api.Done())
        return self._say(number, verdict, then, partial(_fails, call))

    def _close_cursor(self, call: int, cursor: int) -> list[Output]:
        found = self._cursors.pop(cursor, None)
        if found is None:
            raise InvalidHandle(f"there is no cursor {cursor}")
        outputs: list[Output] = []
        for reading in list(self._waiting.values()):
            if getattr(reading.request, "cursor", 0) == cursor and not reading.is_unwanted:
                outputs += self._cancel(reading)
        stub = rpc.CLOSE_CURSOR.encode(rpc.CloseCursor(self._context, found))
        then = partial(self._done, call, api.Done())
        return outputs + self._invoke(Operation.CLOSE_CURSOR, stub, then, partial(_fails, call))

    def _move(self, call: int, request: api.Move, target: QueueElsewhere | None) -> list[Output]:
        if request.transaction:
            raise self._no_transaction()
        if target is None or not target.is_target:
            raise InvalidHandle(f"no queue elsewhere is open for moving under {request.target}")
        # A server may know targets by the connection that has opened them: this one does, too.
        return self._invoke(
            Operation.OPEN_QUEUE_FOR_MOVE,
            target.opening(),
            partial(self._target_opened, call, request.lookup_id),
            partial(_fails, call),
        )

    # Results.

    def _opened(self, call: int, stub: bytes) -> list[Output]:
        table = rpc.OPENED_FOR_MOVE if self.is_target else rpc.OPENED
        self._context = table.decode(stub).context
        wire_text = self._name.wire_text if isinstance(self._name, DirectFormatName) else ""
        name = str(self._name)
        opened = api.Opened(
            self._handle, name, name, wire_text, transactional=False, is_local=False
        )
        return [Tell(call, opened)]

    def _not_opened(self, call: int, error: MsmqError) -> list[Output]:
        self._problem = error
        return [failed(call, error), Over()]

    def _cursor_made(self, call: int, cursor: int, stub: bytes) -> list[Output]:
        made = rpc.CURSOR_MADE.decode(stub)
        self._check(made.result)
        self._cursors[cursor] = made.cursor
        return [Tell(call, api.CursorCreated(cursor))]

    def _done(self, call: int, reply: api.AnyReply, stub: bytes) -> list[Output]:
        self._check(rpc.RESULT.decode(stub).result)
        return [Tell(call, reply)]

    def _target_opened(self, call: int, lookup_id: int, stub: bytes) -> list[Output]:
        opened = rpc.OPENED_FOR_MOVE.decode(stub)
        asked = rpc.MoveMessage(self._context, opened.move_context, lookup_id, _NO_TRANSACTION)
        return self._invoke(
            Operation.MOVE_MESSAGE,
            rpc.MOVE_MESSAGE.encode(asked),
            partial(self._moved, call, opened.context),
            partial(self._not_moved, call, opened.context),
        )

    def _moved(self, call: int, target: bytes, stub: bytes) -> list[Output]:
        return [*self._done(call, api.Done(), stub), *self._close(target)]

    def _not_moved(self, call: int, target: bytes, error: MsmqError) -> list[Output]:
        return [failed(call, error), *self._close(target)]

    def _started(self, reading: _Reading, stub: bytes) -> list[Output]:
        """Take what the first step of a read gave."""
        request = reading.request
        try:
            received = rpc.RECEIVED.decode(stub)
            if received.result:
                return self._not_started(
                    reading, MsmqError.from_code(received.result, str(self._name))
                )
            entry = self._entry(received, request.body_max_bytes)
        except (DecodeError, MsmqError) as problem:
            error = (
                problem
                if isinstance(problem, MsmqError)
                else QueueNotAvailable(f"{self._name} sends a message that is none: {problem}")
            )
            del self._waiting[reading.number]
            return [failed(reading.call, error), *self._give_back(reading)]
        del self._waiting[reading.number]
        if reading.is_unwanted:
            error = OperationCancelled("the read was cancelled")
            return [failed(reading.call, error), *self._give_back(reading)]
        told = Tell(reading.call, api.Entries([entry]))
        if request.peek:
            return [told]
        if request.lock:
            self._locked[entry.lookup_id] = reading.number
            return [told]
        # Whatever the other side says to that, the application has the message. So it need
        # not wait for it; and until it has the message, nothing is deleted.
        return [told, *self._say(reading.number, Verdict.ACK, lambda _: [], lambda _: [])]

    def _not_started(self, reading: _Reading, error: MsmqError) -> list[Output]:
        self._waiting.pop(reading.number, None)
        if isinstance(reading.request, api.Seek) and isinstance(error, ReceiveTimeout):
            error = MessageNotFound(f"{self._name} has no such message")
        return [failed(reading.call, error)]

    def _entry(self, received: rpc.Received, body_max_bytes: int | None) -> api.Entry:
        packet, standing = read(joined(received.sections))
        size = body_size(packet)
        if body_max_bytes is not None and size > body_max_bytes:
            raise BufferOverflow(f"its body has {size} bytes, more than {body_max_bytes}")
        return api.Entry(
            _lookup_id(packet, received.sequence_id),
            received.arrived_unix_s,
            standing.abort_count,
            standing.move_count,
            packet,
            standing.moved_time_s,
        )

    def _give_back(self, reading: _Reading) -> list[Output]:
        if reading.request.peek:
            return []
        return self._say(reading.number, Verdict.NACK, lambda _: [], lambda _: [])

    def _say(self, number: int, verdict: Verdict, then: _Then, fallen: _Fallen) -> list[Output]:
        """Say what becomes of a message that we have."""
        stub = rpc.END_RECEIVE.encode(rpc.EndReceive(self._context, verdict, number))
        return self._invoke(Operation.END_RECEIVE, stub, then, fallen)

    # Tools.

    @property
    def state(self) -> RemoteReadState:
        """How far it is."""
        if self._problem is not None or (self._is_left and self._context == rpc.NO_CONTEXT):
            return RemoteReadState.NONE
        if self._context == rpc.NO_CONTEXT:
            return RemoteReadState.OPENED
        return RemoteReadState.READY_FOR_READ

    @property
    def is_target(self) -> bool:
        """Whether messages are moved to it."""
        return self._request.access == AccessMode.MOVE

    def opening(self) -> bytes:
        """Return the parameters of a call that opens it."""
        asked = rpc.OpenQueue(
            self._format,
            self._request.access,
            self._request.share,
            self._client,
            is_non_routing_server=1,
            major=6,
            minor=1,
            build=7600,
            is_workgroup=1,
        )
        return rpc.OPEN_QUEUE.encode(asked)

    def _check(self, result: int) -> None:
        if result:
            raise MsmqError.from_code(result, str(self._name))

    def _invoke(
        self,
        operation: int,
        stub: bytes,
        then: _Then,
        fallen: _Fallen,
        patience_ms: int | None = 0,
    ) -> list[Output]:
        self._number += 1
        self._calls[self._number] = (then, fallen)
        return [Invoke(self._number, operation, stub, patience_ms)]

    def _close_when_done(self) -> list[Output]:
        """Close what was left, once nothing is under way any more."""
        if not self._is_left or self._calls or self._problem is not None:
            return []
        if self._context == rpc.NO_CONTEXT:
            self._problem = StaleHandle("the queue was closed")
            return [Over()]
        context, self._context = self._context, rpc.NO_CONTEXT
        outputs: list[Output] = []
        for cursor in self._cursors.values():
            stub = rpc.CLOSE_CURSOR.encode(rpc.CloseCursor(context, cursor))
            outputs += self._invoke(Operation.CLOSE_CURSOR, stub, lambda _: [], lambda _: [])
        self._cursors.clear()
        return outputs + self._close(context)

    def _close(self, context: bytes) -> list[Output]:
        stub = rpc.OF_QUEUE.encode(rpc.OfQueue(context))
        return self._invoke(Operation.CLOSE_QUEUE, stub, lambda _: [], lambda _: [])


def _lookup_id(packet: bytes, arrival: int) -> int:
    """Put back what the other side does not tell: the highest byte goes by the priority (C-77g)."""
    level = 0 if is_transactional(packet) else priority(packet)
    return (7 - level) << 56 | arrival & ARRIVAL_MASK


def failed(call: int, error: MsmqError) -> Tell:
    """Answer a call with an error."""
    return Tell(call, api.Failed(error.code, error.detail))


def error_of(status: int, name: str) -> MsmqError:
    """Return the error for the status of a fault. [MQRR 3.1.4]"""
    if status in _DENIED:
        return AccessDenied(f"the computer of {name} refuses to let us read it")
    if status >> 16 == _MSMQ_FACILITY:
        return MsmqError.from_code(status, name)
    return QueueNotAvailable(f"{name} ended the call with the status {status:#010x}")


def _fails(call: int, error: MsmqError) -> list[Output]:
    return [failed(call, error)]
