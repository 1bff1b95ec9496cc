"""Calls of remote readers as requests of the application interface. [MQRR 3.1]

One of these serves one caller. A queue that it opens has a handle that nobody can guess and that
nobody else can use. A message is received in two steps: it is locked when the caller gets it, and
taken out, or given back, when the caller says that it has it. Of what is never said the caller has
five minutes to say it; then the message is there for others again, and may come twice (R-12).

What the queue manager must not forget is not kept here: locks and waiting reads end with the handle
or with the connection, whoever loses it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias

from openmsmq.api import messages as api
from openmsmq.model.clock import Instant
from openmsmq.model.errors import (
    InsufficientResources,
    InvalidHandle,
    InvalidParameter,
    MessageNotFound,
    OperationCancelled,
    QueueNotAvailable,
    QueueNotFound,
    TransactionSequence,
    TransactionUsage,
)
from openmsmq.model.limits import (
    REMOTE_QUEUES_MAX_COUNT,
    REMOTE_RECEIVE_MS,
    REMOTE_RECEIVES_MAX_COUNT,
)
from openmsmq.model.message import MessageClass
from openmsmq.model.queue import AccessMode, SeekAction, ShareMode
from openmsmq.remote import readings
from openmsmq.remote.faults import (
    ACCESS_DENIED,
    BAD_OPERATION,
    BAD_STUB,
    CONTEXT_MISMATCH,
    INVALID_HANDLE,
    INVALID_PARAMETER,
    TRANSACTION_ENLIST,
    code_of,
)
from openmsmq.remote.ports import Ask, Output, Return, Throw
from openmsmq.remote.readings import (
    LOOKUP_ID_MAX,
    RemoteQueue,
    RemoteReading,
    cursor_result,
    ignored,
    makes_sense,
    name_of,
    nothing_received,
    passed_on,
    receives,
    result,
    standing_of,
    subqueue_of,
)
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.rpc import remote_read as rpc
from openmsmq.wire.rpc.message_packets import received, sections
from openmsmq.wire.rpc.ndr import Call
from openmsmq.wire.rpc.remote_read import Operation

_NO_TRANSACTION: Final = bytes(16)
_REJECTED: Final = MessageClass.NACK_RECEIVE_REJECTED
_LOCK_IS_GONE: Final = (TransactionSequence.code, QueueNotAvailable.code, InvalidHandle.code)

_Then: TypeAlias = Callable[[api.AnyReply, Instant], list[Output]]
_Method: TypeAlias = Callable[[int, Any, Instant], list[Output]]


class _UnknownContext(Exception):
    """A handle that was never given out, or is closed."""


class RemoteRead:
    """Answers the calls of one remote reader.

    `new_identifier` gives 16 bytes that nobody can guess; `port` is where readers find us.
    """

    def __init__(self, new_identifier: Callable[[], bytes], port: int) -> None:
        self._new_identifier = new_identifier
        self._queues: dict[bytes, RemoteQueue] = {}
        self._targets: dict[int, RemoteQueue] = {}
        self._opening_count = 0
        self._number = 0
        self._asked: dict[int, _Then] = {}
        self._waiting: dict[int, RemoteReading] = {}
        """Reads without an answer, by the number of their call."""
        self._due: dict[tuple[bytes, int], int] = {}
        """When messages go back that callers have, by handle and request; the first comes first."""
        self.given_back_count = 0
        """Messages that a caller had for so long without a word that others get them (R-12)."""
        self._methods: dict[int, tuple[Call[Any], _Method]] = {
            Operation.GET_SERVER_PORT: (rpc.NOTHING, partial(_get_port, port)),
            Operation.OPEN_QUEUE: (rpc.OPEN_QUEUE, self._open),
            Operation.CLOSE_QUEUE: (rpc.OF_QUEUE, self._close),
            Operation.CREATE_CURSOR: (rpc.OF_QUEUE, self._create_cursor),
            Operation.CLOSE_CURSOR: (rpc.CLOSE_CURSOR, self._close_cursor),
            Operation.PURGE_QUEUE: (rpc.OF_QUEUE, self._purge),
            Operation.START_RECEIVE: (rpc.START_RECEIVE, self._start),
            Operation.CANCEL_RECEIVE: (rpc.CANCEL_RECEIVE, self._cancel),
            Operation.END_RECEIVE: (rpc.END_RECEIVE, self._end),
            Operation.MOVE_MESSAGE: (rpc.MOVE_MESSAGE, self._move),
            Operation.OPEN_QUEUE_FOR_MOVE: (rpc.OPEN_QUEUE, self._open_for_move),
            Operation.ENLIST_REMOTE_TRANSACTION: (rpc.ENLIST_REMOTE_TRANSACTION, _enlist),
            Operation.START_TRANSACTIONAL_RECEIVE: (
                rpc.START_TRANSACTIONAL_RECEIVE,
                self._start_transactional,
            ),
            Operation.SET_USER_ACKNOWLEDGEMENT_CLASS: (
                rpc.SET_ACKNOWLEDGEMENT_CLASS,
                self._set_class,
            ),
            Operation.END_TRANSACTIONAL_RECEIVE: (rpc.END_RECEIVE, self._end),
        }

    @property
    def kept_count(self) -> int:
        """How much is kept for the caller: open queues, reads, messages, and what is asked."""
        open_count = len(self._queues) + len(self._targets) + self._opening_count
        return open_count + len(self._waiting) + len(self._due) + len(self._asked)

    # What drivers call.

    def called(self, call: int, operation: int, stub: bytes, now: Instant) -> list[Output]:
        """Take a call."""
        method = self._methods.get(operation)
        if method is None:
            return [Throw(call, BAD_OPERATION)]
        try:
            request = method[0].decode(stub)
        except DecodeError:
            return [Throw(call, BAD_STUB)]
        try:
            return method[1](call, request, now)
        except _UnknownContext:
            return [Throw(call, CONTEXT_MISMATCH)]

    def answered(self, number: int, reply: api.AnyReply, now: Instant) -> list[Output]:
        """Take the queue manager's reply."""
        then = self._asked.pop(number, None)
        return [] if then is None else then(reply, now)

    def cancelled(self, call: int, now: Instant) -> list[Output]:
        """Stop to wait for a message; what comes all the same goes back."""
        del now
        for number, read in self._waiting.items():
            if read.call == call and not read.is_unwanted:
                read.is_unwanted = True
                return [self._ask(api.Cancel(number), ignored)]
        return []

    @property
    def next_wake_ms(self) -> int | None:
        """When the next message goes back, in ticks."""
        return next(iter(self._due.values()), None)

    def wake(self, now: Instant) -> list[Output]:
        """Let others have what callers have had for too long (R-12)."""
        outputs: list[Output] = []
        while self._due:
            (context, request), due_ms = next(iter(self._due.items()))
            if due_ms > now.ticks_ms:
                break
            del self._due[context, request]
            queue = self._queues[context]
            self.given_back_count += 1
            outputs.append(self._give_back(queue, queue.received.pop(request)))
        return outputs

    # Open and close.

    def _open(self, call: int, request: rpc.OpenQueue, _: Instant) -> list[Output]:
        if request.access not in (AccessMode.RECEIVE, AccessMode.PEEK):
            return [Throw(call, InvalidParameter.code)]
        return self._open_for(call, request, AccessMode(request.access), _opened)

    def _open_for_move(self, call: int, request: rpc.OpenQueue, _: Instant) -> list[Output]:
        if request.access != AccessMode.MOVE:
            return [Throw(call, InvalidParameter.code)]
        return self._open_for(call, request, AccessMode.MOVE, self._opened_for_move)

    def _open_for(
        self,
        call: int,
        request: rpc.OpenQueue,
        access: AccessMode,
        then: Callable[[int, RemoteQueue], Return],
    ) -> list[Output]:
        name = name_of(request.name)
        if name is None or request.share_mode not in (ShareMode.DENY_NONE, ShareMode.DENY_RECEIVE):
            return [Throw(call, InvalidParameter.code)]
        if len(self._queues) + self._opening_count >= REMOTE_QUEUES_MAX_COUNT:
            return [Throw(call, InsufficientResources.code)]
        self._opening_count += 1
        asked = api.OpenQueue(str(name), access, request.share_mode)
        return [self._ask(asked, partial(self._after_open, call, access, subqueue_of(name), then))]

    def _after_open(
        self,
        call: int,
        access: AccessMode,
        subqueue: str,
        then: Callable[[int, RemoteQueue], Return],
        reply: api.AnyReply,
        _: Instant,
    ) -> list[Output]:
        self._opening_count -= 1
        if not isinstance(reply, api.Opened):
            return [Throw(call, code_of(reply))]
        if not reply.is_local:
            # Only queues that are here are read through this interface. [MQRR 3.1.4.2]
            closing = self._ask(api.CloseQueue(reply.handle), ignored)
            return [closing, Throw(call, QueueNotFound.code)]
        context = bytes(4) + self._new_identifier()
        queue = RemoteQueue(context, reply.handle, access, subqueue, reply.transactional)
        self._queues[context] = queue
        return [then(call, queue)]

    def _opened_for_move(self, call: int, queue: RemoteQueue) -> Return:
        queue.move_context = int.from_bytes(self._new_identifier()[:8], "little")
        self._targets[queue.move_context] = queue
        opened = rpc.OpenedForMove(queue.move_context, queue.context)
        return Return(call, rpc.OPENED_FOR_MOVE.encode(opened))

    def _close(self, call: int, request: rpc.OfQueue, _: Instant) -> list[Output]:
        # The queue manager gives back what is locked, and ends what waits.
        queue = self._queue(request.context)
        del self._queues[queue.context]
        if queue.move_context is not None:
            del self._targets[queue.move_context]
        for number in queue.received:
            self._due.pop((queue.context, number), None)
        return [self._ask(api.CloseQueue(queue.handle), partial(_after_close, call))]

    # Cursors.

    def _create_cursor(self, call: int, request: rpc.OfQueue, _: Instant) -> list[Output]:
        queue = self._queue(request.context)
        if len(queue.cursors) + queue.making_count >= REMOTE_QUEUES_MAX_COUNT:
            return [cursor_result(call, 0, InsufficientResources.code)]
        queue.making_count += 1
        then = partial(self._after_create_cursor, call, queue)
        return [self._ask(api.CreateCursor(queue.handle), then)]

    def _after_create_cursor(
        self, call: int, queue: RemoteQueue, reply: api.AnyReply, _: Instant
    ) -> list[Output]:
        queue.making_count -= 1
        if not isinstance(reply, api.CursorCreated):
            return [cursor_result(call, 0, code_of(reply))]
        queue.last_cursor += 1
        queue.cursors[queue.last_cursor] = reply.cursor
        return [cursor_result(call, queue.last_cursor, 0)]

    def _close_cursor(self, call: int, request: rpc.CloseCursor, _: Instant) -> list[Output]:
        cursor = self._queue(request.context).cursors.pop(request.cursor, None)
        if cursor is None:
            return [result(call, INVALID_HANDLE)]
        return [self._ask(api.CloseCursor(cursor), partial(passed_on, call))]

    # Reads.

    def _start_transactional(
        self, call: int, request: rpc.StartTransactionalReceive, now: Instant
    ) -> list[Output]:
        if request.transaction != _NO_TRANSACTION:
            return [nothing_received(call, TRANSACTION_ENLIST)]
        values = [getattr(request, name) for name in rpc.StartReceive.__struct_fields__]
        return self._start(call, rpc.StartReceive(*values), now)

    def _start(self, call: int, request: rpc.StartReceive, _: Instant) -> list[Output]:
        queue = self._queue(request.context)
        problem = self._problem(queue, request)
        if problem:
            return [nothing_received(call, problem)]
        read = RemoteReading(call, queue, request)
        asked = readings.read_request(queue, request)
        number = self._number + 1
        self._waiting[number] = read
        queue.waiting[request.request] = number
        return [self._ask(asked, partial(self._after_read, number, read))]

    def _problem(self, queue: RemoteQueue, request: rpc.StartReceive) -> int:
        """Return the code of what is wrong with a read, or 0."""
        if not makes_sense(request) or queue.knows(request.request):
            return InvalidParameter.code
        if request.cursor and request.cursor not in queue.cursors:
            return INVALID_HANDLE
        if len(self._waiting) + len(self._due) >= REMOTE_RECEIVES_MAX_COUNT:
            return InsufficientResources.code
        return 0

    def _after_read(
        self, number: int, read: RemoteReading, reply: api.AnyReply, now: Instant
    ) -> list[Output]:
        del self._waiting[number]
        queue, request = read.queue, read.request
        del queue.waiting[request.request]
        if not isinstance(reply, api.Entries):
            return [nothing_received(read.call, code_of(reply))]
        [entry] = reply.entries
        is_open = queue.context in self._queues
        if read.is_unwanted or not is_open:
            cancelled = nothing_received(read.call, OperationCancelled.code)
            if not receives(request) or not is_open:
                # What was locked through a closed handle is there for others already.
                return [cancelled]
            return [self._give_back(queue, entry.lookup_id), cancelled]
        if receives(request):
            self._keep(queue, request.request, entry.lookup_id, now)
        parts = sections(entry.packet, standing_of(entry, queue), request.max_body_bytes)
        arrived_unix_s = entry.arrived_time_s & 0xFFFF_FFFF
        return [Return(read.call, received(arrived_unix_s, entry.arrival_number, parts))]

    def _keep(self, queue: RemoteQueue, request: int, lookup_id: int, now: Instant) -> None:
        """Remember a message that the caller has, and begin to count the time (R-17)."""
        queue.received[request] = lookup_id
        self._due[queue.context, request] = now.ticks_ms + REMOTE_RECEIVE_MS

    def _give_back(self, queue: RemoteQueue, lookup_id: int) -> Ask:
        return self._ask(api.EndReceive(queue.handle, lookup_id, remove=False), ignored)

    def _cancel(self, call: int, request: rpc.CancelReceive, _: Instant) -> list[Output]:
        number = self._queue(request.context).waiting.get(request.request)
        if number is None:
            return [result(call, InvalidParameter.code)]
        return [self._ask(api.Cancel(number), partial(passed_on, call))]

    def _end(self, call: int, request: rpc.EndReceive, _: Instant) -> list[Output]:
        queue = self._queue(request.context)
        lookup_id = queue.received.pop(request.request, None)
        if lookup_id is None:
            return [result(call, queue.problem_to_end(request.request))]
        del self._due[queue.context, request.request]
        remove = request.verdict == rpc.Verdict.ACK
        then = partial(self._after_end, call, queue, request.request, lookup_id)
        return [self._ask(api.EndReceive(queue.handle, lookup_id, remove), then)]

    def _after_end(
        self,
        call: int,
        queue: RemoteQueue,
        request: int,
        lookup_id: int,
        reply: api.AnyReply,
        now: Instant,
    ) -> list[Output]:
        code = code_of(reply)
        if not code or code in _LOCK_IS_GONE or queue.context not in self._queues:
            return [result(call, code)]
        # The disk is full, say, and it is locked as before.
        if queue.knows(request):
            # Its number stands for another message by now, so nobody could name it any more.
            return [self._give_back(queue, lookup_id), result(call, code)]
        # There is time to say it again.
        self._keep(queue, request, lookup_id, now)
        return [result(call, code)]

    # Purge, move, reject.

    def _purge(self, call: int, request: rpc.OfQueue, _: Instant) -> list[Output]:
        queue = self._queue(request.context)
        if queue.access is not AccessMode.RECEIVE:
            return [result(call, ACCESS_DENIED)]
        return [self._ask(api.Purge(queue.handle), partial(passed_on, call))]

    def _move(self, call: int, request: rpc.MoveMessage, _: Instant) -> list[Output]:
        queue = self._queue(request.context)
        target = self._targets.get(request.move_context)
        if target is None:
            return [result(call, InvalidHandle.code)]
        if request.transaction != _NO_TRANSACTION:
            # No transaction can have been announced: we refuse to take part in any.
            is_usable = target.transactional
            code = TransactionSequence.code if is_usable else TransactionUsage.code
            return [result(call, code)]
        lookup_id = min(request.lookup_id, LOOKUP_ID_MAX)
        asked = api.Move(queue.handle, lookup_id, target.handle)
        return [self._ask(asked, partial(_after_move, call))]

    def _set_class(
        self, call: int, request: rpc.SetAcknowledgementClass, _: Instant
    ) -> list[Output]:
        queue = self._queue(request.context)
        if request.acknowledgement_class not in (0, _REJECTED):
            return [result(call, InvalidParameter.code)]
        lookup_id = min(request.lookup_id, LOOKUP_ID_MAX)
        asked = api.Seek(queue.handle, SeekAction.CURRENT.value, lookup_id, peek=True)
        return [self._ask(asked, partial(_after_look, call))]

    # Tools.

    def _queue(self, context: bytes) -> RemoteQueue:
        queue = self._queues.get(context)
        if queue is None:
            raise _UnknownContext
        return queue

    def _ask(self, request: api.AnyRequest, then: _Then) -> Ask:
        self._number += 1
        self._asked[self._number] = then
        return Ask(self._number, request)


def _get_port(port: int, call: int, _: rpc.Nothing, __: Instant) -> list[Output]:
    return [Return(call, rpc.PORT.encode(rpc.Port(port)))]


def _opened(call: int, queue: RemoteQueue) -> Return:
    return Return(call, rpc.OPENED.encode(rpc.Opened(queue.context)))


def _after_close(call: int, reply: api.AnyReply, _: Instant) -> list[Output]:
    return [Return(call, rpc.CLOSED.encode(rpc.Closed(rpc.NO_CONTEXT, code_of(reply))))]


def _after_move(call: int, reply: api.AnyReply, _: Instant) -> list[Output]:
    code = code_of(reply)
    # Queues that are no relatives are the only parameter that can be wrong here.
    return [result(call, INVALID_PARAMETER if code == InvalidParameter.code else code)]


def _after_look(call: int, reply: api.AnyReply, _: Instant) -> list[Output]:
    # Only what a transaction has received can be rejected, and there is none.
    if code_of(reply) == MessageNotFound.code:
        return [result(call, MessageNotFound.code)]
    return [result(call, TransactionUsage.code)]


def _enlist(call: int, _: rpc.EnlistRemoteTransaction, __: Instant) -> list[Output]:
    return [result(call, TRANSACTION_ENLIST)]
