"""The administrator of a simulated enterprise, and what may be missing when the work is done."""

from __future__ import annotations

import random

import msgspec
import pytest

from openmsmq.model.directory import NOWHERE, DirectoryChanges
from openmsmq.model.queue import QueueRole
from openmsmq.sim.applications.administrator import Desk
from openmsmq.sim.checks.facts import Kind
from openmsmq.sim.checks.store_watch import Lying, Shelf, StoreWatch
from openmsmq.sim.checks.stranded import Stranded
from openmsmq.sim.enterprise.enterprise import Enterprise
from openmsmq.sim.enterprise.rules import Layout
from openmsmq.sim.runner import make_world
from openmsmq.sim.scenarios.enterprise import Chore, DrawnMember, Task, draw_enterprise
from openmsmq.sim.scenarios.scenario import Options
from tests.sim.test_enterprise import TRIANGLE, built, places

ENTERPRISE = Options(enterprise=True)


def after(enterprise: Enterprise, chore: Chore) -> Layout:
    desk = Desk(enterprise, enterprise.rules.layout, random.Random(1))
    enterprise.change(enterprise.changes_to(desk.after(chore)))
    return enterprise.rules.layout


def test_a_link_that_has_failed_for_ever_is_taken_out():
    enterprise = built(TRIANGLE)
    enterprise.lost_links.add(0)
    assert sorted(after(enterprise, Chore(0, Task.INSPECT)).links) == [1, 2]
    assert enterprise.rules.next_hops(0, 1) == {2}
    assert enterprise.rules_at(1).next_hops(0, 1) == {1, 2}


def test_another_takes_the_place_of_a_gate_that_has_failed_for_ever():
    enterprise = built(TRIANGLE)
    enterprise.lost_nodes.add(0)
    layout = after(enterprise, Chore(0, Task.INSPECT))
    assert [link.gates for link in layout.links.values()] == [(1, 3), (1, 2), (2, 3)]
    assert layout.members[0] is None or not layout.members[0].routing
    assert layout.members[3] is not None
    assert layout.members[3].routing
    # Two who were never gates cannot talk over a link; one who has become a gate can.
    assert enterprise.joined(3, 1)
    assert not built(TRIANGLE).joined(3, 1)


def test_servers_that_have_failed_for_ever_serve_nobody():
    member = DrawnMember((0,), into=(0, 4), out=(4,))
    members = (*TRIANGLE.members[:3], member, DrawnMember((0,), routing=True))
    enterprise = built(msgspec.structs.replace(TRIANGLE, members=members))
    enterprise.lost_nodes.add(4)
    assert after(enterprise, Chore(0, Task.INSPECT)).members[3] == DrawnMember((0,), into=(0,))


def test_costs_change_and_links_come_and_go():
    enterprise = built(TRIANGLE)
    assert after(enterprise, Chore(0, Task.COST, 2, 1)).links[2].cost == 1
    assert sorted(after(enterprise, Chore(0, Task.REMOVE, 2)).links) == [0, 1]
    assert after(enterprise, Chore(0, Task.COST, 2, 3)).links.keys() == {0, 1}
    assert after(enterprise, Chore(0, Task.ADD, 2)).links[2] == TRIANGLE.links[2]
    assert enterprise.number == len(enterprise.states) == 4
    enterprise.lost_links.add(2)
    after(enterprise, Chore(0, Task.INSPECT))
    assert sorted(after(enterprise, Chore(0, Task.ADD, 2)).links) == [0, 1]


def test_a_copy_is_told_what_has_changed_since_it_asked():
    enterprise = built(TRIANGLE)
    first = enterprise.told(NOWHERE)
    assert first.is_complete
    assert enterprise.told(first.position) == DirectoryChanges(first.position)
    after(enterprise, Chore(0, Task.COST, 2, 1))
    (change,) = enterprise.told(first.position).changes
    assert change.cost == 1


@pytest.mark.parametrize("seed", range(30))
def test_at_the_end_the_directory_names_nothing_that_is_dead(seed):
    rng = random.Random(seed)
    count = rng.randrange(4, 30)
    scenario = draw_enterprise(rng, count, 1_000, faults=True)
    enterprise = Enterprise(scenario, places(count), rng)
    for chore in scenario.chores:
        for outage in scenario.outages:
            if outage.ends_ms is None and outage.begins_ms <= chore.at_ms:
                lost = enterprise.lost_links if outage.is_link else enterprise.lost_nodes
                lost.add(outage.number)
        after(enterprise, chore)
    layout, lost_nodes = enterprise.rules.layout, enterprise.lost_nodes
    assert enterprise.lost_links.isdisjoint(layout.links)
    named = {gate for link in layout.links.values() for gate in link.gates}
    for index, member in enumerate(layout.members):
        if member is not None:
            named.update(member.into, member.out)
            assert not (member.routing and index in lost_nodes)
    assert lost_nodes.isdisjoint(named)
    assert lost_nodes == scenario.gone


def test_without_faults_the_administrator_works_too():
    scenarios = [
        draw_enterprise(random.Random(seed), 9, 1_000, faults=False).chores for seed in range(40)
    ]
    tasks = {chore.task for chores in scenarios for chore in chores}
    assert tasks == set(Task) - {Task.INSPECT}


def test_nodes_hear_of_changes_at_different_moments_and_all_of_them_in_the_end():
    ended, spread = 0, 0
    for seed in range(6):
        world = make_world(seed, ENTERPRISE)
        enterprise = world.enterprise
        heard = {}
        stored = world.directory_stored

        def note(world=world, heard=heard, stored=stored):
            for index, watch in world.books.disks.watches.items():
                heard.setdefault((index, watch.directory_number), world.timeline.now_ms)
            stored()

        world.directory_stored = note
        world.run()
        last = {heard.get((node.index, enterprise.number)) for node in world.lasting}
        assert None not in last
        ended += enterprise.number > 1
        spread += enterprise.number > 1 and max(last) - min(last) > 1_000
    assert ended >= 3
    assert spread >= 2


# What may stay where it is.


def stranded_in_the_triangle(*down, dead_links=()):
    """All nodes of the triangle live but some; each link of it works but some."""
    world = make_world(0, Options(enterprise=True, managers=5, faults=False))
    world.enterprise = built(TRIANGLE)
    world.enterprise.dead_links.update(dead_links)
    for node in world.nodes:
        node.manager = None if node.index in down else object()
        world.books.disks.watches[node.index] = StoreWatch()
    return world, Stranded(world, world.enterprise)


def lying(world, at, goal, message):
    packet = bytes(32) + bytes([goal + 1]) * 16
    entry = Lying(Shelf(9, "out", QueueRole.OUTGOING), 1, message.number, 0, packet, True)
    world.books.disks.watches[at].entries[b"E"] = entry
    return world.nodes[at], entry


def sent(world, kind, source, goal):
    group = world.books.new_group(world.nodes[source])
    return world.books.new_message(kind, group, world.nodes[goal], "queue")


def test_what_has_a_way_from_where_it_lies_is_not_excused():
    world, stranded = stranded_in_the_triangle(1)
    message = sent(world, Kind.RECOVERABLE, 3, 4)
    assert not stranded.excuses(*lying(world, 0, 4, message))
    assert not stranded.excuses_message(message)


def test_what_only_a_gate_had_that_has_failed_for_ever_is_excused():
    world, stranded = stranded_in_the_triangle(1)
    message = sent(world, Kind.RECOVERABLE, 3, 4)
    assert stranded.excuses(*lying(world, 1, 4, message))
    assert stranded.excuses_message(message)


def test_a_transactional_message_is_not_excused_by_a_gate_that_is_lost():
    """Its source has it too, and sends it again."""
    world, stranded = stranded_in_the_triangle(1)
    message = sent(world, Kind.TRANSACTIONAL, 3, 4)
    lying(world, 1, 4, message)
    assert not stranded.excuses_message(message)


def test_what_is_cut_off_is_excused_and_what_has_arrived_is_not():
    world, stranded = stranded_in_the_triangle(dead_links=(1, 2))
    message = sent(world, Kind.TRANSACTIONAL, 3, 4)
    assert stranded.excuses(*lying(world, 3, 4, message))
    assert stranded.excuses_message(message)
    message.arrivals = 1
    assert not stranded.excuses_message(message)
