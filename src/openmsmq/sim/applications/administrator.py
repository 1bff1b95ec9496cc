"""The administrator of an enterprise: changes the directory while messages are under way.

Nobody but a person learns that a link or a gate is dead for good. The administrator takes it out
of the directory some time later, and does other things beside: changes costs and gates, takes links
out for a while, adds new ones. It is an application of one node; the others hear of its changes
when they next ask the directory.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from openmsmq.api import messages as api
from openmsmq.directory.rows import row_of
from openmsmq.sim.applications.applications import Application, Ask, Script
from openmsmq.sim.enterprise.enterprise import Enterprise
from openmsmq.sim.enterprise.rules import Layout
from openmsmq.sim.scenarios.enterprise import Chore, DrawnLink, DrawnMember, Task

if TYPE_CHECKING:
    import random

    from openmsmq.sim.node import Node
    from openmsmq.sim.world import World

_RETRY_MS: Final = 1_000


class Administrator(Application):
    """Does the chores of a scenario, one after the other, until the directory has taken each."""

    def __init__(self, world: World, node: Node, enterprise: Enterprise) -> None:
        super().__init__(world, node)
        self._enterprise = enterprise
        self._begun_ms = world.timeline.now_ms
        self._left = deque(enterprise.scenario.chores)

    def script(self) -> Script:
        """Do what is left to do."""
        while self._left:
            chore = self._left[0]
            yield max(0, self._begun_ms + chore.at_ms - self.world.timeline.now_ms)
            enterprise = self._enterprise
            layout = Desk(enterprise, enterprise.rules.layout, self.rng).after(chore)
            changes = enterprise.changes_to(layout)
            if changes:
                rows = [row_of(change) for change in changes]
                reply = yield Ask(api.ChangeDirectory(rows), partial(self._note, chore))
                if not isinstance(reply, api.DirectoryChanged):
                    yield _RETRY_MS
                    continue
            self._left.popleft()

    def _note(self, chore: Chore) -> None:
        self._enterprise.is_administered = True
        link = "" if chore.task is Task.INSPECT else f" (link {chore.link})"
        text = f"the administrator {chore.task.value}{link}"
        self.world.trace.note(self.node.index, "admin", text)


class Desk:
    """Where the administrator works out how the directory shall be."""

    def __init__(self, enterprise: Enterprise, layout: Layout, rng: random.Random) -> None:
        self._enterprise = enterprise
        self._rng = rng
        self._links = dict(layout.links)
        self._members = list(layout.members)

    def after(self, chore: Chore) -> Layout:
        """Return the layout after a chore; what does not fit any more is left undone."""
        number = chore.link
        link = self._links.get(number)
        match chore.task:
            case Task.INSPECT:
                self._take_out_the_dead()
            case Task.COST if link is not None:
                self._links[number] = msgspec.structs.replace(link, cost=chore.cost)
            case Task.REMOVE:
                self._links.pop(number, None)
            case Task.GATES if link is not None:
                gates = (*self._other_gates(link.site1), *self._other_gates(link.site2))
                self._links[number] = self._with_gates(link, gates)
            case Task.ADD if link is None and number not in self._enterprise.lost_links:
                link = self._enterprise.scenario.links[number]
                self._links[number] = self._with_gates(link, self._living_gates(link))
            case _:
                pass
        return Layout(self._links, tuple(self._members))

    def _take_out_the_dead(self) -> None:
        for number in self._enterprise.lost_links:
            self._links.pop(number, None)
        for number, link in self._links.items():
            self._links[number] = self._with_gates(link, self._living_gates(link))
        lost = self._enterprise.lost_nodes
        for node, member in enumerate(self._members):
            if member is None:
                continue
            if node in lost and member.routing and self._rng.random() < 0.5:
                # It is not coming back: its queues go with it.
                self._members[node] = None
            else:
                self._members[node] = msgspec.structs.replace(
                    member,
                    routing=member.routing and node not in lost,
                    into=tuple(server for server in member.into if server not in lost),
                    out=tuple(server for server in member.out if server not in lost),
                )

    def _with_gates(self, link: DrawnLink, gates: tuple[int, ...]) -> DrawnLink:
        """Return a link with other gates, which become routing servers if they were none."""
        for gate in gates:
            member = self._members[gate]
            assert member is not None, "a gate that is not in the directory"
            self._members[gate] = msgspec.structs.replace(member, routing=True)
        return msgspec.structs.replace(link, gates=tuple(dict.fromkeys(gates)))

    def _living_gates(self, link: DrawnLink) -> tuple[int, ...]:
        """Return the living gates of a link; if a site has lost its last, somebody else is one."""
        lost = self._enterprise.lost_nodes
        living = [gate for gate in link.gates if gate not in lost]
        for site in (link.site1, link.site2):
            had_one = any(self._is_in(gate, site) for gate in link.gates)
            if had_one and not any(self._is_in(gate, site) for gate in living):
                candidates = self._living_in(site)
                if candidates:
                    living.append(self._rng.choice(candidates))
        return tuple(living)

    def _other_gates(self, site: int) -> tuple[int, ...]:
        candidates = [node for node in self._living_in(site) if self._routes(node)]
        count = self._rng.randrange(1, len(candidates) + 1) if candidates else 0
        return tuple(self._rng.sample(candidates, count))

    def _living_in(self, site: int) -> list[int]:
        lost = self._enterprise.lost_nodes
        return [
            node
            for node, member in enumerate(self._members)
            if member is not None and site in member.sites and node not in lost
        ]

    def _is_in(self, node: int, site: int) -> bool:
        return site in self._enterprise.scenario.members[node].sites

    def _routes(self, node: int) -> bool:
        member: DrawnMember | None = self._members[node]
        return member is not None and member.routing
