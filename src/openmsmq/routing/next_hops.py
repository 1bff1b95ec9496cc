"""To whom a queue manager passes a message next: the functions of MQBR. [MQBR 3.1.5]

The rules lead a message along at most this way, of which parts may be missing: sender, routing
server, gate of its site, gates of one site after the other, in-routing server, destination. A gate
passes it to sites that are nearer to the destination, by cost and then by identifier. All gates see
the same order of sites, so on such ways a message never comes to a site twice, whichever links and
gates fail; and it makes at most three hops more than there are sites.

Where the specification takes one of several queue managers, all are given, and the next is tried
when one cannot be reached (C-108). Their order depends on who asks, so that senders spread over
the gates of a site, but for one sender it is always the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from hashlib import blake2b
from typing import Final

import msgspec

from openmsmq.model.identity import Guid
from openmsmq.model.topology import QueueManagerInfo, RoutingLink, Site
from openmsmq.routing.enterprise import Enterprise
from openmsmq.routing.routes import Route, RouteState, RoutingTable

EXTRA_MAX_HOPS: Final = 3
"""How many hops more than there are sites a way has at most: to a routing server and on to a gate
at its beginning, to an in-routing server and on to the destination at its end, less one because
the first site is not entered over a link."""


class HopKind(Enum):
    """What the next queue manager is to the one that passes a message to it."""

    DESTINATION = "destination"
    OUT_ROUTING_SERVER = "out-routing server"
    IN_ROUTING_SERVER = "in-routing server"
    ROUTING_SERVER = "routing server"
    OWN_GATE = "own gate"
    """A gate of the site of a routing server that is none."""
    NEXT_GATE = "next gate"
    """A gate of another site, behind a link."""


class Hop(msgspec.Struct, frozen=True):
    """A queue manager that may be the next, and why."""

    manager: Guid
    kind: HopKind
    site: Guid | None = None
    """The site that is entered over a link, if one is."""
    cost: int = 0
    """The cost of that link."""


class Routes:
    """Where one queue manager passes messages to, by one state of the directory.

    `route_on_direct_failure` lets a routing server of the own site help out when the destination in
    the same site cannot be reached (C-109). `route_around` lets a gate try other neighbouring
    sites when the least-cost one cannot be reached.
    """

    def __init__(
        self,
        own: Guid,
        sites: Iterable[Site],
        links: Iterable[RoutingLink],
        managers: Iterable[QueueManagerInfo],
        *,
        route_on_direct_failure: bool = True,
        route_around: bool = True,
    ) -> None:
        self.own = own
        self.route_on_direct_failure = route_on_direct_failure
        self.route_around = route_around
        self.enterprise: Enterprise = Enterprise(sites, links, managers)
        self._table: RoutingTable[Guid] | None = None
        # At most one entry for each queue manager of the directory.
        self._hops: dict[Guid, tuple[Hop, ...]] = {}
        self._over_links: dict[frozenset[Guid], tuple[Hop, ...]] = {}

    def seen_by(self, own: Guid) -> Routes:
        """Return the routes of another queue manager of the same enterprise."""
        other = Routes(
            own,
            (),
            (),
            (),
            route_on_direct_failure=self.route_on_direct_failure,
            route_around=self.route_around,
        )
        other.enterprise = self.enterprise
        return other

    @property
    def is_site_gate(self) -> bool:
        """Whether the own queue manager is a gate of its site. [MQBR 3.1.5.8]"""
        return self.enterprise.is_site_gate(self.own)

    @property
    def table(self) -> RoutingTable[Guid] | None:
        """The routing table, which only gates have; built when it is first needed."""
        if self._table is None and self.is_site_gate:
            self._table = self.enterprise.table(self._known_sites(self._me()))
        return self._table

    def next_hops(self, destination: Guid) -> tuple[Guid, ...]:
        """Return the next queue managers, in the order to try them; none is a routing failure.

        Nobody routes to oneself: there is no next queue manager then either. [MQBR 3.1.5.1]
        """
        return tuple(hop.manager for hop in self.hops(destination))

    def hops(self, destination: Guid) -> tuple[Hop, ...]:
        """Return the next queue managers, and why it is they."""
        managers = self.enterprise.managers
        if self.own not in managers or destination not in managers or destination == self.own:
            return ()
        found = self._hops.get(destination)
        if found is None:
            # A gate of several sites is tried once.
            first_of_each: dict[Guid, Hop] = {}
            for hop in self._found(self._me(), managers[destination]):
                first_of_each.setdefault(hop.manager, hop)
            found = self._hops[destination] = tuple(first_of_each.values())
        return found

    def _me(self) -> QueueManagerInfo:
        return self.enterprise.managers[self.own]

    def _found(self, me: QueueManagerInfo, destination: QueueManagerInfo) -> tuple[Hop, ...]:
        if me.routing_server:
            hops = self._from_routing_server(me, destination)
        else:
            hops = self._from_others(me, destination)
        return tuple(hop for hop in hops if hop.manager != self.own)

    def _from_others(self, me: QueueManagerInfo, destination: QueueManagerInfo) -> Iterable[Hop]:
        """The rule of a queue manager that does not route for others. [MQBR 3.1.5.1]"""
        enterprise = self.enterprise
        if out := enterprise.serving(me.out_routing_servers):
            # The destination may be one of them itself.
            return self._spread(out, HopKind.OUT_ROUTING_SERVER, first=destination.identifier)
        servers = enterprise.routing_servers(me.sites)
        if not _shared(me, destination):
            return self._leading(me, servers, destination, HopKind.ROUTING_SERVER)
        direct = self._within_site(destination)
        if direct[0].kind is HopKind.DESTINATION and self.route_on_direct_failure:
            near = [
                server for server in servers if _shared(enterprise.managers[server], destination)
            ]
            direct += self._spread(near, HopKind.ROUTING_SERVER)
        return direct

    def _from_routing_server(
        self, me: QueueManagerInfo, destination: QueueManagerInfo
    ) -> Iterable[Hop]:
        """The rules of a routing server and of a gate. [MQBR 3.1.5.2, 3.1.5.3]"""
        if self.own in destination.in_routing_servers:
            return (Hop(destination.identifier, HopKind.DESTINATION),)
        if _shared(me, destination):
            return self._within_site(destination)
        if self.is_site_gate:
            return self._to_next_sites(me, destination)
        # A routing server hands over to gates only: two that are none would pass a message to and
        # fro between them.
        gates = self.enterprise.gates_of(me.sites)
        return self._leading(me, gates, destination, HopKind.OWN_GATE)

    def _within_site(self, destination: QueueManagerInfo) -> list[Hop]:
        servers = self.enterprise.serving(destination.in_routing_servers)
        if servers:
            return self._spread(servers, HopKind.IN_ROUTING_SERVER, first=destination.identifier)
        return [Hop(destination.identifier, HopKind.DESTINATION)]

    def _leading(
        self,
        me: QueueManagerInfo,
        servers: list[Guid],
        destination: QueueManagerInfo,
        kind: HopKind,
    ) -> list[Hop]:
        """Order the servers of the own sites, for one of several sites the nearest ones first.

        A queue manager of several sites must not hand over to a server from which no links lead to
        the destination, because nobody takes a message back.
        """
        hops = self._spread(servers, kind)
        if len(me.sites) == 1:
            return hops
        costs = self.enterprise.costs_to(self._known_sites(destination))
        reaching: dict[Guid, int] = {}
        for server in servers:
            sites = self.enterprise.managers[server].sites
            if found := [costs[site] for site in sites if site in costs]:
                reaching[server] = min(found)
        return sorted(
            (hop for hop in hops if hop.manager in reaching),
            key=lambda hop: reaching[hop.manager],
        )

    def _to_next_sites(
        self, me: QueueManagerInfo, destination: QueueManagerInfo
    ) -> tuple[Hop, ...]:
        """The gates of the next site, then those of others on the way. [MQBR 3.1.5.3]"""
        goals = frozenset(self._known_sites(destination))
        found = self._over_links.get(goals)
        if found is None:
            own = self._known_sites(me)
            found = tuple(
                msgspec.structs.replace(hop, site=site, cost=self._link_cost(own, site))
                for site in self._next_sites(own, goals)
                for hop in self._spread(self.enterprise.gates[site], HopKind.NEXT_GATE)
            )
            self._over_links[goals] = found
        return found

    def _next_sites(self, own: list[Guid], goals: frozenset[Guid]) -> list[Guid]:
        """Return the sites to try: the next on the least-cost path, then others by their cost.

        The others must be nearer to the goal than all own sites. Of the sites with the same cost
        those with lower identifiers count as nearer, for everybody in the same way.
        """
        costs = self.enterprise.costs_to(goals)
        ranks = [(costs[site], site) for site in own if site in costs]
        table = self.table
        if not ranks or table is None:
            return []
        rows = [self.enterprise.route(table, site) for site in goals]
        first = min((row for row in rows if row.next_sites), key=_preference).next_sites
        if not self.route_around:
            return [first[0]]
        around = {
            site: self._link_cost(own, site) + costs[site]
            for place in own
            for site in self.enterprise.neighbours[place]
            if site not in own and site in costs and (costs[site], site) < min(ranks)
        }
        others = sorted((cost, site) for site, cost in around.items() if site not in first)
        return [*first, *(site for _, site in others)]

    def _link_cost(self, own: list[Guid], site: Guid) -> int:
        neighbours = self.enterprise.neighbours
        return min(neighbours[place][site] for place in own if site in neighbours[place])

    def _known_sites(self, manager: QueueManagerInfo) -> list[Guid]:
        return [site for site in manager.sites if site in self.enterprise.sites]

    def _spread(
        self, servers: Iterable[Guid], kind: HopKind, first: Guid | None = None
    ) -> list[Hop]:
        """Order servers for this queue manager; `first` is the first, if it is among them."""

        def order(server: Guid) -> tuple[bool, bytes]:
            return server != first, blake2b(self.own + server, digest_size=8).digest()

        return [Hop(server, kind) for server in sorted(servers, key=order)]


def _shared(one: QueueManagerInfo, other: QueueManagerInfo) -> bool:
    return not set(one.sites).isdisjoint(other.sites)


def _preference(row: Route[Guid]) -> tuple[int, bool, int, Guid]:
    """Order the rows for the sites of one destination: the cheapest first (C-106)."""
    assert row.cost is not None
    assert row.hop_count is not None
    return row.cost, row.state is RouteState.BLOCKED, row.hop_count, row.destination
