"""What a plan can say of each kind of object: the keys, what they mean, and how they are written.

The one table from which plans are read, written and compared.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final

import msgspec

from openmsmq.directory.plans.yaml_tree import Node, Tree, nearest
from openmsmq.model.directory import TYPES, ObjectKind
from openmsmq.model.identity import Guid
from openmsmq.model.limits import (
    BASE_PRIORITY_MAX_LEVEL,
    BASE_PRIORITY_MIN_LEVEL,
    LINK_COST_MAX_UNITS,
    LINK_COST_MIN_UNITS,
    UNLIMITED_KB,
)
from openmsmq.model.queue import QueuePrivacy
from openmsmq.model.topology import DirectoryServerKind

UNLIMITED: Final = "unlimited"
NOTHING: Final = "none"


class Form(msgspec.Struct, frozen=True):
    """How the value of a key stands in a file."""

    read: Callable[[Node], object]
    write: Callable[[Any], Tree]
    refers_to: ObjectKind | None = None
    """What the names in it are names of. Such values are read as nodes, and written as names."""


class Field(msgspec.Struct, frozen=True):
    """A key, the attribute of the object that it is, and its form."""

    key: str
    attribute: str
    form: Form


def _read_text(node: Node) -> str:
    return node.scalar()


def _read_switch(node: Node) -> bool:
    text = node.scalar()
    if text not in ("true", "false"):
        raise node.error(f"true or false is needed here, not {text!r}")
    return text == "true"


def _read_identifier(node: Node) -> Guid:
    try:
        return Guid.parse(node.scalar())
    except ValueError as error:
        raise node.error(str(error)) from None


def _read_texts(node: Node) -> tuple[str, ...]:
    return tuple(element.scalar() for element in node.sequence())


def _read_names(node: Node) -> tuple[Node, ...]:
    elements = tuple(node.sequence())
    for element in elements:
        element.scalar()
    return elements


def _read_optional(node: Node) -> str | None:
    return node.scalar() or None


def _number(low: int, high: int) -> Form:
    def read(node: Node) -> int:
        text = node.scalar()
        digits = text.removeprefix("-")
        # The length keeps very long numbers from being worked out.
        is_number = digits.isascii() and digits.isdecimal() and len(digits) <= len(str(high))
        if not (is_number and low <= int(text) <= high):
            raise node.error(f"a number from {low} to {high} is needed here, not {text!r}")
        return int(text)

    return Form(read, int)


def _quota() -> Form:
    number = _number(0, UNLIMITED_KB)

    def read(node: Node) -> object:
        return UNLIMITED_KB if node.text == UNLIMITED else number.read(node)

    def write(value: int) -> Tree:
        return UNLIMITED if value == UNLIMITED_KB else value

    return Form(read, write)


def _word(kind: type[IntEnum], *, optional: bool = False) -> Form:
    words: dict[str, IntEnum | None] = {member.name.lower(): member for member in kind}
    if optional:
        words[NOTHING] = None

    def read(node: Node) -> IntEnum | None:
        text = node.scalar()
        if text not in words:
            raise node.error(f"{text!r} is not possible here{nearest(text, words)}")
        return words[text]

    def write(value: IntEnum | None) -> Tree:
        return NOTHING if value is None else value.name.lower()

    return Form(read, write)


def _names(kind: ObjectKind) -> Form:
    return Form(_read_names, list, kind)


TEXT: Final = Form(_read_text, str)
OPTIONAL_TEXT: Final = Form(_read_optional, lambda value: value or "")
TEXTS: Final = Form(_read_texts, list)
SWITCH: Final = Form(_read_switch, bool)
IDENTIFIER: Final = Form(_read_identifier, str)
QUOTA: Final = _quota()
SECONDS: Final = _number(0, 0xFFFFFFFF)

_IDENTIFIER: Final = Field("identifier", "identifier", IDENTIFIER)
_QUOTAS: Final = (
    Field("quota_kb", "quota_kb", QUOTA),
    Field("journal_quota_kb", "journal_quota_kb", QUOTA),
)

FIELDS: Final[dict[ObjectKind, tuple[Field, ...]]] = {
    ObjectKind.ENTERPRISE: (
        Field("name", "name", TEXT),
        _IDENTIFIER,
        Field("reach_queue_default_s", "reach_queue_default_s", SECONDS),
        Field("notify_old_managers", "notify_old_managers", SWITCH),
    ),
    ObjectKind.NETWORK: (_IDENTIFIER,),
    ObjectKind.SITE: (_IDENTIFIER, Field("foreign", "foreign", SWITCH)),
    ObjectKind.MANAGER: (
        _IDENTIFIER,
        Field("qualified_name", "qualified_computer_name", TEXT),
        Field("other_sites", "sites", _names(ObjectKind.SITE)),
        Field("addresses", "addresses", TEXTS),
        Field("networks", "connected_networks", _names(ObjectKind.NETWORK)),
        Field("routing_server", "routing_server", SWITCH),
        Field("directory_server", "directory_server", _word(DirectoryServerKind, optional=True)),
        Field("foreign", "foreign", SWITCH),
        Field("in_routing_servers", "in_routing_servers", _names(ObjectKind.MANAGER)),
        Field("out_routing_servers", "out_routing_servers", _names(ObjectKind.MANAGER)),
        *_QUOTAS,
    ),
    ObjectKind.LINK: (
        _IDENTIFIER,
        Field("cost", "cost", _number(LINK_COST_MIN_UNITS, LINK_COST_MAX_UNITS)),
        Field("gates", "site_gates", _names(ObjectKind.MANAGER)),
        Field("description", "description", TEXT),
    ),
    ObjectKind.QUEUE: (
        _IDENTIFIER,
        Field("label", "label", TEXT),
        Field("service_type", "service_type", IDENTIFIER),
        Field("transactional", "transactional", SWITCH),
        Field("journaling", "journaling", SWITCH),
        *_QUOTAS,
        Field("authenticate", "authentication_required", SWITCH),
        Field("privacy", "privacy", _word(QueuePrivacy)),
        Field(
            "base_priority",
            "base_priority",
            _number(BASE_PRIORITY_MIN_LEVEL, BASE_PRIORITY_MAX_LEVEL),
        ),
        Field("multicast_address", "multicast_address", OPTIONAL_TEXT),
    ),
    ObjectKind.LIST: (
        _IDENTIFIER,
        # A member is a public queue, another list or a format name: see `names`.
        Field("members", "members", _names(ObjectKind.LIST)),
    ),
}
"""Users are not part of a plan: they register their certificates themselves."""

BETWEEN: Final = "between"
"""The key of a link's two sites."""

DEFAULTS: Final[dict[ObjectKind, dict[str, Any]]] = {
    kind: {
        field.name: field.default
        for field in msgspec.structs.fields(TYPES[kind])
        if field.default is not msgspec.NODEFAULT
    }
    for kind in FIELDS
}
"""What the attributes of an object are when nothing is said."""
