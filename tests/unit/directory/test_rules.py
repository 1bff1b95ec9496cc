"""The rules of a directory: whatever they let pass leaves it whole."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Hashable, Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.directory import limits as directory_limits
from openmsmq.directory import rules
from openmsmq.directory.codec import encode_object
from openmsmq.directory.image import DirectoryImage
from openmsmq.directory.rules import check
from openmsmq.model import limits
from openmsmq.model.directory import ObjectKind, Removal, kind_of
from openmsmq.model.errors import MsmqError
from openmsmq.model.identity import Guid
from openmsmq.model.names import PublicFormatName, parse_format_name
from openmsmq.model.queue import QueueKind, QueueProperties
from openmsmq.model.topology import (
    ConnectedNetwork,
    DistributionList,
    EnterpriseInfo,
    QueueManagerInfo,
    RoutingLink,
    Site,
    UserInfo,
)
from tests.strategies.enterprises import enterprises, guid, images, mixed_changes

EMPTY = DirectoryImage()


def flaws(image: DirectoryImage) -> list[object]:
    """Find what is wrong in a directory, without the code under test."""
    links, lists = image.links.values(), image.lists.values()
    members = [parse_format_name(member) for one in lists for member in one.members]
    return [
        *(link for link in links if not is_whole(link, image)),
        *(manager for manager in image.managers.values() if not fits(manager, image)),
        *(queue for queue in image.queues.values() if queue.manager not in image.managers),
        *(queue for queue in image.queues.values() if queue.kind is not QueueKind.PUBLIC),
        *(
            member
            for member in members
            if getattr(member, "distribution_list", None) not in (None, *image.lists)
            or (isinstance(member, PublicFormatName) and member.queue not in image.queues)
        ),
        *repeated(one.computer_name.casefold() for one in image.managers.values()),
        *repeated(one.path_name.casefold() for one in image.queues.values()),
        *repeated(one.name.casefold() for one in image.sites.values()),
        *repeated(frozenset((link.site1, link.site2)) for link in links),
        *repeated(True for _ in image.of_kind(ObjectKind.ENTERPRISE)),
    ]


def is_whole(link: RoutingLink, image: DirectoryImage) -> bool:
    ends = {link.site1, link.site2}
    gates = [image.managers.get(gate) for gate in link.site_gates]
    return (
        len(ends) == 2
        and ends <= image.sites.keys()
        and 1 <= link.cost <= 999_999
        and all(gate and gate.routing_server and ends & set(gate.sites) for gate in gates)
    )


def fits(manager: QueueManagerInfo, image: DirectoryImage) -> bool:
    routers = {one.identifier for one in image.managers.values() if one.routing_server}
    return (
        set(manager.sites) <= image.sites.keys()
        and set(manager.connected_networks) <= image.of_kind(ObjectKind.NETWORK).keys()
        and {*manager.in_routing_servers, *manager.out_routing_servers} <= routers
    )


def repeated(words: Iterable[Hashable]) -> list[Hashable]:
    return [word for word, count in Counter(words).items() if count > 1]


@given(mixed_changes())
def test_whatever_passes_leaves_a_directory_in_which_everything_fits(case):
    image, changes = case
    assert flaws(image) == []
    try:
        check(image, changes)
    except MsmqError:
        return
    assert flaws(image.changed(changes)) == []


@given(enterprises(), st.randoms(use_true_random=False))
def test_a_consistent_directory_can_be_made_in_any_order_at_once(objects, random):
    random.shuffle(objects)
    check(EMPTY, objects)


@given(images(), st.randoms(use_true_random=False))
def test_a_directory_can_be_emptied_at_once_in_any_order(image, random):
    removals = [Removal(kind_of(value), value.identifier) for value in image]
    random.shuffle(removals)
    check(image, removals)


@given(images(), st.data())
def test_what_is_referred_to_cannot_go_alone(image, data):
    referred = [
        key
        for value in image
        for key in rules.references_of(value)
        if key != (kind_of(value), value.identifier)
    ]
    if not referred:
        return
    kind, identifier = data.draw(st.sampled_from(referred))
    with pytest.raises(MsmqError, match="cannot be removed, because"):
        check(image, [Removal(kind, identifier)])


# One enterprise for the examples: two sites, a link with its two gates, a client, a queue, a list.

NORTH = Site(identifier=guid("N"), name="North")
SOUTH = Site(identifier=guid("S"), name="South")
GATE_N = QueueManagerInfo(
    identifier=guid("GN"), computer_name="GATE-N", sites=(guid("N"),), routing_server=True
)
GATE_S = QueueManagerInfo(
    identifier=guid("GS"), computer_name="GATE-S", sites=(guid("S"),), routing_server=True
)
CLIENT = QueueManagerInfo(
    identifier=guid("C"),
    computer_name="CLIENT",
    qualified_computer_name="client.example.org",
    sites=(guid("N"),),
    in_routing_servers=(guid("GN"),),
)
LINK = RoutingLink(
    identifier=guid("L"),
    site1=guid("N"),
    site2=guid("S"),
    cost=7,
    site_gates=(guid("GN"), guid("GS")),
)
QUEUE = QueueProperties(
    identifier=guid("Q"), path_name="CLIENT\\orders", manager=guid("C"), kind=QueueKind.PUBLIC
)
LIST = DistributionList(identifier=guid("D"), name="all", members=(f"PUBLIC={guid('Q')}",))
ENTERPRISE = EnterpriseInfo(identifier=guid("E"), name="Example")
LAN = ConnectedNetwork(identifier=guid("LAN"), name="LAN")
IMAGE = DirectoryImage([NORTH, SOUTH, GATE_N, GATE_S, CLIENT, LINK, QUEUE, LIST, ENTERPRISE, LAN])


def but(value, **fields):
    return msgspec.structs.replace(value, **fields)


def other(value, **fields):
    return but(value, identifier=guid("new"), **fields)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (but(LINK, site2=guid("N")), "link North:North leads from a site to itself"),
        (but(LINK, cost=0), "costs 0; a cost is from 1 to 999999"),
        (but(LINK, cost=1_000_000), "costs 1000000"),
        (but(LINK, site2=guid("X")), "refers to the site .*, which is not in the directory"),
        (but(LINK, site_gates=(guid("X"),)), "refers to the queue manager"),
        (but(LINK, site_gates=(guid("C"),)), "CLIENT is a gate .* must be a routing server"),
        (but(LINK, site_gates=(guid("GN"),) * 2), "names one of its gates twice"),
        (other(LINK, site1=guid("S"), site2=guid("N")), "a second link South:North"),
        (but(GATE_N, sites=()), "GATE-N is a gate of the link North:South.* belong to one"),
        (but(GATE_N, routing_server=False), "GATE-N is a gate of the link .* routing server"),
        (but(CLIENT, out_routing_servers=(guid("X"),)), "refers to the queue manager"),
        (but(CLIENT, out_routing_servers=(guid("C"),)), "cannot be its own out-routing server"),
        (but(GATE_S, in_routing_servers=(guid("C"),)), "CLIENT is an in-routing server of the"),
        (but(CLIENT, connected_networks=(guid("X"),)), "refers to the connected network"),
        (but(CLIENT, computer_name=""), "has no computer name"),
        (but(CLIENT, computer_name="a/b"), "cannot contain '/'"),
        (but(CLIENT, computer_name="OTHER", qualified_computer_name=""), "must begin with OTHER"),
        (other(CLIENT, computer_name="client"), "^client"),
        (other(CLIENT, computer_name="X", qualified_computer_name="CLIENT.example.ORG"), "^X "),
        (other(NORTH, name="NORTH"), "a second site NORTH"),
        (other(NORTH, name=" "), "has no name"),
        (other(NORTH, name="a\x07"), "all of them printable"),
        (other(NORTH, name="a" * 257), "at most 256 characters"),
        (other(LAN), "a second connected network LAN"),
        (other(ENTERPRISE), "a directory has one enterprise"),
        (other(QUEUE, path_name="client\\ORDERS"), "^client.ORDERS"),
        (other(QUEUE, path_name="GATE-N\\x"), "must begin with CLIENT"),
        (other(QUEUE, path_name="CLIENT\\a;b"), "cannot contain ';'"),
        (other(QUEUE, path_name="CLIENT\\x", kind=QueueKind.PRIVATE), "is not public"),
        (other(QUEUE, path_name="X\\x", manager=guid("X")), "refers to the queue manager"),
        (but(QUEUE, transactional=True), "transactional never changes"),
        (but(QUEUE, path_name="CLIENT\\b"), "path name never changes"),
        (but(LIST, members=(f"DL={guid('D')}",)), "would contain itself"),
        (but(LIST, members=("MACHINE=" + str(guid("C")) + ";JOURNAL",)), "nobody can send"),
        (but(LIST, members=("nonsense",)), "nonsense"),
        (but(LIST, members=(f"PUBLIC={guid('X')}",)), "refers to the public queue"),
        (UserInfo(identifier=guid("U"), security_identifier=b""), "has no security identifier"),
        (but(NORTH, identifier=Guid(16), name="Nil"), "not nil"),
        (other(NORTH, name="\ud800"), "cannot be stored|printable"),
        (
            Removal(ObjectKind.SITE, guid("N")),
            "site North cannot be removed, because link North:South refers",
        ),
        (Removal(ObjectKind.MANAGER, guid("GS")), "GATE-S cannot be removed, because link North:"),
        (Removal(ObjectKind.MANAGER, guid("C")), "CLIENT cannot be removed, because public queue"),
        (Removal(ObjectKind.QUEUE, guid("Q")), "because distribution list all refers to it"),
    ],
)
def test_a_change_that_breaks_something_is_refused_with_a_sentence(change, words):
    check(EMPTY, IMAGE)
    with pytest.raises(MsmqError) as refused:
        check(IMAGE, [change])
    assert re.search(words, refused.value.detail)


@pytest.mark.parametrize(
    "changes",
    [
        [Removal(ObjectKind.SITE, guid("unknown"))],
        [but(LINK, cost=999_999), but(NORTH, name="Far North")],
        [but(LINK, site_gates=(guid("GS"),)), but(GATE_N, sites=(guid("S"),))],
        [Removal(ObjectKind.ENTERPRISE, guid("E")), other(ENTERPRISE)],
        [but(CLIENT, computer_name="CLIENT2"), but(QUEUE, path_name="CLIENT2\\orders")],
        [but(LIST, members=("DIRECT=OS:far\\private$\\x", f"DL={guid('far')}@example.org"))],
        [Removal(ObjectKind.QUEUE, guid("Q")), Removal(ObjectKind.LIST, guid("D"))],
    ],
)
def test_changes_that_fit_together_pass(changes):
    for order in itertools.permutations(changes):
        check(IMAGE, order)


def test_two_lists_cannot_contain_each_other():
    second = DistributionList(identifier=guid("D2"), name="b", members=(f"DL={guid('D')}",))
    check(IMAGE, [second])
    with pytest.raises(MsmqError, match="would contain itself"):
        check(IMAGE.changed([second]), [but(LIST, members=(f"DL={guid('D2')}",))])


def test_an_old_flaw_does_not_stand_in_the_way_of_other_changes():
    broken = IMAGE.changed([Removal(ObjectKind.QUEUE, guid("Q"))])
    check(broken, [but(NORTH, name="Far North")])
    check(broken, [but(LIST, members=())])


def many(count: int) -> tuple[Guid, ...]:
    return tuple(guid(number) for number in range(count))


@pytest.mark.parametrize(
    ("limit", "change"),
    [
        (rules.GATES_MAX_COUNT, lambda count: but(LINK, site_gates=many(count))),
        (rules.MANAGER_SITES_MAX_COUNT, lambda count: but(CLIENT, sites=many(count))),
        (
            rules.ROUTING_SERVERS_MAX_COUNT,
            lambda count: but(CLIENT, out_routing_servers=many(count)),
        ),
        (
            limits.CONNECTED_NETWORKS_MAX_COUNT,
            lambda count: but(CLIENT, connected_networks=many(count)),
        ),
        (
            directory_limits.LIST_MEMBERS_MAX_COUNT,
            lambda count: but(LIST, members=tuple(f"PUBLIC={one}" for one in many(count))),
        ),
    ],
)
def test_every_collection_of_references_has_its_limit(limit, change):
    with pytest.raises(MsmqError, match="is not in the directory"):
        check(IMAGE, [change(limit)])
    with pytest.raises(MsmqError, match=f"has {limit + 1} .*, {limit} are allowed"):
        check(IMAGE, [change(limit + 1)])


def test_a_queue_manager_has_so_many_addresses():
    addresses = tuple(f"10.0.0.{number}" for number in range(rules.ADDRESSES_MAX_COUNT + 1))
    check(IMAGE, [but(CLIENT, addresses=addresses[1:])])
    with pytest.raises(MsmqError, match="has 33 addresses, 32 are allowed"):
        check(IMAGE, [but(CLIENT, addresses=addresses)])


@pytest.mark.parametrize("name", ["quota_kb", "journal_quota_kb"])
def test_a_quota_of_a_queue_manager_has_32_bits(name):
    for quota_kb in (0, limits.UNLIMITED_KB):
        check(IMAGE, [but(CLIENT, **{name: quota_kb})])
    for quota_kb in (-1, limits.UNLIMITED_KB + 1):
        with pytest.raises(MsmqError, match=f"{name} exceeds 32 bits"):
            check(IMAGE, [but(CLIENT, **{name: quota_kb})])


def test_an_object_has_a_largest_size():
    room = directory_limits.DIRECTORY_OBJECT_MAX_BYTES - len(
        encode_object(but(NORTH, directory_name=""))
    )
    # The length of a long text takes four bytes more than that of an empty one.
    check(IMAGE, [but(NORTH, directory_name="x" * (room - 4))])
    with pytest.raises(MsmqError, match="bytes, 262144 are allowed"):
        check(IMAGE, [but(NORTH, directory_name="x" * (room - 3))])


def test_a_directory_holds_so_many_objects(monkeypatch):
    monkeypatch.setattr(rules, "DIRECTORY_OBJECTS_MAX_COUNT", len(IMAGE) + 1)
    one, two = (Site(identifier=guid(name), name=name) for name in ("one", "two"))
    check(IMAGE, [one])
    with pytest.raises(MsmqError, match="12 objects, 11 are allowed") as refused:
        check(IMAGE, [one, two])
    assert refused.value.name == "MQ_ERROR_DS_IS_FULL"
    check(IMAGE.changed([one, two]), [but(NORTH, name="Far North")])


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (other(QUEUE), "MQ_ERROR_QUEUE_EXISTS"),
        (other(GATE_N), "MQ_ERROR_MACHINE_EXISTS"),
        (other(ENTERPRISE), "MQ_ERROR_ILLEGAL_ENTERPRISE_OPERATION"),
        (but(LINK, cost=0), "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"),
    ],
)
def test_errors_have_the_codes_of_msmq(change, name):
    with pytest.raises(MsmqError) as refused:
        check(IMAGE, [change])
    assert refused.value.name == name
