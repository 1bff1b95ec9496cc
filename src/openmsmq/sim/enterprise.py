"""An enterprise in a run: its directory, who can talk to whom just now, and where messages may go.

The rules of routing are written here a second time, in the plainest way, so that routing is held
to something that is not itself. [MQBR 3.1.5]
"""

from __future__ import annotations

import random
from itertools import product
from typing import Final, TypeAlias

import msgspec

from openmsmq.model.directory import DirectoryChanges, DirectoryObject, Position
from openmsmq.model.identity import Guid
from openmsmq.model.queue import QueueKind, QueueProperties
from openmsmq.model.topology import EnterpriseInfo, QueueManagerInfo, RoutingLink, Site
from openmsmq.sim.enterprise_plan import EnterprisePlan

PUBLIC_PLAIN: Final = "plain"
PUBLIC_TRANSACTIONAL: Final = "transactional"
PUBLIC_QUEUES: Final = (PUBLIC_PLAIN, PUBLIC_TRANSACTIONAL)

EXTRA_MAX_HOPS: Final = 3
"""How many hops more than there are sites a message may make."""

_FAR: Final = 1 << 40
"""What it costs to come to a site to which no links lead."""


Rank: TypeAlias = tuple[int, Guid] | tuple[int]
"""How far away a site is: by cost, and by its identifier where the cost is the same."""


class Place(msgspec.Struct, frozen=True):
    """A node, as the directory has it."""

    identifier: Guid
    name: str
    address: str


class Enterprise:
    """The directory and the links of a run."""

    def __init__(self, plan: EnterprisePlan, places: list[Place], rng: random.Random) -> None:
        self.plan = plan
        self.dead_links: set[int] = set()
        self.index_of = {place.identifier: index for index, place in enumerate(places)}
        self._sites = [Guid(rng.randbytes(16)) for _ in range(plan.site_count)]
        self._position = Position(Guid(rng.randbytes(16)), 1)
        self.public: dict[tuple[int, str], Guid] = {
            (index, queue): Guid(rng.randbytes(16))
            for index, queue in product(range(len(places)), PUBLIC_QUEUES)
        }
        """The identifiers of public queues, by node and path."""
        self._objects = self._directory(places, rng)
        self._members = [frozenset(member.sites) for member in plan.members]
        self._gates = [self._gates_of(site) for site in range(plan.site_count)]
        self._all_gates = frozenset().union(*self._gates)
        self._costs = self._all_costs()
        self._hops: dict[tuple[int, int], frozenset[int]] = {}

    # The directory.

    def told(self, position: Position) -> DirectoryChanges:
        """Answer a copy that asks what has changed."""
        if position == self._position:
            return DirectoryChanges(position)
        return DirectoryChanges(self._position, self._objects, is_complete=True)

    def _directory(self, places: list[Place], rng: random.Random) -> tuple[DirectoryObject, ...]:
        plan = self.plan
        objects: list[DirectoryObject] = [
            EnterpriseInfo(identifier=Guid(rng.randbytes(16)), name="Enterprise")
        ]
        objects += [
            Site(identifier=key, name=f"SITE{number}") for number, key in enumerate(self._sites)
        ]
        objects += [
            RoutingLink(
                identifier=Guid(rng.randbytes(16)),
                site1=self._sites[link.site1],
                site2=self._sites[link.site2],
                cost=link.cost,
                site_gates=tuple(places[gate].identifier for gate in link.gates),
            )
            for link in plan.links
        ]
        for place, member in zip(places, plan.members, strict=True):
            objects.append(
                QueueManagerInfo(
                    identifier=place.identifier,
                    computer_name=place.name,
                    addresses=(place.address,),
                    sites=tuple(self._sites[site] for site in member.sites),
                    routing_server=member.routing,
                    in_routing_servers=tuple(places[other].identifier for other in member.into),
                    out_routing_servers=tuple(places[other].identifier for other in member.out),
                )
            )
        for (index, queue), identifier in self.public.items():
            objects.append(
                QueueProperties(
                    identifier=identifier,
                    path_name=f"{places[index].name}\\{queue}",
                    kind=QueueKind.PUBLIC,
                    manager=places[index].identifier,
                    transactional=queue == PUBLIC_TRANSACTIONAL,
                )
            )
        return tuple(objects)

    # The network.

    def joined(self, one: int, other: int) -> bool:
        """Say whether two nodes can talk just now: in a site, or as gates over a living link."""
        if self._members[one] & self._members[other]:
            return True
        if not {one, other} <= self._all_gates:
            return False
        ends = self._members[one], self._members[other]
        return any(
            (link.site1 in ends[0] and link.site2 in ends[1])
            or (link.site1 in ends[1] and link.site2 in ends[0])
            for number, link in enumerate(self.plan.links)
            if number not in self.dead_links
        )

    # Where messages may go.

    @property
    def hop_count_max(self) -> int:
        """What the hop count of no packet may exceed."""
        return self.plan.site_count + EXTRA_MAX_HOPS

    def next_hops(self, at: int, goal: int) -> frozenset[int]:
        """Give everybody to whom a node passes a message for another, if it can."""
        found = self._hops.get((at, goal))
        if found is None:
            found = self._hops[at, goal] = frozenset(self._found(at, goal)) - {at}
        return found

    def is_sure(self, at: int, goal: int, up: frozenset[int]) -> bool:
        """Say whether a message arrives from a node whichever of the living hops it takes."""
        return self._sure(at, goal, up, {})

    def _sure(self, at: int, goal: int, up: frozenset[int], known: dict[int, bool]) -> bool:
        if at == goal or at not in up:
            return at in up
        if at not in known:
            living = self._living(at, self.next_hops(at, goal), up)
            known[at] = bool(living) and all(self._sure(hop, goal, up, known) for hop in living)
        return known[at]

    def _living(self, at: int, hops: frozenset[int], up: frozenset[int]) -> list[int]:
        return [hop for hop in hops if hop in up and self.joined(at, hop)]

    def _found(self, at: int, goal: int) -> set[int]:
        me, other = self.plan.members[at], self.plan.members[goal]
        shared = self._members[at] & self._members[goal]
        within = set(other.into) or {goal}
        if me.routing:
            if at in other.into:
                return {goal}
            if shared:
                return within
            if at in self._all_gates:
                return self._over_links(at, goal)
            return self._leading(at, goal, set().union(*(self._gates[s] for s in me.sites)))
        if me.out:
            return set(me.out)
        servers = {
            index
            for index, member in enumerate(self.plan.members)
            if member.routing and self._members[index] & self._members[at]
        }
        if not shared:
            return self._leading(at, goal, servers)
        if other.into:
            return within
        return {goal} | {index for index in servers if self._members[index] & self._members[goal]}

    def _leading(self, at: int, goal: int, servers: set[int]) -> set[int]:
        if len(self._members[at]) == 1:
            return servers
        return {index for index in servers if self._rank(index, goal)[0] < _FAR}

    def _over_links(self, at: int, goal: int) -> set[int]:
        """The gates of all neighbouring sites that are nearer to the goal than this node."""
        near = [
            site
            for site in self._around(self._members[at])
            if self._site_rank(site, goal) < min(self._rank(at, goal), (_FAR,))
        ]
        return {gate for site in near for gate in self._gates[site]}

    def _around(self, own: frozenset[int]) -> set[int]:
        """The neighbours of some sites."""
        return {
            site
            for link in self.plan.links
            for here, site in ((link.site1, link.site2), (link.site2, link.site1))
            if here in own
        } - own

    def _rank(self, at: int, goal: int) -> Rank:
        return min(self._site_rank(site, goal) for site in self._members[at])

    def _site_rank(self, site: int, goal: int) -> Rank:
        return min(self._costs[site][end] for end in self._members[goal]), self._sites[site]

    def _gates_of(self, site: int) -> frozenset[int]:
        return frozenset(
            gate
            for link in self.plan.links
            if site in (link.site1, link.site2)
            for gate in link.gates
            if site in self.plan.members[gate].sites
        )

    def _all_costs(self) -> list[list[int]]:
        """Find the least cost between all sites by trying every site as a stop in between."""
        sites = range(self.plan.site_count)
        costs = [[0 if one == other else _FAR for other in sites] for one in sites]
        for link in self.plan.links:
            costs[link.site1][link.site2] = costs[link.site2][link.site1] = link.cost
        for stop, one, other in product(sites, sites, sites):
            costs[one][other] = min(costs[one][other], costs[one][stop] + costs[stop][other])
        return costs
