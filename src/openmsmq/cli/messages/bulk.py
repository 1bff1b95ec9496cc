"""Work on many messages at once: packets sent as they are, moves with many calls under way."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import msgspec

from openmsmq.api import messages as api
from openmsmq.client.queue import QueueHandle
from openmsmq.client.steps import Ahead, Collect, Steps, failure
from openmsmq.client.verbs.transactions import TransactionLike, number_of
from openmsmq.model.errors import InvalidParameter, MessageLocked, MessageNotFound
from openmsmq.model.identity import SequenceId
from openmsmq.model.message import MessageClass, is_negative
from openmsmq.model.names import DirectFormatName, parse_format_name
from openmsmq.model.queue import AccessMode
from openmsmq.wire import packets
from openmsmq.wire.errors import DecodeError
from openmsmq.wire.headers.queue_names import DirectName
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.resending import unsigned

if TYPE_CHECKING:
    from openmsmq.client.blocking import Queue

MOVES_AHEAD_MAX_COUNT: Final = 256
"""Moves under way at the same time; the queue manager makes them durable together."""

# The queue manager numbers the messages of a transaction.
_NOT_NUMBERED: Final = TransactionHeader(SequenceId(0, 0), 0)


class PacketRewriter:
    """Makes a stored packet fit to be sent again: to a queue, or to where it was sent before."""

    def __init__(self, *, transactional: bool, format_name: str | None = None) -> None:
        self._destination: DirectName | None = None
        if format_name is not None:
            name = parse_format_name(format_name)
            assert isinstance(name, DirectFormatName), "a queue manager shows direct names"
            self._destination = DirectName(name.wire_text)
        self._transactional = transactional

    def rewrite(self, packet: bytes) -> bytes:
        """Address a packet to its queue, in a transaction if it needs one; the rest stays.

        Its identifier and time are given anew when it is sent.
        """
        try:
            message = packets.decode(packet)
        except DecodeError as error:
            raise InvalidParameter(f"not a message: {error}") from None
        if not isinstance(message, packets.UserMessage):
            raise InvalidParameter(f"a {type(message).__name__} is not a message")
        properties = message.properties
        if is_negative(properties.message_class) and message.user.journal_on_failure:
            # A dead letter tells its reason by its class; sent again, it is itself again.
            properties = msgspec.structs.replace(properties, message_class=MessageClass.NORMAL)
        user = message.user
        if self._destination is not None:
            user = msgspec.structs.replace(user, destination=self._destination)
        return packets.encode(
            msgspec.structs.replace(
                unsigned(message),
                user=user,
                properties=properties,
                transaction=_NOT_NUMBERED if self._transactional else None,
            )
        )


def send_packets(queue: Queue, batch: list[bytes], transaction: TransactionLike) -> None:
    """Send whole packets, all or none of them."""

    def steps() -> Steps[None]:
        handle = queue.handle(AccessMode.SEND) or (yield from queue.opening(AccessMode.SEND))
        reply = yield api.Send(handle, batch, number_of(transaction))
        if not isinstance(reply, api.Sent):
            raise failure(reply)

    queue.connection.run(steps, queue)


class Moved(msgspec.Struct):
    """What became of messages that were to be moved."""

    count: int = 0
    left_count: int = 0
    """Those that somebody else took or holds."""


def move_many(queue: Queue, lookup_ids: Iterable[int], target: QueueHandle) -> Moved:
    """Move messages to a subqueue or back."""
    moved = Moved()
    queue.connection.run(lambda: _moving(queue, lookup_ids, target, moved), queue)
    return moved


def _moving(
    queue: Queue, lookup_ids: Iterable[int], target: QueueHandle, moved: Moved
) -> Steps[None]:
    handle = queue.handle(AccessMode.RECEIVE) or (yield from queue.opening(AccessMode.RECEIVE))
    there = target.handle(AccessMode.MOVE) or (yield from target.opening(AccessMode.MOVE))
    under_way: deque[int] = deque()
    refused: list[Exception] = []
    for lookup_id in lookup_ids:
        if len(under_way) == MOVES_AHEAD_MAX_COUNT:
            _settle((yield Collect(under_way.popleft())), moved, refused)
        if refused:
            break
        under_way.append((yield Ahead(api.Move(handle, lookup_id, there))))
    while under_way:
        _settle((yield Collect(under_way.popleft())), moved, refused)
    if refused:
        raise refused[0]


def _settle(reply: api.AnyReply, moved: Moved, refused: list[Exception]) -> None:
    if isinstance(reply, api.Done):
        moved.count += 1
        return
    error = failure(reply)
    if isinstance(error, MessageNotFound | MessageLocked):
        moved.left_count += 1
    else:
        refused.append(error)
