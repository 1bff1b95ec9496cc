"""What paths carry, and which change, equals what one finds by walking each path."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.routing.changes import Change, LinkDown, changed
from openmsmq.routing.flows import carried, moved
from openmsmq.routing.graph import Graph
from openmsmq.routing.router import make_solver
from openmsmq.routing.routes import RouteState
from openmsmq.routing.snapshot import LinkEntry, SiteEntry, Snapshot
from tests.unit.routing.enterprises import NAMES, changes_of, path_of, snapshots

amounts = st.lists(st.integers(0, 2**40), min_size=2 * len(NAMES), max_size=2 * len(NAMES))


@given(snapshot=snapshots(), amounts=amounts)
def test_each_site_passes_on_what_all_paths_through_it_carry(
    snapshot: Snapshot[str], amounts: list[int]
) -> None:
    graph = Graph.of(snapshot)
    solver = make_solver(graph)
    count = len(graph.sites)
    sent = np.array(amounts[: 2 * count]).reshape(count, 2)
    for destination in range(count):
        tree = solver.tree(destination)
        expected = np.zeros((count, 2), np.int64)
        for source in range(count):
            if tree.reach.state[source] == RouteState.OPEN:
                for passing, receiving in pairwise(path_of(tree, source)):
                    expected[passing] += sent[source]
                    link = int(tree.link[passing])
                    ends = graph.first[link], graph.second[link]
                    assert ends == (min(passing, receiving), max(passing, receiving))
        assert carried(tree, sent).tolist() == expected.tolist()


@given(snapshot=snapshots(), data=st.data())
def test_a_path_is_moved_when_it_is_another_list_of_sites(
    snapshot: Snapshot[str], data: st.DataObject
) -> None:
    compare(snapshot, data.draw(changes_of(snapshot)))


def test_a_path_is_moved_when_only_its_far_end_is_another() -> None:
    links = [(one, other, 1) for one, other in pairwise("abcdefghijz")]
    links += [("i", "k", 2), ("k", "z", 2)]
    snapshot = Snapshot(
        tuple(map(SiteEntry[str], "abcdefghijkz")),
        tuple(LinkEntry(*link) for link in links),
        with_gates=False,
    )
    assert compare(snapshot, [LinkDown("j", "z")])["z"] == list("abcdefghij")


def compare(snapshot: Snapshot[str], changes: list[Change]) -> dict[str, list[str]]:
    """Check what is moved by walking all paths; give by destination whose path is another."""
    before = make_solver(Graph.of(snapshot))
    after = make_solver(Graph.of(changed(snapshot, changes)))
    sites = before.graph.sites
    assert after.graph.sites == sites
    found = {}
    for destination, name in enumerate(sites):
        old, new = before.tree(destination), after.tree(destination)
        expected = [
            bool(path_of(new, source)) and path_of(old, source) != path_of(new, source)
            for source in range(len(sites))
        ]
        assert moved(old, new).tolist() == expected
        found[name] = [site for site, is_moved in zip(sites, expected, strict=True) if is_moved]
    return found
