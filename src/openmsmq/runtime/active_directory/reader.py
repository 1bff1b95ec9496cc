"""Reads all entries of an enterprise, or those that have changed since it was last read.

What was deleted is found by comparing identifiers with those that were there: the entries of
deleted objects are shown to administrators only, on request, and not for ever, and objects also
go when a right to see them is taken away. Members of groups, references to deleted entries, and
names below something that is moved change without a trace, so these entries are read again. Then
all objects are made anew from the entries, and compared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from openmsmq.model.identity import Guid
from openmsmq.model.names.parts import fold
from openmsmq.runtime.active_directory.mapping.entries import Entry, parent_name
from openmsmq.runtime.active_directory.mapping.image import Entries
from openmsmq.runtime.active_directory.mapping.lists import ALIAS_CLASS, GROUP_CLASS, lists_among
from openmsmq.runtime.active_directory.mapping.managers import COMPUTER_CLASS, MANAGER_CLASS
from openmsmq.runtime.active_directory.mapping.queues import QUEUE_CLASS
from openmsmq.runtime.active_directory.mapping.topology import (
    ENTERPRISE_CLASS,
    LINK_CLASS,
    SITE_CLASS,
)
from openmsmq.runtime.active_directory.session import Session

LISTS_MAX_DEPTH: Final = 32
"""How deep lists may be members of lists. [ours]"""

_CONFIGURATION: Final = (
    f"(|(objectClass={ENTERPRISE_CLASS})(objectClass={SITE_CLASS})(objectClass={LINK_CLASS}))"
)
_DOMAIN: Final = (
    f"(|(objectClass={MANAGER_CLASS})(objectClass={QUEUE_CLASS})(objectClass={ALIAS_CLASS})"
    "(&(objectClass=user)(mSMQSignCertificates=*)))"
)
_REFERENCES: Final = (
    "mSMQOutRoutingServers", "mSMQInRoutingServers", "mSMQSiteGates", "mSMQSite1", "mSMQSite2",
)  # fmt: skip
_BESIDE: Final = f"(|(objectClass={COMPUTER_CLASS})(objectClass={GROUP_CLASS}))"
"""Entries that matter only because of others: computers of queue managers, and lists."""


async def read_everything(session: Session) -> Entries:
    """Read all entries.

    MQDSSM 3.1.6.15 looks for queue managers, queues and users in the configuration, where a real
    server has none of them; they are in the domain.
    """
    found = await session.search(session.configuration, _CONFIGURATION)
    found += await session.search(session.base, _DOMAIN)
    return await _completed(session, found)


async def read_changes(session: Session, known: Entries, since: int) -> Entries:
    """Read what has changed after the change `since`, and give all entries as they are now."""
    changed = []
    names: dict[str, dict[Guid, str]] = {}
    for base, condition in ((session.configuration, _CONFIGURATION), (session.base, _DOMAIN)):
        changed += await session.search(base, _since(condition, since))
        names[base] = await session.names(base, condition)
    present = names[session.configuration] | names[session.base]
    beside = await session.search(session.domain, _since(_BESIDE, since))
    computers = {
        fold(parent_name(entry.name))
        for identifier, entry in known.of_class(MANAGER_CLASS).items()
        if identifier in present
    }
    gone = (known.of_class(MANAGER_CLASS) | known.of_class(SITE_CLASS)).keys() - present.keys()
    # Two things change without a trace, so that these entries are read again: the name of an
    # entry when something above it is moved, and a reference when what it leads to is deleted.
    entries = {
        identifier: entry
        for identifier, entry in known.by_identifier.items()
        if (present.get(identifier) == entry.name and not _refers_to(entry, gone))
        or fold(entry.name) in computers
    }
    # The members of a group go without a trace, so all that were lists are read again.
    lists = await session.find_many(known.of_class(GROUP_CLASS))
    entries |= {entry.identifier: entry for entry in (*lists, *beside, *changed)}
    # What this user may see only since then has not changed itself either.
    for base, there in names.items():
        missing = there.keys() - entries.keys()
        entries |= {entry.identifier: entry for entry in await session.find_many(missing, base)}
    return await _completed(session, entries.values())


async def has_changed(session: Session, since: int) -> bool:
    """Return whether an entry was created or changed after the change `since`."""
    for base, condition in ((session.configuration, _CONFIGURATION), (session.base, _DOMAIN)):
        if await session.names(base, _since(condition, since)):
            return True
    return False


def _refers_to(entry: Entry, gone: Collection[Guid]) -> bool:
    return bool(gone) and any(
        identifier in gone
        for attribute in _REFERENCES
        for identifier in entry.references(attribute)
    )


def _since(condition: str, number: int) -> str:
    return f"(&{condition}(uSNChanged>={number + 1}))"


async def _completed(session: Session, found: Iterable[Entry]) -> Entries:
    """Add the computers of queue managers and the groups that queues are in; drop all others."""
    entries = Entries(found)
    computers = {
        fold(name): name
        for entry in entries.of_class(MANAGER_CLASS).values()
        for name in (parent_name(entry.name),)
    }
    missing = [name for name in computers.values() if entries.named(name) is None]
    added = await session.get_many(missing)
    entries = Entries((*entries.by_identifier.values(), *added))
    groups = await _groups(session, entries)
    lists = lists_among(groups, entries.of_class(QUEUE_CLASS), entries.of_class(ALIAS_CLASS))
    return Entries(
        (
            *(
                entry
                for entry in entries.by_identifier.values()
                if not entry.is_a(GROUP_CLASS)
                and (
                    not entry.is_a(COMPUTER_CLASS)
                    or fold(entry.name) in computers
                    or entry.value("mSMQSignCertificates") is not None
                )
            ),
            *lists.values(),
        )
    )


async def _groups(session: Session, entries: Entries) -> dict[Guid, Entry]:
    groups = entries.of_class(GROUP_CLASS)
    members = [*entries.of_class(QUEUE_CLASS).values(), *entries.of_class(ALIAS_CLASS).values()]
    members += groups.values()
    for _ in range(LISTS_MAX_DEPTH):
        above = {group for member in members for group in member.references("memberOf")}
        members = await session.find_many(above - groups.keys())
        groups |= {entry.identifier: entry for entry in members}
        if not members:
            break
    return groups
