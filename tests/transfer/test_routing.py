"""Messages through an enterprise: routing servers, site gates, links that fail. [MQOD 3.5]"""

from __future__ import annotations

import msgspec
import pytest

from openmsmq.api import messages as api
from openmsmq.directory.limits import DIRECTORY_POLL_S
from openmsmq.directory.rows import row_of
from openmsmq.model.directory import DirectoryObject, ObjectKind, Removal
from openmsmq.model.identity import Guid
from openmsmq.model.limits import DIRECTORY_PROBE_S
from openmsmq.model.names import PrivateFormatName
from openmsmq.model.topology import RoutingLink, Site
from openmsmq.wire.headers import user
from tests.transfer.directories import COPY, ORIGINAL
from tests.transfer.network import Computer, Network

SITES = {
    "branch": ["CLERK", "BRANCH1", "BRANCH2"],
    "region": ["REGION1", "REGION2", "OTHER"],
    "north": ["NORTH1"],
    "hq": ["HQ", "HQ1", "HQ2"],
}
LINKS = [("branch", "region", 1), ("region", "hq", 3), ("branch", "north", 5), ("north", "hq", 1)]
ROUTING_SERVERS = ("BRANCH1", "BRANCH2", "REGION1", "REGION2", "NORTH1", "HQ1", "HQ2")


def guid(text: str) -> Guid:
    return Guid(text.encode().ljust(16, b"."))


class Enterprise:
    """The sites above, where only neighbours in a site and gates over a link can connect."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.computers: dict[str, Computer] = {}
        self.cut: set[frozenset[str]] = set()
        self.site_of: dict[str, str] = {}
        network.may_connect = self.may_connect
        names = [name for members in SITES.values() for name in members]
        for number, name in enumerate(names):
            address = f"127.0.1.{number + 1}"
            config = ORIGINAL if name == "OTHER" else COPY
            self.computers[name] = network.manager(name, address, config)
        network.directory = self.computers["OTHER"]
        network.run(DIRECTORY_PROBE_S * 1000)
        self.site_of = {
            self.computers[name].address: site
            for site, members in SITES.items()
            for name in members
        }
        self.describe()

    def describe(self) -> None:
        """Say in the directory who is where, and what it is."""
        original = self.network.directory
        assert original is not None
        managers = original.manager.directory.copy.image.managers
        objects: list[DirectoryObject] = [Site(identifier=guid(site), name=site) for site in SITES]
        for site, members in SITES.items():
            objects += [
                msgspec.structs.replace(
                    managers[self.computers[name].identifier],
                    sites=(guid(site),),
                    routing_server=name in ROUTING_SERVERS,
                )
                for name in members
            ]
        for site1, site2, cost in LINKS:
            gates = [
                self.computers[name].identifier
                for site in (site1, site2)
                for name in SITES[site]
                if name in ROUTING_SERVERS
            ]
            objects.append(
                RoutingLink(
                    identifier=guid(f"{site1}-{site2}"),
                    site1=guid(site1),
                    site2=guid(site2),
                    cost=cost,
                    site_gates=tuple(gates),
                )
            )
        original.ok(api.ChangeDirectory([row_of(value) for value in objects]))
        self.network.run(DIRECTORY_POLL_S * 1000)

    def may_connect(self, source: str, target: str) -> bool:
        here, there = self.site_of.get(source, ""), self.site_of.get(target, "")
        linked = {frozenset((site1, site2)) for site1, site2, _ in LINKS} - self.cut
        return here == there or frozenset((here, there)) in linked

    def cut_link(self, site1: str, site2: str) -> None:
        """Let a link fail, with the connections over it."""
        self.cut.add(frozenset((site1, site2)))
        for name in SITES[site2]:
            self.network.cut(self.computers[name].address)


@pytest.fixture
def enterprise(network: Network) -> Enterprise:
    return Enterprise(network)


def bodies(first: int, last: int) -> list[bytes]:
    return [b"order %d" % number for number in range(first, last + 1)]


def target(enterprise: Enterprise) -> str:
    hq = enterprise.computers["HQ"]
    hq.create(r"private$\orders", transactional=True)
    name: str = hq.ok(api.GetNames(r"private$\orders")).private_name
    return name


def passed(enterprise: Enterprise, *names: str) -> bool:
    """Whether one of these computers has sent something on."""
    return any(enterprise.computers[name].sent for name in names)


@pytest.mark.spec("MQQB-3.1.7.5-01", "MQQB-3.1.7.5-02")
def test_orders_go_through_two_gates_to_headquarters(enterprise: Enterprise) -> None:
    name = target(enterprise)
    for computer in enterprise.computers.values():
        computer.sent.clear()
    clerk = enterprise.computers["CLERK"]
    clerk.send(name, *bodies(1, 20), transactional=True)
    enterprise.network.run(120_000)
    hq = enterprise.computers["HQ"]
    found = hq.messages(r"private$\orders")
    assert [message.properties.body for message in found] == bodies(1, 20)
    # Over a gate of the own site, one of the region and one of headquarters.
    assert {message.user.flags & user.HOP_COUNT for message in found} == {3}
    assert passed(enterprise, "REGION1", "REGION2")
    assert not passed(enterprise, "NORTH1", "OTHER")
    assert not clerk.outgoing(name)[0].message_count


def test_a_cut_link_is_passed_at_the_next_try(enterprise: Enterprise) -> None:
    name = target(enterprise)
    clerk, hq = enterprise.computers["CLERK"], enterprise.computers["HQ"]
    clerk.send(name, *bodies(1, 5), transactional=True)
    enterprise.network.run(60_000)
    enterprise.cut_link("branch", "region")
    clerk.send(name, *bodies(6, 10), transactional=True)
    enterprise.network.run(600_000)
    assert hq.bodies(r"private$\orders") == bodies(1, 10)
    assert passed(enterprise, "NORTH1")


@pytest.mark.parametrize("gate", ["BRANCH1", "BRANCH2", "REGION1", "REGION2", "HQ1", "HQ2"])
def test_a_gate_that_crashes_loses_nothing(enterprise: Enterprise, gate: str) -> None:
    name = target(enterprise)
    clerk, hq = enterprise.computers["CLERK"], enterprise.computers["HQ"]
    for round_ in range(4):
        clerk.send(name, *bodies(round_ * 5 + 1, round_ * 5 + 5), transactional=True)
        enterprise.network.run(round_ * 10)
        enterprise.computers[gate].crash()
    enterprise.network.run(1_200_000)
    assert hq.bodies(r"private$\orders") == bodies(1, 20)


def test_a_gate_that_stays_away_is_passed_by_the_other(enterprise: Enterprise) -> None:
    name = target(enterprise)
    clerk, hq = enterprise.computers["CLERK"], enterprise.computers["HQ"]
    for gate in ("BRANCH1", "REGION2", "HQ1"):
        address = enterprise.computers[gate].address
        enterprise.network.down.add(address)
    clerk.send(name, *bodies(1, 20), transactional=True)
    enterprise.network.run(600_000)
    assert hq.bodies(r"private$\orders") == bodies(1, 20)


def test_queues_behind_one_gate_share_a_session(enterprise: Enterprise) -> None:
    network, clerk = enterprise.network, enterprise.computers["CLERK"]
    names = []
    for computer in ("HQ", "OTHER", "REGION1"):
        there = enterprise.computers[computer]
        there.create(r"private$\orders")
        names.append(there.ok(api.GetNames(r"private$\orders")).private_name)
    clerk.sent.clear()
    for name in names:
        clerk.send(name, b"hello", recoverable=True)
    network.run(1_000)
    used = {clerk.outgoing(name)[0].address for name in names}
    assert len(used) == 1
    assert clerk.manager.transfer.link_count == 1


@pytest.mark.spec("MQBR-3.1.2-01", "MQBR-3.1.6.1-01")
def test_a_queue_manager_without_a_way_waits_until_the_directory_knows_one(
    enterprise: Enterprise,
) -> None:
    clerk = enterprise.computers["CLERK"]
    late = enterprise.network.manager("LATE", "127.0.1.99", COPY)
    clerk_site = guid("branch")
    name = str(PrivateFormatName(late.identifier, 4711))
    clerk.send(name, b"hello")
    (status,) = clerk.outgoing(name)
    assert status.state == "NEED VALIDATION"
    enterprise.site_of["127.0.1.99"] = "branch"
    enterprise.network.run(DIRECTORY_POLL_S * 2000)
    image = clerk.manager.directory.copy.image
    assert clerk_site in image.sites
    assert not clerk.outgoing(name)[0].message_count


TRIANGLE = (
    {"branch": ["CLERK", "BRANCH1"], "region": ["REGION1", "OTHER"], "hq": ["HQ", "HQ1"]},
    [("branch", "hq", 1), ("branch", "region", 1), ("region", "hq", 5)],
    ("BRANCH1", "REGION1", "HQ1"),
)
"""The region reaches headquarters over the branch, so it is no way around for the branch."""


@pytest.fixture
def triangle(network: Network, monkeypatch: pytest.MonkeyPatch) -> Enterprise:
    for name, value in zip(("SITES", "LINKS", "ROUTING_SERVERS"), TRIANGLE, strict=True):
        monkeypatch.setattr(f"tests.transfer.test_routing.{name}", value)
    return Enterprise(network)


@pytest.mark.spec("MQBR-3.1.5.9-02")
def test_routes_are_made_of_all_that_the_directory_has_or_of_nothing(
    enterprise: Enterprise,
) -> None:
    network = enterprise.network
    original, network.directory = network.directory, None
    assert original is not None
    late = network.manager("LATE", "127.0.1.99", COPY)
    enterprise.site_of["127.0.1.99"] = "branch"
    network.run(DIRECTORY_POLL_S * 2000)
    image = late.manager.directory.copy.image
    assert (dict(image.sites), dict(image.links)) == ({}, {})
    network.directory = original
    network.run(DIRECTORY_POLL_S * 2000)
    image, whole = late.manager.directory.copy.image, original.manager.directory.copy.image
    assert (dict(image.sites), dict(image.links)) == (dict(whole.sites), dict(whole.links))
    assert whole.sites
    assert whole.links
    # What is known stays whole while nobody answers.
    network.directory = None
    network.run(DIRECTORY_POLL_S * 2000)
    assert late.manager.directory.copy.image is image


def test_what_has_only_a_way_back_waits_until_the_directory_knows_better(
    triangle: Enterprise,
) -> None:
    name = target(triangle)
    clerk, hq = triangle.computers["CLERK"], triangle.computers["HQ"]
    triangle.cut_link("branch", "hq")
    clerk.send(name, *bodies(1, 5), transactional=True)
    triangle.network.run(600_000)
    assert hq.bodies(r"private$\orders") == []
    original = triangle.network.directory
    assert original is not None
    dead = Removal(ObjectKind.LINK, guid("branch-hq"))
    original.ok(api.ChangeDirectory([row_of(dead)]))
    triangle.network.run(600_000)
    assert hq.bodies(r"private$\orders") == bodies(1, 5)


def test_who_only_says_that_he_is_a_gate_gets_nothing(triangle: Enterprise) -> None:
    """Neither who connects to us, nor who answers at an address that an application has named."""
    network, clerk = triangle.network, triangle.computers["CLERK"]
    gate = triangle.computers["BRANCH1"]
    name = target(triangle)
    impostor = network.peer()
    triangle.site_of[impostor.address] = "branch"
    impostor.identifier = gate.identifier
    network.down.add(gate.address)
    network.cut(gate.address)
    impostor.open_session(clerk.address)
    clerk.send(name, b"secret", recoverable=True)
    network.run(1_000)
    assert impostor.user_messages() == []
    impostor.close()
    clerk.send(f"DIRECT=TCP:{impostor.address}\\private$\\any", b"for him", recoverable=True)
    network.run()
    impostor.accept_session()
    clerk.send(name, b"secret too", recoverable=True)
    network.run(1_000)
    assert [message.properties.body for message in impostor.user_messages()] == [b"for him"]


def test_changes_that_move_nobody_do_not_make_links_try_again(triangle: Enterprise) -> None:
    network, clerk = triangle.network, triangle.computers["CLERK"]
    name = target(triangle)
    network.down.add(triangle.computers["BRANCH1"].address)
    network.cut(triangle.computers["BRANCH1"].address)
    clerk.send(name, b"waits", recoverable=True)
    network.run(1_000)
    events = clerk.outgoing(name)[0].history
    for number in range(5):
        clerk.ok_soon(api.CreateQueue(rf".\queue{number}"))
        network.run(100)
    assert clerk.outgoing(name)[0].history == events
    # But a change of the address does.
    gate = network.directory
    assert gate is not None
    there = gate.manager.directory.copy.image.manager_named("BRANCH1")
    assert there is not None
    gate.ok(api.ChangeDirectory([row_of(msgspec.structs.replace(there, addresses=("127.0.9.9",)))]))
    network.run(DIRECTORY_POLL_S * 1000)
    assert clerk.outgoing(name)[0].history != events
