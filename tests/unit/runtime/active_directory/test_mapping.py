"""Objects survive the way into the directory and back; what is missing has its default."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.names.parts import fold
from openmsmq.model.queue import QueueKind, QueuePrivacy, QueueProperties
from openmsmq.model.topology import (
    DirectoryServerKind,
    EnterpriseInfo,
    OperatingSystem,
    PublicKey,
    QueueManagerInfo,
    RoutingLink,
    Site,
    UserInfo,
)
from openmsmq.runtime.active_directory.mapping.descriptors import (
    MANAGER_RIGHTS,
    QUEUE_RIGHTS,
    SITE_RIGHTS,
    translate_from_directory,
)
from openmsmq.runtime.active_directory.mapping.entries import Malformed, child_name, reference
from openmsmq.runtime.active_directory.mapping.managers import (
    manager_attributes,
    read_manager,
    service_type,
    settings_attributes,
    signing_attributes,
)
from openmsmq.runtime.active_directory.mapping.names import entry_name, lower_case
from openmsmq.runtime.active_directory.mapping.queues import queue_attributes, read_queue
from openmsmq.runtime.active_directory.mapping.topology import (
    enterprise_attributes,
    link_attributes,
    link_name,
    read_enterprise,
    read_link,
    read_site,
    site_attributes,
)
from openmsmq.runtime.active_directory.mapping.users import read_user, user_attributes
from openmsmq.security.signatures.certificates import digest
from openmsmq.wire.keys import UserCertificate, UserCertificates
from tests.strategies.names import queue_names
from tests.unit.runtime.active_directory.as_served import (
    CREATED_S,
    MANAGER,
    MANAGER_NAME,
    OPEN,
    ROOT,
    SELF,
    computer,
    manager_entry,
    served,
    without,
)

FOREST = ROOT
texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40)
numbers = st.integers(0, 0xFFFFFFFF)
guids = st.binary(min_size=16, max_size=16).map(Guid).filter(lambda guid: guid != NIL_GUID)
guid_tuples = st.lists(guids, unique=True, max_size=4).map(tuple)
certificates = st.lists(st.binary(min_size=1, max_size=60), unique=True, max_size=4).map(tuple)

SITE_NAME = f"CN=Here,CN=Sites,CN=Configuration,{ROOT}"
LINK_NAME = f"CN=x,CN=MsmqServices,CN=Services,CN=Configuration,{ROOT}"
SERVICES_NAME = f"CN=MsmqServices,CN=Services,CN=Configuration,{ROOT}"
USER_NAME = f"CN=alice,CN=Users,{ROOT}"
SID = bytes.fromhex("01050000000000051500000001000000020000000300000050040000")

enterprises = st.builds(
    EnterpriseInfo,
    identifier=st.just(SELF),
    name=st.just(FOREST),
    reach_queue_default_s=numbers,
    weakened_security=st.booleans(),
    notify_old_managers=st.booleans(),
    old_directory=st.booleans(),
    security_descriptor=st.just(OPEN),
)
sites = st.builds(
    Site,
    identifier=st.just(SELF),
    name=st.just("Here"),
    foreign=st.booleans(),
    replicate_within_site_s=numbers,
    replicate_between_sites_s=numbers,
    directory_name=st.just(SITE_NAME),
    migrated=st.booleans(),
    security_descriptor=st.just(translate_from_directory(OPEN, SITE_RIGHTS)),
)
links = st.builds(
    RoutingLink,
    identifier=st.just(SELF),
    site1=guids,
    site2=guids,
    cost=st.integers(0, 999_999),
    site_gates=guid_tuples,
    description=texts,
    directory_name=st.just(LINK_NAME),
)
keys = st.builds(
    PublicKey,
    provider_name=st.text("ab c", max_size=9),
    provider_type=st.sampled_from([1, 24]),
    blob=st.binary(max_size=40),
)
managers = st.builds(
    QueueManagerInfo,
    identifier=st.just(SELF),
    computer_name=st.just("QM1"),
    qualified_computer_name=st.just("qm1.mq.test"),
    version=texts,
    operating_system=st.sampled_from(OperatingSystem),
    created_time_s=st.just(CREATED_S),
    modified_time_s=st.just(CREATED_S),
    quota_kb=numbers,
    journal_quota_kb=numbers,
    sites=guid_tuples,
    out_routing_servers=guid_tuples,
    in_routing_servers=guid_tuples,
    foreign=st.booleans(),
    routing_server=st.booleans(),
    supporting_server=st.booleans(),
    remote_access_server=st.booleans(),
    directory_server=st.none() | st.sampled_from(DirectoryServerKind),
    encryption_keys=st.lists(keys, max_size=3).map(tuple),
    signing_keys=certificates.map(lambda found: tuple(PublicKey("", 0, blob) for blob in found)),
    security_descriptor=st.just(translate_from_directory(OPEN, MANAGER_RIGHTS)),
    directory_name=st.just(MANAGER_NAME),
)
users = st.builds(
    lambda found: UserInfo(
        identifier=SELF,
        security_identifier=SID,
        certificates=found,
        certificate_digests=tuple(map(digest, found)),
    ),
    certificates,
)


@st.composite
def queues(draw: st.DrawFn) -> QueueProperties:
    name = lower_case(draw(queue_names()))
    entry = child_name(entry_name(name)[0], MANAGER_NAME)
    return QueueProperties(
        identifier=SELF,
        path_name=f"qm1\\{name}",
        kind=QueueKind.PUBLIC,
        manager=MANAGER,
        qualified_path_name=f"qm1.mq.test\\{name}",
        label=draw(texts),
        service_type=draw(guids | st.just(NIL_GUID)),
        created_time_s=CREATED_S,
        modified_time_s=CREATED_S,
        transactional=draw(st.booleans()),
        journaling=draw(st.booleans()),
        quota_kb=draw(numbers),
        journal_quota_kb=draw(numbers),
        authentication_required=draw(st.booleans()),
        privacy=draw(st.sampled_from(QueuePrivacy)),
        base_priority=draw(st.integers(-32768, 32767)),
        multicast_address=draw(st.none() | st.just("234.1.1.1:8001")),
        security_descriptor=translate_from_directory(OPEN, QUEUE_RIGHTS),
        directory_name=entry,
        directory_path=f"LDAP://{entry}",
    )


def served_manager(manager: QueueManagerInfo) -> QueueManagerInfo:
    entry = served(MANAGER_NAME, "mSMQConfiguration", manager_attributes(manager))
    above = served(
        entry.name.partition(",")[2], "computer", signing_attributes(manager),
        dNSHostName=b"qm1.mq.test",
    )  # fmt: skip
    return read_manager(entry, above)


# Round trips.


@pytest.mark.spec(
    "MQDSSM-3.1.6.7.3.2-01",
    "MQDSSM-3.1.6.11.3-01",
    "MQDSSM-3.1.6.11.3-02",
    "MQDSSM-3.1.6.11.3-04",
    "MQDSSM-3.1.6.11.3.1-01",
)
@given(enterprises)
def test_an_enterprise_survives_the_directory(enterprise: EnterpriseInfo) -> None:
    attributes = enterprise_attributes(enterprise)
    entry = served(SERVICES_NAME, "mSMQEnterpriseSettings", attributes)
    assert read_enterprise(entry, FOREST) == enterprise


@pytest.mark.spec(
    "MQDSSM-3.1.6.7.3.4-01",
    "MQDSSM-3.1.6.7.3.4-02",
    "MQDSSM-3.1.6.11.3.3-01",
    "MQDSSM-3.1.6.11.3.3-02",
)
@pytest.mark.parametrize(("notifies", "value"), [(True, b"Y"), (False, b"N")])
def test_whether_old_queue_managers_are_notified_is_a_letter(notifies: bool, value: bytes) -> None:
    enterprise = EnterpriseInfo(identifier=SELF, notify_old_managers=notifies)
    assert enterprise_attributes(enterprise)["mSMQCSPName"] == (value,)
    entry = served(SERVICES_NAME, "mSMQEnterpriseSettings", {}, mSMQCSPName=value)
    assert read_enterprise(entry, FOREST).notify_old_managers is notifies


@pytest.mark.spec("MQDSSM-3.1.6.11.3.2-02")
@pytest.mark.parametrize(("value", "weakened"), [(b"FALSE", False), (b"TRUE", True)])
def test_weakened_security_is_a_truth_value(value: bytes, weakened: bool) -> None:
    entry = served(SERVICES_NAME, "mSMQEnterpriseSettings", {}, mSMQNameStyle=value)
    assert read_enterprise(entry, FOREST).weakened_security is weakened


@pytest.mark.spec(
    "MQDSSM-3.1.6.7.4.2-01",
    "MQDSSM-3.1.6.11.4-01",
    "MQDSSM-3.1.6.11.4-02",
    "MQDSSM-3.1.6.11.4-04",
)
@given(sites)
def test_a_site_survives_the_directory(site: Site) -> None:
    attributes = dict(site_attributes(site))
    entry = served(SITE_NAME, "site", attributes)
    assert read_site(entry) == site


@pytest.mark.spec(
    "MQDSSM-3.1.6.7.5.2-01",
    "MQDSSM-3.1.6.11.5-01",
    "MQDSSM-3.1.6.11.5-02",
    "MQDSSM-3.1.6.11.5-04",
)
@given(links)
def test_a_routing_link_survives_the_directory(link: RoutingLink) -> None:
    assert read_link(served(LINK_NAME, "mSMQSiteLink", link_attributes(link))) == link


@pytest.mark.spec(
    "MQDSSM-3.1.6.11.5.1-01",
    "MQDSSM-3.1.6.11.5.1-03",
    "MQDSSM-3.1.6.11.5.2-01",
    "MQDSSM-3.1.6.11.5.2-03",
    "MQDSSM-3.1.6.11.5.3-01",
    "MQDSSM-3.1.6.11.5.3-03",
)
def test_sites_and_gates_of_a_link_are_read_from_the_entries_they_refer_to() -> None:
    gates = Guid(b"the first gate.."), Guid(b"the second gate.")
    entry = served(
        LINK_NAME,
        "mSMQSiteLink",
        {
            "mSMQCost": (b"3",),
            "mSMQSite1": (reference(SELF),),
            "mSMQSite2": (reference(MANAGER),),
            "mSMQSiteGates": tuple(map(reference, gates)),
        },
    )
    found = read_link(entry)
    assert (found.site1, found.site2, found.site_gates) == (SELF, MANAGER, gates)


@pytest.mark.spec(
    "MQDSSM-3.1.6.7.1.2-01",
    "MQDSSM-3.1.6.11.1-01",
    "MQDSSM-3.1.6.11.1-02",
    "MQDSSM-3.1.6.11.1-12",
    "MQDSSM-3.1.6.11.1.1-01",
)
@given(managers)
def test_a_queue_manager_survives_the_directory(manager: QueueManagerInfo) -> None:
    assert served_manager(manager) == manager


@pytest.mark.spec(
    "MQDSSM-3.1.6.1.1.4-01",
    "MQDSSM-3.1.6.1.1.4-02",
    "MQDSSM-3.1.6.7.1.4-01",
    "MQDSSM-3.1.6.7.1.4-02",
    "MQDSSM-3.1.6.11.1.2-01",
    "MQDSSM-3.1.6.11.1.2-02",
)
@pytest.mark.parametrize(
    ("system", "value"),
    [
        (OperatingSystem.OTHER, b"0"),
        (OperatingSystem.FOREIGN, b"256"),
        (OperatingSystem.WINDOWS_95, b"512"),
        (OperatingSystem.WINDOWS_CLIENT, b"768"),
        (OperatingSystem.WINDOWS_SERVER, b"1024"),
        (OperatingSystem.WINDOWS_ENTERPRISE, b"1280"),
    ],
)
def test_an_operating_system_is_its_number(system: OperatingSystem, value: bytes) -> None:
    manager = QueueManagerInfo(identifier=SELF, computer_name="QM1", operating_system=system)
    assert manager_attributes(manager)["mSMQOSType"] == (value,)
    entry = served(MANAGER_NAME, "mSMQConfiguration", {}, mSMQOSType=value)
    assert read_manager(entry, computer()).operating_system is system


@pytest.mark.spec(
    "MQDSSM-3.1.6.11.1.3-01",
    "MQDSSM-3.1.6.11.1.3-02",
    "MQDSSM-3.1.6.11.1.3-06",
    "MQDSSM-3.1.6.11.1.4-01",
    "MQDSSM-3.1.6.11.1.4-02",
    "MQDSSM-3.1.6.11.1.4-06",
)
def test_routing_servers_are_read_from_the_entries_they_refer_to() -> None:
    out = Guid(b"the first server"), Guid(b"second server...")
    entry = served(
        MANAGER_NAME,
        "mSMQConfiguration",
        {
            "mSMQOutRoutingServers": tuple(map(reference, out)),
            "mSMQInRoutingServers": tuple(map(reference, out[1:])),
        },
    )
    found = read_manager(entry, computer())
    assert (found.out_routing_servers, found.in_routing_servers) == (out, out[1:])


@pytest.mark.spec(
    "MQDSSM-3.1.6.7.2.2-01",
    "MQDSSM-3.1.6.11.2-01",
    "MQDSSM-3.1.6.11.2-02",
    "MQDSSM-3.1.6.11.2-10",
)
@given(queues())
def test_a_queue_survives_the_directory(queue: QueueProperties) -> None:
    rest = entry_name(queue.path_name.partition("\\")[2])[1]
    attributes = {**queue_attributes(queue), "mSMQQueueNameExt": (rest.encode(),) if rest else ()}
    entry = served(queue.directory_name, "mSMQQueue", attributes)
    assert read_queue(entry, manager_entry(), computer(dNSHostName=b"qm1.mq.test")) == queue


@pytest.mark.spec(
    "MQDSSM-3.1.6.1.2.4-01",
    "MQDSSM-3.1.6.1.2.4-02",
    "MQDSSM-3.1.6.7.2.4-01",
    "MQDSSM-3.1.6.7.2.4-02",
    "MQDSSM-3.1.6.11.2.3-01",
    "MQDSSM-3.1.6.11.2.3-02",
)
@pytest.mark.parametrize(
    ("privacy", "value"),
    [(QueuePrivacy.NONE, b"0"), (QueuePrivacy.OPTIONAL, b"1"), (QueuePrivacy.BODY, b"2")],
)
def test_a_privacy_level_is_its_number(privacy: QueuePrivacy, value: bytes) -> None:
    queue = QueueProperties(
        identifier=SELF, path_name="a\\b", kind=QueueKind.PUBLIC, manager=SELF, privacy=privacy
    )
    assert queue_attributes(queue)["mSMQPrivacyLevel"] == (value,)
    entry = served(f"CN=q,{MANAGER_NAME}", "mSMQQueue", {}, mSMQPrivacyLevel=value)
    assert read_queue(entry, manager_entry(), computer()).privacy is privacy
    strange = served(f"CN=q,{MANAGER_NAME}", "mSMQQueue", {}, mSMQPrivacyLevel=b"3")
    with pytest.raises(Malformed, match="none of 0, 1 and 2"):
        read_queue(strange, manager_entry(), computer())


def named(queue: str, rest: str = "") -> QueueProperties:
    """A queue as it is read whose entry has a name, and the rest of a long one beside it."""
    more = {"mSMQQueueNameExt": (rest.encode(),)} if rest else {}
    entry = served(child_name(queue, MANAGER_NAME), "mSMQQueue", more)
    return read_queue(entry, manager_entry(), computer(dNSHostName=b"qm1.mq.test"))


LONG_ENTRY = "b" * 55 + "-12345678"
"""A name of 64 characters stands for a longer one: 55 of it, and a hash."""


@pytest.mark.spec(
    "MQDSSM-3.1.6.11.2.1-01",
    "MQDSSM-3.1.6.11.2.1-02",
    "MQDSSM-3.1.6.11.2.1-06",
    "MQDSSM-3.1.6.11.2.1-07",
    "MQDSSM-3.1.6.11.2.1-09",
    "MQDSSM-3.1.6.11.2.1-12",
)
def test_a_path_name_is_computer_backslash_and_queue() -> None:
    assert named("Orders").path_name == "qm1\\orders"
    assert named(LONG_ENTRY, "and more").path_name == "qm1\\" + "b" * 55 + "and more"


@pytest.mark.spec(
    "MQDSSM-3.1.6.11.2-09",
    "MQDSSM-3.1.6.11.2.2-01",
    "MQDSSM-3.1.6.11.2.2-02",
    "MQDSSM-3.1.6.11.2.2-06",
    "MQDSSM-3.1.6.11.2.2-07",
    "MQDSSM-3.1.6.11.2.2-08",
    "MQDSSM-3.1.6.11.2.2-11",
)
def test_a_qualified_path_name_is_host_backslash_and_queue() -> None:
    assert named("Orders").qualified_path_name == "qm1.mq.test\\orders"


@pytest.mark.spec("MQDSSM-3.1.6.11.2.2-04", "MQDSSM-3.1.6.11.2.2-09")
def test_a_qualified_path_name_has_the_rest_of_a_long_name() -> None:
    found = named(LONG_ENTRY, "and more").qualified_path_name
    assert found == "qm1.mq.test\\" + "b" * 55 + "and more"


@pytest.mark.spec(
    "MQDSSM-3.1.6.7.6.2-01",
    "MQDSSM-3.1.6.11.6-01",
    "MQDSSM-3.1.6.11.6-02",
    "MQDSSM-3.1.6.11.6-04",
    "MQDSSM-3.1.6.7.6.4-01",
)
@given(users)
def test_a_user_survives_the_directory(user: UserInfo) -> None:
    attributes = user_attributes(user)
    assert attributes["mSMQDigests"] == user.certificate_digests
    assert read_user(served(USER_NAME, "user", attributes, objectSid=SID)) == user


# What is written.


def services_of(**services: Any) -> int:
    return service_type(QueueManagerInfo(identifier=SELF, computer_name="QM1", **services))


@pytest.mark.spec("MQDSSM-3.1.6.1.1.5-02", "MQDSSM-3.1.6.7.1.5-02")
def test_a_routing_server_is_the_first_bit() -> None:
    assert services_of(routing_server=True) == 0x01


@pytest.mark.spec("MQDSSM-3.1.6.1.1.5-03", "MQDSSM-3.1.6.7.1.5-03")
def test_a_remote_access_server_is_the_fifth_bit() -> None:
    assert services_of(remote_access_server=True) == 0x10


@pytest.mark.spec("MQDSSM-3.1.6.1.1.5-04", "MQDSSM-3.1.6.7.1.5-04")
@pytest.mark.parametrize(
    ("kind", "bits"),
    [
        (None, 0),
        (DirectoryServerKind.STANDALONE, 0),
        (DirectoryServerKind.BACKUP_SITE_CONTROLLER, 0x02),
        (DirectoryServerKind.PRIMARY_SITE_CONTROLLER, 0x04),
        (DirectoryServerKind.PRIMARY_ENTERPRISE_CONTROLLER, 0x08),
    ],
)
def test_a_directory_server_is_the_bit_of_its_kind(
    kind: DirectoryServerKind | None, bits: int
) -> None:
    assert services_of(directory_server=kind) == bits


@pytest.mark.spec(
    "MQDSSM-3.1.6.1.1.5-01",
    "MQDSSM-3.1.6.1.1.5-05",
    "MQDSSM-3.1.6.7.1.5-01",
    "MQDSSM-3.1.6.7.1.5-05",
)
@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize("kind", [None, *DirectoryServerKind])
def test_services_are_bits(routing: bool, remote: bool, kind: DirectoryServerKind | None) -> None:
    manager = QueueManagerInfo(
        identifier=SELF,
        computer_name="QM1",
        routing_server=routing,
        remote_access_server=remote,
        directory_server=kind,
    )
    bits = services_of(directory_server=kind) + routing + 0x10 * remote
    assert service_type(manager) == bits
    assert manager_attributes(manager)["mSMQServiceType"] == (str(bits).encode(),)


@pytest.mark.spec("MQDSSM-3.1.6.1.4.2-04")
def test_a_link_is_named_after_its_sites() -> None:
    first, second = "0a1b2c3d-0001-0002-0003-000000000001", "ffffffff-0001-0002-0003-00000000000f"
    link = RoutingLink(identifier=SELF, site1=Guid.parse(first), site2=Guid.parse(second), cost=1)
    assert link_name(link) == ("0A1B2C3D000100020003000000000001FFFFFFFF00010002000300000000000F")


@pytest.mark.spec(
    "MQDSSM-3.1.6.1.1.9-01",
    "MQDSSM-3.1.6.1.1.9-02",
    "MQDSSM-3.1.6.1.1.9-03",
    "MQDSSM-3.1.6.7.1.8-01",
    "MQDSSM-3.1.6.7.1.8-02",
    "MQDSSM-3.1.6.7.1.8-03",
    "MQDSSM-3.1.6.7.1.10-04",
    "MQMQ-2.3.10.7-01",
)
@given(certificates)
def test_digests_stand_in_the_order_of_the_certificates(found: tuple[bytes, ...]) -> None:
    manager = QueueManagerInfo(
        identifier=SELF,
        computer_name="QM1",
        signing_keys=tuple(PublicKey("", 0, blob) for blob in found),
    )
    attributes = signing_attributes(manager)
    assert attributes["mSMQDigests"] == tuple(map(digest, found))
    structures = attributes["mSMQSignCertificates"]
    registered = UserCertificates.decode(structures[0]).certificates if structures else ()
    assert tuple(known.digest for known in registered) == attributes["mSMQDigests"]


@given(certificates)
def test_a_certificate_stays_as_it_was_registered(found: tuple[bytes, ...]) -> None:
    known = tuple(UserCertificate(digest(c), MANAGER, c) for c in found[:2])
    user = UserInfo(identifier=SELF, security_identifier=SID, certificates=found[::-1])
    structures = user_attributes(user, known)["mSMQSignCertificates"]
    registered = UserCertificates.decode(structures[0]).certificates if structures else ()
    assert {each for each in registered if each.identifier == MANAGER} == set(known)
    assert tuple(each.certificate for each in registered) == found[::-1]


def test_digests_come_in_any_order_and_are_read_in_that_of_the_certificates() -> None:
    found = (b"one", b"two", b"three")
    digests = tuple(map(digest, found))
    attributes = dict(user_attributes(
        UserInfo(identifier=SELF, security_identifier=SID, certificates=found,
                 certificate_digests=digests)
    ))  # fmt: skip
    attributes["mSMQDigests"] = digests[::-1]
    user = read_user(served(USER_NAME, "user", attributes, objectSid=SID))
    assert user.certificate_digests == digests


@given(managers)
def test_settings_say_what_the_queue_manager_says(manager: QueueManagerInfo) -> None:
    own, settings = manager_attributes(manager), settings_attributes(manager)
    assert settings == {
        "mSMQQMID": (bytes(SELF),),
        "mSMQServices": own["mSMQServiceType"],
        "mSMQRoutingService": own["mSMQRoutingServices"],
        "mSMQDsService": own["mSMQDsServices"],
        "mSMQDependentClientService": own["mSMQDependentClientServices"],
    }


def test_a_quota_without_limit_is_minus_one() -> None:
    manager = QueueManagerInfo(identifier=SELF, computer_name="QM1", quota_kb=0xFFFFFFFF)
    assert manager_attributes(manager)["mSMQQuota"] == (b"-1",)


# What is missing.


@pytest.mark.spec("MQDSSM-3.1.6.11.1-03", "MQDSSM-3.1.6.11.1-10", "MQDSSM-3.1.6.11.1-11")
def test_a_bare_queue_manager_has_the_defaults() -> None:
    found = read_manager(manager_entry(), computer())
    assert found == QueueManagerInfo(
        identifier=MANAGER,
        computer_name="QM1",
        operating_system=OperatingSystem.OTHER,
        created_time_s=CREATED_S,
        modified_time_s=CREATED_S,
        security_descriptor=found.security_descriptor,
        directory_name=MANAGER_NAME,
    )


@pytest.mark.spec("MQDSSM-3.1.6.11.2-03", "MQDSSM-3.1.6.11.2-08")
def test_a_bare_queue_has_the_defaults() -> None:
    name = f"CN=orders,{MANAGER_NAME}"
    found = read_queue(served(name, "mSMQQueue", {}), manager_entry(), computer())
    assert found == QueueProperties(
        identifier=SELF,
        path_name="qm1\\orders",
        kind=QueueKind.PUBLIC,
        manager=MANAGER,
        created_time_s=CREATED_S,
        modified_time_s=CREATED_S,
        security_descriptor=found.security_descriptor,
        directory_name=name,
        directory_path=f"LDAP://{name}",
    )


@pytest.mark.spec("MQDSSM-3.1.6.11.2.1-11", "MQDSSM-3.1.6.11.2.2-10")
def test_path_names_are_in_lower_case() -> None:
    entry = served(f"CN=Orders,{MANAGER_NAME}", "mSMQQueue", {})
    found = read_queue(entry, manager_entry(), computer(dNSHostName=b"QM1.MQ.test"))
    assert (found.path_name, found.qualified_path_name) == ("qm1\\orders", "qm1.mq.test\\orders")


@pytest.mark.spec("MQDSSM-3.1.6.11.2.2-05")
def test_a_long_name_without_its_rest_is_what_is_left() -> None:
    entry = served(f"CN={'a' * 55}-01234567,{MANAGER_NAME}", "mSMQQueue", {})
    found = read_queue(entry, manager_entry(), computer(dNSHostName=b"h"))
    assert found.qualified_path_name == "h\\" + "a" * 55


@pytest.mark.spec("MQDSSM-3.1.6.11.3-03")
def test_a_bare_enterprise_has_the_defaults_of_windows() -> None:
    found = read_enterprise(served(SERVICES_NAME, "mSMQEnterpriseSettings", {}), FOREST)
    assert found == EnterpriseInfo(
        identifier=SELF,
        name=FOREST,
        reach_queue_default_s=345_600,
        notify_old_managers=True,
        old_directory=True,
        security_descriptor=OPEN,
    )


def test_a_site_without_anything_of_msmq_is_a_site() -> None:
    found = read_site(served(SITE_NAME, "site", {}))
    assert (found.replicate_within_site_s, found.replicate_between_sites_s) == (2, 10)
    assert not found.foreign
    assert not found.migrated


@pytest.mark.spec("MQDSSM-3.1.6.11.5-03")
def test_a_bare_link_has_no_gates_and_no_description() -> None:
    whole = RoutingLink(identifier=SELF, site1=SELF, site2=MANAGER, cost=3)
    found = read_link(served(LINK_NAME, "mSMQSiteLink", link_attributes(whole)))
    assert (found.site_gates, found.description) == ((), "")


@pytest.mark.spec("MQDSSM-3.1.6.11.6-03")
def test_a_user_without_certificates_has_none() -> None:
    found = read_user(served(USER_NAME, "user", {}, objectSid=SID))
    assert (found.certificates, found.certificate_digests) == ((), ())


def test_a_digest_of_another_size_is_malformed() -> None:
    entry = served(USER_NAME, "user", {}, objectSid=SID, mSMQDigests=b"short")
    with pytest.raises(Malformed, match="alice"):
        read_user(entry)


@pytest.mark.spec("MQDSSM-3.1.6.11.1.5-01", "MQDSSM-3.1.6.11.1.5-02", "MQDSSM-3.1.6.11.1.5-03")
@pytest.mark.parametrize(
    ("is_server", "service", "kind"),
    [
        (b"FALSE", b"8", None),
        (b"TRUE", b"0", DirectoryServerKind.STANDALONE),
        (b"TRUE", b"1", DirectoryServerKind.STANDALONE),
        (b"TRUE", b"2", DirectoryServerKind.BACKUP_SITE_CONTROLLER),
        (b"TRUE", b"5", DirectoryServerKind.PRIMARY_SITE_CONTROLLER),
        (b"TRUE", b"24", DirectoryServerKind.PRIMARY_ENTERPRISE_CONTROLLER),
    ],
)
def test_what_a_directory_server_is(
    is_server: bytes, service: bytes, kind: DirectoryServerKind | None
) -> None:
    entry = served(
        MANAGER_NAME, "mSMQConfiguration", {}, mSMQDsServices=is_server, mSMQServiceType=service
    )
    assert read_manager(entry, computer()).directory_server is kind


@pytest.mark.spec("MQDSSM-3.1.6.11.1.6-01", "MQDSSM-3.1.6.11.1.6-02")
@pytest.mark.parametrize(
    ("name", "clustered"), [(b"MSClusterVirtualServer/qm1", True), (b"HOST/qm1", False)]
)
def test_a_cluster_is_known_by_its_service(name: bytes, clustered: bool) -> None:
    found = read_manager(manager_entry(), computer(servicePrincipalName=name))
    assert found.clustered is clustered


def test_a_foreign_kind_of_operating_system_is_another_one() -> None:
    entry = served(MANAGER_NAME, "mSMQConfiguration", {}, mSMQOSType=b"4711")
    assert read_manager(entry, computer()).operating_system is OperatingSystem.OTHER


def test_keys_that_cannot_be_read_leave_the_queue_manager() -> None:
    entry = served(MANAGER_NAME, "mSMQConfiguration", {}, mSMQEncryptKey=b"\1\0\0\0rubbish")
    assert read_manager(entry, computer()).encryption_keys == ()


@pytest.mark.spec("MQDSSM-3.1.6.11.1-04", "MQDSSM-3.1.6.11.2-04")
@pytest.mark.parametrize("attribute", ["whenCreated", "whenChanged", "nTSecurityDescriptor"])
def test_a_queue_manager_and_a_queue_need_what_every_entry_has(attribute: str) -> None:
    with pytest.raises(Malformed, match=attribute):
        read_manager(without(manager_entry(), attribute), computer())
    with pytest.raises(Malformed, match=attribute):
        read_queue(
            without(served(f"CN=q,{MANAGER_NAME}", "mSMQQueue", {}), attribute),
            manager_entry(),
            computer(),
        )


@pytest.mark.spec("MQDSSM-3.1.6.11.5.1-02", "MQDSSM-3.1.6.11.5.2-02")
@pytest.mark.parametrize("attribute", ["mSMQSite1", "mSMQSite2", "mSMQCost"])
def test_a_link_needs_two_sites_and_a_cost(attribute: str) -> None:
    whole = RoutingLink(identifier=SELF, site1=SELF, site2=MANAGER, cost=3)
    entry = without(served(LINK_NAME, "mSMQSiteLink", link_attributes(whole)), attribute)
    with pytest.raises(Malformed, match=attribute):
        read_link(entry)


def test_a_cost_that_is_no_number_costs_only_its_link() -> None:
    whole = RoutingLink(identifier=SELF, site1=SELF, site2=MANAGER, cost=3)
    attributes = {**link_attributes(whole), "mSMQCost": (b"much",)}
    with pytest.raises(Malformed, match="mSMQCost"):
        read_link(served(LINK_NAME, "mSMQSiteLink", attributes))


def test_a_key_of_a_provider_that_msmq_does_not_know_cannot_be_published() -> None:
    key = PublicKey("", 77, b"a key")
    manager = QueueManagerInfo(identifier=SELF, computer_name="QM1", encryption_keys=(key,))
    with pytest.raises(Malformed, match="77"):
        manager_attributes(manager)


def test_a_queue_is_found_again_under_the_name_it_was_created_with() -> None:
    entry = served(f"CN=\u0130STANBUL,{MANAGER_NAME}", "mSMQQueue", {})
    found = read_queue(entry, manager_entry(), computer())
    assert fold(found.path_name) == fold("QM1\\\u0130stanbul")


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("mSMQPrivacyLevel", b"7"),
        ("mSMQQueueQuota", b"much"),
        ("mSMQLabelEx", b"x" * 125),
        ("mSMQLabelEx", b"\xff"),
        ("mSMQQueueType", b"short"),
        ("whenCreated", b"yesterday"),
        ("nTSecurityDescriptor", b"\1"),
    ],
)
def test_a_value_that_cannot_be_is_malformed(attribute: str, value: bytes) -> None:
    entry = served(f"CN=q,{MANAGER_NAME}", "mSMQQueue", {}, **{attribute: value})
    with pytest.raises(Malformed):
        read_queue(entry, manager_entry(), computer())


def test_references_without_identifiers_are_left_out() -> None:
    entry = served(MANAGER_NAME, "mSMQConfiguration", {}, mSMQOutRoutingServers=b"CN=x")
    assert read_manager(entry, computer()).out_routing_servers == ()


def test_an_unreadable_label_is_reported_with_its_entry() -> None:
    entry = served(f"CN=q,{MANAGER_NAME}", "mSMQQueue", {}, mSMQLabelEx=b"x" * 125)
    with pytest.raises(Malformed, match="CN=q"):
        read_queue(entry, manager_entry(), computer())


@pytest.mark.spec("MQDSSM-3.1.6.1.1.2-02", "MQDSSM-3.1.6.7.1.2-02")
def test_what_only_the_computer_knows_is_not_written() -> None:
    plain = QueueManagerInfo(identifier=SELF, computer_name="QM1")
    local = msgspec.structs.replace(plain, addresses=("10.0.0.1",), connected_networks=(SELF,))
    assert manager_attributes(local) == manager_attributes(plain)


@pytest.mark.spec(
    "MQDSSM-3.1.6.1.2.2-02",
    "MQDSSM-3.1.6.1.3.2-02",
    "MQDSSM-3.1.6.1.4.2-02",
    "MQDSSM-3.1.6.7.2.2-02",
    "MQDSSM-3.1.6.7.3.2-02",
    "MQDSSM-3.1.6.7.4.2-02",
    "MQDSSM-3.1.6.7.5.2-02",
    "MQDSSM-3.1.6.7.6.2-02",
)
def test_what_has_no_attribute_of_its_own_is_not_written() -> None:
    def alike(write: Any, value: Any, **changed: Any) -> bool:
        return bool(write(value) == write(msgspec.structs.replace(value, **changed)))

    queue = QueueProperties(identifier=SELF, path_name="a\\b", kind=QueueKind.PUBLIC, manager=SELF)
    link = RoutingLink(identifier=SELF, site1=SELF, site2=MANAGER, cost=1)
    site = Site(identifier=SELF, name="Here")
    user = UserInfo(identifier=SELF, security_identifier=SID)
    times = {"created_time_s": 7, "modified_time_s": 8}
    names = {"directory_name": "CN=x", "identifier": MANAGER}
    assert alike(queue_attributes, queue, directory_path="LDAP://CN=x", **names, **times)
    assert alike(site_attributes, site, primary_controller="x", name="There", **names)
    assert alike(link_attributes, link, **names)
    enterprise = EnterpriseInfo(identifier=SELF)
    assert alike(enterprise_attributes, enterprise, name="x", security_descriptor=OPEN)
    assert alike(user_attributes, user, identifier=MANAGER, security_identifier=SID[::-1])
