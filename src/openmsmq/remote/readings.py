"""Open queues and reads of a remote reader: what is known of them, and what they become.

[MQRR 3.1.1, 3.1.4.7]
"""

from __future__ import annotations

from typing import Final

from openmsmq.api import messages as api
from openmsmq.api.base import NUMBER_MAX
from openmsmq.model.clock import Instant
from openmsmq.model.errors import InvalidHandle, InvalidParameter, MessageNotFound
from openmsmq.model.names import DirectFormatName, FormatName, IllegalName, LocalQueueName
from openmsmq.model.queue import AccessMode, SeekAction
from openmsmq.remote.faults import code_of
from openmsmq.remote.ports import Output, Return
from openmsmq.wire.rpc import remote_read as rpc
from openmsmq.wire.rpc.queue_format import QueueFormat
from openmsmq.wire.rpc.remote_read import Action, Standing

INFINITE_MS: Final = 0xFFFF_FFFF
"""A timeout that never ends."""
LOOKUP_ID_MAX: Final = NUMBER_MAX
"""Behind every message: what lies before it is the last one."""

_PEEKS: Final[dict[int, bool]] = {Action.PEEK_CURRENT: False, Action.PEEK_NEXT: True}
"""Whether the cursor moves on first."""
_LOOKUPS: Final[dict[int, tuple[SeekAction, bool]]] = {
    Action.LOOKUP_PEEK_CURRENT: (SeekAction.CURRENT, True),
    Action.LOOKUP_PEEK_NEXT: (SeekAction.NEXT, True),
    Action.LOOKUP_PEEK_PREVIOUS: (SeekAction.PREVIOUS, True),
    Action.LOOKUP_RECEIVE_CURRENT: (SeekAction.CURRENT, False),
    Action.LOOKUP_RECEIVE_NEXT: (SeekAction.NEXT, False),
    Action.LOOKUP_RECEIVE_PREVIOUS: (SeekAction.PREVIOUS, False),
}
"""Which message, and whether it stays."""


class RemoteQueue:
    """A queue that a caller has open."""

    def __init__(
        self, context: bytes, handle: int, access: AccessMode, subqueue: str, transactional: bool
    ) -> None:
        self.context = context
        self.handle = handle
        self.access = access
        self.subqueue = subqueue
        self.transactional = transactional
        self.move_context: int | None = None
        self.cursors: dict[int, int] = {}
        self.last_cursor = 0
        self.making_count = 0
        self.waiting: dict[int, int] = {}
        """Numbers of calls that wait for a message, by the number of the request."""
        self.received: dict[int, int] = {}
        """Lookup identifiers of messages that the caller has, by the number of the request."""

    def knows(self, request: int) -> bool:
        """Whether a request with this number is not over yet."""
        return request in self.waiting or request in self.received

    def problem_to_end(self, request: int) -> int:
        """Return why there is nothing to end. [MQRR 3.1.4.9]"""
        if request in self.waiting:
            return MessageNotFound.code
        return InvalidParameter.code if self.received or self.waiting else InvalidHandle.code


class RemoteReading:
    """A read without an answer."""

    def __init__(self, call: int, queue: RemoteQueue, request: rpc.StartReceive) -> None:
        self.call = call
        self.queue = queue
        self.request = request
        self.is_unwanted = False


def name_of(name: QueueFormat) -> FormatName | None:
    """Return the name of a queue, or None for what names none."""
    try:
        return name.name()
    except IllegalName:
        return None


def subqueue_of(name: FormatName) -> str:
    """Return the name of the subqueue, if it is one."""
    if isinstance(name, DirectFormatName) and isinstance(name.queue, LocalQueueName):
        return name.queue.subqueue or ""
    return ""


def makes_sense(request: rpc.StartReceive) -> bool:
    """Whether the parameters of a read fit each other. [MQRR 3.1.4.7]"""
    if request.action == Action.PEEK_NEXT:
        return not request.lookup_id and request.cursor != 0
    if request.action in (Action.RECEIVE, Action.PEEK_CURRENT):
        return not request.lookup_id
    # To receive what lies before a message, one has to name that, too.
    is_alone = request.lookup_id != 0 and not request.cursor and not request.timeout_ms
    return request.action in _LOOKUPS and is_alone


def receives(request: rpc.StartReceive) -> bool:
    """Whether a message is to be taken out, which goes in two steps for every action (R-2)."""
    if request.action == Action.RECEIVE:
        return True
    return request.action in _LOOKUPS and not _LOOKUPS[request.action][1]


def read_request(queue: RemoteQueue, request: rpc.StartReceive) -> api.AnyRequest:
    """Return what the queue manager is asked for a read."""
    if request.action in _LOOKUPS:
        action, peek = _LOOKUPS[request.action]
        lookup_id = min(request.lookup_id, LOOKUP_ID_MAX)
        return api.Seek(queue.handle, action.value, lookup_id, peek=peek, lock=not peek)
    timeout_ms = None if request.timeout_ms == INFINITE_MS else request.timeout_ms
    return api.Receive(
        queue.handle,
        timeout_ms=timeout_ms,
        peek=request.action in _PEEKS,
        cursor=queue.cursors.get(request.cursor, 0),
        next=_PEEKS.get(request.action, False),
        lock=request.action not in _PEEKS,
    )


def standing_of(entry: api.Entry, queue: RemoteQueue) -> Standing:
    """Return what the queue knows of a message."""
    return Standing(entry.abort_count, entry.move_count, entry.moved_time_s, queue.subqueue)


def result(call: int, code: int) -> Return:
    """Answer with nothing but a code."""
    return Return(call, rpc.RESULT.encode(rpc.Result(code)))


def cursor_result(call: int, cursor: int, code: int) -> Return:
    """Answer with a cursor, or with why there is none."""
    return Return(call, rpc.CURSOR_MADE.encode(rpc.CursorMade(cursor, code)))


def nothing_received(call: int, code: int) -> Return:
    """Answer a read with why there is no message."""
    return Return(call, rpc.RECEIVED.encode(rpc.Received(0, 0, (), code)))


def passed_on(call: int, reply: api.AnyReply, now: Instant) -> list[Output]:
    """Answer with how it went at the queue manager."""
    del now
    return [result(call, code_of(reply))]


def ignored(reply: api.AnyReply, now: Instant) -> list[Output]:
    """Have nothing to say to a reply."""
    del reply, now
    return []
