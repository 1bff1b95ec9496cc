"""A message sent again and taken out of where it lies, so that it is neither lost nor doubled.

Where both queues are transactional, both happen in one transaction. Otherwise the message is
locked, sent, and then taken out: should who does it end in between, it is in both places, and never
in none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, TypeAlias

import msgspec

from openmsmq.client.aio import Queue, QueueManager
from openmsmq.client.messages.again import PacketRewriter
from openmsmq.client.messages.received import ReceivedMessage
from openmsmq.client.verbs.transactions import SINGLE_MESSAGE, TransactionLike
from openmsmq.model.errors import RemoteMachineNotAvailable, UnsupportedFormatName
from openmsmq.model.identity import MessageId
from openmsmq.model.names import DirectFormatName, parse_format_name

FETCHED_MAX_COUNT: Final = 500
"""Messages that are asked for at once while a queue is walked through."""

FETCHED_MAX_BYTES: Final = 4 << 20
"""Bytes after which such an answer takes no more messages."""

Sending: TypeAlias = Callable[[Queue, ReceivedMessage, TransactionLike], Awaitable[MessageId]]
"""What sends a message, changed or not, to a queue; gives as what it was sent."""


class Way(msgspec.Struct, frozen=True):
    """From one queue to another, and whether transactions lead there."""

    source_name: str
    target_name: str
    gives: bool
    """Whether the source is transactional."""
    takes: bool | None
    """Whether the target is; None for a queue that cannot be asked."""

    def is_transactional(self, message: ReceivedMessage) -> bool:
        """Whether a message is sent there in a transaction."""
        return message.transactional if self.takes is None else self.takes

    def is_together(self, message: ReceivedMessage) -> bool:
        """Whether it is sent and taken out in one transaction."""
        return self.gives and self.is_transactional(message)


async def find_way(manager: QueueManager, source_name: str, target_name: str) -> Way:
    """Ask about both queues; raises if the target is not there."""
    gives = (await manager.queue(source_name).properties()).transactional
    try:
        takes: bool | None = (await manager.queue(target_name).properties()).transactional
    except RemoteMachineNotAvailable:
        # It waits in an outgoing queue then, as it did before.
        takes = None
    return Way(source_name, target_name, gives, takes)


async def send_again(
    manager: QueueManager, way: Way, lookup_id: int, message_id: str, send: Sending
) -> MessageId | None:
    """Send the message at a lookup identifier by a way, and take it out of its queue.

    Returns as what it was sent; None if another one than `message_id` says was there.
    """
    async with manager.queue(way.source_name) as source, manager.queue(way.target_name) as target:
        found = await source.peek_by_lookup_id(lookup_id)
        if str(found.message_id) != message_id:
            return None
        if way.is_together(found):
            async with await manager.begin() as transaction:
                taken = await source.receive_by_lookup_id(lookup_id, transaction=transaction)
                sent = await send(target, taken, transaction)
            return sent
        held = await source.begin_receive_by_lookup_id(lookup_id)
        try:
            alone = SINGLE_MESSAGE if way.is_transactional(held) else None
            sent = await send(target, held, alone)
        except BaseException:
            await source.end_receive(held, remove=False)
            raise
        await source.end_receive(held)
        return sent


async def send_copy(
    manager: QueueManager, way: Way, message: ReceivedMessage, send: Sending
) -> MessageId:
    """Send a message by a way and leave it where it is."""
    transaction = SINGLE_MESSAGE if way.is_transactional(message) else None
    async with manager.queue(way.target_name) as target:
        return await send(target, message, transaction)


async def send_as_it_was(
    target: Queue, message: ReceivedMessage, transaction: TransactionLike
) -> MessageId:
    """Send the packet of a message as it is, but addressed to another queue."""
    address = await _address(target, message)
    rewriter = PacketRewriter(transactional=transaction is not None, format_name=address)
    packet = rewriter.rewrite(message.packet_bytes)
    return (await target.send_packets([packet], transaction=transaction))[0]


async def _address(target: Queue, message: ReceivedMessage) -> str | None:
    """Return what a packet to a queue says; None if it says that already."""
    try:
        return (await target.properties()).format_name
    except RemoteMachineNotAvailable:
        if target.name == str(message.destination):
            return None
    if not isinstance(parse_format_name(target.format_name), DirectFormatName):
        raise UnsupportedFormatName(f"{target.name}: name a queue elsewhere by DIRECT=")
    return target.format_name


async def walk(queue: Queue, stop: int | None = None) -> AsyncIterator[ReceivedMessage]:
    """Look at the messages below an arrival number, oldest arrival first, and leave them.

    Without one, those that are there now: what comes meanwhile is not met.
    """
    if stop is None:
        stop = (await queue.properties()).last_arrival_number + 1
    start = 0
    while entries := await queue.fetch_range(start, stop, FETCHED_MAX_COUNT, FETCHED_MAX_BYTES):
        for entry in entries:
            yield ReceivedMessage(entry, queue.formatter)
        start = entries[-1].arrival_number + 1
