"""What a server refuses is an error that names it, whatever was tried, and nothing more is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
import pytest

from openmsmq.model.access import ManagerAccess
from openmsmq.model.directory import DirectoryObject, ObjectKind, Removal, kind_of
from openmsmq.model.errors import AccessDenied, DirectoryFailed
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.queue import QueueProperties
from openmsmq.model.topology import (
    PublicKey,
    QueueManagerInfo,
    RoutingLink,
    Site,
    UserInfo,
)
from openmsmq.runtime.active_directory.mapping.descriptors import (
    EVERYBODY,
    MANAGER_RIGHTS,
    AccessEntry,
    Descriptor,
    decode,
    encode,
    to_directory,
)
from tests.directory.domain import COMPUTERS, ORDINARY, USERS, Domain, queue_of
from tests.directory.samba import ROOT

pytestmark = [pytest.mark.directory, pytest.mark.xdist_group("samba")]


class Kept(NamedTuple):
    """Objects that an ordinary user may see and not touch."""

    manager: QueueManagerInfo
    queue: QueueProperties
    site: Site
    link: RoutingLink
    user: UserInfo


CERTIFICATE = PublicKey("", 0, b"a certificate")


def replaced(value: Any, **changed: Any) -> Any:
    return msgspec.structs.replace(value, **changed)


@pytest.fixture(scope="module")
def kept(domain: Domain) -> Iterator[Kept]:
    manager = domain.new_manager("KEPT")
    name = f"CN=kept,{USERS}"
    domain.add_account(name, "user")
    there = domain.look(name, "objectGUID", "objectSid") or {}
    kept = Kept(
        manager,
        domain.new_queue(manager, "q"),
        domain.write(Site(identifier=NIL_GUID, name="Kept")),
        domain.write(
            RoutingLink(
                identifier=NIL_GUID,
                site1=domain.site_a.identifier,
                site2=domain.site_b.identifier,
                cost=1,
            )
        ),
        UserInfo(
            identifier=Guid(there["objectGUID"][0]), security_identifier=there["objectSid"][0]
        ),
    )
    yield kept
    domain.write(
        Removal(ObjectKind.LINK, kept.link.identifier),
        Removal(ObjectKind.SITE, kept.site.identifier),
    )


def refuse(domain: Domain, *changes: Any) -> None:
    with pytest.raises(AccessDenied, match="no right"):
        domain.write(*changes, **domain.as_user(ORDINARY))


@pytest.mark.spec(
    "MQDSSM-3.1.6.1.1.2-06",
    "MQDSSM-3.1.6.1.2.2-05",
    "MQDSSM-3.1.6.1.3.2-04",
    "MQDSSM-3.1.6.1.4.2-05",
    "MQDSSM-3.1.6.12-02",
    "MQDSSM-3.1.6.12-12",
)
@pytest.mark.parametrize("kind", ["manager", "queue", "site", "link"])
def test_nothing_is_created(domain: Domain, kept: Kept, kind: str) -> None:
    here = domain.site_a.identifier
    if kind == "manager":
        domain.add_computer("UNKEPT")
    wanted = {
        "manager": QueueManagerInfo(identifier=NIL_GUID, computer_name="UNKEPT", sites=(here,)),
        "queue": queue_of(kept.manager, "other"),
        "site": Site(identifier=NIL_GUID, name="Other"),
        "link": RoutingLink(
            identifier=NIL_GUID, site1=domain.site_b.identifier, site2=here, cost=1
        ),
    }[kind]
    before = len(domain.read().changes)
    refuse(domain, wanted)
    assert len(domain.read().changes) == before


CHANGES: dict[str, Callable[[Domain, Kept], Any]] = {
    "7.1.2-07": lambda _, kept: replaced(kept.manager, version="x"),
    "7.1.3-04": lambda _, kept: replaced(kept.manager, signing_keys=(CERTIFICATE,)),
    "7.2.2-08": lambda _, kept: replaced(kept.queue, label="x"),
    "7.3.2-04": lambda domain, _: replaced(domain.enterprise, reach_queue_default_s=77),
    "7.4.2-07": lambda _, kept: replaced(kept.site, foreign=True),
    "7.5.2-06": lambda _, kept: replaced(kept.link, cost=7),
    "7.6.2-07": lambda _, kept: replaced(kept.user, certificates=(b"a certificate",)),
}
"""What nobody but an administrator may change, and the statement about that."""


@pytest.mark.parametrize(
    "number",
    [pytest.param(number, marks=pytest.mark.spec(f"MQDSSM-3.1.6.{number}")) for number in CHANGES],
)
def test_nothing_of_its_kind_is_changed(domain: Domain, kept: Kept, number: str) -> None:
    refuse(domain, CHANGES[number](domain, kept))


@pytest.mark.spec("MQDSSM-3.1.6.16-09", "MQDSSM-3.1.6.16-10", "MQDSSM-3.1.6.16-11")
def test_nothing_is_changed(domain: Domain, kept: Kept) -> None:
    for change in CHANGES.values():
        refuse(domain, change(domain, kept))
    for there in kept[:-1]:
        assert domain.read_one(there) == there
    assert domain.read_one(kept.user) is None


@pytest.mark.spec(
    "MQDSSM-3.1.6.7.1.3-02",
    "MQDSSM-3.1.6.7.2.3-02",
    "MQDSSM-3.1.6.7.4.3-02",
    "MQDSSM-3.1.6.17-12",
    "MQDSSM-3.1.6.17-13",
    "MQDSSM-3.1.6.17-14",
)
def test_no_rights_are_changed(domain: Domain, kept: Kept) -> None:
    everything = encode(Descriptor(entries=(AccessEntry(EVERYBODY, 0x000F00FF),)))
    for there in (kept.manager, kept.queue, kept.site):
        refuse(domain, replaced(there, security_descriptor=everything))
        assert domain.read_one(there) == there


@pytest.mark.spec(
    "MQDSSM-3.1.6.2.1.2-04",
    "MQDSSM-3.1.6.2.2.2-04",
    "MQDSSM-3.1.6.2.3.2-04",
    "MQDSSM-3.1.6.2.4.2-02",
    "MQDSSM-3.1.6.13-12",
    "MQDSSM-3.1.6.13-13",
    "MQDSSM-3.1.6.13-14",
)
def test_nothing_is_deleted(domain: Domain, kept: Kept) -> None:
    empty = domain.new_manager("EMPTY")
    there: DirectoryObject
    for there in (empty, kept.queue, kept.site, kept.link):
        refuse(domain, Removal(kind_of(there), there.identifier))
        assert domain.read_one(there) == there


@pytest.mark.spec("MQDSSM-3.1.6.1.1.3-04")
def test_certificates_that_are_refused_are_an_error_of_the_new_queue_manager(
    domain: Domain,
) -> None:
    name = domain.add_computer("LENT")
    clerk = (domain.look(f"CN=clerk,{USERS}", "objectSid") or {})["objectSid"][0]
    old = decode((domain.look(name, "nTSecurityDescriptor") or {})["nTSecurityDescriptor"][0])
    # The clerk may create something below the computer, and not change the computer.
    entries = (
        AccessEntry(EVERYBODY, ManagerAccess.WORLD_RIGHTS),
        AccessEntry(clerk, ManagerAccess.GENERIC_WRITE),
    )
    security = to_directory(Descriptor(old.owner, old.group, entries), MANAGER_RIGHTS)
    domain.replace(name, nTSecurityDescriptor=security)
    wanted = QueueManagerInfo(
        identifier=NIL_GUID,
        computer_name="LENT",
        sites=(domain.site_a.identifier,),
        signing_keys=(PublicKey("", 0, b"a certificate"),),
    )
    with pytest.raises(AccessDenied, match=f"change CN=LENT,{COMPUTERS}"):
        domain.write(wanted, **domain.as_user(ORDINARY))


@pytest.mark.spec(
    "MQDSSM-3.1.6.1.1.3-11",
    "MQDSSM-3.1.6.2.1.3-05",
    "MQDSSM-3.1.6.7.1.9-13",
    "MQDSSM-3.1.6.7.1.9-19",
)
def test_settings_in_a_site_are_for_administrators(domain: Domain) -> None:
    manager = domain.new_manager("SETTLED", routing_server=True)
    itself = domain.as_user("SETTLED$@mq.test")
    with pytest.raises(AccessDenied, match="change CN=MSMQ Settings,CN=SETTLED"):
        domain.write(replaced(manager, remote_access_server=True), **itself)
    with pytest.raises(AccessDenied, match="delete CN=MSMQ Settings,CN=SETTLED"):
        domain.write(replaced(manager, routing_server=False), **itself)
    with pytest.raises(AccessDenied, match="delete CN=MSMQ Settings,CN=SETTLED"):
        domain.write(Removal(ObjectKind.MANAGER, manager.identifier), **itself)
    # Its settings are still there, and in the way of the next installation.
    with pytest.raises(AccessDenied, match="delete CN=MSMQ Settings,CN=SETTLED"):
        domain.write(replaced(manager, identifier=NIL_GUID), **itself)


@pytest.mark.spec(*(f"MQDSSM-3.1.6.15-{number:02}" for number in (3, *range(11, 17))))
def test_a_base_that_is_not_there_is_named(domain: Domain) -> None:
    nowhere = f"OU=Nowhere,{ROOT}"
    with pytest.raises(DirectoryFailed, match=nowhere):
        domain.read(base=nowhere)
