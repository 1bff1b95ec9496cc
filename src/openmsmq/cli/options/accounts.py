"""Users and groups as people name them on a command line."""

from __future__ import annotations

import grp
import pwd

import typer

from openmsmq.client.accounts import WHO_FORMS, find_sid
from openmsmq.security.access.sids import Sid, sid_words, unix_number

ACCOUNT_HELP = f"{WHO_FORMS}."


def read_account(text: str) -> Sid:
    """Read whom a person means; names are those of this computer."""
    try:
        return find_sid(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def account_text(sid: Sid) -> str:
    """Return who a SID is, by name if this computer knows one."""
    found = unix_number(sid)
    if found is None:
        return sid_words(sid)
    kind, number = found
    try:
        name = pwd.getpwuid(number).pw_name if kind == "user" else grp.getgrgid(number).gr_name
    except (KeyError, OverflowError):
        return sid_words(sid)
    return f"{kind}:{name}"
