"""The directory as routing looks at it: who is in which site, who routes, which gates there are.

It is built once for a directory and shared by everybody who asks. Paths between sites are searched
only when somebody needs one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from openmsmq.model.identity import Guid
from openmsmq.model.topology import QueueManagerInfo, RoutingLink, Site
from openmsmq.routing.graph import Graph, SiteNumber
from openmsmq.routing.router import Solver, make_solver
from openmsmq.routing.routes import NOTHING, Route, RoutingTable
from openmsmq.routing.snapshot import snapshot_of


class Enterprise:
    """Sites, links and queue managers of one directory at one moment."""

    def __init__(
        self,
        sites: Iterable[Site],
        links: Iterable[RoutingLink],
        managers: Iterable[QueueManagerInfo],
    ) -> None:
        self.sites: dict[Guid, Site] = {site.identifier: site for site in sites}
        self.managers: dict[Guid, QueueManagerInfo] = {
            manager.identifier: manager for manager in managers
        }
        self._snapshot = snapshot_of(self.sites.values(), links, self.managers.values())
        self.gates: Mapping[Guid, tuple[Guid, ...]] = self._snapshot.gates()
        """The gates of each site: those of its links that belong to it (C-107)."""
        self._all_gates = {gate for gates in self.gates.values() for gate in gates}

    # Who is what.

    def is_site_gate(self, manager: Guid) -> bool:
        """Return whether it is a routing server and a gate of one of its sites. [MQBR 3.1.5.8]"""
        return manager in self._all_gates

    def routing_servers(self, sites: Iterable[Guid]) -> list[Guid]:
        """Return the routing servers that belong to one of these sites. [MQBR 3.1.5.5]"""
        return _once(server for site in sites for server in self._servers.get(site, ()))

    def gates_of(self, sites: Iterable[Guid]) -> list[Guid]:
        """Return the gates of all these sites together (C-106). [MQBR 3.1.5.6]"""
        return _once(gate for site in sites for gate in self.gates.get(site, ()))

    def serving(self, listed: Iterable[Guid]) -> list[Guid]:
        """Return those of a list of in- or out-routing servers that exist and do route.

        Others would refuse a message that is not for them, or pass it round in a circle.
        """
        return [
            server
            for server in _once(listed)
            if server in self.managers and self.managers[server].routing_server
        ]

    @cached_property
    def _servers(self) -> dict[Guid, list[Guid]]:
        found: dict[Guid, list[Guid]] = {}
        for manager in self.managers.values():
            if manager.routing_server:
                for site in manager.sites:
                    found.setdefault(site, []).append(manager.identifier)
        return found

    # Ways between sites.

    def table(self, own: Iterable[Guid]) -> RoutingTable[Guid]:
        """Build the routing table of a queue manager of these sites. [MQBR 3.1.3.1]"""
        return self._solver.table(self._numbers_of(own))

    def route(self, table: RoutingTable[Guid], site: Guid) -> Route[Guid]:
        """Return the row of a table for one site."""
        return table.route(self._numbers[site])

    def costs_to(self, destinations: Iterable[Guid]) -> dict[Guid, int]:
        """Return the least cost from each site to the nearest of these; a link costs both ways."""
        numbers = self._numbers_of(destinations)
        if not numbers:
            return {}
        reach = self._solver.table(numbers).reach
        return {
            site: int(cost)
            for site, cost in zip(self._graph.sites, reach.cost, strict=True)
            if cost != NOTHING
        }

    @cached_property
    def neighbours(self) -> dict[Guid, dict[Guid, int]]:
        """The neighbours of each site over usable links, with the cost of the link to them."""
        found: dict[Guid, dict[Guid, int]] = {site: {} for site in self.sites}
        graph = self._graph
        for first, second, cost in zip(graph.first, graph.second, graph.costs, strict=True):
            one, other = graph.sites[first], graph.sites[second]
            found[one][other] = found[other][one] = cost
        return found

    def _numbers_of(self, sites: Iterable[Guid]) -> list[SiteNumber]:
        return sorted({self._numbers[site] for site in sites})

    @cached_property
    def _graph(self) -> Graph[Guid]:
        return Graph.of(self._snapshot)

    @cached_property
    def _numbers(self) -> dict[Guid, SiteNumber]:
        return {site: number for number, site in enumerate(self._graph.sites)}

    @cached_property
    def _solver(self) -> Solver[Guid]:
        return make_solver(self._graph)


def _once(identifiers: Iterable[Guid]) -> list[Guid]:
    """Drop what comes a second time."""
    return list(dict.fromkeys(identifiers))
