"""What the adversary knows: every packet between others, as far back as it cares to remember."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

import msgspec

from openmsmq.wire.headers import base, user
from openmsmq.wire.headers.internal import InternalType
from openmsmq.wire.outline import outline

if TYPE_CHECKING:
    from openmsmq.sim.node import Node

REMEMBERED_COUNT: Final = 40
"""Packets of each kind that it remembers; the last ones are of most use."""

_ORDER_LABEL: Final = "QM Ordering Ack".encode("utf-16-le")
_INTERNAL_TYPE: Final = 18
_TYPE_BITS: Final = 0x0F


class Heard(msgspec.Struct, frozen=True):
    """A packet that went from one honest node to another."""

    packet: bytes
    sender: Node
    receiver: Node

    @property
    def is_transactional(self) -> bool:
        """Whether it has a place in a sequence."""
        return bool(outline(self.packet).flags & user.TRANSACTION)


class Overheard:
    """Packets by kind, and who has met whom."""

    def __init__(self) -> None:
        self.transactional: deque[Heard] = deque(maxlen=REMEMBERED_COUNT)
        self.plain: deque[Heard] = deque(maxlen=REMEMBERED_COUNT)
        self.acknowledgments: deque[Heard] = deque(maxlen=REMEMBERED_COUNT)
        """Order and final acknowledgments."""
        self.met: set[tuple[int, int]] = set()
        """Nodes that have had an open session with each other, both ways round."""

    def hear(self, packet: bytes, sender: Node, receiver: Node) -> Heard | None:
        """Remember a packet; gives it if it is a message."""
        flags = int.from_bytes(packet[2:4], "little")
        if flags & base.INTERNAL:
            kind = packet[_INTERNAL_TYPE] & _TYPE_BITS
            if kind == InternalType.SESSION_ACK:
                self.met |= {(sender.index, receiver.index), (receiver.index, sender.index)}
            return None
        heard = Heard(packet, sender, receiver)
        if _ORDER_LABEL in packet:
            self.acknowledgments.append(heard)
        elif heard.is_transactional:
            self.transactional.append(heard)
        else:
            self.plain.append(heard)
        return heard
