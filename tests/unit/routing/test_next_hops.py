"""To whom messages are passed: by the words of MQBR, round failures, and never in a circle."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openmsmq.model.identity import Guid
from openmsmq.routing.next_hops import EXTRA_MAX_HOPS, Hop, HopKind, Routes
from tests.unit.routing.directories import (
    MANAGERS,
    SITES,
    UNKNOWN,
    Directory,
    Words,
    directories,
    link,
    manager,
    site,
)

A, B, C, D, E, F = SITES
G1, G2, G3, G4, R1, R2, P1, P2, P3, P4 = MANAGERS


def all_routes(directory: Directory, *, route_around: bool = True) -> dict[Guid, Routes]:
    first = directory.routes(directory.managers[0].identifier, route_around=route_around)
    return {info.identifier: first.seen_by(info.identifier) for info in directory.managers}


@given(directory=directories())
@pytest.mark.spec("MQBR-3.1.3.1-01", "MQBR-3.1.3.1-02", "MQBR-3.1.5.1-01", "MQBR-3.1.5.2-01")
@pytest.mark.spec("MQBR-3.1.5.3-01", "MQBR-3.1.5.5-01", "MQBR-3.1.5.6-01", "MQBR-3.1.5.7-01")
def test_next_hops_are_those_that_the_words_of_the_specification_give(
    directory: Directory,
) -> None:
    words = Words(directory)
    for own, routes in all_routes(directory).items():
        for goal in words.managers:
            if goal == own:
                continue
            rest = list(routes.next_hops(goal))
            for expected in words.next_hops(own, goal):
                fresh = expected - {own}
                # A gate of two sites is tried once, in the first place that it has.
                batch = [hop for hop in rest if hop in fresh]
                assert rest[: len(batch)] == batch
                del rest[: len(batch)]
            assert rest == []
            expected_hops = {hop for batch in words.next_hops(own, goal) for hop in batch} - {own}
            assert set(routes.next_hops(goal)) == expected_hops


@given(directory=directories())
def test_without_ways_around_a_gate_has_only_the_next_site_of_its_table(
    directory: Directory,
) -> None:
    around = all_routes(directory)
    for own, routes in all_routes(directory, route_around=False).items():
        for info in directory.managers:
            hops, more = routes.hops(info.identifier), around[own].hops(info.identifier)
            assert hops == more[: len(hops)]
            entered = {hop.site for hop in hops if hop.kind is HopKind.NEXT_GATE}
            assert len(entered) <= 1
            if not entered:
                continue
            assert routes.table is not None
            rows = [row for row in routes.table if row.destination in info.sites]
            least = min(row.cost for row in rows if row.cost is not None)
            firsts = {row.next_sites[0] for row in rows if row.cost == least}
            assert entered <= firsts


@settings(max_examples=400)
@given(directory=directories())
def test_whichever_hops_fail_nobody_is_on_a_way_twice_and_ways_are_short(
    directory: Directory,
) -> None:
    """Whatever is dead, a message takes one of the hops that are given: so all are followed."""
    routes = all_routes(directory)
    most = len(directory.sites) + EXTRA_MAX_HOPS
    for goal in routes:
        longest: dict[Guid, int] = {goal: 0}
        for source in routes:
            assert follow(routes, source, goal, longest, []) <= most


def follow(
    routes: dict[Guid, Routes], at: Guid, goal: Guid, longest: dict[Guid, int], on_way: list[Guid]
) -> int:
    """Return the number of hops of the longest way; nobody may be on a way twice."""
    assert at not in on_way
    if at not in longest:
        hops = routes[at].hops(goal)
        lengths = [1 + follow(routes, hop.manager, goal, longest, [*on_way, at]) for hop in hops]
        longest[at] = max(lengths, default=0)
    return longest[at]


@given(directory=directories(), data=st.data())
def test_the_sites_on_a_way_never_repeat(directory: Directory, data: st.DataObject) -> None:
    routes = all_routes(directory)
    everybody = sorted(routes)
    at, goal = data.draw(st.tuples(st.sampled_from(everybody), st.sampled_from(everybody)))
    behind: set[Guid] = set()
    while hops := routes[at].hops(goal):
        hop: Hop = data.draw(st.sampled_from(hops))
        if hop.kind is HopKind.NEXT_GATE:
            behind |= set(routes[at].enterprise.managers[at].sites)
            assert hop.site not in behind
            assert hop.site in routes[at].enterprise.managers[hop.manager].sites
        at = hop.manager


@given(directory=directories())
def test_the_order_of_the_directory_does_not_matter(directory: Directory) -> None:
    turned = Directory(directory.sites[::-1], directory.links[::-1], directory.managers[::-1])
    for own in directory.managers:
        for goal in directory.managers:
            assert directory.routes(own.identifier).next_hops(goal.identifier) == turned.routes(
                own.identifier
            ).next_hops(goal.identifier)


# The example of the specification, with a gate in each site.


def four_sites(between_b_and_c: int) -> Directory:
    gates = dict(zip((A, B, C, D), (G1, G2, G3, G4), strict=True))
    ends = {(A, B): 3, (B, C): between_b_and_c, (B, D): 1, (C, D): 1}
    return Directory(
        tuple(map(site, gates)),
        tuple(link(x, y, gates[x], gates[y], cost=cost) for (x, y), cost in ends.items()),
        (
            *(manager(gate, at, routing=True) for at, gate in gates.items()),
            manager(P1, A),
            manager(P3, C),
        ),
    )


def way(directory: Directory, source: Guid, goal: Guid) -> list[Guid]:
    path = [source]
    while path[-1] != goal:
        path.append(directory.routes(path[-1]).next_hops(goal)[0])
    return path


@pytest.mark.spec("MQBR-4-01")
@pytest.mark.parametrize(
    ("between_b_and_c", "path"),
    [(1, [P1, G1, G2, G3, P3]), (3, [P1, G1, G2, G4, G3, P3])],
)
def test_the_four_sites_of_the_specification(between_b_and_c: int, path: list[Guid]) -> None:
    assert way(four_sites(between_b_and_c), P1, P3) == path


def test_a_gate_tries_other_sites_that_are_nearer_to_the_destination() -> None:
    directory = four_sites(3)
    assert directory.routes(G2).next_hops(P3) == (G4, G3)
    assert directory.routes(G2, route_around=False).next_hops(P3) == (G4,)
    # From D the only other way leads back.
    assert directory.routes(G4).next_hops(P3) == (G3,)


def test_of_two_sites_at_the_same_cost_only_one_passes_to_the_other() -> None:
    ends = {(A, B): 1, (A, C): 5, (B, C): 5}
    directory = Directory(
        tuple(map(site, (A, B, C))),
        tuple(link(x, y, G1, G2, G3, cost=cost) for (x, y), cost in ends.items()),
        tuple(
            manager(gate, at, routing=True)
            for gate, at in zip((G1, G2, G3), (A, B, C), strict=True)
        ),
    )
    assert directory.routes(G1).next_hops(G3) == (G3,)
    assert directory.routes(G2).next_hops(G3) == (G3, G1)


# Within a site.


def one_site(*managers: msgspec.Struct) -> Directory:
    return Directory((site(A),), (), managers)  # type: ignore[arg-type]


def test_in_the_same_site_the_destination_is_first_and_routing_servers_help_out() -> None:
    directory = one_site(
        manager(P1, A), manager(P2, A), manager(R1, A, routing=True), manager(R2, B, routing=True)
    )
    assert directory.routes(P1).next_hops(P2) == (P2, R1)
    alone = Routes(P1, (), (), directory.managers, route_on_direct_failure=False)
    assert alone.next_hops(P2) == (P2,)
    assert directory.routes(R1).next_hops(P2) == (P2,)


def test_out_routing_servers_come_before_everything_even_in_the_same_site() -> None:
    directory = one_site(
        manager(P1, A, out=(R1, P3, UNKNOWN)), manager(P2, A), manager(R1, A, routing=True),
        manager(P3, A),
    )  # fmt: skip
    assert directory.routes(P1).next_hops(P2) == (R1,)
    assert directory.routes(P1).next_hops(R1) == (R1,)


def test_in_routing_servers_stand_before_their_destination() -> None:
    directory = one_site(
        manager(P1, A), manager(P2, A, into=(R1,)), manager(R1, A, routing=True),
        manager(R2, A, routing=True),
    )  # fmt: skip
    assert way(directory, P1, P2) == [P1, R1, P2]
    assert way(directory, R2, P2) == [R2, R1, P2]


def test_servers_that_do_not_exist_or_do_not_route_are_as_if_not_named() -> None:
    directory = one_site(
        manager(P1, A, out=(UNKNOWN, P3)), manager(P2, A, into=(P3, P1)), manager(P3, A)
    )
    assert directory.routes(P1).next_hops(P2) == (P2,)


@pytest.mark.spec("MQBR-3.1.5.1-02", "MQBR-3.1.5.4-01")
def test_the_unknown_and_oneself_have_no_next_hop() -> None:
    directory = one_site(manager(P1, A), manager(P2, A), manager(P3), manager(P4, UNKNOWN))
    assert directory.routes(P1).next_hops(UNKNOWN) == ()
    assert directory.routes(UNKNOWN).next_hops(P1) == ()
    assert directory.routes(P1).next_hops(P1) == ()
    assert directory.routes(P1).next_hops(P3) == ()
    assert directory.routes(P3).next_hops(P4) == ()


# Between sites.


def test_two_routing_servers_that_are_no_gates_do_not_pass_messages_to_and_fro() -> None:
    directory = Directory(
        (site(A), site(B)),
        (link(A, B, G2),),
        (manager(R1, A, routing=True), manager(R2, A, routing=True), manager(G2, B, routing=True)),
    )
    assert directory.routes(R1).next_hops(G2) == ()


@pytest.mark.spec("MQBR-3.1.5.8-01")
def test_only_a_routing_server_named_by_a_link_of_its_own_site_is_a_gate() -> None:
    directory = Directory(
        (site(A), site(B), site(C)),
        (link(A, B, G1, P1, R2), link(B, C, G1)),
        (
            manager(G1, A, routing=True), manager(P1, A), manager(R1, A, routing=True),
            manager(R2, C, routing=True),
        ),
    )  # fmt: skip
    gates = {key: directory.routes(key).is_site_gate for key in (G1, P1, R1, R2)}
    assert gates == {G1: True, P1: False, R1: False, R2: False}
    assert directory.routes(R1).table is None
    table = directory.routes(G1).table
    assert table is not None
    assert [row.cost for row in table] == [0, 1, 2]


def test_a_queue_manager_of_several_sites_hands_over_where_a_way_leads_on() -> None:
    """Only from B does a link lead to C; the routing server of A could not pass anything on."""
    directory = Directory(
        (site(A), site(B), site(C)),
        (link(B, C, G2, G3),),
        (
            manager(P1, A, B), manager(R1, A, routing=True), manager(G2, B, routing=True),
            manager(G3, C, routing=True), manager(P3, C),
        ),
    )  # fmt: skip
    assert way(directory, P1, P3) == [P1, G2, G3, P3]
    assert directory.routes(P1).next_hops(P3) == (G2,)


def test_senders_spread_over_the_gates_of_a_site() -> None:
    servers = [manager(key, A, routing=True) for key in (G1, G2, G3)]
    senders = [manager(Guid(bytes([9, number]) * 8), A) for number in range(60)]
    directory = Directory((site(A), site(B)), (), (*servers, *senders, manager(P1, B)))
    firsts = [directory.routes(sender.identifier).next_hops(P1)[0] for sender in senders]
    assert min(firsts.count(key) for key in (G1, G2, G3)) >= 10


def test_a_long_chain_of_sites_is_passed_in_as_many_hops_as_it_has_sites_and_three() -> None:
    sites = [Guid(bytes([0xC0, number]) * 8) for number in range(20)]
    gates = [Guid(bytes([0xD0, number]) * 8) for number in range(20)]
    directory = Directory(
        tuple(map(site, sites)),
        tuple(link(x, y, *gates) for x, y in pairwise(sites)),
        (
            *(manager(gate, at, routing=True) for gate, at in zip(gates, sites, strict=True)),
            manager(P1, sites[0], out=(R1,)),
            manager(R1, sites[0], routing=True),
            manager(R2, sites[-1], routing=True),
            manager(P2, sites[-1], into=(R2,)),
        ),
    )
    assert way(directory, P1, P2) == [P1, R1, *gates, R2, P2]
    assert len(way(directory, P1, P2)) - 1 == len(sites) + EXTRA_MAX_HOPS
