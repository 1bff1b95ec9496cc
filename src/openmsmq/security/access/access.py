"""Who may do what: the check of an access list, the rights of new objects, and changes to lists.

The entries of a list are looked at in their order; the first one that says something about a right
decides about it. [MS-DTYP 2.5.3.2]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from openmsmq.model.access import (
    EnterpriseAccess,
    ManagerAccess,
    NetworkAccess,
    QueueAccess,
    SiteAccess,
)
from openmsmq.security.access.descriptors import AccessEntry, Descriptor, encode
from openmsmq.security.access.sids import ADMINISTRATORS, ANONYMOUS, EVERYONE, OWNER_RIGHTS, Sid

_GENERIC_ALL: Final = 0x10000000
_GENERIC_WRITE: Final = 0x40000000
_GENERIC_READ: Final = 0x80000000
_GENERIC: Final = 0xF0000000


class Kind(msgspec.Struct, frozen=True):
    """A kind of object that has a descriptor, and what the generic rights mean for it."""

    everything: int
    read: int
    write: int

    def specific(self, mask: int) -> int:
        """Replace generic rights by what they stand for."""
        if not mask & _GENERIC:
            return mask
        found = mask & ~_GENERIC
        found |= self.everything if mask & _GENERIC_ALL else 0
        found |= self.read if mask & _GENERIC_READ else 0
        return found | (self.write if mask & _GENERIC_WRITE else 0)


QUEUE: Final = Kind(
    int(QueueAccess.GENERIC_ALL), int(QueueAccess.GENERIC_READ), int(QueueAccess.GENERIC_WRITE)
)
MANAGER: Final = Kind(
    int(ManagerAccess.GENERIC_ALL),
    int(ManagerAccess.GENERIC_READ),
    int(ManagerAccess.GENERIC_WRITE),
)

SITE: Final = Kind(
    int(SiteAccess.GENERIC_ALL), int(SiteAccess.GENERIC_READ), int(SiteAccess.GENERIC_WRITE)
)
ENTERPRISE: Final = Kind(
    int(EnterpriseAccess.GENERIC_ALL),
    int(EnterpriseAccess.GENERIC_READ),
    int(EnterpriseAccess.GENERIC_WRITE),
)
NETWORK: Final = Kind(
    int(NetworkAccess.GENERIC_ALL), int(NetworkAccess.GENERIC_READ), int(NetworkAccess.GENERIC_READ)
)

OWNERS_MAY: Final = int(QueueAccess.GET_PERMISSIONS | QueueAccess.CHANGE_PERMISSIONS)
"""What an owner may do whatever the list says; the bits are the same for every kind of object."""


def with_known_rights(descriptor: Descriptor, kind: Kind) -> Descriptor:
    """Leave out the rights that this kind of object does not have: nobody could use them."""
    known = kind.everything | _GENERIC
    if all(not entry.rights & ~known for entry in descriptor.entries or ()):
        return descriptor
    entries = [
        msgspec.structs.replace(entry, rights=entry.rights & known)
        for entry in descriptor.entries or ()
        if entry.rights & known
    ]
    return msgspec.structs.replace(descriptor, entries=tuple(entries))


def granted(descriptor: Descriptor, sids: frozenset[Sid], kind: Kind) -> int:
    """Return all rights that somebody with these SIDs has on an object."""
    if descriptor.entries is None:
        return kind.everything
    allowed = denied = 0
    is_owner = descriptor.owner in sids
    owner_is_named = False
    for entry in descriptor.entries:
        if entry.user == OWNER_RIGHTS:
            owner_is_named = True
            if not is_owner:
                continue
        elif entry.user not in sids:
            continue
        rights = kind.specific(entry.rights)
        if entry.is_denied:
            denied |= rights
        else:
            allowed |= rights & ~denied
    if is_owner and not owner_is_named:
        allowed |= OWNERS_MAY
    return allowed & kind.everything


# What new objects have.


def queue_descriptor(owner: Sid = ADMINISTRATORS) -> Descriptor:
    """Return the descriptor of a new queue. [MQDMPR 3.1.7.1.3.1]

    Everybody may send, because senders on other computers are anonymous unless they sign. To
    receive, to look, and to change anything is left to the owner and the administrators, who can
    read the disk anyway.
    """
    everyone = QueueAccess.GET_PROPERTIES | QueueAccess.GET_PERMISSIONS | QueueAccess.WRITE_MESSAGE
    entries = [
        AccessEntry(owner, int(QueueAccess.GENERIC_ALL)),
        AccessEntry(EVERYONE, int(everyone)),
        AccessEntry(ANONYMOUS, int(QueueAccess.WRITE_MESSAGE)),
    ]
    if owner != ADMINISTRATORS:
        entries.insert(1, AccessEntry(ADMINISTRATORS, int(QueueAccess.GENERIC_ALL)))
    return Descriptor(owner, b"", tuple(entries))


def manager_descriptor() -> Descriptor:
    """Return the descriptor of a new queue manager: only administrators change anything."""
    return Descriptor(
        ADMINISTRATORS,
        b"",
        (
            AccessEntry(ADMINISTRATORS, int(ManagerAccess.GENERIC_ALL)),
            AccessEntry(EVERYONE, int(ManagerAccess.WORLD_RIGHTS)),
        ),
    )


LOCKED: Final = Descriptor(
    ADMINISTRATORS, b"", (AccessEntry(ADMINISTRATORS, int(QueueAccess.GENERIC_ALL) | 0xFF),)
)
"""What counts for a descriptor that nobody understands: only administrators come in."""

QUEUE_DEFAULT: Final = encode(queue_descriptor())
MANAGER_DEFAULT: Final = encode(manager_descriptor())


# Changes. Entries that deny come first, so that what they deny stays denied.


def plain(descriptor: Descriptor, kind: Kind) -> Descriptor:
    """Say a descriptor without generic rights, and with a list where there was none."""
    entries = descriptor.entries
    if entries is None:
        entries = (AccessEntry(EVERYONE, kind.everything),)
    said = [msgspec.structs.replace(entry, rights=kind.specific(entry.rights)) for entry in entries]
    return msgspec.structs.replace(descriptor, entries=tuple(said))


def grant(descriptor: Descriptor, user: Sid, rights: int) -> Descriptor:
    """Allow somebody something; what denied it to the same user is gone."""
    rest = _without(descriptor.entries or (), user, rights, denied=True)
    return _ordered(descriptor, _with(rest, AccessEntry(user, rights)))


def deny(descriptor: Descriptor, user: Sid, rights: int) -> Descriptor:
    """Deny somebody something, whatever others allow; what allowed it to the same user is gone."""
    rest = _without(descriptor.entries or (), user, rights, denied=False)
    return _ordered(descriptor, _with(rest, AccessEntry(user, rights, is_denied=True)))


def revoke(descriptor: Descriptor, user: Sid, rights: int) -> Descriptor:
    """Take back what was granted or denied to somebody by name."""
    entries = _without(descriptor.entries or (), user, rights, denied=True)
    return _ordered(descriptor, _without(entries, user, rights, denied=False))


def _with(entries: list[AccessEntry], new: AccessEntry) -> list[AccessEntry]:
    for index, entry in enumerate(entries):
        if entry.whose == new.whose:
            merged = msgspec.structs.replace(entry, rights=entry.rights | new.rights)
            return [*entries[:index], merged, *entries[index + 1 :]]
    return [*entries, new]


def _without(
    entries: Iterable[AccessEntry], user: Sid, rights: int, *, denied: bool
) -> list[AccessEntry]:
    kept: list[AccessEntry] = []
    for entry in entries:
        if entry.user == user and entry.is_denied is denied:
            left = entry.rights & ~rights
            if left:
                kept.append(msgspec.structs.replace(entry, rights=left))
        else:
            kept.append(entry)
    return kept


def _ordered(descriptor: Descriptor, entries: list[AccessEntry]) -> Descriptor:
    """Put own entries before inherited ones, and those that deny before those that allow."""
    entries.sort(key=lambda entry: (entry.is_inherited, not entry.is_denied))
    return msgspec.structs.replace(descriptor, entries=tuple(entries))
