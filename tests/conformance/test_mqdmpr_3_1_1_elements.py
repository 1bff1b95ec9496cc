"""Queue managers, queues and what an enterprise consists of: what stays, and what holds for them.

[MQDMPR 3.1.1, 3.1.1.1, 3.1.1.2, 3.1.1.6-3.1.1.9, 3.1.1.11]
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openmsmq.api import messages as api
from openmsmq.directory.rows import row_of
from openmsmq.model.directory import Change, ObjectKind, Removal
from openmsmq.model.identity import Guid
from openmsmq.model.queue import AccessMode, QueueScope
from openmsmq.model.topology import (
    ConnectedNetwork,
    DirectoryServerKind,
    EnterpriseInfo,
    QueueManagerInfo,
    RoutingLink,
    Site,
)
from openmsmq.remote.ports import Return
from openmsmq.runtime.active_directory.mapping import queues as directory_queues
from openmsmq.security.access.descriptors import AccessEntry, Descriptor, decode, encode
from openmsmq.security.access.sids import ADMINISTRATORS, EVERYONE
from openmsmq.wire.rpc import management as mgmt
from openmsmq.wire.rpc.variants import NULL
from tests.conformance.marks import shows
from tests.strategies.messages import Draft
from tests.transfer.conftest import network, office, shop
from tests.transfer.directories import POLL_MS, change, image
from tests.transfer.neighbour import Neighbour
from tests.transfer.network import ALPHA, PEER, Computer, Network
from tests.unit.manager.office import LEDGER, ORDERS, Office, bodies
from tests.unit.remote.doors import Hall, body

__all__ = ["network", "office", "shop"]

ELEMENTS: Final = "MQDMPR-3.1.1"
TIMEOUT: Final = "MQ_ERROR_IO_TIMEOUT"
NEW: Final = r"private$\new"
SAID: Final[dict[str, Any]] = {
    "label": "What we sell",
    "service_type": b"a kind of queue!",
    "journaling": True,
    "quota_kb": 77,
    "journal_quota_kb": 88,
    "authentication_required": True,
    "privacy": 2,
}


@pytest.fixture
def desk() -> Office:
    """One queue manager without a directory."""
    return Office()


def status_of(desk: Office, name: str) -> api.QueueStatus:
    [found] = desk.ok(api.GetQueue(name)).queues
    assert isinstance(found, api.QueueStatus)
    return found


def guid(text: str) -> Guid:
    return Guid(text.encode().ljust(16, b"-"))


def refusal(computer: Computer, *changes: Change) -> str:
    reply = computer.soon(api.ChangeDirectory([row_of(each) for each in changes]))
    assert isinstance(reply, api.Failed), reply
    return reply.detail


# What survives, and what does not.


@shows(ELEMENTS, 1, 2)
@pytest.mark.parametrize("committed", [True, False])
def test_what_is_said_of_a_private_queue_survives(desk: Office, committed: bool) -> None:
    rights = encode(Descriptor(ADMINISTRATORS, b"", (AccessEntry(EVERYONE, 0x24),)))
    desk.ok(api.CreateQueue(NEW, security=rights, **SAID))
    before, names = status_of(desk, NEW), desk.ok(api.GetNames(NEW))
    desk.pass_time(60)
    desk.restart(committed=committed)
    after = status_of(desk, NEW)
    for name in (*SAID, "path_name", "identifier", "created_time_s", "modified_time_s", "kind"):
        assert getattr(after, name) == getattr(before, name), name
    assert desk.ok(api.GetNames(NEW)) == names, "its number, too"
    assert desk.ok(api.GetSecurity(NEW)).descriptor == rights


@shows(ELEMENTS, 1, 3)
def test_what_the_directory_says_of_a_queue_survives_with_and_without_it(
    network: Network, office: Computer, shop: Computer
) -> None:
    shop.ok_soon(api.CreateQueue(r".\orders", base_priority=3, transactional=True, **SAID))
    network.run(POLL_MS)
    [published] = image(office).queues.values()
    own = image(office).managers[shop.identifier]
    network.directory = None
    for computer in (shop, office):
        computer.crash()
        assert image(computer).queues[published.identifier] == published
        assert image(computer).managers[shop.identifier] == own
    [status] = shop.ok(api.GetQueue(r".\orders")).queues
    for name, value in {**SAID, "base_priority": 3, "transactional": True}.items():
        assert getattr(status, name) == value, name


@shows(ELEMENTS, 4)
def test_handles_cursors_locks_reads_and_open_transactions_do_not_survive(desk: Office) -> None:
    desk.send(b"one", b"two", name=LEDGER)
    handle, work = desk.open(LEDGER), desk.begin()
    cursor = desk.ok(api.CreateCursor(handle)).cursor
    desk.ok(api.Receive(handle, transaction=work))
    desk.ok(api.Receive(handle, lock=True))
    desk.driver.request(desk.app, api.Receive(desk.open(), timeout_ms=None))
    desk.driver.pump()
    assert status_of(desk, LEDGER).open_count == 1
    assert status_of(desk, ORDERS).waiting_count == 1
    desk.restart()
    assert status_of(desk, LEDGER).open_count == 0
    assert status_of(desk, ORDERS).waiting_count == 0
    assert desk.ok(api.GetStatus()).transaction_count == 0
    assert desk.error(api.Receive(handle)) == "MQ_ERROR_INVALID_HANDLE"
    assert desk.error(api.CloseCursor(cursor)) == "MQ_ERROR_INVALID_HANDLE"
    assert desk.error(api.Commit(work)) == "MQ_ERROR_TRANSACTION_SEQUENCE"
    assert desk.bodies(LEDGER) == [b"one", b"two"]


@shows(ELEMENTS, 5)
def test_an_object_keeps_its_identifier_for_life(
    network: Network, office: Computer, shop: Computer
) -> None:
    shop.ok_soon(api.CreateQueue(r".\orders"))
    network.run(POLL_MS)
    [queue] = image(office).queues.values()
    manager = shop.identifier
    shop.ok_soon(api.ChangeQueue(r".\orders", label="another", quota_kb=1))
    change(office, msgspec.structs.replace(image(office).managers[manager], quota_kb=9))
    for computer in (office, shop):
        computer.crash()
    network.run(POLL_MS)
    assert shop.identifier == manager
    assert shop.ok(api.GetStatus()).manager == bytes(manager)
    assert image(office).queues.keys() == image(shop).queues.keys() == {queue.identifier}
    [status] = shop.ok(api.GetQueue(r".\orders")).queues
    assert (status.identifier, status.label) == (bytes(queue.identifier), "another")
    again = msgspec.structs.replace(queue, identifier=guid("another name"))
    assert r"SHOP\orders" in refusal(office, again), "under another it is another queue"


@shows(ELEMENTS, 6, 7)
def test_all_that_talk_to_a_queue_manager_talk_to_one_and_the_same(network: Network) -> None:
    """Applications, remote readers, managing programs, other queue managers."""
    hall = Hall()
    hall.send(b"by an application")
    reader, program = hall.reader(), hall.manager_program()
    assert body(reader.receive(reader.open())) == b"by an application"
    machine = mgmt.ManagedObject(1, 0)

    def state() -> object:
        end = program.call(0, mgmt.GET_INFO.encode(mgmt.GetInfo(machine, (4,), (NULL,))))
        assert isinstance(end, Return)
        return mgmt.INFO.decode(end.stub).values[0].value

    assert state() == "CONNECTED"
    hall.ok(api.SetOnline(False))
    assert state() == "DISCONNECTED"
    alpha = network.manager("ALPHA", ALPHA)
    peer = Neighbour(network, PEER)
    alpha.send(rf"DIRECT=TCP:{PEER}\{ORDERS}", b"away")
    network.run()
    [request] = peer.requests
    assert request.establish.client == alpha.identifier
    assert alpha.ok(api.GetStatus()).manager == bytes(alpha.identifier)
    assert peer.messages[0].user.source == alpha.identifier


# Queue managers.


@shows(f"{ELEMENTS}.1", 5)
def test_only_a_directory_server_says_which_kind_it_is(office: Computer, shop: Computer) -> None:
    managers = image(office).managers
    assert managers[office.identifier].directory_server is (
        DirectoryServerKind.PRIMARY_ENTERPRISE_CONTROLLER
    )
    assert managers[shop.identifier].directory_server is None


@shows(f"{ELEMENTS}.1", 8)
def test_without_a_directory_nothing_is_offline(desk: Office) -> None:
    for _ in range(3):
        status = desk.ok(api.GetStatus())
        assert (status.directory, status.directory_problem) == ("none", "")
        desk.pass_time(3600)
    assert desk.error(api.RefreshDirectory()) == "MQ_ERROR_NO_DS"
    assert desk.ok(api.GetStatus()).directory_problem == ""


NORTH, SOUTH, LAN = guid("north"), guid("south"), guid("a network")
GATE, CLIENT, LINK = guid("the gate"), guid("the client"), guid("the link")


@pytest.fixture
def enterprise(office: Computer) -> Computer:
    """A directory with two sites, a network, a link, a routing server and its client."""
    change(
        office,
        Site(identifier=NORTH, name="North"),
        Site(identifier=SOUTH, name="South"),
        ConnectedNetwork(identifier=LAN, name="LAN"),
        QueueManagerInfo(
            identifier=GATE, computer_name="GATE", sites=(NORTH, SOUTH), routing_server=True
        ),
        QueueManagerInfo(
            identifier=CLIENT,
            computer_name="CLIENT",
            sites=(SOUTH,),
            connected_networks=(LAN,),
            in_routing_servers=(GATE,),
            out_routing_servers=(GATE,),
        ),
        RoutingLink(identifier=LINK, site1=NORTH, site2=SOUTH, cost=1, site_gates=(GATE,)),
    )
    return office


def refers(section: str, number: int, *case: Any) -> Any:
    return pytest.param(*case, marks=shows(f"{ELEMENTS}.{section}", number), id=case[1])


MANAGERS, SITES = ObjectKind.MANAGER, ObjectKind.SITE


@pytest.mark.parametrize(
    ("owner", "attribute", "kind", "named"),
    [
        refers("1", 10, (MANAGERS, CLIENT), "sites", SITES, (SOUTH,)),
        refers("1", 11, (MANAGERS, CLIENT), "connected_networks", ObjectKind.NETWORK, (LAN,)),
        refers("1", 12, (MANAGERS, CLIENT), "out_routing_servers", MANAGERS, (GATE,)),
        refers("1", 13, (MANAGERS, CLIENT), "in_routing_servers", MANAGERS, (GATE,)),
        refers("8", 2, (ObjectKind.LINK, LINK), "site1", SITES, NORTH),
        refers("8", 3, (ObjectKind.LINK, LINK), "site2", SITES, SOUTH),
        refers("8", 4, (ObjectKind.LINK, LINK), "site_gates", MANAGERS, (GATE,)),
    ],
)
def test_what_an_object_refers_to_is_there_under_the_identifier_that_it_names(
    enterprise: Computer,
    owner: tuple[ObjectKind, Guid],
    attribute: str,
    kind: ObjectKind,
    named: Guid | tuple[Guid, ...],
) -> None:
    """Objects hold identifiers only, and are looked up by them; so the two cannot differ."""
    found = image(enterprise).get(*owner)
    assert found is not None
    assert getattr(found, attribute) == named
    identifiers = (named,) if isinstance(named, Guid) else named
    for identifier in identifiers:
        there = image(enterprise).get(kind, identifier)
        assert there is not None
        assert there.identifier == identifier
        assert "cannot be removed, because" in refusal(enterprise, Removal(kind, identifier))
    nobody = guid("nobody")
    wrong: Any = nobody if isinstance(named, Guid) else (nobody,)
    dangling = msgspec.structs.replace(found, **{attribute: wrong})
    assert "which is not in the directory" in refusal(enterprise, dangling)


@shows(f"{ELEMENTS}.1", 14)
def test_how_long_to_wait_with_the_start_is_120_seconds_and_survives(
    network: Network, office: Computer
) -> None:
    own = image(office).managers[office.identifier]
    assert own.initialization_retry_s == 120
    office.crash()
    assert image(office).managers[office.identifier].initialization_retry_s == 120
    change(office, msgspec.structs.replace(own, initialization_retry_s=77))
    office.crash()
    network.run(POLL_MS)
    assert image(office).managers[office.identifier].initialization_retry_s == 77


# Rights.


EVERY_BIT: Final = 0x000F_FFFF


EVERYTHING: Final = Descriptor(ADMINISTRATORS, b"", (AccessEntry(EVERYONE, EVERY_BIT),))


@shows(f"{ELEMENTS}.1", 7)
def test_the_rights_on_a_queue_manager_are_those_that_it_has(
    desk: Office, office: Computer
) -> None:
    desk.ok(api.SetSecurity("", encode(EVERYTHING)))
    [entry] = decode(desk.ok(api.GetSecurity("")).descriptor).entries or ()
    assert entry == AccessEntry(EVERYONE, 0xF_00F7)
    own = image(office).managers[office.identifier]
    change(office, msgspec.structs.replace(own, security_descriptor=encode(EVERYTHING)))
    found = decode(image(office).managers[office.identifier].security_descriptor)
    assert found.entries == (AccessEntry(EVERYONE, 0xF_00F7),)
    for each in decode(Office().ok(api.GetSecurity("")).descriptor).entries or ():
        assert each.rights & ~0xF_00F7 == 0


@pytest.mark.parametrize(
    ("thing", "kind", "mask"),
    [
        pytest.param(
            EnterpriseInfo(identifier=guid("one more")),
            ObjectKind.ENTERPRISE,
            0xF_0037,
            marks=shows(f"{ELEMENTS}.6", 1),
        ),
        pytest.param(
            Site(identifier=guid("a site"), name="a site"),
            SITES,
            0xF_0037,
            marks=shows(f"{ELEMENTS}.7", 2),
        ),
        pytest.param(
            ConnectedNetwork(identifier=guid("a net"), name="a net"),
            ObjectKind.NETWORK,
            0xF_0031,
            marks=shows(f"{ELEMENTS}.9", 1),
        ),
    ],
)
def test_the_rights_on_an_object_of_the_directory_are_those_of_its_kind(
    office: Computer, thing: Any, kind: ObjectKind, mask: int
) -> None:
    if kind is ObjectKind.ENTERPRISE:
        thing = image(office).enterprise
    change(office, msgspec.structs.replace(thing, security_descriptor=encode(EVERYTHING)))
    found: Any = image(office).get(kind, thing.identifier)
    assert decode(found.security_descriptor).entries == (AccessEntry(EVERYONE, mask),)
    only_unknown = Descriptor(ADMINISTRATORS, b"", (AccessEntry(EVERYONE, 0x8000),))
    change(office, msgspec.structs.replace(thing, security_descriptor=encode(only_unknown)))
    found = image(office).get(kind, thing.identifier)
    assert decode(found.security_descriptor).entries == ()


@shows(f"{ELEMENTS}.7", 1)
def test_two_sites_of_an_enterprise_have_two_names(enterprise: Computer) -> None:
    for name in ("North", "NORTH"):
        twin = Site(identifier=guid("a twin"), name=name)
        assert f"a second site {name}" in refusal(enterprise, twin)
    renamed = msgspec.structs.replace(image(enterprise).sites[SOUTH], name="north")
    assert "a second site" in refusal(enterprise, renamed)


# Queues.


@shows(f"{ELEMENTS}.2", 2)
@settings(max_examples=10)
@given(st.binary(min_size=16, max_size=16))
def test_the_type_of_a_queue_means_nothing_to_its_queue_manager(kind: bytes) -> None:
    desk = Office()
    desk.ok(api.CreateQueue(NEW, service_type=kind))
    desk.send(b"one", b"two", name=NEW)
    desk.ok(api.Receive(desk.open(NEW)))
    desk.restart()
    status = status_of(desk, NEW)
    assert (status.service_type, status.message_count) == (kind, 1)
    assert desk.bodies(NEW) == [b"two"]


@shows(f"{ELEMENTS}.2", 6)
def test_every_public_queue_is_found_in_the_whole_enterprise(
    network: Network, office: Computer, shop: Computer
) -> None:
    """Its scope is always that, and no attribute of Active Directory is written for it."""
    shop.ok_soon(api.CreateQueue(r".\orders"))
    network.run(POLL_MS)
    [published] = image(office).queues.values()
    assert published.scope is QueueScope.ENTERPRISE
    assert {scope.name for scope in QueueScope} == {"SITE", "ENTERPRISE"}
    by_site = msgspec.structs.replace(published, scope=QueueScope.SITE)
    assert directory_queues.queue_attributes(by_site) == (
        directory_queues.queue_attributes(published)
    )


@shows(f"{ELEMENTS}.2", 9)
@given(st.lists(st.integers(0, 7), max_size=12))
def test_a_queue_has_its_messages_by_priority_and_then_as_they_came(
    priorities: list[int],
) -> None:
    desk = Office()
    sent = [(priority, number) for number, priority in enumerate(priorities)]
    for priority, number in sent:
        desk.send(b"%d" % number, priority=priority)
    expected = sorted(sent, key=lambda each: (-each[0], each[1]))
    assert desk.bodies() == [b"%d" % number for _, number in expected]


@shows(f"{ELEMENTS}.2", 10)
def test_an_empty_queue_begins_where_it_ends(desk: Office) -> None:
    handle = desk.open()
    for action in ("first", "last"):
        assert desk.error(api.Seek(handle, action, peek=True)) == "MQ_ERROR_MESSAGE_NOT_FOUND"
    at_head, at_end = (desk.ok(api.CreateCursor(handle)).cursor for _ in range(2))
    desk.send(b"gone")
    desk.ok(api.Receive(handle, peek=True, cursor=at_end))
    desk.ok(api.Receive(desk.open()))
    for cursor, forward in ((at_head, False), (at_end, True)):
        request = api.Receive(handle, peek=True, cursor=cursor, next=forward)
        assert desk.error(request) == TIMEOUT
    desk.send(b"next")
    for cursor, forward in ((at_head, False), (at_end, True)):
        request = api.Receive(handle, peek=True, cursor=cursor, next=forward)
        assert bodies(desk.ok(request)) == [b"next"]


@shows(f"{ELEMENTS}.2", 7)
def test_a_queue_is_active_while_it_is_open_or_has_something_to_send() -> None:
    hall = Hall()
    program = hall.manager_program()

    def active() -> list[str]:
        asked = mgmt.GetInfo(mgmt.ManagedObject(1, 0), (1,), (NULL,))
        found = mgmt.INFO.decode(program.stub(0, mgmt.GET_INFO.encode(asked)))
        names: Any = found.values[0].value
        return [name.upper() for name in names]

    name = hall.ok(api.GetNames(ORDERS)).format_name.upper()
    away = r"DIRECT=OS:BETA\PRIVATE$\ORDERS"
    assert active() == []
    handle = hall.open()
    assert active() == [name]
    hall.ok(api.CloseQueue(handle))
    assert active() == []
    sender = hall.open(away, AccessMode.SEND)
    hall.ok(api.Send(sender, [Draft(time_to_reach_queue_s=30).packet(r"OS:BETA\private$\orders")]))
    hall.ok(api.CloseQueue(sender))
    assert active() == [away]
    hall.pass_time(60)
    assert active() == []


# Positions in a queue.


@shows(f"{ELEMENTS}.11", 1)
def test_a_position_has_a_state_a_message_neighbours_and_a_queue(desk: Office) -> None:
    desk.send(b"one", b"two", b"three")
    desk.send(b"elsewhere", name=LEDGER)
    handle = desk.open()
    first, second, third = desk.lookup_ids()

    def at(action: str, lookup_id: int) -> list[bytes]:
        return bodies(desk.ok(api.Seek(handle, action, lookup_id, peek=True)))

    assert at("current", second) == [b"two"]
    assert at("next", second) == [b"three"]
    assert at("previous", second) == [b"one"]
    assert desk.error(api.Seek(handle, "next", third)) == "MQ_ERROR_MESSAGE_NOT_FOUND"
    assert desk.error(api.Seek(handle, "previous", first)) == "MQ_ERROR_MESSAGE_NOT_FOUND"
    desk.ok(api.Seek(handle, "current", second, lock=True))
    assert at("next", first) == [b"three"], "what is locked is passed over"
    desk.ok(api.EndReceive(handle, second, True))
    assert desk.error(api.Seek(handle, "current", second, peek=True)) == (
        "MQ_ERROR_MESSAGE_NOT_FOUND"
    )
    assert desk.bodies(LEDGER) == [b"elsewhere"]


def test_the_state_of_a_recoverable_message_survives(desk: Office) -> None:
    """But for one thing: that it was purged while somebody held it (C-126)."""
    desk.send(b"available", b"deleted", b"locked", name=LEDGER)
    handle = desk.open(LEDGER)
    lookup_ids = desk.lookup_ids(LEDGER)
    desk.ok(api.Seek(handle, "current", lookup_ids[1]))
    work = desk.ok(api.Begin())
    desk.ok(api.Seek(handle, "current", lookup_ids[2], transaction=work.transaction))
    desk.ok(api.Prepare(work.transaction))
    desk.restart()
    assert desk.bodies(LEDGER) == [b"available"]
    assert status_of(desk, LEDGER).message_count == 2, "one is locked"
    desk.ok(api.Resolve(work.unit_of_work, commit=False))
    assert desk.bodies(LEDGER) == [b"available", b"locked"]
