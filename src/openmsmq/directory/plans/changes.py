"""The changes that make a directory what a plan says.

What a plan does not mention stays as it is, unless it is pruned: then a plan is all there is to say
about the enterprise. What no plan can say (users, keys, security descriptors, times) always stays.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, cast

import msgspec

from openmsmq.directory.image import DirectoryImage, queue_part
from openmsmq.directory.naming import ENTERPRISE_KEY, WORDS, sorted_by_name
from openmsmq.directory.plans.fields import DEFAULTS, FIELDS
from openmsmq.directory.plans.names import PlanNames
from openmsmq.directory.plans.plan import ORDER, Item, Plan
from openmsmq.model.directory import TYPES, Change, DirectoryObject, ObjectKind, Removal, kind_of
from openmsmq.model.errors import MsmqError
from openmsmq.model.identity import Guid
from openmsmq.model.names.parts import fold
from openmsmq.model.queue import QueueKind
from openmsmq.model.topology import QueueManagerInfo


def changes_for(
    plan: Plan, image: DirectoryImage, new_guid: Callable[[], Guid], *, prune: bool = False
) -> list[Change]:
    """Return the changes that make a directory what a plan says; raises `PlanError`.

    They stand in an order in which each object follows those that it refers to. With `prune`, what
    the plan does not mention is removed, and what it does not say of an object is as if new.
    """
    return _Comparison(plan, image, new_guid, prune=prune).changes()


class _Comparison:
    def __init__(
        self, plan: Plan, image: DirectoryImage, new_guid: Callable[[], Guid], *, prune: bool
    ) -> None:
        self._plan = plan
        self._image = image
        self._new_guid = new_guid
        self._prune = prune
        self._names = PlanNames(image)
        self._made: dict[tuple[ObjectKind, Guid], DirectoryObject] = {}

    def changes(self) -> list[Change]:
        found = [(item, self._identify(item)) for item in self._plan.items]
        self._refuse_twice(found)
        for item, identifier in found:
            try:
                self._made[item.kind, identifier] = self._make(item, identifier)
            except MsmqError as error:
                raise item.node.error(error.detail) from None
        removed = self._unmentioned() if self._prune else []
        self._follow_computer_names(removed)
        puts = [value for key, value in self._made.items() if value != self._image.get(*key)]
        puts.sort(key=lambda value: (ORDER.index(kind_of(value)), _refers_to_managers(value)))
        return [*puts, *removed]

    def _identify(self, item: Item) -> Guid:
        key = self._key(item)
        found = self._names.find(item.kind, key)
        given = item.given.get("identifier")
        if found is not None:
            if given not in (None, found):
                raise item.node.error(
                    f"its identifier is {found} and never changes; leave `identifier` out"
                )
            return found
        if given is not None and self._image.get(item.kind, given) is not None:
            raise item.node.error(f"another {WORDS[item.kind]} has the identifier {given} already")
        identifier: Guid = self._new_guid() if given is None else given
        self._names.add_name(item.kind, key, identifier, item.name)
        if qualified := item.given.get("qualified_computer_name"):
            self._names.add_name(item.kind, fold(qualified), identifier, qualified)
        return identifier

    def _key(self, item: Item) -> Hashable:
        match item.kind:
            case ObjectKind.ENTERPRISE:
                return ENTERPRISE_KEY
            case ObjectKind.LINK:
                return frozenset(self._names.resolve(ObjectKind.SITE, end) for end in item.ends)
            case ObjectKind.QUEUE:
                return (self._names.find(ObjectKind.MANAGER, fold(item.owner)), fold(item.name))
            case _:
                return fold(item.name)

    def _refuse_twice(self, found: list[tuple[Item, Guid]]) -> None:
        first: dict[tuple[ObjectKind, Guid], Item] = {}
        for item, identifier in found:
            other = first.setdefault((item.kind, identifier), item)
            if other is not item:
                raise item.node.error(
                    f"this {WORDS[item.kind]} is described in line {other.node.line} already"
                )

    def _make(self, item: Item, identifier: Guid) -> DirectoryObject:
        values = {attribute: self._value(item, attribute) for attribute in item.given}
        values["identifier"] = identifier
        old = self._image.get(item.kind, identifier)
        if item.kind is ObjectKind.MANAGER:
            self._place(item, cast("QueueManagerInfo | None", old), values)
        if old is None:
            kind: type[Any] = TYPES[item.kind]
            return cast("DirectoryObject", kind(**self._beginning(item), **values))
        if self._prune:
            unsaid = {field.attribute for field in FIELDS[item.kind]} - values.keys()
            defaults = DEFAULTS[item.kind]
            values |= {name: defaults[name] for name in unsaid if name in defaults}
        return msgspec.structs.replace(old, **values)

    def _value(self, item: Item, attribute: str) -> object:
        value = item.given[attribute]
        field = next(field for field in FIELDS[item.kind] if field.attribute == attribute)
        if field.form.refers_to is None:
            return value
        if item.kind is ObjectKind.LIST:
            return tuple(self._names.resolve_member(node) for node in value)
        return tuple(self._names.resolve(field.form.refers_to, node) for node in value)

    def _place(self, item: Item, old: QueueManagerInfo | None, values: dict[str, Any]) -> None:
        """Put a queue manager into the site under which it stands, and into its other ones."""
        own = self._names.find(ObjectKind.SITE, fold(item.owner)) if item.owner else None
        others = values.pop("sites", None)
        stays = old is not None and (own is None or own in old.sites)
        if others is None and stays and not self._prune:
            return
        values["sites"] = (*(() if own is None else (own,)), *(others or ()))

    def _beginning(self, item: Item) -> dict[str, Any]:
        """Return the attributes of a new object that make it this one."""
        match item.kind:
            case ObjectKind.ENTERPRISE:
                return {}
            case ObjectKind.MANAGER:
                return {"computer_name": item.name}
            case ObjectKind.LINK:
                if "cost" not in item.given:
                    raise item.node.error("a new link needs its `cost`")
                one, two = (self._names.resolve(ObjectKind.SITE, end) for end in item.ends)
                return {"site1": one, "site2": two}
            case ObjectKind.QUEUE:
                owner = self._owner(item)
                return {
                    "kind": QueueKind.PUBLIC,
                    "manager": owner.identifier,
                    "path_name": f"{owner.computer_name}\\{item.name}",
                    "qualified_path_name": _qualified(owner, item.name),
                }
            case _:
                return {"name": item.name}

    def _owner(self, item: Item) -> QueueManagerInfo:
        identifier = self._names.find(ObjectKind.MANAGER, fold(item.owner))
        assert identifier is not None, "a queue stands under its queue manager"
        return cast("QueueManagerInfo", self._made[ObjectKind.MANAGER, identifier])

    def _follow_computer_names(self, removed: list[Removal]) -> None:
        """Let the queues of a computer that has another qualified name have it too."""
        gone = {removal.identifier for removal in removed}
        for manager in list(self._made.values()):
            if not isinstance(manager, QueueManagerInfo):
                continue
            old = self._image.managers.get(manager.identifier)
            if old is None or old.qualified_computer_name == manager.qualified_computer_name:
                continue
            for queue in self._image.queues_of(manager.identifier):
                key = (ObjectKind.QUEUE, queue.identifier)
                if queue.identifier not in gone:
                    self._made[key] = msgspec.structs.replace(
                        self._made.get(key, queue),
                        qualified_path_name=_qualified(manager, queue_part(queue.path_name)),
                    )

    def _unmentioned(self) -> list[Removal]:
        kinds = [kind for kind in reversed(ORDER) if kind is not ObjectKind.ENTERPRISE]
        return [
            Removal(kind, value.identifier)
            for kind in kinds
            for value in sorted_by_name(self._image.of_kind(kind).values(), self._image)
            if (kind, value.identifier) not in self._made and self._names.leads_to(value)
        ]


def _qualified(owner: QueueManagerInfo, queue: str) -> str:
    computer = owner.qualified_computer_name
    return f"{computer}\\{queue}" if computer else ""


def _refers_to_managers(value: DirectoryObject) -> bool:
    return isinstance(value, QueueManagerInfo) and bool(
        value.in_routing_servers or value.out_routing_servers
    )
