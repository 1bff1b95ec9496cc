"""From all entries to all objects of the model, and what differs between two such sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

import msgspec

from openmsmq.model.directory import Change, DirectoryObject, ObjectKind, Removal, kind_of
from openmsmq.model.identity import Guid
from openmsmq.model.names.parts import fold
from openmsmq.runtime.active_directory.mapping.entries import Entry, Malformed, parent_name
from openmsmq.runtime.active_directory.mapping.lists import (
    ALIAS_CLASS,
    GROUP_CLASS,
    lists_among,
    read_alias,
    read_group,
)
from openmsmq.runtime.active_directory.mapping.managers import (
    COMPUTER_CLASS,
    MANAGER_CLASS,
    read_manager,
)
from openmsmq.runtime.active_directory.mapping.queues import QUEUE_CLASS, read_queue
from openmsmq.runtime.active_directory.mapping.topology import (
    ENTERPRISE_CLASS,
    LINK_CLASS,
    SITE_CLASS,
    read_enterprise,
    read_link,
    read_site,
)
from openmsmq.runtime.active_directory.mapping.users import USER_CLASS, read_user

Key: TypeAlias = tuple[ObjectKind, Guid]
Objects: TypeAlias = dict[Key, DirectoryObject]


class Reading(msgspec.Struct, frozen=True):
    """What was made of entries."""

    objects: Objects
    problems: tuple[str, ...] = ()
    """Why entries were passed over, one sentence each."""


class Entries:
    """Entries that can be found by their identifier and by their name."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.by_identifier = {entry.identifier: entry for entry in entries}
        self._by_name = {fold(entry.name): entry for entry in self.by_identifier.values()}

    def of_class(self, class_name: str) -> dict[Guid, Entry]:
        """Return the entries of a class."""
        return {
            identifier: entry
            for identifier, entry in self.by_identifier.items()
            if entry.is_a(class_name)
        }

    def named(self, name: str) -> Entry | None:
        """Find an entry by its distinguished name."""
        return self._by_name.get(fold(name))

    def above(self, entry: Entry, class_name: str) -> Entry:
        """Find what an entry stands below, which must be of a class."""
        found = self.named(parent_name(entry.name))
        if found is None or not found.is_a(class_name):
            raise Malformed(f"{entry.name} stands below no {class_name} that this user may read")
        return found


def read_all(entries: Entries, forest: str) -> Reading:
    """Make all objects. An entry that cannot be read costs only itself."""
    objects: Objects = {}
    problems: list[str] = []
    for make in _makers(entries, forest):
        try:
            found = make()
        except Malformed as problem:
            problems.append(str(problem))
        else:
            objects[kind_of(found), found.identifier] = found
    return Reading(objects, tuple(problems))


def _makers(entries: Entries, forest: str) -> Iterator[Callable[[], DirectoryObject]]:
    queues = entries.of_class(QUEUE_CLASS)
    aliases = entries.of_class(ALIAS_CLASS)
    lists = lists_among(entries.of_class(GROUP_CLASS), queues, aliases)
    for entry in entries.by_identifier.values():
        if entry.is_a(ENTERPRISE_CLASS):
            yield lambda entry=entry: read_enterprise(entry, forest)  # type: ignore[misc]
        elif entry.is_a(SITE_CLASS):
            yield lambda entry=entry: read_site(entry)  # type: ignore[misc]
        elif entry.is_a(LINK_CLASS):
            yield lambda entry=entry: read_link(entry)  # type: ignore[misc]
        elif entry.is_a(MANAGER_CLASS):
            yield lambda entry=entry: manager_of(entry, entries)  # type: ignore[misc]
        elif entry.is_a(QUEUE_CLASS):
            yield lambda entry=entry: queue_of(entry, entries)  # type: ignore[misc]
        elif entry.is_a(ALIAS_CLASS):
            yield lambda entry=entry: read_alias(entry)  # type: ignore[misc]
        elif entry.is_a(USER_CLASS) and entry.value("mSMQSignCertificates") is not None:
            yield lambda entry=entry: read_user(entry)  # type: ignore[misc]
    for entry in lists.values():
        yield lambda entry=entry: read_group(entry, queues)  # type: ignore[misc]


def manager_of(entry: Entry, entries: Entries) -> DirectoryObject:
    """Read a queue manager whose computer is among the entries."""
    return read_manager(entry, entries.above(entry, COMPUTER_CLASS))


def queue_of(entry: Entry, entries: Entries) -> DirectoryObject:
    """Read a queue whose queue manager and computer are among the entries."""
    manager = entries.above(entry, MANAGER_CLASS)
    return read_queue(entry, manager, entries.above(manager, COMPUTER_CLASS))


def changes_between(
    old: Mapping[Key, DirectoryObject], new: Mapping[Key, DirectoryObject]
) -> tuple[Change, ...]:
    """Return what leads from one set of objects to another; what is gone comes first."""
    gone = [Removal(*key) for key in old if key not in new]
    return (*gone, *(found for key, found in new.items() if old.get(key) != found))
