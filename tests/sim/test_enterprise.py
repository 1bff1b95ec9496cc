"""Enterprises in virtual time: everything that has a way arrives once, and nothing goes round."""

from __future__ import annotations

import functools
import os
import random
from itertools import permutations

import msgspec
import pytest

from openmsmq.model.directory import NOWHERE
from openmsmq.model.identity import Guid
from openmsmq.model.topology import QueueManagerInfo, RoutingLink, Site
from openmsmq.routing.next_hops import Routes
from openmsmq.sim.checks.store_watch import StoreWatch
from openmsmq.sim.enterprise.enterprise import Enterprise, Place
from openmsmq.sim.enterprise.rules import Layout
from openmsmq.sim.runner import make_world, run_seed, run_traced
from openmsmq.sim.scenarios.enterprise import (
    DrawnLink,
    DrawnMember,
    EnterpriseScenario,
    draw_enterprise,
)
from openmsmq.sim.scenarios.scenario import Options
from openmsmq.sim.violation import Violation

SEEDS = int(os.environ.get("OPENMSMQ_SEEDS", "100")) // 4
PART = 25


@functools.cache
def results_from(first):
    """Run some seeds, once for all tests of a process."""
    return [run_seed(seed, Options(enterprise=True)) for seed in range(first, first + PART)]


def failures(results):
    return [f"seed {result.seed}: {result.sentence}" for result in results if not result.good]


def places(count):
    return [
        Place(Guid(bytes([index + 1]) * 16), f"N{index}", f"10.0.0.{index}")
        for index in range(count)
    ]


def built(scenario):
    return Enterprise(scenario, places(len(scenario.members)), random.Random(1))


def routes_of(enterprise):
    told = enterprise.told(NOWHERE)
    kinds = {kind: [] for kind in (Site, RoutingLink, QueueManagerInfo)}
    for value in told.changes:
        if type(value) in kinds:
            kinds[type(value)].append(value)
    first = kinds[QueueManagerInfo][0].identifier
    return Routes(first, *kinds.values())


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=[pytest.mark.xdist_group(f"enterprise seeds {first}")])
        for first in range(0, SEEDS, PART)
    ],
)
def test_no_promise_is_broken(first):
    assert failures(results_from(first)) == []


def test_no_promise_is_broken_where_nobody_changes_the_directory():
    """Then every packet is held to as many hops as there are sites, and three."""
    fixed = Options(enterprise=True, administered=False)
    results = [run_seed(seed, fixed) for seed in range(8)]
    assert failures(results) == []
    assert sum(result.change_count for result in results) == 0
    assert max(result.hop_count_max for result in results) >= 4


@pytest.mark.timeout(600)
def test_no_promise_is_broken_among_fifty_queue_managers():
    fifty = Options(enterprise=True, managers=50)
    assert failures(run_seed(seed, fifty) for seed in range(3)) == []


def test_without_faults_only_what_has_no_way_at_all_is_left():
    results = [run_seed(seed, Options(enterprise=True, faults=False)) for seed in range(10)]
    assert failures(results) == []
    assert sum(result.remote_count for result in results) > 200


@pytest.mark.timeout(600)
@pytest.mark.xdist_group("enterprise seeds 0")
def test_the_seeds_do_what_they_are_for():
    results = results_from(0)
    assert sum(result.stranded_count for result in results) > 10
    assert sum(result.remote_count for result in results) > 1_000
    assert sum(result.crash_count for result in results) > 10
    assert sum(result.change_count for result in results) > 25
    assert max(result.hop_count_max for result in results) >= 4


@pytest.mark.parametrize("seed", range(3))
def test_the_same_seed_gives_the_same_trace(seed):
    first, one = run_traced(seed, Options(enterprise=True))
    second, other = run_traced(seed, Options(enterprise=True))
    assert (first, one.digest) == (second, other.digest)


@pytest.mark.parametrize("seed", range(40))
def test_routing_and_the_rules_of_the_simulator_say_the_same(seed):
    """They were written apart from each other."""
    rng = random.Random(seed)
    count = rng.randrange(2, 20)
    enterprise = built(draw_enterprise(rng, count, 1_000, faults=False))
    routes = routes_of(enterprise)
    everybody = places(count)
    for at, goal in permutations(range(count), 2):
        mine = routes.seen_by(everybody[at].identifier)
        hops = mine.next_hops(everybody[goal].identifier)
        assert {enterprise.index_of[hop] for hop in hops} == enterprise.rules.next_hops(at, goal)


# Two sites with a gate and another node each, and a third site beside them.

TRIANGLE = EnterpriseScenario(
    3,
    (DrawnLink(0, 1, 1, (0, 1)), DrawnLink(1, 2, 1, (1, 2)), DrawnLink(0, 2, 5, (0, 2))),
    (
        DrawnMember((0,), routing=True),
        DrawnMember((1,), routing=True),
        DrawnMember((2,), routing=True),
        DrawnMember((0,)),
        DrawnMember((2,)),
    ),
    (),
    (),
)
ALL = frozenset(range(5))


def test_only_neighbours_in_a_site_and_gates_over_a_living_link_can_talk():
    enterprise = built(TRIANGLE)
    talking = {pair for pair in permutations(range(5), 2) if enterprise.joined(*pair)}
    assert {tuple(sorted(pair)) for pair in talking} == {(0, 3), (2, 4), (0, 1), (1, 2), (0, 2)}
    enterprise.dead_links.add(0)
    assert not enterprise.joined(0, 1)
    assert enterprise.joined(0, 2)


def test_a_message_is_sure_to_arrive_while_every_living_hop_leads_there():
    enterprise = built(TRIANGLE)

    def leads(up):
        def living(here, hop):
            return hop in up and enterprise.joined(here, hop)

        return enterprise.rules.leads(3, 4, living)

    assert leads(ALL)
    assert not leads(ALL - {0})
    assert not leads(ALL - {4})
    assert leads(ALL - {1})
    enterprise.dead_links.update((1, 2))
    assert not leads(ALL)


def test_nodes_without_a_way_cannot_connect():
    world = make_world(0, Options(enterprise=True, managers=12, faults=False))
    world.run()
    assert world.network.connection_count > 0
    enterprise = world.enterprise
    for connection in world.network.open_connections:
        assert enterprise.joined(*(end.node.index for end in connection.ends))


def checked(flags, there, source=b"another one else"):
    """Let a packet for the last node of the triangle leave the first for another."""
    world = make_world(0, Options(enterprise=True, managers=5, faults=False))
    world.enterprise = built(TRIANGLE)
    world.books.disks.watches[0] = StoreWatch()
    world.books.disks.watches[0].directory_number = 1
    flow = _FlowBetween(world.nodes[0], world.nodes[there])
    packet = bytes(16) + source + bytes([5]) * 16
    world.books.wire.check_hop(flow, packet, flags, world.enterprise)


class _FlowBetween:
    def __init__(self, node, other):
        self.node = node
        self.other = self if other is None else _FlowBetween(other, None)


def test_a_packet_to_somebody_who_is_no_next_hop_is_noticed():
    checked(1, 1)
    with pytest.raises(Violation, match="no next hop"):
        checked(1, 3)


def test_a_packet_that_was_passed_on_and_not_counted_is_noticed():
    first = make_world(0, Options(enterprise=True, managers=5, faults=False)).nodes[0]
    checked(0, 1, source=first.identifier)
    with pytest.raises(Violation, match="did not count the hop"):
        checked(0, 1)


def test_a_packet_with_a_larger_hop_count_than_there_are_sites_and_three_is_noticed():
    checked(6, 1)
    with pytest.raises(Violation, match="hop count 7"):
        checked(7, 1)


def test_the_hops_of_each_packet_are_counted_from_when_all_know_the_directory():
    world = make_world(0, Options(enterprise=True, managers=5, faults=False))
    enterprise = world.enterprise = built(TRIANGLE)
    world.books.disks.watches[0] = StoreWatch()
    world.books.disks.watches[0].directory_number = 1
    flow = _FlowBetween(world.nodes[0], world.nodes[1])

    def goes(number, hops):
        packet = bytes(16) + b"another one else" + bytes([5]) * 16 + bytes(8) + bytes([number] * 4)
        world.books.wire.check_hop(flow, packet, hops, enterprise)

    enterprise.settled_ms = 1_000
    goes(1, 4)
    other = msgspec.structs.replace(enterprise.rules.layout.links[0], cost=9)
    links = {**enterprise.rules.layout.links, 0: other}
    enterprise.change(enterprise.changes_to(Layout(links, TRIANGLE.members)))
    goes(2, 2)
    enterprise.settled_ms = 2_000
    goes(1, 10)
    goes(2, 8)
    goes(3, 6)
    for number, hops in ((1, 11), (2, 9), (3, 7)):
        with pytest.raises(Violation, match=f"hop count {hops}"):
            goes(number, hops)


def test_a_message_may_go_round_only_if_it_met_different_directories():
    enterprise = built(TRIANGLE)
    assert enterprise.hop_count_max(4) == 6
    enterprise.change(enterprise.changes_to(Layout({}, TRIANGLE.members)))
    assert enterprise.hop_count_max(0) == 12
    enterprise.settled_ms = 1_000
    assert enterprise.hop_count_max(0) == 6
    assert enterprise.hop_count_max(2) == 8
    assert enterprise.hop_count_max(9) == 12
