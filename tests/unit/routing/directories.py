"""Small directories with everything that can be odd in one, and routing by its words alone."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st

from openmsmq.model.identity import Guid
from openmsmq.model.topology import QueueManagerInfo, RoutingLink, Site
from openmsmq.routing.next_hops import Routes

SITES = tuple(Guid(bytes([0xA0 + number]) * 16) for number in range(6))
MANAGERS = tuple(Guid(bytes([0x10 + number]) * 16) for number in range(10))
UNKNOWN = Guid(b"\xee" * 16)


class Directory(msgspec.Struct, frozen=True):
    """What routing is told."""

    sites: tuple[Site, ...]
    links: tuple[RoutingLink, ...]
    managers: tuple[QueueManagerInfo, ...]

    def routes(self, own: Guid, *, route_around: bool = True) -> Routes:
        """Make the routes of one of its queue managers."""
        return Routes(own, self.sites, self.links, self.managers, route_around=route_around)


def site(identifier: Guid, name: str = "") -> Site:
    """Make a site."""
    return Site(identifier=identifier, name=name or f"S{identifier[0] - 0xA0}")


def manager(
    identifier: Guid,
    *sites: Guid,
    routing: bool = False,
    into: tuple[Guid, ...] = (),
    out: tuple[Guid, ...] = (),
    name: str = "",
) -> QueueManagerInfo:
    """Make a queue manager of these sites."""
    return QueueManagerInfo(
        identifier=identifier,
        computer_name=name or f"M{identifier[0] - 0x10}",
        sites=sites,
        routing_server=routing,
        in_routing_servers=into,
        out_routing_servers=out,
    )


def link(site1: Guid, site2: Guid, *gates: Guid, cost: int = 1) -> RoutingLink:
    """Make a link with these gates."""
    return RoutingLink(
        identifier=Guid(bytes(8) + site1[:4] + site2[:4]),
        site1=site1,
        site2=site2,
        cost=cost,
        site_gates=gates,
    )


@st.composite
def directories(draw: st.DrawFn) -> Directory:
    """Up to six sites and ten queue managers: in several sites, misnamed as servers and gates."""
    sites = SITES[: draw(st.integers(1, len(SITES)))]
    managers = MANAGERS[: draw(st.integers(1, len(MANAGERS)))]
    some_site = st.sampled_from(sites)
    members = st.lists(some_site | st.just(UNKNOWN), max_size=3, unique=True).map(tuple) | (
        st.tuples(some_site)
    )
    servers = st.just(()) | st.lists(
        st.sampled_from((*managers, UNKNOWN)), max_size=3, unique=True
    ).map(tuple)
    pairs = draw(st.permutations([(a, b) for a in sites for b in sites if a < b]))
    kept = [*pairs[: draw(st.integers(0, len(pairs)))], *draw(odd_pairs(sites))]
    # Gates of a link are mostly everybody who may be one, else few paths are open.
    gates = st.just(managers) | st.lists(st.sampled_from(managers), unique=True).map(tuple)
    return Directory(
        tuple(map(site, sites)),
        tuple(link(*draw(st.permutations(pair)), *draw(gates), cost=draw(costs)) for pair in kept),
        tuple(
            manager(
                key,
                *draw(members),
                routing=draw(st.sampled_from([True, True, False])),
                into=draw(servers),
                out=draw(servers),
            )
            for key in managers
        ),
    )


costs = st.sampled_from([1, 1, 2, 2, 3, 5, 999_999, 0, 1_000_000])


def odd_pairs(sites: tuple[Guid, ...]) -> st.SearchStrategy[list[tuple[Guid, Guid]]]:
    """Second links between sites, and links that cannot be."""
    ends = st.sampled_from((*sites, UNKNOWN))
    return st.lists(st.tuples(ends, ends), max_size=2)


class Words:
    """The functions of the specification as they are written there, with C-105 to C-111.

    It gives sets where the specification takes one of several, and finds costs by looking at all
    paths.
    """

    def __init__(self, directory: Directory) -> None:
        self.managers = {manager.identifier: manager for manager in directory.managers}
        self.links = directory.links
        self.sites = {site.identifier for site in directory.sites}
        self._least: dict[tuple[Guid, frozenset[Guid]], int | None] = {}
        self.costs: dict[tuple[Guid, Guid], int] = {}
        for item in directory.links:
            ends = item.site1, item.site2
            if item.usable and set(ends) <= self.sites and item.site1 != item.site2:
                for pair in (ends, ends[::-1]):
                    self.costs[pair] = min(self.costs.get(pair, item.cost), item.cost)

    def gates(self, at: Guid) -> set[Guid]:
        return {
            gate
            for item in self.links
            if at in (item.site1, item.site2) and at in self.sites
            for gate in item.site_gates
            if gate in self.managers
            and self.managers[gate].routing_server
            and at in self.managers[gate].sites
        }

    def servers(self, listed: tuple[Guid, ...]) -> set[Guid]:
        return {key for key in listed if key in self.managers and self.managers[key].routing_server}

    def cost(self, source: Guid, goals: set[Guid]) -> int | None:
        """The least cost of all paths that visit no site twice."""
        asked = source, frozenset(goals)
        if asked not in self._least:
            self._least[asked] = self._cheapest(source, goals, frozenset([source]))
        return self._least[asked]

    def _cheapest(self, at: Guid, goals: set[Guid], seen: frozenset[Guid]) -> int | None:
        if at in goals:
            return 0
        totals = []
        for (one, other), cost in self.costs.items():
            if one == at and other not in seen:
                rest = self._cheapest(other, goals, seen | {other})
                if rest is not None:
                    totals.append(cost + rest)
        return min(totals, default=None)

    def next_hops(self, own: Guid, goal: Guid) -> list[set[Guid]]:
        """Sets of hops, each to be tried before the next; only the first is by the specification.

        In the first set for a gate are the gates of all sites with which a least-cost path begins.
        """
        me, destination = self.managers[own], self.managers[goal]
        same = set(me.sites) & set(destination.sites)
        into = self.servers(destination.in_routing_servers)
        if not me.routing_server:
            if out := self.servers(me.out_routing_servers):
                return [out & {goal}, out - {goal}]
            if same:
                if into:
                    return [into & {goal}, into - {goal}]
                # Those of the own sites from which the destination is in the same site, too.
                near = self._routing_servers(set(me.sites))
                near &= self._routing_servers(set(destination.sites))
                return [{goal}, near - {goal}]
            return self._nearest(me, self._routing_servers(set(me.sites)), destination)
        if own in destination.in_routing_servers:
            return [{goal}]
        if same:
            return [into & {goal}, into - {goal}] if into else [{goal}]
        gates = {at: self.gates(at) for at in me.sites}
        if any(own in found for found in gates.values()):
            return self._sites_by_cost(me, destination)
        everyone = {gate for found in gates.values() for gate in found}
        return self._nearest(me, everyone, destination)

    def _routing_servers(self, sites: set[Guid]) -> set[Guid]:
        return {
            key
            for key, info in self.managers.items()
            if info.routing_server and sites & set(info.sites)
        }

    def _nearest(
        self, me: QueueManagerInfo, servers: set[Guid], destination: QueueManagerInfo
    ) -> list[set[Guid]]:
        if len(me.sites) == 1:
            return [servers]
        by_cost: dict[int, set[Guid]] = {}
        for server in servers:
            cost = self._manager_cost(self.managers[server], destination)
            if cost is not None:
                by_cost.setdefault(cost, set()).add(server)
        return [by_cost[cost] for cost in sorted(by_cost)]

    def _manager_cost(self, info: QueueManagerInfo, destination: QueueManagerInfo) -> int | None:
        goals = set(destination.sites) & self.sites
        costs = [self.cost(at, goals) for at in set(info.sites) & self.sites]
        return min((cost for cost in costs if cost is not None), default=None)

    def _sites_by_cost(
        self, me: QueueManagerInfo, destination: QueueManagerInfo
    ) -> list[set[Guid]]:
        goals = set(destination.sites) & self.sites
        own = set(me.sites) & self.sites
        ranks = [(cost, at) for at in own for cost in [self.cost(at, goals)] if cost is not None]
        by_total: dict[int, set[Guid]] = {}
        around: dict[Guid, int] = {}
        for (one, other), step in self.costs.items():
            rest = self.cost(other, goals)
            if one in own and other not in own and rest is not None and (rest, other) < min(ranks):
                around[other] = min(around.get(other, step + rest), step + rest)
        for at, total in around.items():
            by_total.setdefault(total, set()).update(self.gates(at))
        # A site without gates is nobody; but it may be the one on the least-cost path.
        return [by_total[total] for total in sorted(by_total)]
