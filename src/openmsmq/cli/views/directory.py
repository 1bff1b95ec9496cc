"""Objects of a directory as people and programs read them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final

import msgspec

from openmsmq.cli.views.output import JsonObject, time_text
from openmsmq.directory.image import DirectoryImage
from openmsmq.directory.naming import (
    REFERENCES,
    name_of,
    reference_name,
    security_identifier_text,
)
from openmsmq.model.directory import DirectoryObject, ObjectKind, kind_of
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.limits import UNLIMITED_KB

# Settings that a queue manager keeps for itself, and what only Windows puts into a directory.
_NOT_SHOWN: Final = {
    "domain",
    "last_domain",
    "directory_servers",
    "directory_integrated",
    "http_transfer",
    "multicast_transfer",
    "hardened",
    "initialization_retry_s",
    "private_number",
    "kind",
}

Row = Callable[[Any, DirectoryImage], Sequence[str]]


def object_of(value: DirectoryObject, image: DirectoryImage) -> JsonObject:
    """Return everything about an object; what it refers to, by name."""
    found: JsonObject = {
        "kind": kind_of(value).value,
        "name": name_of(value, image),
        "identifier": str(value.identifier),
    }
    for attribute in value.__struct_fields__:
        if attribute not in _NOT_SHOWN and attribute not in found:
            found[attribute] = _plain(attribute, getattr(value, attribute), image)
    return found


def facts_of(value: DirectoryObject, image: DirectoryImage) -> list[tuple[str, str]]:
    """Return what is known of an object, leaving out what it does not have."""
    found = []
    for key, shown in object_of(value, image).items():
        is_unlimited = shown is None and key.endswith("quota_kb")
        text = "unlimited" if is_unlimited else _words(shown)
        if text and key not in ("kind", "name"):
            found.append((key.replace("_", " "), text))
    return found


def _plain(attribute: str, value: Any, image: DirectoryImage) -> object:
    """Make a value one that JSON has."""
    if attribute.endswith("_time_s"):
        return time_text(value) if value else None
    if attribute.endswith("quota_kb"):
        return None if value == UNLIMITED_KB else value
    if attribute == "security_identifier":
        return security_identifier_text(value)
    match value:
        case Guid():
            kind = REFERENCES.get(attribute)
            if kind is not None:
                return reference_name(image, kind, value)
            return None if value == NIL_GUID else str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case Enum():
            return value.name.lower()
        case tuple():
            return [_plain(attribute, element, image) for element in value]
        case msgspec.Struct():
            return {
                name: _plain(name, getattr(value, name), image) for name in value.__struct_fields__
            }
        case _:
            return value


def _words(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else ""
        case list():
            return ", ".join(_words(element) for element in value)
        case dict():
            return str(value.get("provider_name", ""))
        case _:
            return str(value)


# Tables: the headings of each kind, and a row of it.


def _enterprise_row(value: Any, _image: DirectoryImage) -> Sequence[str]:
    return [value.name, str(value.identifier)]


def _site_row(value: Any, image: DirectoryImage) -> Sequence[str]:
    members = [one for one in image.managers.values() if value.identifier in one.sites]
    links = [one for one in image.links.values() if value.identifier in (one.site1, one.site2)]
    gates = {gate for link in links for gate in link.site_gates}
    names = sorted(one.computer_name for one in members if one.identifier in gates)
    kind = "foreign" if value.foreign else ""
    return [value.name, str(len(members)), str(len(links)), ", ".join(names), kind]


def _link_row(value: Any, image: DirectoryImage) -> Sequence[str]:
    gates = (reference_name(image, ObjectKind.MANAGER, gate) for gate in value.site_gates)
    return [name_of(value, image), str(value.cost), ", ".join(gates), value.description]


def _network_row(value: Any, image: DirectoryImage) -> Sequence[str]:
    members = [one for one in image.managers.values() if value.identifier in one.connected_networks]
    return [value.name, str(len(members))]


def _manager_row(value: Any, image: DirectoryImage) -> Sequence[str]:
    sites = ", ".join(reference_name(image, ObjectKind.SITE, site) for site in value.sites)
    gates = {gate for link in image.links.values() for gate in link.site_gates}
    roles = []
    if value.identifier in gates:
        roles.append("gate")
    elif value.routing_server:
        roles.append("routing server")
    if value.directory_server is not None:
        roles.append(value.directory_server.name.lower().replace("_", " "))
    if value.foreign:
        roles.append("foreign")
    return [value.computer_name, sites, ", ".join(roles), ", ".join(value.addresses)]


def _queue_row(value: Any, _image: DirectoryImage) -> Sequence[str]:
    kind = "transactional" if value.transactional else ""
    service = "" if value.service_type == NIL_GUID else str(value.service_type)
    return [value.path_name, value.label, kind, service]


def _user_row(value: Any, _image: DirectoryImage) -> Sequence[str]:
    return [security_identifier_text(value.security_identifier), str(len(value.certificates))]


def _list_row(value: Any, _image: DirectoryImage) -> Sequence[str]:
    return [value.name, str(len(value.members)), f"DL={value.identifier}"]


TABLES: Final[dict[ObjectKind, tuple[Sequence[str], Row]]] = {
    ObjectKind.ENTERPRISE: (("Enterprise", "Identifier"), _enterprise_row),
    ObjectKind.SITE: (("Site", ">Queue managers", ">Links", "Gates", "Kind"), _site_row),
    ObjectKind.LINK: (("Link", ">Cost", "Gates", "Description"), _link_row),
    ObjectKind.NETWORK: (("Connected network", ">Queue managers"), _network_row),
    ObjectKind.MANAGER: (("Queue manager", "Sites", "Roles", "Addresses"), _manager_row),
    ObjectKind.QUEUE: (("Public queue", "Label", "Kind", "Service type"), _queue_row),
    ObjectKind.USER: (("User", ">Certificates"), _user_row),
    ObjectKind.LIST: (("Distribution list", ">Members", "Format name"), _list_row),
}
