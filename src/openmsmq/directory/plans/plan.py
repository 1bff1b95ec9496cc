"""A plan: an enterprise as a file of names describes it.

Reading one needs no directory: names are looked up when it is compared with one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import msgspec

from openmsmq.directory.plans.fields import BETWEEN, FIELDS
from openmsmq.directory.plans.yaml_tree import Node, read_tree
from openmsmq.model.directory import ObjectKind

MANAGERS: Final = "queue_managers"
QUEUES: Final = "queues"

ORDER: Final = (
    ObjectKind.ENTERPRISE,
    ObjectKind.NETWORK,
    ObjectKind.SITE,
    ObjectKind.MANAGER,
    ObjectKind.LINK,
    ObjectKind.QUEUE,
    ObjectKind.LIST,
)
"""The kinds in a plan, each after those that it refers to."""


class Item(msgspec.Struct, frozen=True):
    """What a plan says of one object."""

    kind: ObjectKind
    node: Node
    name: str
    given: dict[str, Any]
    """The attributes that are mentioned. References are nodes with names."""
    owner: str = ""
    """The queue manager of a queue, or the site under which a queue manager stands."""
    ends: tuple[Node, ...] = ()
    """The two sites of a link."""


class Plan(msgspec.Struct, frozen=True):
    """What a file says."""

    file: str
    items: tuple[Item, ...]
    """In the order of their kinds."""


def read_plan(text: str, file: str) -> Plan:
    """Read a plan; raises `PlanError`, which names the line and the key."""
    sections = read_tree(text, file).known(_READERS)
    items: list[Item] = []
    for section, node in sections.items():
        items.extend(_READERS[section](node))
    return Plan(file, tuple(sorted(items, key=lambda item: ORDER.index(item.kind))))


def _read_enterprise(node: Node) -> Iterator[Item]:
    yield Item(ObjectKind.ENTERPRISE, node, "", _given(ObjectKind.ENTERPRISE, node))


def _read_named(kind: ObjectKind, node: Node) -> Iterator[Item]:
    for name, about in node.mapping().items():
        yield Item(kind, about, name, _given(kind, about))


def _read_sites(node: Node) -> Iterator[Item]:
    for name, about in node.mapping().items():
        yield Item(ObjectKind.SITE, about, name, _given(ObjectKind.SITE, about, MANAGERS))
        inner = about.mapping().get(MANAGERS)
        if inner is not None:
            yield from _read_managers(inner, name)


def _read_managers(node: Node, site: str = "") -> Iterator[Item]:
    for name, about in node.mapping().items():
        given = _given(ObjectKind.MANAGER, about, QUEUES)
        yield Item(ObjectKind.MANAGER, about, name, given, owner=site)
        inner = about.mapping().get(QUEUES)
        for queue, its in (inner.mapping() if inner is not None else {}).items():
            given = _given(ObjectKind.QUEUE, its)
            yield Item(ObjectKind.QUEUE, its, queue, given, owner=name)


def _read_links(node: Node) -> Iterator[Item]:
    for about in node.sequence():
        given = _given(ObjectKind.LINK, about, BETWEEN)
        between = about.mapping().get(BETWEEN)
        ends = () if between is None else tuple(between.sequence())
        if len(ends) != 2:
            raise about.error(f"a link needs its two sites: `{BETWEEN}: [One, Other]`")
        yield Item(ObjectKind.LINK, about, "", given, ends=ends)


def _given(kind: ObjectKind, node: Node, *others: str) -> dict[str, Any]:
    fields = {field.key: field for field in FIELDS[kind]}
    found = node.known([*fields, *others])
    return {
        fields[key].attribute: fields[key].form.read(value)
        for key, value in found.items()
        if key in fields
    }


_READERS: Final[dict[str, Callable[[Node], Iterator[Item]]]] = {
    "enterprise": _read_enterprise,
    "networks": partial(_read_named, ObjectKind.NETWORK),
    "sites": _read_sites,
    MANAGERS: _read_managers,
    "links": _read_links,
    "lists": partial(_read_named, ObjectKind.LIST),
}
