"""What a seed decides about an enterprise: sites, links, servers, what fails, what is changed."""

from __future__ import annotations

import random
from enum import Enum
from typing import Final

import msgspec

SITES_MAX_COUNT: Final = 9
ENTERPRISE_MANAGERS_MAX_COUNT: Final = 50
_SENDERS_MAX_COUNT: Final = 12
_OUTAGES_MAX_COUNT: Final = 6
_COSTS: Final = (1, 1, 2, 3, 5)
_POLLS_MS: Final = (2_000, 10_000, 30_000)
_NOTICED_AFTER_MS: Final = (0, 5_000, 60_000, 200_000)
"""After so long the administrator sees that something has failed for ever."""


class DrawnLink(msgspec.Struct, frozen=True):
    """A link between two sites, and the nodes that are its gates."""

    site1: int
    site2: int
    cost: int
    gates: tuple[int, ...]


class DrawnMember(msgspec.Struct, frozen=True):
    """What a node is in the enterprise."""

    sites: tuple[int, ...]
    routing: bool = False
    into: tuple[int, ...] = ()
    """Its in-routing servers."""
    out: tuple[int, ...] = ()
    """Its out-routing servers."""


class Outage(msgspec.Struct, frozen=True):
    """A link or a gate that fails for a while, or for ever."""

    is_link: bool
    number: int
    """Of the link, or of the node."""
    begins_ms: int
    ends_ms: int | None

    def lasts_at(self, moment_ms: int) -> bool:
        """Whether it lasts at a moment of the first phase, or afterwards."""
        ended = self.ends_ms is not None and self.ends_ms <= moment_ms
        return self.begins_ms <= moment_ms and not ended


class Task(Enum):
    """What an administrator does to the directory."""

    INSPECT = "takes out what has failed for ever"
    COST = "changes the cost of a link"
    REMOVE = "takes a link out for a while"
    ADD = "adds a link"
    GATES = "gives a link other gates"


class Chore(msgspec.Struct, frozen=True):
    """Something that the administrator does, and when."""

    at_ms: int
    task: Task
    link: int = 0
    cost: int = 0


class EnterpriseScenario(msgspec.Struct, frozen=True):
    """An enterprise, before a run begins; everything is named by its number."""

    site_count: int
    links: tuple[DrawnLink, ...]
    """All links that there will ever be."""
    members: tuple[DrawnMember, ...]
    """For each node."""
    outages: tuple[Outage, ...]
    senders: tuple[int, ...]
    """The nodes with applications."""
    chores: tuple[Chore, ...] = ()
    """What the administrator does, in this order."""
    later_links: frozenset[int] = frozenset()
    """The links that are not in the directory from the beginning."""
    polls_ms: tuple[int, ...] = ()
    """How often each node asks the directory."""

    @property
    def gone(self) -> frozenset[int]:
        """The nodes that fail for ever; nobody works there, and nobody sends anything there."""
        return frozenset(
            outage.number
            for outage in self.outages
            if not outage.is_link and outage.ends_ms is None
        )


def draw_enterprise(
    rng: random.Random, count: int, duration_ms: int, *, faults: bool
) -> EnterpriseScenario:
    """Let a seed decide: most links and servers make sense, some do not."""
    site_count = min(count, rng.randrange(2, SITES_MAX_COUNT + 1))
    gates, members = _members(rng, count, site_count)
    links = _links(rng, site_count, gates)
    all_gates = [gate for found in gates for gate in found]
    outages = _outages(rng, len(links), all_gates, duration_ms) if faults else ()
    later = _later_links(rng, links, gates)
    scenario = EnterpriseScenario(
        site_count,
        links + later,
        members,
        outages,
        (),
        _chores(rng, len(links), len(later), outages, duration_ms),
        frozenset(range(len(links), len(links) + len(later))),
        tuple(rng.choice(_POLLS_MS) for _ in range(count)),
    )
    working = [node for node in range(count) if node not in scenario.gone]
    senders = rng.sample(working, min(len(working), _SENDERS_MAX_COUNT))
    return msgspec.structs.replace(scenario, senders=tuple(sorted(senders)))


def _later_links(
    rng: random.Random, links: tuple[DrawnLink, ...], gates: list[list[int]]
) -> tuple[DrawnLink, ...]:
    """Draw links that the administrator adds; no two join the same sites."""
    joined = {frozenset((link.site1, link.site2)) for link in links}
    found = []
    for _ in range(rng.choice((0, 0, 1, 2))):
        one, other = sorted(rng.sample(range(len(gates)), 2))
        if frozenset((one, other)) not in joined:
            joined.add(frozenset((one, other)))
            serving = _serving(rng, gates[one]) + _serving(rng, gates[other])
            found.append(DrawnLink(one, other, rng.choice(_COSTS), serving))
    return tuple(found)


def _chores(
    rng: random.Random,
    link_count: int,
    later_count: int,
    outages: tuple[Outage, ...],
    duration_ms: int,
) -> tuple[Chore, ...]:
    """Let the administrator see what fails for ever, sooner or later, and do other things too."""
    found = [
        Chore(outage.begins_ms + rng.choice(_NOTICED_AFTER_MS), Task.INSPECT)
        for outage in outages
        if outage.ends_ms is None
    ]
    found += [
        Chore(rng.randrange(duration_ms), Task.ADD, number)
        for number in range(link_count, link_count + later_count)
    ]
    for _ in range(rng.choice((0, 0, 1, 3)) if link_count else 0):
        task = rng.choice((Task.COST, Task.REMOVE, Task.GATES))
        link, at_ms = rng.randrange(link_count), rng.randrange(duration_ms)
        found.append(Chore(at_ms, task, link, rng.choice(_COSTS)))
        if task is Task.REMOVE:
            found.append(Chore(at_ms + rng.randrange(duration_ms), Task.ADD, link))
    return tuple(sorted(found, key=lambda chore: chore.at_ms))


def _members(
    rng: random.Random, count: int, site_count: int
) -> tuple[list[list[int]], tuple[DrawnMember, ...]]:
    """Put nodes into sites: gates first, then whoever is left."""
    gates: list[list[int]] = [[site] for site in range(site_count)]
    sites: list[tuple[int, ...]] = [(site,) for site in range(site_count)]
    routing = [True] * site_count
    for node in range(site_count, count):
        site = rng.randrange(site_count)
        is_gate = len(gates[site]) < 3 and rng.random() < 0.3
        if is_gate:
            gates[site].append(node)
        sites.append((site,))
        routing.append(is_gate or rng.random() < 0.15)
    for node in range(count):
        if rng.random() < 0.08:
            sites[node] = tuple(dict.fromkeys((*sites[node], rng.randrange(site_count))))

    def servers(node: int, chance: float) -> tuple[int, ...]:
        near = [
            other
            for other in range(count)
            if routing[other] and other != node and set(sites[other]) & set(sites[node])
        ]
        if not near or rng.random() >= chance:
            return ()
        return tuple(rng.sample(near, min(len(near), rng.randrange(1, 3))))

    return gates, tuple(
        DrawnMember(
            sites[node],
            routing[node],
            servers(node, 0.15),
            servers(node, 0.0 if routing[node] else 0.2),
        )
        for node in range(count)
    )


def _links(rng: random.Random, site_count: int, gates: list[list[int]]) -> tuple[DrawnLink, ...]:
    """Join all sites, add some links, and sometimes leave one out."""
    order = rng.sample(range(site_count), site_count)
    pairs = {
        frozenset((order[place], order[rng.randrange(place)])) for place in range(1, site_count)
    }
    for _ in range(rng.randrange(site_count + 2)):
        pairs.add(frozenset(rng.sample(range(site_count), 2)))
    chosen = sorted(tuple(sorted(pair)) for pair in pairs)
    if rng.random() < 0.1:
        chosen.remove(rng.choice(chosen))
    return tuple(
        DrawnLink(
            one, other, rng.choice(_COSTS), _serving(rng, gates[one]) + _serving(rng, gates[other])
        )
        for one, other in chosen
    )


def _serving(rng: random.Random, gates: list[int]) -> tuple[int, ...]:
    if rng.random() < 0.7:
        return tuple(gates)
    # A link may name no gate of a site; the others of the site may serve it all the same.
    return tuple(rng.sample(gates, rng.randrange(len(gates) + 1)))


def _outages(
    rng: random.Random, link_count: int, gates: list[int], duration_ms: int
) -> tuple[Outage, ...]:
    found = []
    for _ in range(rng.randrange(_OUTAGES_MAX_COUNT + 1)):
        is_link = link_count > 0 and rng.random() < 0.65
        begins_ms = rng.randrange(duration_ms)
        lasts_ms = rng.choice((1_000, 10_000, duration_ms, None))
        ends_ms = None if lasts_ms is None else min(begins_ms + lasts_ms, duration_ms)
        number = rng.randrange(link_count) if is_link else rng.choice(gates)
        found.append(Outage(is_link, number, begins_ms, ends_ms))
    return tuple(found)
