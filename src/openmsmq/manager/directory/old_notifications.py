"""What a directory service says of changes: version 1 of change notifications. [MQCN 3.3.5.2]

They carry values, because queue managers without LDAP cannot read them. Here nobody takes the
values over: a genuine one is a reason to read the directory, as one of a queue manager is (C-147).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from openmsmq.directory.image import DirectoryImage
from openmsmq.model.directory import Change, ObjectKind, Removal
from openmsmq.model.identity import Guid
from openmsmq.model.queue import QueueProperties
from openmsmq.model.topology import QueueManagerInfo
from openmsmq.wire.bodies.notifications import Command, DirectoryNotification, Property, Update
from openmsmq.wire.errors import EncodeError
from openmsmq.wire.fields.variants import PropertyValue

OBJECT_TYPE_QUEUE: Final = 1
OBJECT_TYPE_MANAGER: Final = 2
ENTERPRISE_SCOPE: Final = 1
"""That all of the enterprise is told. [MQMQ 2.3.13.3]"""

_DELETED_SCOPE: Final = 1403
_DELETED_TYPE: Final = 1404
_SECURITY_BASE: Final = 1000
"""Properties of security are numbered from here on. [MQCN 3.2.5.1]"""
_PER_TYPE: Final = 100
_I4_MAX: Final = 0x7FFF_FFFF


def notification_of(
    change: Change, before: DirectoryImage, server: Guid
) -> DirectoryNotification | None:
    """Say what has changed, as the directory service `server`; None if that cannot be said so."""
    update = _update_of(change, before, server)
    if update is None:
        return None
    try:
        update.encode()
    except EncodeError:
        # A name that the wire cannot carry; its owner hears of it by asking.
        return None
    return DirectoryNotification((update,))


def _update_of(change: Change, before: DirectoryImage, server: Guid) -> Update | None:
    match change:
        case QueueProperties():
            old = before.queues.get(change.identifier)
            if old is None:
                created = tuple(Property(*each) for each in _created(change))
                return Update(Command.CREATE, change.path_name, server, created)
            owner = Property(115, change.manager)
            changed = _differing(_changeable(old), _changeable(change))
            return Update(Command.CHANGE, change.identifier, server, (owner, *changed))
        case QueueManagerInfo() if change.identifier in before.managers:
            said = (Property(202, change.identifier), Property(219, int(change.foreign)))
            manager = before.managers[change.identifier]
            changed = _differing(_limits(manager), _limits(change))
            return Update(Command.CHANGE, change.identifier, server, (*said, *changed))
        case Removal(ObjectKind.QUEUE, identifier):
            gone = (
                Property(_DELETED_SCOPE, ENTERPRISE_SCOPE),
                Property(_DELETED_TYPE, OBJECT_TYPE_QUEUE),
            )
            return Update(Command.DELETE, identifier, server, gone)
        case _:
            return None


def _created(queue: QueueProperties) -> Iterable[tuple[int, PropertyValue]]:
    yield 102, queue.service_type
    yield 101, queue.identifier
    yield from _changeable(queue).items()
    yield 109, min(queue.created_time_s, _I4_MAX)
    yield 110, min(queue.modified_time_s, _I4_MAX)
    yield 114, int(queue.scope)
    yield 103, queue.path_name
    yield 108, queue.label
    yield 113, int(queue.transactional)


def _changeable(queue: QueueProperties) -> dict[int, PropertyValue]:
    """Return what can be changed of a queue, by the number of the property."""
    return {
        104: int(queue.journaling),
        105: queue.quota_kb,
        106: queue.base_priority,
        107: queue.journal_quota_kb,
        1101: queue.security_descriptor,
        111: int(queue.authentication_required),
        112: int(queue.privacy),
    }


def _limits(manager: QueueManagerInfo) -> dict[int, PropertyValue]:
    """Return what can be changed of a queue manager, by the number of the property."""
    return {
        214: manager.quota_kb,
        215: manager.journal_quota_kb,
        1201: manager.security_descriptor,
    }


def _differing(
    old: dict[int, PropertyValue], new: dict[int, PropertyValue]
) -> tuple[Property, ...]:
    return tuple(Property(number, value) for number, value in new.items() if value != old[number])


def is_about_ours(update: Update) -> bool:
    """Whether an update is about a queue or a queue manager. [MQCN 3.2.5.1]"""
    if update.command is Command.DELETE:
        named = update.properties[1:2]
        return bool(named) and named[0].value == OBJECT_TYPE_QUEUE
    if not update.properties:
        return False
    number = update.properties[0].id
    kind = (number - _SECURITY_BASE if number > _SECURITY_BASE else number) // _PER_TYPE
    return kind in (OBJECT_TYPE_QUEUE, OBJECT_TYPE_MANAGER)
