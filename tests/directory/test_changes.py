"""A copy keeps up with Active Directory: what is new, changed and gone, whoever did it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from openmsmq.directory.image import DirectoryImage
from openmsmq.model.access import SiteAccess
from openmsmq.model.directory import NOWHERE, DirectoryChanges, ObjectKind, Position, Removal
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.queue import QueueProperties
from openmsmq.model.topology import DistributionList, QueueManagerInfo, RoutingLink, Site
from openmsmq.runtime.active_directory.client import ActiveDirectory
from openmsmq.runtime.active_directory.mapping.descriptors import (
    EVERYBODY,
    SITE_RIGHTS,
    AccessEntry,
    Descriptor,
    decode,
    to_directory,
)
from openmsmq.runtime.active_directory.mapping.entries import reference
from tests.directory.domain import COMPUTERS, ORDINARY, USERS, Domain, of_kind, queue_of

pytestmark = [pytest.mark.directory, pytest.mark.xdist_group("samba")]


class Copy:
    """A copy of the directory, as queue managers keep one."""

    def __init__(self, directory: ActiveDirectory) -> None:
        self.directory = directory
        self.image = DirectoryImage()
        self.position = NOWHERE

    async def update(self) -> DirectoryChanges:
        answer = await self.directory.changes(self.position)
        base = DirectoryImage() if answer.is_complete else self.image
        self.image = base.changed(answer.changes)
        self.position = answer.position
        return answer


def follow(domain: Domain, story: Callable[[Copy], Awaitable[Any]]) -> None:
    """Tell a story with a copy, and see that it is then the same as a new one."""

    async def told(directory: ActiveDirectory) -> None:
        copy = Copy(directory)
        assert (await copy.update()).is_complete
        await story(copy)
        await copy.update()
        fresh = Copy(ActiveDirectory(domain.config))
        await fresh.update()
        await fresh.directory.close()
        assert copy.image == fresh.image

    domain.ask(told)


@pytest.mark.spec("MQDSSM-3.1.6.3-04")
def test_nothing_has_changed(domain: Domain) -> None:
    async def story(copy: Copy) -> None:
        assert await copy.update() == DirectoryChanges(copy.position)

    follow(domain, story)


def test_a_copy_at_the_last_change_needs_nothing_even_from_a_new_client(domain: Domain) -> None:
    position = domain.read().position
    answer = domain.ask(lambda directory: directory.changes(position))
    assert answer == DirectoryChanges(position)


def test_only_what_is_new_changed_or_gone_is_told(domain: Domain) -> None:
    manager = domain.new_manager("FOLLOWED")
    old, gone = (domain.new_queue(manager, name) for name in ("old", "gone"))

    async def story(copy: Copy) -> None:
        domain.replace(old.directory_name, mSMQLabelEx="changed")
        domain.delete(gone.directory_name)
        (new,) = await copy.directory.write([queue_of(manager, "new")])
        answer = await copy.update()
        assert not answer.is_complete
        assert {change.identifier for change in answer.changes} == {
            old.identifier,
            gone.identifier,
            new.identifier,
        }
        assert answer.changes[0] == Removal(ObjectKind.QUEUE, gone.identifier)
        assert copy.image.queues[old.identifier].label == "changed"
        assert copy.image.queues[new.identifier] == new

    follow(domain, story)


def test_changes_of_other_entries_say_nothing(domain: Domain) -> None:
    async def story(copy: Copy) -> None:
        domain.replace(f"CN=clerk,{USERS}", description="works here")
        answer = await copy.update()
        assert answer.changes == ()
        assert answer.position.number > 0

    follow(domain, story)


def test_who_waits_for_a_change_hears_of_it_whoever_has_made_it(domain: Domain) -> None:
    queue = domain.new_queue(domain.new_manager("WATCHED"), "q")

    async def story(watcher: ActiveDirectory) -> None:
        position = (await watcher.changes(NOWHERE)).position
        waiting = asyncio.create_task(watcher.moved(position))
        domain.replace(queue.directory_name, mSMQLabelEx="seen at once")
        assert await asyncio.wait_for(waiting, 10)
        # Meanwhile others may ask over the same connection, and it is true until they have.
        told = await watcher.changes(position)
        assert [change.identifier for change in told.changes] == [queue.identifier]
        assert await watcher.moved(position)
        elsewhere = msgspec.structs.replace(told.position, incarnation=NIL_GUID)
        assert await watcher.moved(elsewhere)
        await watcher.close()

    asyncio.run(story(ActiveDirectory(domain.config, look_s=0.05)))


def test_who_waits_for_a_change_does_not_hear_of_other_entries(domain: Domain) -> None:
    async def story(watcher: ActiveDirectory) -> None:
        position = (await watcher.changes(NOWHERE)).position
        waiting = asyncio.create_task(watcher.moved(position))
        domain.replace(f"CN=clerk,{USERS}", description="is not ours")
        assert not await asyncio.wait_for(waiting, 30)
        await watcher.close()

    asyncio.run(story(ActiveDirectory(domain.config, look_s=0.05)))


def test_the_name_of_a_computer_changes_its_queue_manager_and_its_queues(domain: Domain) -> None:
    manager = domain.new_manager("RENAMED")
    queue = domain.new_queue(manager, "q")

    async def story(copy: Copy) -> None:
        domain.replace(f"CN=RENAMED,{COMPUTERS}", dNSHostName="new.mq.test")
        answer = await copy.update()
        (renamed,) = of_kind(answer.changes, QueueManagerInfo)
        assert renamed.qualified_computer_name == "new.mq.test"
        (moved,) = of_kind(answer.changes, QueueProperties)
        assert moved.qualified_path_name == "new.mq.test\\q"
        assert copy.image.queue_at("new.mq.test", "q") is not None
        assert queue.identifier in copy.image.queues

    follow(domain, story)


def test_a_computer_may_be_moved_with_all_below_it(domain: Domain) -> None:
    manager = domain.new_manager("MOVED")
    queue = domain.new_queue(manager, "q")
    root = COMPUTERS.partition(",")[2]
    for name in (f"OU=Old,{root}", f"OU=Inner,OU=Old,{root}"):
        assert domain.looker.add(name, "organizationalUnit")

    async def story(copy: Copy) -> None:
        moves = (
            (f"CN=MOVED,{COMPUTERS}", "CN=MOVED", f"OU=Inner,OU=Old,{root}"),
            (f"OU=Old,{root}", "OU=New", root),
        )
        for name, new, above in moves:
            assert domain.looker.modify_dn(name, new, new_superior=above), domain.looker.result
            answer = await copy.update()
            assert {change.identifier for change in answer.changes} == {
                manager.identifier,
                queue.identifier,
            }
        found = copy.image.managers[manager.identifier]
        assert found.directory_name == f"CN=msmq,CN=MOVED,OU=Inner,OU=New,{root}"
        assert copy.image.queues[queue.identifier].directory_name.endswith(found.directory_name)

    follow(domain, story)


def test_a_member_that_is_deleted_leaves_its_lists(domain: Domain) -> None:
    manager = domain.new_manager("MEMBERS")
    stays, goes = (domain.new_queue(manager, name) for name in ("stays", "goes"))
    members = tuple(f"PUBLIC={queue.identifier}" for queue in (stays, goes))
    value = domain.write(DistributionList(identifier=NIL_GUID, name="team", members=members))

    async def story(copy: Copy) -> None:
        assert set(copy.image.lists[value.identifier].members) == set(members)
        domain.delete(goes.directory_name)
        await copy.update()
        assert copy.image.lists[value.identifier].members == members[:1]
        domain.delete(value.directory_name)
        await copy.update()
        assert value.identifier not in copy.image.lists

    follow(domain, story)


def test_a_group_becomes_a_list_and_is_one_no_more(domain: Domain) -> None:
    queue = domain.new_queue(domain.new_manager("BECOMES"), "q")
    name = f"CN=mixed,{USERS}"
    assert domain.looker.add(name, "group", {"sAMAccountName": "mixed", "groupType": "8"})
    identifier = Guid((domain.look(name, "objectGUID") or {})["objectGUID"][0])

    async def story(copy: Copy) -> None:
        assert identifier not in copy.image.lists
        domain.replace(name, member=[queue.directory_name])
        await copy.update()
        assert copy.image.lists[identifier].members == (f"PUBLIC={queue.identifier}",)
        domain.replace(name, member=[queue.directory_name, f"CN=clerk,{USERS}"])
        await copy.update()
        assert identifier not in copy.image.lists
        domain.replace(name, member=[reference(queue.identifier).decode()])
        await copy.update()
        assert identifier in copy.image.lists

    follow(domain, story)
    domain.delete(name)


def test_certificates_that_are_taken_away_take_the_user_away(domain: Domain) -> None:
    name = f"CN=bob,{USERS}"
    domain.add_account(name, "user")

    async def story(copy: Copy) -> None:
        before = len(copy.image.users)
        domain.replace(name, mSMQSignCertificates=b"\0\0\0\0")
        await copy.update()
        assert len(copy.image.users) == before + 1
        domain.replace(name, mSMQSignCertificates=[])
        await copy.update()
        assert len(copy.image.users) == before

    follow(domain, story)


def test_a_queue_manager_goes_with_its_computer(domain: Domain) -> None:
    manager = domain.new_manager("SCRAPPED")

    async def story(copy: Copy) -> None:
        assert copy.image.manager_named("scrapped") == manager
        domain.delete(manager.directory_name, f"CN=SCRAPPED,{COMPUTERS}")
        answer = await copy.update()
        assert answer.changes == (Removal(ObjectKind.MANAGER, manager.identifier),)

    follow(domain, story)


@pytest.mark.spec(
    "MQDSSM-3.1.6.11.1.3-03",
    "MQDSSM-3.1.6.11.1.4-03",
    "MQDSSM-3.1.6.11.5.1-02",
    "MQDSSM-3.1.6.11.5.2-02",
)
def test_nobody_refers_to_what_is_deleted(domain: Domain) -> None:
    goes, stays = domain.new_manager("GOES"), domain.new_manager("STAYS")
    both = (goes.identifier, stays.identifier)
    leaf = domain.new_manager("LEAF3", out_routing_servers=both, in_routing_servers=both)
    site = domain.write(Site(identifier=NIL_GUID, name="Goes"))
    here = domain.site_a.identifier
    first, second, third = (
        domain.write(
            RoutingLink(identifier=NIL_GUID, site1=site1, site2=site2, cost=1, site_gates=both)
        )
        for site1, site2 in (
            (here, domain.site_b.identifier),
            (site.identifier, here),
            (here, site.identifier),
        )
    )

    async def story(copy: Copy) -> None:
        assert {first.identifier, second.identifier, third.identifier} <= set(copy.image.links)
        domain.delete(goes.directory_name)
        await copy.directory.write([Removal(ObjectKind.SITE, site.identifier)])
        await copy.update()
        assert copy.image.links[first.identifier].site_gates == both[1:]
        assert not {second.identifier, third.identifier} & set(copy.image.links)
        found = copy.image.managers[leaf.identifier]
        assert found.out_routing_servers == found.in_routing_servers == both[1:]

    follow(domain, story)
    domain.delete(first.directory_name, second.directory_name, third.directory_name)


def test_what_a_user_may_see_from_now_on_is_told(domain: Domain) -> None:
    link = domain.write(
        RoutingLink(
            identifier=NIL_GUID,
            site1=domain.site_a.identifier,
            site2=domain.site_b.identifier,
            cost=1,
        )
    )
    queue = domain.new_queue(domain.new_manager("VISIBLE"), "q")
    name = f"CN=blind,{USERS}"
    members = {"sAMAccountName": "blind", "member": f"CN=clerk,{USERS}"}
    assert domain.looker.add(name, "group", members)
    blind = (domain.look(name, "objectSid") or {})["objectSid"][0]
    for there in (link, queue):
        hide(domain, there.directory_name, blind)

    async def story(directory: ActiveDirectory) -> None:
        copy = Copy(directory)
        await copy.update()
        assert link.identifier not in copy.image.links
        assert queue.identifier not in copy.image.queues
        domain.replace(name, member=[])
        # Servers find out who a user is when a connection is made.
        await directory.close()
        answer = await copy.update()
        assert not answer.is_complete
        assert copy.image.links[link.identifier].cost == 1
        assert queue.identifier in copy.image.queues

    domain.ask(story, **domain.as_user(ORDINARY))
    domain.delete(name, link.directory_name)


def hide(domain: Domain, name: str, user: bytes) -> None:
    """Take the right to see an entry from somebody; everybody else may see it."""
    old = decode((domain.look(name, "nTSecurityDescriptor") or {})["nTSecurityDescriptor"][0])
    entries = (
        AccessEntry(user, SiteAccess.GENERIC_READ, is_denied=True),
        AccessEntry(EVERYBODY, SiteAccess.GENERIC_READ),
    )
    security = to_directory(Descriptor(old.owner, old.group, entries), SITE_RIGHTS)
    domain.replace(name, nTSecurityDescriptor=security)


@pytest.mark.parametrize(
    "change",
    [
        {"incarnation": Guid(b"!" * 16)},
        {"number": 1},
        {"number": 1 << 60},
    ],
)
def test_a_copy_from_elsewhere_is_told_everything(domain: Domain, change: dict[str, Any]) -> None:
    async def asked(directory: ActiveDirectory) -> DirectoryChanges:
        here = (await directory.changes(NOWHERE)).position
        return await directory.changes(msgspec.structs.replace(here, **change))

    answer = domain.ask(asked)
    assert answer.is_complete
    assert isinstance(answer.position, Position)
    assert len(answer.changes) == len(domain.read().changes)


def test_an_entry_that_cannot_be_read_is_reported_and_costs_only_itself(domain: Domain) -> None:
    queue = domain.new_queue(domain.new_manager("ODD"), "q")
    name = f"CN=odd,{USERS}"
    domain.add_account(name, "user", mSMQSignCertificates=b"rubbish")

    async def asked(directory: ActiveDirectory) -> tuple[DirectoryChanges, tuple[str, ...]]:
        return await directory.changes(NOWHERE), directory.problems

    answer, problems = domain.ask(asked)
    assert queue in answer.changes
    assert [problem for problem in problems if "CN=odd" in problem]
    domain.delete(name)


@pytest.mark.spec("MQDSSM-3.1.6.15-17")
@pytest.mark.parametrize("page_count", [1, 3])
def test_answers_come_in_pages(domain: Domain, page_count: int) -> None:
    manager = domain.new_manager(f"PAGES{page_count}")
    domain.write(*(queue_of(manager, f"q{number}") for number in range(10)))
    assert set(map(str, domain.read(page_count=page_count).changes)) == set(
        map(str, domain.read().changes)
    )


def test_only_what_is_below_the_base_is_read(domain: Domain) -> None:
    manager = domain.new_manager("BELOW")
    answer = domain.read(base=f"CN=BELOW,{COMPUTERS}")
    assert of_kind(answer.changes, QueueManagerInfo) == [manager]
