"""Snapshots of the directory, and the changes that one may think about."""

from __future__ import annotations

import pytest
from hypothesis import given

from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.topology import QueueManagerInfo, RoutingLink, Site
from openmsmq.routing.changes import GateDown, LinkDown, SetCost, changed
from openmsmq.routing.graph import Graph
from openmsmq.routing.routes import RouteState
from openmsmq.routing.snapshot import LinkEntry, SiteEntry, Snapshot, snapshot_of
from tests.unit.routing.enterprises import Router, shut_sites, snapshots

LONDON, PARIS, ROME = (Guid(bytes([number]) * 16) for number in (1, 2, 3))
G_LONDON, G_PARIS, G_BOTH, PLAIN = (Guid(bytes([number]) * 16) for number in (11, 12, 13, 14))


def manager(identifier: Guid, *sites: Guid, routing_server: bool = True) -> QueueManagerInfo:
    return QueueManagerInfo(
        identifier=identifier, computer_name="x", sites=sites, routing_server=routing_server
    )


def link(site1: Guid, site2: Guid, *gates: Guid, cost: int = 1) -> RoutingLink:
    return RoutingLink(identifier=NIL_GUID, site1=site1, site2=site2, cost=cost, site_gates=gates)


def directory(*links: RoutingLink) -> Snapshot[Guid]:
    sites = [Site(identifier=key, name=str(key)) for key in (LONDON, PARIS, ROME)]
    managers = [
        manager(G_LONDON, LONDON),
        manager(G_PARIS, PARIS),
        manager(G_BOTH, PARIS, ROME),
        manager(PLAIN, ROME, routing_server=False),
    ]
    return snapshot_of(sites, links, managers)


def test_the_gates_of_a_site_are_those_of_its_links_that_belong_to_it() -> None:
    snapshot = directory(
        link(LONDON, PARIS, G_LONDON, G_PARIS, PLAIN), link(PARIS, ROME, G_BOTH, G_LONDON, PLAIN)
    )
    assert snapshot.gates() == {
        LONDON: (G_LONDON,),
        PARIS: (G_PARIS, G_BOTH),
        ROME: (G_BOTH,),
    }


def test_a_site_whose_links_name_no_gate_of_it_blocks() -> None:
    snapshot = directory(link(LONDON, PARIS, G_LONDON), link(PARIS, ROME, G_BOTH))
    states = {row.destination: row.state for row in Router(snapshot).table([LONDON])}
    assert states[PARIS] is states[ROME] is RouteState.OPEN
    without = directory(link(LONDON, PARIS, G_LONDON), link(PARIS, ROME))
    states = {row.destination: row.state for row in Router(without).table([LONDON])}
    assert states[PARIS] is states[ROME] is RouteState.BLOCKED


@pytest.mark.parametrize(
    "useless",
    [
        link(LONDON, NIL_GUID),
        link(LONDON, LONDON),
        link(LONDON, ROME, cost=0),
        link(LONDON, ROME, cost=-1),
        link(LONDON, ROME, cost=1_000_000),
    ],
)
def test_links_that_cannot_be_are_passed_over(useless: RoutingLink) -> None:
    graph = Graph.of(directory(useless, link(LONDON, PARIS)))
    assert (list(graph.first), list(graph.second), list(graph.origins)) == ([0], [1], [1])


def test_of_several_links_between_two_sites_the_cheapest_counts() -> None:
    links = [link(PARIS, LONDON, cost=cost) for cost in (5, 3, 3, 9)]
    graph = Graph.of(directory(*links))
    assert (list(graph.costs), list(graph.origins)) == ([3], [1])


@given(snapshot=snapshots())
def test_sites_without_a_gate_are_closed(snapshot: Snapshot[str]) -> None:
    graph = Graph.of(snapshot)
    closed = {site for site, is_closed in zip(graph.sites, graph.closed, strict=True) if is_closed}
    assert closed == shut_sites(snapshot)


def test_changes_are_applied_in_either_direction_of_a_link() -> None:
    links = (LinkEntry("a", "b", 1), LinkEntry("b", "c", 2))
    snapshot = Snapshot(tuple(map(SiteEntry[str], "abc")), links, with_gates=False)
    assert changed(snapshot, [SetCost("b", "a", 7)]).links == (LinkEntry("a", "b", 7), links[1])
    assert changed(snapshot, [LinkDown("c", "b")]).links == links[:1]
    assert changed(snapshot, [LinkDown("a", "c")]) == snapshot


def test_the_last_gate_that_goes_down_closes_its_site() -> None:
    sites = (SiteEntry("a", ("a1",)), SiteEntry("b", ("b1", "b2")))
    snapshot = Snapshot(sites, (LinkEntry("a", "b", 1, ("a1", "b1", "b2")),), with_gates=True)
    one_left = changed(snapshot, [GateDown("b1")])
    assert one_left.gates() == {"a": ("a1",), "b": ("b2",)}
    assert list(Graph.of(changed(one_left, [GateDown("b2")])).closed) == [0, 1]
