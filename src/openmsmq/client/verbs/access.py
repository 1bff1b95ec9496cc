"""What an application can ask about rights, as steps.

Whose rights are meant is said by a `Sid`, or as people say it: `everyone`, `anonymous`,
`authenticated`, `administrators`, `user:1000`, `group:100` or `S-1-5-21-1-2-3-1000`. Rights are
said by their words, such as `send` and `receive`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from openmsmq.api import messages as api
from openmsmq.client.accounts import find_sid
from openmsmq.client.queue import QueueHandle
from openmsmq.client.steps import Steps, ask
from openmsmq.client.verbs.manager import ManagerHandle
from openmsmq.model.errors import IllegalSecurityDescriptor
from openmsmq.security.access import access
from openmsmq.security.access.access import (
    MANAGER,
    QUEUE,
    Kind,
    manager_descriptor,
    queue_descriptor,
)
from openmsmq.security.access.descriptors import BadDescriptor, Descriptor, decode, encode_given
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


Secured: TypeAlias = QueueHandle | ManagerHandle
"""What has an owner and rights."""


def security(target: Secured) -> Steps[Security]:
    """Ask who may do what with it."""
    return (yield from _security(_name(target)))


def set_security(target: Secured, descriptor: Descriptor) -> Steps[None]:
    """Replace its security descriptor; without an owner the owner stays."""
    yield from ask(api.SetSecurity(_name(target), encode_given(descriptor)))


def grant(target: Secured, who: Who, *rights: str) -> Steps[Security]:
    """Allow somebody something with it; gives the rights as they are then."""
    return (yield from _edit(_name(target), access.grant, who, rights))


def deny(target: Secured, who: Who, *rights: str) -> Steps[Security]:
    """Deny somebody something with it, whatever others allow."""
    return (yield from _edit(_name(target), access.deny, who, rights))


def revoke(target: Secured, who: Who, *rights: str) -> Steps[Security]:
    """Take back what was granted or denied to somebody by name; without rights, all of it."""
    return (yield from _edit(_name(target), access.revoke, who, rights))


def reset_security(target: Secured) -> Steps[Security]:
    """Reset it to the rights of a new one; its owner stays."""
    name = _name(target)
    before = yield from _security(name)
    if name:
        return (yield from _write(name, queue_descriptor(before.owner)))
    wanted = msgspec.structs.replace(manager_descriptor(), owner=bytes(before.owner))
    return (yield from _write(name, wanted))


def set_owner(target: Secured, who: Who) -> Steps[Security]:
    """Make somebody its owner."""
    name = _name(target)
    user = who if isinstance(who, Sid) else find_sid(who)
    before = yield from _security(name)
    return (yield from _write(name, msgspec.structs.replace(before.descriptor, owner=bytes(user))))


def take_ownership(target: Secured) -> Steps[None]:
    """Become its owner."""
    yield from ask(api.TakeOwnership(_name(target)))


def caller(manager: ManagerHandle) -> Steps[api.CallerStatus]:
    """Ask who the queue manager takes this application for."""
    return (yield from ask(api.GetCaller()))


def _name(target: Secured) -> str:
    """Return what requests about rights say: the name of a queue, or nothing for the manager."""
    return target.name if isinstance(target, QueueHandle) else ""


def _security(name: str) -> Steps[Security]:
    found = yield from ask(api.GetSecurity(name))
    try:
        return Security(decode(found.descriptor), found.is_default)
    except BadDescriptor as error:
        raise IllegalSecurityDescriptor(f"{name or 'the queue manager'}: {error}") from None


def _edit(name: str, edit: _Edit, who: Who, rights: tuple[str, ...]) -> Steps[Security]:
    words, kind = _of(name)
    # To take back without saying what is to take back everything.
    mask = 0xFFFFFFFF if not rights and edit is access.revoke else mask_of(rights, words)
    user = who if isinstance(who, Sid) else find_sid(who)
    before = yield from _security(name)
    plain = access.plain(before.descriptor, kind)
    return (yield from _write(name, edit(plain, user, mask)))


def _write(name: str, wanted: Descriptor) -> Steps[Security]:
    yield from ask(api.SetSecurity(name, encode_given(wanted)))
    return Security(wanted, is_default=False)


def _of(name: str) -> tuple[Mapping[str, int], Kind]:
    return (QUEUE_WORDS, QUEUE) if name else (MANAGER_WORDS, MANAGER)
