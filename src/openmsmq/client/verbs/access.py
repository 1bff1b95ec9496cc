"""What an application can ask about rights, as plans.

Whose rights are meant is said by a `Sid`, or as people say it: `everyone`, `anonymous`,
`authenticated`, `administrators`, `user:1000`, `group:100` or `S-1-5-21-1-2-3-1000`. Rights are
said by their words, such as `send` and `receive`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from openmsmq.api import messages as api
from openmsmq.client.plans import Plan, ask
from openmsmq.client.queue import QueueHandle
from openmsmq.client.verbs.manager import ManagerHandle
from openmsmq.client.who import find_sid
from openmsmq.model.errors import IllegalSecurityDescriptor
from openmsmq.security.access import access
from openmsmq.security.access.access import (
    MANAGER,
    QUEUE,
    Kind,
    manager_descriptor,
    queue_descriptor,
)
from openmsmq.security.access.descriptors import BadDescriptor, Descriptor, decode, encode
from openmsmq.security.access.rights import MANAGER_WORDS, QUEUE_WORDS, mask_of
from openmsmq.security.access.sids import Sid

Who: TypeAlias = Sid | str
_Edit: TypeAlias = Callable[[Descriptor, Sid, int], Descriptor]


class Security(msgspec.Struct, frozen=True):
    """Whose something is, and who may do what with it."""

    descriptor: Descriptor
    is_default: bool
    """Whether nobody has changed it."""

    @property
    def owner(self) -> Sid:
        """Whose it is."""
        return Sid(self.descriptor.owner)


def security(queue: QueueHandle) -> Plan[Security]:
    """Ask who may do what with a queue."""
    return (yield from _security(queue.name))


def manager_security(manager: ManagerHandle) -> Plan[Security]:  # noqa: ARG001
    """Ask who may do what with the queue manager."""
    return (yield from _security(""))


def set_security(queue: QueueHandle, descriptor: Descriptor) -> Plan[None]:
    """Give a queue another security descriptor; without an owner the owner stays."""
    yield from ask(api.SetSecurity(queue.name, _written(descriptor)))


def set_manager_security(
    manager: ManagerHandle,  # noqa: ARG001
    descriptor: Descriptor,
) -> Plan[None]:
    """Return the queue manager another security descriptor; without an owner the owner stays."""
    yield from ask(api.SetSecurity("", _written(descriptor)))


def grant(queue: QueueHandle, who: Who, *rights: str) -> Plan[Security]:
    """Allow somebody something with a queue; gives the rights as they are then."""
    return (yield from _edit(queue.name, access.grant, who, rights))


def deny(queue: QueueHandle, who: Who, *rights: str) -> Plan[Security]:
    """Deny somebody something with a queue, whatever others allow."""
    return (yield from _edit(queue.name, access.deny, who, rights))


def revoke(queue: QueueHandle, who: Who, *rights: str) -> Plan[Security]:
    """Take back what was granted or denied to somebody by name; without rights, all of it."""
    return (yield from _edit(queue.name, access.revoke, who, rights))


def grant_on_manager(
    manager: ManagerHandle,  # noqa: ARG001
    who: Who,
    *rights: str,
) -> Plan[Security]:
    """Allow somebody something with the queue manager; gives the rights as they are then."""
    return (yield from _edit("", access.grant, who, rights))


def deny_on_manager(
    manager: ManagerHandle,  # noqa: ARG001
    who: Who,
    *rights: str,
) -> Plan[Security]:
    """Deny somebody something with the queue manager, whatever others allow."""
    return (yield from _edit("", access.deny, who, rights))


def revoke_on_manager(
    manager: ManagerHandle,  # noqa: ARG001
    who: Who,
    *rights: str,
) -> Plan[Security]:
    """Take back what was granted or denied to somebody by name; without rights, all of it."""
    return (yield from _edit("", access.revoke, who, rights))


def reset_security(queue: QueueHandle) -> Plan[Security]:
    """Give a queue the rights of a new one; its owner stays."""
    before = yield from _security(queue.name)
    return (yield from _write(queue.name, queue_descriptor(before.owner)))


def reset_manager_security(manager: ManagerHandle) -> Plan[Security]:  # noqa: ARG001
    """Return the queue manager the rights of a new one; its owner stays."""
    before = yield from _security("")
    wanted = msgspec.structs.replace(manager_descriptor(), owner=bytes(before.owner))
    return (yield from _write("", wanted))


def set_owner(queue: QueueHandle, who: Who) -> Plan[Security]:
    """Return a queue to somebody."""
    return (yield from _give(queue.name, who))


def set_manager_owner(manager: ManagerHandle, who: Who) -> Plan[Security]:  # noqa: ARG001
    """Return the queue manager to somebody."""
    return (yield from _give("", who))


def take_ownership(queue: QueueHandle) -> Plan[None]:
    """Become the owner of a queue."""
    yield from ask(api.TakeOwnership(queue.name))


def take_manager_ownership(manager: ManagerHandle) -> Plan[None]:  # noqa: ARG001
    """Become the owner of the queue manager."""
    yield from ask(api.TakeOwnership(""))


def caller(manager: ManagerHandle) -> Plan[api.CallerStatus]:  # noqa: ARG001
    """Ask who the queue manager takes this application for."""
    return (yield from ask(api.GetCaller()))


def _security(name: str) -> Plan[Security]:
    found = yield from ask(api.GetSecurity(name))
    try:
        return Security(decode(found.descriptor), found.is_default)
    except BadDescriptor as error:
        raise IllegalSecurityDescriptor(f"{name or 'the queue manager'}: {error}") from None


def _edit(name: str, edit: _Edit, who: Who, rights: tuple[str, ...]) -> Plan[Security]:
    words, kind = _of(name)
    # To take back without saying what is to take back everything.
    mask = 0xFFFFFFFF if not rights and edit is access.revoke else mask_of(rights, words)
    user = who if isinstance(who, Sid) else find_sid(who)
    before = yield from _security(name)
    plain = access.plain(before.descriptor, kind)
    return (yield from _write(name, edit(plain, user, mask)))


def _give(name: str, who: Who) -> Plan[Security]:
    user = who if isinstance(who, Sid) else find_sid(who)
    before = yield from _security(name)
    return (yield from _write(name, msgspec.structs.replace(before.descriptor, owner=bytes(user))))


def _write(name: str, wanted: Descriptor) -> Plan[Security]:
    yield from ask(api.SetSecurity(name, _written(wanted)))
    return Security(wanted, is_default=False)


def _written(descriptor: Descriptor) -> bytes:
    try:
        return encode(descriptor)
    except BadDescriptor as error:
        raise IllegalSecurityDescriptor(str(error)) from None


def _of(name: str) -> tuple[Mapping[str, int], Kind]:
    return (QUEUE_WORDS, QUEUE) if name else (MANAGER_WORDS, MANAGER)
