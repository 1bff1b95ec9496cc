"""Packets that the adversary makes: any source, any destination, any number."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from openmsmq.model.identity import NIL_GUID, Guid, MessageId, SequenceId
from openmsmq.model.limits import INFINITE_S
from openmsmq.wire import message_bytes
from openmsmq.wire.bodies.acknowledgments import ORDER_ACK_CLASS, FinalAck, OrderAck
from openmsmq.wire.bodies.order_packets import order_packet
from openmsmq.wire.headers import user
from openmsmq.wire.headers.base import BaseHeader
from openmsmq.wire.headers.message_properties import MessageProperties
from openmsmq.wire.headers.queue_names import DirectName, PrivateOnDestination, QueueName
from openmsmq.wire.headers.transaction import TransactionHeader
from openmsmq.wire.headers.user import UserHeader
from openmsmq.wire.packets import UserMessage, decode, encode

if TYPE_CHECKING:
    import random

    from openmsmq.sim.hostile.overheard import Heard
    from openmsmq.sim.node import Node

_MARK: Final = re.compile(rb"<x(\d{6})>")
_INVENTED: Final = b"\xee\xee\xee\xee"


class Forgery(msgspec.Struct, frozen=True):
    """A message that the adversary has made."""

    number: int
    source: Guid
    """In whose name."""
    message_class: int
    is_barred: bool
    """Whether its source is an honest node that its target knows, so that it must not come in."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a forged message says of itself."""

    source: Guid
    destination: QueueName
    manager: Guid = NIL_GUID
    admin: QueueName = None
    response: QueueName = None
    acknowledge: int = 0
    flags: int = 0
    transaction: TransactionHeader | None = None
    message_class: int = 0
    correlation: bytes = bytes(20)
    message_number: int = 0
    sent_time_s: int = 0
    time_to_reach_queue_s: int = INFINITE_S
    time_to_be_received_s: int = INFINITE_S
    size_bytes: int = 0
    """How many bytes its body has beyond its mark."""
    tail: bytes = b""


def make(wanted: Wanted, number: int) -> bytes:
    """Write a message with the mark of the adversary."""
    body = b"<x%06d>" % number + bytes(wanted.size_bytes)
    return encode(
        UserMessage(
            UserHeader(
                wanted.source,
                wanted.manager,
                wanted.time_to_be_received_s,
                wanted.sent_time_s,
                wanted.message_number,
                wanted.flags,
                wanted.destination,
                wanted.admin,
                wanted.response,
            ),
            MessageProperties.of(
                body,
                message_class=wanted.message_class,
                correlation_id=wanted.correlation,
                acknowledge=wanted.acknowledge,
            ),
            BaseHeader(3, wanted.time_to_reach_queue_s),
            wanted.transaction,
            tail=wanted.tail,
        )
    )


def mark_in(packet: bytes) -> int | None:
    """Find which forgery some bytes are."""
    found = _MARK.search(packet)
    return None if found is None else int(found[1])


def invented(rng: random.Random) -> Guid:
    """Invent a queue manager."""
    return Guid(_INVENTED + rng.randbytes(12))


def is_invented(identifier: bytes) -> bool:
    """Whether the adversary has invented a queue manager."""
    return identifier.startswith(_INVENTED)


# Names of queues.


def name_at(node: Node, queue: str, rng: random.Random) -> tuple[Guid, QueueName]:
    """Name a queue of a node, in one of the ways there are."""
    way = rng.randrange(3)
    if way == 0:
        return NIL_GUID, DirectName(f"TCP:{node.address}\\{queue}")
    if way == 1:
        return NIL_GUID, DirectName(f"OS:{node.name}\\{queue}")
    shelf = node.world.books.disks.watches[node.index].by_path.get(queue)
    return node.identifier, PrivateOnDestination(shelf.number if shelf else rng.randrange(1, 20))


# Acknowledgments.


def _acknowledgment(
    ack: OrderAck | FinalAck, message_class: int, heard: Heard, source: Guid, rng: random.Random
) -> bytes:
    to = heard.sender.identifier if rng.random() < 0.5 else heard.sender.address
    number = rng.getrandbits(31)
    return encode(order_packet(ack, message_class, source=source, to=to, message_number=number))


def order_ack(heard: Heard, source: Guid, ahead: int, rng: random.Random) -> bytes:
    """Tell a sender that its sequence has arrived up to what was overheard, or beyond."""
    place = place_of(heard.packet)
    ack = OrderAck.up_to(place.sequence, place.number + ahead)
    return _acknowledgment(ack, ORDER_ACK_CLASS, heard, source, rng)


def final_ack(
    heard: Heard, source: Guid, message_class: int, off: int, rng: random.Random
) -> bytes:
    """Tell the source of a message how it ended, whatever happened to it."""
    place = place_of(heard.packet)
    message = MessageId(
        Guid(message_bytes.source(heard.packet)), message_bytes.message_number(heard.packet) + off
    )
    sequence = place.sequence if rng.random() < 0.7 else SequenceId(1, 1)
    ack = FinalAck(sequence, place.number + off, place.previous_number, message)
    return _acknowledgment(ack, message_class, heard, source, rng)


def place_of(packet: bytes) -> TransactionHeader:
    """Read the place of a message in its sequence."""
    decoded = decode(packet)
    assert isinstance(decoded, UserMessage)
    assert decoded.transaction is not None
    return decoded.transaction


# Changes of what was overheard.


def changed(packet: bytes, *, number: int | None = None, hops: int | None = None) -> bytes:
    """Return a packet with another message number or hop count; a session header is taken off."""
    decoded = decode(packet)
    assert isinstance(decoded, UserMessage)
    header = decoded.user
    if number is not None:
        header = msgspec.structs.replace(header, message_number=number)
    if hops is not None:
        header = msgspec.structs.replace(header, flags=header.flags & ~user.HOP_COUNT | hops)
    return encode(msgspec.structs.replace(decoded, user=header, session=None))


def destination_of(packet: bytes) -> tuple[Guid, QueueName]:
    """Read where a packet goes, as it says it itself."""
    decoded = decode(packet)
    assert isinstance(decoded, UserMessage)
    return decoded.user.destination_manager, decoded.user.destination
