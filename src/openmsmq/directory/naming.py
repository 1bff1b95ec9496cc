"""What people call the objects of a directory, and finding objects by that.

Objects name each other by identifiers; people use names. A link has none of its own and is called
by its two sites, `Branch:Region`, in either order. Identifiers are understood everywhere too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Final

from openmsmq.directory.image import DirectoryImage, queue_part
from openmsmq.model.directory import DirectoryObject, ObjectKind, kind_of
from openmsmq.model.identity import Guid
from openmsmq.model.names.parts import fold
from openmsmq.model.queue import QueueProperties
from openmsmq.model.topology import QueueManagerInfo, RoutingLink, UserInfo

LINK_SEPARATOR: Final = ":"

ENTERPRISE_KEY: Final = ""
"""What leads to the one enterprise of a directory, whatever its name."""

WORDS: Final = {
    ObjectKind.ENTERPRISE: "enterprise",
    ObjectKind.SITE: "site",
    ObjectKind.LINK: "link",
    ObjectKind.NETWORK: "connected network",
    ObjectKind.MANAGER: "queue manager",
    ObjectKind.QUEUE: "public queue",
    ObjectKind.USER: "user",
    ObjectKind.LIST: "distribution list",
}
"""The kinds of objects, as they stand in a sentence."""

REFERENCES: Final[dict[str, ObjectKind]] = {
    "site1": ObjectKind.SITE,
    "site2": ObjectKind.SITE,
    "site_gates": ObjectKind.MANAGER,
    "sites": ObjectKind.SITE,
    "connected_networks": ObjectKind.NETWORK,
    "in_routing_servers": ObjectKind.MANAGER,
    "out_routing_servers": ObjectKind.MANAGER,
    "manager": ObjectKind.MANAGER,
}
"""The attributes that refer to other objects, and to which."""


def name_of(value: DirectoryObject, image: DirectoryImage) -> str:
    """Return what people call an object; its identifier when it has no name."""
    match value:
        case RoutingLink():
            return LINK_SEPARATOR.join(
                reference_name(image, ObjectKind.SITE, site) for site in (value.site1, value.site2)
            )
        case QueueManagerInfo():
            name = value.computer_name
        case QueueProperties():
            name = value.path_name
        case UserInfo():
            name = security_identifier_text(value.security_identifier)
        case _:
            name = value.name
    return name or str(value.identifier)


def reference_name(image: DirectoryImage, kind: ObjectKind, identifier: Guid) -> str:
    """Return what people call the object with this identifier; without one, give the identifier."""
    found = image.get(kind, identifier)
    return str(identifier) if found is None else name_of(found, image)


def find_object(image: DirectoryImage, kind: ObjectKind, name: str) -> DirectoryObject | None:
    """Find an object by a name that people use for it, or by its identifier."""
    wanted = fold(name)
    for value in image.of_kind(kind).values():
        if wanted in map(fold, names_of(value, image)):
            return value
    try:
        return image.get(kind, Guid.parse(name))
    except ValueError:
        return None


def names_of(value: DirectoryObject, image: DirectoryImage) -> Iterator[str]:
    """Yield all names under which an object can be found."""
    name = name_of(value, image)
    yield name
    match value:
        case RoutingLink():
            yield LINK_SEPARATOR.join(
                reference_name(image, ObjectKind.SITE, site) for site in (value.site2, value.site1)
            )
        case QueueManagerInfo() if value.qualified_computer_name:
            yield value.qualified_computer_name
        case QueueProperties():
            owner = image.managers.get(value.manager)
            if owner is not None:
                for computer in (owner.computer_name, owner.qualified_computer_name):
                    yield f"{computer}\\{queue_part(value.path_name)}"
        case _:
            pass


def keys_of(value: DirectoryObject) -> list[Hashable]:
    """Return what leads to an object, and no other object of the same kind can have."""
    match value:
        case RoutingLink():
            return [frozenset((value.site1, value.site2))]
        case QueueManagerInfo():
            names = (value.computer_name, value.qualified_computer_name)
            return [fold(name) for name in names if name]
        case QueueProperties():
            return [(value.manager, fold(queue_part(value.path_name)))]
        case UserInfo():
            return [value.security_identifier]
        case _:
            if kind_of(value) is ObjectKind.ENTERPRISE:
                return [ENTERPRISE_KEY]
            return [fold(value.name)] if value.name else []


def sorted_by_name(
    values: Iterable[DirectoryObject], image: DirectoryImage
) -> list[DirectoryObject]:
    """Put objects of one kind into the order of their names."""
    return sorted(values, key=lambda value: (fold(name_of(value, image)), value.identifier))


def security_identifier_text(data: bytes) -> str:
    """Write a security identifier as S-1-...; what is none, in hexadecimal. [MS-DTYP 2.4.2.1]"""
    if len(data) < 8 or len(data) != 8 + 4 * data[1]:
        return data.hex()
    parts = [int.from_bytes(data[start : start + 4], "little") for start in range(8, len(data), 4)]
    numbers = (data[0], int.from_bytes(data[2:8], "big"), *parts)
    return "-".join(["S", *map(str, numbers)])
