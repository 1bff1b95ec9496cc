"""Least-cost paths with the standard library alone: for queue managers without NumPy and SciPy.

The rules are those of `openmsmq.routing.arrays`; tests hold the two equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import accumulate
from typing import Generic

from openmsmq.routing.graph import Graph, SiteNumber
from openmsmq.routing.routes import (
    NOTHING,
    PATH_MAX_HOPS,
    Reach,
    RouteState,
    RoutingTable,
    Tree,
)
from openmsmq.routing.snapshot import Key


class PlainSolver(Generic[Key]):
    """Searches one graph, site by site."""

    def __init__(self, graph: Graph[Key]) -> None:
        self.graph: Graph[Key] = graph
        self._scale = graph.scale
        # Neighbours in the order of their numbers, each with the link and its cost.
        self._neighbours: list[list[tuple[SiteNumber, int, int]]] = [[] for _ in graph.sites]
        for link, ends in enumerate(zip(graph.first, graph.second, graph.costs, strict=True)):
            first, second, cost = ends
            self._neighbours[first].append((second, link, cost))
            self._neighbours[second].append((first, link, cost))
        for neighbours in self._neighbours:
            neighbours.sort()

    def table(self, own: Sequence[SiteNumber]) -> RoutingTable[Key]:
        """Build the routing table of a queue manager that belongs to these sites."""
        values = self._search(own)
        reach = self._reach(values, own)
        count = len(values)
        at_best: list[set[SiteNumber]] = [set() for _ in range(count)]
        at_least_cost: list[set[SiteNumber]] = [set() for _ in range(count)]
        reached = [site for site in range(count) if values[site] != NOTHING]
        for site in sorted(reached, key=values.__getitem__):
            for previous, _, cost in self._neighbours[site]:
                if reach.cost[previous] + cost != reach.cost[site]:
                    continue
                is_first = previous in own
                at_least_cost[site] |= {site} if is_first else at_least_cost[previous]
                if values[previous] + self._value(cost, site) == values[site]:
                    at_best[site] |= {site} if is_first else at_best[previous]
        ordered: list[list[SiteNumber]] = [
            sorted(best) + sorted(all_of_them - best)
            for best, all_of_them in zip(at_best, at_least_cost, strict=True)
        ]
        return RoutingTable(
            self.graph,
            reach,
            [0, *accumulate(map(len, ordered))],
            [next_site for next_sites in ordered for next_site in next_sites],
        )

    def tree(self, destination: SiteNumber) -> Tree:
        """Find the paths from everywhere to one site."""
        values = self._search([destination])
        next_site = [NOTHING] * len(values)
        links = [NOTHING] * len(values)
        for site, value in enumerate(values):
            if value == NOTHING or site == destination:
                continue
            for neighbour, link, cost in self._neighbours[site]:
                if values[neighbour] + self._value(cost, site) == value:
                    next_site[site], links[site] = neighbour, link
                    break
        return Tree(destination, self._reach(values, [destination]), next_site, links)

    def _search(self, roots: Sequence[SiteNumber]) -> list[int]:
        """Return what the best path from the roots to each site is worth. [MQBR 3.1.3.1]"""
        values = [NOTHING] * len(self.graph.sites)
        for root in roots:
            values[root] = 0
        heap = [(0, root) for root in roots]
        while heap:
            value, site = heappop(heap)
            if value > values[site]:
                continue
            for neighbour, _, cost in self._neighbours[site]:
                longer = value + self._value(cost, neighbour)
                if values[neighbour] == NOTHING or longer < values[neighbour]:
                    values[neighbour] = longer
                    heappush(heap, (longer, neighbour))
        return values

    def _value(self, cost: int, site: SiteNumber) -> int:
        return self._scale.value(cost, self.graph.closed[site])

    def _reach(self, values: list[int], roots: Sequence[SiteNumber]) -> Reach:
        scale = self._scale
        # A queue manager of several sites leaves through the gates of any of them.
        shut = all(self.graph.closed[root] for root in roots)
        states = []
        for value in values:
            if value == NOTHING:
                state = RouteState.UNREACHABLE
            elif value == 0:
                state = RouteState.HERE
            elif shut or value & scale.closed_mask:
                state = RouteState.BLOCKED
            elif value & scale.hop_mask > PATH_MAX_HOPS:
                state = RouteState.TOO_FAR
            else:
                state = RouteState.OPEN
            states.append(state)
        return Reach(
            [value >> scale.cost_shift for value in values],
            [NOTHING if value == NOTHING else value & scale.hop_mask for value in values],
            states,
        )
