"""A queue manager enters itself: with the account of its computer, and as who it is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from openmsmq.model.errors import AccessDenied, MachineNotFound, MsmqError
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.topology import PublicKey, QueueManagerInfo
from openmsmq.runtime.active_directory.mapping.descriptors import Descriptor, decode, encode
from tests.directory.domain import COMPUTERS, Domain, queue_of

pytestmark = [pytest.mark.directory, pytest.mark.xdist_group("samba")]


def register(domain: Domain, manager: QueueManagerInfo, **changed: Any) -> QueueManagerInfo:
    return domain.ask(lambda directory: directory.register(manager), **changed)


def local(domain: Domain, computer: str, **properties: Any) -> QueueManagerInfo:
    return QueueManagerInfo(
        identifier=NIL_GUID,
        computer_name=computer,
        **{"sites": (domain.site_a.identifier,), **properties},
    )


@pytest.mark.spec("MQDSSM-3.1.6.1.1.2-03", "MQDSSM-3.1.6.1.1.8-02", "MQDSSM-3.1.6.1.1.8-03")
def test_a_computer_registers_its_own_queue_manager_and_creates_queues(domain: Domain) -> None:
    domain.add_computer("SELF1")
    itself = domain.as_user("SELF1$@mq.test")
    manager = local(domain, "SELF1", version="OpenMSMQ", addresses=("10.0.0.1",), hardened=True)
    registered = register(domain, manager, **itself)
    assert registered.identifier != NIL_GUID
    assert registered.directory_name == f"CN=msmq,CN=SELF1,{COMPUTERS}"
    assert (registered.addresses, registered.hardened) == (("10.0.0.1",), True)
    there = domain.look(registered.directory_name, "objectGUID")
    assert there == {"objectGUID": [bytes(registered.identifier)]}
    queue = domain.write(queue_of(registered, "orders", label="mine"), **itself)
    assert queue.manager == registered.identifier
    assert domain.write(msgspec.structs.replace(queue, label="still mine"), **itself).label == (
        "still mine"
    )


def test_a_computer_cannot_create_queues_of_another(domain: Domain) -> None:
    domain.add_computer("SELF2")
    other = domain.new_manager("SELF3")
    with pytest.raises(AccessDenied, match="no right"):
        domain.write(queue_of(other, "intruder"), **domain.as_user("SELF2$@mq.test"))


@pytest.mark.spec("MQDSSM-3.1.6.7.1.2-03", "MQDSSM-3.1.6.7.1.2-06")
def test_registering_again_changes_what_differs_and_keeps_the_identifier(domain: Domain) -> None:
    domain.add_computer("AGAIN")
    first = register(domain, local(domain, "AGAIN", version="1"))
    again = register(domain, msgspec.structs.replace(first, version="2"))
    assert again.identifier == first.identifier
    assert again.version == "2"
    assert register(domain, again) == again


@pytest.mark.spec("MQDSSM-3.1.6.1.1.2-04")
def test_a_new_installation_takes_over_what_is_there(domain: Domain) -> None:
    domain.add_computer("TAKEN")
    first = register(domain, local(domain, "TAKEN"))
    assert register(domain, local(domain, "TAKEN")).identifier == first.identifier


def test_another_identity_is_noticed_and_nothing_is_changed(domain: Domain) -> None:
    domain.add_computer("OTHERS")
    there = register(domain, local(domain, "OTHERS", version="theirs"))
    stranger = local(domain, "OTHERS", version="ours")
    stranger = msgspec.structs.replace(stranger, identifier=Guid(b"?" * 16))
    with pytest.raises(MsmqError, match=str(there.identifier)) as caught:
        register(domain, stranger)
    assert caught.value.name == "MQ_ERROR_GUID_NOT_MATCHING"
    found = domain.read_one(there)
    assert found is not None
    assert found.version == "theirs"


def test_a_queue_manager_that_had_another_identifier_learns_its_new_one(domain: Domain) -> None:
    domain.add_computer("JOINED")
    before = msgspec.structs.replace(local(domain, "JOINED"), identifier=Guid(b"W" * 16))
    assert register(domain, before).identifier not in (NIL_GUID, before.identifier)


@pytest.mark.spec("MQDSSM-3.1.6.1.1.3-13", "MQDSSM-3.1.6.7.1.9-07")
def test_a_server_needs_more_rights_than_its_computer_has(domain: Domain) -> None:
    domain.add_computer("ROUTES")
    manager = local(domain, "ROUTES", routing_server=True)
    itself = domain.as_user("ROUTES$@mq.test")
    with pytest.raises(AccessDenied, match="CN=ROUTES,CN=Servers"):
        register(domain, manager, **itself)
    # An administrator does the rest, once; from then on the computer may go on by itself.
    registered = register(domain, manager)
    assert register(domain, registered, **itself) == registered


def test_the_certificates_of_a_queue_manager_are_those_of_its_computer(domain: Domain) -> None:
    domain.add_computer("SIGNER")
    # Other tests of the domain have certificates of their own.
    key = PublicKey("", 0, b"the certificate of SIGNER")
    registered = register(domain, local(domain, "SIGNER", signing_keys=(key,)))
    assert registered.signing_keys == (key,)
    users = [
        found
        for found in domain.read().changes
        if getattr(found, "certificates", ()) == (key.blob,)
    ]
    account = domain.look(f"CN=SIGNER,{COMPUTERS}", "objectSid") or {}
    assert [user.security_identifier for user in users] == account["objectSid"]


def test_a_computer_without_an_account_is_told_so(domain: Domain) -> None:
    with pytest.raises(MachineNotFound, match="let it join the domain"):
        register(domain, local(domain, "NOBODY"))


def test_the_account_may_be_anywhere_in_the_domain(domain: Domain) -> None:
    assert domain.looker.add(f"OU=Plant,{COMPUTERS.partition(',')[2]}", "organizationalUnit")
    name = f"CN=DEEP,OU=Plant,{COMPUTERS.partition(',')[2]}"
    domain.add_account(name, "computer", sAMAccountName="DEEP$", userAccountControl="4096")
    registered = register(domain, local(domain, "deep.mq.test"))
    assert registered.directory_name == f"CN=msmq,{name}"
    assert registered.computer_name == "DEEP"


def test_rights_on_an_existing_queue_are_left_to_administrators(domain: Domain) -> None:
    # bonsai cannot tell a server that only the list of rights is meant, and not the audit list.
    domain.add_computer("GRANTS")
    itself = domain.as_user("GRANTS$@mq.test")
    manager = register(domain, local(domain, "GRANTS"), **itself)
    queue = domain.write(queue_of(manager, "q"), **itself)
    before = decode(queue.security_descriptor)
    fewer = encode(Descriptor(before.owner, before.group, (before.entries or ())[1:]))
    wanted = msgspec.structs.replace(queue, security_descriptor=fewer)
    with pytest.raises(AccessDenied, match="no right"):
        domain.write(wanted, **itself)
    assert decode(domain.write(wanted).security_descriptor) == decode(fewer)
