"""What paths carry, and which change, equals what one finds by walking each path."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.routing.changes import Change, GateDown, LinkDown, SetCost, changed
from openmsmq.routing.flows import carried, moved
from openmsmq.routing.graph import Graph
from openmsmq.routing.router import make_solver
from openmsmq.routing.routes import RouteState
from openmsmq.routing.snapshot import Snapshot
from tests.unit.routing.enterprises import NAMES, snapshots

amounts = st.lists(st.integers(0, 2**40), min_size=2 * len(NAMES), max_size=2 * len(NAMES))
site = st.sampled_from(NAMES)
changes = st.lists(
    st.builds(SetCost, site, site, st.integers(1, 6))
    | st.builds(LinkDown, site, site)
    | st.builds(GateDown, st.sampled_from([f"{name}1" for name in NAMES])),
    max_size=3,
)


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
                for passing, receiving in pairwise(tree.path(source)):
                    expected[passing] += sent[source]
                    link = int(tree.link[passing])
                    ends = graph.first[link], graph.second[link]
                    assert ends == (min(passing, receiving), max(passing, receiving))
        assert carried(tree, sent).tolist() == expected.tolist()


@given(snapshot=snapshots(), changes=changes)
def test_a_path_is_moved_when_it_is_another_list_of_sites(
    snapshot: Snapshot[str], changes: list[Change]
) -> None:
    before = make_solver(Graph.of(snapshot))
    after = make_solver(Graph.of(changed(snapshot, changes)))
    assert before.graph.sites == after.graph.sites
    for destination in range(len(before.graph.sites)):
        old, new = before.tree(destination), after.tree(destination)
        expected = [
            bool(new.path(source)) and old.path(source) != new.path(source)
            for source in range(len(before.graph.sites))
        ]
        assert moved(old, new).tolist() == expected
