"""Messages that cannot arrive: links and gates have failed for ever, and they are behind them.

A gate passes a message to the first next hop that it reaches, and nobody takes one back. So a
message may come to where no living hop leads on, though another way would have been open. That is
no defect. It is one if a message does not arrive that would, whichever living hop it takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from openmsmq.model.identity import Guid
from openmsmq.sim.enterprise import Enterprise
from openmsmq.sim.facts import Kind, SimMessage

if TYPE_CHECKING:
    from openmsmq.sim.node import Node
    from openmsmq.sim.store_watch import Lying
    from openmsmq.sim.world import World

_DESTINATION: Final = slice(32, 48)
_FLAGS: Final = 60


class Stranded:
    """What may stay where it is, by what is alive just now."""

    def __init__(self, world: World, enterprise: Enterprise) -> None:
        self._world = world
        self._enterprise = enterprise
        self._up = frozenset(node.index for node in world.nodes if node.up)
        self._known: dict[tuple[int, int], bool] = {}
        self._silent = self._who_may_hear_nothing()

    def excuses(self, node: Node, entry: Lying) -> bool:
        """Say whether an entry may lie in an outgoing queue, or wait for its end, for ever."""
        goal = self._goal(entry)
        if goal is None:
            return False
        if not self._sure(node.index, goal):
            return True
        message = self._world.books.messages.get(entry.message or 0)
        if message is None or not self._waits_for_acknowledgments(message, entry):
            return False
        # An acknowledgment may have come to a dead end on its way back; until the source hears of
        # it, it sends again, so that a copy of the message may just be passing anywhere.
        source = message.source.index
        return not self._sure(goal, source) or source in self._silent

    def _waits_for_acknowledgments(self, message: SimMessage, entry: Lying) -> bool:
        """Say whether a transactional message is there, and its source may not know it yet."""
        return (
            message.kind is Kind.TRANSACTIONAL and message.arrivals > 0 and not entry.message_class
        )

    def may_be_late(self, message: SimMessage) -> bool:
        """Say whether a message may come when nobody receives any more."""
        return message.remote and not self._sure(message.source.index, message.target.index)

    def excuses_message(self, message: SimMessage) -> bool:
        """Say whether a message may never come into its queue, or come too late."""
        goal = message.target.index
        if message.kind is Kind.TRANSACTIONAL or message.arrivals:
            # Its source sends it again and again.
            return self.may_be_late(message)
        return any(
            entry.message == message.number
            and entry.shelf.role == "outgoing"
            and not self._sure(index, goal)
            for index, watch in self._world.books.watches.items()
            for entry in watch.entries.values()
        )

    def _sure(self, at: int, goal: int) -> bool:
        key = at, goal
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._enterprise.is_sure(at, goal, self._up)
        return known

    def _goal(self, entry: Lying) -> int | None:
        return self._enterprise.index_of.get(Guid(entry.packet[_DESTINATION]))

    def _who_may_hear_nothing(self) -> set[int]:
        """Give the nodes for which an acknowledgment lies where it cannot go on."""
        found = set()
        for index, watch in self._world.books.watches.items():
            for entry in watch.entries.values():
                goal = self._goal(entry)
                is_acknowledgment = entry.message is None or entry.message_class
                if (
                    goal is not None
                    and is_acknowledgment
                    and entry.shelf.role == "outgoing"
                    and not self._sure(index, goal)
                ):
                    found.add(goal)
        return found


def stranded_of(world: World) -> Stranded | None:
    """Look what may be stranded; without an enterprise nothing is."""
    return None if world.enterprise is None else Stranded(world, world.enterprise)
