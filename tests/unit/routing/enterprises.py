"""Small enterprises for the routing tests, and the slow way to find all their paths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Generic

from hypothesis import strategies as st

from openmsmq.model.limits import HOP_MAX_COUNT
from openmsmq.routing.changes import Change, GateDown, LinkDown, SetCost
from openmsmq.routing.graph import Graph, SiteNumber
from openmsmq.routing.router import make_solver
from openmsmq.routing.routes import NOTHING, Route, RouteState, RoutingTable, Tree
from openmsmq.routing.snapshot import Key, LinkEntry, SiteEntry, Snapshot

NAMES = "abcdef"


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot[str]:
    """Up to six sites; costs are few, so that paths tie; some sites may have no gate."""
    names = draw(st.permutations(NAMES[: draw(st.integers(1, len(NAMES)))]))
    site = st.sampled_from(names)
    gates = {name: (f"{name}1", f"{name}2")[: draw(st.sampled_from([1, 2, 0]))] for name in names}
    serving = st.none() | st.sampled_from([(f"{name}1",) for name in names])
    # A shuffled list of all pairs, cut anywhere, has many more paths than links drawn one by one.
    pairs = draw(st.permutations([(a, b) for a in names for b in names if a < b]))
    kept = pairs[: draw(st.integers(0, len(pairs)))]
    useful = [
        LinkEntry(*draw(st.permutations(pair)), draw(st.integers(1, 3)), draw(serving))
        for pair in kept
    ]
    other = st.builds(
        LinkEntry[str],
        site,
        site | st.just("nowhere"),
        st.sampled_from([1, 2, 0, 999_999, 1_000_000]),
        serving,
    )
    links = draw(st.permutations(useful + draw(st.lists(other, max_size=3))))
    return Snapshot(
        tuple(SiteEntry(name, gates[name]) for name in names), tuple(links), draw(st.booleans())
    )


def changes_of(snapshot: Snapshot[str]) -> st.SearchStrategy[list[Change]]:
    """Up to three changes to what a snapshot has."""
    gates = [gate for site in snapshot.sites for gate in site.gates]
    ends = st.sampled_from([(link.site1, link.site2) for link in snapshot.links] or [("a", "b")])
    return st.lists(
        st.builds(lambda pair, cost: SetCost(*pair, cost), ends, st.integers(1, 6))
        | st.builds(lambda pair: LinkDown(*pair), ends)
        | st.builds(GateDown, st.sampled_from(gates or ["a1"])),
        max_size=3,
    )


def costs(snapshot: Snapshot[str]) -> dict[tuple[str, str], int]:
    """The cost between neighbours, in both directions, over links that can be used."""
    found: dict[tuple[str, str], int] = {}
    sites = {site.key for site in snapshot.sites}
    for link in snapshot.links:
        is_between = {link.site1, link.site2} <= sites and link.site1 != link.site2
        if is_between and 1 <= link.cost <= 999_999:
            for pair in ((link.site1, link.site2), (link.site2, link.site1)):
                found[pair] = min(found.get(pair, link.cost), link.cost)
    return found


def shut_sites(snapshot: Snapshot[str]) -> set[str]:
    """The sites that have no gate."""
    if not snapshot.with_gates:
        return set()
    shut = set()
    for site in snapshot.sites:
        serving = [
            gate
            for link in snapshot.links
            if site.key in (link.site1, link.site2)
            for gate in (site.gates if link.gates is None else link.gates)
        ]
        if not set(serving) & set(site.gates):
            shut.add(site.key)
    return shut


def simple_paths(
    neighbours: dict[tuple[str, str], int], path: tuple[str, ...], goal: str
) -> Iterator[tuple[str, ...]]:
    """Walk every way from a site to another that visits no site twice."""
    if path[-1] == goal:
        yield path
        return
    for source, target in neighbours:
        if source == path[-1] and target not in path:
            yield from simple_paths(neighbours, (*path, target), goal)


def best_paths(snapshot: Snapshot[str], source: str, goal: str) -> list[tuple[str, ...]]:
    """All least-cost paths, the one to take first."""
    cost = costs(snapshot)
    shut = shut_sites(snapshot)

    def total(path: tuple[str, ...]) -> int:
        return sum(cost[pair] for pair in pairwise(path))

    paths = list(simple_paths(cost, (source,), goal))
    least = min(map(total, paths), default=0)
    tied = [path for path in paths if total(path) == least]
    return sorted(tied, key=lambda path: (len(shut.intersection(path)), len(path), path))


def expected_route(snapshot: Snapshot[str], source: str, goal: str) -> Route[str]:
    """The row of the routing table, from the list of all paths."""
    if source == goal:
        return Route(goal, RouteState.HERE, 0, 0, ())
    paths = best_paths(snapshot, source, goal)
    if not paths:
        return Route(goal, RouteState.UNREACHABLE, None, None, ())
    shut = shut_sites(snapshot)
    cost = costs(snapshot)
    first = paths[0]
    best = [
        path
        for path in paths
        if (len(path), len(shut.intersection(path))) == (len(first), len(shut.intersection(first)))
    ]
    ranked = sorted({path[1] for path in best})
    ranked += sorted({path[1] for path in paths} - set(ranked))
    state = RouteState.OPEN
    if shut.intersection(first):
        state = RouteState.BLOCKED
    elif len(first) - 2 > HOP_MAX_COUNT:
        state = RouteState.TOO_FAR
    total = sum(cost[pair] for pair in pairwise(first))
    return Route(goal, state, total, len(first) - 1, tuple(ranked))


def path_of(tree: Tree, source: SiteNumber) -> list[SiteNumber]:
    """List the sites from a source to the destination; empty if there is no path."""
    if tree.reach.cost[source] == NOTHING:
        return []
    sites = [source]
    for _ in range(int(tree.reach.hops[source])):
        sites.append(int(tree.next_site[sites[-1]]))
    return sites


class Router(Generic[Key]):
    """Answers for the sites of one snapshot by their keys."""

    def __init__(self, snapshot: Snapshot[Key]) -> None:
        self.graph: Graph[Key] = Graph.of(snapshot)
        self._solver = make_solver(self.graph)
        self._numbers = {key: number for number, key in enumerate(self.graph.sites)}

    def table(self, own: Iterable[Key]) -> RoutingTable[Key]:
        return self._solver.table(sorted({self._numbers[key] for key in own}))

    def path(self, source: Key, destination: Key) -> tuple[Key, ...]:
        tree = self._solver.tree(self._numbers[destination])
        return tuple(self.graph.sites[number] for number in path_of(tree, self._numbers[source]))
