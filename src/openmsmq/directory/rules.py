"""What must hold in a directory, and refusing changes after which it would not.

Changes that belong together are checked together: what counts is the directory after all of them,
so their order does not matter. Only what they touch is looked at, and what refers to that, so an
old flaw elsewhere does not stand in the way of its own repair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from openmsmq.directory.codec import encode_object
from openmsmq.directory.image import DirectoryImage, queue_part
from openmsmq.directory.limits import (
    DIRECTORY_OBJECT_MAX_BYTES,
    DIRECTORY_OBJECTS_MAX_COUNT,
    LIST_MEMBERS_MAX_COUNT,
)
from openmsmq.directory.naming import WORDS, keys_of, name_of, reference_name
from openmsmq.model.directory import Change, DirectoryObject, ObjectKind, Removal, kind_of
from openmsmq.model.errors import (
    IllegalPathName,
    IllegalPropertyValue,
    MsmqError,
    PropertyNotAllowed,
    QueueExists,
)
from openmsmq.model.identity import NIL_GUID, Guid
from openmsmq.model.limits import (
    COMPUTER_NAME_MAX_CHARACTERS,
    CONNECTED_NETWORKS_MAX_COUNT,
    LINK_COST_MAX_UNITS,
    LINK_COST_MIN_UNITS,
)
from openmsmq.model.names import (
    DistributionListFormatName,
    FormatName,
    IllegalName,
    MultipleFormatName,
    PublicFormatName,
    parse_format_name,
)
from openmsmq.model.names.errors import IllegalPathName as IllegalPathText
from openmsmq.model.names.parts import check_computer_name, check_queue_name, excess_position, fold
from openmsmq.model.queue import QUOTAS, QueueKind, QueueProperties
from openmsmq.model.topology import (
    DistributionList,
    EnterpriseInfo,
    QueueManagerInfo,
    RoutingLink,
    UserInfo,
)

ROUTING_SERVERS_MAX_COUNT: Final = 16
"""In-routing servers of a queue manager, and as many out-routing servers."""

GATES_MAX_COUNT: Final = 64
"""Gates of one routing link, on both of its sides together."""

MANAGER_SITES_MAX_COUNT: Final = 32
"""Sites to which one queue manager belongs."""

ADDRESSES_MAX_COUNT: Final = 32
"""Addresses of one queue manager."""

NAME_MAX_CHARACTERS: Final = COMPUTER_NAME_MAX_CHARACTERS
"""UTF-16 units in the name of an enterprise, a site, a connected network or a list."""

_MACHINE_EXISTS: Final = 0xC00E0040
_DIRECTORY_FULL: Final = 0xC00E0042
_ENTERPRISE_OPERATION: Final = 0xC00E0071

_Key: TypeAlias = tuple[ObjectKind, Guid]


def check(image: DirectoryImage, changes: Iterable[Change]) -> None:
    """Refuse changes that would leave the directory inconsistent; the error says which and why."""
    changes = tuple(changes)
    after = image.changed(changes)
    if len(after) > max(len(image), DIRECTORY_OBJECTS_MAX_COUNT):
        raise MsmqError(
            f"it would hold {len(after)} objects, {DIRECTORY_OBJECTS_MAX_COUNT} are allowed",
            code=_DIRECTORY_FULL,
        )
    # A dictionary, because it keeps the order: of several mistakes the first is reported.
    touched = dict.fromkeys(map(_key_of, changes))
    rules = _Rules(image, after)
    for key in touched:
        value = after.get(*key)
        if value is not None:
            rules.check_object(value)
    rules.check_unique({kind for kind, _ in touched})
    was_there = {key for key in touched if image.get(*key) is not None}
    for value in after if was_there else ():
        if not was_there.isdisjoint(references_of(value)) and _key_of(value) not in touched:
            rules.check_references(value)


def references_of(value: DirectoryObject) -> Iterator[_Key]:
    """Yield everything that an object refers to by identifier."""
    match value:
        case RoutingLink():
            yield from ((ObjectKind.SITE, site) for site in (value.site1, value.site2))
            yield from ((ObjectKind.MANAGER, gate) for gate in value.site_gates)
        case QueueManagerInfo():
            yield from ((ObjectKind.SITE, site) for site in value.sites)
            yield from ((ObjectKind.NETWORK, network) for network in value.connected_networks)
            for server in (*value.in_routing_servers, *value.out_routing_servers):
                yield ObjectKind.MANAGER, server
        case QueueProperties():
            yield ObjectKind.MANAGER, value.manager
        case DistributionList():
            yield from filter(None, map(_member_key, value.members))
        case _:
            pass


def _key_of(change: Change) -> _Key:
    kind = change.kind if isinstance(change, Removal) else kind_of(change)
    return kind, change.identifier


def _member_key(member: str) -> _Key | None:
    """Return what a member refers to in this directory: a public queue or a list, or nothing."""
    try:
        name = parse_format_name(member)
    except MsmqError:
        return None
    match name:
        case PublicFormatName():
            return ObjectKind.QUEUE, name.queue
        case DistributionListFormatName(domain=None):
            return ObjectKind.LIST, name.distribution_list
        case _:
            return None


class _Rules:
    """The rules for a directory before and after changes."""

    def __init__(self, before: DirectoryImage, after: DirectoryImage) -> None:
        self._before = before
        self._after = after

    def check_object(self, value: DirectoryObject) -> None:
        """Check an object as it is after the changes."""
        who = self._who(value)
        if value.identifier == NIL_GUID:
            raise IllegalPropertyValue(f"{who} needs an identifier that is not nil")
        self._check_size(value, who)
        match value:
            case RoutingLink():
                self._check_link(value, who)
            case QueueManagerInfo():
                self._check_manager(value, who)
            case QueueProperties():
                self._check_queue(value, who)
            case DistributionList():
                _check_name(value.name, who)
                self._check_list(value, who)
            case UserInfo():
                if not value.security_identifier:
                    raise IllegalPropertyValue(f"{who} has no security identifier")
            case EnterpriseInfo(name=""):
                pass
            case _:
                _check_name(value.name, who)
        self.check_references(value)

    def check_references(self, value: DirectoryObject) -> None:
        """Check that what an object refers to is there, and is what it is needed for."""
        who = self._who(value)
        for kind, identifier in references_of(value):
            if self._after.get(kind, identifier) is None:
                raise MsmqError(self._missing(who, kind, identifier))
        match value:
            case RoutingLink():
                self._check_gates(value, who)
            case QueueManagerInfo():
                self._check_servers(value, who)
            case QueueProperties():
                self._check_path(value, who)
            case DistributionList():
                self._check_circle(value, who)
            case _:
                pass

    def check_unique(self, kinds: set[ObjectKind]) -> None:
        """Check that no two objects of these kinds have one name."""
        if ObjectKind.ENTERPRISE in kinds and len(self._after.of_kind(ObjectKind.ENTERPRISE)) > 1:
            raise MsmqError(
                "a directory has one enterprise; change that one", code=_ENTERPRISE_OPERATION
            )
        for kind in ObjectKind:
            if kind is ObjectKind.ENTERPRISE or kind not in kinds:
                continue
            taken: dict[object, DirectoryObject] = {}
            for value in self._after.of_kind(kind).values():
                for word in keys_of(value):
                    first = taken.setdefault(word, value)
                    if first is not value:
                        raise self._twice(kind, first, value)

    def _twice(self, kind: ObjectKind, one: DirectoryObject, two: DirectoryObject) -> MsmqError:
        name = name_of(two, self._after)
        identifiers = f"{one.identifier} and {two.identifier}"
        if kind is ObjectKind.QUEUE:
            return QueueExists(f"{name} ({identifiers})")
        if kind is ObjectKind.MANAGER:
            return MsmqError(f"{name} ({identifiers})", code=_MACHINE_EXISTS)
        what = f"{WORDS[kind]} {name}"
        if kind is ObjectKind.LINK:
            return MsmqError(
                f"there would be a second {what} ({identifiers}); change the cost of the first"
            )
        return MsmqError(f"there would be a second {what} ({identifiers}); choose another name")

    def _who(self, value: DirectoryObject) -> str:
        image = self._after
        if isinstance(value, RoutingLink) and not {value.site1, value.site2} <= image.sites.keys():
            # It is called by its sites, of which one is about to go.
            image = self._before
        return f"{WORDS[kind_of(value)]} {name_of(value, image)}"

    def _missing(self, who: str, kind: ObjectKind, identifier: Guid) -> str:
        if self._before.get(kind, identifier) is None:
            return f"{who} refers to the {WORDS[kind]} {identifier}, which is not in the directory"
        name = reference_name(self._before, kind, identifier)
        return (
            f"{WORDS[kind]} {name} cannot be removed, because {who} refers to it; change or "
            "remove that too"
        )

    def _check_size(self, value: DirectoryObject, who: str) -> None:
        try:
            size = len(encode_object(value))
        except (UnicodeEncodeError, OverflowError):
            raise IllegalPropertyValue(
                f"{who} has a text or a number that cannot be stored"
            ) from None
        if size > DIRECTORY_OBJECT_MAX_BYTES:
            raise IllegalPropertyValue(
                f"{who} has {size} bytes, {DIRECTORY_OBJECT_MAX_BYTES} are allowed"
            )

    def _check_link(self, link: RoutingLink, who: str) -> None:
        if link.site1 == link.site2:
            raise IllegalPropertyValue(f"{who} leads from a site to itself; a link joins two sites")
        if not link.usable:
            raise IllegalPropertyValue(
                f"{who} costs {link.cost}; a cost is from {LINK_COST_MIN_UNITS} to "
                f"{LINK_COST_MAX_UNITS}"
            )
        _check_count(link.site_gates, GATES_MAX_COUNT, who, "gates")

    def _check_gates(self, link: RoutingLink, who: str) -> None:
        ends = {link.site1, link.site2}
        for identifier in link.site_gates:
            gate = self._after.managers[identifier]
            if not gate.routing_server:
                raise MsmqError(
                    f"queue manager {gate.computer_name} is a gate of the {who}, so it must be a "
                    "routing server"
                )
            if ends.isdisjoint(gate.sites):
                raise MsmqError(
                    f"queue manager {gate.computer_name} is a gate of the {who}, so it must belong "
                    "to one of these sites"
                )

    def _check_manager(self, manager: QueueManagerInfo, who: str) -> None:
        for name in filter(None, (manager.computer_name, manager.qualified_computer_name)):
            try:
                check_computer_name(name, IllegalPathText)
            except IllegalName as error:
                raise IllegalPropertyValue(f"{who}: {error.detail}") from None
        if not manager.computer_name:
            raise IllegalPropertyValue(f"{who} has no computer name")
        for what in QUOTAS:
            if getattr(manager, what) >> 32:
                raise IllegalPropertyValue(f"{who}: {what} exceeds 32 bits")
        _check_count(manager.sites, MANAGER_SITES_MAX_COUNT, who, "sites")
        networks = manager.connected_networks
        _check_count(networks, CONNECTED_NETWORKS_MAX_COUNT, who, "connected networks")
        _check_count(manager.addresses, ADDRESSES_MAX_COUNT, who, "addresses")
        for servers, what in _servers(manager):
            _check_count(servers, ROUTING_SERVERS_MAX_COUNT, who, f"{what}s")

    def _check_servers(self, manager: QueueManagerInfo, who: str) -> None:
        for servers, what in _servers(manager):
            for identifier in servers:
                server = self._after.managers[identifier]
                if server.identifier == manager.identifier:
                    raise MsmqError(f"{who} cannot be its own {what}")
                if not server.routing_server:
                    raise MsmqError(
                        f"queue manager {server.computer_name} is an {what} of the {who}, so it "
                        "must be a routing server"
                    )

    def _check_queue(self, queue: QueueProperties, who: str) -> None:
        if queue.kind is not QueueKind.PUBLIC:
            raise IllegalPropertyValue(f"{queue.path_name} is not public; others are not published")
        check_queue_name(queue_part(queue.path_name), IllegalPathText)
        old = self._before.queues.get(queue.identifier)
        if old is None:
            return
        if old.transactional != queue.transactional:
            raise PropertyNotAllowed(f"{who}: transactional never changes; make another queue")
        moved = old.manager != queue.manager
        if moved or fold(queue_part(old.path_name)) != fold(queue_part(queue.path_name)):
            raise PropertyNotAllowed(f"{who}: the path name never changes; make another queue")

    def _check_path(self, queue: QueueProperties, who: str) -> None:
        owner = self._after.managers[queue.manager]
        computer = queue.path_name.rpartition("\\")[0]
        if fold(computer) not in keys_of(owner):
            raise IllegalPathName(
                f"{who} is published for the queue manager {owner.computer_name}; its path name "
                f"must begin with {owner.computer_name}\\"
            )

    def _check_list(self, value: DistributionList, who: str) -> None:
        _check_count(value.members, LIST_MEMBERS_MAX_COUNT, who, "members")
        for member in value.members:
            name: FormatName = parse_format_name(member)
            if isinstance(name, MultipleFormatName) or not name.openable_for_send:
                raise IllegalPropertyValue(f"{who}: nobody can send to its member {member}")

    def _check_circle(self, value: DistributionList, who: str) -> None:
        """Refuse a list that contains itself, by way of others too: it would never end."""
        seen: set[Guid] = set()
        waiting = [value]
        while waiting:
            for kind, identifier in references_of(waiting.pop()):
                if kind is ObjectKind.LIST and identifier not in seen:
                    seen.add(identifier)
                    waiting.extend(filter(None, [self._after.lists.get(identifier)]))
        if value.identifier in seen:
            raise MsmqError(f"{who} would contain itself")


def _servers(manager: QueueManagerInfo) -> tuple[tuple[tuple[Guid, ...], str], ...]:
    return (
        (manager.in_routing_servers, "in-routing server"),
        (manager.out_routing_servers, "out-routing server"),
    )


def _check_count(values: Sequence[object], count_max: int, who: str, what: str) -> None:
    if len(values) > count_max:
        raise IllegalPropertyValue(f"{who} has {len(values)} {what}, {count_max} are allowed")
    if len(set(values)) != len(values):
        raise IllegalPropertyValue(f"{who} names one of its {what} twice")


def _check_name(name: str, who: str) -> None:
    if not name.strip():
        raise IllegalPropertyValue(f"{who} has no name")
    if not name.isprintable() or excess_position(name, NAME_MAX_CHARACTERS) is not None:
        raise IllegalPropertyValue(
            f"{who}: a name has at most {NAME_MAX_CHARACTERS} characters, all of them printable"
        )
