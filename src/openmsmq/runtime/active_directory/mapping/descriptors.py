"""Security descriptors: the rights of MSMQ in the words of Active Directory, and back.

MQDSSM copies descriptors as they are, but the same bits mean other things in the two systems: what
lets everybody read the properties of a queue manager would let everybody change its entry. So
rights are translated. Active Directory has the rights to send and receive as control access
rights with identifiers of their own. [MS-ADTS 5.1.3.2.1]
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntFlag
from typing import Final

import msgspec

from openmsmq.model.access import ManagerAccess, QueueAccess, SiteAccess
from openmsmq.model.identity import Guid
from openmsmq.runtime.active_directory.mapping.entries import Malformed, Values
from openmsmq.security.access import descriptors
from openmsmq.security.access.descriptors import (
    AccessEntry,
    Ace,
    BadDescriptor,
    Descriptor,
    decode_aces,
    encode,
    encode_aces,
)
from openmsmq.security.access.sids import ADMINISTRATORS, EVERYONE, Sid, unix_number

EVERYBODY: Final = bytes(EVERYONE)

_STANDARD: Final = 0x000F0000
_GENERIC_ALL: Final = 0x10000000
_GENERIC_WRITE: Final = 0x40000000
_GENERIC_READ: Final = 0x80000000


class DirectoryAccess(IntFlag):
    """Rights on an entry of Active Directory. [MS-ADTS 5.1.3.2]"""

    CREATE_CHILD = 0x01
    DELETE_CHILD = 0x02
    LIST = 0x04
    SELF = 0x08
    READ = 0x10
    WRITE = 0x20
    DELETE_TREE = 0x40
    LIST_OBJECT = 0x80
    CONTROL = 0x100


_SHOW: Final = DirectoryAccess.READ | DirectoryAccess.LIST | DirectoryAccess.LIST_OBJECT
_KEEP: Final = DirectoryAccess.CREATE_CHILD | DirectoryAccess.DELETE_CHILD
_EVERYTHING: Final = 0xFF


class Rights(msgspec.Struct, frozen=True):
    """How the rights of one kind of object are said in both systems."""

    bits: tuple[tuple[int, DirectoryAccess, DirectoryAccess], ...]
    """Right of MSMQ, what is written for it, and what it is recognised by."""
    controls: tuple[tuple[Guid, int], ...] = ()
    """Control access rights, and the rights of MSMQ that each gives; the widest come first."""

    def from_directory(self, mask: int, control: Guid | None) -> int:
        """Translate the rights of one entry of an access list; `control` is what it is about."""
        if control is not None:
            given = dict(self.controls).get(control, 0)
            return given if mask & (DirectoryAccess.CONTROL | _GENERIC_ALL) else 0
        mask = _without_generic(mask)
        found = mask & _STANDARD
        for right, _, sign in self.bits:
            found |= right if mask & sign else 0
        if mask & DirectoryAccess.CONTROL:
            for _, given in self.controls:
                found |= given
        return found

    def to_directory(self, rights: int) -> Iterator[tuple[int, Guid | None]]:
        """Translate rights of MSMQ into masks, each with the control right that it is about."""
        mask = rights & _STANDARD
        for right, written, _ in self.bits:
            mask |= written if rights & right else 0
        if mask:
            yield mask, None
        left = rights
        for control, given in self.controls:
            if rights & given == given and left & given:
                left &= ~given
                yield DirectoryAccess.CONTROL, control


def _without_generic(mask: int) -> int:
    if mask & _GENERIC_ALL:
        mask |= _STANDARD | _EVERYTHING | DirectoryAccess.CONTROL
    if mask & _GENERIC_READ:
        mask |= 0x20000 | _SHOW
    if mask & _GENERIC_WRITE:
        mask |= 0x20000 | DirectoryAccess.WRITE | DirectoryAccess.SELF
    return mask


def _control(number: str) -> Guid:
    return Guid.parse(f"{number}-9c86-006008764d0e")


QUEUE_RIGHTS: Final = Rights(
    bits=(
        (QueueAccess.GET_PROPERTIES, _SHOW, DirectoryAccess.READ),
        (QueueAccess.SET_PROPERTIES, DirectoryAccess.WRITE, DirectoryAccess.WRITE),
    ),
    controls=(
        (_control("06bd3203-df3e-11d1"), QueueAccess.RECEIVE_JOURNAL_MESSAGE),
        (_control("06bd3200-df3e-11d1"), QueueAccess.RECEIVE_MESSAGE),
        (_control("06bd3201-df3e-11d1"), QueueAccess.PEEK_MESSAGE),
        (_control("06bd3202-df3e-11d1"), QueueAccess.WRITE_MESSAGE),
    ),
)
MANAGER_RIGHTS: Final = Rights(
    bits=(
        (ManagerAccess.GET_PROPERTIES, _SHOW, DirectoryAccess.READ),
        (ManagerAccess.SET_PROPERTIES, DirectoryAccess.WRITE, DirectoryAccess.WRITE),
        (ManagerAccess.CREATE_QUEUE, _KEEP, DirectoryAccess.CREATE_CHILD),
    ),
    controls=(
        (_control("4b6e08c0-df3c-11d1"), ManagerAccess.RECEIVE_DEAD_LETTER_MESSAGE),
        (_control("4b6e08c1-df3c-11d1"), ManagerAccess.PEEK_DEAD_LETTER_MESSAGE),
        (_control("4b6e08c2-df3c-11d1"), ManagerAccess.RECEIVE_JOURNAL_MESSAGE),
        (_control("4b6e08c3-df3c-11d1"), ManagerAccess.PEEK_JOURNAL_MESSAGE),
    ),
)
_CREATE_IN_SITE: Final = (
    SiteAccess.CREATE_MANAGER
    | SiteAccess.CREATE_ROUTING_SERVER
    | SiteAccess.CREATE_BACKUP_CONTROLLER
)
SITE_RIGHTS: Final = Rights(
    bits=(
        (SiteAccess.GET_PROPERTIES, _SHOW, DirectoryAccess.READ),
        (SiteAccess.SET_PROPERTIES, DirectoryAccess.WRITE, DirectoryAccess.WRITE),
        (_CREATE_IN_SITE, _KEEP, DirectoryAccess.CREATE_CHILD),
    ),
)


_KEEPER: Final = (
    QueueAccess.GENERIC_ALL
    & ~QueueAccess.RECEIVE_MESSAGE
    & ~QueueAccess.RECEIVE_JOURNAL_MESSAGE
    & ~QueueAccess.WRITE_MESSAGE
)


def translate_from_directory(data: bytes, rights: Rights) -> bytes:
    """Return a descriptor with the rights of MSMQ for one of Active Directory."""
    try:
        owner, group, aces = decode_aces(data)
    except BadDescriptor as problem:
        raise Malformed(str(problem)) from None
    if aces is None:
        return encode(Descriptor(owner, group, None))
    found: list[AccessEntry] = []
    for ace in aces:
        given = rights.from_directory(ace.entry.rights, ace.about)
        if given:
            _append(found, msgspec.structs.replace(ace.entry, rights=given))
    return encode(Descriptor(owner, group, tuple(found)))


def _append(entries: list[AccessEntry], entry: AccessEntry) -> None:
    """Add an entry, to the last one if that is of the same user and kind."""
    last = entries[-1] if entries else None
    if last is not None and last.whose == entry.whose:
        entries[-1] = msgspec.structs.replace(last, rights=last.rights | entry.rights)
    else:
        entries.append(entry)


def translate_to_directory(data: bytes, rights: Rights) -> Values:
    """Return the descriptor of Active Directory for one with the rights of MSMQ, if any."""
    return (to_directory(decode(data), rights),) if data else ()


def to_directory(descriptor: Descriptor, rights: Rights) -> bytes:
    """Return the descriptor of Active Directory that grants these rights."""
    aces = None
    if descriptor.entries is not None:
        aces = [
            Ace(msgspec.structs.replace(entry, rights=mask), about)
            for entry in descriptor.entries
            if not entry.is_inherited
            for mask, about in rights.to_directory(entry.rights)
        ]
    return encode_aces(descriptor.owner, descriptor.group, aces)


def decode(data: bytes) -> Descriptor:
    """Read a descriptor with the rights of MSMQ, or raise `Malformed`."""
    try:
        return descriptors.decode(data)
    except BadDescriptor as problem:
        raise Malformed(str(problem)) from None


def new_manager(computer: bytes, owner: bytes, *, foreign: bool) -> bytes:
    """Return the descriptor of a new queue manager. [MQDSSM 3.1.6.1.1.8]

    The computer may do everything with its own entry, above all create queues below it.
    """
    everybody = ManagerAccess.GENERIC_WRITE if foreign else ManagerAccess.WORLD_RIGHTS
    entries = [AccessEntry(EVERYBODY, everybody)]
    entries += [
        AccessEntry(user, ManagerAccess.GENERIC_ALL)
        for user in dict.fromkeys((computer, owner))
        if user
    ]
    return to_directory(Descriptor(entries=tuple(entries)), MANAGER_RIGHTS)


def new_queue(computer: bytes, wanted: bytes) -> bytes:
    """Return the descriptor of a new queue: what its creator wants, else that everybody may send.

    [MQDMPR 3.1.7.1.3.1] The computer may always keep the entry of its own queue up to date, which
    Active Directory would otherwise leave to its administrators.
    """
    descriptor = decode(wanted) if wanted else Descriptor()
    entries = descriptor.entries
    if entries is None:
        entries = (
            AccessEntry(EVERYBODY, QueueAccess.GENERIC_WRITE),
            AccessEntry(ADMINISTRATORS, QueueAccess.GENERIC_ALL),
        )
    if computer and all(entry.user != computer for entry in entries):
        entries += (AccessEntry(computer, _KEEPER),)
    # A domain takes nobody as an owner whom it does not know.
    owner = b"" if _is_local(descriptor.owner) else descriptor.owner
    group = b"" if _is_local(descriptor.group) else descriptor.group
    return to_directory(Descriptor(owner, group, entries), QUEUE_RIGHTS)


def _is_local(user: bytes) -> bool:
    """Whether a SID is one of this computer's Unix."""
    return unix_number(Sid(user)) is not None
