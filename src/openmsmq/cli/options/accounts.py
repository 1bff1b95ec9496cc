"""Users and groups as people name them on a command line."""

from __future__ import annotations

import typer

from openmsmq.client.accounts import WHO_FORMS, find_sid
from openmsmq.security.access.sids import Sid

ACCOUNT_HELP = f"{WHO_FORMS}."


def read_account(text: str) -> Sid:
    """Read whom a person means; names are those of this computer."""
    try:
        return find_sid(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
