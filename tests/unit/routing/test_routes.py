"""Routing equals what one finds by looking at every path there is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.routing.arrays import EXACT_MAX, ArraySolver
from openmsmq.routing.graph import Graph
from openmsmq.routing.plain import PlainSolver
from openmsmq.routing.router import Solver, make_solver
from openmsmq.routing.routes import RouteState
from openmsmq.routing.snapshot import LinkEntry, SiteEntry, Snapshot
from tests.unit.routing.enterprises import Router, best_paths, expected_route, path_of, snapshots

SOLVERS = [ArraySolver, PlainSolver]

each_solver = pytest.mark.parametrize("make", SOLVERS)
MakeSolver = Callable[[Graph[str]], Solver[str]]


def enterprise(*links: tuple[str, str, int]) -> Snapshot[str]:
    sites = sorted({site for link in links for site in link[:2]})
    return Snapshot(
        tuple(SiteEntry(site) for site in sites),
        tuple(LinkEntry(*link) for link in links),
        with_gates=False,
    )


def numbers(make: MakeSolver, snapshot: Snapshot[str]) -> tuple[Solver[str], dict[str, int]]:
    graph = Graph.of(snapshot)
    return make(graph), {site: number for number, site in enumerate(graph.sites)}


@each_solver
@given(snapshot=snapshots())
@pytest.mark.spec("MQBR-3.1.3.1-03")
def test_every_row_of_every_table_is_what_all_paths_say(
    make: MakeSolver, snapshot: Snapshot[str]
) -> None:
    solver, number = numbers(make, snapshot)
    for source in number:
        expected = [expected_route(snapshot, source, goal) for goal in number]
        assert list(solver.table([number[source]])) == expected


@each_solver
@given(snapshot=snapshots())
def test_every_path_is_the_first_of_the_best(make: MakeSolver, snapshot: Snapshot[str]) -> None:
    solver, number = numbers(make, snapshot)
    for goal in number:
        tree = solver.tree(number[goal])
        for source in number:
            path = tuple(solver.graph.sites[site] for site in path_of(tree, number[source]))
            assert path == next(iter(best_paths(snapshot, source, goal)), ())


@each_solver
@given(snapshot=snapshots())
def test_a_path_follows_the_tables_of_the_sites_on_it(
    make: MakeSolver, snapshot: Snapshot[str]
) -> None:
    solver, number = numbers(make, snapshot)
    tables = {site: solver.table([at]) for site, at in number.items()}
    for goal in number:
        tree = solver.tree(number[goal])
        for source, table in tables.items():
            row = table.route(number[goal])
            first = int(tree.next_site[number[source]])
            assert (solver.graph.sites[first] if first >= 0 else None) == next(
                iter(row.next_sites), None
            )
            assert row.state is RouteState(int(tree.reach.state[number[source]]))


@given(snapshot=snapshots(), choice=st.data())
def test_a_queue_manager_of_several_sites_takes_the_cheapest_way_out_of_any(
    snapshot: Snapshot[str], choice: st.DataObject
) -> None:
    keys = sorted(site.key for site in snapshot.sites)
    own = (
        choice.draw(st.lists(st.sampled_from(keys), min_size=2, unique=True)) if keys[1:] else keys
    )
    graph = Graph.of(snapshot)
    places = [graph.sites.index(key) for key in sorted(own)]
    table = ArraySolver(graph).table(places)
    assert list(table) == list(PlainSolver(graph).table(places))
    for row in table:
        alone = [expected_route(snapshot, key, row.destination) for key in own]
        costs = [route.cost for route in alone if route.cost is not None]
        assert row.cost == min(costs, default=None)
        cheapest = [route for route in alone if route.cost == row.cost]
        outside = {site for route in cheapest for site in route.next_sites} - set(own)
        assert set(row.next_sites) == outside
        assert (row.state is RouteState.HERE) == (row.destination in own)


@given(snapshot=snapshots())
def test_the_order_in_which_the_directory_answers_does_not_matter(
    snapshot: Snapshot[str],
) -> None:
    turned = Snapshot(snapshot.sites[::-1], snapshot.links[::-1], snapshot.with_gates)
    for site in snapshot.sites:
        assert list(Router(snapshot).table([site.key])) == list(Router(turned).table([site.key]))


@pytest.mark.spec("MQBR-4-01")
@pytest.mark.parametrize(("between_b_and_c", "path"), [(1, "abc"), (3, "abdc")])
def test_the_four_sites_of_the_specification(between_b_and_c: int, path: str) -> None:
    links = ("a", "b", 3), ("b", "c", between_b_and_c), ("b", "d", 1), ("c", "d", 1)
    assert Router(enterprise(*links)).path("a", "c") == tuple(path)


def test_equal_paths_give_several_next_sites_and_the_one_with_fewer_hops_is_first() -> None:
    links = ("a", "b", 1), ("b", "c", 1), ("c", "z", 1), ("a", "d", 1), ("d", "z", 2)
    route = list(Router(enterprise(*links)).table(["a"]))[-1]
    assert (route.destination, route.cost, route.hop_count) == ("z", 3, 2)
    assert route.next_sites == ("d", "b")


def test_a_dead_end_without_gate_blocks_although_a_dearer_way_is_open() -> None:
    links = ("a", "b", 1), ("b", "c", 1), ("a", "d", 5), ("d", "c", 5)
    plain = enterprise(*links)
    gated = Snapshot(
        tuple(SiteEntry(s.key, () if s.key == "b" else (f"{s.key}1",)) for s in plain.sites),
        plain.links,
        with_gates=True,
    )
    rows = {row.destination: row for row in Router(gated).table(["a"])}
    assert {key: row.state for key, row in rows.items()} == {
        "a": RouteState.HERE,
        "b": RouteState.BLOCKED,
        "c": RouteState.BLOCKED,
        "d": RouteState.OPEN,
    }
    assert rows["c"].next_sites == ("b",)


@each_solver
def test_a_way_of_more_hops_than_a_message_makes_is_too_far(make: MakeSolver) -> None:
    chain = [f"{place:02}" for place in range(33)]
    links = [(one, other, 1) for one, other in pairwise(chain)]
    solver, number = numbers(make, enterprise(*links))
    states = [row.state for row in solver.table([number["00"]])]
    assert states == [RouteState.HERE] + [RouteState.OPEN] * 30 + [RouteState.TOO_FAR] * 2


def test_a_site_with_more_neighbours_than_a_word_has_bits_keeps_them_apart() -> None:
    spokes = [f"s{place:03}" for place in range(200)]
    hub = [("hub", spoke, 1) for spoke in spokes]
    graph = Graph.of(enterprise(*hub, *((spoke, "z", 1) for spoke in spokes)))
    own = [graph.sites.index("hub")]
    rows = list(ArraySolver(graph).table(own))
    assert rows == list(PlainSolver(graph).table(own))
    assert rows[-1].next_sites == tuple(spokes)


def test_numbers_too_large_for_the_compiled_solver_are_left_to_the_plain_one() -> None:
    chain = [f"{place:04}" for place in range(3_000)]
    links = [(one, other, 999_999) for one, other in pairwise(chain)]
    shut = msgspec.structs.replace(enterprise(*links), with_gates=True)
    assert Graph.of(shut).path_value_max >= EXACT_MAX
    assert isinstance(make_solver(Graph.of(shut)), PlainSolver)
    assert isinstance(make_solver(Graph.of(enterprise(*links))), ArraySolver)


def test_one_site_alone_and_no_site_at_all() -> None:
    alone: Snapshot[str] = Snapshot((SiteEntry("a"),), (), with_gates=False)
    assert [row.state for row in Router(alone).table(["a"])] == [RouteState.HERE]
    assert Router(Snapshot[str]((), (), with_gates=True)).graph.sites == ()
