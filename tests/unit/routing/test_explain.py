"""A way in words leads where the messages go, and says why where it ends."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import Guid
from openmsmq.model.limits import HOP_MAX_COUNT
from openmsmq.routing.explain import Explanation, explain
from tests.unit.routing.directories import (
    MANAGERS,
    SITES,
    UNKNOWN,
    Directory,
    directories,
    link,
    manager,
    site,
)

A, B, C = SITES[:3]
G1, G2, G3, R1, R2, P1, P2, P3 = MANAGERS[:8]


def branch(*more_gates: Guid) -> Directory:
    """A branch, a region and headquarters in a row, with servers at both ends."""
    return Directory(
        (site(A, "BRANCH"), site(B, "REGION"), site(C, "HQ")),
        (link(A, B, G1, *more_gates, cost=5), link(B, C, *more_gates, G3, cost=2)),
        (
            manager(P1, A, out=(R1,), name="till"),
            manager(R1, A, routing=True, name="relay"),
            manager(G1, A, routing=True, name="branch-gate"),
            manager(G2, B, routing=True, name="region-gate"),
            manager(G3, C, routing=True, name="hq-gate"),
            manager(R2, C, routing=True, name="porter"),
            manager(P2, C, into=(R2,), name="ledger"),
            manager(P3, C, name="desk"),
        ),
    )


def told(directory: Directory, source: Guid, destination: Guid) -> Explanation:
    return explain(directory.routes(directory.managers[0].identifier), source, destination)


def test_every_kind_of_hop_has_its_words() -> None:
    way = told(branch(G2), P1, P2)
    assert [(step.name, step.site, step.why, step.cost) for step in way.steps] == [
        ("till", "BRANCH", "sender", 0),
        ("relay", "BRANCH", "out-routing server of till", 0),
        ("branch-gate", "BRANCH", "gate of BRANCH", 0),
        ("region-gate", "REGION", "gate of REGION, towards HQ", 5),
        ("hq-gate", "HQ", "gate of HQ", 2),
        ("porter", "HQ", "in-routing server of ledger", 0),
        ("ledger", "HQ", "destination", 0),
    ]
    assert (way.source, way.destination) == ("till", "ledger")
    assert (way.cost, way.hop_count, way.problem) == (7, 6, "")


def test_who_else_is_tried_is_named() -> None:
    way = told(branch(G2), P3, P1)
    assert {way.steps[1].name, *way.steps[1].alternates} == {"hq-gate", "porter"}
    assert way.steps[1].why == "routing server of HQ"


def test_a_way_of_no_hops_is_one_step() -> None:
    way = told(branch(G2), P1, P1)
    assert ([step.name for step in way.steps], way.hop_count, way.problem) == (["till"], 0, "")


@pytest.mark.parametrize(
    ("source", "destination", "problem"),
    [
        (P1, UNKNOWN, f"queue manager {UNKNOWN} is not in the directory"),
        (UNKNOWN, P1, f"queue manager {UNKNOWN} is not in the directory"),
        (
            P1,
            P3,
            "REGION is next on the way to HQ and has no gate: name a routing server of REGION in "
            "one of its links",
        ),
    ],
)
def test_a_way_that_ends_says_why(source: Guid, destination: Guid, problem: str) -> None:
    assert told(branch(), source, destination).problem == problem


def test_all_that_can_be_missing_is_named() -> None:
    directory = Directory(
        (site(A, "NORTH"), site(B, "SOUTH"), site(C, "WEST")),
        (link(B, C, G2),),
        (
            manager(P1, A, name="p1"),
            manager(P2, name="p2"),
            manager(R1, C, routing=True, name="r1"),
            manager(G2, B, routing=True, name="g2"),
        ),
    )
    problems = {
        (P1, G2): "NORTH has no routing server, so p1 reaches nobody outside it",
        (P2, G2): "p2 belongs to no site: add it to one, or give it an out-routing server",
        (P1, P2): "p2 belongs to no site: add it to one",
        (R1, P1): "WEST has no gate: name a routing server of WEST in one of its links",
        (G2, P1): "no links lead from SOUTH to NORTH",
    }
    assert {ends: told(directory, *ends).problem for ends in problems} == problems


def test_a_way_with_more_hops_than_a_message_makes_is_too_far() -> None:
    def chain(length: int) -> Explanation:
        sites = [Guid(bytes([0xC0, number]) * 8) for number in range(length)]
        gates = [Guid(bytes([0xD0, number]) * 8) for number in range(length)]
        directory = Directory(
            tuple(map(site, sites)),
            tuple(link(x, y, *gates) for x, y in pairwise(sites)),
            tuple(manager(gate, at, routing=True) for gate, at in zip(gates, sites, strict=True)),
        )
        return told(directory, gates[0], gates[-1])

    assert chain(HOP_MAX_COUNT + 2).problem == ""
    assert chain(HOP_MAX_COUNT + 3).problem == "too far: a message is passed on at most 29 times"


@given(directory=directories(), data=st.data())
def test_the_steps_are_the_first_hops_of_each(directory: Directory, data: st.DataObject) -> None:
    keys = st.sampled_from([info.identifier for info in directory.managers])
    source, destination = data.draw(keys), data.draw(keys)
    way = told(directory, source, destination)
    for step, after in pairwise(way.steps):
        hops = directory.routes(step.manager).next_hops(destination)
        assert hops[0] == after.manager
        assert len(hops) - 1 == len(after.alternates)
    last = way.steps[-1].manager
    assert (last == destination) == (way.problem == "")
    if way.problem:
        assert not directory.routes(last).next_hops(destination)
