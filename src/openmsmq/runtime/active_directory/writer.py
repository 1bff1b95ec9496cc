"""Creates, changes and deletes objects, one after the other. [MQDSSM 3.1.6.1, 3.1.6.2, 3.1.6.7]

Active Directory chooses the identifiers of new objects. Objects that come later in the same write
name earlier ones by the identifiers that their writer gave them, so these are replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, cast

import msgspec

from openmsmq.directory.naming import REFERENCES
from openmsmq.model.directory import Change, DirectoryObject, ObjectKind, Removal, kind_of
from openmsmq.model.errors import DirectoryFailed, IllegalPropertyValue, MachineNotFound
from openmsmq.model.identity import NIL_GUID, Guid
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
from openmsmq.runtime.active_directory.failures import not_found
from openmsmq.runtime.active_directory.mapping import lists, managers, queues, topology, users
from openmsmq.runtime.active_directory.mapping.descriptors import decode, new_manager, new_queue
from openmsmq.runtime.active_directory.mapping.entries import (
    Attributes,
    Entry,
    Malformed,
    child_name,
    differences,
    filter_bytes,
    filter_text,
    parent_name,
    text_value,
)
from openmsmq.runtime.active_directory.mapping.image import Entries, read_all
from openmsmq.runtime.active_directory.mapping.names import entry_name
from openmsmq.runtime.active_directory.session import Session
from openmsmq.runtime.active_directory.settings import ServerSettings

_Object = TypeVar("_Object", bound=DirectoryObject)
_CLASSES = {
    ObjectKind.ENTERPRISE: (topology.ENTERPRISE_CLASS,),
    ObjectKind.SITE: (topology.SITE_CLASS,),
    ObjectKind.LINK: (topology.LINK_CLASS,),
    ObjectKind.MANAGER: (managers.MANAGER_CLASS,),
    ObjectKind.QUEUE: (queues.QUEUE_CLASS,),
    ObjectKind.USER: (users.USER_CLASS,),
    ObjectKind.LIST: (lists.GROUP_CLASS, lists.ALIAS_CLASS),
    ObjectKind.NETWORK: (),
}
_NOT_OURS = {
    ObjectKind.ENTERPRISE: "the enterprise is part of the forest",
    ObjectKind.NETWORK: "Active Directory knows no connected networks",
    ObjectKind.USER: (
        "accounts are deleted with the tools of Active Directory; to take a user's certificates "
        "away, write the user without them"
    ),
}


class Writer:
    """Writes through one session."""

    def __init__(self, session: Session, lists_container: str = "") -> None:
        self._session = session
        self._lists_container = lists_container or f"CN=Users,{session.domain}"
        self._settings = ServerSettings(session)
        self._renamed: dict[Guid, Guid] = {}

    async def write(self, changes: Sequence[Change]) -> tuple[Change, ...]:
        """Make changes in order; give them as the directory has them now."""
        done: list[Change] = []
        for change in changes:
            try:
                if isinstance(change, Removal):
                    await self._remove(change)
                    done.append(change)
                else:
                    done.append(await self._put(change))
            except Malformed as problem:
                raise IllegalPropertyValue(str(problem)) from None
        return tuple(done)

    async def _put(self, value: DirectoryObject) -> DirectoryObject:
        given = value.identifier
        value = self._with_new_identifiers(value)
        if isinstance(value, RoutingLink):
            await self._check_sites(value)
        entry = await self._existing(value)
        if entry is None:
            name = await self._create(value)
        else:
            name = entry.name
            await self._change(entry, value, await self._read(entry))
        written = await self._session.get(name)
        if written is None:
            raise not_found(f"read {name} after writing it", kind_of(value))
        if given not in (NIL_GUID, written.identifier):
            self._renamed[given] = written.identifier
        if isinstance(value, QueueManagerInfo):
            published = msgspec.structs.replace(value, identifier=written.identifier)
            await self._settings.write(published, parent_name(written.name))
        return await self._read(written)

    def _with_new_identifiers(self, value: _Object) -> _Object:
        found: dict[str, Any] = {"identifier": self._now(value.identifier)}
        for name in REFERENCES:
            referenced = getattr(value, name, None)
            if isinstance(referenced, tuple):
                found[name] = tuple(map(self._now, referenced))
            elif referenced is not None:
                found[name] = self._now(referenced)
        return msgspec.structs.replace(value, **found)

    def _now(self, identifier: Guid) -> Guid:
        return self._renamed.get(identifier, identifier)

    async def _existing(self, value: DirectoryObject) -> Entry | None:
        if isinstance(value, EnterpriseInfo):
            # There is one enterprise in a forest, whatever the writer calls it.
            return await self._session.get(self._enterprise_name())
        if isinstance(value, UserInfo) and value.identifier == NIL_GUID:
            return await self._account(value.security_identifier)
        entry = await self._session.find(value.identifier)
        if entry is not None and not any(map(entry.is_a, _CLASSES[kind_of(value)])):
            raise DirectoryFailed(f"{value.identifier} is {entry.name}, no {kind_of(value).value}")
        return entry

    async def _account(self, security_identifier: bytes) -> Entry | None:
        """Find a user by the security identifier. [MQDSSM 3.1.6.7.6.2]"""
        if not security_identifier:
            return None
        found = await self._session.search(
            self._session.base,
            f"(&(objectClass=user)(objectSid={filter_bytes(security_identifier)}))",
        )
        return found[0] if found else None

    def _enterprise_name(self) -> str:
        return f"CN=MsmqServices,CN=Services,{self._session.configuration}"

    async def _read(self, entry: Entry) -> DirectoryObject:
        """Make the object of one entry, with the entries that it needs beside it."""
        if entry.is_a(users.USER_CLASS):
            return users.read_user(entry)
        if entry.is_a(lists.GROUP_CLASS):
            members = await self._session.find_many(entry.references("member"))
            known = [found.identifier for found in members if found.is_a(queues.QUEUE_CLASS)]
            return lists.read_group(entry, known)
        beside = [entry]
        if entry.is_a(queues.QUEUE_CLASS) or entry.is_a(managers.MANAGER_CLASS):
            name = entry.name
            for _ in range(2 if entry.is_a(queues.QUEUE_CLASS) else 1):
                name = parent_name(name)
                above = await self._session.get(name)
                if above is not None:
                    beside.append(above)
        reading = read_all(Entries(beside), self._session.forest)
        for (_, identifier), found in reading.objects.items():
            if identifier == entry.identifier:
                return found
        raise DirectoryFailed(next(iter(reading.problems), f"{entry.name} is no object of MSMQ"))

    # Creating.

    async def _create(self, value: DirectoryObject) -> str:
        kind = kind_of(value)
        name, class_name, attributes = await self._new(value)
        await self._session.add(name, class_name, attributes, kind)
        if isinstance(value, Site):
            await self._session.add(child_name("Servers", name), "serversContainer", {})
        elif isinstance(value, QueueManagerInfo) and value.signing_keys:
            await self._session.modify(parent_name(name), managers.signing_attributes(value))
        return name

    async def _new(self, value: DirectoryObject) -> tuple[str, str, Attributes]:
        """Return name, class and attributes of a new entry."""
        match value:
            case EnterpriseInfo():
                name = self._enterprise_name()
                return name, topology.ENTERPRISE_CLASS, topology.enterprise_attributes(value)
            case Site():
                if not value.name:
                    raise IllegalPropertyValue("a site needs a name")
                # MQDSSM 3.1.6.1.3.2 puts sites below Services; servers allow them in Sites only.
                name = child_name(value.name, f"CN=Sites,{self._session.configuration}")
                return name, topology.SITE_CLASS, topology.site_attributes(value)
            case RoutingLink():
                name = child_name(topology.link_name(value), self._enterprise_name())
                return name, topology.LINK_CLASS, await self._link(value)
            case QueueManagerInfo():
                return await self._new_manager(value)
            case QueueProperties():
                return await self._new_queue(value)
            case DistributionList():
                return self._new_list(value)
            case UserInfo():
                raise not_found(
                    f"register certificates of {value.identifier}: Active Directory has no such "
                    "account; create it with the tools of Active Directory"
                )
            case ConnectedNetwork():
                raise DirectoryFailed(_NOT_OURS[ObjectKind.NETWORK])

    async def _check_sites(self, link: RoutingLink) -> None:
        for site in (link.site1, link.site2):
            entry = await self._session.find(site)
            if entry is None or not entry.is_a(topology.SITE_CLASS):
                raise DirectoryFailed(f"the link leads to {site}, which is no site of the forest")

    async def _known_managers(self, identifiers: Sequence[Guid]) -> tuple[Guid, ...]:
        """Leave out what is no queue manager. [MQDSSM 3.1.6.1.1.6, 3.1.6.1.4.6]"""
        found = {
            entry.identifier
            for entry in await self._session.find_many(identifiers)
            if entry.is_a(managers.MANAGER_CLASS)
        }
        return tuple(identifier for identifier in identifiers if identifier in found)

    async def _link(self, link: RoutingLink) -> Attributes:
        gates = await self._known_managers(link.site_gates)
        return topology.link_attributes(msgspec.structs.replace(link, site_gates=gates))

    async def _manager(self, manager: QueueManagerInfo) -> Attributes:
        return managers.manager_attributes(
            msgspec.structs.replace(
                manager,
                out_routing_servers=await self._known_managers(manager.out_routing_servers),
                in_routing_servers=await self._known_managers(manager.in_routing_servers),
            )
        )

    async def computer_of(self, computer_name: str) -> Entry:
        """Find the account of a computer, wherever in the domain it is."""
        name = filter_text(computer_name.partition(".")[0])
        found = await self._session.search(
            self._session.base,
            f"(&(objectClass=computer)(|(sAMAccountName={name}$)(cn={name})))",
        )
        if not found:
            raise MachineNotFound(
                f"there is no account of the computer {computer_name} below "
                f"{self._session.base}: let it join the domain, or create the account"
            )
        return found[0]

    async def _new_manager(self, manager: QueueManagerInfo) -> tuple[str, str, Attributes]:
        if not manager.sites:
            raise IllegalPropertyValue(
                f"the queue manager of {manager.computer_name} has no site: name at least one"
            )
        computer = await self.computer_of(manager.computer_name)
        owner = decode(manager.security_descriptor).owner if manager.security_descriptor else b""
        account = computer.value("objectSid") or b""
        security = new_manager(account, owner, foreign=manager.foreign)
        attributes = {**await self._manager(manager), "nTSecurityDescriptor": (security,)}
        name = child_name(managers.MANAGER_ENTRY, computer.name)
        return name, managers.MANAGER_CLASS, attributes

    async def _new_queue(self, queue: QueueProperties) -> tuple[str, str, Attributes]:
        if queue.kind is not QueueKind.PUBLIC:
            raise IllegalPropertyValue(f"{queue.path_name} is not public, so it has no entry")
        computer, _, name = queue.path_name.rpartition("\\")
        if not (computer and name):
            raise IllegalPropertyValue(
                f"{queue.path_name!r} is no path name of a queue: write COMPUTER\\queue"
            )
        above = await self._session.find(queue.manager)
        if above is None:
            above = await self._session.get(
                child_name(managers.MANAGER_ENTRY, (await self.computer_of(computer)).name)
            )
        if above is None or not above.is_a(managers.MANAGER_CLASS):
            raise MachineNotFound(
                f"create {queue.path_name}: its computer has no queue manager in the directory"
            )
        entry, rest = entry_name(name)
        account = await self._session.get(parent_name(above.name))
        computer_sid = (account.value("objectSid") if account else None) or b""
        attributes = {
            **queues.queue_attributes(queue),
            "mSMQQueueNameExt": text_value(rest),
            "nTSecurityDescriptor": (new_queue(computer_sid, queue.security_descriptor),),
        }
        return child_name(entry, above.name), queues.QUEUE_CLASS, attributes

    def _new_list(self, value: DistributionList) -> tuple[str, str, Attributes]:
        name = child_name(value.name, self._lists_container)
        if lists.is_alias(value):
            return name, lists.ALIAS_CLASS, lists.alias_attributes(value)
        if not value.members:
            raise IllegalPropertyValue(f"the list {value.name} needs at least one member")
        attributes = {
            **lists.group_attributes(value),
            "sAMAccountName": text_value(value.name),
            "groupType": (str(lists.UNIVERSAL_DISTRIBUTION_GROUP).encode("ascii"),),
        }
        return name, lists.GROUP_CLASS, attributes

    # Changing.

    async def _change(self, entry: Entry, value: DirectoryObject, old: DirectoryObject) -> None:
        """Write what differs from what is there, and nothing else."""
        name = entry.name
        now = await self._attributes(old, old, entry)
        changed = differences(now, await self._attributes(value, old, entry))
        if isinstance(value, QueueProperties):
            refused = [attribute for attribute in queues.AT_CREATION_ONLY if attribute in changed]
            if refused:
                raise IllegalPropertyValue(
                    f"{value.path_name}: whether a queue is transactional never changes"
                )
        if not changed.get("nTSecurityDescriptor", (b"",)):
            # Nothing is said of the rights, so they stay.
            del changed["nTSecurityDescriptor"]
        await self._session.modify(name, changed, kind_of(value))
        if isinstance(value, QueueManagerInfo) and isinstance(old, QueueManagerInfo):
            certificates = differences(
                managers.signing_attributes(old), managers.signing_attributes(value)
            )
            if certificates:
                # One is never written without the other. [MQDSSM 3.1.6.7.6.4]
                computer = await self._session.get(parent_name(name))
                known = managers.read_certificates(computer) if computer else ()
                certificates = dict(managers.signing_attributes(value, known))
            await self._session.modify(parent_name(name), certificates)

    async def _attributes(
        self, value: DirectoryObject, old: DirectoryObject, entry: Entry
    ) -> Attributes:
        match value:
            case EnterpriseInfo():
                return topology.enterprise_attributes(value)
            case Site():
                return topology.site_attributes(value)
            case RoutingLink():
                return await self._link(value)
            case QueueManagerInfo():
                return await self._manager(value)
            case QueueProperties():
                return queues.queue_attributes(value)
            case UserInfo():
                return users.user_attributes(value, managers.read_certificates(entry))
            case DistributionList():
                is_alias = lists.is_alias(cast("DistributionList", old))
                return lists.alias_attributes(value) if is_alias else lists.group_attributes(value)
            case ConnectedNetwork():
                raise DirectoryFailed(_NOT_OURS[ObjectKind.NETWORK])

    # Deleting.

    async def _remove(self, removal: Removal) -> None:
        reason = _NOT_OURS.get(removal.kind)
        if reason is not None:
            raise DirectoryFailed(f"cannot delete {removal.identifier}: {reason}")
        identifier = self._now(removal.identifier)
        entry = await self._session.find(identifier)
        if entry is None or not any(map(entry.is_a, _CLASSES[removal.kind])):
            raise not_found(f"delete {removal.kind.value} {removal.identifier}", removal.kind)
        if entry.is_a(lists.GROUP_CLASS) and entry.number("groupType") < 0:
            raise DirectoryFailed(
                f"{entry.name} grants rights: delete it with the tools of Active Directory"
            )
        if removal.kind is ObjectKind.SITE:
            await self._delete_empty_container(child_name("Servers", entry.name))
        await self._session.delete(entry.name, removal.kind)
        if removal.kind is ObjectKind.MANAGER:
            await self._settings.delete(identifier)

    async def _delete_empty_container(self, name: str) -> None:
        """Delete what was created with a site, unless servers are in it."""
        if await self._session.get(name) is not None:
            await self._session.delete(name, ObjectKind.SITE)
