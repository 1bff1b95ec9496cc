r"""Names in a plan and the identifiers behind them, both ways.

In a list of members, `HQ1\orders` is a public queue, `audit` is another list, and anything with an
equals sign before the first backslash is a format name.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias

from openmsmq.directory.image import DirectoryImage, queue_part
from openmsmq.directory.naming import WORDS, keys_of
from openmsmq.directory.plans.yaml_tree import Node, nearest
from openmsmq.model.directory import DirectoryObject, ObjectKind, kind_of
from openmsmq.model.errors import MsmqError
from openmsmq.model.identity import Guid
from openmsmq.model.names import DistributionListFormatName, PublicFormatName, parse_format_name
from openmsmq.model.names.parts import fold
from openmsmq.model.queue import QueueProperties
from openmsmq.model.topology import QueueManagerInfo, RoutingLink, UserInfo

_Key: TypeAlias = tuple[ObjectKind, Hashable]


class PlanNames:
    """Which names belong to which objects; of two objects with one name, the first has it."""

    def __init__(self, image: DirectoryImage) -> None:
        self._image = image
        self._identifiers: dict[_Key, Guid] = {}
        self._new: dict[_Key, str] = {}
        for value in image:
            self.add(value)

    def add(self, value: DirectoryObject) -> None:
        """Let the names of an object be known."""
        for key in keys_of(value):
            self._identifiers.setdefault((kind_of(value), key), value.identifier)

    def add_name(self, kind: ObjectKind, key: Hashable, identifier: Guid, name: str = "") -> None:
        """Let a name be known before its object is made."""
        self._identifiers.setdefault((kind, key), identifier)
        self._new.setdefault((kind, key), name)

    def find(self, kind: ObjectKind, key: Hashable) -> Guid | None:
        """Find an identifier."""
        return self._identifiers.get((kind, key))

    # From names to identifiers.

    def resolve(self, kind: ObjectKind, node: Node) -> Guid:
        """Return the identifier behind a name in a file."""
        name = node.scalar()
        found = self.find(kind, fold(name))
        if found is None:
            raise node.error(
                f"there is no {WORDS[kind]} {name!r}, neither in the file nor in the directory"
                f"{nearest(name, self._known(kind))}"
            )
        return found

    def resolve_member(self, node: Node) -> str:
        """Return the format name behind a member of a list."""
        text = node.scalar()
        computer, backslash, queue = text.partition("\\")
        if "=" in computer:
            try:
                parse_format_name(text)
            except MsmqError as error:
                raise node.error(error.detail) from None
            return text
        if not backslash:
            return str(DistributionListFormatName(self.resolve(ObjectKind.LIST, node)))
        owner = self.find(ObjectKind.MANAGER, fold(computer))
        found = None if owner is None else self.find(ObjectKind.QUEUE, (owner, fold(queue)))
        if found is None:
            raise node.error(
                f"there is no public queue {text!r}; a private one is written DIRECT=OS:{text}"
            )
        return str(PublicFormatName(found))

    def _known(self, kind: ObjectKind) -> set[str]:
        new = {name for (known, _), name in self._new.items() if known is kind}
        old = (self.name(kind, identifier) for identifier in self._image.of_kind(kind))
        return new | set(filter(None, old))

    # From identifiers to names.

    def name(self, kind: ObjectKind, identifier: Guid) -> str | None:
        """Return the name that leads to an object, if one does."""
        value = self._image.get(kind, identifier)
        if isinstance(value, QueueManagerInfo):
            names = [value.computer_name, value.qualified_computer_name]
        elif value is None or isinstance(value, RoutingLink | QueueProperties | UserInfo):
            names = []
        else:
            names = [value.name]
        for name in names:
            if name and self.find(kind, fold(name)) == identifier:
                return name
        return None

    def member_name(self, member: str) -> str:
        """Return a member as people write it; a format name that says more than a name stays."""
        try:
            parsed = parse_format_name(member)
        except MsmqError:
            return member
        name = None
        if isinstance(parsed, PublicFormatName) and str(parsed) == member:
            name = self._queue_name(parsed.queue)
        elif isinstance(parsed, DistributionListFormatName) and str(parsed) == member:
            name = self.name(ObjectKind.LIST, parsed.distribution_list)
            if name is not None and ("\\" in name or "=" in name or parsed.domain is not None):
                name = None
        return member if name is None else name

    def _queue_name(self, identifier: Guid) -> str | None:
        queue = self._image.queues.get(identifier)
        if queue is None or not self.leads_to(queue):
            return None
        owner = self.name(ObjectKind.MANAGER, queue.manager)
        return None if owner is None else f"{owner}\\{queue_part(queue.path_name)}"

    def leads_to(self, value: DirectoryObject) -> bool:
        """Whether a plan can speak of an object: it has a name, and has it first."""
        if isinstance(value, UserInfo):
            return False
        if isinstance(value, RoutingLink):
            ends = (value.site1, value.site2)
            if any(self.name(ObjectKind.SITE, site) is None for site in ends):
                return False
        if isinstance(value, QueueProperties) and not self._has_name(value.manager):
            return False
        keys = [key for key in keys_of(value) if self.find(kind_of(value), key) == value.identifier]
        return bool(keys)

    def _has_name(self, manager: Guid) -> bool:
        return self.name(ObjectKind.MANAGER, manager) is not None
