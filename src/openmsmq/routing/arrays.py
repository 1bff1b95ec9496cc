"""Least-cost paths with NumPy and SciPy's compiled Dijkstra: whole columns at a time.

The rules are those of `openmsmq.routing.plain`; tests hold the two equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

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

Column: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

EXACT_MAX: Final = 2**53
"""SciPy adds floating-point numbers; up to here they are whole and exact."""

_WORD_BITS: Final = 64
_ALL_BITS: Final = np.uint64(2**_WORD_BITS - 1)


class ArraySolver(Generic[Key]):
    """Searches one graph; each link is two edges, one for each direction.

    Edges are sorted by the site they belong to, then by the neighbour.
    """

    def __init__(self, graph: Graph[Key]) -> None:
        assert graph.path_value_max < EXACT_MAX
        self.graph: Graph[Key] = graph
        self._scale = graph.scale
        self._closed = np.frombuffer(graph.closed, np.uint8).astype(np.int64)
        count = len(graph.sites)
        first, second = np.asarray(graph.first, np.int64), np.asarray(graph.second, np.int64)
        site, neighbour = np.concatenate((first, second)), np.concatenate((second, first))
        order = np.lexsort((neighbour, site))
        self._site, self._neighbour = site[order], neighbour[order]
        self._link = np.tile(np.arange(len(first)), 2)[order]
        self._cost = np.tile(np.asarray(graph.costs, np.int64), 2)[order]
        # What it is worth to come to the site from the neighbour.
        self._entering = self._values(self._site)
        starts = np.zeros(count + 1, np.int32)
        np.cumsum(np.bincount(self._site, minlength=count), out=starts[1:])
        self._matrix = csr_array(
            (
                self._values(self._neighbour).astype(np.float64),
                self._neighbour.astype(np.int32),
                starts,
            ),
            shape=(count, count),
        )

    def table(self, own: Sequence[SiteNumber]) -> RoutingTable[Key]:
        """Build the routing table of a queue manager that belongs to these sites."""
        values = self._search(own)
        reach = self._reach(values, own)
        cost = np.asarray(reach.cost)
        tied = np.flatnonzero(cost.take(self._neighbour) + self._cost == cost.take(self._site))
        sites, previous = self._site[tied], self._neighbour[tied]
        is_best = values[previous] + self._entering[tied] == values[sites]
        is_own = np.zeros(len(values), np.bool_)
        is_own[list(own)] = True
        rows, next_sites = _first_steps(sites, previous, is_best, is_own)
        starts = np.searchsorted(rows, np.arange(len(values) + 1))
        return RoutingTable(self.graph, reach, starts, next_sites)

    def tree(self, destination: SiteNumber) -> Tree:
        """Find the paths from everywhere to one site."""
        values = self._search([destination])
        edges = np.flatnonzero(
            values.take(self._neighbour) + self._entering == values.take(self._site)
        )
        # The first edge of each site leads to the neighbour with the lowest number.
        sites = self._site[edges]
        is_first = np.diff(sites, prepend=NOTHING) != 0
        edges, sites = edges[is_first], sites[is_first]
        next_site = np.full(len(values), NOTHING, np.int64)
        link = np.full(len(values), NOTHING, np.int64)
        next_site[sites] = self._neighbour[edges]
        link[sites] = self._link[edges]
        return Tree(destination, self._reach(values, [destination]), next_site, link)

    def _values(self, heads: Column) -> Column:
        """Pack what each edge adds when it leads to these sites."""
        scale = self._scale
        return ((self._cost << scale.closed_bits | self._closed[heads]) << scale.hop_bits) + 1

    def _search(self, roots: Sequence[SiteNumber]) -> Column:
        """Return what the best path from the roots to each site is worth. [MQBR 3.1.3.1]"""
        if len(roots) == 1:
            values = dijkstra(self._matrix, indices=roots[0])
        else:
            values = dijkstra(self._matrix, indices=list(roots), min_only=True)
        exact: Column = np.where(np.isinf(values), NOTHING, values).astype(np.int64)
        return exact

    def _reach(self, values: Column, roots: Sequence[SiteNumber]) -> Reach:
        scale = self._scale
        hops = np.where(values == NOTHING, NOTHING, values & scale.hop_mask)
        state = np.zeros(len(values), np.int64)
        state[hops > PATH_MAX_HOPS] = RouteState.TOO_FAR
        # A queue manager of several sites leaves through the gates of any of them.
        if self._closed[list(roots)].all():
            state[:] = RouteState.BLOCKED
        else:
            state[values & scale.closed_mask != 0] = RouteState.BLOCKED
        state[values == 0] = RouteState.HERE
        state[values == NOTHING] = RouteState.UNREACHABLE
        return Reach(values >> scale.cost_shift, hops, state)


def _first_steps(
    sites: Column, previous: Column, is_best: Mask, is_own: Mask
) -> tuple[Column, Column]:
    """Return for each site the sites with which its paths over these edges begin, best ones first.

    Every site that is next to an own one has a bit. Bits flow along the edges, those of the best
    paths apart from those of all, until nothing changes.
    """
    count = len(is_own)
    from_own = is_own[previous]
    first = np.unique(sites[from_own])
    places = np.arange(len(first))
    bit = np.uint64(1) << (places % _WORD_BITS).astype(np.uint64)
    begun = np.zeros((count, 2, -(-len(first) // _WORD_BITS)), np.uint64)
    begun[first, 1, places // _WORD_BITS] = bit
    best_first = sites[from_own & is_best]
    begun[best_first, 0] = begun[best_first, 1]
    # Most sites have one edge: they have the bits of the site before them, so only sites where
    # paths meet take part in the flow.
    is_only = (np.bincount(sites, minlength=count)[sites] == 1) & ~from_own
    same_as = _ends_of_chains(count, sites[is_only], previous[is_only])
    meeting = np.flatnonzero(~is_only & ~from_own)
    if len(meeting):
        _flow(begun, sites[meeting], same_as[previous[meeting]], is_best[meeting])
    begun = begun.take(same_as, axis=0)
    begun[:, 1] &= ~begun[:, 0]
    bits = np.unpackbits(begun.view(np.uint8), axis=2, count=len(first), bitorder="little")
    rows, places = np.nonzero(bits.reshape(count, -1).view(np.bool_))
    return rows, first[places % max(1, len(first))]


def _ends_of_chains(count: int, links: Column, leads_to: Column) -> Column:
    """Follow chains of sites to their ends; each round looks twice as far."""
    ends = np.arange(count)
    ends[links] = leads_to
    while True:
        farther = ends[ends]
        if np.array_equal(farther, ends):
            return ends
        ends = farther


def _flow(begun: NDArray[np.uint64], sites: Column, previous: Column, is_best: Mask) -> None:
    """Let bits flow along edges, which are sorted by site, until nothing changes."""
    passing = np.where(is_best, _ALL_BITS, np.uint64(0))[:, np.newaxis]
    starts = np.flatnonzero(np.diff(sites, prepend=NOTHING))
    heads = sites[starts]
    known = now = begun[heads]
    while True:
        flowing = begun.take(previous, axis=0)
        flowing[:, 0] &= passing
        then = known | np.bitwise_or.reduceat(flowing, starts, axis=0)
        if np.array_equal(now, then):
            return
        begun[heads] = now = then
