"""All objects of a directory at one moment, and the questions that queue managers ask of them.

An image is a value: `changed` makes a new one. Names are found without regard to case, computers
by their short and by their qualified name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final, TypeVar, cast

from openmsmq.model.directory import (
    Change,
    DirectoryObject,
    ObjectKind,
    Removal,
    kind_of,
)
from openmsmq.model.identity import Guid
from openmsmq.model.names.parts import fold
from openmsmq.model.queue import QueueProperties
from openmsmq.model.topology import (
    DistributionList,
    EnterpriseInfo,
    QueueManagerInfo,
    RoutingLink,
    Site,
    UserInfo,
)

_Objects = dict[Guid, DirectoryObject]
_Name = TypeVar("_Name")
_ROUTING: Final = (ObjectKind.SITE, ObjectKind.LINK, ObjectKind.MANAGER)


class DirectoryImage:
    """What a directory holds."""

    def __init__(self, objects: Iterable[DirectoryObject] = ()) -> None:
        self._objects: dict[ObjectKind, _Objects] = {kind: {} for kind in ObjectKind}
        self._take(objects, own=set(ObjectKind))

    def changed(self, changes: Iterable[Change]) -> DirectoryImage:
        """Make the image that these changes lead to; of two changes to one object the last wins.

        The two share what does not change, so that a change costs little.
        """
        image = DirectoryImage()
        image._objects = self._objects.copy()
        image._take(changes, own=set())
        return image

    def _take(self, changes: Iterable[Change], *, own: set[ObjectKind]) -> None:
        for change in changes:
            kind = change.kind if isinstance(change, Removal) else kind_of(change)
            if kind not in own:
                own.add(kind)
                self._objects[kind] = self._objects[kind].copy()
            if isinstance(change, Removal):
                self._objects[kind].pop(change.identifier, None)
            else:
                self._objects[kind][change.identifier] = change

    def routes_like(self, other: DirectoryImage) -> bool:
        """Whether sites, links and queue managers are surely those of another image."""
        return all(self._objects[kind] is other._objects[kind] for kind in _ROUTING)

    @cached_property
    def _manager_names(self) -> dict[str, Guid]:
        # Of two with one name, which no rule allows but Active Directory does, all copies must
        # find the same one, in whatever order they have heard of them.
        found: dict[str, Guid] = {}
        for manager in self.managers.values():
            for name in (manager.computer_name, manager.qualified_computer_name):
                if name:
                    _keep_least(found, fold(name), manager.identifier)
        return found

    @cached_property
    def _users_by_sid(self) -> dict[bytes, Guid]:
        found: dict[bytes, Guid] = {}
        for user in self.users.values():
            _keep_least(found, user.security_identifier, user.identifier)
        return found

    @cached_property
    def _queue_paths(self) -> dict[tuple[Guid, str], Guid]:
        found: dict[tuple[Guid, str], Guid] = {}
        for queue in self.queues.values():
            key = queue.manager, fold(queue_part(queue.path_name))
            _keep_least(found, key, queue.identifier)
        return found

    # All objects.

    def __iter__(self) -> Iterator[DirectoryObject]:
        for kind in ObjectKind:
            yield from self._objects[kind].values()

    def __len__(self) -> int:
        return sum(map(len, self._objects.values()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DirectoryImage) and self._objects == other._objects

    __hash__ = None  # type: ignore[assignment]

    def get(self, kind: ObjectKind, identifier: Guid) -> DirectoryObject | None:
        """Find an object."""
        return self._objects[kind].get(identifier)

    def of_kind(self, kind: ObjectKind) -> Mapping[Guid, DirectoryObject]:
        """Return all objects of a kind by their identifiers."""
        return self._objects[kind]

    # Objects by kind.

    @property
    def enterprise(self) -> EnterpriseInfo | None:
        """The enterprise, if the directory has one."""
        found = self._objects[ObjectKind.ENTERPRISE]
        return cast("EnterpriseInfo", found[min(found)]) if found else None

    @property
    def sites(self) -> Mapping[Guid, Site]:
        """All sites."""
        return cast("Mapping[Guid, Site]", self._objects[ObjectKind.SITE])

    @property
    def links(self) -> Mapping[Guid, RoutingLink]:
        """All routing links."""
        return cast("Mapping[Guid, RoutingLink]", self._objects[ObjectKind.LINK])

    @property
    def managers(self) -> Mapping[Guid, QueueManagerInfo]:
        """All queue managers."""
        return cast("Mapping[Guid, QueueManagerInfo]", self._objects[ObjectKind.MANAGER])

    @property
    def queues(self) -> Mapping[Guid, QueueProperties]:
        """All public queues."""
        return cast("Mapping[Guid, QueueProperties]", self._objects[ObjectKind.QUEUE])

    @property
    def users(self) -> Mapping[Guid, UserInfo]:
        """All users with certificates."""
        return cast("Mapping[Guid, UserInfo]", self._objects[ObjectKind.USER])

    @property
    def lists(self) -> Mapping[Guid, DistributionList]:
        """All distribution lists."""
        return cast("Mapping[Guid, DistributionList]", self._objects[ObjectKind.LIST])

    # Questions.

    def manager_named(self, computer: str) -> QueueManagerInfo | None:
        """Find a queue manager by the short or the qualified name of its computer."""
        identifier = self._manager_names.get(fold(computer))
        return None if identifier is None else self.managers[identifier]

    def user_of(self, security_identifier: bytes) -> UserInfo | None:
        """Find a user by the security identifier."""
        identifier = self._users_by_sid.get(security_identifier)
        return None if identifier is None else self.users[identifier]

    def queue_at(self, computer: str, name: str) -> QueueProperties | None:
        """Find a public queue by the two parts of its path name."""
        manager = self.manager_named(computer)
        if manager is None:
            return None
        identifier = self._queue_paths.get((manager.identifier, fold(name)))
        return None if identifier is None else self.queues[identifier]

    def queues_of(self, manager: Guid) -> list[QueueProperties]:
        """Return the public queues of a queue manager."""
        return [queue for queue in self.queues.values() if queue.manager == manager]

    def find_queues(
        self, *, label: str | None = None, service_type: Guid | None = None
    ) -> list[QueueProperties]:
        """Find public queues by what their owners say of them, in the order of their paths."""
        found = [
            queue
            for queue in self.queues.values()
            if (label is None or fold(queue.label) == fold(label))
            and (service_type is None or queue.service_type == service_type)
        ]
        return sorted(found, key=lambda queue: (fold(queue.path_name), queue.identifier))


def _keep_least(found: dict[_Name, Guid], name: _Name, identifier: Guid) -> None:
    other = found.setdefault(name, identifier)
    if other is not identifier and identifier < other:
        found[name] = identifier


def queue_part(path_name: str) -> str:
    """Return the part of a public queue's path name that is not its computer."""
    return path_name.rpartition("\\")[2]
