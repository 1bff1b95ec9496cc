"""Random enterprises that keep the rules of a directory, and random changes of them."""

from __future__ import annotations

import hashlib
import itertools

from hypothesis import strategies as st

from openmsmq.directory.image import DirectoryImage
from openmsmq.model.directory import DirectoryObject, ObjectKind, Removal
from openmsmq.model.identity import Guid
from openmsmq.model.queue import QueueKind, QueuePrivacy, QueueProperties, QueueScope
from openmsmq.model.topology import (
    ConnectedNetwork,
    DirectoryServerKind,
    DistributionList,
    EnterpriseInfo,
    QueueManagerInfo,
    RoutingLink,
    Site,
    UserInfo,
)


def guid(name: object) -> Guid:
    """Return the identifier that the tests have for a name."""
    return Guid(hashlib.md5(repr(name).encode(), usedforsecurity=False).digest())


printable = st.characters(exclude_categories=["C", "Zl", "Zp"])
# Names that YAML would read as something else are among them.
awkward = st.sampled_from(["No", "null", "~", "007", "1e3", "a: b", "# x", "- y", "'", '"', "true"])
names = awkward | st.text(printable, min_size=1, max_size=8).filter(
    lambda text: text.strip() and text.isprintable()
)
computers = st.from_regex(r"\A[A-Z0-9][A-Za-z0-9-]{0,9}\Z")
queue_names = st.sampled_from(["orders", "No", "a=b", "é", "x.y", "Q$"])
labels = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
quotas = st.sampled_from([0, 1, 8192, 0xFFFFFFFF])
nothing: st.SearchStrategy[tuple[Guid, ...]] = st.just(())


def some(values: list[Guid], count_max: int = 3) -> st.SearchStrategy[tuple[Guid, ...]]:
    if not values:
        return nothing
    return st.lists(st.sampled_from(values), unique=True, max_size=count_max).map(tuple)


def folded(text: str) -> str:
    return text.casefold()


@st.composite
def enterprises(draw: st.DrawFn) -> list[DirectoryObject]:
    """Draw all objects of a consistent directory."""
    found: list[DirectoryObject] = []
    if draw(st.booleans()):
        found.append(
            EnterpriseInfo(
                identifier=guid("enterprise"),
                name=draw(names),
                reach_queue_default_s=draw(st.integers(0, 9)),
                weakened_security=draw(st.booleans()),
            )
        )
    networks = [
        ConnectedNetwork(identifier=guid(("network", name)), name=name)
        for name in draw(st.lists(names, max_size=2, unique_by=folded))
    ]
    sites = [
        Site(identifier=guid(("site", name)), name=name, foreign=draw(st.booleans()))
        for name in draw(st.lists(names, max_size=4, unique_by=folded))
    ]
    managers = draw(managers_of([site.identifier for site in sites], networks))
    links = draw(links_of([site.identifier for site in sites], managers))
    queues = draw(queues_of(managers))
    lists = draw(lists_of(queues))
    users = [
        UserInfo(identifier=guid(("user", sid)), security_identifier=sid)
        for sid in draw(st.lists(st.binary(min_size=1, max_size=3), max_size=2, unique=True))
    ]
    return [*found, *networks, *sites, *managers, *links, *queues, *lists, *users]


@st.composite
def managers_of(
    draw: st.DrawFn, sites: list[Guid], networks: list[ConnectedNetwork]
) -> list[QueueManagerInfo]:
    chosen = draw(st.lists(computers, max_size=5, unique_by=folded))
    identifiers = [guid(("manager", name)) for name in chosen]
    is_router = [draw(st.booleans()) for _ in chosen]
    routers = list(itertools.compress(identifiers, is_router))
    return [
        QueueManagerInfo(
            identifier=identifier,
            computer_name=name,
            qualified_computer_name=f"{name}.example.org" if draw(st.booleans()) else "",
            addresses=tuple(draw(st.lists(st.sampled_from(["10.0.0.1", "::1"]), unique=True))),
            sites=draw(some(sites)),
            connected_networks=draw(some([network.identifier for network in networks])),
            routing_server=routing,
            directory_server=draw(st.none() | st.sampled_from(DirectoryServerKind)),
            foreign=draw(st.booleans()),
            in_routing_servers=draw(some([other for other in routers if other != identifier])),
            out_routing_servers=draw(some([other for other in routers if other != identifier])),
            quota_kb=draw(quotas),
            security_descriptor=draw(st.binary(max_size=2)),
        )
        for name, identifier, routing in zip(chosen, identifiers, is_router, strict=True)
    ]


@st.composite
def links_of(
    draw: st.DrawFn, sites: list[Guid], managers: list[QueueManagerInfo]
) -> list[RoutingLink]:
    pairs = list(itertools.combinations(sites, 2))
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=4)) if pairs else []
    found = []
    for pair in chosen:
        ends = pair if draw(st.booleans()) else pair[::-1]
        gates = [
            manager.identifier
            for manager in managers
            if manager.routing_server and not set(ends).isdisjoint(manager.sites)
        ]
        found.append(
            RoutingLink(
                identifier=guid(("link", frozenset(ends))),
                site1=ends[0],
                site2=ends[1],
                cost=draw(st.integers(1, 999_999)),
                site_gates=draw(some(gates)),
                description=draw(labels),
            )
        )
    return found


@st.composite
def queues_of(draw: st.DrawFn, managers: list[QueueManagerInfo]) -> list[QueueProperties]:
    found = []
    for manager in managers:
        for name in draw(st.lists(queue_names, max_size=2, unique=True)):
            qualified = manager.qualified_computer_name
            found.append(
                QueueProperties(
                    identifier=guid(("queue", manager.computer_name, name)),
                    path_name=f"{manager.computer_name}\\{name}",
                    qualified_path_name=f"{qualified}\\{name}" if qualified else "",
                    manager=manager.identifier,
                    kind=QueueKind.PUBLIC,
                    label=draw(labels),
                    service_type=draw(st.sampled_from([Guid(16), guid("type")])),
                    transactional=draw(st.booleans()),
                    journaling=draw(st.booleans()),
                    quota_kb=draw(quotas),
                    base_priority=draw(st.integers(-32768, 32767)),
                    privacy=draw(st.sampled_from(QueuePrivacy)),
                    scope=draw(st.sampled_from(QueueScope)),
                    multicast_address=draw(st.none() | st.just("234.1.1.1:8001")),
                )
            )
    return found


@st.composite
def lists_of(draw: st.DrawFn, queues: list[QueueProperties]) -> list[DistributionList]:
    found: list[DistributionList] = []
    for name in draw(st.lists(names, max_size=3, unique_by=folded)):
        members = [
            "DIRECT=OS:far\\private$\\a=b",
            *(f"PUBLIC={queue.identifier}" for queue in queues),
            *(f"public={queue.identifier}" for queue in queues),
            *(f"DL={earlier.identifier}" for earlier in found),
        ]
        found.append(
            DistributionList(
                identifier=guid(("list", name)),
                name=name,
                members=tuple(draw(st.lists(st.sampled_from(members), unique=True, max_size=4))),
            )
        )
    return found


def images() -> st.SearchStrategy[DirectoryImage]:
    """Draw consistent directories."""
    return enterprises().map(DirectoryImage)


@st.composite
def mixed_changes(draw: st.DrawFn) -> tuple[DirectoryImage, list[DirectoryObject | Removal]]:
    """Draw a consistent directory, and changes of which many do not fit it.

    Objects of two enterprises have the same identifiers where they have the same names, so changes
    to the second one change, add and remove parts of the first.
    """
    image = draw(images())
    others = draw(enterprises())
    removals = [
        Removal(kind, identifier) for kind in ObjectKind for identifier in image.of_kind(kind)
    ]
    possible = [*others, *removals]
    if not possible:
        return image, []
    some_of = st.lists(st.sampled_from(range(len(possible))), max_size=6, unique=True)
    chosen = draw(st.one_of(some_of, st.just(list(range(len(others))))))
    return image, [possible[index] for index in chosen]
