"""The way of a message in words: from queue manager to queue manager, why, and at what cost."""

from __future__ import annotations

from typing import Final

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.model.limits import HOP_MAX_COUNT
from openmsmq.model.topology import QueueManagerInfo
from openmsmq.routing.next_hops import EXTRA_MAX_HOPS, Hop, HopKind, Routes

_SENDER: Final = "sender"


class Step(msgspec.Struct, frozen=True):
    """A queue manager on the way."""

    manager: Guid
    name: str
    site: str
    """Where it is entered; of several sites the one that counts here."""
    why: str
    cost: int
    """Of the link that leads there; nothing within a site."""
    alternates: tuple[str, ...]
    """Who is tried when this one cannot be reached, in this order."""


class Explanation(msgspec.Struct, frozen=True):
    """A way from one queue manager to another, as far as it leads."""

    source: str
    destination: str
    steps: tuple[Step, ...]
    """The first is the source."""
    problem: str = ""
    """Why a message does not arrive; empty if it does."""

    @property
    def cost(self) -> int:
        """What all links on the way cost together."""
        return sum(step.cost for step in self.steps)

    @property
    def hop_count(self) -> int:
        """How often a message is passed on."""
        return max(0, len(self.steps) - 1)


def explain(routes: Routes, source: Guid, destination: Guid) -> Explanation:
    """Follow a message from hop to hop while everybody can be reached.

    Every queue manager on the way is taken to see the same directory and to route by the same
    rules as the one whose routes these are.
    """
    teller = _Teller(routes, destination)
    names = teller.name(source), teller.name(destination)
    managers = routes.enterprise.managers
    for key, name in zip((source, destination), names, strict=True):
        if key not in managers:
            return Explanation(*names, (), f"queue manager {name} is not in the directory")
    steps = [Step(source, names[0], teller.home(managers[source]), _SENDER, 0, ())]
    for _ in range(len(routes.enterprise.sites) + EXTRA_MAX_HOPS + 1):
        at = steps[-1].manager
        if at == destination:
            break
        hops = routes.seen_by(at).hops(destination)
        if not hops:
            return Explanation(*names, tuple(steps), teller.problem(at))
        others = tuple(teller.name(hop.manager) for hop in hops[1:])
        steps.append(teller.step(at, hops[0], others))
    problem = ""
    # What is passed on counts, not the first hop.
    if len(steps) - 2 > HOP_MAX_COUNT:
        problem = f"too far: a message is passed on at most {HOP_MAX_COUNT} times"
    return Explanation(*names, tuple(steps), problem)


class _Teller:
    """Finds the words for hops towards one destination."""

    def __init__(self, routes: Routes, destination: Guid) -> None:
        self._routes = routes
        self._enterprise = routes.enterprise
        self._destination = destination

    def name(self, manager: Guid) -> str:
        info = self._enterprise.managers.get(manager)
        return str(manager) if info is None else info.computer_name

    def site_name(self, site: Guid) -> str:
        known = self._enterprise.sites.get(site)
        return str(site) if known is None else known.name

    def home(self, manager: QueueManagerInfo) -> str:
        return ", ".join(map(self.site_name, manager.sites)) or "no site"

    def step(self, at: Guid, hop: Hop, alternates: tuple[str, ...]) -> Step:
        return Step(
            hop.manager,
            self.name(hop.manager),
            self._entered(at, hop),
            self._why(at, hop),
            hop.cost,
            alternates,
        )

    def _entered(self, at: Guid, hop: Hop) -> str:
        if hop.site is not None:
            return self.site_name(hop.site)
        own = self._enterprise.managers[at].sites
        to = self._enterprise.managers[hop.manager]
        shared = [site for site in to.sites if site in own]
        return self.site_name(shared[0]) if shared else self.home(to)

    def _why(self, at: Guid, hop: Hop) -> str:
        match hop.kind:
            case HopKind.DESTINATION:
                return "destination"
            case HopKind.OUT_ROUTING_SERVER:
                return f"out-routing server of {self.name(at)}"
            case HopKind.IN_ROUTING_SERVER:
                return f"in-routing server of {self.name(self._destination)}"
            case HopKind.ROUTING_SERVER:
                return f"routing server of {self._entered(at, hop)}"
            case HopKind.OWN_GATE:
                return f"gate of {self._entered(at, hop)}"
            case HopKind.NEXT_GATE:
                goal = self.home(self._enterprise.managers[self._destination])
                entered = self._entered(at, hop)
                return f"gate of {entered}" + ("" if entered == goal else f", towards {goal}")

    def problem(self, at: Guid) -> str:
        """Return why a queue manager has no next hop."""
        enterprise = self._enterprise
        me, goal = enterprise.managers[at], enterprise.managers[self._destination]
        name, home, far = self.name(at), self.home(me), self.home(goal)
        if not goal.sites:
            return f"{self.name(self._destination)} belongs to no site: add it to one"
        if not me.sites:
            return f"{name} belongs to no site: add it to one, or give it an out-routing server"
        if not me.routing_server and not enterprise.routing_servers(me.sites):
            return f"{home} has no routing server, so {name} reaches nobody outside it"
        if me.routing_server and not enterprise.gates_of(me.sites):
            return f"{home} has no gate: name a routing server of {home} in one of its links"
        closed = self._closed_next_site(at)
        if closed:
            return (
                f"{closed} is next on the way to {far} and has no gate: name a routing server of "
                f"{closed} in one of its links"
            )
        return f"no links lead from {home} to {far}"

    def _closed_next_site(self, at: Guid) -> str:
        """Name the site that would be next but has no gate, if that is what is wrong."""
        table = self._routes.seen_by(at).table
        goals = self._enterprise.managers[self._destination].sites
        if table is None:
            return ""
        rows = [
            self._enterprise.route(table, site) for site in goals if site in self._enterprise.sites
        ]
        found = [(row.cost, row.next_sites[0]) for row in rows if row.cost and row.next_sites]
        return self.site_name(min(found)[1]) if found else ""
