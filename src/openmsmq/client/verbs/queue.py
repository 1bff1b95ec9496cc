"""What an application can do with a queue beside reading it, as steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Unpack, cast

import msgspec

from openmsmq.api import messages as api
from openmsmq.client.errors import ConnectionLost, OutcomeUnknown
from openmsmq.client.formatters.active_x import ActiveXFormatter
from openmsmq.client.messages.columns import Around, BodyColumn
from openmsmq.client.messages.outgoing import OutgoingMessage, SendOptions
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.client.options import one_of
from openmsmq.client.queue import QueueHandle
from openmsmq.client.steps import Ahead, Collect, Steps, ask, failure
from openmsmq.client.verbs.transactions import TransactionHandle, TransactionLike, number_of
from openmsmq.model.errors import InvalidParameter
from openmsmq.model.identity import Guid, MessageId
from openmsmq.model.queue import AccessMode, QueuePrivacy

SEND_MAX_COUNT: Final = 256
"""Messages in one call of `send_many`."""

SEND_MAX_BYTES: Final = 1 << 20
"""Bytes after which a call of `send_many` takes no more messages."""

_PROTECTION: Final = frozenset({"certificate", "encrypt"})
"""Options with which a packet is signed or encrypted."""

SENDS_AHEAD_MAX_COUNT: Final = 4
"""Calls of one `send_many` under way."""


def send(
    queue: QueueHandle,
    body: object = b"",
    *,
    transaction: TransactionLike = None,
    **options: Unpack[SendOptions],
) -> Steps[MessageId]:
    """Send a message: a body with options, or a whole `OutgoingMessage`.

    The answer comes when the message is as durable as it asks to be. To a transactional queue,
    send in a transaction, or with `SINGLE_MESSAGE`.
    """
    handle = queue.handle(AccessMode.SEND) or (yield from queue.opening(AccessMode.SEND))
    number = number_of(transaction, queue.context)
    builder, formatter = queue.builder, queue.formatter
    if isinstance(body, OutgoingMessage):
        body = _message(body, options)
        packet = builder.build(body, formatter, number != 0)
        if body.is_protected:
            packet = yield from _protected(queue, packet, body)
    else:
        packet = builder.build_with(body, options, formatter, number != 0)
        if not _PROTECTION.isdisjoint(options):
            packet = yield from _protected(queue, packet, OutgoingMessage(**options))
    reply = yield api.Send(handle, [packet], number)
    if type(reply) is not api.Sent:
        raise failure(reply)
    return MessageId(queue.context.manager, reply.numbers[0])


def send_many(
    queue: QueueHandle,
    bodies: Iterable[object],
    *,
    transaction: TransactionLike = None,
    **options: Unpack[SendOptions],
) -> Steps[list[MessageId]]:
    """Send many messages, bodies or whole `OutgoingMessage`s, with few calls under way at once.

    Each call is all or none; for all of them together use a transaction. When some are refused,
    the error's notes say how many were sent.
    """
    handle = queue.handle(AccessMode.SEND) or (yield from queue.opening(AccessMode.SEND))
    under_way: deque[int] = deque()
    sent: list[MessageId] = []
    refused: list[Exception] = []
    number = number_of(transaction, queue.context)
    protect = yield from queue.protecting(OutgoingMessage(**options))
    try:
        for packets in _packets(queue, bodies, options, number != 0, refused, protect):
            if len(under_way) == SENDS_AHEAD_MAX_COUNT:
                _settle(queue, (yield Collect(under_way.popleft())), sent, refused)
            if refused:
                break
            under_way.append((yield Ahead(api.Send(handle, packets, number))))
        while under_way:
            _settle(queue, (yield Collect(under_way.popleft())), sent, refused)
    except ConnectionLost as lost:
        # The messages that the iterable has given cannot be asked for again.
        raise OutcomeUnknown("send_many", f"{lost}; {len(sent)} were accepted before") from lost
    if refused:
        refused[0].add_note(f"{len(sent)} of the messages were sent.")
        raise refused[0]
    return sent


def send_packets(
    queue: QueueHandle, packets: Iterable[bytes], *, transaction: TransactionLike = None
) -> Steps[list[MessageId]]:
    """Send whole packets as they are, in one call, all or none of them; gives as what."""
    handle = queue.handle(AccessMode.SEND) or (yield from queue.opening(AccessMode.SEND))
    sent = yield from ask(api.Send(handle, list(packets), number_of(transaction, queue.context)))
    return [MessageId(queue.context.manager, number) for number in sent.numbers]


def _protected(queue: QueueHandle, packet: bytes, message: OutgoingMessage) -> Steps[bytes]:
    protect = yield from queue.protecting(message)
    return packet if protect is None else protect(packet)


def _wishes(message: OutgoingMessage) -> tuple[object, ...]:
    """Return how a message is to be protected."""
    if message.certificate is None:
        return None, message.encrypt
    return message.certificate, message.encrypt, message.signature


def _message(body: OutgoingMessage, options: SendOptions) -> OutgoingMessage:
    return msgspec.structs.replace(body, **options) if options else body


def _packets(
    queue: QueueHandle,
    bodies: Iterable[object],
    options: SendOptions,
    transactional: bool,
    refused: list[Exception],
    protect: Callable[[bytes], bytes] | None,
) -> Iterator[list[bytes]]:
    packets: list[bytes] = []
    size = 0
    builder, formatter = queue.builder, queue.formatter
    like = OutgoingMessage(**options)
    wishes = _wishes(like)
    try:
        if isinstance(bodies, BodyColumn) and protect is None and _keeps_bytes(queue, like):
            yield from _of_column(queue, bodies, like, transactional)
            return
        build = builder.series(like, formatter, transactional)
        for body in bodies:
            if isinstance(body, OutgoingMessage):
                message = _message(body, options)
                if _wishes(message) != wishes:
                    raise InvalidParameter(
                        "a message of many is to be protected in its own way: give certificate, "
                        "signature and encrypt to send_many, for all of them"
                    )
                packet = builder.build(message, formatter, transactional)
            else:
                packet = build(body)
            if protect is not None:
                packet = protect(packet)
            packets.append(packet)
            size += len(packet)
            if size >= SEND_MAX_BYTES or len(packets) == SEND_MAX_COUNT:
                yield packets
                packets, size = [], 0
    except Exception as error:
        # Raised only after the calls under way are settled; what was not sent yet stays unsent.
        refused.append(error)
        return
    if packets:
        yield packets


def _keeps_bytes(queue: QueueHandle, like: OutgoingMessage) -> bool:
    """Whether bodies that are bytes are sent as they are, and messages have labels of their own."""
    return isinstance(queue.formatter, ActiveXFormatter) and not like.label


def _of_column(
    queue: QueueHandle, column: BodyColumn, like: OutgoingMessage, transactional: bool
) -> Iterator[list[bytes]]:
    builder, formatter = queue.builder, queue.formatter

    def around(body_bytes: int, label: str) -> Around:
        one = msgspec.structs.replace(like, body=bytes(body_bytes), label=label)
        return builder.around_text(one, formatter, transactional)

    for packets in column.packets(around, SEND_MAX_COUNT, SEND_MAX_BYTES):
        # They are encoded as the call has them, so no encoder looks at each once more.
        yield cast("list[bytes]", packets)


def _settle(
    queue: QueueHandle, reply: api.AnyReply, sent: list[MessageId], refused: list[Exception]
) -> None:
    if isinstance(reply, api.Sent):
        sent += [MessageId(queue.context.manager, number) for number in reply.numbers]
    else:
        refused.append(failure(reply))


# Arrival numbers: how a stream of messages is read.


def fetch_range(
    queue: QueueHandle, start: int, stop: int, count: int = 1000, bytes_max: int = 4 << 20
) -> Steps[list[api.Entry]]:
    """Look at messages by arrival number, from `start` up to but without `stop`, as packets."""
    handle = queue.handle(AccessMode.PEEK) or (yield from queue.opening(AccessMode.PEEK))
    request = api.FetchRange(handle, start, stop, count, bytes_max)
    return (yield from ask(request)).entries


def remove_range(queue: QueueHandle, start: int, stop: int) -> Steps[int]:
    """Take out messages by arrival number, as if received; gives how many."""
    handle = queue.handle(AccessMode.RECEIVE) or (yield from queue.opening(AccessMode.RECEIVE))
    removed = 0
    while True:
        reply = yield from ask(api.RemoveRange(handle, start, stop))
        removed += reply.count
        start = reply.next_start
        if not start:
            return removed


def fetch_packets(
    queue: QueueHandle,
    start: int,
    stop: int,
    count: int = 10_000,
    bytes_max: int = 8 << 20,
    *,
    reader: str = "",
    checkpoint: str = "",
) -> Steps[api.Packets]:
    """Look at very many messages by arrival number, side by side in a few long byte strings.

    With `reader` and `checkpoint`, those that a query has reserved count as read from now on.
    """
    handle = queue.handle(AccessMode.PEEK) or (yield from queue.opening(AccessMode.PEEK))
    request = api.FetchPackets(handle, start, stop, count, bytes_max, reader, checkpoint)
    return (yield from ask(request))


def reserve(
    queue: QueueHandle,
    reader: str,
    start: int,
    *,
    count: int = 0,
    bytes_max: int = 0,
    below: int = 0,
) -> Steps[int]:
    """Keep messages for a reader from an arrival number on; gives where they end.

    Nobody else receives them before `complete` or `release`, and the same reader can reserve
    and fetch them again. 0 is no limit.
    """
    handle = queue.handle(AccessMode.RECEIVE) or (yield from queue.opening(AccessMode.RECEIVE))
    request = api.Reserve(handle, reader, start, count, bytes_max, below)
    return (yield from ask(request)).stop


def reserve_batch(
    queue: QueueHandle,
    reader: str,
    start: int,
    *,
    checkpoint: str,
    holder: str,
    is_new: bool = False,
    count: int = 0,
    bytes_max: int = 0,
    below: int = 0,
    epoch: str = "",
) -> Steps[api.Reserved]:
    """Keep messages for a query of a reader, which is known by its checkpoint.

    `holder` is the process that asks. The reply says whether another one reads, or whether the
    checkpoint has come farther already.
    """
    handle = queue.handle(AccessMode.RECEIVE) or (yield from queue.opening(AccessMode.RECEIVE))
    request = api.Reserve(
        handle, reader, start, count, bytes_max, below, checkpoint, holder, is_new, epoch
    )
    return (yield from ask(request))


def survey(queue: QueueHandle, start: int, stop: int, parts: int = 32) -> Steps[list[api.Part]]:
    """Ask how messages are spread over a range of arrival numbers, about as finely as asked for."""
    handle = queue.handle(AccessMode.PEEK) or (yield from queue.opening(AccessMode.PEEK))
    return (yield from ask(api.Survey(handle, start, stop, parts))).parts


def measure(
    queue: QueueHandle,
    start: int,
    *,
    count: int = 0,
    bytes_max: int = 0,
    below: int = 0,
    epoch: str = "",
) -> Steps[int]:
    """Ask how far so many messages reach from an arrival number on; gives where they end."""
    handle = queue.handle(AccessMode.PEEK) or (yield from queue.opening(AccessMode.PEEK))
    request = api.Measure(handle, start, count, bytes_max, below, epoch)
    return (yield from ask(request)).stop


def complete(queue: QueueHandle, reader: str, stop: int) -> Steps[int]:
    """Take out what a reader has reserved below an arrival number; gives how many."""
    removed = 0
    while True:
        handle = queue.handle(AccessMode.RECEIVE) or (yield from queue.opening(AccessMode.RECEIVE))
        reply = yield from ask(api.Complete(handle, reader, stop))
        removed += reply.count
        if not reply.more:
            return removed


def complete_batch(
    queue: QueueHandle, reader: str, stop: int, *, checkpoint: str, unread_too: bool = False
) -> Steps[bool]:
    """Take out what a query has reserved below an arrival number.

    False if that was not done, because nobody has fetched any of it.
    """
    while True:
        handle = queue.handle(AccessMode.RECEIVE) or (yield from queue.opening(AccessMode.RECEIVE))
        request = api.Complete(handle, reader, stop, checkpoint, unread_too)
        reply = yield from ask(request)
        if not reply.more:
            return not reply.unread


# The queue as a whole.


def purge(queue: QueueHandle) -> Steps[int]:
    """Delete all messages; gives how many."""
    handle = queue.handle(AccessMode.RECEIVE) or (yield from queue.opening(AccessMode.RECEIVE))
    return (yield from ask(api.Purge(handle))).count


def move(
    queue: QueueHandle,
    message: ReceivedMessage | int,
    target: QueueHandle | str,
    *,
    transaction: TransactionHandle | None = None,
) -> Steps[None]:
    """Move a message, named by itself or its lookup identifier, to a subqueue or back.

    `target` is a subqueue by its name, or any queue of the family.
    """
    lookup_id = message if isinstance(message, int) else message.lookup_id
    into = queue.beside(target) if isinstance(target, str) else target
    handle = queue.handle(AccessMode.RECEIVE) or (yield from queue.opening(AccessMode.RECEIVE))
    there = into.handle(AccessMode.MOVE) or (yield from into.opening(AccessMode.MOVE))
    yield from ask(api.Move(handle, lookup_id, there, number_of(transaction, queue.context)))


def properties(queue: QueueHandle) -> Steps[api.QueueStatus]:
    """Ask for the queue as its manager sees it now: properties and counts."""
    return (yield from ask(api.GetQueue(queue.name))).queues[0]


def count(queue: QueueHandle) -> Steps[int]:
    """Ask how many messages are in the queue, those that transactions hold included."""
    return (yield from properties(queue)).message_count


def change(
    queue: QueueHandle,
    *,
    label: str | None = None,
    journaling: bool | None = None,
    quota_kb: int | None = None,
    journal_quota_kb: int | None = None,
    authenticate: bool | None = None,
    privacy: QueuePrivacy | int | None = None,
    service_type: Guid | None = None,
    base_priority: int | None = None,
    multicast_address: str | None = None,
) -> Steps[api.QueueStatus]:
    """Change properties of the queue; what is left out stays as it is."""
    request = api.ChangeQueue(
        queue.name,
        label,
        journaling,
        quota_kb,
        journal_quota_kb,
        authenticate,
        None if privacy is None else one_of(QueuePrivacy, privacy, "privacy"),
        None if service_type is None else bytes(service_type),
        base_priority,
        multicast_address,
    )
    return (yield from ask(request)).queues[0]


def delete(queue: QueueHandle) -> Steps[None]:
    """Delete the queue with everything in it."""
    yield from ask(api.DeleteQueue(queue.name))


def open_queue(queue: QueueHandle, access: AccessMode) -> Steps[None]:
    """Open the queue now, and not when it is first used."""
    yield from queue.opening(one_of(AccessMode, access, "access"))


def close(queue: QueueHandle) -> Steps[None]:
    """Close the handles of the queue; waiting reads end, cursors are closed."""
    for handle in queue.closed():
        yield from ask(api.CloseQueue(handle))
