"""Messages that cannot arrive: no way leads to their destination from where they are.

At the end of a run the administrator has taken out of the directory what has failed for ever, and
everybody knows it. So all next hops that the directory names live, and a message arrives if they
lead on. Only these may be missing:

* messages whose destination is cut off from where they are: no links are left, or a site has no
  gate. A server of two sites that no link joins is no way between them, for a sender chooses any
  server of its site, and nobody takes a message back;
* messages that a gate had taken over before it failed for ever, because nobody else has them;
* a transactional message that has arrived still lies at its source, if no way leads back on which
  its source could hear of that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openmsmq.model.identity import Guid
from openmsmq.model.queue import QueueRole
from openmsmq.sim.checks.facts import Kind, SimMessage
from openmsmq.sim.enterprise.enterprise import Enterprise
from openmsmq.wire import message_bytes

if TYPE_CHECKING:
    from openmsmq.sim.checks.store_watch import Lying
    from openmsmq.sim.node import Node
    from openmsmq.sim.world import World


class Stranded:
    """What may stay where it is, by what is alive just now."""

    def __init__(self, world: World, enterprise: Enterprise) -> None:
        self._world = world
        self._enterprise = enterprise
        self._up = frozenset(node.index for node in world.nodes if node.up)
        self._known: dict[tuple[int, int], bool] = {}

    def excuses(self, node: Node, entry: Lying) -> bool:
        """Return whether an entry may lie in an outgoing queue, or wait for its end, for ever."""
        goal = self._goal(entry)
        if goal is None:
            return False
        if not self._leads(node.index, goal):
            return True
        message = self._world.books.messages.get(entry.message or 0)
        return (
            message is not None
            and message.kind is Kind.TRANSACTIONAL
            and message.arrivals > 0
            and not entry.message_class
            and not self._leads(goal, message.source.index)
        )

    def excuses_message(self, message: SimMessage) -> bool:
        """Return whether a message may never come into its queue."""
        goal = message.target.index
        if message.arrivals:
            return False
        if message.kind is Kind.TRANSACTIONAL:
            # Its source sends it again and again.
            return not self._leads(message.source.index, goal)
        return any(
            entry.message == message.number
            and entry.shelf.role is QueueRole.OUTGOING
            and not self._leads(index, goal)
            for index, watch in self._world.books.disks.watches.items()
            for entry in watch.entries.values()
        )

    def _leads(self, at: int, goal: int) -> bool:
        key = at, goal
        known = self._known.get(key)
        if known is None:
            known = at in self._up and self._enterprise.rules.leads(at, goal, self._is_living)
            self._known[key] = known
        return known

    def _is_living(self, here: int, hop: int) -> bool:
        return hop in self._up and self._enterprise.joined(here, hop)

    def _goal(self, entry: Lying) -> int | None:
        return self._enterprise.index_of.get(Guid(message_bytes.destination_manager(entry.packet)))


def stranded_of(world: World) -> Stranded | None:
    """Look what may be stranded; without an enterprise nothing is."""
    return None if world.enterprise is None else Stranded(world, world.enterprise)
