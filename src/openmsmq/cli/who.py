"""Users and groups as people name them on a command line."""

from __future__ import annotations

import grp
import pwd

import typer

from openmsmq.security.sids import Sid, parse_sid, sid_words, unix_number

WHO_HELP = (
    "everyone, anonymous, authenticated, administrators, user:NAME, group:NAME, or a SID (S-1-...)."
)


def read_who(text: str) -> Sid:
    """Read whom a person means; names are those of this computer."""
    kind, colon, name = text.partition(":")
    try:
        if colon and kind == "user" and not name.isdecimal():
            text = f"user:{pwd.getpwnam(name).pw_uid}"
        elif colon and kind == "group" and not name.isdecimal():
            text = f"group:{grp.getgrnam(name).gr_gid}"
    except KeyError:
        raise typer.BadParameter(f"this computer has no {kind} {name!r}") from None
    try:
        return parse_sid(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def who_text(sid: Sid) -> str:
    """Say who a SID is, by name if this computer knows one."""
    found = unix_number(sid)
    if found is None:
        return sid_words(sid)
    kind, number = found
    try:
        name = pwd.getpwuid(number).pw_name if kind == "user" else grp.getgrgid(number).gr_name
    except (KeyError, OverflowError):
        return sid_words(sid)
    return f"{kind}:{name}"
