"""Security identifiers: who a user or a group is. [MS-DTYP 2.4.2]

A SID is its bytes, as they stand in descriptors and packets; the text is made when a person wants
to read it. Users and groups of Unix have the SIDs that Samba gives them, so that a file server and
a queue manager on one computer mean the same.
"""

from __future__ import annotations

import re
import struct
from typing import Final, Self

SUB_AUTHORITIES_MAX_COUNT: Final = 15
"""Numbers that may follow the authority. [MS-DTYP 2.4.2.2]"""

_TEXT: Final = re.compile(r"S-1-(\d{1,15}|0x[0-9a-f]{1,12})((?:-\d{1,10}){0,15})", re.IGNORECASE)
_AUTHORITY_MAX: Final = (1 << 48) - 1
_U32_MAX: Final = 0xFFFFFFFF
_DECIMAL_AUTHORITY_MAX: Final = 0xFFFFFFFF
"""Greater authorities are written as hexadecimal numbers. [MS-DTYP 2.4.2.1]"""


class Sid(bytes):
    """A security identifier in the form of the wire; `Sid.parse(text)` reads `S-1-...`."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `S-1-...`, or raise `ValueError`."""
        match = _TEXT.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"{text!r} is no SID: it reads like S-1-5-21-1-2-3-1000")
        authority = int(match[1], 0) if match[1][:2].lower() == "0x" else int(match[1])
        numbers = [int(number) for number in match[2].split("-")[1:]]
        if authority > _AUTHORITY_MAX or any(number > _U32_MAX for number in numbers):
            raise ValueError(f"{text!r} is no SID: one of its numbers is too large")
        return cls.of(authority, *numbers)

    @classmethod
    def of(cls, authority: int, *numbers: int) -> Self:
        """Make a SID of its numbers."""
        head = bytes((1, len(numbers))) + authority.to_bytes(6, "big")
        return cls(head + struct.pack(f"<{len(numbers)}I", *numbers))

    def __str__(self) -> str:
        if not is_sid(self):
            return f"no SID ({self.hex()})"
        authority = int.from_bytes(self[2:8], "big")
        shown = str(authority) if authority <= _DECIMAL_AUTHORITY_MAX else f"0x{authority:012X}"
        numbers = struct.unpack_from(f"<{self[1]}I", self, 8)
        return "-".join(map(str, ("S-1", shown, *numbers)))

    def __repr__(self) -> str:
        return f"Sid({str(self)!r})"


def sid_size(data: bytes, offset: int) -> int:
    """Return the size of the SID that begins at `offset`; 0 if none does."""
    if offset < 0 or len(data) < offset + 8:
        return 0
    if data[offset] != 1 or data[offset + 1] > SUB_AUTHORITIES_MAX_COUNT:
        return 0
    size = 8 + 4 * data[offset + 1]
    return size if len(data) >= offset + size else 0


def is_sid(data: bytes) -> bool:
    """Whether bytes are one SID and nothing else."""
    return 0 < sid_size(data, 0) == len(data)


EVERYONE: Final = Sid.of(1, 0)
"""Everybody, those included of whom nothing is known."""
OWNER_RIGHTS: Final = Sid.of(3, 4)
"""Whoever owns the object; an entry for it takes the place of what owners may do anyway."""
ANONYMOUS: Final = Sid.of(5, 7)
"""Somebody of whom nothing is known."""
AUTHENTICATED: Final = Sid.of(5, 11)
"""Everybody who has proved who they are."""
LOCAL_SYSTEM: Final = Sid.of(5, 18)
ADMINISTRATORS: Final = Sid.of(5, 32, 544)
"""Who looks after this computer's queue manager: root, and the user under which it runs."""

_UNIX: Final = 22
_UNIX_USER: Final = 1
_UNIX_GROUP: Final = 2


def unix_user(number: int) -> Sid:
    """Return the SID of a user of Unix, as Samba has it."""
    return Sid.of(_UNIX, _UNIX_USER, number)


def unix_group(number: int) -> Sid:
    """Return the SID of a group of Unix, as Samba has it."""
    return Sid.of(_UNIX, _UNIX_GROUP, number)


def unix_number(sid: Sid) -> tuple[str, int] | None:
    """Return which user or group of Unix a SID means: its kind and number; None for others."""
    if len(sid) != 16 or int.from_bytes(sid[2:8], "big") != _UNIX:
        return None
    kind, number = struct.unpack_from("<2I", sid, 8)
    words = {_UNIX_USER: "user", _UNIX_GROUP: "group"}
    return (words[kind], number) if kind in words else None


# Accounts of queue managers, which no other system knows.

ACCOUNT_NAME_MAX_CHARACTERS: Final = 20
"""As on Windows, for the name of a user."""

_RESOURCE_MANAGER: Final = 9
"""The authority that Windows has reserved for programs that guard something of their own."""
_OPENMSMQ: Final = int.from_bytes(b"OMSQ", "big")
_ACCOUNT_NAME: Final = re.compile(rf"[a-z0-9][a-z0-9_.-]{{0,{ACCOUNT_NAME_MAX_CHARACTERS - 1}}}")


def account(name: str) -> Sid:
    """Return the SID of an account of a queue manager, or raise `ValueError`.

    The SID has the name inside. So it needs nobody who gives out numbers, is the same at every
    queue manager, and can be shown by name wherever it is found.
    """
    lower = name.lower()
    if not _ACCOUNT_NAME.fullmatch(lower):
        raise ValueError(
            f"{name!r} is no name of an account: use up to {ACCOUNT_NAME_MAX_CHARACTERS} letters "
            "(without accents), digits, hyphens, underscores and dots, a letter or digit first"
        )
    raw = lower.encode("ascii")
    raw += bytes(-len(raw) % 4)
    return Sid.of(_RESOURCE_MANAGER, _OPENMSMQ, *struct.unpack(f"<{len(raw) // 4}I", raw))


def account_name(sid: Sid) -> str | None:
    """Return the name of the account that a SID means; None for others."""
    try:
        name = sid[12:].rstrip(b"\0").decode("ascii")
        return name if account(name) == sid else None
    except ValueError:
        return None


def identities(user: Sid, groups: frozenset[Sid] | tuple[Sid, ...] = ()) -> frozenset[Sid]:
    """Return all SIDs that count for a user: the user, the groups, and those that everybody has."""
    found = {user, EVERYONE, *groups}
    if user != ANONYMOUS:
        found.add(AUTHENTICATED)
    return frozenset(found)


ANONYMOUS_IDENTITIES: Final = identities(ANONYMOUS)
"""All SIDs that count for somebody of whom nothing is known."""


WORDS: Final = {
    "everyone": EVERYONE,
    "anonymous": ANONYMOUS,
    "authenticated": AUTHENTICATED,
    "administrators": ADMINISTRATORS,
    "owner": OWNER_RIGHTS,
}
"""What people call the well-known SIDs."""


def parse_sid(text: str) -> Sid:
    """Read a SID as `sid_words` says it, or raise `ValueError`."""
    known = WORDS.get(text.lower())
    if known is not None:
        return known
    kind, colon, number = text.partition(":")
    if colon and kind in ("user", "group") and number.isascii() and number.isdecimal():
        if int(number) > _U32_MAX:
            raise ValueError(f"{text!r} is nobody: the number is too large")
        return unix_user(int(number)) if kind == "user" else unix_group(int(number))
    if colon and kind == "account":
        return account(number)
    if text[:2].upper() == "S-":
        return Sid.parse(text)
    raise ValueError(
        f"{text!r} is nobody: use {', '.join(WORDS)}, user:NUMBER, group:NUMBER, account:NAME or a "
        "SID (S-1-...)"
    )


def sid_words(sid: Sid) -> str:
    """Say a SID as people do: by its word, as `user:1000` or `account:alice`, or as `S-1-...`."""
    for word, known in WORDS.items():
        if sid == known:
            return word
    found = unix_number(sid)
    if found is not None:
        return f"{found[0]}:{found[1]}"
    name = account_name(sid)
    return str(sid) if name is None else f"account:{name}"
