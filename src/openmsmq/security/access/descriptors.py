"""Security descriptors as bytes: whose an object is, and who may do what with it.

Only the self-relative form is read and written, which is the one that is stored and sent. Bytes
come from directories and applications: whatever is wrong with them is a `BadDescriptor`. An access
list that cannot be understood as a whole is refused as a whole, because one entry that was passed
over may be the one that denies. [MS-DTYP 2.4.4, 2.4.5, 2.4.6]
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from openmsmq.model.errors import IllegalSecurityDescriptor
from openmsmq.model.identity import Guid
from openmsmq.security.access.sids import sid_size

ACCESS_LIST_MAX_BYTES: Final = 0xFFFF
"""An access list; its size has 16 bits. [MS-DTYP 2.4.5]"""

DESCRIPTOR_MAX_BYTES: Final = 2 * ACCESS_LIST_MAX_BYTES + 256
"""A descriptor: two access lists, of which the second is passed over, the owner and the group."""

_HEADER: Final = struct.Struct("<BBHIIII")
_LIST: Final = struct.Struct("<BBHHH")
_ACE: Final = struct.Struct("<BBHI")
_U32: Final = struct.Struct("<I")
_REVISION: Final = 1
_LIST_REVISION: Final = 2
_LIST_REVISION_OBJECTS: Final = 4
_SELF_RELATIVE: Final = 0x8000
_HAS_LIST: Final = 0x0004
_HAS_AUDITS: Final = 0x0010
_INHERIT_ONLY: Final = 0x08
_INHERITED: Final = 0x10

_ALLOWED: Final = 0
_DENIED: Final = 1
_OBJECT: Final = 5
"""What makes an entry about one kind of object out of an allowing or denying one."""
_DENYING: Final = frozenset({1, 6, 10, 12})
"""All kinds that deny. Those with a condition deny always: nobody here can judge conditions."""
_ALLOWING: Final = frozenset({0, 5})
"""Kinds that allow; those with a condition allow nothing."""
_ABOUT_OBJECTS: Final = frozenset({5, 6, 12})


class BadDescriptor(ValueError):
    """Bytes that are no security descriptor."""


class AccessEntry(msgspec.Struct, frozen=True):
    """Who may, or may not, do something."""

    user: bytes
    """A security identifier."""
    rights: int
    is_denied: bool = False
    is_inherited: bool = False
    """Whether it comes from what is above the object; servers add these themselves."""

    @property
    def whose(self) -> tuple[bytes, bool, bool]:
        """All but the rights."""
        return self.user, self.is_denied, self.is_inherited


class Descriptor(msgspec.Struct, frozen=True):
    """Whose an object is and who may use it."""

    owner: bytes = b""
    group: bytes = b""
    entries: tuple[AccessEntry, ...] | None = None
    """None when there is no list, which is that everybody may do everything."""
    audits: bytes = b""
    """The other list, of what a system should note; it is kept for those who know it, as it is."""


class Ace(msgspec.Struct, frozen=True):
    """One entry of an access list, and the kind of object or control right it is about."""

    entry: AccessEntry
    about: Guid | None = None


def decode(data: bytes) -> Descriptor:
    """Read a descriptor, or raise `BadDescriptor`; entries about single properties are left out."""
    owner, group, aces = decode_aces(data)
    entries = None if aces is None else tuple(ace.entry for ace in aces if ace.about is None)
    return Descriptor(owner, group, entries, _read_audits(data))


def encode(descriptor: Descriptor) -> bytes:
    """Write a descriptor."""
    aces = None
    if descriptor.entries is not None:
        aces = [Ace(entry) for entry in descriptor.entries]
    return encode_aces(descriptor.owner, descriptor.group, aces, descriptor.audits)


def encode_given(descriptor: Descriptor) -> bytes:
    """Write what an application gave, or raise `IllegalSecurityDescriptor`."""
    try:
        return encode(descriptor)
    except BadDescriptor as error:
        raise IllegalSecurityDescriptor(str(error)) from None


def decode_aces(data: bytes) -> tuple[bytes, bytes, list[Ace] | None]:
    """Read owner, group and access list, with entries that are about single properties."""
    if len(data) > DESCRIPTOR_MAX_BYTES:
        raise BadDescriptor(
            f"a security descriptor of {len(data)} bytes; at most {DESCRIPTOR_MAX_BYTES}"
        )
    if len(data) < _HEADER.size:
        raise BadDescriptor(f"a security descriptor of {len(data)} bytes is cut short")
    revision, _, control, owner, group, _, acl = _HEADER.unpack_from(data)
    if revision != _REVISION or not control & _SELF_RELATIVE:
        raise BadDescriptor("bytes that are no self-relative security descriptor of revision 1")
    aces = _read_list(data, acl) if control & _HAS_LIST and acl else None
    return _read_sid(data, owner), _read_sid(data, group), aces


def _read_audits(data: bytes) -> bytes:
    _, _, control, _, _, offset, _ = _HEADER.unpack_from(data)
    if not (control & _HAS_AUDITS and offset):
        return b""
    return data[offset : _list_end(data, offset)[0]]


def _list_end(data: bytes, offset: int) -> tuple[int, int]:
    """Return where a list ends, and how many entries it counts."""
    if offset + _LIST.size > len(data):
        raise BadDescriptor("the access list of a security descriptor is cut short")
    _, _, size, count, _ = _LIST.unpack_from(data, offset)
    end = offset + size
    if size < _LIST.size or end > len(data):
        raise BadDescriptor(f"an access list of {size} bytes does not fit its descriptor")
    return end, count


def _read_list(data: bytes, offset: int) -> list[Ace]:
    end, count = _list_end(data, offset)
    offset += _LIST.size
    aces: list[Ace] = []
    for _ in range(count):
        if offset + _ACE.size > end:
            raise BadDescriptor(f"an access list has fewer entries than the {count} it counts")
        kind, flags, length, mask = _ACE.unpack_from(data, offset)
        if length < _ACE.size or offset + length > end:
            raise BadDescriptor(f"an entry of {length} bytes does not fit its access list")
        if not flags & _INHERIT_ONLY:
            aces += _read_ace(kind, flags, mask, data[offset + _ACE.size : offset + length])
        offset += length
    return aces


def _read_ace(kind: int, flags: int, mask: int, body: bytes) -> Iterator[Ace]:
    """Yield an entry that allows or denies; audits and labels are neither."""
    if kind not in _ALLOWING and kind not in _DENYING:
        return
    offset, about = 0, None
    if kind in _ABOUT_OBJECTS:
        if len(body) < _U32.size:
            raise BadDescriptor("an entry of an access list is cut short")
        (present,) = _U32.unpack_from(body)
        offset = _U32.size
        if present & 1:
            about = Guid(body[offset : offset + 16])
        offset += 16 * (present & 1) + 16 * (present >> 1 & 1)
    size = sid_size(body, offset)
    if not size:
        raise BadDescriptor("an entry of an access list names nobody")
    user = body[offset : offset + size]
    yield Ace(AccessEntry(user, mask, kind in _DENYING, bool(flags & _INHERITED)), about)


def _read_sid(data: bytes, offset: int) -> bytes:
    if not offset:
        return b""
    size = sid_size(data, offset)
    if not size:
        raise BadDescriptor("the owner or the group of a security descriptor is no SID")
    return data[offset : offset + size]


def encode_aces(
    owner: bytes, group: bytes, aces: Iterable[Ace] | None, audits: bytes = b""
) -> bytes:
    """Write owner, group and access list, with entries that are about single properties."""
    parts = b""
    offsets = []
    for user in (owner, group):
        offsets.append(_HEADER.size + len(parts) if user else 0)
        parts += user
    acl = b""
    if aces is not None:
        acl = _write_list(list(aces))
    control = _SELF_RELATIVE | (_HAS_LIST if aces is not None else 0)
    control |= _HAS_AUDITS if audits else 0
    for part in (audits, acl):
        offsets.append(_HEADER.size + len(parts) if part else 0)
        parts += part
    return _HEADER.pack(_REVISION, 0, control, *offsets) + parts


def _write_list(aces: list[Ace]) -> bytes:
    body = b"".join(map(_write_ace, aces))
    size = _LIST.size + len(body)
    if size > ACCESS_LIST_MAX_BYTES:
        raise BadDescriptor(
            f"an access list of {len(aces)} entries has {size} bytes; at most "
            f"{ACCESS_LIST_MAX_BYTES}: use groups"
        )
    objects = any(ace.about is not None for ace in aces)
    revision = _LIST_REVISION_OBJECTS if objects else _LIST_REVISION
    return _LIST.pack(revision, 0, size, len(aces), 0) + body


def _write_ace(ace: Ace) -> bytes:
    entry = ace.entry
    kind, body = _DENIED if entry.is_denied else _ALLOWED, entry.user
    if ace.about is not None:
        kind += _OBJECT
        body = _U32.pack(1) + ace.about + body
    flags = _INHERITED if entry.is_inherited else 0
    return _ACE.pack(kind, flags, _ACE.size + len(body), entry.rights) + body
