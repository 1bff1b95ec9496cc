"""Entries as a server gives them, for attributes as they were written."""

from __future__ import annotations

import re

from openmsmq.model.access import ManagerAccess
from openmsmq.model.identity import Guid
from openmsmq.runtime.active_directory.mapping.descriptors import (
    EVERYBODY,
    MANAGER_RIGHTS,
    to_directory,
)
from openmsmq.runtime.active_directory.mapping.entries import Attributes, Entry
from openmsmq.security.access.descriptors import AccessEntry, Descriptor

SELF = Guid(b"S" * 16)
ROOT = "DC=mq,DC=test"
COMPUTER_NAME = f"CN=QM1,CN=Computers,{ROOT}"
MANAGER_NAME = f"CN=msmq,{COMPUTER_NAME}"
MANAGER = Guid(b"M" * 16)
OPEN = to_directory(
    Descriptor(entries=(AccessEntry(EVERYBODY, ManagerAccess.WORLD_RIGHTS),)), MANAGER_RIGHTS
)
CREATED_S = 1_794_776_400
CREATED = b"20261115210000.0Z"


def served(
    name: str, class_name: str, attributes: Attributes, identifier: Guid = SELF, **more: bytes
) -> Entry:
    """Dress attributes up: references get names, and the server adds its own attributes."""
    found: dict[str, tuple[bytes, ...]] = {
        "cn": (re.sub(r"\\([0-9A-F]{2})", _byte, name.partition(",")[0][3:]).encode(),),
        "whencreated": (CREATED,),
        "whenchanged": (CREATED,),
        "ntsecuritydescriptor": (OPEN,),
    }
    for attribute, values in attributes.items():
        if values:
            found[attribute.lower()] = tuple(
                value + b";CN=x," + ROOT.encode() if value.startswith(b"<GUID=") else value
                for value in values
            )
    found |= {attribute.lower(): (value,) for attribute, value in more.items()}
    return Entry(name, identifier, frozenset({"top", class_name.lower()}), found)


def _byte(match: re.Match[str]) -> str:
    return chr(int(match[1], 16))


def computer(**more: bytes) -> Entry:
    return served(COMPUTER_NAME, "computer", {}, Guid(b"C" * 16), **more)


def manager_entry() -> Entry:
    return served(MANAGER_NAME, "mSMQConfiguration", {}, MANAGER)


def without(entry: Entry, *attributes: str) -> Entry:
    """The entry as one sees it who may not read some attributes."""
    left = {
        name: values
        for name, values in entry.attributes.items()
        if name not in {attribute.lower() for attribute in attributes}
    }
    return Entry(entry.name, entry.identifier, entry.classes, left)
