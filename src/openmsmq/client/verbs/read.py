"""How an application reads the messages of a queue, as steps.

Times are seconds, and None is for ever.
"""

from __future__ import annotations

import math

import msgspec

from openmsmq.api import messages as api
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.client.options import one_of
from openmsmq.client.queue import LOCKED, CursorHandle, QueueHandle
from openmsmq.client.steps import Steps, Until, ask, failure
from openmsmq.client.verbs.transactions import TransactionHandle, number_of
from openmsmq.model.errors import BufferOverflow, StaleHandle
from openmsmq.model.identity import MessageId
from openmsmq.model.queue import AccessMode, SeekAction

# From the front.


def receive(
    queue: QueueHandle,
    timeout: float | None = None,
    *,
    transaction: TransactionHandle | None = None,
    body_max_bytes: int | None = None,
) -> Steps[ReceivedMessage]:
    """Take the first message, waiting for one; `ReceiveTimeout` when none comes in time.

    A larger body than `body_max_bytes` is a `BufferOverflow`, and the message stays. So it is with
    all verbs that have this option.
    """
    return (yield from _receive(queue, 1, timeout, False, transaction, body_max_bytes))[0]


def receive_many(
    queue: QueueHandle,
    count: int,
    timeout: float | None = None,
    *,
    transaction: TransactionHandle | None = None,
    body_max_bytes: int | None = None,
) -> Steps[list[ReceivedMessage]]:
    """Take up to `count` messages that are there, waiting only for the first."""
    return (yield from _receive(queue, count, timeout, False, transaction, body_max_bytes))


def peek(
    queue: QueueHandle, timeout: float | None = None, *, body_max_bytes: int | None = None
) -> Steps[ReceivedMessage]:
    """Look at the first message and leave it, waiting for one."""
    return (yield from _receive(queue, 1, timeout, True, None, body_max_bytes))[0]


def peek_many(
    queue: QueueHandle,
    count: int,
    timeout: float | None = None,
    *,
    body_max_bytes: int | None = None,
) -> Steps[list[ReceivedMessage]]:
    """Look at up to `count` messages from the front and leave them."""
    return (yield from _receive(queue, count, timeout, True, None, body_max_bytes))


def _receive(
    queue: QueueHandle,
    count: int,
    timeout: float | None,
    peeking: bool,
    transaction: TransactionHandle | None,
    body_max_bytes: int | None,
) -> Steps[list[ReceivedMessage]]:
    number = number_of(transaction, queue.context)
    if queue.has_late and not peeking:
        kept = yield from _late(queue, number)
        if kept is not None:
            return [ReceivedMessage(kept, queue.formatter)]
    access = AccessMode.PEEK if peeking else AccessMode.RECEIVE
    handle = queue.handle(access) or (yield from queue.opening(access))
    reply = yield api.Receive(
        handle,
        count,
        _milliseconds(timeout),
        peeking,
        transaction=number,
        body_max_bytes=body_max_bytes,
    )
    return _messages(queue, reply)


def _late(queue: QueueHandle, number: int) -> Steps[api.Entry | None]:
    """Return a message whose reader had given up just when it came, if there is one."""
    if not queue.is_settled():
        yield Until(queue.is_settled)
    return queue.take_kept(number)


# In two steps.


def begin_receive(
    queue: QueueHandle, timeout: float | None = None, *, body_max_bytes: int | None = None
) -> Steps[ReceivedMessage]:
    """Lock the first message, waiting for one: others do not see it until `end_receive`.

    The lock ends with the connection, and then others have the message again.
    """
    if queue.has_late:
        kept = yield from _late(queue, LOCKED)
        if kept is not None:
            return ReceivedMessage(kept, queue.formatter)
    handle = queue.handle(AccessMode.RECEIVE) or (yield from queue.opening(AccessMode.RECEIVE))
    wait_ms = _milliseconds(timeout)
    reply = yield api.Receive(handle, 1, wait_ms, body_max_bytes=body_max_bytes, lock=True)
    (message,) = _messages(queue, reply)
    queue.locked(handle, [message.lookup_id])
    return message


def begin_receive_by_lookup_id(queue: QueueHandle, lookup_id: int) -> Steps[ReceivedMessage]:
    """Lock the message at a lookup identifier: others do not see it until `end_receive`.

    Never waits: `MessageNotFound`, or `MessageLocked` while somebody else has it.
    """
    handle = queue.handle(AccessMode.RECEIVE) or (yield from queue.opening(AccessMode.RECEIVE))
    reply = yield api.Seek(handle, SeekAction.CURRENT.value, lookup_id, lock=True)
    (message,) = _messages(queue, reply)
    queue.locked(handle, [message.lookup_id])
    return message


def end_receive(
    queue: QueueHandle, message: ReceivedMessage | int, *, remove: bool = True
) -> Steps[None]:
    """Take a locked message out of its queue, or with `remove=False` give it back to others."""
    lookup_id = message if isinstance(message, int) else message.lookup_id
    handle = queue.unlocking(lookup_id)
    if handle is not None:
        yield from ask(api.EndReceive(handle, lookup_id, remove))
    queue.unlocked(lookup_id)
    if handle is None and remove:
        raise StaleHandle(
            f"the connection was lost, and with it the lock of lookup id {lookup_id} in "
            f"{queue.name}: others may have received it"
        )


def _messages(queue: QueueHandle, reply: api.AnyReply) -> list[ReceivedMessage]:
    if type(reply) is not api.Entries:
        raise failure(reply)
    formatter = queue.formatter
    return [ReceivedMessage(entry, formatter) for entry in reply.entries]


def _milliseconds(timeout: float | None) -> int | None:
    return None if timeout is None else max(0, math.ceil(timeout * 1000))


# By identifier.


def receive_by_id(
    queue: QueueHandle,
    message_id: MessageId | bytes | str,
    timeout: float | None = 0,
    *,
    transaction: TransactionHandle | None = None,
    body_max_bytes: int | None = None,
) -> Steps[ReceivedMessage]:
    r"""Take the message with this identifier: a `MessageId`, its bytes, or `{guid}\number`."""
    request = api.Find(0, identifier_bytes(message_id), body_max_bytes=body_max_bytes)
    return (yield from _find(queue, request, timeout, transaction))


def peek_by_id(
    queue: QueueHandle,
    message_id: MessageId | bytes | str,
    timeout: float | None = 0,
    *,
    body_max_bytes: int | None = None,
) -> Steps[ReceivedMessage]:
    """Look at the message with this identifier."""
    wanted = identifier_bytes(message_id)
    request = api.Find(0, wanted, peek=True, body_max_bytes=body_max_bytes)
    return (yield from _find(queue, request, timeout, None))


def receive_by_correlation_id(
    queue: QueueHandle,
    correlation_id: MessageId | bytes | str,
    timeout: float | None = 0,
    *,
    transaction: TransactionHandle | None = None,
    body_max_bytes: int | None = None,
) -> Steps[ReceivedMessage]:
    """Take the first message with this correlation identifier: the answer to a request."""
    request = api.Find(0, None, identifier_bytes(correlation_id), body_max_bytes=body_max_bytes)
    return (yield from _find(queue, request, timeout, transaction))


def peek_by_correlation_id(
    queue: QueueHandle,
    correlation_id: MessageId | bytes | str,
    timeout: float | None = 0,
    *,
    body_max_bytes: int | None = None,
) -> Steps[ReceivedMessage]:
    """Look at the first message with this correlation identifier."""
    wanted = identifier_bytes(correlation_id)
    request = api.Find(0, None, wanted, peek=True, body_max_bytes=body_max_bytes)
    return (yield from _find(queue, request, timeout, None))


def identifier_bytes(identifier: MessageId | bytes | str) -> bytes:
    """Return the 20 bytes of an identifier, however it is given."""
    if isinstance(identifier, str):
        identifier = MessageId.parse(identifier)
    return identifier.to_bytes() if isinstance(identifier, MessageId) else identifier


def _find(
    queue: QueueHandle,
    request: api.Find,
    timeout: float | None,
    transaction: TransactionHandle | None,
) -> Steps[ReceivedMessage]:
    access = AccessMode.PEEK if request.peek else AccessMode.RECEIVE
    handle = queue.handle(access) or (yield from queue.opening(access))
    reply = yield msgspec.structs.replace(
        request,
        handle=handle,
        timeout_ms=_milliseconds(timeout),
        transaction=number_of(transaction, queue.context),
    )
    return _messages(queue, reply)[0]


def receive_by_lookup_id(
    queue: QueueHandle,
    lookup_id: int = 0,
    seek: SeekAction | str = SeekAction.CURRENT,
    *,
    transaction: TransactionHandle | None = None,
    allow_peek: bool = False,
    body_max_bytes: int | None = None,
) -> Steps[ReceivedMessage]:
    """Take the message at a lookup identifier, or the one before or behind it.

    `seek` is `first`, `previous`, `current`, `next` or `last`. Never waits: `MessageNotFound`.
    With `allow_peek`, others can look at the message until the transaction has ended.
    """
    handle = queue.handle(AccessMode.RECEIVE) or (yield from queue.opening(AccessMode.RECEIVE))
    reply = yield api.Seek(
        handle,
        one_of(SeekAction, seek, "seek").value,
        lookup_id,
        transaction=number_of(transaction, queue.context),
        allow_peek=allow_peek,
        body_max_bytes=body_max_bytes,
    )
    return _messages(queue, reply)[0]


def peek_by_lookup_id(
    queue: QueueHandle,
    lookup_id: int = 0,
    seek: SeekAction | str = SeekAction.CURRENT,
    *,
    body_max_bytes: int | None = None,
) -> Steps[ReceivedMessage]:
    """Look at the message at a lookup identifier, or at the one before or behind it."""
    handle = queue.handle(AccessMode.PEEK) or (yield from queue.opening(AccessMode.PEEK))
    action = one_of(SeekAction, seek, "seek").value
    reply = yield api.Seek(handle, action, lookup_id, True, body_max_bytes=body_max_bytes)
    return _messages(queue, reply)[0]


# Cursors.


def cursor_peek(
    cursor: CursorHandle, timeout: float | None = 0, *, body_max_bytes: int | None = None
) -> Steps[ReceivedMessage]:
    """Look at the message where the cursor is: the first one at the beginning."""
    return (yield from _at_cursor(cursor, timeout, True, False, None, body_max_bytes))


def cursor_next(
    cursor: CursorHandle, timeout: float | None = 0, *, body_max_bytes: int | None = None
) -> Steps[ReceivedMessage]:
    """Move on and look at the message there; at the beginning, look at the first one.

    A cursor has moved on even if the body there is larger than `body_max_bytes`: then `peek`.
    """
    return (yield from _at_cursor(cursor, timeout, True, cursor.started, None, body_max_bytes))


def cursor_receive(
    cursor: CursorHandle,
    timeout: float | None = 0,
    *,
    transaction: TransactionHandle | None = None,
    body_max_bytes: int | None = None,
) -> Steps[ReceivedMessage]:
    """Take the message where the cursor is."""
    return (yield from _at_cursor(cursor, timeout, False, False, transaction, body_max_bytes))


def cursor_close(cursor: CursorHandle) -> Steps[None]:
    """Close the cursor."""
    number = cursor.closed()
    if number is not None:
        yield from ask(api.CloseCursor(number))


def _at_cursor(
    cursor: CursorHandle,
    timeout: float | None,
    peeking: bool,
    moving: bool,
    transaction: TransactionHandle | None,
    body_max_bytes: int | None,
) -> Steps[ReceivedMessage]:
    handle, number = yield from cursor.numbers()
    reply = yield api.Receive(
        handle,
        1,
        _milliseconds(timeout),
        peeking,
        number,
        moving,
        number_of(transaction, cursor.queue.context),
        body_max_bytes=body_max_bytes,
    )
    if not isinstance(reply, api.Failed) or reply.code == BufferOverflow.code:
        cursor.started = True
    return _messages(cursor.queue, reply)[0]
