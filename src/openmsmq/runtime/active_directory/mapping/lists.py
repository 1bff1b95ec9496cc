"""Distribution lists: groups of queues, and aliases, which are lists of one. [MQDSSM 3.1.6.8-9]

A group is a list only when all of its members are queues, aliases or such groups: the domain is
full of groups that are about people. An alias has the format name of any queue.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from openmsmq.model.identity import Guid
from openmsmq.model.topology import DistributionList
from openmsmq.runtime.active_directory.mapping.entries import (
    Attributes,
    Entry,
    Malformed,
    reference_values,
    text_value,
)

GROUP_CLASS: Final = "group"
ALIAS_CLASS: Final = "msMQ-Custom-Recipient"
ALIAS_ATTRIBUTE: Final = "msMQ-Recipient-FormatName"

ATTRIBUTES: Final = (ALIAS_ATTRIBUTE, "groupType", "memberOf")

MEMBERS_PER_ANSWER_COUNT: Final = 1500
"""Members that Active Directory gives at once. [MS-ADTS 3.1.1.3.4.6, MaxValRange]"""

UNIVERSAL_DISTRIBUTION_GROUP: Final = 8
"""A group that grants no rights and can have members of all domains. [MS-ADTS 6.1.4.10]"""

_PUBLIC: Final = "PUBLIC="
_LIST: Final = "DL="


def read_alias(entry: Entry) -> DistributionList:
    """Read an alias: a list whose one member is the queue that it stands for."""
    return DistributionList(
        identifier=entry.identifier,
        name=entry.text("cn"),
        members=(entry.needed(ALIAS_ATTRIBUTE).decode("utf-8", "replace"),),
        directory_name=entry.name,
    )


def alias_attributes(alias: DistributionList) -> Attributes:
    """Return the attributes of an alias."""
    if len(alias.members) != 1:
        raise Malformed(f"the alias {alias.name} stands for one queue, not {len(alias.members)}")
    return {ALIAS_ATTRIBUTE: text_value(alias.members[0])}


def lists_among(
    groups: Mapping[Guid, Entry], queues: Collection[Guid], aliases: Collection[Guid]
) -> dict[Guid, Entry]:
    """Return the groups that are distribution lists. Groups may contain each other in circles."""
    found = {
        identifier: group for identifier, group in groups.items() if group.references("member")
    }
    while True:
        wrong = [
            identifier
            for identifier, group in found.items()
            if not all(
                member in queues or member in aliases or member in found
                for member in group.references("member")
            )
        ]
        if not wrong:
            return found
        for identifier in wrong:
            del found[identifier]


def read_group(entry: Entry, queues: Collection[Guid]) -> DistributionList:
    """Read a list; its members that are no queues are lists themselves."""
    return DistributionList(
        identifier=entry.identifier,
        name=entry.text("cn"),
        members=tuple(
            f"{_PUBLIC if member in queues else _LIST}{member}"
            for member in entry.references("member")
        ),
        directory_name=entry.name,
    )


def group_attributes(group: DistributionList) -> Attributes:
    """Return the attributes of a list of public queues and other lists."""
    return {"member": reference_values(map(_member, group.members))}


def is_alias(value: DistributionList) -> bool:
    """Return whether a list can only be an alias: it has one member, that no group could have."""
    return len(value.members) == 1 and _identifier(value.members[0]) is None


def _member(name: str) -> Guid:
    identifier = _identifier(name)
    if identifier is None:
        raise Malformed(
            f"{name} cannot be a member of a list in Active Directory: make an alias for it, "
            "which is a list of this one queue, and take DL= with the alias's identifier"
        )
    return identifier


def _identifier(name: str) -> Guid | None:
    for prefix in (_PUBLIC, _LIST):
        if name[: len(prefix)].upper() == prefix:
            try:
                return Guid.parse(name[len(prefix) :].partition("@")[0])
            except ValueError:
                return None
    return None
