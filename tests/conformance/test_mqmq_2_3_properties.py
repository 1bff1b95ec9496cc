"""Properties of objects as directories hold them, and as notifications say them. [MQMQ 2.3]"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, Final, cast

import bonsai
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.api import messages as api
from openmsmq.directory.image import DirectoryImage
from openmsmq.manager.directory.old_notifications import notification_of
from openmsmq.model.directory import ObjectKind, Removal
from openmsmq.model.identity import Guid
from openmsmq.model.names import LocalQueueName, PathName, read_name
from openmsmq.model.queue import QueueKind, QueueProperties
from openmsmq.model.topology import EnterpriseInfo, QueueManagerInfo, RoutingLink, Site
from openmsmq.runtime.active_directory.mapping import managers, queues, topology
from openmsmq.runtime.active_directory.mapping.entries import Entry, child_name
from openmsmq.runtime.active_directory.settings import ServerSettings
from tests.conformance.marks import shows
from tests.transfer.conftest import alpha, network
from tests.transfer.network import PEER, Computer, Network
from tests.unit.manager.office import Office
from tests.unit.runtime.active_directory.as_served import (
    COMPUTER_NAME,
    MANAGER,
    MANAGER_NAME,
    ROOT,
    SELF,
    computer,
    manager_entry,
    served,
)

if TYPE_CHECKING:
    from openmsmq.runtime.active_directory.session import Session

__all__ = ["alpha", "network"]

SITE_NAME: Final = f"CN=Here,CN=Sites,CN=Configuration,{ROOT}"
SERVICES_NAME: Final = f"CN=MsmqServices,CN=Services,CN=Configuration,{ROOT}"
OTHER: Final = Guid(b"some other host!")

QUEUE = QueueProperties(
    identifier=SELF, path_name="QM1\\orders", kind=QueueKind.PUBLIC, manager=OTHER
)
QM = QueueManagerInfo(identifier=SELF, computer_name="QM1")
SITE = Site(identifier=SELF, name="Here")
ENTERPRISE = EnterpriseInfo(identifier=SELF)


# Properties with two values.


def two(number: str, own: int, *case: Any) -> Any:
    return pytest.param(*case, marks=shows(f"MQMQ-2.3.{number}", own), id=case[2])


@pytest.mark.parametrize(
    ("write", "thing", "attribute", "name"),
    [
        two("1.4", 1, queues.queue_attributes, QUEUE, "journaling", "mSMQJournal"),
        two("1.11", 1, queues.queue_attributes, QUEUE, "authentication_required",
            "mSMQAuthenticate"),
        two("1.13", 1, queues.queue_attributes, QUEUE, "transactional", "mSMQTransactional"),
        two("2.18", 1, managers.manager_attributes, QM, "foreign", "mSMQForeign"),
        two("2.24", 2, managers.manager_attributes, QM, "routing_server", "mSMQRoutingServices"),
        two("3.11", 1, topology.site_attributes, SITE, "foreign", "mSMQSiteForeign"),
        two("5.2", 1, topology.enterprise_attributes, ENTERPRISE, "weakened_security",
            "mSMQNameStyle"),
        two("8.8", 1, managers.settings_attributes, QM, "routing_server", "mSMQRoutingService"),
        two("8.10", 1, managers.settings_attributes, QM, "supporting_server",
            "mSMQDependentClientService"),
    ],
)  # fmt: skip
def test_a_property_that_is_so_or_not_is_written_as_one_of_two_words(
    write: Any, thing: Any, attribute: str, name: str
) -> None:
    """LDAP writes the values 0 and 1 as words."""
    for value, word in ((False, b"FALSE"), (True, b"TRUE")):
        said = msgspec.structs.replace(thing, **{attribute: value})
        assert write(said)[name] == (word,)


@shows("MQMQ-2.3.8.9", 1)
def test_settings_say_whether_a_server_serves_the_directory() -> None:
    for kind in (None, *managers._CONTROLLERS):  # noqa: SLF001 - all kinds that serve it
        said = managers.settings_attributes(msgspec.structs.replace(QM, directory_server=kind))
        assert said["mSMQDsService"] == ((b"FALSE",) if kind is None else (b"TRUE",))


@shows("MQMQ-2.3.3.10", 1)
@pytest.mark.parametrize("migrated", [False, True])
def test_a_site_was_migrated_or_not(migrated: bool) -> None:
    said = topology.site_attributes(msgspec.structs.replace(SITE, migrated=migrated))
    assert said["mSMQNt4Stub"] == (b"1" if migrated else b"0",)
    assert topology.read_site(served(SITE_NAME, "site", dict(said))).migrated is migrated


@shows("MQMQ-2.3.2.35", 1)
@pytest.mark.parametrize("clustered", [False, True])
def test_a_queue_manager_is_part_of_a_cluster_or_not(clustered: bool) -> None:
    entry = served(MANAGER_NAME, "mSMQConfiguration", dict(managers.manager_attributes(QM)))
    service = b"MSClusterVirtualServer/qm1" if clustered else b"HOST/qm1"
    assert managers.read_manager(entry, computer(servicePrincipalName=service)).clustered is (
        clustered
    )


@shows("MQMQ-2.3.1.6", 1)
@pytest.mark.parametrize("level", [-(2**15), -1, 0, 3, 2**15 - 1])
def test_a_base_priority_is_a_level_of_sixteen_bits(level: int) -> None:
    said = queues.queue_attributes(msgspec.structs.replace(QUEUE, base_priority=level))
    assert said["mSMQBasePriority"] == (str(level).encode(),)
    assert -(2**15) <= int(said["mSMQBasePriority"][0]) < 2**15


# What is undefined.


def with_more(entry: Entry, more: dict[str, bytes]) -> Entry:
    added = {name.lower(): (value,) for name, value in more.items()}
    return Entry(entry.name, entry.identifier, entry.classes, {**added, **entry.attributes})


UNDEFINED: Final = st.dictionaries(
    st.sampled_from(
        [
            "mSMQInterval1", "mSMQInterval2", "mSMQCRL", "mSMQCSPType", "mSMQEncryptAlg",
            "mSMQSignAlg", "mSMQHashAlg", "mSMQCipherMode", "mSMQHashKey", "mSMQLabelHashKey",
        ]
    ),
    st.binary(max_size=9),
)  # fmt: skip


@shows("MQMQ-2.3.5.5", 1)
@shows("MQMQ-2.3.5.6", 1)
@shows("MQMQ-2.3.5.10", 1)
@shows("MQMQ-2.3.5.11", 1)
@shows("MQMQ-2.3.5.12", 1)
@shows("MQMQ-2.3.5.13", 1)
@shows("MQMQ-2.3.5.14", 1)
@shows("MQMQ-2.3.5.18", 1)
@given(UNDEFINED)
def test_what_is_undefined_of_an_enterprise_means_nothing(more: dict[str, bytes]) -> None:
    entry = served(
        SERVICES_NAME, "mSMQEnterpriseSettings", dict(topology.enterprise_attributes(ENTERPRISE))
    )
    read = topology.read_enterprise
    assert read(with_more(entry, more), ROOT) == read(entry, ROOT)
    assert not UNDEFINED_NAMES & topology.enterprise_attributes(ENTERPRISE).keys()


UNDEFINED_NAMES: Final = {
    "mSMQInterval1", "mSMQInterval2", "mSMQCRL", "mSMQCSPType", "mSMQEncryptAlg", "mSMQSignAlg",
    "mSMQHashAlg", "mSMQCipherMode", "mSMQHashKey", "mSMQLabelHashKey",
}  # fmt: skip


@shows("MQMQ-2.3.1.18", 1)
@shows("MQMQ-2.3.1.19", 1)
@shows("MQMQ-2.3.2.12", 1)
@given(UNDEFINED)
def test_what_is_undefined_of_a_queue_and_a_queue_manager_means_nothing(
    more: dict[str, bytes],
) -> None:
    name = f"CN=orders,{MANAGER_NAME}"
    queue = served(name, "mSMQQueue", dict(queues.queue_attributes(QUEUE)))
    above = manager_entry(), computer(dNSHostName=b"qm1.mq.test")
    assert queues.read_queue(with_more(queue, more), *above) == queues.read_queue(queue, *above)
    manager = served(MANAGER_NAME, "mSMQConfiguration", dict(managers.manager_attributes(QM)))
    read = managers.read_manager
    assert read(with_more(manager, more), above[1]) == read(manager, above[1])


# Names.


@shows("MQMQ-2.3.1.3", 1)
@shows("MQMQ-2.3.1.22", 1)
@shows("MQMQ-2.3.10.4", 1)
def test_a_public_queue_has_a_path_by_each_name_of_its_computer() -> None:
    entry = served(f"CN=Orders,{MANAGER_NAME}", "mSMQQueue", dict(queues.queue_attributes(QUEUE)))
    queue = queues.read_queue(entry, manager_entry(), computer(dNSHostName=b"qm1.mq.test"))
    short, long = read_name(queue.path_name), read_name(queue.qualified_path_name)
    assert isinstance(short, PathName)
    assert isinstance(long, PathName)
    assert (short.computer, long.computer) == ("qm1", "qm1.mq.test")
    assert short.queue == long.queue == LocalQueueName("orders")
    assert queue.manager == MANAGER
    manager = served(MANAGER_NAME, "mSMQConfiguration", dict(managers.manager_attributes(QM)))
    read = managers.read_manager(manager, computer(dNSHostName=b"qm1.mq.test"))
    assert read.qualified_computer_name == "qm1.mq.test"


@shows("MQMQ-2.3.2.20", 1)
@shows("MQMQ-2.3.10.1", 1)
def test_a_queue_manager_and_its_computer_have_distinguished_names() -> None:
    manager = served(MANAGER_NAME, "mSMQConfiguration", dict(managers.manager_attributes(QM)))
    name = managers.read_manager(manager, computer()).directory_name
    assert len(bonsai.LDAPDN(name).rdns) == len(bonsai.LDAPDN(COMPUTER_NAME).rdns) + 1 == 5


class Recording:
    """Stands for a session with a server that has a site and nothing else; notes what is added."""

    configuration = f"CN=Configuration,{ROOT}"

    def __init__(self) -> None:
        self.added: list[str] = []

    async def search(self, *_: object) -> list[Entry]:
        return []

    async def find(self, _: object) -> Entry:
        return served(SITE_NAME, "site", {})

    async def get(self, _: object) -> None:
        return None

    async def add(self, name: str, *_: object) -> None:
        self.added.append(name)


@shows("MQMQ-2.3.8.1", 1)
@shows("MQMQ-2.3.8.4", 1)
def test_settings_have_one_name_below_their_server() -> None:
    session = Recording()
    server = msgspec.structs.replace(QM, sites=(SELF,), routing_server=True)
    asyncio.run(ServerSettings(cast("Session", session)).write(server, COMPUTER_NAME))
    name = session.added[-1]
    assert name == f"CN=MSMQ Settings,CN=QM1,CN=Servers,{SITE_NAME}"
    rdns = bonsai.LDAPDN(name).rdns
    assert rdns[0] == (("CN", "MSMQ Settings"),)


@shows("MQMQ-2.3.7.11", 1)
@given(st.binary(min_size=16, max_size=16), st.binary(min_size=16, max_size=16))
def test_a_routing_link_has_a_distinguished_name(one: bytes, two: bytes) -> None:
    link = RoutingLink(identifier=SELF, site1=Guid(one), site2=Guid(two), cost=1)
    name = child_name(topology.link_name(link), SERVICES_NAME)
    assert len(bonsai.LDAPDN(name).rdns) == len(bonsai.LDAPDN(SERVICES_NAME).rdns) + 1
    attributes = dict(topology.link_attributes(link))
    assert topology.read_link(served(name, "mSMQSiteLink", attributes)).directory_name == name


@shows("MQMQ-2.3.1.23", 1, 2)
@pytest.mark.parametrize(
    ("address", "good"),
    [
        ("224.0.0.0:1", True),
        ("239.255.255.255:65535", True),
        ("234.1.1.1:8001", True),
        ("223.255.255.255:1", False),
        ("240.0.0.0:1", False),
        ("10.0.0.1:8001", False),
        ("234.1.1.1", False),
        ("234.1.1.1:65536", False),
        ("234.1.1:1", False),
        ("somewhere:1", False),
    ],
)
def test_a_multicast_address_is_of_class_d_with_a_port(address: str, good: bool) -> None:
    office = Office()
    request = api.CreateQueue(r"private$\ticker", multicast_address=address)
    if good:
        [queue] = office.ok(request).queues
        assert queue.multicast_address == address
    else:
        assert office.error(request) == "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"


# Notifications of a deletion.


@shows("MQMQ-2.3.13.3", 1)
@shows("MQMQ-2.3.13.4", 1)
def test_a_deletion_is_told_with_its_scope_and_the_type_of_the_object() -> None:
    queue = msgspec.structs.replace(QUEUE, manager=OTHER)
    before = DirectoryImage([queue, msgspec.structs.replace(QM, identifier=OTHER)])
    told = notification_of(Removal(ObjectKind.QUEUE, SELF), before, MANAGER)
    assert told is not None
    [update] = told.updates
    said = {each.id: each.value for each in update.properties}
    assert said == {1403: 1, 1404: 1}, "the whole enterprise, a queue"


# The history of connections.


@shows("MQMQ-2.3.12.25", 2)
def test_the_history_of_connections_has_addresses_of_four_numbers(
    network: Network, alpha: Computer
) -> None:
    network.down.add(PEER)
    alpha.send(rf"DIRECT=TCP:{PEER}\private$\orders", b"one")
    network.run(60_000)
    addresses = [each for attempt in alpha.outgoing()[0].history for each in attempt.addresses]
    assert PEER in addresses
    for address in addresses:
        assert re.fullmatch(r"\d{1,3}(\.\d{1,3}){3}|\\\\[A-Za-z]+", address)
