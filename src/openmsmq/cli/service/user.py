"""`openmsmq user`: accounts of the queue manager, for programs on Windows that read its queues.

The file of the accounts is changed directly, on the computer of the queue manager, so that whoever
may write there, and nobody else, can let others in. A running server looks at it by itself.
"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from openmsmq.cli.options.reading import JsonOption
from openmsmq.cli.service.token import DataOption
from openmsmq.cli.views.console import YesOption, ask_before, fail
from openmsmq.cli.views.output import JsonObject, print_json, print_result, print_table, time_text
from openmsmq.runtime.api.accounts import (
    ACCOUNTS_FILE,
    PASSWORD_MAX_CHARACTERS,
    PASSWORD_MIN_CHARACTERS,
    StoredAccount,
    add_account,
    change_password,
    read_accounts,
    remove_account,
    set_disabled,
)
from openmsmq.runtime.clocks import read_clocks
from openmsmq.runtime.config.errors import ConfigError
from openmsmq.security.access.sids import account

app: Final = typer.Typer(
    help="Accounts for programs on Windows that come by NTLM: add, list, remove, disable.",
    no_args_is_help=True,
)

NameArgument: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="The account.")]


def _path(data: str) -> Path:
    if not data:
        fail("where are the accounts? Give --data DIRECTORY, as to `openmsmq serve`.")
    return Path(data) / ACCOUNTS_FILE


def _changed(change: Callable[[], StoredAccount], said: str, *, json: bool) -> None:
    try:
        found = change()
    except ConfigError as error:
        fail(f"{error}.")
    print_result(_object(found), said.format(name=found.name), json=json)


def _password() -> str:
    """Ask for a password, twice; without a terminal, read one line."""
    if sys.stdin is not None and sys.stdin.isatty():
        first = getpass.getpass(f"Password ({PASSWORD_MIN_CHARACTERS} characters or more): ")
        if getpass.getpass("The same again: ") != first:
            fail("these are two passwords: nothing was done.")
        return first
    if sys.stdin is None:
        fail("there is no input to read the password from: pipe it in, or run it at a terminal.")
    try:
        # One letter more than allowed is enough to see that it is too long.
        line = sys.stdin.readline(2 * PASSWORD_MAX_CHARACTERS)
    except UnicodeDecodeError:
        fail("the password on the standard input is not UTF-8.")
    return line.rstrip("\r\n")


@app.command()
def add(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="As the program on Windows gives it, any case.")
    ],
    administrator: Annotated[
        bool, typer.Option("--administrator", help="Let it do everything, as administrators may.")
    ] = False,
    data: DataOption = "",
    json: JsonOption = False,
) -> None:
    """Add an account. The password is asked for, or read as one line from the standard input."""
    path = _path(data)
    _changed(
        lambda: add_account(
            path, name, _password(), administrator=administrator, now_s=read_clocks().unix_s
        ),
        "added account:{name}: let it in with `openmsmq queue acl grant QUEUE account:{name} "
        "receive`",
        json=json,
    )


@app.command("list")
def list_(data: DataOption = "", json: JsonOption = False) -> None:
    """List the accounts; nothing of their passwords is shown."""
    try:
        accounts = read_accounts(_path(data))
    except ConfigError as error:
        fail(f"{error}.")
    if json:
        for each in accounts:
            print_json(_object(each))
        return
    rows = [
        [
            each.name,
            "disabled" if each.is_disabled else "good",
            "yes" if each.is_administrator else "no",
            time_text(each.created_time_s),
            time_text(each.password_time_s),
        ]
        for each in accounts
    ]
    if not print_table(("Name", "Is", "Administrator", "Created", "Password of"), rows):
        typer.echo("there are no accounts: openmsmq user add NAME")


@app.command()
def password(name: NameArgument, data: DataOption = "", json: JsonOption = False) -> None:
    """Change a password. It is asked for, or read as one line from the standard input."""
    path = _path(data)
    _changed(
        lambda: change_password(path, name, _password(), now_s=read_clocks().unix_s),
        "{name} has another password",
        json=json,
    )


@app.command()
def disable(name: NameArgument, data: DataOption = "", json: JsonOption = False) -> None:
    """Let nobody come in by an account until it is enabled; who has is cut off within seconds."""
    path = _path(data)
    _changed(lambda: set_disabled(path, name, disabled=True), "disabled {name}", json=json)


@app.command()
def enable(name: NameArgument, data: DataOption = "", json: JsonOption = False) -> None:
    """Let an account be used again."""
    path = _path(data)
    _changed(lambda: set_disabled(path, name, disabled=False), "enabled {name}", json=json)


@app.command()
def remove(
    name: NameArgument, data: DataOption = "", yes: YesOption = False, json: JsonOption = False
) -> None:
    """Remove an account. Rights that were granted to it stay in access lists, for its name."""
    path = _path(data)
    ask_before(f"Remove the account {name}?", yes=yes)
    _changed(lambda: remove_account(path, name), "removed {name}", json=json)


def _object(found: StoredAccount) -> JsonObject:
    return {
        "name": found.name,
        "sid": str(account(found.name)),
        "administrator": found.is_administrator,
        "disabled": found.is_disabled,
        "created_time": time_text(found.created_time_s),
        "password_time": time_text(found.password_time_s),
    }
