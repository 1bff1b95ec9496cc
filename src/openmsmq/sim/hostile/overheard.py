"""What the adversary knows: every packet between others, as far back as it cares to remember."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

import msgspec

from openmsmq.wire import message_bytes
from openmsmq.wire.bodies import acknowledgments
from openmsmq.wire.headers import base

if TYPE_CHECKING:
    from openmsmq.sim.node import Node

REMEMBERED_COUNT: Final = 40
"""Packets of each kind that it remembers; the last ones are of most use."""

ORDER_LABEL: Final = acknowledgments.ORDER_LABEL.encode("utf-16-le")
"""By which order and final acknowledgments are known."""


class Heard(msgspec.Struct, frozen=True):
    """A packet that went from one honest node to another."""

    packet: bytes
    sender: Node
    receiver: Node
    is_transactional: bool = False
    """Whether it has a place in a sequence."""


class Overheard:
    """Packets by kind, and who has met whom."""

    def __init__(self) -> None:
        self.transactional: deque[Heard] = deque(maxlen=REMEMBERED_COUNT)
        self.plain: deque[Heard] = deque(maxlen=REMEMBERED_COUNT)
        self.acknowledgments: deque[Heard] = deque(maxlen=REMEMBERED_COUNT)
        """Order and final acknowledgments."""
        self.met: set[tuple[int, int]] = set()
        """Nodes and those of whom they have a sequence: they have acknowledged it, so it is on
        their disks."""

    def hear(self, packet: bytes, sender: Node, receiver: Node) -> Heard | None:
        """Remember a packet; gives it if it is a message."""
        if message_bytes.base_flags(packet) & base.INTERNAL:
            return None
        transactional = message_bytes.is_transactional(packet)
        heard = Heard(packet, sender, receiver, transactional)
        if transactional:
            self.transactional.append(heard)
        elif ORDER_LABEL in packet:
            self.acknowledgments.append(heard)
            if _is_from_and_to(packet, sender, receiver):
                self.met.add((sender.index, receiver.index))
        else:
            self.plain.append(heard)
        return heard


def _is_from_and_to(packet: bytes, sender: Node, receiver: Node) -> bool:
    """Whether a packet goes straight from its source to its destination."""
    named = f"TCP:{receiver.address}\\".encode("utf-16-le")
    return message_bytes.source(packet) == sender.identifier and (
        message_bytes.destination_manager(packet) == receiver.identifier or named in packet
    )
