"""Users and groups as people name them: by words, by names of this computer, or by SID."""

from __future__ import annotations

from typing import Final

from openmsmq.security.access.sids import WORDS, Sid, parse_sid, sid_words, unix_number

WHO_FORMS: Final = (
    f"{', '.join(WORDS)}, user:NAME, group:NAME, user:NUMBER, group:NUMBER, account:NAME, or a SID "
    "(S-1-...)"
)
"""How somebody can be named."""


def find_sid(text: str) -> Sid:
    """Read whom a person means, or raise `ValueError`; names are those of this computer."""
    word, colon, name = text.partition(":")
    kind = word.lower()
    if colon and kind in ("user", "group"):
        is_number = name.isascii() and name.isdecimal()
        return parse_sid(f"{kind}:{name if is_number else _number(kind, name)}")
    if colon and kind == "account":
        return parse_sid(f"{kind}:{name}")
    if text.lower() not in WORDS and text[:2].upper() != "S-":
        raise ValueError(f"{text!r} is nobody: use {WHO_FORMS}")
    return parse_sid(text)


def _number(kind: str, name: str) -> int:
    try:
        # Not every computer has these.
        import grp
        import pwd

        return pwd.getpwnam(name).pw_uid if kind == "user" else grp.getgrnam(name).gr_gid
    except (ImportError, KeyError, ValueError):
        raise ValueError(
            f"this computer has no {kind} {name!r}: name one of another computer by number, as "
            f"{kind}:1000, or by SID"
        ) from None


def account_text(sid: Sid) -> str:
    """Return who a SID is, by name if this computer knows one."""
    found = unix_number(sid)
    if found is None:
        return sid_words(sid)
    kind, number = found
    try:
        # Not every computer has these.
        import grp
        import pwd

        name = pwd.getpwuid(number).pw_name if kind == "user" else grp.getgrgid(number).gr_name
    except (ImportError, KeyError, OverflowError):
        return sid_words(sid)
    return f"{kind}:{name}"
