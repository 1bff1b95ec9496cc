"""A directory described as a plan; reading that back leads to no changes."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from openmsmq.directory.image import DirectoryImage, queue_part
from openmsmq.directory.naming import sorted_by_name
from openmsmq.directory.plans.fields import BETWEEN, DEFAULTS, FIELDS, Field
from openmsmq.directory.plans.names import PlanNames
from openmsmq.directory.plans.plan import MANAGERS, ORDER, QUEUES
from openmsmq.directory.plans.yaml_tree import Tree, write_tree
from openmsmq.model.directory import DirectoryObject, ObjectKind, kind_of
from openmsmq.model.identity import Guid
from openmsmq.model.queue import QueueProperties
from openmsmq.model.topology import QueueManagerInfo, RoutingLink


def write_plan(image: DirectoryImage, *, with_identifiers: bool = False) -> str:
    """Describe a directory as a plan: everything that a plan can say and that is not usual."""
    return _Writer(image, with_identifiers=with_identifiers).write()


class _Writer:
    def __init__(self, image: DirectoryImage, *, with_identifiers: bool) -> None:
        self._image = image
        self._names = PlanNames(image)
        self._with_identifiers = with_identifiers

    def write(self) -> str:
        sections: dict[str, Tree] = {
            "enterprise": self._fields(self._image.enterprise),
            "networks": self._named(ObjectKind.NETWORK),
            "sites": self._sites(),
            MANAGERS: self._managers(None),
            "links": [self._link(link) for link in self._known(ObjectKind.LINK)],
            "lists": self._named(ObjectKind.LIST),
        }
        parts = [write_tree({key: tree}) for key, tree in sections.items() if tree]
        if self._image.enterprise is not None and not sections["enterprise"]:
            parts.insert(0, "enterprise:\n")
        left_out = sum(
            not self._names.leads_to(value)
            for kind in ORDER
            for value in self._image.of_kind(kind).values()
        )
        if left_out:
            parts.insert(0, f"# Left out, for want of a name of their own: {left_out} objects.\n")
        return "\n".join(parts)

    def _known(self, kind: ObjectKind) -> list[DirectoryObject]:
        values = self._image.of_kind(kind).values()
        return [
            value for value in sorted_by_name(values, self._image) if self._names.leads_to(value)
        ]

    def _named(self, kind: ObjectKind) -> dict[str, Tree]:
        return {
            str(self._names.name(kind, value.identifier)): self._fields(value)
            for value in self._known(kind)
        }

    def _sites(self) -> dict[str, Tree]:
        found: dict[str, Tree] = {}
        for site in self._known(ObjectKind.SITE):
            name = str(self._names.name(ObjectKind.SITE, site.identifier))
            managers = self._managers(site.identifier)
            found[name] = {**self._fields(site), **({MANAGERS: managers} if managers else {})}
        return found

    def _managers(self, site: Guid | None) -> dict[str, Tree]:
        """Describe the queue managers whose first site this is, or those without one."""
        found: dict[str, Tree] = {}
        for manager in self._known(ObjectKind.MANAGER):
            assert isinstance(manager, QueueManagerInfo)
            if self._first_site(manager) == site:
                name = str(self._names.name(ObjectKind.MANAGER, manager.identifier))
                found[name] = {**self._fields(manager), **self._queues(manager.identifier)}
        return found

    def _first_site(self, manager: QueueManagerInfo) -> Guid | None:
        first = next(iter(manager.sites), None)
        if first is None or self._names.name(ObjectKind.SITE, first) is None:
            return None
        return first

    def _queues(self, manager: Guid) -> dict[str, Tree]:
        queues: dict[str, Tree] = {
            queue_part(queue.path_name): self._fields(queue)
            for queue in sorted_by_name(self._image.queues_of(manager), self._image)
            if isinstance(queue, QueueProperties) and self._names.leads_to(queue)
        }
        return {QUEUES: queues} if queues else {}

    def _link(self, link: DirectoryObject) -> dict[str, Tree]:
        assert isinstance(link, RoutingLink)
        ends = [str(self._names.name(ObjectKind.SITE, end)) for end in (link.site1, link.site2)]
        return {BETWEEN: ends, **self._fields(link)}

    def _fields(self, value: DirectoryObject | None) -> dict[str, Tree]:
        if value is None:
            return {}
        kind = kind_of(value)
        found: dict[str, Tree] = {}
        for field in FIELDS[kind]:
            if field.attribute == "identifier" and not self._with_identifiers:
                continue
            held = getattr(value, field.attribute)
            if isinstance(value, QueueManagerInfo) and field.attribute == "sites":
                held = held if self._first_site(value) is None else held[1:]
            if held != DEFAULTS[kind].get(field.attribute, msgspec.NODEFAULT):
                written = self._written(kind, field, held)
                if written is not None:
                    found[field.key] = written
        return found

    def _written(self, kind: ObjectKind, field: Field, held: Any) -> Tree | None:
        """Write a value; one that refers to something without a name cannot be written."""
        if field.form.refers_to is None:
            return field.form.write(held)
        if kind is ObjectKind.LIST:
            return [self._names.member_name(member) for member in held]
        names = [self._names.name(field.form.refers_to, identifier) for identifier in held]
        return None if None in names else cast("list[str]", names)
