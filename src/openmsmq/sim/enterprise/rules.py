"""Where messages may go by one state of the directory.

The rules of routing are written here a second time, in the plainest way, so that routing is held
to something that is not itself. [MQBR 3.1.5]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Final, TypeAlias

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.sim.scenarios.enterprise import DrawnLink, DrawnMember

_FAR: Final = 1 << 40
"""What it costs to come to a site to which no links lead."""

Rank: TypeAlias = tuple[int, Guid] | tuple[int]
"""How far away a site is: by cost, and by its identifier where the cost is the same."""

Living: TypeAlias = Callable[[int, int], bool]
"""Says whether a node is there and another one can talk to it."""


class Layout(msgspec.Struct, frozen=True):
    """Links and nodes as a directory has them."""

    links: dict[int, DrawnLink]
    """By their numbers in the scenario; those that are not in the directory are missing."""
    members: tuple[DrawnMember | None, ...]
    """For each node; None if it is not in the directory."""


class Rules:
    """Next hops and ways in one state of the directory."""

    def __init__(self, layout: Layout, sites: Sequence[Guid]) -> None:
        self.layout = layout
        self._sites = sites
        self._links = tuple(layout.links.values())
        self._members = [
            frozenset(() if member is None else member.sites) for member in layout.members
        ]
        self._gates = [self._gates_of(site) for site in range(len(sites))]
        self.gates = frozenset().union(*self._gates)
        """The gates of all sites."""
        self._costs = self._all_costs()
        self._hops: dict[tuple[int, int], frozenset[int]] = {}

    def next_hops(self, at: int, goal: int) -> frozenset[int]:
        """Return everybody to whom a node passes a message for another, if it can."""
        found = self._hops.get((at, goal))
        if found is None:
            found = self._hops[at, goal] = frozenset(self._found(at, goal)) - {at}
        return found

    def leads(self, at: int, goal: int, living: Living) -> bool:
        """Return whether a message comes from one node to another, over nodes and links that live.

        It must do so whichever hop it takes: nobody takes a message back. In a directory that makes
        sense all hops lead on, or none.
        """
        return self._leads(at, goal, living, {goal: True})

    def _leads(self, at: int, goal: int, living: Living, known: dict[int, bool]) -> bool:
        if at not in known:
            hops = [hop for hop in self.next_hops(at, goal) if living(at, hop)]
            known[at] = bool(hops) and all(self._leads(hop, goal, living, known) for hop in hops)
        return known[at]

    def _found(self, at: int, goal: int) -> set[int]:
        me, other = self.layout.members[at], self.layout.members[goal]
        if me is None or other is None or at == goal:
            return set()
        shared = self._members[at] & self._members[goal]
        within = set(other.into) or {goal}
        if me.routing:
            if at in other.into:
                return {goal}
            if shared:
                return within
            if at in self.gates:
                return self._over_links(at, goal)
            return self._leading(at, goal, set().union(*(self._gates[s] for s in me.sites)))
        if me.out:
            return set(me.out)
        servers = {
            index
            for index, member in enumerate(self.layout.members)
            if member is not None and member.routing and self._members[index] & self._members[at]
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
            for link in self._links
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
            for link in self._links
            if site in (link.site1, link.site2)
            for gate in link.gates
            if site in self._members[gate]
        )

    def _all_costs(self) -> list[list[int]]:
        """Find the least cost between all sites by trying every site as a stop in between."""
        sites = range(len(self._sites))
        costs = [[0 if one == other else _FAR for other in sites] for one in sites]
        for link in self._links:
            costs[link.site1][link.site2] = costs[link.site2][link.site1] = link.cost
        for stop, one, other in product(sites, sites, sites):
            costs[one][other] = min(costs[one][other], costs[one][stop] + costs[stop][other])
        return costs
