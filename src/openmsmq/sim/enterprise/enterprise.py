"""An enterprise in a run: its directory, and who can talk to whom just now.

The directory is a real one, kept by the class that keeps the original in a queue manager: what a
copy is told, and whether a change is allowed, is decided by the code that production runs.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product
from typing import Final, TypeAlias

import msgspec

from openmsmq.directory.rules import check
from openmsmq.manager.directory.copy import DirectoryCopy
from openmsmq.manager.turn.ledger import Ledger
from openmsmq.model.directory import (
    Change,
    DirectoryChanges,
    DirectoryObject,
    Position,
    Removal,
    kind_of,
)
from openmsmq.model.identity import Guid
from openmsmq.model.queue import QueueKind, QueueProperties
from openmsmq.model.topology import EnterpriseInfo, QueueManagerInfo, RoutingLink, Site
from openmsmq.sim.enterprise.rules import Layout, Rules
from openmsmq.sim.scenarios.enterprise import DrawnLink, DrawnMember, EnterpriseScenario
from openmsmq.storage.memory import MemoryStore

PUBLIC_PLAIN: Final = "plain"
PUBLIC_TRANSACTIONAL: Final = "transactional"
PUBLIC_QUEUES: Final = (PUBLIC_PLAIN, PUBLIC_TRANSACTIONAL)

EXTRA_MAX_HOPS: Final = 3
"""How many hops more than there are sites a message may make."""


Era: TypeAlias = tuple[int, bool]
"""How often the directory was changed, and whether all know it."""


class Place(msgspec.Struct, frozen=True):
    """A node, as the directory has it."""

    identifier: Guid
    name: str
    address: str


class Enterprise:
    """The directory and the links of a run."""

    def __init__(
        self, scenario: EnterpriseScenario, places: list[Place], rng: random.Random
    ) -> None:
        self.scenario = scenario
        self.dead_links: set[int] = set()
        """Links that do not work just now."""
        self.lost_links: set[int] = set()
        """Links that have failed for ever."""
        self.lost_nodes: set[int] = set()
        self.is_administered = False
        """Whether the administrator has asked for a change that has not come yet."""
        self.settled_ms: int | None = None
        """Since when everybody knows the directory as it is; None if somebody does not."""
        self.index_of = {place.identifier: index for index, place in enumerate(places)}
        self._places = places
        self._sites = [Guid(rng.randbytes(16)) for _ in range(scenario.site_count)]
        self._links = [Guid(rng.randbytes(16)) for _ in scenario.links]
        self._info = EnterpriseInfo(identifier=Guid(rng.randbytes(16)), name="Enterprise")
        self.public: dict[tuple[int, str], Guid] = {
            (index, queue): Guid(rng.randbytes(16))
            for index, queue in product(range(len(places)), PUBLIC_QUEUES)
        }
        """The identifiers of public queues, by node and path."""
        self._members = [frozenset(member.sites) for member in scenario.members]
        self._original = DirectoryCopy(Ledger(), MemoryStore())
        first = {
            number: link
            for number, link in enumerate(scenario.links)
            if number not in scenario.later_links
        }
        self._original.found(
            Guid(rng.randbytes(16)), self._objects(Layout(first, scenario.members))
        )
        self.states = [self._rules()]
        """The rules by each state of the directory, the first one first."""
        self._gates_ever = self.rules.gates

    # The directory.

    @property
    def number(self) -> int:
        """The number of the last change; the directory begins with 1."""
        return self._original.position.number

    @property
    def rules(self) -> Rules:
        """The rules by the directory as it is."""
        return self.states[-1]

    def rules_at(self, number: int) -> Rules:
        """Return the rules by the directory as it was after a change."""
        return self.states[number - 1]

    def told(self, position: Position) -> DirectoryChanges:
        """Answer a copy that asks what has changed."""
        return self._original.since(position)

    def changes_to(self, layout: Layout) -> tuple[Change, ...]:
        """Return the changes that make the directory say this."""
        objects = self._objects(layout)
        wanted = {(kind_of(value), value.identifier): value for value in objects}
        image = self._original.image
        gone = (
            Removal(kind_of(value), value.identifier)
            for value in image
            if (kind_of(value), value.identifier) not in wanted
        )
        new = (value for key, value in wanted.items() if image.get(*key) != value)
        return (*gone, *new)

    def change(self, changes: Sequence[Change]) -> None:
        """Change the directory; raises `MsmqError` if it would be inconsistent then."""
        check(self._original.image, changes)
        if self._original.write(changes):
            self.states.append(self._rules())
            self.settled_ms = None
            self._gates_ever |= self.rules.gates

    def _objects(self, layout: Layout) -> list[DirectoryObject]:
        objects: list[DirectoryObject] = [self._info]
        objects += [
            Site(identifier=key, name=f"SITE{number}") for number, key in enumerate(self._sites)
        ]
        objects += [
            RoutingLink(
                identifier=self._links[number],
                site1=self._sites[link.site1],
                site2=self._sites[link.site2],
                cost=link.cost,
                site_gates=tuple(self._places[gate].identifier for gate in link.gates),
            )
            for number, link in layout.links.items()
        ]
        for index, member in enumerate(layout.members):
            if member is not None:
                objects += self._objects_of(index, member)
        return objects

    def _objects_of(self, index: int, member: DrawnMember) -> list[DirectoryObject]:
        places = self._places
        place = places[index]
        return [
            QueueManagerInfo(
                identifier=place.identifier,
                computer_name=place.name,
                addresses=(place.address,),
                sites=tuple(self._sites[site] for site in member.sites),
                routing_server=member.routing,
                in_routing_servers=tuple(places[other].identifier for other in member.into),
                out_routing_servers=tuple(places[other].identifier for other in member.out),
            ),
            *(
                QueueProperties(
                    identifier=self.public[index, queue],
                    path_name=f"{place.name}\\{queue}",
                    kind=QueueKind.PUBLIC,
                    manager=place.identifier,
                    transactional=queue == PUBLIC_TRANSACTIONAL,
                )
                for queue in PUBLIC_QUEUES
            ),
        ]

    def _rules(self) -> Rules:
        """Read what the directory says."""
        image = self._original.image
        sites = {key: number for number, key in enumerate(self._sites)}
        links = {
            self._links.index(link.identifier): DrawnLink(
                sites[link.site1],
                sites[link.site2],
                link.cost,
                tuple(self.index_of[gate] for gate in link.site_gates),
            )
            for link in image.links.values()
        }
        members: list[DrawnMember | None] = [None] * len(self._places)
        for manager in image.managers.values():
            members[self.index_of[manager.identifier]] = DrawnMember(
                tuple(sites[site] for site in manager.sites),
                manager.routing_server,
                tuple(self.index_of[server] for server in manager.in_routing_servers),
                tuple(self.index_of[server] for server in manager.out_routing_servers),
            )
        return Rules(Layout(links, tuple(members)), self._sites)

    # The network.

    def joined(self, one: int, other: int) -> bool:
        """Return whether two nodes can talk just now: in a site, or as gates over a living link.

        Who was ever a gate can use all links of its sites, whatever the directory says now.
        """
        if self._members[one] & self._members[other]:
            return True
        if not {one, other} <= self._gates_ever:
            return False
        ends = self._members[one], self._members[other]
        return any(
            (link.site1 in ends[0] and link.site2 in ends[1])
            or (link.site1 in ends[1] and link.site2 in ends[0])
            for number, link in enumerate(self.scenario.links)
            if number not in self.dead_links
        )

    @property
    def era(self) -> Era:
        """What everybody knows of the directory: another one begins with each change of that."""
        return len(self.states), self.settled_ms is not None

    def hop_count_max(self, before: int) -> int:
        """Return the largest hop count of a packet that had made some hops when the era began.

        By one directory it makes at most as many hops as there are sites, and three. One that meets
        several on its way may come back, but whoever passes it on after so many hops looks whether
        the directory has changed, so it makes at most as many again.
        """
        once = self.scenario.site_count + EXTRA_MAX_HOPS
        if len(self.states) == 1:
            return once
        return 2 * once if self.settled_ms is None else min(2 * once, before + once)
