"""What a domain says about a user in a ticket of Kerberos: the user's SID and groups. [MS-PAC 2.5]

The controller of the domain has signed it for us, which whoever hands it in has checked. Only SIDs
of domains are taken: a domain decides who its users and groups are, not who administers this
computer, and not who is a user of Unix or an account of a queue manager here.

Reading is total: it raises `DecodeError` and nothing else.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

from openmsmq.security.access.sids import Sid, is_sid
from openmsmq.wire.errors import DecodeError

LOGON_INFO_MAX_BYTES: Final = 64 * 1024
"""What is said of one user; somebody in a thousand groups has less."""

DOMAIN_GROUPS_MAX_COUNT: Final = 2048
"""Groups of one user that are read of each of the three lists that a ticket has."""

_WHERE: Final = "the logon information of a ticket"
_HEAD_BYTES: Final = 16
_ENABLED: Final = 0x4
_DENY_ONLY: Final = 0x10
_DOMAIN_PREFIX: Final = (5, 21)
_SUB_AUTHORITIES_MAX: Final = 15


class DomainUser(msgspec.Struct, frozen=True):
    """A user of a domain."""

    user: Sid
    groups: frozenset[Sid]


class _Reader:
    """Reads numbers of NDR, each at a multiple of its size."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._offset = 0

    def numbers(self, count: int) -> tuple[int, ...]:
        """Return the next numbers of 32 bits."""
        self._offset += -self._offset % 4
        return struct.unpack(f"<{count}I", self.take(4 * count))

    def number(self) -> int:
        """Return the next number of 32 bits."""
        return self.numbers(1)[0]

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        end = self._offset + size
        if end > len(self._data):
            raise DecodeError(_WHERE, self._offset, "it is cut short")
        found = self._data[self._offset : end]
        self._offset = end
        return found

    def count(self, expected: int) -> int:
        """Return how many elements follow, which was said before."""
        found = self.number()
        if found != expected:
            raise DecodeError(_WHERE, self._offset, "two counts differ")
        return found

    def text(self, is_there: int) -> None:
        """Skip a text that a pointer leads to."""
        if is_there:
            _, first, size = self.numbers(3)
            if first:
                raise DecodeError(_WHERE, self._offset, "a text begins in its middle")
            self.take(2 * size)

    def sid(self) -> Sid:
        """Return a SID."""
        size = self.number()
        if size > _SUB_AUTHORITIES_MAX:
            raise DecodeError(_WHERE, self._offset, "a SID is too long")
        raw = self.take(8 + 4 * size)
        if not is_sid(raw):
            raise DecodeError(_WHERE, self._offset, "a SID is none")
        return Sid(raw)

    def memberships(self, is_there: int, count: int) -> list[int]:
        """Return the numbers of groups that count."""
        if not is_there:
            return []
        self.count(_bounded(count))
        pairs = self.numbers(2 * count)
        return [
            number
            for number, attributes in zip(pairs[::2], pairs[1::2], strict=True)
            if _counts(attributes)
        ]


def decode_logon_info(data: bytes) -> DomainUser:
    """Read who a user is, from what a ticket says. [MS-PAC 2.5]"""
    if len(data) > LOGON_INFO_MAX_BYTES:
        raise DecodeError(_WHERE, 0, f"it is longer than {LOGON_INFO_MAX_BYTES} bytes")
    if data[:4] != b"\x01\x10\x08\x00":
        raise DecodeError(_WHERE, 0, "it is not in the form of NDR")
    reader = _Reader(data[_HEAD_BYTES:])
    if not reader.number():
        raise DecodeError(_WHERE, _HEAD_BYTES, "it is empty")
    reader.take(48)
    names = [reader.numbers(2)[1] for _ in range(6)]
    _, user_number, primary, group_count, groups_at, _ = reader.numbers(6)
    reader.take(16)
    names_behind = [reader.numbers(2)[1] for _ in range(2)]
    domain_at = reader.number()
    reader.take(40)
    extra_count, extra_at, resource_domain_at, resource_count, resources_at = reader.numbers(5)
    # What pointers lead to follows in the order of the pointers.
    for name in names:
        reader.text(name)
    memberships = reader.memberships(groups_at, group_count)
    for name in names_behind:
        reader.text(name)
    if not domain_at or not user_number:
        raise DecodeError(_WHERE, _HEAD_BYTES, "it names no user of a domain")
    domain = reader.sid()
    groups = [_member(domain, number) for number in (primary, *memberships)]
    groups += _extra_sids(reader, extra_at, extra_count)
    if resource_domain_at:
        resource_domain = reader.sid()
        numbers = reader.memberships(resources_at, resource_count)
        groups += [_member(resource_domain, number) for number in numbers]
    user = _member(domain, user_number)
    if not _is_of_domain(user):
        raise DecodeError(_WHERE, _HEAD_BYTES, f"{user} is no user of a domain")
    return DomainUser(user, frozenset(sid for sid in groups if _is_of_domain(sid)))


def _extra_sids(reader: _Reader, is_there: int, count: int) -> list[Sid]:
    if not is_there:
        return []
    reader.count(_bounded(count))
    pairs = reader.numbers(2 * count)
    found = []
    for pointer, attributes in zip(pairs[::2], pairs[1::2], strict=True):
        if pointer:
            sid = reader.sid()
            if _counts(attributes):
                found.append(sid)
    return found


def _bounded(count: int) -> int:
    if count > DOMAIN_GROUPS_MAX_COUNT:
        raise DecodeError(_WHERE, 0, f"it has a list of more than {DOMAIN_GROUPS_MAX_COUNT} groups")
    return count


def _counts(attributes: int) -> bool:
    return bool(attributes & _ENABLED) and not attributes & _DENY_ONLY


def _member(domain: Sid, number: int) -> Sid:
    raw = bytes((1, domain[1] + 1)) + domain[2:] + struct.pack("<I", number)
    return Sid(raw)


def _is_of_domain(sid: Sid) -> bool:
    if not is_sid(sid) or sid[1] < 2:
        return False
    authority = int.from_bytes(sid[2:8], "big")
    return (authority, struct.unpack_from("<I", sid, 8)[0]) == _DOMAIN_PREFIX
