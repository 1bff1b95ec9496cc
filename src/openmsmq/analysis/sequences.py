"""A sequence of transactional messages, as its messages and order acknowledgments show it."""

from __future__ import annotations

from typing import Generic

from openmsmq.analysis.events import T
from openmsmq.wire.bodies.acknowledgments import FinalAck, OrderAck
from openmsmq.wire.bodies.order_packets import acknowledgment_in
from openmsmq.wire.packets import UserMessage


def acknowledgment(packet: UserMessage) -> OrderAck | FinalAck | None:
    """Return the order or final acknowledgment that a message brings, whoever it is for."""
    if not packet.properties.message_class:
        # An application's message: nearly all are, and need no closer look.
        return None
    return acknowledgment_in(packet, packet.user.destination_manager)


class Sequence(Generic[T]):
    """How far one sequence was sent and acknowledged, and which messages its numbers mean."""

    __slots__ = ("_acknowledged", "_places", "_sent", "_unacknowledged")

    def __init__(self) -> None:
        self._sent: int | None = None
        self._acknowledged: int | None = None
        self._places: dict[int, T] = {}
        self._unacknowledged: dict[int, T] = {}

    def sent(self, number: int, previous: int) -> int | None:
        """Take a message that was not seen before.

        Returns the last number seen if messages between it and this one are missing.
        """
        before = self._sent
        self._sent = number if before is None else max(before, number)
        return before if before is not None and previous > before else None

    def acknowledged(self, number: int) -> int | None:
        """Take an order acknowledgment; returns what was acknowledged before if that was more."""
        before = self._acknowledged
        self._acknowledged = number if before is None else max(before, number)
        return before if before is not None and number < before else None

    def place(self, number: int, message: T) -> T:
        """Return the message that has a number: this one, or another that had it before."""
        if number not in self._places:
            self._places[number] = self._unacknowledged[number] = message
        return self._places[number]

    def take_up_to(self, number: int) -> list[tuple[int, T]]:
        """Return the places up to a number that no earlier acknowledgment has reached, once."""
        found = [place for place in self._unacknowledged.items() if place[0] <= number]
        for reached, _ in found:
            del self._unacknowledged[reached]
        return found
